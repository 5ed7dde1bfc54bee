"""Random small instances: a few nodes of 4 GPUs in a few domains, and one gang of up to two shapes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from scoring import picture
from scoring.links import links_of
from scoring.model import (
    Allocation,
    AllocationMode,
    Cause,
    ClusterNode,
    Fleet,
    GangKey,
    Gpu,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    PodUid,
    WorkClass,
)
from scoring.picture import Picture
from scoring.planning.values import (
    Amounts,
    Member,
    PendingGang,
    Room,
    Shape,
    Site,
    Span,
    Topology,
)
from scoring.policy import DEFAULT, GangPolicy
from scoring.topology import CLIQUE_LABEL, Level

NOW_S: Final = 1_000.0
GPUS: Final = 4
CORES: Final = 16
RESOURCE: Final = "nvidia.com/gpu"
RACK: Final = "network.topology.nvidia.com/leaf"
BLOCK: Final = "network.topology.nvidia.com/spine"
ZONE: Final = "topology.kubernetes.io/zone"
ROW: Final = "example.com/row"
LINKS: Final = links_of(
    range(GPUS), {(i, j): "NV18" for j in range(GPUS) for i in range(j)}, "H100"
)
STATES: Final = (Health.HEALTHY,) * 34 + (Health.SUSPECT,) * 5 + (Health.DEGRADED,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One gang and the cluster it is planned in."""

    picture: Picture
    site: Site
    gang: PendingGang


def instance(draw: random.Random) -> Instance:
    """A random instance; SUSPECT GPUs are allowed in it, DEGRADED ones are not."""
    nodes = [_node(draw, number) for number in range(draw.randint(3, 9))]
    held = {node.name: _held(draw, node) for node in nodes}
    members = _members(draw, [node.name for node in nodes])
    for member in members:
        if member.bound is not None:
            held[member.bound] = (*held[member.bound], _bound(member, member.bound))
    units = {RESOURCE: GPUS}
    fleet = Fleet(
        generation=1,
        now_s=NOW_S,
        nodes={node.name: node for node in nodes},
        seen_s={node.name: NOW_S for node in nodes},
        allocations=held,
        gangs={},
        overrides={},
        breakers={},
        cluster={
            node.name: ClusterNode(
                name=node.name, labels=node.labels, capacity=units, allocatable=units
            )
            for node in nodes
        },
    )
    return Instance(
        picture=picture.picture(fleet, replace(DEFAULT, gang=GangPolicy(suspect=True))),
        site=Site(rooms={name: _room(draw, pods) for name, pods in held.items()}),
        gang=PendingGang(
            key=GangKey("d/g"),
            since_s=NOW_S,
            min=len(members),
            topology=Topology(required=_required(draw)),
            members=tuple(members),
        ),
    )


def _node(draw: random.Random, number: int) -> Node:
    name = NodeName(f"n{number}")
    labels = {
        ZONE: f"z{draw.randrange(2)}",
        BLOCK: f"b{draw.randrange(2)}",
        RACK: f"r{draw.randrange(2)}",
        ROW: f"w{draw.randrange(3)}",
    }
    if draw.random() < 0.5:
        # A clique lies within one rack, as its NVLink switches do.
        place = "".join(labels[key][1] for key in (ZONE, BLOCK, RACK))
        labels[CLIQUE_LABEL] = f"6f1e3c52-0c1d-4b57-9a55-2f4a0d8e7b10.{place}"
    kept = {key: value for key, value in labels.items() if draw.random() < 0.9}
    return Node(
        name=name,
        gpus=tuple(
            Gpu(uuid=GpuUuid(f"{name}-{index}"), index=index, causes=_causes(draw))
            for index in range(GPUS)
        ),
        links=LINKS,
        mode=draw.choice((AllocationMode.UNKNOWN, AllocationMode.PLANNED)),
        labels=kept,
    )


def _causes(draw: random.Random) -> tuple[Cause, ...]:
    state = draw.choice(STATES)
    return () if state is Health.HEALTHY else (Cause(id="ecc.sbe_rate", state=state),)


def _held(draw: random.Random, node: Node) -> tuple[Allocation, ...]:
    ratio = draw.choice((0.0, 0.0, 0.3))
    return tuple(
        Allocation(
            node=node.name, uid=PodUid(f"pod-{gpu.uuid}"), namespace="d", pod="p",
            resource=RESOURCE, count=1, gpus=frozenset({gpu.uuid}),
        )
        for gpu in node.gpus
        if draw.random() < ratio
    )  # fmt: skip


def _members(draw: random.Random, names: list[NodeName]) -> list[Member]:
    shapes = [
        Shape(
            need=Need(work=WorkClass.GANG, count=gpus),
            amounts=Amounts(cpu_m=1_000 * draw.choice((1, 2, 5))),
        )
        for gpus in draw.sample((1, 2, 3, 4), draw.choice((1, 1, 2)))
    ]
    found = []
    for number in range(draw.randint(2, 6)):
        bound = draw.choice(names) if number and draw.random() < 0.1 else None
        shape = draw.choice(shapes)
        found.append(
            Member(
                uid=PodUid(f"m{number}"), name=f"m{number}", index=number, shape=shape, bound=bound
            )
        )
    return found


def _bound(member: Member, node: NodeName) -> Allocation:
    """What a running member holds; on which GPUs nobody says."""
    return Allocation(
        node=node, uid=member.uid, namespace="d", pod=member.name, resource=RESOURCE,
        count=0, gang=GangKey("d/g"), gpus=frozenset(),
    )  # fmt: skip


def _room(draw: random.Random, pods: tuple[Allocation, ...]) -> Room:
    return Room(
        allocatable=Amounts(cpu_m=1_000 * draw.choice((CORES, CORES, 6))),
        held=Amounts(cpu_m=500),
        pods=draw.choice((110, 110, len(pods) + 2)),
        held_pods=len(pods),
    )


def _required(draw: random.Random) -> Span | None:
    return draw.choice((None, None, None, Level.RACK, Level.CLIQUE, Level.ZONE, ROW))
