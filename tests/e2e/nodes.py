"""GPU nodes: what the API server sees of them, and what an agent would report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asking import Json
from papers import node_paper

from e2e.api import Api
from e2e.cluster import KUBELET_LABEL
from e2e.waiting import eventually
from extender.store.connect import StoreSettings
from extender.store.writer import Writer

NODES: Final = "/api/v1/nodes"
RACK: Final = "topology.kubernetes.io/rack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A product: what its nodes say of themselves."""

    product: str
    """As the GPU feature discovery labels it."""
    gpus: int
    cliques: bool = False
    """Whether its NVLink goes beyond the node."""


H100: Final = Machine(product="NVIDIA-H100-80GB-HBM3", gpus=8)
GB200: Final = Machine(product="NVIDIA-GB200", gpus=4, cliques=True)
NO_GPU: Final = Machine(product="", gpus=0)


def labels_of(machine: Machine, rack: str) -> dict[str, str]:
    """What a node of this machine in this rack carries."""
    found = {**KUBELET_LABEL, RACK: rack}
    if machine.gpus:
        found["nvidia.com/gpu.product"] = machine.product
        found["nvidia.com/gpu.count"] = str(machine.gpus)
    if machine.cliques:
        found["nvidia.com/gpu.clique"] = f"clique-of-{rack}"
    return found


def node_body(name: str, machine: Machine, labels: Mapping[str, str]) -> Json:
    """A Node, as its kubelet would register it."""
    capacity = {"cpu": "128", "memory": "1Ti", "pods": "110", "ephemeral-storage": "1Ti"}
    if machine.gpus:
        capacity["nvidia.com/gpu"] = str(machine.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


class Nodes:
    """The nodes of one test; `gpu_nodes(2)` makes two, and the test's end removes them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made: dict[str, tuple[Machine, dict[str, str]]] = {}

    def __call__(
        self,
        count: int,
        machine: Machine = H100,
        *,
        prefix: str = "gpu",
        rack: str = "r1",
        labels: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Make `count` nodes, `gpu-0` and so on, and wait until pods can go there; their names."""
        first = sum(name.rpartition("-")[0] == prefix for name in self._made)
        names = [f"{prefix}-{number}" for number in range(first, first + count)]
        return self.named(*names, machine=machine, rack=rack, labels=labels)

    def named(
        self,
        *names: str,
        machine: Machine = H100,
        rack: str = "r1",
        labels: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The same, with names of the test's own."""
        wanted = {**labels_of(machine, rack), **(labels or {})}
        for name in names:
            self._made[name] = (machine, wanted)
            self._api.create(NODES, node_body(name, machine, wanted))
        eventually(lambda: set(names) <= self._usable(), f"{names} are ready")
        return list(names)

    @property
    def names(self) -> frozenset[str]:
        """All that were made."""
        return frozenset(self._made)

    def report(
        self,
        store: StoreSettings,
        sick: Mapping[str, Mapping[int, str]] | None = None,
        *,
        only: Collection[str] | None = None,
        **fields: Any,
    ) -> None:
        """Put a Node document of each node into the cache, as its agent would.

        `sick`: states by node and by index of the GPU; all others are healthy. `only`: these nodes.
        """
        writer = Writer(store)
        writer.put(
            [
                node_paper(
                    name,
                    gpus=machine.gpus,
                    sick=(sick or {}).get(name),
                    metadata={"name": name, "labels": labels},
                    **fields,
                )
                for name, (machine, labels) in self._made.items()
                if machine.gpus and (only is None or name in only)
            ]
        )
        writer.close()

    def lose_kubelet(self, name: str) -> None:
        """Its heartbeats end; the node lifecycle controller will notice."""
        self._api.merge(f"{NODES}/{name}", {"metadata": {"labels": dict.fromkeys(KUBELET_LABEL)}})

    def remove(self) -> None:
        """Delete them all, and wait until they are gone."""
        for name in self._made:
            self._api.delete(f"{NODES}/{name}")
        eventually(lambda: not set(self._made) & self._names(), "nodes are gone")
        self._made.clear()

    def _names(self) -> set[str]:
        return {each["metadata"]["name"] for each in self._api.items(NODES)}

    def _usable(self) -> set[str]:
        return {
            each["metadata"]["name"]
            for each in self._api.items(NODES)
            if not each["spec"].get("taints")
            and any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in each["status"].get("conditions", ())
            )
        }
