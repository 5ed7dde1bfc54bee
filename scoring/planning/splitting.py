"""Members split over several domains: exactly where that is affordable, else by filling and setting right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scoring.planning.tables import Bound, Table, merged, plain, staircase
from scoring.planning.tree import Branch

PASSES = 2
"""How often pairs of domains are gone through."""
MOST_OTHERS = 8
"""Domains without members that a pair is tried with."""


class OverBudgetError(Exception):
    """More pairs of states would have to be tried than is affordable."""


class Budget:
    """Pairs of states that may still be tried."""

    def __init__(self, pairs: int) -> None:
        self._left = pairs

    def spend(self, pairs: int) -> None:
        """Take so many away, or `OverBudgetError`."""
        if pairs > self._left:
            raise OverBudgetError
        self._left -= pairs


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One domain to put members into."""

    branch: Branch
    fee: int
    """What opening it costs: nothing where members are in it already."""
    table: Table


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Domains of which it matters only how many members are in all of them together."""

    parts: tuple[Part, ...]
    """The largest first."""
    fee: int
    table: Table

    def share(self, state: int) -> dict[Branch, int]:
        """Who gets how many of a state: as few domains as can be, and of those that hold the rest the
        smallest.
        """
        if len(self.parts) == 1:
            return {self.parts[0].branch: state}
        found: dict[Branch, int] = {}
        for place, part in enumerate(self.parts):
            if state <= part.table.top:
                last = [each for each in self.parts[place:] if each.table.top >= state]
                smallest = min(each.table.top for each in last)
                chosen = next(each for each in last if each.table.top == smallest)
                return {**found, chosen.branch: state}
            found[part.branch] = part.table.top
            state -= part.table.top
        raise AssertionError("a state of the table is within the domains")  # pragma: no cover


def _pools(parts: Sequence[Part], most: int) -> list[_Pool]:
    """The domains, those together that cost the same to open and grow by the same line."""
    alike: dict[tuple[int, tuple[int, int]], list[Part]] = {}
    found = []
    for part in parts:
        line = part.table.line
        if line is not None and part.fee + line[0] > 0 and most:
            alike.setdefault((part.fee, line), []).append(part)
        else:
            found.append(_Pool((part,), part.fee, part.table))
    for (fee, line), group in alike.items():
        if len(group) == 1:
            found.append(_Pool(tuple(group), fee, group[0].table))
            continue
        group.sort(key=lambda part: -part.table.top)
        table = staircase([part.table.top for part in group], fee, line, most)
        found.append(_Pool(tuple(group), 0, table))
    return found


def together(parts: Sequence[Part], limit: Bound, budget: Budget, most: int) -> dict[int, int]:
    """The least cost of each state within `limit` over all parts; the state 0 included. `most`: the
    largest state where states are plain numbers, else 0.
    """
    return _prefixes(_pools(parts, most), limit, budget)[-1]


def _prefixes(pools: Sequence[_Pool], limit: Bound, budget: Budget) -> list[dict[int, int]]:
    """The table of the first pool, of the first two, ..."""
    tables: list[dict[int, int]] = [{0: 0}]
    for pool in pools:
        if len(tables[-1]) > 1:
            budget.spend(len(tables[-1]) * len(pool.table.costs))
        tables.append(merged(tables[-1], pool.table, pool.fee, limit))
    return tables


def exact(
    parts: Sequence[Part], state: int, limit: Bound, budget: Budget, most: int
) -> tuple[int, dict[Branch, int]] | None:
    """The least cost, and the state of each domain that makes it; None: they cannot hold it."""
    pools = _pools(parts, most)
    tables = _prefixes(pools, limit, budget)
    if state not in tables[-1]:
        return None
    least, found = tables[-1][state], dict[Branch, int]()
    for before, after, pool in zip(tables[-2::-1], tables[:0:-1], reversed(pools), strict=True):
        if before.get(state) == after[state]:
            continue
        part, cost = next(
            (part, cost)
            for part, cost in pool.table.costs.items()
            if before.get(state - part) == after[state] - cost - pool.fee
        )
        del cost
        found |= pool.share(part)
        state -= part
    return least, found


# --- beyond the budget: one shape, states are plain numbers ----------------------------------------


def filled_table(parts: Sequence[Part], most: int) -> Table:
    """A table that filling gives: each cost can be had, perhaps not the least one."""
    costs: list[int] = []
    paid = 0
    for part in _by_size(parts):
        top = min(part.table.top, most - len(costs))
        costs += [paid + part.fee + part.table.costs[count] for count in range(1, top + 1)]
        if len(costs) >= most:
            break
        paid = costs[-1]
    return plain(costs)


def filled(parts: Sequence[Part], count: int) -> tuple[int, dict[Branch, int]] | None:
    """The largest domains filled, the rest where it costs least, then every pair set right; the cost
    first.
    """
    order = _by_size(parts)
    counts: dict[Part, int] = {}
    for place, part in enumerate(order):
        if count <= part.table.top:
            fit = [each for each in order[place:] if each.table.top >= count]
            counts[min(fit, key=lambda each: each.fee + each.table.costs[count])] = count
            break
        counts[part] = part.table.top
        count -= part.table.top
    else:
        return None
    for _ in range(PASSES):
        if not _set_right(counts, order):
            break
    cost = sum(_cost(part, placed) for part, placed in counts.items())
    return cost, {part.branch: placed for part, placed in counts.items() if placed}


def _by_size(parts: Sequence[Part]) -> list[Part]:
    """Opened domains first, then the largest; in the order given among equals."""
    usable = [part for part in parts if part.table.top]
    return sorted(usable, key=lambda part: (part.fee > 0, -part.table.top))


def _set_right(counts: dict[Part, int], order: Sequence[Part]) -> bool:
    """Split the members of each pair of domains anew, in the best way; whether that gained anything."""
    gained = False
    others = _sample([part for part in order if not counts.get(part)])
    for one in [part for part in order if counts.get(part)]:
        for other in (*(part for part in order if counts.get(part)), *others):
            if other is one or not counts.get(one):
                continue
            total = counts[one] + counts.get(other, 0)
            least = max(0, total - other.table.top)
            most = min(one.table.top, total)
            now = _cost(one, counts[one]) + _cost(other, counts.get(other, 0))
            best = min(
                range(least, most + 1),
                key=lambda count: _cost(one, count) + _cost(other, total - count),
            )
            if _cost(one, best) + _cost(other, total - best) < now:
                counts[one], counts[other] = best, total - best
                gained = True
    return gained


def _sample(parts: Sequence[Part]) -> list[Part]:
    """The first of each kind."""
    kinds: dict[tuple[int, Mapping[int, int] | int, int], Part] = {}
    for part in parts:
        kinds.setdefault((part.fee, part.table.costs[1], part.table.top), part)
    return list(kinds.values())[:MOST_OTHERS]


def _cost(part: Part, count: int) -> int:
    return part.fee + part.table.costs[count] if count else 0
