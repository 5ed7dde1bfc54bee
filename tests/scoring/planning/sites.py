"""Clusters and gangs for the tests of the planner: plain ones, and random ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from hypothesis import strategies as st
from machines import dgx_h100
from strategies import NOW_S, fleet, fleets

from scoring import picture
from scoring.links import links_of
from scoring.model import (
    Allocation,
    ClusterNode,
    Fleet,
    GangKey,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    PodUid,
    Taint,
    WorkClass,
)
from scoring.planning.outcome import Outcome, Plan, Shortfall
from scoring.planning.planner import plan
from scoring.planning.values import (
    Amounts,
    HostPort,
    Member,
    PendingGang,
    Room,
    Shape,
    Site,
    Topology,
)
from scoring.policy import DEFAULT, GangPolicy, Policy
from scoring.topology import Level

GPU = "nvidia.com/gpu"
RACK = "network.topology.nvidia.com/leaf"
BLOCK = "network.topology.nvidia.com/spine"
ZONE = "topology.kubernetes.io/zone"
ROOMY = Room(allocatable=Amounts(cpu_m=64_000, memory_bytes=1 << 40), pods=110)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A fleet with what the API server says of it."""

    fleet: Fleet
    site: Site
    policy: Policy = DEFAULT

    def planned(self, *gangs: PendingGang) -> tuple[Outcome, ...]:
        """What becomes of these gangs."""
        return plan(picture.picture(self.fleet, self.policy), self.site, gangs)

    def plan(self, gang: PendingGang) -> Plan:
        """The plan of a gang that has one."""
        (outcome,) = self.planned(gang)
        assert isinstance(outcome, Plan), outcome
        return outcome

    def shortfall(self, gang: PendingGang) -> Shortfall:
        """Why a gang has none."""
        (outcome,) = self.planned(gang)
        assert isinstance(outcome, Shortfall), outcome
        return outcome

    def node(self, name: str, **changes: Any) -> Cluster:
        """The same with something else on a node of the API server."""
        found = replace(self.fleet.cluster[NodeName(name)], **changes)
        return replace(
            self, fleet=replace(self.fleet, cluster={**self.fleet.cluster, found.name: found})
        )

    def room(self, name: str, room: Room) -> Cluster:
        """The same with other room on a node."""
        return replace(
            self, site=replace(self.site, rooms={**self.site.rooms, NodeName(name): room})
        )


def cluster(
    *nodes: Node, held: Mapping[str, int] | None = None, policy: Policy = DEFAULT
) -> Cluster:
    """These nodes, with room for anything but GPUs. `held`: GPUs that pods hold, by node."""
    by_name = {node.name: node for node in nodes}
    allocations: dict[NodeName, tuple[Allocation, ...]] = {
        NodeName(name): (holding(by_name[NodeName(name)], range(count)),)
        for name, count in (held or {}).items()
    }
    return of_fleet(fleet(*nodes, allocations=allocations), policy)


def holding(node: Node, indices: Iterable[int], gang: GangKey | None = None) -> Allocation:
    """A pod that holds these GPUs of a node."""
    gpus = frozenset(GpuUuid(node.gpus[index].uuid) for index in indices)
    return Allocation(
        node=node.name, uid=PodUid(f"holder-{node.name}"), namespace="default", pod="holder",
        resource=GPU, count=len(gpus), gpus=gpus, gang=gang,
    )  # fmt: skip


def of_fleet(found: Fleet, policy: Policy = DEFAULT) -> Cluster:
    """A cluster whose API server knows every node of a fleet."""
    nodes = {
        name: ClusterNode(
            name=name,
            labels=node.labels,
            capacity={GPU: len(node.gpus)},
            allocatable={GPU: len(node.gpus)},
        )
        for name, node in found.nodes.items()
    }
    return Cluster(
        fleet=replace(found, cluster=nodes),
        site=Site(rooms=dict.fromkeys(nodes, ROOMY)),
        policy=policy,
    )


def racked(count: int, *, per_rack: int) -> list[Node]:
    """`count` nodes of 8 H100 named n0, n1, ..., so many in each rack r0, r1, ..."""
    return [
        dgx_h100(name=f"n{number}", labels={RACK: f"r{number // per_rack}", ZONE: "z"})
        for number in range(count)
    ]


def shape(gpus: int = 8, **more: Any) -> Shape:
    """What a member asks: so many GPUs, and what else is said."""
    return replace(Shape(need=Need(work=WorkClass.GANG, count=gpus)), **more)


def gang(
    *shapes: Shape,
    name: str = "train",
    priority: int = 0,
    age_s: float = 1.0,
    least: int | None = -1,
    size: int | None = None,
    topology: Topology | None = None,
    bound: Mapping[int, str] | None = None,
    nominated: Mapping[int, str] | None = None,
) -> PendingGang:
    """A gang of one member for each shape; `bound` and `nominated` by index. All must start unless
    `least` says otherwise.
    """
    bound, nominated = bound or {}, nominated or {}
    members = tuple(
        Member(
            uid=PodUid(f"{name}-{index}"),
            name=f"{name}-{index}",
            index=index,
            shape=each,
            bound=NodeName(bound[index]) if index in bound else None,
            nominated=NodeName(nominated[index]) if index in nominated else None,
        )
        for index, each in enumerate(shapes)
    )
    return PendingGang(
        key=GangKey(f"ml/{name}"),
        priority=priority,
        since_s=NOW_S - age_s,
        min=len(members) if least == -1 else least,
        size=size,
        topology=topology or Topology(),
        members=members,
    )


def nodes_of(found: Plan) -> list[str]:
    """The nodes of a gang's members, by index."""
    order = sorted(found.places, key=lambda uid: int(uid.rpartition("-")[2]))
    return [str(found.places[uid]) for uid in order]


# --- random ones ---------------------------------------------------------------------------------

TAINT = Taint(key="dedicated", value="other", effect="NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A random cluster with gangs that wait in it."""

    cluster: Cluster
    gangs: tuple[PendingGang, ...]
    order: tuple[int, ...]
    """Another order of the gangs."""


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes in racks and zones, some sick, busy, cordoned, tainted or short of cpu."""
    found = draw(fleets(most_nodes=6, most_gpus=4))
    nodes, seen_s = dict(found.nodes), dict(found.seen_s)
    for name, node in found.nodes.items():
        labels = {**node.labels, RACK: draw(st.sampled_from(["r0", "r1", "r2"]))}
        nodes[name] = replace(node, labels=labels)
        if draw(st.integers(0, 3)):  # most are well, else hardly a gang would find a place
            gpus = tuple(replace(gpu, causes=()) for gpu in node.gpus)
            links = links_of(
                range(len(gpus)), dict.fromkeys(combinations(range(len(gpus)), 2), "NV18")
            )
            nodes[name] = replace(nodes[name], gpus=gpus, links=links)
            seen_s[name] = NOW_S - 1.0
    found = replace(found, nodes=nodes, seen_s=seen_s)
    made = of_fleet(found, replace(DEFAULT, gang=GangPolicy(suspect=draw(st.booleans()))))
    for name in sorted(found.nodes):
        if draw(st.integers(0, 9)) == 0:
            made = made.node(name, unschedulable=True)
        if draw(st.integers(0, 9)) == 0:
            made = made.node(name, taints=(TAINT,))
        made = made.room(name, draw(ROOMS))
    return made


ROOMS = st.builds(
    Room,
    allocatable=st.sampled_from([Amounts(8_000), Amounts(8_000), Amounts(3_000)]),
    held=st.sampled_from([Amounts(), Amounts(1_500)]),
    pods=st.sampled_from([110, 110, 2]),
    held_pods=st.integers(0, 1),
    ports=st.sampled_from([frozenset(), frozenset(), frozenset({HostPort(80)})]),
)
SHAPES = st.builds(
    shape,
    gpus=st.integers(1, 3),
    amounts=st.sampled_from([Amounts(), Amounts(1_000), Amounts(2_000)]),
    ports=st.sampled_from([frozenset(), frozenset(), frozenset({HostPort(80)})]),
)


@st.composite
def pending(draw: st.DrawFn, name: str, names: Sequence[str], *, nominations: bool) -> PendingGang:
    """A gang of one or two shapes, of which some members may be somewhere already."""
    shapes = draw(st.lists(SHAPES, min_size=1, max_size=2))
    members = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=5))
    places = st.dictionaries(st.integers(0, len(members) - 1), st.sampled_from(names), max_size=2)
    return gang(
        *members,
        name=name,
        priority=draw(st.integers(0, 1)),
        age_s=draw(st.sampled_from([1.0, 2.0, 5_000.0])),
        least=draw(st.sampled_from([-1, -1, 2, 1])),
        topology=draw(
            st.sampled_from([None, None, Topology(required=Level.RACK), Topology(required=ZONE)])
        ),
        bound=draw(st.one_of(st.just({}), places)),
        nominated=draw(places) if nominations and draw(st.booleans()) else None,
    )


@st.composite
def cases(draw: st.DrawFn, *, nominations: bool = True) -> Case:
    """A cluster with some gangs, in any order."""
    made = draw(clusters())
    names = sorted(map(str, made.fleet.nodes))
    gangs = tuple(
        draw(pending(f"g{number}", names, nominations=nominations))
        for number in range(draw(st.integers(1, 4)))
    )
    return Case(cluster=made, gangs=gangs, order=tuple(draw(st.permutations(range(len(gangs))))))


SUSPECT_TOO = replace(DEFAULT, gang=GangPolicy(suspect=True))
SICK = Health.RESET_REQUIRED
