"""How often placing pod after pod by rank ends as well as the best of all placements.

Small random fleets in mode `planned`, so that a placement fixes the GPUs. A placement is better if it
places more pods, then if the slowest links of the pods are faster together, then if it leaves more GPUs
in whole healthy islands. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from scoring import picture, rank, rings, verdict
from scoring.candidate import candidate
from scoring.links import Links, links_of
from scoring.model import (
    Allocation,
    AllocationMode,
    Cause,
    Fleet,
    Gpu,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    PodUid,
    WorkClass,
)
from scoring.policy import DEFAULT

NOW_S: Final = 1_000.0
NODES: Final = 3
GPUS: Final = 4
PODS: Final = 4
Value = tuple[int, float, int]


def wiring(draw: random.Random) -> Links:
    """A switch, two bridged pairs, or PCIe alone."""
    kind = draw.choice(["switch", "pairs", "pcie"])
    words = {
        (i, j): "NV18" if kind == "switch" or (kind == "pairs" and i // 2 == j // 2) else "SYS"
        for j in range(GPUS)
        for i in range(j)
    }
    return links_of(range(GPUS), words, "H100")


def fleet(draw: random.Random) -> Fleet:
    """Three nodes, some GPUs held, some degraded."""
    nodes, held = {}, {}
    for number in range(NODES):
        name = NodeName(f"n{number}")
        sick = Cause(id="remap.pending", state=Health.DEGRADED)
        gpus = tuple(
            Gpu(uuid=GpuUuid(f"{name}-{i}"), index=i, causes=(sick,) if draw.random() < 0.1 else ())
            for i in range(GPUS)
        )
        nodes[name] = Node(name=name, gpus=gpus, links=wiring(draw), mode=AllocationMode.PLANNED)
        taken = [gpu.uuid for gpu in gpus if draw.random() < 0.2]
        held[name] = tuple(_held(name, uuid, frozenset({uuid})) for uuid in taken)
    return Fleet(
        generation=1, now_s=NOW_S, nodes=nodes, seen_s=dict.fromkeys(nodes, NOW_S),
        allocations=held, gangs={}, overrides={}, breakers={},
    )  # fmt: skip


def _held(node: NodeName, uid: str, gpus: frozenset[GpuUuid]) -> Allocation:
    return Allocation(
        node=node, uid=PodUid(uid), namespace="d", pod=uid, resource="nvidia.com/gpu",
        count=len(gpus), gpus=gpus,
    )  # fmt: skip


def needs(draw: random.Random) -> tuple[Need, ...]:
    """What the pods ask for, in the order in which they come."""
    return tuple(
        Need(work=draw.choice(list(WorkClass)), count=draw.choice([1, 1, 2, 2, 4]))
        for _ in range(PODS)
    )


def placed(found: Fleet, need: Need, node: NodeName, pod: int) -> tuple[Fleet, float] | None:
    """The fleet with a pod on a node, and its slowest link in log GB/s; None: it does not fit, or
    kube-scheduler would not offer the node.
    """
    ready = candidate(found, found.nodes[node], DEFAULT)
    judged = verdict.judge(ready, need, DEFAULT)
    if judged.reason is not None or ready.free.bit_count() < need.count:
        return None
    handed = rank.handed_out(ready, rank.choice(ready, need, judged, DEFAULT))
    if handed is None:
        return None
    one = _held(node, f"pod-{pod}", frozenset(ready.names(handed.mask)))
    allocations = {**found.allocations, node: (*found.allocations[node], one)}
    speed = 0.0 if need.count == 1 else math.log1p(handed.bottleneck_gbps)
    return replace(found, allocations=allocations), speed


def by_rank(found: Fleet, asks: Sequence[Need]) -> Value:
    """Each pod to the node that ranks first among those with enough free GPUs."""
    count, speed = 0, 0.0
    for pod, need in enumerate(asks):
        ranking = picture.ranking_of(picture.picture(found, DEFAULT), need)
        tries = (placed(found, need, name, pod) for name in ranking.order)
        best = next((each for each in tries if each is not None), None)
        if best is not None:
            found, count, speed = best[0], count + 1, speed + best[1]
    return _value(found, count, speed)


def everywhere(
    found: Fleet, asks: Sequence[Need], pod: int = 0, count: int = 0, speed: float = 0.0
) -> Iterator[Value]:
    """The values of all placements, pods left out included."""
    if pod == len(asks):
        yield _value(found, count, speed)
        return
    for name in found.nodes:
        after = placed(found, asks[pod], name, pod)
        if after is not None:
            yield from everywhere(after[0], asks, pod + 1, count + 1, speed + after[1])
    yield from everywhere(found, asks, pod + 1, count, speed)


def _value(found: Fleet, count: int, speed: float) -> Value:
    whole = 0
    for node in found.nodes.values():
        ready = candidate(found, node, DEFAULT)
        good = sum(1 << i for i, states in enumerate(ready.together) if not states) & ready.free
        whole += sum(
            island.bit_count()
            for island in rings.islands(node.links)
            if not island & ~good and island.bit_count() > 1
        )
    return count, round(speed, 6), whole


def main() -> None:
    """Compare on random instances and print how often rank is as good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=200)
    options = parser.parse_args()
    equal = as_many = as_fast = 0
    for seed in range(options.instances):
        draw = random.Random(seed)
        found, asks = fleet(draw), needs(draw)
        got, best = by_rank(found, asks), max(everywhere(found, asks))
        as_many += got[0] == best[0]
        as_fast += got[:2] == best[:2]
        equal += got == best
    total = options.instances
    print(
        json.dumps(
            {
                "bench": "rank",
                "instances": total,
                "as_many_pods_ratio": round(as_many / total, 3),
                "as_fast_ratio": round(as_fast / total, 3),
                "equal_ratio": round(equal / total, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
