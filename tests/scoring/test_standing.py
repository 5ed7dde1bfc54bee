"""What a node is worth to one pod, next to a look at every node."""

from __future__ import annotations

from dataclasses import replace

import strategies as own
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100

from scoring import picture, standing
from scoring.model import (
    Ask,
    Convention,
    Fleet,
    GangKey,
    GangRef,
    Need,
    NodeName,
    PodUid,
    Rejection,
    WorkClass,
)
from scoring.policy import DEFAULT

OWNER = "default/Job/trainer"
GANG = GangRef(key=GangKey("default/bound"), convention=Convention.COSCHEDULING)


def ask_of(need: Need, gang: GangRef | None = None) -> Ask:
    """A pod of the owner that was rejected before."""
    return Ask(namespace="default", name="pod", uid=PodUid("u"), need=need, gang=gang, owner=OWNER)


def rejection(node: NodeName, age_s: float, owner: str = OWNER) -> Rejection:
    """One refusal, so long ago."""
    return Rejection(
        node=node, owner=owner, reason="UnexpectedAdmissionError", at_s=own.NOW_S - age_s
    )


@given(fleet=own.fleets(), need=own.needs(3), count=st.integers(1, 4), data=st.data())
def test_the_best_are_those_of_a_look_at_every_node(
    fleet: Fleet, need: Need, count: int, data: st.DataObject
) -> None:
    """Whoever was rejected where, and wherever members are bound: worth decides, then the name."""
    names = sorted(fleet.nodes)
    spoiled = data.draw(st.sets(st.sampled_from(names)))
    ages_s = {name: data.draw(st.sampled_from([0.0, 300.0, 3_000.0])) for name in spoiled}
    fleet = replace(
        fleet, rejections={name: (rejection(name, age),) for name, age in ages_s.items()}
    )
    found = picture.picture(fleet, DEFAULT)
    made = picture.ranking_of(found, need)
    ask = ask_of(need, GANG if need.work is WorkClass.GANG else None)
    stands = standing.standing(found, ask)
    offered = frozenset(data.draw(st.sets(st.sampled_from(names))))
    fitting = sorted(offered & made.ranks.keys(), key=lambda n: (-stands.worth(made, n), n))
    assert stands.best(made, offered, count) == fitting[:count]
    assert all(0.0 <= stands.worth(made, name) <= 1.0 for name in fitting)


def test_a_rejected_owner_goes_elsewhere_and_others_do_not_mind() -> None:
    """The node that refused the trainer's pod comes last for it, and first by name for others."""
    nodes = [dgx_h100(name=name) for name in ("a", "b")]
    both = frozenset(node.name for node in nodes)
    fleet = replace(own.fleet(*nodes), rejections={NodeName("a"): (rejection(NodeName("a"), 5),)})
    found = picture.picture(fleet, DEFAULT)
    need = Need(work=WorkClass.SINGLE, count=8)
    made = picture.ranking_of(found, need)
    mine = standing.standing(found, ask_of(need))
    assert mine.best(made, both, 2) == ["b", "a"]
    others = standing.standing(found, replace(ask_of(need), owner="default/Job/other"))
    assert others.best(made, both, 2) == ["a", "b"]


def test_what_was_long_ago_is_forgiven() -> None:
    """After `keep` the rank is whole again."""
    name = NodeName("a")
    aged = rejection(name, DEFAULT.rejection.keep_s + 1)
    fleet = replace(own.fleet(dgx_h100(name="a")), rejections={name: (aged,)})
    found = picture.picture(fleet, DEFAULT)
    need = Need(work=WorkClass.SINGLE, count=8)
    assert standing.standing(found, ask_of(need)).trust_ratio(name) == 1.0
