"""The points that NVIDIA's best-effort policy gives each pair of GPUs.

A pair earns points for its PCIe class and 100 for each NVLink that leads from one GPU to the other
(NVIDIA/go-gpuallocator, `besteffort_policy.go`). The plugin counts an NVLink by the PCI id at its far
end. Behind an NVSwitch that is the switch, so no pair has NVLinks there, whatever `nvidia-smi topo
-m` prints.

`topo -m` hides the PCIe class of a pair that has NVLinks, and the points need it. GPUs of two NUMA
nodes are SYS by definition; those of one may or may not share a PCIe switch, so each common way to
build such a machine is a machine to reckon with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from scoring.links import WORST, Links, nvlinks
from scoring.model import Node

PCIE_POINTS: Final[Mapping[str, int]] = MappingProxyType(
    {"SYS": 10, "NODE": 20, "PHB": 30, "PXB": 40, "PIX": 50}
)
"""Points of each PCIe class of `topo -m`."""

NVLINK_POINTS: Final = 100
COUNTED_NVLINKS: Final = 18
"""NVLinks between two GPUs beyond this many earn nothing more."""

MOST_NVLINKS: Final = 18
"""NVLinks of one GPU at most, V100 to Blackwell. To have more, over all peers, takes a switch that
lets every peer use each of them."""


@dataclass(frozen=True, slots=True, eq=False)
class PairScores:
    """The symmetric points of one machine. Equal machines are one object (see `pair_scores`), so that
    answers about a shape are computed once for a whole fleet.
    """

    points: tuple[tuple[int, ...], ...]
    peers: tuple[tuple[tuple[int, int], ...], ...]
    """The same by GPU: each number of points above 0, and the set of peers that have it."""


@lru_cache(maxsize=4096)
def pair_scores(points: tuple[tuple[int, ...], ...]) -> PairScores:
    """The machine with these points between its GPUs, by position; the diagonal is not used.

    Raises ValueError unless the matrix is square, symmetric and without negative points.
    """
    size = len(points)
    if any(len(row) != size for row in points):
        raise ValueError("the matrix of points is not square")
    for i, row in enumerate(points):
        for j in range(i):
            if row[j] != points[j][i] or row[j] < 0:
                raise ValueError(f"bad points between GPUs {j} and {i}: {row[j]}, {points[j][i]}")
    return PairScores(points, tuple(_peers(position, row) for position, row in enumerate(points)))


def _peers(position: int, row: Sequence[int]) -> tuple[tuple[int, int], ...]:
    peers: dict[int, int] = {}
    for peer, points in enumerate(row):
        if peer != position and points:
            peers[points] = peers.get(points, 0) | 1 << peer
    return tuple(peers.items())


def pair_points(pcie: str, nvlink_count: int) -> int:
    """The points of a pair of this PCIe class with so many NVLinks from GPU to GPU.

    Raises KeyError for a word that is no PCIe class.
    """
    return PCIE_POINTS[pcie] + NVLINK_POINTS * min(nvlink_count, COUNTED_NVLINKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the GPUs of one NUMA node may hang on PCIe switches."""

    gpus_per_switch: int
    shared: str
    """The class of two GPUs of one switch."""


LAYOUTS: Final = (
    Layout(gpus_per_switch=1, shared="PIX"),  # a switch for each GPU: DGX H100, HGX B200
    Layout(gpus_per_switch=2, shared="PXB"),  # DGX A100
    Layout(gpus_per_switch=2, shared="PIX"),  # DGX-1
    Layout(gpus_per_switch=4, shared="PXB"),
    Layout(gpus_per_switch=4, shared="PIX"),
)
"""Common ways to build machines whose PCIe classes are hidden (published `topo -m` texts)."""

APART: Final = "NODE"
"""The class of two GPUs of one NUMA node on different switches, where no pair shows another."""


class Seat(NamedTuple):
    """Where a GPU sits: its NUMA node, and its number among the GPUs there."""

    numa: int | None
    number: int


def machines_of(node: Node) -> tuple[PairScores, ...]:
    """What the plugin may see of `node`: one machine where every PCIe class is known, else one for
    each layout that makes a difference.
    """
    taken: dict[int | None, int] = {}
    seats = []
    for gpu in node.gpus:
        number = taken.get(gpu.numa, 0)
        taken[gpu.numa] = number + 1
        seats.append(Seat(gpu.numa, number))
    return _machines(node.links, tuple(seats), _reports_fabric(node))


@lru_cache(maxsize=4096)
def _machines(
    links: Links, seats: tuple[Seat, ...], reports_fabric: bool
) -> tuple[PairScores, ...]:
    counted = not (reports_fabric or _shows_switch(links))
    apart = _apart(links, seats)
    machines = (
        pair_scores(
            tuple(
                tuple(
                    _points(word, _hidden(seats[i], seats[j], layout, apart), counted=counted)
                    for j, word in enumerate(row)
                )
                for i, row in enumerate(links.words)
            )
        )
        for layout in LAYOUTS
    )
    return tuple(dict.fromkeys(machines))


def _points(word: str, hidden: str, *, counted: bool) -> int:
    """The points of a pair of which `topo -m` shows this word; `hidden`: its class if NVLink is shown."""
    count = nvlinks(word)
    if count:
        return pair_points(hidden, count if counted else 0)
    return PCIE_POINTS.get(word, PCIE_POINTS[WORST])


def _hidden(one: Seat, other: Seat, layout: Layout, apart: str) -> str:
    """The PCIe class of a pair that `topo -m` shows by its NVLinks alone."""
    if one.numa != other.numa:
        return WORST
    together = one.number // layout.gpus_per_switch == other.number // layout.gpus_per_switch
    return layout.shared if together else apart


def _apart(links: Links, seats: Sequence[Seat]) -> str:
    """The most distant class that a pair of one NUMA node shows; APART where none shows any."""
    shown = {
        word
        for i, row in enumerate(links.words)
        for j, word in enumerate(row)
        if seats[i].numa == seats[j].numa and word in PCIE_POINTS
    }
    return min(shown, key=PCIE_POINTS.__getitem__, default=APART)


def _reports_fabric(node: Node) -> bool:
    """Only GPUs behind an NVSwitch have a fabric; those before H100 report none all the same."""
    return node.fabric is not None and node.fabric.state not in (None, "not_supported")


def _shows_switch(links: Links) -> bool:
    """Whether some GPU has more NVLinks to its peers than a GPU has at all."""
    return any(sum(map(nvlinks, row)) > MOST_NVLINKS for row in links.words)
