"""The small gang scheduler and what Kubernetes sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.demo.cluster import Cluster, Placement
from extender.demo.fleet import fleet
from extender.demo.jobs import Job
from extender.demo.scheduler import chosen, pod_of
from extender.wire.asks import ask_of
from extender.wire.pods import Pod
from scoring.model import NodeName, WorkClass
from scoring.policy import DEFAULT

FLEET = fleet(12)
NAMES = [machine.name for machine in FLEET]
H100 = FLEET[0].product.label


def job(members: int, gpus: int, product: str | None = H100, name: str = "job-1") -> Job:
    """A job of this shape."""
    return Job(
        name=name, members=members, gpus=gpus, arrival_s=0.0, duration_s=3600.0, product=product
    )


class Only:
    """An extender that passes some nodes, prefers one, and remembers what it was asked."""

    def __init__(self, fit: Sequence[NodeName], favourite: NodeName | None = None) -> None:
        self.fit, self.favourite = fit, favourite
        self.filtered: list[list[NodeName]] = []
        self.ranked: list[list[NodeName]] = []

    def filter(self, pod: Mapping[str, Any], names: Sequence[NodeName]) -> list[NodeName]:
        """Those of `names` that are fit."""
        self.filtered.append(list(names))
        return [name for name in names if name in self.fit]

    def prioritize(
        self, pod: Mapping[str, Any], names: Sequence[NodeName]
    ) -> Mapping[NodeName, int]:
        """10 for the favourite."""
        self.ranked.append(list(names))
        return {name: 10 * (name == self.favourite) for name in names}


@pytest.fixture
def cluster() -> Cluster:
    """Five H100 nodes, three A100, two V100, two L40S, all free."""
    return Cluster(FLEET, seed=1)


def test_members_spread_over_the_emptiest_nodes_without_an_extender(cluster: Cluster) -> None:
    """LeastAllocated is kube-scheduler's default: each next member goes where most is free."""
    nodes = chosen(job(5, 4), cluster, None)
    assert nodes is not None
    assert len(set(nodes)) == 5


def test_a_gang_gets_all_nodes_or_none(cluster: Cluster) -> None:
    """Five whole nodes there are, six there are not, and nothing is held meanwhile."""
    assert len(chosen(job(5, 8), cluster, None) or ()) == 5
    assert chosen(job(6, 8), cluster, None) is None
    assert chosen(job(5, 8), cluster, Only(NAMES[:4])) is None
    assert cluster.held == 0


def test_the_selected_product_is_the_only_one_offered(cluster: Cluster) -> None:
    """A node selector is the scheduler's own to respect."""
    extender = Only(NAMES)
    chosen(job(1, 8), cluster, extender)
    assert extender.filtered == [[name for name in NAMES if name.startswith("h100")]]


def test_a_node_that_reboots_is_not_offered(cluster: Cluster) -> None:
    """It is not ready."""
    cluster.down = frozenset(NAMES[:4])
    assert chosen(job(2, 8), cluster, None) is None


def test_a_gpu_that_the_plugin_withdrew_is_neither_counted_nor_drawn(cluster: Cluster) -> None:
    """An XID takes a GPU away, whoever schedules."""
    cluster.withdrawn = frozenset({(NAMES[0], 3)})
    assert cluster.free_counts(H100)[NAMES[0]] == 7
    (place,) = cluster.commit(job(1, 7), [NAMES[0]])
    assert 3 not in place.gpus


def test_prioritize_is_asked_only_where_there_is_a_choice(cluster: Cluster) -> None:
    """kube-scheduler skips it for one node."""
    extender = Only(NAMES[:1])
    assert chosen(job(1, 8), cluster, extender) == [NAMES[0]]
    assert extender.ranked == []


def test_the_points_of_the_extender_outweigh_spreading(cluster: Cluster) -> None:
    """10 points times weight and ten are more than LeastAllocated can give."""
    cluster.commit(job(1, 6, name="other"), [NAMES[2]])
    assert chosen(job(1, 2), cluster, Only(NAMES, favourite=NAMES[2])) == [NAMES[2]]


@given(st.permutations(["a", "b", "c"]), st.integers(0, 100))
def test_a_draw_does_not_depend_on_what_was_drawn_before(order: list[str], seed: int) -> None:
    """Jobs on nodes of their own get the same GPUs, whichever comes first."""
    homes = dict(zip("abc", NAMES, strict=False))

    def drawn(names: Sequence[str]) -> dict[str, tuple[Placement, ...]]:
        cluster = Cluster(FLEET, seed)
        return {name: cluster.commit(job(1, 3, name=name), [homes[name]]) for name in names}

    assert drawn(order) == drawn("abc")


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 4, 8]))), st.integers(0, 9))
def test_no_gpu_is_held_twice(shapes: list[tuple[int, int]], seed: int) -> None:
    """Whatever is started, each GPU has one holder, and what is released is free again."""
    cluster = Cluster(FLEET, seed)
    placed = []
    for number, (members, gpus) in enumerate(shapes):
        work = job(members, gpus, None, f"job-{number}")
        nodes = chosen(work, cluster, None)
        if nodes is not None:
            placed.append(cluster.commit(work, nodes))
    held = [(p.node, gpu) for places in placed for p in places for gpu in p.gpus]
    assert len(held) == len(set(held)) == cluster.held
    for places in placed:
        cluster.release(places)
    assert cluster.held == 0


def test_more_than_is_free_cannot_be_committed(cluster: Cluster) -> None:
    """A plan that no longer holds is an error, never a smaller set."""
    cluster.commit(job(1, 8), [NAMES[0]])
    with pytest.raises(ValueError, match="has 0 GPUs free"):
        cluster.commit(job(1, 1, name="late"), [NAMES[0]])


def test_pods_say_what_surefoot_reads() -> None:
    """Gang, size and GPUs of a member; a single pod is no gang; a second try is said."""
    member = ask_of(msgspec.convert(pod_of(job(3, 4), 1), Pod), DEFAULT)
    assert (member.need.work, member.need.count) == (WorkClass.GANG, 4)
    assert member.gang is not None
    assert (member.gang.key, member.gang.min) == ("demo/job-1", 3)
    single = ask_of(msgspec.convert(pod_of(job(1, 2), 0, tried=True), Pod), DEFAULT)
    assert single.need.work is WorkClass.SINGLE
    assert not single.narrowable
