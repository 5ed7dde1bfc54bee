"""What Kubernetes sees of the fleet: GPUs as counts, and who holds which.

A GPU is allocatable unless the stock device plugin has withdrawn it: it watches for XIDs and takes
a GPU back once it was repaired and the plugin started anew. It does not see heat, links or pending
repairs. A node that reboots is not ready.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from extender.demo.fleet import Machine
from extender.demo.jobs import Job
from scoring.allocator.reach import reachable
from scoring.model import NodeName
from scoring.rings import mask_of, positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One member of a job on one node, with the GPUs that it was given."""

    member: int
    node: NodeName
    gpus: tuple[int, ...]
    """Indices, ascending."""


class Cluster:
    """Nodes, and the GPUs that jobs hold."""

    def __init__(self, machines: Sequence[Machine], seed: int) -> None:
        self.machines: Mapping[NodeName, Machine] = {m.name: m for m in machines}
        self._seed = seed
        self._holder: dict[tuple[NodeName, int], str] = {}
        self.withdrawn: frozenset[tuple[NodeName, int]] = frozenset()
        """GPUs that the device plugin calls unhealthy."""
        self.cut: Mapping[NodeName, frozenset[int]] = {}
        """GPUs whose NVLinks are down, by node; the device plugin looks at links for each pod."""
        self.down: frozenset[NodeName] = frozenset()
        """Nodes that are not ready."""

    def free(self, name: NodeName) -> list[int]:
        """Allocatable GPUs that nobody holds, ascending."""
        return [
            gpu
            for gpu in range(self.machines[name].product.gpus)
            if (name, gpu) not in self._holder and (name, gpu) not in self.withdrawn
        ]

    def free_counts(self, product: str | None) -> dict[NodeName, int]:
        """Free GPUs of each node that is ready and of this product (None: any)."""
        return {
            name: len(self.free(name))
            for name, machine in self.machines.items()
            if name not in self.down and product in (None, machine.product.label)
        }

    def commit(self, job: Job, nodes: Sequence[NodeName]) -> tuple[Placement, ...]:
        """Start a job, member i on nodes[i], each with one of the sets of GPUs that NVIDIA's device
        plugin may hand out.

        Which of them depends on seed, job, member, node and what is free there, never on what was
        drawn before: two runs that place a member alike give it the same GPUs.
        """
        found = []
        for member, name in enumerate(nodes):
            gpus = self._drawn(job, member, name)
            self._holder.update(dict.fromkeys(((name, gpu) for gpu in gpus), job.name))
            found.append(Placement(member=member, node=name, gpus=gpus))
        return tuple(found)

    def _drawn(self, job: Job, member: int, name: NodeName) -> tuple[int, ...]:
        """One of the possible sets; any, where the policy cannot be told or proposes none."""
        free = self.free(name)
        if len(free) < job.gpus:
            raise ValueError(f"{name} has {len(free)} GPUs free, {job.name} asks for {job.gpus}")
        node = self.machines[name].node(self.cut.get(name, frozenset()))
        found = reachable(node, mask_of(free), job.gpus)
        if found.sets:
            taken = min(found.sets, key=lambda taken: self._lot(job, member, name, taken))
            return tuple(positions(taken))
        order = sorted(free, key=lambda gpu: self._lot(job, member, name, gpu))
        return tuple(sorted(order[: job.gpus]))

    def release(self, placements: Iterable[Placement]) -> None:
        """Give the GPUs of these placements back."""
        for place in placements:
            for gpu in place.gpus:
                del self._holder[place.node, gpu]

    def holders(self, node: NodeName, gpu: int | None = None) -> Iterator[str]:
        """The jobs on one GPU, or on all GPUs of a node; each once."""
        yield from dict.fromkeys(
            job
            for (name, index), job in sorted(self._holder.items())
            if name == node and gpu in (None, index)
        )

    @property
    def held(self) -> int:
        """GPUs that jobs hold."""
        return len(self._holder)

    def _lot(self, job: Job, member: int, name: NodeName, choice: int) -> bytes:
        text = f"{self._seed}/{job.name}/{member}/{name}/{choice}"
        return hashlib.blake2b(text.encode(), digest_size=8).digest()
