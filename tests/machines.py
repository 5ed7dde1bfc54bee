"""Machines as fixtures: nodes with the wiring of real products, healthy unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypedDict, Unpack

from scoring.links import links_of
from scoring.model import AllocationMode, Cause, Fabric, Gpu, GpuUuid, Node, NodeName

CUBE_MESH: Final[Mapping[tuple[int, int], int]] = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
"""NVLinks of a DGX-1 with V100: two rings of four, joined; six links a GPU."""


class Options(TypedDict, total=False):
    """What a test may want otherwise."""

    name: str
    causes: Mapping[int, tuple[Cause, ...]]
    """By index of the GPU."""
    node_causes: tuple[Cause, ...]
    labels: Mapping[str, str]
    mode: AllocationMode
    fabric: Fabric | None


def machine(
    model: str, count: int, word: Callable[[int, int], str], **options: Unpack[Options]
) -> Node:
    """A node of `count` GPUs; `word` gives the link class of a pair, lower index first."""
    name = options.get("name", "node-0")
    causes = options.get("causes", {})
    pairs = {(i, j): word(i, j) for i in range(count) for j in range(i + 1, count)}
    return Node(
        name=NodeName(name),
        gpus=tuple(
            Gpu(
                uuid=GpuUuid(f"GPU-{name}-{i}"),
                index=i,
                pci=f"0000:{0x1B + 8 * i:02x}:00.0",
                model=model,
                numa=2 * i // count,
                causes=causes.get(i, ()),
            )
            for i in range(count)
        ),
        links=links_of(range(count), pairs, model),
        mode=options.get("mode", AllocationMode.UNKNOWN),
        expected=count,
        fabric=options.get("fabric"),
        causes=options.get("node_causes", ()),
        labels={"nvidia.com/gpu.product": model, **options.get("labels", {})},
    )


def dgx_h100(**options: Unpack[Options]) -> Node:
    """8 H100 behind NVSwitch: every pair NV18."""
    return machine("NVIDIA-H100-80GB-HBM3", 8, lambda _i, _j: "NV18", **options)


def hgx_a100(**options: Unpack[Options]) -> Node:
    """8 A100 behind NVSwitch: every pair NV12."""
    return machine("NVIDIA-A100-SXM4-80GB", 8, lambda _i, _j: "NV12", **options)


def dgx1v(**options: Unpack[Options]) -> Node:
    """8 V100 in a hybrid cube mesh: the choice of GPUs matters."""
    return machine("Tesla-V100-SXM2-32GB", 8, _cube_mesh, **options)


def _cube_mesh(i: int, j: int) -> str:
    return f"NV{CUBE_MESH[i, j]}" if (i, j) in CUBE_MESH else "SYS"


def pcie_l40s4(**options: Unpack[Options]) -> Node:
    """4 L40S without NVLink, two on each socket."""
    return machine("NVIDIA-L40S", 4, lambda i, j: "NODE" if i // 2 == j // 2 else "SYS", **options)


def a100_pcie_pairs(**options: Unpack[Options]) -> Node:
    """4 A100 PCIe, bridged 0-2 and 1-3: neighbours by index are no neighbours by link."""
    return machine(
        "NVIDIA-A100-PCIE-40GB", 4, lambda i, j: "NV12" if j == i + 2 else "SYS", **options
    )


def nvl72_tray(**options: Unpack[Options]) -> Node:
    """One tray of a GB200 NVL72: 4 GPUs whose NVLink goes on to the other trays of the clique."""
    fabric = Fabric(
        state="completed",
        status="success",
        clique_id=1,
        cluster_uuid="6f1e3c52-0c1d-4b57-9a55-2f4a0d8e7b10",
        health_mask=0x1AA,
        health_summary="healthy",
    )
    options.setdefault("fabric", fabric)
    return machine("NVIDIA-GB200", 4, lambda _i, _j: "NV18", **options)


def b200_with_gpu_off_fabric(off: int = 2, **options: Unpack[Options]) -> Node:
    """8 B200, one of which has lost all its NVLinks: PCIe is what is left."""

    def word(i: int, j: int) -> str:
        if off not in (i, j):
            return "NV18"
        return "NODE" if i // 4 == j // 4 else "SYS"

    return machine("NVIDIA-B200", 8, word, **options)
