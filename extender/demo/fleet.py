"""The machines of the demo: four products in racks, as Kubernetes and their agents describe them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final

from scoring.links import Links, links_of, nvlinks
from scoring.model import AllocationMode, Gpu, GpuUuid, Node, NodeName

RACK_NODES: Final = 4
CUBE_MESH: Final[Mapping[tuple[int, int], str]] = MappingProxyType(
    {
        (0, 1): "NV1", (0, 2): "NV1", (0, 3): "NV2", (0, 4): "NV2",
        (1, 2): "NV2", (1, 3): "NV1", (1, 5): "NV2", (2, 3): "NV2",
        (2, 6): "NV1", (3, 7): "NV1", (4, 5): "NV1", (4, 6): "NV1",
        (4, 7): "NV2", (5, 6): "NV2", (5, 7): "NV1", (6, 7): "NV2",
    }
)  # fmt: skip
"""NVLinks of a DGX-1 with V100: two rings of four GPUs, joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One kind of machine."""

    key: str
    """Short, for names of nodes."""
    label: str
    """Value of the node label `nvidia.com/gpu.product`."""
    model: str
    """As NVML names the GPU."""
    gpus: int
    share: int
    """Nodes of this product among twelve."""
    nvlinks: int
    """Per GPU; 0: PCIe only."""
    switched: bool = False
    """Behind NVSwitch: every pair has all links. Else the cube mesh, or PCIe."""
    cliques: bool = False
    """NVLink goes on to the other nodes of the rack."""

    def word(self, pair: tuple[int, int], cut: frozenset[int] = frozenset()) -> str:
        """The link class of a pair of GPUs, lower first; GPUs of `cut` have lost their NVLinks."""
        if not cut.intersection(pair):
            if self.switched:
                return f"NV{self.nvlinks}"
            if self.nvlinks and pair in CUBE_MESH:
                return CUBE_MESH[pair]
        return "NODE" if self.numa(pair[0]) == self.numa(pair[1]) else "SYS"

    def numa(self, index: int) -> int:
        """The socket of a GPU."""
        return 2 * index // self.gpus


PRODUCTS: Final = (
    Product(
        key="h100", label="NVIDIA-H100-80GB-HBM3", model="NVIDIA H100 80GB HBM3",
        gpus=8, share=5, nvlinks=18, switched=True, cliques=True,
    ),
    Product(
        key="a100", label="NVIDIA-A100-SXM4-80GB", model="NVIDIA A100-SXM4-80GB",
        gpus=8, share=3, nvlinks=12, switched=True,
    ),
    Product(
        key="v100", label="Tesla-V100-SXM2-32GB", model="Tesla V100-SXM2-32GB",
        gpus=8, share=2, nvlinks=6,
    ),
    Product(key="l40s", label="NVIDIA-L40S", model="NVIDIA L40S", gpus=4, share=2, nvlinks=0),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node as it was delivered: what never changes during the day."""

    name: NodeName
    product: Product
    labels: Mapping[str, str]
    uuids: tuple[GpuUuid, ...]
    """By index."""

    def pci(self, index: int) -> str:
        """The address of a GPU, as its kernel prints it."""
        return f"0000:{0x1B + 0x10 * index:02x}:00.0"

    def words(self, cut: frozenset[int] = frozenset()) -> dict[tuple[int, int], str]:
        """The link class of every pair; GPUs of `cut` have lost their NVLinks."""
        pairs = combinations(range(self.product.gpus), 2)
        return {pair: self.product.word(pair, cut) for pair in pairs}

    def links(self, cut: frozenset[int] = frozenset()) -> Links:
        """The same as a matrix in GB/s."""
        return links_of(range(self.product.gpus), self.words(cut), self.product.model)

    def node(self, cut: frozenset[int] = frozenset()) -> Node:
        """The machine as the device plugin finds it."""
        return Node(
            name=self.name,
            gpus=tuple(
                Gpu(uuid=uuid, index=i, model=self.product.model, numa=self.product.numa(i))
                for i, uuid in enumerate(self.uuids)
            ),
            links=self.links(cut),
            mode=AllocationMode.NVIDIA,
        )

    def links_active(self, index: int) -> int:
        """NVLinks of one healthy GPU: those that NVSwitch or its peers are wired to."""
        if self.product.switched:
            return self.product.nvlinks
        return sum(nvlinks(word) for pair, word in self.words().items() if index in pair)


def fleet(nodes: int) -> tuple[Machine, ...]:
    """`nodes` machines, the products in the proportion of their shares; the same for every seed."""
    return tuple(
        machine(product, number)
        for product, count in zip(PRODUCTS, _counts(nodes), strict=True)
        for number in range(count)
    )


def _counts(nodes: int) -> list[int]:
    """How many of each product: largest remainder, the first products first among equals."""
    whole = sum(product.share for product in PRODUCTS)
    shares = [nodes * product.share / whole for product in PRODUCTS]
    counts = [int(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - shares[i], i))
    for i in by_remainder[: nodes - sum(counts)]:
        counts[i] += 1
    return counts


def machine(product: Product, number: int) -> Machine:
    """The `number`th machine of a product."""
    name = NodeName(f"{product.key}-{number:02d}")
    rack = f"{product.key}-rack-{number // RACK_NODES}"
    return Machine(
        name=name,
        product=product,
        labels=MappingProxyType(dict(_labels(product, rack))),
        uuids=tuple(
            GpuUuid(f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{name}.surefoot.dev')}")
            for index in range(product.gpus)
        ),
    )


def _labels(product: Product, rack: str) -> Iterator[tuple[str, str]]:
    yield "nvidia.com/gpu.product", product.label
    yield "topology.kubernetes.io/zone", "demo-a"
    yield "topology.gke.io/rack", rack
    if product.cliques:
        cluster = uuid.uuid5(uuid.NAMESPACE_DNS, f"{rack}.surefoot.dev")
        yield "nvidia.com/gpu.clique", f"{cluster}.1"
