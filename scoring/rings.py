"""The links of one node as a graph: NVLink islands, and the slowest link of the best ring.

Sets of GPUs are bitmasks over the positions of a `Links` matrix; speeds are GB/s, one direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from scoring.links import Links, nvlinks

MAX_RING_TABLE: Final = 16
"""Positions of a matrix up to which every ring is found exactly: the table has 2^n entries."""


def positions(mask: int) -> Iterator[int]:
    """The positions in `mask`, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(members: Iterable[int]) -> int:
    """The bitmask of these positions."""
    mask = 0
    for position in members:
        mask |= 1 << position
    return mask


def submasks(mask: int) -> Iterator[int]:
    """Every part of `mask`, itself and nothing included."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask
    yield 0


def full_mask(links: Links) -> int:
    """All positions of `links`."""
    return (1 << len(links)) - 1


# --- islands -------------------------------------------------------------------------------------


def islands(links: Links, mask: int | None = None) -> tuple[int, ...]:
    """The parts of `mask` (default: all) that NVLink holds together, by lowest position.

    They partition the mask: a GPU without NVLink is an island of one.
    """
    nvlink = [sum(1 << j for j, word in enumerate(row) if nvlinks(word)) for row in links.words]
    rest = full_mask(links) if mask is None else mask
    found: list[int] = []
    while rest:
        island = _component(nvlink, rest & -rest, rest)
        found.append(island)
        rest &= ~island
    return tuple(found)


def _component(neighbours: Sequence[int], seed: int, within: int) -> int:
    """The positions of `within` that can be reached from `seed`."""
    reached, edge = seed, seed
    while edge:
        around = 0
        for position in positions(edge):
            around |= neighbours[position]
        edge = around & within & ~reached
        reached |= edge
    return reached


# --- rings ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ring:
    """The best ring through a set of GPUs."""

    gbps: float
    """Its slowest link. One GPU has no link to wait for: infinity. Two share one link."""
    exact: bool = True
    """False: no faster ring was found, but one may exist (only above `MAX_RING_TABLE`)."""


@lru_cache(maxsize=4096)
def _levels(links: Links) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """For each speed that occurs, fastest first: the neighbours of each position at that speed."""
    n = len(links)
    speeds = sorted({links.gbps[i][j] for i in range(n) for j in range(i)}, reverse=True)
    return tuple(
        (
            speed,
            tuple(
                sum(1 << j for j in range(n) if j != i and links.gbps[i][j] >= speed)
                for i in range(n)
            ),
        )
        for speed in speeds
    )


@lru_cache(maxsize=65_536)
def ring(links: Links, mask: int) -> Ring:
    """The ring through all of `mask` whose slowest link is fastest, as collectives would use it.

    NCCL's rings visit each GPU once, so their speed is that of the slowest link (NVIDIA/nccl
    src/graph). Finding one is Hamilton's problem: settled by degrees where they suffice, else by a
    table of paths.
    """
    size = mask.bit_count()
    if size < 2:
        return Ring(math.inf)
    members = tuple(positions(mask))
    exact = True
    for level, (speed, neighbours) in enumerate(_levels(links)):
        if size == 2:
            if neighbours[members[0]] & mask:
                return Ring(speed)
            continue
        degree = min([(neighbours[i] & mask).bit_count() for i in members])
        if degree < 2:
            continue
        if 2 * degree >= size:  # Dirac 1952: then a Hamiltonian cycle exists
            return Ring(speed, exact)
        if _component(neighbours, mask & -mask, mask) != mask:
            continue
        if len(links) > MAX_RING_TABLE:
            exact = False
        elif _closes(links, level, mask):
            return Ring(speed)
    raise AssertionError("the slowest level joins every pair")  # pragma: no cover


def _closes(links: Links, level: int, mask: int) -> bool:
    """Whether a Hamiltonian cycle through `mask` uses only links of `level` or faster."""
    low = mask & -mask
    return bool(_paths(links, level)[mask] & _levels(links)[level][1][low.bit_length() - 1])


@lru_cache(maxsize=64)
def _paths(links: Links, level: int) -> list[int]:
    """For each mask, the ends of paths that start at its lowest position and visit all of it."""
    neighbours = _levels(links)[level][1]
    full = full_mask(links)
    ends = [0] * (full + 1)
    for position in range(len(links)):
        ends[1 << position] = 1 << position
    for mask in range(1, full + 1):
        here = ends[mask]
        if not here:
            continue
        free = full & ~mask & -(mask & -mask)
        while free:
            bit = free & -free
            if neighbours[bit.bit_length() - 1] & here:
                ends[mask | bit] |= bit
            free ^= bit
    return ends
