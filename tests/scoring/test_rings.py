"""Islands and rings over link matrices."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import strategies as own
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import a100_pcie_pairs, b200_with_gpu_off_fabric, dgx1v, dgx_h100, pcie_l40s4

from scoring.links import Links, links_of, nvlinks
from scoring.model import Node
from scoring.rings import full_mask, islands, mask_of, positions, ring, submasks


@given(st.sets(st.integers(0, 80)))
def test_masks_and_positions_are_inverse(members: set[int]) -> None:
    """A set of positions and its mask say the same."""
    assert set(positions(mask_of(members))) == members
    assert list(positions(mask_of(members))) == sorted(members)


@given(st.integers(1, 8).flatmap(own.links), st.data())
def test_islands_partition_the_positions(links: Links, data: st.DataObject) -> None:
    """Each position is in one island; NVLink joins only within, and each island hangs together."""
    mask = data.draw(st.integers(0, full_mask(links)))
    found = islands(links, mask)
    assert sum(found) == mask == mask_of([p for island in found for p in positions(island)])
    for island in found:
        assert islands(links, island) == (island,)
        for i in positions(island):
            assert not any(nvlinks(links.words[i][j]) for j in positions(mask & ~island))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (dgx_h100(), (0xFF,)),
        (dgx1v(), (0xFF,)),
        (a100_pcie_pairs(), (0b0101, 0b1010)),
        (pcie_l40s4(), (1, 2, 4, 8)),
        (b200_with_gpu_off_fabric(2), (0xFB, 0x04)),
    ],
)
def test_islands_of_machines(node: Node, expected: tuple[int, ...]) -> None:
    """Switch, cube mesh, bridges, none, and one GPU off the fabric."""
    assert islands(node.links) == expected


def _every_ring_gbps(links: Links, members: tuple[int, ...]) -> float:
    """The definition: the best over all orders of the slowest link around."""
    first, *rest = members
    return max(
        min(links.gbps[a][b] for a, b in zip((first, *order), (*order, first), strict=True))
        for order in permutations(rest)
    )


@settings(max_examples=60)
@given(st.integers(3, 7).flatmap(own.links), st.data())
def test_ring_equals_all_orders_tried(links: Links, data: st.DataObject) -> None:
    """The ring of a set is the best of all round trips."""
    members = data.draw(st.sets(st.integers(0, len(links) - 1), min_size=3))
    expected = _every_ring_gbps(links, tuple(sorted(members)))
    found = ring(links, mask_of(members))
    assert (found.gbps, found.exact) == (expected, True)


def test_one_gpu_waits_for_no_link() -> None:
    """One GPU: infinity. Two: their link."""
    links = a100_pcie_pairs().links
    assert ring(links, 0b0001).gbps == math.inf
    assert ring(links, 0b0101).gbps == 240.0
    assert ring(links, 0b0011).gbps == 10.0


def test_a_third_gpu_breaks_a_bridged_pair() -> None:
    """With three GPUs on bridged pairs the ring crosses PCIe."""
    assert ring(a100_pcie_pairs().links, 0b0111).gbps == 10.0


def test_rings_of_the_cube_mesh() -> None:
    """All eight V100 have a ring of NV2 links; the four of one side share NV1 at the slowest."""
    links = dgx1v().links
    assert ring(links, 0xFF).gbps == 40.0
    assert ring(links, 0x0F).gbps == 20.0
    assert ring(links, mask_of([0, 1, 2, 5])).gbps == 10.0


def test_a_large_sparse_matrix_is_not_called_exact() -> None:
    """Above the size of the table a ring that degrees cannot prove is doubted, never waited for."""
    count = 24
    circle = {(i, i + 1): "NV2" for i in range(count - 1)} | {(0, count - 1): "NV2"}
    links = links_of(range(count), circle)
    assert ring(links, full_mask(links)).exact is False
    assert ring(links, full_mask(links)).gbps == 10.0


def test_submasks_are_all_parts() -> None:
    """Of three positions there are eight parts, each once."""
    found = list(submasks(0b1011))
    assert sorted(found) == sorted({part & 0b1011 for part in range(16)})
    assert len(found) == 8
