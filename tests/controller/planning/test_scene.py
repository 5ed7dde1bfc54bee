"""What plans rest on: what the API server says of nodes counts, whether or not the cache knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pools import cluster_of, fleet_of, names, of_state

from extender.controller.planning.mirrored import MirroredNodes
from extender.controller.planning.scene import Scene
from extender.controller.wanted import Wanted
from extender.store import render, values
from extender.store.schema import Kind
from scoring.model import ClusterNode, Fleet, NodeName
from scoring.picture import picture
from scoring.policy import DEFAULT

NAMES = names(3)
NODES = tuple(of_state(name) for name in NAMES)
RACK = {"topology.kubernetes.io/rack": "r1"}
CLUSTER = {name: replace(node, labels=RACK) for name, node in cluster_of(NODES).items()}
FORGETFUL = replace(fleet_of(*NODES), cluster={})
"""As the cache has it when the agents have reported, and no controller has yet."""


def _told(cluster: Mapping[NodeName, ClusterNode]) -> Fleet:
    """The same with what a controller has told of the nodes."""
    nodes = {node.name: values.placed(node, cluster[node.name]) for node in NODES}
    return replace(FORGETFUL, nodes=nodes, cluster=cluster)


def _wanted(cluster: Mapping[NodeName, ClusterNode]) -> Wanted:
    made = Wanted()
    documents = {str(name): render.document(node).encoded for name, node in cluster.items()}
    made.replace(Kind.CLUSTER_NODE, documents, ())
    return made


def test_plans_do_not_wait_for_the_cache_to_know_the_nodes() -> None:
    """All that the API server says of them is there at once, labels included."""
    scene = Scene(DEFAULT, MirroredNodes(_wanted(CLUSTER)))
    scene.hear(FORGETFUL, None)
    look = scene.look({})
    assert look is not None
    assert look.picture.fleet == _told(CLUSTER)
    assert look.picture.domains == picture(_told(CLUSTER), DEFAULT).domains


def test_a_node_that_the_cache_learns_of_has_changed() -> None:
    """Once, and no other has."""
    scene = Scene(DEFAULT, MirroredNodes(_wanted(CLUSTER)))
    scene.hear(FORGETFUL, None)
    scene.look({})
    some = replace(_told(CLUSTER), cluster={NAMES[0]: CLUSTER[NAMES[0]]})
    scene.hear(some, ())
    first, second = scene.look({}), scene.look({})
    assert first is not None
    assert second is not None
    assert (first.changed, second.changed) == (frozenset(NAMES[:1]), frozenset())
    assert first.picture.fleet == second.picture.fleet == _told(CLUSTER)


def test_a_node_that_changes_meanwhile_has_changed() -> None:
    """Before the cache has heard of it at all."""
    wanted = _wanted(CLUSTER)
    scene = Scene(DEFAULT, MirroredNodes(wanted))
    scene.hear(FORGETFUL, None)
    scene.look({})
    cordoned = replace(CLUSTER[NAMES[1]], unschedulable=True)
    wanted.change(Kind.CLUSTER_NODE, (), {NAMES[1]: render.document(cordoned).encoded})
    look = scene.look({})
    assert look is not None
    assert look.changed == {NAMES[1]}
    assert look.picture.fleet.cluster[NAMES[1]] == cordoned


def test_what_the_cache_knows_is_not_read_back() -> None:
    """Only what it lacks is; and what no reader could read is left out."""
    wanted = _wanted(CLUSTER)
    wanted.change(Kind.CLUSTER_NODE, (), {NAMES[2]: b"{"})
    assert MirroredNodes(wanted)({NAMES[0]}) == {NAMES[1]: CLUSTER[NAMES[1]]}
