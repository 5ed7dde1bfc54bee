"""How members of some shapes see the domains of one forest: which are alike, and what they cost.

All of it is made once, and again only for domains in which something changed. Tables and costs are kept
by what a domain is made of, not by its name, so that a thousand idle racks are looked into once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from scoring.planning import spread, tables
from scoring.planning.ground import Ground
from scoring.planning.tables import Table
from scoring.planning.tree import Branch
from scoring.planning.turns import may_mix
from scoring.planning.values import Shape, Spans

MOST_CONFIGURATIONS: Final = 4_096
"""Ways to mix members of several shapes on one host."""


class Knowledge:
    """What was found out about members of some shapes, by what it depends on."""

    def __init__(self) -> None:
        self.kin: dict[tuple[int, int, tuple[int, ...]], int] = {}
        """Of hosts, by what opening them costs, look and rooms."""
        self.of_hosts: dict[tuple[int, tuple[int, ...]], Table | None] = {}
        """By look and rooms; None: too many ways to mix shapes."""
        self.tables: dict[tuple[int, tuple[int, ...]], Table] = {}
        """By kin and the most members of each shape."""
        self.costs: dict[tuple[int, tuple[int, ...]], int | None] = {}
        """By kin and the members of each shape; None: they have no place there."""


class View:
    """What members of `shapes` see. Hosts in `banned` have no room for them."""

    def __init__(
        self,
        ground: Ground,
        spans: Spans,
        shapes: Sequence[Shape],
        known: Knowledge,
        banned: frozenset[int] = frozenset(),
    ) -> None:
        self.ground = ground
        self.spans = spans
        self.shapes = tuple(shapes)
        self.known = known
        self.forest = ground.forest(spans)
        self.rooms: list[Sequence[int]] = [ground.survey(shape).room for shape in shapes]
        if banned:
            self.rooms = [
                [0 if at in banned else count for at, count in enumerate(room)]
                for room in self.rooms
            ]
            self.capacities = [ground.capacities(room, spans) for room in self.rooms]
        else:
            self.capacities = [ground.capacity(shape, spans) for shape in shapes]
        self._ages = ground.ages(spans)
        self._kin: list[tuple[int, int] | None] = [None] * len(self.forest.branches)

    # --- room --------------------------------------------------------------------------------------

    def capacity(self, branch: Branch) -> tuple[int, ...]:
        """How many members of each shape a branch takes where it takes no others."""
        return tuple([capacity[branch.serial] for capacity in self.capacities])

    def roomy(self, branches: Sequence[Branch], counts: tuple[int, ...]) -> list[Branch]:
        """Those that take so many members of each shape alone."""
        found = list(branches)
        for capacity, count in zip(self.capacities, counts, strict=True):
            found = [branch for branch in found if capacity[branch.serial] >= count]
        return found

    def kin(self, branch: Branch) -> int:
        """A number that branches share which are alike but for names; 0: there is no room."""
        if branch.host >= 0:
            return self._host_kin(branch)
        age = self._ages[branch.serial]
        known = self._kin[branch.serial]
        if known is None or known[0] != age:
            known = self._kin[branch.serial] = age, self._likeness(branch)
        return known[1]

    def _likeness(self, branch: Branch) -> int:
        """Domains are alike that cost the same to open and have alike parts, in any order."""
        capacity = self.capacities[0]
        roomy = branch.children
        if len(self.capacities) == 1:
            roomy = tuple([child for child in roomy if capacity[child.serial]])
        within = sorted(filter(None, map(self.kin, roomy)))
        if not within:
            return 0
        return self.ground.number((branch.opening, self.ground.whole_clique(branch), tuple(within)))

    def _host_kin(self, branch: Branch) -> int:
        """Hosts are alike that cost the same, whatever else there is to them."""
        rooms = tuple([room[branch.host] for room in self.rooms])
        key = (branch.opening, self.ground.look(branch.host), rooms)
        found = self.known.kin.get(key)
        if found is None:
            table = self.host_table(branch.host)
            what = key if table is None else tuple(table.costs.items())
            found = self.ground.number((branch.opening, what)) if any(rooms) else 0
            self.known.kin[key] = found
        return found

    # --- costs -------------------------------------------------------------------------------------

    def gpus(self, counts: Sequence[int]) -> int:
        """Whole GPUs that so many members take."""
        return sum(count * shape.gpus for count, shape in zip(counts, self.shapes, strict=True))

    def clique_cost(self, branch: Branch, counts: Sequence[int]) -> int:
        """What it costs to put these members into a branch because it is a clique that was whole."""
        whole = self.ground.whole_clique(branch)
        return spread.of_clique(whole, self.gpus(counts)) if whole else 0

    def host_table(self, position: int) -> Table | None:
        """The costs of a host but for opening it; None: there are too many ways to mix shapes."""
        rooms = tuple([room[position] for room in self.rooms])
        key = (self.ground.look(position), rooms)
        if key not in self.known.of_hosts:
            self.known.of_hosts[key] = self._made(position, rooms)
        return self.known.of_hosts[key]

    def _made(self, position: int, rooms: tuple[int, ...]) -> Table | None:
        host = self.ground.hosts[position]
        if len(rooms) == 1:
            taken = range(1, rooms[0] + 1)
            return tables.plain([spread.on_host(host, self.gpus((count,))) for count in taken])
        if math.prod(room + 1 for room in rooms) > MOST_CONFIGURATIONS:
            return None
        return Table(
            {
                tables.state_of(counts): spread.on_host(host, self.gpus(counts))
                for counts in self._mixes(position, rooms)
            }
        )

    def _mixes(self, position: int, rooms: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The members of several shapes that fit on a host side by side."""
        for counts in product(*(range(room + 1) for room in rooms)):
            host = self.ground.hosts[position]
            present = [
                (shape, count) for shape, count in zip(self.shapes, counts, strict=True) if count
            ]
            if not may_mix(host, [shape for shape, _ in present], self.ground.policy):
                continue
            for shape, count in present:
                if host.fits(shape)[0] < count:
                    break
                host = host.after(shape, count)
            else:
                if present:
                    yield counts


class Views:
    """The views of one ground, each made once."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._views: dict[tuple[Spans, tuple[Shape, ...]], View] = {}
        self._known: dict[tuple[Shape, ...], Knowledge] = {}

    def view(
        self, spans: Spans, shapes: Sequence[Shape], banned: frozenset[int] = frozenset()
    ) -> View:
        """How members of `shapes` see the forest of `spans`; with banned hosts for this once."""
        key = tuple(shapes)
        known = self._known.setdefault(key, Knowledge())
        if banned:
            return View(self.ground, spans, key, known, banned)
        if (spans, key) not in self._views:
            self._views[spans, key] = View(self.ground, spans, key, known)
        return self._views[spans, key]
