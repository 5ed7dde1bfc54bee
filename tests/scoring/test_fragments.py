"""What a pod breaks of what was whole."""

from __future__ import annotations

from itertools import combinations

import pytest
import strategies as own
from hypothesis import given
from hypothesis import strategies as st
from machines import a100_pcie_pairs, dgx_h100, pcie_l40s4

from scoring.fragments import broken, broken_by
from scoring.links import Links
from scoring.rings import full_mask, islands

ALL_8 = 0xFF


@pytest.mark.parametrize(("count", "lost"), [(8, 0), (4, 4), (1, 7)])
def test_a_part_of_a_whole_switched_node_breaks_the_rest(count: int, lost: int) -> None:
    """Eight GPUs behind a switch are one island."""
    links = dgx_h100().links
    assert broken(links, ALL_8, ALL_8, count, chosen=False) == lost
    assert broken(links, ALL_8, ALL_8, count, chosen=True) == lost


def test_what_is_broken_cannot_be_broken_again() -> None:
    """A node with seven free GPUs has no whole island left."""
    assert broken(dgx_h100().links, 0b01111111, 0b01111111, 1, chosen=False) == 0


def test_pairs_are_kept_by_a_choice_and_broken_by_chance() -> None:
    """One pair is in use by half: a plan takes its other half, chance may break the whole pair."""
    links = a100_pcie_pairs().links
    first, *_ = (island for island in islands(links) if island.bit_count() == 2)
    half = first & -first
    free = full_mask(links) & ~half
    assert broken(links, free, free, 1, chosen=True) == 0
    assert broken(links, free, free, 1, chosen=False) == 1


def test_a_node_without_nvlink_is_whole_too() -> None:
    """Four cards on PCIe: one taken leaves three of a broken node."""
    assert broken(pcie_l40s4().links, 0b1111, 0b1111, 1, chosen=False) == 3


@given(links=st.integers(2, 6).flatmap(own.links), data=st.data())
def test_the_bounds_are_those_of_all_sets(links: Links, data: st.DataObject) -> None:
    """Over every set of free GPUs, the chosen one breaks the least, and chance may break the most."""
    everything = full_mask(links)
    free = data.draw(st.integers(1, everything))
    count = data.draw(st.integers(1, free.bit_count()))
    positions = [i for i in range(len(links)) if free >> i & 1]
    costs, sets = [], set()
    for some in combinations(positions, count):
        taken = sum(1 << i for i in some)
        sets.add(taken)
        whole = [i for i in islands(links) if not i & ~free and i.bit_count() > 1]
        of_islands = sum((i & ~taken).bit_count() for i in whole if i & taken)
        of_node = (everything & ~taken).bit_count() if free == everything else 0
        costs.append(max(of_islands, of_node))
    assert broken(links, free, free, count, chosen=True) == min(costs)
    assert broken(links, free, free, count, chosen=False) == max(costs)
    assert broken_by(links, free, frozenset(sets)) == max(costs)
