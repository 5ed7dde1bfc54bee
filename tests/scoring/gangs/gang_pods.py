"""Pods of gangs, as the leader's view has them: plain ones, and random ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st

from scoring.gangs.gathering import GangId, gather
from scoring.gangs.rules import GATE, GangRules, Hold
from scoring.gangs.values import GangPod, Gathered, Group, Owner
from scoring.model import Convention, GangKey, GangRef, Need, NodeName, PodUid, WorkClass
from scoring.planning.values import Member, Shape

SHAPE: Final = Shape(need=Need(work=WorkClass.GANG, count=8))
JOB: Final = Owner(kind="Job", name="train", uid="job-uid")
ALL: Final = GangRules(plan=dict.fromkeys(Convention, Hold.REQUIRE))


def pod(
    name: str,
    *,
    gang: str = "train",
    convention: Convention = Convention.SUREFOOT,
    least: int | None = None,
    size: int | None = None,
    uid: str | None = None,
    bound: str | None = None,
    nominated: str | None = None,
    index: int | None = None,
    **more: Any,
) -> GangPod:
    """A pod at our gate that has no node."""
    found = GangPod(
        namespace="ml",
        version="1",
        gang=GangRef(key=GangKey(f"ml/{gang}"), convention=convention, min=least, size=size),
        member=Member(
            uid=PodUid(uid or f"uid-{name}"),
            name=name,
            shape=SHAPE,
            index=index,
            bound=NodeName(bound) if bound else None,
            nominated=NodeName(nominated) if nominated else None,
        ),
        created_s=100.0,
        gates=frozenset({GATE}),
    )
    return replace(found, **more)


def pods(count: int, *, gang: str = "train", **more: Any) -> list[GangPod]:
    """The members 0, 1, ... of an indexed gang."""
    return [pod(f"{gang}-{index}", gang=gang, index=index, **more) for index in range(count)]


def group(
    name: str = "train", convention: Convention = Convention.COSCHEDULING, **said: Any
) -> dict[GangId, Group]:
    """What one object says."""
    key = GangKey(f"ml/{name}")
    found = Group(convention=convention, key=key, uid=f"group-{name}", **said)
    return {GangId(key, convention): found}


def only(found: tuple[Gathered, ...]) -> Gathered:
    """The gang, where there is one."""
    (gang,) = found
    return gang


def gathered(*members: GangPod, **more: Any) -> Gathered:
    """The one gang that these pods make, where every convention is planned."""
    said = {"groups": {}, "crews": {}, "rules": ALL, **more}
    return only(gather(members, said["groups"], said["crews"], said["rules"]))


OWNERS = [None, JOB, replace(JOB, uid="earlier"), Owner(kind="Job", name="other", uid="other")]


@st.composite
def many(draw: st.DrawFn) -> list[GangPod]:
    """Pods of a few gangs, in all states that there are."""
    return [
        pod(
            f"p-{number}",
            gang=draw(st.sampled_from(["a", "b", "a~kueue"])),
            convention=draw(
                st.sampled_from([Convention.SUREFOOT, Convention.KUEUE, Convention.COSCHEDULING])
            ),
            least=draw(st.sampled_from([None, 2, 3])),
            size=draw(st.sampled_from([None, 3])),
            index=draw(st.sampled_from([None, 0, 1, 2])),
            bound=draw(st.sampled_from([None, None, "n1"])),
            created_s=draw(st.sampled_from([1.0, 2.0])),
            priority=draw(st.integers(0, 2)),
            owner=draw(st.sampled_from(OWNERS)),
            **draw(st.sampled_from(STATES)),
        )
        for number in range(draw(st.integers(0, 8)))
    ]


STATES: list[dict[str, Any]] = [
    {},
    {"gates": frozenset()},
    {"gates": frozenset({GATE, "kueue.x-k8s.io/admission"})},
    {"leaving": True},
    {"finished": True},
    {"finished": True, "succeeded": True},
]
