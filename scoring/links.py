"""The links between the GPUs of one node, in the words of `nvidia-smi topo -m` and in GB/s.

Speeds are GB/s in one direction as NCCL models them (NVIDIA/nccl src/graph/topo.h): they order
paths, they do not promise a throughput.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PCIE_GBPS: Final[Mapping[str, float]] = {
    "PIX": 24.0,  # one PCIe switch, gen 4 x16
    "PXB": 20.0,  # several switches
    "PHB": 16.0,  # through the host bridge: Intel pays 6/5 for peer-to-peer
    "NODE": 12.0,  # between host bridges of one NUMA node
    "SYS": 10.0,  # between sockets
}
"""Each PCIe class of `topo -m`, best first. Only the order and the distance to NVLink matter."""

NVLINK_GBPS: Final[tuple[tuple[str, float], ...]] = (
    (r"P100", 18.0),
    (r"V100|A100|A800|A30\b", 20.0),
    (r"A40|A6000|A10\b|RTX 30|3090", 12.0),
    (r"B100|B200|B300|GB200|GB300", 40.1),
    (r"H100|H200|H800|H20\b|GH200", 20.6),
)
"""GB/s of one NVLink by product name, first match wins."""

DEFAULT_NVLINK_GBPS: Final = 20.0

SELF: Final = "X"
WORST: Final = "SYS"
"""What a pair that nobody described counts as: no data is not a link."""

_NVLINK: Final = re.compile(r"NV(\d{1,3})\Z")


def nvlinks(word: str) -> int:
    """The number of NVLinks that a word of `topo -m` states; 0 for a PCIe class."""
    match = _NVLINK.match(word)
    return int(match[1]) if match else 0


def is_word(word: str) -> bool:
    """Whether `word` is a link class that `topo -m` prints between two GPUs."""
    return word in PCIE_GBPS or nvlinks(word) > 0


def nvlink_gbps(model: str | None) -> float:
    """GB/s of one NVLink of a GPU with this product name."""
    for pattern, gbps in NVLINK_GBPS:
        if model and re.search(pattern, model):
            return gbps
    return DEFAULT_NVLINK_GBPS


def speed_gbps(word: str, per_nvlink_gbps: float) -> float:
    """GB/s of a link, in one direction; an unknown word counts as SYS."""
    count = nvlinks(word)
    return count * per_nvlink_gbps if count else PCIE_GBPS.get(word, PCIE_GBPS[WORST])


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The symmetric link matrix of one node. Equal matrices are one object (see `links_of`), so
    that answers about a shape are computed once for a whole fleet.
    """

    words: tuple[tuple[str, ...], ...]
    gbps: tuple[tuple[float, ...], ...]

    def __len__(self) -> int:
        return len(self.words)


@lru_cache(maxsize=4096)
def _interned(words: tuple[tuple[str, ...], ...], per_nvlink_gbps: float) -> Links:
    gbps = tuple(
        tuple(0.0 if i == j else speed_gbps(word, per_nvlink_gbps) for j, word in enumerate(row))
        for i, row in enumerate(words)
    )
    return Links(words, gbps)


def as_of(links: Links, model: str | None) -> Links:
    """The same links between GPUs of another product, which has its own NVLink speed."""
    return _interned(links.words, nvlink_gbps(model))


def links_of(
    indices: Sequence[int], pairs: Mapping[tuple[int, int], str], model: str | None = None
) -> Links:
    """The matrix between GPUs `indices` (by position), from `pairs` keyed by (lower, higher) index.

    A missing pair is SYS. Two directions are one entry, so the matrix is symmetric by construction.
    """
    words = tuple(
        tuple(SELF if i == j else pairs.get((min(i, j), max(i, j)), WORST) for j in indices)
        for i in indices
    )
    return _interned(words, nvlink_gbps(model))
