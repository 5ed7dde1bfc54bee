"""What disturbs a plan on its nodes, and what is the plan itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100
from strategies import NOW_S, fleet

from scoring import picture
from scoring.gangs.settling import disturbed
from scoring.model import (
    Allocation,
    Cause,
    ClusterNode,
    Fleet,
    Health,
    NodeName,
    Override,
    OverrideVerdict,
    PodUid,
    Rejection,
)
from scoring.policy import DEFAULT

N0 = NodeName("n0")
OURS = frozenset(map(PodUid, ("a", "b", "c")))
SOUND = replace(
    fleet(dgx_h100(name="n0")),
    cluster={N0: ClusterNode(name=N0, labels={}, capacity={}, allocatable={})},
)


def held(*pods: str) -> tuple[Allocation, ...]:
    """A GPU for each of these pods."""
    return tuple(
        Allocation(
            node=N0, uid=PodUid(pod), namespace="lab", pod=pod, resource="nvidia.com/gpu",
            count=1, gpus=None,
        )
        for pod in pods
    )  # fmt: skip


def disturbs(before: Fleet, now: Fleet) -> bool:
    """Whether a change of the fleet disturbs a plan of `OURS` on its node."""
    old, new = picture.picture(before, DEFAULT), picture.picture(now, DEFAULT)
    return disturbed(old, new, [N0], OURS)


pods = st.sets(st.sampled_from("abc"))
others = st.sets(st.sampled_from("xyz"))


@given(pods, pods, others)
def test_members_that_take_their_seats_disturb_nothing(
    before: set[str], now: set[str], there: set[str]
) -> None:
    """Law: whoever else is there."""
    old = replace(SOUND, allocations={N0: held(*sorted(before | there))})
    new = replace(SOUND, allocations={N0: held(*sorted(now | there))})
    assert not disturbs(old, new)


@given(pods, others, others)
def test_strangers_that_come_or_go_disturb(ours: set[str], before: set[str], now: set[str]) -> None:
    """Law: exactly where they are others than before."""
    old = replace(SOUND, allocations={N0: held(*sorted(ours | before))})
    new = replace(SOUND, allocations={N0: held(*sorted(ours | now))})
    assert disturbs(old, new) is (before != now)


def test_a_new_document_that_says_the_same_disturbs_nothing() -> None:
    """Nor does a new sign of life."""
    again = fleet(dgx_h100(name="n0"), now_s=NOW_S + 10)
    node = replace(again.nodes[N0], epoch=2, seq=77)
    assert not disturbs(SOUND, replace(again, nodes={N0: node}, cluster=SOUND.cluster))


CHANGES: dict[str, Callable[[Fleet], Fleet]] = {
    "a GPU turns bad": lambda of: replace(
        of,
        nodes={
            N0: dgx_h100(name="n0", causes={0: (Cause(id="xid.79", state=Health.RESET_REQUIRED),)})
        },
    ),
    "its document is gone": lambda of: replace(of, nodes={}),
    "its telemetry is old": lambda of: replace(of, seen_s={N0: NOW_S - 90}),
    "it is cordoned": lambda of: replace(
        of, cluster={N0: replace(of.cluster[N0], unschedulable=True)}
    ),
    "it is gone from the cluster": lambda of: replace(of, cluster={}),
    "an operator denies it": lambda of: replace(
        of,
        overrides={
            "node/n0": Override(
                target="node/n0", verdict=OverrideVerdict.DENY, who="me", why="", until_s=NOW_S + 60
            )
        },
    ),
    "it failed a pod": lambda of: replace(
        of, rejections={N0: (Rejection(node=N0, owner="o", reason="r", at_s=NOW_S),)}
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_makes_a_node_another_disturbs(change: Callable[[Fleet], Fleet]) -> None:
    """Whatever a verdict or a plan rests on; and so does its end."""
    assert disturbs(SOUND, change(SOUND))
    assert disturbs(change(SOUND), SOUND)


def test_without_a_picture_before_everything_may_be_new() -> None:
    """Where there is a node at all."""
    now = picture.picture(SOUND, DEFAULT)
    assert disturbed(None, now, [N0], OURS)
    assert not disturbed(None, now, [], OURS)
