"""The best and worst k of n: exact, the same under any numbering, and bounded."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from typing import Final

import pytest
import strategies as own
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import a100_pcie_pairs, b200_with_gpu_off_fabric, dgx1v, dgx_h100, pcie_l40s4

from scoring.links import Links, links_of, nvlinks
from scoring.rings import full_mask, mask_of, positions, ring
from scoring.subsets import Subset, best, worst

LINKS = st.integers(1, 7).flatmap(own.links)


def _value(found: Subset | None) -> tuple[float, float]:
    assert found is not None
    return found.bottleneck_gbps, found.sum_gbps


def _sum_gbps(links: Links, mask: int) -> float:
    return sum(links.gbps[i][j] for i, j in combinations(positions(mask), 2))


@given(LINKS, st.data())
def test_subsets_equal_brute_force(links: Links, data: st.DataObject) -> None:
    """Of all sets of k that include what must be in, best and worst are first by (ring, sum), then
    by lowest positions.
    """
    mask = data.draw(st.integers(1, full_mask(links)))
    must = mask & data.draw(st.integers(0, mask))
    k = data.draw(st.integers(max(1, must.bit_count()), mask.bit_count()))
    every = [mask_of(chosen) for chosen in combinations(positions(mask), k)]
    allowed = [chosen for chosen in every if not must & ~chosen]
    for find, pick in ((best, max), (worst, min)):
        found = find(links, mask, k, must=must)
        assert found is not None
        assert found.exact
        ring_gbps = pick(ring(links, each).gbps for each in allowed)
        with_ring = [each for each in allowed if ring(links, each).gbps == ring_gbps]
        sum_gbps = pick(round(_sum_gbps(links, each), 6) for each in with_ring)
        equals = [each for each in with_ring if round(_sum_gbps(links, each), 6) == sum_gbps]
        assert found.bottleneck_gbps == ring_gbps
        assert found.sum_gbps == pytest.approx(sum_gbps)
        assert found.mask == min(equals, key=lambda each: tuple(positions(each)))


@given(LINKS, st.data())
def test_one_more_position_never_lowers_best_nor_raises_worst(
    links: Links, data: st.DataObject
) -> None:
    """More to choose from helps whoever chooses, and hurts whoever may not."""
    whole = full_mask(links)
    mask = data.draw(st.integers(1, whole))
    more = mask | 1 << data.draw(st.integers(0, len(links) - 1))
    k = data.draw(st.integers(1, mask.bit_count()))
    assert _value(best(links, more, k)) >= _value(best(links, mask, k))
    assert _value(worst(links, more, k)) <= _value(worst(links, mask, k))


@given(st.integers(1, 6), st.data())
def test_numbering_does_not_matter(count: int, data: st.DataObject) -> None:
    """GPUs numbered otherwise give sets of the same worth."""
    links = data.draw(own.links(count))
    order = data.draw(st.permutations(range(count)))
    pairs = {
        (i, j): links.words[order[i]][order[j]] for i in range(count) for j in range(i + 1, count)
    }
    other = links_of(range(count), pairs, "H100")
    for k in range(1, count + 1):
        for find in (best, worst):
            assert _value(find(links, full_mask(links), k)) == _value(
                find(other, full_mask(other), k)
            )


def test_what_cannot_be_is_none() -> None:
    """No set of none, of more than there are, or with members from elsewhere."""
    links = dgx_h100().links
    assert best(links, 0xFF, 0) is None
    assert best(links, 0x0F, 5) is None
    assert worst(links, 0x0F, 2, must=0x10) is None
    assert worst(links, 0x0F, 1, must=0x03) is None
    assert best(links, 0, 1) is None


# Counted over all subsets of a DGX-1 with V100: sets of which all pairs have NVLink, and sets with a
# ring of NVLinks, by size.
@pytest.mark.parametrize(
    ("k", "total", "meshed", "ringed"),
    [(2, 28, 16, 16), (3, 56, 8, 8), (4, 70, 2, 8), (5, 56, 0, 24), (6, 28, 0, 28), (7, 8, 0, 8), (8, 1, 0, 1)],
)  # fmt: skip
def test_cube_mesh_subsets_by_kind(k: int, total: int, meshed: int, ringed: int) -> None:
    """The rings and meshes of the cube mesh are as many as its wiring has."""
    links = dgx1v().links
    sets = [mask_of(chosen) for chosen in combinations(range(8), k)]
    slowest = {
        each: min(links.gbps[i][j] for i, j in combinations(positions(each), 2)) for each in sets
    }
    assert len(sets) == total
    assert sum(gbps >= 20 for gbps in slowest.values()) == meshed
    assert sum(ring(links, each).gbps >= 20 for each in sets) == ringed


def test_best_four_of_the_cube_mesh() -> None:
    """One side of the cube; without GPU3, the other."""
    links = dgx1v().links
    assert best(links, 0xFF, 4) == Subset(mask=0x0F, bottleneck_gbps=20, sum_gbps=180)
    without = best(links, 0xFF & ~(1 << 3), 4)
    assert without is not None
    assert without.mask == 0xF0
    assert ring(links, 0xFF & ~(1 << 3)).gbps == 20.0


def test_the_ring_comes_before_the_sum() -> None:
    """Free {0,1,2,4,6} of a cube mesh: the largest sum is {0,1,2,4}, which has no NVLink ring."""
    links = dgx1v().links
    found = best(links, mask_of([0, 1, 2, 4, 6]), 4)
    assert found is not None
    assert found.mask == mask_of([0, 2, 4, 6])
    assert _sum_gbps(links, mask_of([0, 1, 2, 4])) > found.sum_gbps


def test_bridged_pairs_are_kept_together() -> None:
    """The best two of bridged cards are a pair, lowest first; the worst two are not."""
    links = a100_pcie_pairs().links
    good, bad = best(links, 0b1111, 2), worst(links, 0b1111, 2)
    assert good is not None
    assert bad is not None
    assert (good.mask, good.bottleneck_gbps) == (0b0101, 240.0)
    assert (bad.mask, bad.bottleneck_gbps) == (0b0011, 10.0)


def test_the_gpu_off_the_fabric_is_in_the_worst_set_only() -> None:
    """With one GPU off NVLink the best four avoid it, the worst four take it."""
    links = b200_with_gpu_off_fabric(off=2).links
    good, bad = best(links, 0xFF, 4), worst(links, 0xFF, 4)
    assert good is not None
    assert bad is not None
    assert not good.mask & 0b100
    assert bad.mask & 0b100
    assert bad.bottleneck_gbps == 10.0


def test_must_is_kept() -> None:
    """Positions that must be in are in, for better or worse."""
    found = best(pcie_l40s4().links, 0b1111, 2, must=0b0100)
    assert found is not None
    assert found.mask == 0b1100


Word = Callable[[int, int], str]
SCATTERED: Final[tuple[str, ...]] = ("NV1", "NV2", "PIX", "SYS")
LARGE: Final[dict[str, tuple[int, Word, int]]] = {
    "switch of 72": (72, lambda _i, _j: "NV18", 72),
    "switch of 72, one off": (72, lambda i, j: "SYS" if 3 in (i, j) else "NV18", 72),
    "nine islands of 8": (72, lambda i, j: "NV18" if i // 8 == j // 8 else "SYS", 8),
    "no order in 72": (72, lambda i, j: SCATTERED[(i * i + 3 * j + i * j) % 4], 2),
    "no order in 16": (16, lambda i, j: SCATTERED[(i * i + 3 * j + i * j) % 4], 16),
}


@pytest.mark.parametrize(("count", "word", "exact_to"), LARGE.values(), ids=LARGE.keys())
@pytest.mark.parametrize("k", [2, 4, 8, 12])
def test_large_machines_are_bounded_and_honest(
    count: int, word: Word, exact_to: int, k: int
) -> None:
    """However many GPUs, an answer comes within seconds, and says whether it is exact."""
    links = links_of(
        range(count), {(i, j): word(i, j) for i in range(count) for j in range(i + 1, count)}
    )
    start = time.process_time()
    good, bad = best(links, full_mask(links), k), worst(links, full_mask(links), k)
    assert time.process_time() - start < 10
    assert good is not None
    assert bad is not None
    assert good.mask.bit_count() == bad.mask.bit_count() == k
    assert good.exact is bad.exact is (k <= exact_to)
    assert _value(good) >= _value(bad)


@settings(max_examples=30)
@given(st.integers(2, 6).flatmap(own.links))
def test_alike_gpus_cost_one_trial(links: Links) -> None:
    """Equal matrices are one object, so that what is known of a shape serves the whole fleet."""
    pairs = {(i, j): links.words[i][j] for i in range(len(links)) for j in range(i + 1, len(links))}
    again = links_of(range(len(links)), pairs, "H100")
    assert again is links
    assert best(again, full_mask(links), 2) is best(links, full_mask(links), 2)


def test_additive_scores_pick_slower_rings_on_the_cube_mesh() -> None:
    """Why the ring comes first: in 55 of the 769 choices of two or more free GPUs on a cube mesh a
    set with the most link points, as go-gpuallocator gives them, has a slower ring than the best.
    """
    links = dgx1v().links

    def points(mask: int) -> int:
        return sum(
            100 * nvlinks(links.words[i][j])
            + (50 if i // 2 == j // 2 else 30 if i // 4 == j // 4 else 10)
            for i, j in combinations(positions(mask), 2)
        )

    choices = slower = 0
    for mask in range(1, 256):
        for k in range(2, mask.bit_count() + 1):
            scored = [
                (points(each), each) for each in map(mask_of, combinations(positions(mask), k))
            ]
            most = max(scored)[0]
            found = best(links, mask, k)
            assert found is not None
            choices += 1
            slower += any(
                ring(links, each).gbps < found.bottleneck_gbps
                for total, each in scored
                if total == most
            )
    assert (choices, slower) == (769, 55)
