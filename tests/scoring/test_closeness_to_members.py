"""Where the next member of a gang is drawn to: near its bound members, and found without looking
at every node.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import strategies as own
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100

from scoring import closeness, picture, rank, ranking
from scoring.model import (
    Allocation,
    Ask,
    Convention,
    Fleet,
    GangKey,
    GangRef,
    GpuUuid,
    Need,
    Node,
    NodeName,
    PodUid,
    WorkClass,
)
from scoring.picture import Picture
from scoring.policy import DEFAULT
from scoring.ranking import Pull, Ranking

GANG = GangKey("default/bound")
LABELS = (
    "nvidia.com/gpu.clique",
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/spine",
    "topology.kubernetes.io/zone",
)


def ask(need: Need) -> Ask:
    """A member of the gang."""
    gang = GangRef(key=GANG, convention=Convention.SUREFOOT)
    return Ask(namespace="default", name="next", uid=PodUid("next"), need=need, gang=gang)


def pull_of(found: Picture, made: Ranking, near: closeness.Closeness) -> Pull:
    """What /filter makes of it."""
    return [
        (names, rank.domain_penalty(ratio, found.policy))
        for names, ratio in (*near.groups, (made.ranks, 0.0))
    ]


@st.composite
def labelled(draw: st.DrawFn) -> Fleet:
    """Nodes in domains of all levels, some of which contradict each other."""
    found = draw(own.fleets(most_nodes=9, most_gpus=3))
    values = st.fixed_dictionaries({}, optional=dict.fromkeys(LABELS, st.sampled_from("xy")))
    nodes = {
        name: replace(node, labels={**draw(values), "nvidia.com/gpu.clique": draw(CLIQUES)})
        for name, node in found.nodes.items()
    }
    return replace(found, nodes=nodes)


CLIQUES = st.sampled_from(["", "u.1", "u.2"])


@given(fleet=labelled(), need=own.needs(3), count=st.integers(1, 4), data=st.data())
def test_the_best_near_members_are_those_of_a_look_at_every_node(
    fleet: Fleet, need: Need, count: int, data: st.DataObject
) -> None:
    """Whatever the domains, groups large or small: rank less penalty decides, then the name."""
    found = picture.picture(fleet, DEFAULT)
    made = picture.ranking_of(found, need)
    near = closeness.to_members(found, ask(need))
    if near is None:
        return
    offered = frozenset(data.draw(st.sets(st.sampled_from(sorted(fleet.nodes)))))
    losses = {
        name: rank.domain_penalty(near(name), DEFAULT) - made.ranks[name]
        for name in offered
        if name in made.ranks
    }
    expected = sorted(losses, key=lambda name: (losses[name], name))[:count]
    for small in (0, 2, 100):
        with patch.object(ranking, "SMALL", small):
            assert made.first(offered, count, pull_of(found, made, near)) == expected


def in_rack(name: str, rack: str, zone: str = "z") -> Node:
    """A healthy node with labels."""
    return dgx_h100(name=name, labels={LABELS[1]: rack, LABELS[3]: zone})


def test_a_member_is_drawn_to_the_rack_then_to_the_zone() -> None:
    """One member runs in rack r1: its rack first, then its zone, then the rest."""
    nodes = (
        in_rack("a", "r9", "far"), in_rack("b", "r2"), in_rack("c", "r1"), in_rack("d", "r1"),
    )  # fmt: skip
    held = Allocation(
        node=NodeName("d"), uid=PodUid("u"), namespace="default", pod="p", resource="nvidia.com/gpu",
        count=1, gang=GANG, gpus=frozenset({GpuUuid("GPU-d-0")}),
    )  # fmt: skip
    fleet = own.fleet(*nodes, allocations={NodeName("d"): (held,)})
    found = picture.picture(fleet, DEFAULT)
    need = Need(work=WorkClass.GANG, count=4)
    made = picture.ranking_of(found, need)
    near = closeness.to_members(found, ask(need))
    assert near is not None
    assert near(NodeName("d")) == 1.0
    assert near(NodeName("c")) > near(NodeName("b")) > near(NodeName("a")) == 0.0
    best = made.first(frozenset(fleet.nodes), 4, pull_of(found, made, near))
    assert best == ["d", "c", "b", "a"]


def test_a_node_that_moves_is_found_in_its_new_rack() -> None:
    """Labels change: the index of domains follows, and forgets a rack that is empty."""
    before = own.fleet(in_rack("a", "r1"), in_rack("b", "r2"))
    old = picture.picture(before, DEFAULT)
    after = replace(before, nodes={**before.nodes, NodeName("b"): in_rack("b", "r1")}, generation=2)
    moved = picture.advanced(old, after, [NodeName("b")])
    assert moved.domains == picture.picture(after, DEFAULT).domains
    assert {"a", "b"} in moved.domains.values()
    assert len(moved.domains) < len(old.domains)


def test_an_unchanged_fleet_keeps_the_index_as_it_is() -> None:
    """Following a change of health copies nothing of it."""
    fleet = own.fleet(in_rack("a", "r1"), in_rack("b", "r2"))
    old = picture.picture(fleet, DEFAULT)
    now = picture.advanced(old, replace(fleet, generation=2), [NodeName("a")])
    assert now.domains is old.domains
    assert now.bound is old.bound
