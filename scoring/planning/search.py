"""The cheapest places for some members of a gang within one tree of domains.

From the root down: where one domain holds them all, the best of those that do, as fewer domains of a
wider level beat everything below it; where none does, they are split over the domains. That is exact
as long as no more than `BUDGET` pairs of states are tried. Beyond it members of one shape fill the
largest domains first (`splitting`), and those of several shapes are placed shape by shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from scoring.planning import splitting, spread, tables
from scoring.planning.splitting import Budget, OverBudgetError, Part
from scoring.planning.tables import Table
from scoring.planning.tree import Branch
from scoring.planning.values import Shape, Spans
from scoring.planning.view import View, Views

BUDGET: Final = 60_000
"""Pairs of states that one search tries: about ten milliseconds."""
MOST_LOOKED_INTO: Final = 12
"""Domains that hold all members and must open equally many domains within, up to which each is looked
into; of more, those with the least room."""
MOST_AT_ONCE: Final = 72
"""Members of one shape that a domain takes, up to which its table is made whole, for all gangs."""

Assignment: TypeAlias = Mapping[int, tuple[int, ...]]
"""Members of each shape by host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How members are shared out, and what it costs: over domains, or to hosts at once."""

    cost: int
    shares: Mapping[Branch, tuple[int, ...]] = field(default_factory=dict)
    places: Assignment | None = None


class Search:
    """One search for members of `shapes`. `opened`: serials of the branches that hold members of the
    gang already. `banned`: hosts that it must not use.
    """

    def __init__(
        self,
        views: Views,
        spans: Spans,
        shapes: Sequence[Shape],
        *,
        opened: Collection[int] = (),
        banned: Collection[int] = (),
    ) -> None:
        self._views = views
        self._banned = frozenset(banned)
        self._opened = frozenset(opened)
        self._view: View = views.view(spans, shapes, self._banned)
        self._budget = Budget(BUDGET)

    def capacity(self, branch: Branch) -> tuple[int, ...]:
        """How many members of each shape a branch takes where it takes no others."""
        return self._view.capacity(branch)

    def best_of(self, roots: Sequence[Branch], counts: tuple[int, ...]) -> Assignment | None:
        """The cheapest places for so many members of each shape in one of these trees; None: none were
        found.
        """
        if not any(counts):
            return {}
        picked = self._picked(roots, counts)
        return None if picked is None else self._places(picked.shares)

    def best(self, branch: Branch, counts: tuple[int, ...]) -> Assignment | None:
        """The cheapest places in one branch; None: none were found."""
        if not any(counts):
            return {}
        way = self._way(branch, counts)
        if way is None:
            return None
        return way.places if way.places is not None else self._places(way.shares)

    def _places(self, shares: Mapping[Branch, tuple[int, ...]]) -> Assignment | None:
        """The places in several branches."""
        found: dict[int, tuple[int, ...]] = {}
        for child in sorted(shares, key=lambda each: each.serial):
            places = self.best(child, shares[child])
            if places is None:
                return None
            found |= places
        return found

    def _way(self, branch: Branch, counts: tuple[int, ...]) -> _Way | None:
        """How members are best shared out within a branch, with the cost but for opening it."""
        if not self._view.roomy([branch], counts):
            return None
        if branch.host >= 0:
            return self._on_host(branch, counts)
        for children in self._choices(branch):
            way = None
            if len(children) == 1 or not any(each.serial in self._opened for each in children):
                way = self._picked(children, counts)
            way = way or self._shared(branch, children, counts)
            if way is not None:
                return replace(way, cost=way.cost + self._view.clique_cost(branch, counts))
        return None

    def _on_host(self, branch: Branch, counts: tuple[int, ...]) -> _Way | None:
        table = self._view.host_table(branch.host)
        if table is None:
            return self._shape_by_shape(branch, counts)
        cost = table.costs.get(tables.state_of(counts))
        return None if cost is None else _Way(cost=cost, places={branch.host: counts})

    def _choices(self, branch: Branch) -> Iterator[Sequence[Branch]]:
        """Which children to use: those with members of the gang alone if they will do, else all."""
        inside = [child for child in branch.children if child.serial in self._opened]
        if inside:
            yield inside
        if len(inside) < len(branch.children):
            yield branch.children

    # --- all in one domain -------------------------------------------------------------------------

    def _picked(self, children: Sequence[Branch], counts: tuple[int, ...]) -> _Way | None:
        """In the child that holds all of them at the least cost, the first by name among equals.
        Children that must open too many domains are not looked into.
        """
        kin: dict[int, Branch] = {}
        for child in self._view.roomy(children, counts):
            kin.setdefault(self._kin(child), child)
        if len(kin) < 2:
            fit = [(0, child) for child in kin.values()]
        else:
            fit = [(self._at_least(child, counts), child) for child in kin.values()]
        if len(fit) > MOST_LOOKED_INTO:
            fit.sort(key=lambda each: (each[0], self.capacity(each[1])))
        else:
            fit.sort(key=lambda each: each[0])
        best: tuple[int, Branch] | None = None
        for place, (least, child) in enumerate(fit):
            if best is not None and (least >= best[0] or place >= MOST_LOOKED_INTO):
                break
            cost = self._cost(child, counts)
            if cost is not None and (best is None or cost + self._fee(child) < best[0]):
                best = cost + self._fee(child), child
        return None if best is None else _Way(cost=best[0], shares={best[1]: counts})

    def _cost(self, branch: Branch, counts: tuple[int, ...]) -> int | None:
        """The cost of the best places in a branch, as far as is known from branches that are alike."""
        if len(counts) == 1 and all(child.host >= 0 for child in branch.children):
            return self._table(branch, counts).costs.get(counts[0])
        key = (self._kin(branch), counts)
        costs = self._view.known.costs
        if key[0] < 0 or key not in costs:
            way = self._way(branch, counts)
            cost = None if way is None else way.cost
            if key[0] < 0:
                return cost
            costs[key] = cost
        return costs[key]

    def _kin(self, branch: Branch) -> int:
        """Equal for branches that are alike; negative where members of the gang are in it already."""
        if branch.serial in self._opened:
            return -1 - branch.serial
        return self._view.kin(branch)

    def _fee(self, branch: Branch) -> int:
        return 0 if branch.serial in self._opened else branch.opening

    def _at_least(self, branch: Branch, counts: Sequence[int]) -> int:
        """What these members cost in a branch at least: by the domains within that must be opened."""
        fee = self._fee(branch)
        if branch.host >= 0:
            return fee
        closed = [child for child in branch.children if child.serial not in self._opened]
        needed = 0
        for capacity, count in zip(self._view.capacities, counts, strict=True):
            rooms = sorted([capacity[child.serial] for child in closed], reverse=True)
            rest, opens = count - capacity[branch.serial] + sum(rooms), 0
            while rest > 0:
                rest, opens = rest - rooms[opens], opens + 1
            needed = max(needed, opens)
        return fee + needed * min([child.opening for child in closed], default=0)

    # --- over several domains ----------------------------------------------------------------------

    def _shared(
        self, branch: Branch, children: Sequence[Branch], counts: tuple[int, ...]
    ) -> _Way | None:
        """Split over these children of a branch."""
        if len(children) < 2 or not self._hold_together(children, counts):
            return None
        state, limit = tables.state_of(counts), tables.bound_of(counts)
        most = counts[0] if len(counts) == 1 else 0
        try:
            parts = self._parts(children, counts)
        except OverBudgetError:
            return self._shape_by_shape(branch, counts)
        try:
            split = splitting.exact(parts, state, limit, self._budget, most)
        except OverBudgetError:
            if not most:
                return self._shape_by_shape(branch, counts)
            split = splitting.filled(parts, most)
        if split is None:
            return None
        cost, states = split
        shares = {child: tables.counts_of(each, len(counts)) for child, each in states.items()}
        return _Way(cost=cost, shares=shares)

    def _hold_together(self, children: Sequence[Branch], counts: Sequence[int]) -> bool:
        return all(
            sum([capacity[child.serial] for child in children]) >= count
            for capacity, count in zip(self._view.capacities, counts, strict=True)
        )

    def _parts(self, children: Sequence[Branch], counts: tuple[int, ...]) -> list[Part]:
        parts = [Part(each, self._fee(each), self._table(each, counts)) for each in children]
        return [part for part in parts if part.table.costs]

    def _table(self, branch: Branch, counts: tuple[int, ...]) -> Table:
        """The least cost of every state of a branch up to `counts`."""
        if branch.host >= 0:
            return self._host_table(branch)
        limits = self.capacity(branch)
        if len(limits) > 1 or limits[0] > MOST_AT_ONCE:
            limits = tuple([min(have, want) for have, want in zip(limits, counts, strict=True)])
        if not any(limits):
            return Table({})
        key = (self._kin(branch), limits)
        found = self._view.known.tables.get(key) if key[0] >= 0 else None
        if found is None:
            found = self._made_table(branch, limits)
            if key[0] >= 0:
                self._view.known.tables[key] = found
        return found

    def _made_table(self, branch: Branch, limits: tuple[int, ...]) -> Table:
        most = limits[0] if len(limits) == 1 else 0
        parts = self._parts(branch.children, limits)
        try:
            costs = splitting.together(parts, tables.bound_of(limits), self._budget, most)
        except OverBudgetError:
            if not most:
                raise
            costs = {0: 0, **splitting.filled_table(parts, most).costs}
        whole = self._view.ground.whole_clique(branch)
        for state in costs if whole else ():
            gpus = self._view.gpus(tables.counts_of(state, len(limits)))
            costs[state] += spread.of_clique(whole, gpus)
        del costs[0]
        if not most:
            return Table(costs)
        return tables.plain([costs[count] for count in range(1, most + 1)])

    def _host_table(self, branch: Branch) -> Table:
        found = self._view.host_table(branch.host)
        if found is None:
            raise OverBudgetError
        return found

    # --- too many for that -------------------------------------------------------------------------

    def _shape_by_shape(self, branch: Branch, counts: tuple[int, ...]) -> _Way | None:
        """Members of the largest shape first, each shape near those before it: not exact, and the cost
        is that of the domains alone.
        """
        ground, spans, shapes = self._view.ground, self._view.spans, self._view.shapes
        opened = set(self._opened)
        places: dict[int, list[int]] = {}
        order = sorted(range(len(counts)), key=lambda at: (-shapes[at].need.count, at))
        try:
            for at in order:
                search = Search(
                    self._views, spans, [shapes[at]], opened=opened, banned=self._banned
                )
                found = search.best(branch, (counts[at],))
                if found is None:
                    return None
                for position, (count,) in found.items():
                    places.setdefault(position, [0] * len(counts))[at] = count
                    ground.take(position, shapes[at], count)
                opened |= ground.above(spans, found)
        finally:
            for position, counted in places.items():
                for shape, count in zip(shapes, counted, strict=True):
                    ground.take(position, shape, -count)
        branches = ground.forest(spans).branches
        outside = {serial for serial in opened if serial >= branch.serial}
        cost = sum(branches[serial].opening for serial in opened - self._opened - outside)
        return _Way(
            cost=cost, places={position: tuple(counted) for position, counted in places.items()}
        )
