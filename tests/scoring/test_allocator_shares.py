"""Which GPUs shares and MIG devices may come from."""

from __future__ import annotations

from itertools import combinations

import pytest

from scoring.allocator.answer import NOTHING
from scoring.allocator.shares import Shares, possible_gpus
from scoring.model import SharePolicy
from scoring.rings import mask_of

IDLE = Shares(total=4, free=4)
HALF = Shares(total=4, free=2)
BUSY = Shares(total=4, free=1)


def test_distributed_takes_from_the_idlest_gpu() -> None:
    """Two shares bring an idle GPU level with a half used one; the third ties."""
    assert possible_gpus((IDLE, HALF), 1).sets == frozenset({0b01})
    assert possible_gpus((IDLE, HALF), 2).sets == frozenset({0b01})
    assert possible_gpus((IDLE, HALF), 3).sets == frozenset({0b11})


def test_distributed_goes_round_among_equals() -> None:
    """As many GPUs as shares, any of them: the map's order decides."""
    pairs = {mask_of(pair) for pair in combinations(range(4), 2)}
    assert possible_gpus((IDLE,) * 4, 2).sets == frozenset(pairs)
    assert possible_gpus((IDLE,) * 4, 4).sets == frozenset({0b1111})


def test_packed_fills_the_fullest_gpu_first() -> None:
    """The busiest until it is full, then the next busiest."""
    assert possible_gpus((IDLE, HALF, BUSY), 1, SharePolicy.PACKED).sets == frozenset({0b100})
    assert possible_gpus((IDLE, HALF, BUSY), 3, SharePolicy.PACKED).sets == frozenset({0b110})
    assert possible_gpus((IDLE, IDLE), 4, SharePolicy.PACKED).sets == frozenset({0b01, 0b10})


def test_spread_takes_a_gpu_again_only_when_all_were_taken_from() -> None:
    """The idlest first among those untouched, then the others."""
    assert possible_gpus((IDLE, HALF, BUSY), 2, SharePolicy.SPREAD).sets == frozenset({0b011})
    assert possible_gpus((IDLE, HALF, BUSY), 3, SharePolicy.SPREAD).sets == frozenset({0b111})


def test_mig_devices_are_gpus_of_one_share() -> None:
    """No order among free ones; one in use is out of reach."""
    free, used = Shares(total=1, free=1), Shares(total=1, free=0)
    assert possible_gpus((free, used, free, free), 2).sets == frozenset({0b0101, 0b1001, 0b1100})


@pytest.mark.parametrize("k", [0, 9])
def test_asks_without_a_set(k: int) -> None:
    """Nothing asked, or more than is free."""
    assert possible_gpus((IDLE, IDLE), k) == NOTHING


def test_too_many_draws_are_unknown() -> None:
    """Half of 24 equal GPUs is millions of sets: any may come, and the answer says so."""
    found = possible_gpus((IDLE,) * 24, 12)
    assert found.sets is None
    assert not found.exact
