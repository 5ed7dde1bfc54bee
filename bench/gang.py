"""How fast gangs are planned at 5,000 nodes, and how often a plan is the best there is.

Prints one line of JSON. `plan_512_ms`: one gang of 512 members of 8 GPUs, everything from the picture
to the plan included; the median of some runs. `plan_200_gangs_ms`: 200 gangs of 2 to 64 members and of
eight shapes; about a tenth of them find no room. `optimal_ratio`: of 200 random small instances, those
that are planned as well as the optimum by mixed-integer programming (`optimum.py`); where only the
program finds a plan the run fails.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Final

import instances
import optimum
from fleet import GPUS, fleet

from scoring import picture
from scoring.model import (
    Allocation,
    ClusterNode,
    Fleet,
    GangKey,
    Need,
    Node,
    NodeName,
    PodUid,
    WorkClass,
)
from scoring.picture import Picture
from scoring.planning.outcome import Plan
from scoring.planning.planner import plan
from scoring.planning.values import Amounts, Member, PendingGang, Room, Shape, Site, Topology
from scoring.policy import DEFAULT
from scoring.topology import Level

NODES: Final = 5_000
MEMBERS: Final = 512
GANGS: Final = 200
SIZES: Final = (2, 4, 8, 8, 16, 16, 32, 64)
INSTANCES: Final = 200
NOW_S: Final = 10_000.0
GIB: Final = 1 << 30
RESOURCE: Final = "nvidia.com/gpu"


def cluster() -> tuple[Picture, Site]:
    """The fleet of the other benchmarks: 2 % of the GPUs with a cause, 30 % in use."""
    nodes: dict[NodeName, Node] = {}
    allocations: dict[NodeName, list[Allocation]] = {}
    for document in fleet(NODES).documents():
        if isinstance(document.value, Node):
            nodes[document.value.name] = document.value
        elif isinstance(document.value, Allocation):
            allocations.setdefault(document.value.node, []).append(document.value)
    units = {RESOURCE: GPUS}
    found = Fleet(
        generation=1,
        now_s=NOW_S,
        nodes=nodes,
        seen_s=dict.fromkeys(nodes, NOW_S),
        allocations={name: tuple(held) for name, held in allocations.items()},
        gangs={},
        overrides={},
        breakers={},
        cluster={
            name: ClusterNode(name=name, labels=node.labels, capacity=units, allocatable=units)
            for name, node in nodes.items()
        },
    )
    rooms = {name: _room(allocations.get(name, ())) for name in nodes}
    return picture.picture(found, DEFAULT), Site(rooms=rooms)


def _room(held: Sequence[Allocation]) -> Room:
    """Each GPU in use goes with 8 cores and 64 GiB."""
    gpus = sum(each.count for each in held)
    return Room(
        allocatable=Amounts(cpu_m=96_000, memory_bytes=1_000 * GIB),
        held=Amounts(cpu_m=1_000 + 8_000 * gpus, memory_bytes=(4 + 64 * gpus) * GIB),
        pods=110,
        held_pods=6 + len(held),
    )


def gang(name: str, size: int, gpus: int, topology: Topology, age_s: float = 60.0) -> PendingGang:
    """A gang of members that are all alike."""
    shape = Shape(
        need=Need(work=WorkClass.GANG, count=gpus),
        amounts=Amounts(cpu_m=8_000 * gpus, memory_bytes=64 * gpus * GIB),
    )
    return PendingGang(
        key=GangKey(f"research/{name}"),
        since_s=NOW_S - age_s,
        min=size,
        size=size,
        topology=topology,
        members=tuple(
            Member(uid=PodUid(f"{name}-{index}"), name=f"{name}-{index}", index=index, shape=shape)
            for index in range(size)
        ),
    )


def gangs(draw: random.Random) -> list[PendingGang]:
    """200 gangs of eight shapes; some must stay in a rack or a block, some prefer to."""
    topologies = [
        Topology(),
        Topology(),
        Topology(required=Level.BLOCK),
        Topology(required=Level.RACK),
        Topology(preferred=Level.RACK),
    ]
    return [
        gang(
            f"g{number:03}",
            draw.choice(SIZES),
            draw.choice((8, 8, 8, 8, 4, 2, 1)),
            draw.choice(topologies),
            draw.uniform(0.0, 2_000.0),
        )
        for number in range(GANGS)
    ]


def timed_ms(found: Picture, site: Site, pending: Sequence[PendingGang], repeats: int) -> float:
    """The median time of planning all of `pending`."""
    spent_ms = []
    for _ in range(repeats):
        start_s = time.perf_counter()
        plan(found, site, pending)
        spent_ms.append(1000 * (time.perf_counter() - start_s))
    return statistics.median(spent_ms)


def optimal_ratio(count: int) -> float:
    """How many of `count` random small instances are planned as well as the optimum."""
    equal = 0
    for seed in range(count):
        instance = instances.instance(random.Random(seed))
        best = optimum.objective(instance)
        (outcome,) = plan(instance.picture, instance.site, [instance.gang])
        got = outcome.objective if isinstance(outcome, Plan) else None
        if (got is None) != (best is None):
            sys.exit(f"instance {seed}: planned {got}, the optimum is {best}")
        equal += got == best
    return equal / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and instances")
    options = parser.parse_args()
    repeats, count = (3, 40) if options.quick else (9, INSTANCES)
    found, site = cluster()
    gc.collect()
    gc.freeze()  # as `serve` does: the fleet is there to stay
    large = gang("large", MEMBERS, GPUS, Topology())
    many = gangs(random.Random(1))
    print(
        json.dumps(
            {
                "bench": "gang",
                "plan_512_ms": round(timed_ms(found, site, [large], repeats), 1),
                "plan_200_gangs_ms": round(timed_ms(found, site, many, (repeats + 1) // 2), 1),
                "optimal_ratio": round(optimal_ratio(count), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
