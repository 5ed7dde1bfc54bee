"""Which GPUs NVIDIA's plugin may draw shares from: replicas of time-slicing or MPS, MIG devices.

It takes one share after the other, each from the GPU that the policy puts first, and looks at no
links (NVIDIA/k8s-device-plugin, `internal/rm/allocate.go`). Ties are broken at random: it walks a Go
map. A MIG device counts as a GPU with one share, so any set of free ones may come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from scoring.allocator.answer import NOTHING, UNKNOWN, Possible
from scoring.model import SharePolicy
from scoring.rings import mask_of

MAX_DRAWS: Final = 20_000
"""Ways to have drawn some shares that are kept at a time. Above, the answer is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The shares of one GPU."""

    total: int
    free: int


_Order = Callable[[int, int], tuple[int, int]]

_FIRST: Final[Mapping[SharePolicy, _Order]] = MappingProxyType(
    {
        SharePolicy.DISTRIBUTED: lambda used, drawn: (used, drawn),
        SharePolicy.PACKED: lambda used, drawn: (-used, drawn),
        SharePolicy.SPREAD: lambda used, drawn: (drawn, used),
    }
)
"""What each policy sorts GPUs by: the shares in use on it, those drawn now included, and the latter."""


@lru_cache(maxsize=4096)
def possible_gpus(
    gpus: tuple[Shares, ...], k: int, policy: SharePolicy = SharePolicy.DISTRIBUTED
) -> Possible:
    """The sets of GPUs, as positions in `gpus`, from which a pod that asks for `k` shares may get
    them. Several may come from one GPU, so a set has `k` GPUs at most.
    """
    if not 1 <= k <= sum(gpu.free for gpu in gpus):
        return NOTHING
    draws = {(0,) * len(gpus)}
    for _ in range(k):
        draws = {after for drawn in draws for after in _draw(gpus, drawn, _FIRST[policy])}
        if len(draws) > MAX_DRAWS:
            return UNKNOWN
    sets = frozenset(
        mask_of(position for position, count in enumerate(drawn) if count) for drawn in draws
    )
    return Possible(sets=sets, may_fail=False, exact=True)


def _draw(
    gpus: Sequence[Shares], drawn: tuple[int, ...], order: _Order
) -> Iterator[tuple[int, ...]]:
    """`drawn` with one share more, from each of the GPUs that tie for the first place."""
    places = {
        position: order(gpu.total - gpu.free + count, count)
        for position, (gpu, count) in enumerate(zip(gpus, drawn, strict=True))
        if count < gpu.free
    }
    first = min(places.values())
    for position, place in places.items():
        if place == first:
            yield (*drawn[:position], drawn[position] + 1, *drawn[position + 1 :])
