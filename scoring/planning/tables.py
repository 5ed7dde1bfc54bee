"""The cheapest way to put so many members into a domain, for every number of them.

A state says how many members of each shape are placed: an integer with 20 bits a shape, so that states
add up as integers. A table has the least cost of each state, but for opening its domain. Tables
of neighbours are put together by trying every pair of states, which is exact (costs add up, see `spread`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

DIGIT: Final = 20
MOST: Final = (1 << DIGIT - 1) - 1
"""Members of one shape: half a million."""


def state_of(counts: Sequence[int]) -> int:
    """The state with so many members of each shape."""
    return sum(count << DIGIT * place for place, count in enumerate(counts))


def counts_of(state: int, shapes: int) -> tuple[int, ...]:
    """The members of each shape in a state."""
    return tuple(state >> DIGIT * place & (1 << DIGIT) - 1 for place in range(shapes))


@dataclass(frozen=True, slots=True)
class Bound:
    """A state that no part of any digit may exceed."""

    guard: int
    high: int
    plain: int
    """The same where states are plain numbers, else 0."""

    def exceeded(self, state: int) -> bool:
        """Whether `state` has more of some shape."""
        return bool(state + self.guard & self.high)


def bound_of(counts: Sequence[int]) -> Bound:
    """At most so many of each shape."""
    return Bound(
        guard=state_of([MOST - count for count in counts]),
        high=state_of([MOST + 1] * len(counts)),
        plain=counts[0] if len(counts) == 1 else 0,
    )


@dataclass(frozen=True, slots=True)
class Table:
    """The least cost of each state of a domain; the state 0 is absent, it costs nothing."""

    costs: Mapping[int, int]
    line: tuple[int, int] | None = None
    """(base, slope) where the state is a plain number and its cost is base + slope * number."""
    top: int = 0
    """The largest state, where it is a plain number."""


def plain(costs: Sequence[int]) -> Table:
    """The table of one shape, from the costs of 1, 2, ... members."""
    found = dict(enumerate(costs, start=1))
    if not costs:
        return Table(found)
    slope = costs[1] - costs[0] if len(costs) > 1 else 0
    base = costs[0] - slope
    straight = all(cost == base + slope * count for count, cost in found.items())
    return Table(found, (base, slope) if straight else None, len(costs))


def merged(left: Mapping[int, int], right: Table, opening: int, limit: Bound) -> dict[int, int]:
    """The least cost of each state within `limit` that a state of `left` (0 included) and one of a
    domain with table `right` make.
    """
    if right.top and limit.plain:
        return _merged_plainly(left, right, opening, limit.plain)
    found = dict(left)
    guard, high = limit.guard, limit.high
    for state, cost in right.costs.items():
        paid = cost + opening
        for before, least in left.items():
            total = before + state
            if total + guard & high:
                continue
            value = least + paid
            known = found.get(total)
            if known is None or value < known:
                found[total] = value
    return found


def _merged_plainly(
    left: Mapping[int, int], right: Table, opening: int, most: int
) -> dict[int, int]:
    """The same for states that are plain numbers: every one up to the largest is there."""
    before = list(left.values())
    length = min(most, len(before) - 1 + right.top) + 1
    found = before[:length] + [_BEYOND] * (length - len(before))
    for state, cost in right.costs.items():
        if state >= length:
            break
        paid = cost + opening
        fresh = [least + paid for least in before[: length - state]]
        end = state + len(fresh)
        found[state:end] = map(min, found[state:end], fresh)
    return dict(enumerate(found))


_BEYOND: Final = 1 << 200
"""More than any cost."""


def staircase(tops: Sequence[int], opening: int, line: tuple[int, int], most: int) -> Table:
    """The table of domains that all cost the same to open and grow by the same line, opened as few as
    can be: the largest first. `tops` are their largest states, in falling order.
    """
    base, slope = line
    costs: list[int] = []
    for opened, top in enumerate(tops, start=1):
        fee = opened * (opening + base)
        first = len(costs) + 1
        costs += [fee + slope * count for count in range(first, min(first + top, most + 1))]
        if len(costs) >= most:
            break
    return plain(costs)
