"""Splitting members over domains: exact within the budget, feasible and never dearer than filling beyond."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sites import cluster, gang, nodes_of, racked, shape

from scoring.planning import search, splitting, tables
from scoring.planning.splitting import Budget, OverBudgetError, Part
from scoring.planning.tree import Branch
from scoring.planning.values import Amounts

COSTS = st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tables.plain)
LINES = st.builds(
    lambda top, base, slope: tables.plain([base + slope * n for n in range(1, top + 1)]),
    st.integers(1, 4),
    st.integers(0, 9),
    st.integers(-1, 3),
)
PLENTY = 10**6


@st.composite
def parts(draw: st.DrawFn) -> list[Part]:
    """Up to five domains for members of one shape; many cost alike."""
    found = draw(
        st.lists(st.tuples(st.sampled_from([0, 20, 20]), st.one_of(COSTS, LINES)), max_size=5)
    )
    return [
        Part(Branch(serial=serial, domain=None, opening=fee), fee, table)
        for serial, (fee, table) in enumerate(found)
    ]


def _least(found: list[Part], count: int) -> int | None:
    """The least cost of `count` members, by trying everything."""
    ways = product(*(range(part.table.top + 1) for part in found))
    return min((_cost(found, way) for way in ways if sum(way) == count), default=None)


def _cost(found: list[Part], way: tuple[int, ...]) -> int:
    return sum(
        part.fee + part.table.costs[placed]
        for part, placed in zip(found, way, strict=True)
        if placed
    )


def _shared(found: list[Part], shares: dict[Branch, int]) -> tuple[int, ...]:
    return tuple(shares.get(part.branch, 0) for part in found)


@settings(max_examples=200, deadline=None)
@given(parts(), st.integers(1, 12))
def test_a_split_is_the_best_of_all(found: list[Part], count: int) -> None:
    """Its cost is the least there is, and its shares make that cost."""
    split = splitting.exact(found, count, tables.bound_of([count]), Budget(PLENTY), count)
    assert (split and split[0]) == _least(found, count)
    if split is not None:
        way = _shared(found, split[1])
        assert sum(way) == count
        assert _cost(found, way) == split[0]


@settings(max_examples=200, deadline=None)
@given(parts(), st.integers(1, 12))
def test_filling_finds_a_split_wherever_there_is_one(found: list[Part], count: int) -> None:
    """It says what it costs, which is never less than the least."""
    split, least = splitting.filled(found, count), _least(found, count)
    assert (split is None) == (least is None)
    if split is not None and least is not None:
        way = _shared(found, split[1])
        assert sum(way) == count
        assert _cost(found, way) == split[0] >= least


@settings(max_examples=200, deadline=None)
@given(parts(), st.integers(1, 12))
def test_a_filled_table_never_promises_what_cannot_be(found: list[Part], most: int) -> None:
    """Each of its costs is that of some split."""
    table = splitting.filled_table(found, most)
    assert table.top == min(most, sum(part.table.top for part in found))
    for count, cost in table.costs.items():
        least = _least(found, count)
        assert least is not None
        assert cost >= least


def test_states_of_several_shapes_stay_within_their_bounds() -> None:
    """Two domains that each take two of one shape or one of another make every mix of them once."""
    either = tables.Table({tables.state_of([2, 0]): 1, tables.state_of([0, 1]): 5})
    found = [Part(Branch(serial=at, domain=None, opening=0), 0, either) for at in range(2)]
    limit = tables.bound_of([2, 1])
    costs = splitting.together(found, limit, Budget(PLENTY), 0)
    assert {tables.counts_of(state, 2): cost for state, cost in costs.items()} == {
        (0, 0): 0,
        (2, 0): 1,
        (0, 1): 5,
        (2, 1): 6,
    }


def test_more_than_the_budget_is_not_tried() -> None:
    """Nine pairs of states are one too many for eight."""
    either = tables.Table({1: 1, 2: 5})
    found = [Part(Branch(serial=at, domain=None, opening=0), 0, either) for at in range(2)]
    with pytest.raises(OverBudgetError):
        splitting.together(found, tables.bound_of([4]), Budget(5), 0)


@pytest.mark.parametrize("shapes", [[8] * 5, [8, 8, 8, 8, 4, 2], [8, 8, 8, 1, 1, 1, 1]])
def test_beyond_the_budget_gangs_are_planned_all_the_same(
    monkeypatch: pytest.MonkeyPatch, shapes: list[int]
) -> None:
    """Racks are filled, and members of several shapes are placed shape by shape."""
    monkeypatch.setattr(search, "BUDGET", 0)
    made = cluster(*racked(9, per_rack=3), held={"n0": 8, "n3": 4})
    found = made.plan(gang(*map(shape, shapes)))
    assert len(found.places) == len(shapes)
    assert found.objective.racks == 2


def test_members_that_all_differ_are_planned_one_after_the_other() -> None:
    """Six shapes of one GPU could be mixed on a node in half a million ways."""
    members = [shape(1, amounts=Amounts(cpu_m=100 * number)) for number in range(6)]
    found = cluster(*racked(4, per_rack=2)).plan(gang(*members))
    assert len(found.places) == len(members)
    assert found.objective.nodes == 1


def test_of_many_domains_those_with_the_least_room_are_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three racks hold the gang, and the smallest of them is taken."""
    monkeypatch.setattr(search, "MOST_LOOKED_INTO", 1)
    made = cluster(*racked(12, per_rack=4), held={"n0": 8, "n5": 8, "n6": 8})
    assert nodes_of(made.plan(gang(shape(), shape()))) == ["n4", "n7"]
