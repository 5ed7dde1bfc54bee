"""A synthetic fleet: 5,000 nodes of 8 GPUs, 2 % of the GPUs with a cause, 30 % in use."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.store import documents
from extender.store.documents import Document
from scoring.model import NodeName

GPUS: Final = 8
CAUSE_RATIO: Final = 0.02
USED_RATIO: Final = 0.3
GANG_SHARE: Final = 0.6
"""Of the GPUs in use: held by gangs whose members take whole nodes; the rest by small pods."""
MEMBERS: Final = 4
"""Members of each gang that run already; as many are still to come."""
NODES_PER: Final[Mapping[str, int]] = {
    "network.topology.nvidia.com/leaf": 8,
    "network.topology.nvidia.com/spine": 128,
    "topology.kubernetes.io/zone": 1250,
}
NAMESPACE: Final = "research"

Cause = Mapping[str, Any]

CAUSES: Final[Sequence[Cause]] = (
    {"id": "xid.48", "state": "RESET_REQUIRED", "evidence": "uncorrectable ECC error"},
    {"id": "remap.pending", "state": "RESET_REQUIRED", "evidence": "a row waits for a reset"},
    {"id": "xid.79", "state": "REBOOT_REQUIRED", "evidence": "GPU has fallen off the bus"},
    {"id": "thermal.slowdown", "state": "DEGRADED", "evidence": "hardware slowdown at 91 C"},
    {"id": "nvlink.down", "state": "DEGRADED", "scope": "link", "evidence": "2 of 18 links down"},
    {"id": "ecc.sbe_rate", "state": "SUSPECT", "evidence": "34 corrected errors in an hour"},
    {"id": "probation", "state": "PROBATION", "evidence": "repaired an hour ago"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Which causes are open where, and who holds what."""

    names: tuple[NodeName, ...]
    causes: Mapping[NodeName, Mapping[int, Cause]]
    """By position of the GPU; nodes without any are absent."""
    allocations: tuple[Document, ...]
    gangs: tuple[str, ...]
    """Names of gangs of which half the members run."""
    idle: tuple[NodeName, ...]
    """Nodes without a cause and without a pod."""

    def documents(self) -> Iterator[Document]:
        """Everything that the cache holds, but stamps."""
        for name in self.names:
            yield self.node(name)
        yield from self.allocations

    def node(self, name: NodeName, more: Mapping[int, Cause] | None = None) -> Document:
        """What the agent of a node publishes, with `more` causes on its GPUs."""
        causes = {**self.causes.get(name, {}), **(more or {})}
        return documents.check(_node(name, int(name[-5:]), causes))


def fleet(count: int, seed: int = 1) -> Fleet:
    """A fleet of `count` nodes."""
    draw = random.Random(seed)
    names = tuple(NodeName(f"gpu-{number:05}") for number in range(count))
    causes: dict[NodeName, dict[int, Cause]] = {}
    for at in draw.sample(range(count * GPUS), round(CAUSE_RATIO * count * GPUS)):
        causes.setdefault(names[at // GPUS], {})[at % GPUS] = draw.choice(CAUSES)
    used = round(USED_RATIO * count * GPUS)
    gangs, held = _gangs(names, round(GANG_SHARE * used), draw)
    left = [name for name in names if name not in {body["node"] for body in held}]
    held += _small_pods(left, used - sum(body["count"] for body in held), draw)
    busy = {body["node"] for body in held} | causes.keys()
    return Fleet(
        names=names,
        causes=causes,
        allocations=tuple(documents.check(body) for body in held),
        gangs=gangs,
        idle=tuple(name for name in names if name not in busy),
    )


def _node(name: NodeName, number: int, causes: Mapping[int, Cause]) -> dict[str, Any]:
    labels = {key: f"{key[-4:]}-{number // size}" for key, size in NODES_PER.items()}
    return {
        "apiVersion": "surefoot.dev/v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", **labels},
        },
        "bootId": str(uuid.UUID(int=number)),
        "allocationMode": "nvidia",
        "expected": GPUS,
        "links": {f"GPU{i}-GPU{j}": "NV18" for j in range(GPUS) for i in range(j)},
        "gpus": [
            {
                "uuid": gpu_uuid(name, index),
                "index": index,
                "pci": f"0000:{0x1B + 8 * index:02x}:00.0",
                "model": "NVIDIA-H100-80GB-HBM3",
                "numa": 2 * index // GPUS,
                "sampledAgo": "3s",
                "causes": [{"firstSeen": "2026-11-29T10:00:00Z", **causes[index]}]
                if index in causes
                else [],
            }
            for index in range(GPUS)
        ],
    }


def gpu_uuid(name: NodeName, index: int) -> str:
    """The uuid of one GPU."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}/{index}')}"


def _gangs(
    names: Sequence[NodeName], gpus: int, draw: random.Random
) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Gangs that hold so many GPUs, each on neighbouring whole nodes, and their allocations."""
    starts = draw.sample(range(len(names) // MEMBERS), gpus // (GPUS * MEMBERS))
    gangs = tuple(f"llm-{number:04}" for number in range(len(starts)))
    return gangs, [
        _allocation(names[start * MEMBERS + member], range(GPUS), f"{gang}-{member}", gang)
        for gang, start in zip(gangs, starts, strict=True)
        for member in range(MEMBERS)
    ]


def _small_pods(names: Sequence[NodeName], gpus: int, draw: random.Random) -> list[dict[str, Any]]:
    """Pods of 1, 2 or 4 GPUs that hold so many in all."""
    found: list[dict[str, Any]] = []
    free = {name: list(range(GPUS)) for name in draw.sample(names, len(names) * 2 // 5)}
    while gpus > 0:
        name = draw.choice([*free])
        size = min(draw.choice((1, 2, 4)), len(free[name]), gpus)
        taken, free[name] = free[name][:size], free[name][size:]
        if not free[name]:
            del free[name]
        gpus -= size
        found.append(_allocation(name, taken, f"infer-{len(found):05}", None))
    return found


def _allocation(name: NodeName, gpus: Sequence[int], pod: str, gang: str | None) -> dict[str, Any]:
    return {
        "apiVersion": "surefoot.dev/v1",
        "kind": "Allocation",
        "node": name,
        "pod": pod,
        "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, pod)),
        "namespace": NAMESPACE,
        "gang": gang and f"{NAMESPACE}/{gang}",
        "resource": "nvidia.com/gpu",
        "count": len(gpus),
        "gpus": [gpu_uuid(name, index) for index in gpus],
    }
