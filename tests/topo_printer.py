"""Prints link matrices of our own as `nvidia-smi topo -m` would, for its reader to be tested on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from hypothesis import strategies as st

from scoring.topo_text import TopoText, parse

Pairs = Mapping[tuple[int, int], str]

LEGEND_MP = """
Legend:

  X    = Self
  SYS  = path over PCIe and between NUMA nodes
  NODE = path over PCIe and between host bridges
  PHB  = path over PCIe and a host bridge
  PXB  = path over several PCIe switches
  PIX  = path over at most one PCIe switch
"""
LEGEND_M = LEGEND_MP + "  NV#  = path over a bonded set of # NVLinks\n"
AFFINITY = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


def pairs(count: int, word: Callable[[int, int], str]) -> dict[tuple[int, int], str]:
    """A matrix of `count` GPUs from a rule."""
    return {(i, j): word(i, j) for i in range(count) for j in range(i + 1, count)}


def table(
    count: int,
    matrix: Pairs,
    *,
    nics: Sequence[str] = (),
    nics_first: bool = False,
    affinity: Sequence[str] = AFFINITY,
    near: Callable[[int], Sequence[str]] = lambda gpu: (f"{8 * gpu}-{8 * gpu + 7}", f"{gpu // 2}"),
) -> list[list[str]]:
    """The cells, header first. `near` gives CPU list and NUMA node of a GPU."""
    gpus = [f"GPU{i}" for i in range(count)]
    devices = [*nics, *gpus] if nics_first else [*gpus, *nics]

    def cell(row: str, column: str) -> str:
        if row == column:
            return "X"
        if row in gpus and column in gpus:
            i, j = sorted((gpus.index(row), gpus.index(column)))
            return matrix[i, j]
        return "PXB"

    rows = [["", *devices, *affinity]]
    for device in devices:
        tail = [*near(gpus.index(device)), "N/A"] if device in gpus else [""] * len(affinity)
        rows.append([device, *(cell(device, other) for other in devices), *tail[: len(affinity)]])
    return rows


def tabs(rows: Sequence[Sequence[str]], legend: str = LEGEND_M) -> str:
    """As a driver prints it, with its second tab before the GPU's NUMA id."""
    lines = []
    for row in rows:
        cells = [f" {cell} " if cell == "X" else cell for cell in row]
        if cells[-1] == "N/A":
            cells.insert(-1, "")
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n" + legend


def blanks(rows: Sequence[Sequence[str]], legend: str = LEGEND_M, width: int = 8) -> str:
    """As it looks once a terminal or a web page has turned the tabs into blanks."""
    lines = []
    for row in rows:
        cells = [f" {cell}" if cell == "X" else cell for cell in row]
        lines.append(
            "".join(
                cell.ljust(16 if i >= _devices(rows) else width) for i, cell in enumerate(cells)
            )
        )
    return "\n".join(line.rstrip() for line in lines) + "\n" + legend


def _devices(rows: Sequence[Sequence[str]]) -> int:
    return 1 + sum(cell not in AFFINITY and cell != "" for cell in rows[0])


WORDS = st.sampled_from(["NV1", "NV4", "NV12", "NV18", "NV36", "SYS", "NODE", "PHB", "PXB", "PIX"])
Made = tuple[int, dict[tuple[int, int], str]]


class Layout(Protocol):
    """`tabs` or `blanks`."""

    def __call__(self, rows: Sequence[Sequence[str]], legend: str = ...) -> str:
        """The text of a table."""
        ...


MESH = pairs(4, lambda i, j: "NV6" if i + j == 3 else "NV2")


def read(text: str) -> TopoText:
    """The matrix of `text`, which must have one."""
    topo = parse(text)
    assert topo is not None
    return topo


@st.composite
def matrices(draw: st.DrawFn) -> Made:
    """A matrix of 2 to 12 GPUs of any classes."""
    count = draw(st.integers(2, 12))
    return count, {key: draw(WORDS) for key in pairs(count, lambda _i, _j: "")}
