"""The best-effort policy over every list of the free GPUs: which sets may come, and nil devices."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import comb

import policy_walk
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.allocator.answer import NOTHING, UNKNOWN, Possible
from scoring.allocator.best_effort import MAX_PARTITIONS, partition_count, possible
from scoring.allocator.pairs import PairScores, pair_scores
from scoring.rings import mask_of, positions

Points = tuple[tuple[int, ...], ...]


def _points(size: int, between: Callable[[int, int], int]) -> Points:
    return tuple(
        tuple(0 if i == j else between(min(i, j), max(i, j)) for j in range(size))
        for i in range(size)
    )


def _machine(size: int, between: Callable[[int, int], int]) -> PairScores:
    return pair_scores(_points(size, between))


def _sets(found: Possible) -> set[frozenset[int]]:
    assert found.sets is not None
    return {frozenset(positions(each)) for each in found.sets}


UNIFORM = _machine(16, lambda _i, _j: 10)


@st.composite
def machines(draw: st.DrawFn, largest: int, values: tuple[int, ...]) -> Points:
    """Points from few values, so that ties abound; or GPUs in groups with little between them."""
    size = draw(st.sampled_from(range(largest, 0, -1)))
    group = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    grouped = draw(st.booleans())
    drawn = {
        (i, j): draw(st.sampled_from(values if not grouped or group[i] == group[j] else (0, 10)))
        for j in range(size)
        for i in range(j)
    }
    return _points(size, lambda i, j: drawn[i, j])


@given(points=machines(6, (0, 10, 20, 30, 110)), data=st.data())
@settings(max_examples=150, deadline=None)
def test_law_the_answer_equals_the_policy_run_over_every_list(
    points: Points, data: st.DataObject
) -> None:
    """The same sets, and the same word on nil devices, as the policy walked list by list."""
    absent = data.draw(st.integers(0, len(points)))
    free = [gpu for gpu in range(len(points)) if gpu != absent] or [0]
    k = data.draw(st.integers(1, len(free)))
    sets, fails = policy_walk.every_outcome(points, free, k)
    found = possible(pair_scores(points), mask_of(free), k)
    assert (_sets(found), found.may_fail, found.exact) == (sets, fails, True)


@given(points=machines(5, (0, 10, 30)), data=st.data())
@settings(max_examples=40, deadline=None)
def test_law_required_gpus_too(points: Points, data: st.DataObject) -> None:
    """The same with GPUs that the set must hold, as many as it has or more included."""
    everything = range(len(points))
    must = frozenset(data.draw(st.sets(st.sampled_from(everything), max_size=3)))
    k = data.draw(st.integers(1, len(points)))
    sets, fails = policy_walk.every_outcome(points, everything, k, must)
    found = possible(pair_scores(points), mask_of(everything), k, must=mask_of(must))
    assert (_sets(found), found.may_fail) == (sets, fails)


@given(points=machines(8, (10, 20, 110)), order=st.permutations(range(8)), k=st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_law_names_do_not_matter(points: Points, order: list[int], k: int) -> None:
    """GPUs numbered otherwise give the same sets, numbered otherwise."""
    size = len(points)
    number = [order.index(i) for i in sorted(order)]
    old = sorted(range(size), key=lambda i: number[i])
    renamed = pair_scores(_points(size, lambda i, j: points[old[i]][old[j]]))
    found = possible(pair_scores(points), (1 << size) - 1, k)
    again = possible(renamed, (1 << size) - 1, k)
    assert {frozenset(old[i] for i in each) for each in _sets(again)} == _sets(found)
    assert again.may_fail == found.may_fail


def test_among_equals_any_set_may_come() -> None:
    """Where all pairs tie, every one of the 70 sets of 4 of 8 is a set that may come."""
    found = possible(UNIFORM, 0xFF, 4)
    assert found.sets is not None
    assert len(found.sets) == comb(8, 4)
    assert not found.may_fail


def test_one_gpu_is_any_gpu() -> None:
    """An ask for one looks at no pair, so it may break the best one."""
    pair = _machine(4, lambda i, j: 1210 if (i, j) == (0, 1) else 10)
    assert _sets(possible(pair, 0b1011, 1)) == {frozenset({0}), frozenset({1}), frozenset({3})}


def test_whole_partitions_are_compared_not_sets() -> None:
    """The best pair is left apart when the partition around it has fewer points in all."""
    chain = {(0, 1): 200, (1, 2): 250, (2, 3): 200}
    machine = _machine(4, lambda i, j: chain.get((i, j), 10))
    assert _sets(possible(machine, 0b1111, 2)) == {frozenset({0, 1}), frozenset({2, 3})}


def test_a_lone_pair_outside_the_full_set_makes_the_plugin_fail() -> None:
    """5 free, 3 asked, one NVLink pair: it has the most points even where a nil device fills it up."""
    machine = _machine(5, lambda i, j: 1210 if (i, j) == (2, 3) else 10)
    found = possible(machine, 0b11111, 3)
    assert found.may_fail
    assert _sets(found) == {frozenset({2, 3, other}) for other in (0, 1, 4)}


def _two_groups(across: int) -> PairScores:
    """0-1 with 30 points, 2-3-4 with 10 each, so 30 in all, and so many `across`."""
    inside = {(0, 1): 30, (2, 3): 10, (2, 4): 10, (3, 4): 10}
    return _machine(5, lambda i, j: inside.get((i, j), across))


def test_a_tie_with_the_filled_up_set_may_fail() -> None:
    """Listed first, the pair comes before the full set with as many points."""
    found = possible(_two_groups(0), 0b11111, 3)
    assert found.may_fail
    assert _sets(found) == {frozenset({2, 3, 4})}


def test_a_tie_is_harmless_where_a_full_set_around_it_does_as_well() -> None:
    """With 10 across, the pair and any third GPU come before the pair and a nil device."""
    found = possible(_two_groups(10), 0b11111, 3)
    assert not found.may_fail
    assert frozenset({2, 3, 4}) in _sets(found)
    assert frozenset({0, 1, 2}) in _sets(found)


def test_asks_that_have_no_set() -> None:
    """Nothing asked, more than there are, or required GPUs that are not free: no set, no failure."""
    assert possible(UNIFORM, 0b111, 0) == NOTHING
    assert possible(UNIFORM, 0b111, 4) == NOTHING
    assert possible(UNIFORM, 0b111, 2, must=0b1000) == NOTHING
    assert possible(UNIFORM, 0b111, 1, must=0b11) == NOTHING
    assert possible(UNIFORM, 0, 1) == NOTHING


def test_the_bound_lets_all_asks_of_12_gpus_pass() -> None:
    """Up to 12 free GPUs every ask is within the bound; of 16 only those with few partitions."""
    assert all(
        partition_count(n, k) <= MAX_PARTITIONS for n in range(1, 13) for k in range(1, n + 1)
    )
    assert possible(UNIFORM, 0xFFFF, 2) == UNKNOWN
    assert possible(UNIFORM, 0xFFFF, 4).sets is None
    whole = possible(UNIFORM, 0xFFFF, 8)
    assert whole.sets is not None
    assert len(whole.sets) == comb(16, 8)


def test_nothing_within_the_bound_needs_seven_sets() -> None:
    """From 7 sets of two and more on the policy overwrites its own slices: never answered for."""
    for n in range(1, 73):
        for k in range(2, n + 1):
            assert -(-n // k) < 7 or partition_count(n, k) > MAX_PARTITIONS


def test_partitions_are_counted_as_they_are() -> None:
    """The formula counts what the policy walks."""
    for n in range(2, 8):
        for k in range(2, n + 1):
            walked = list(policy_walk.partitions(range(n), k))
            assert partition_count(n, k) == len(walked)


def test_a_cold_answer_for_8_gpus_takes_less_than_20_ms() -> None:
    """For every size, and on the machine with the most ties; the best of three tries counts."""
    for k in range(1, 9):
        tries_s = []
        for _ in range(3):
            possible.cache_clear()
            begun_s = time.perf_counter()
            possible(UNIFORM, 0xFF, k)
            tries_s.append(time.perf_counter() - begun_s)
        assert min(tries_s) < 0.020
