"""What is left of all nodes while gangs take theirs one after the other.

The one place of the planner that changes. What it knows of a shape (room of each host, capacity of
each domain) is made once and corrected for the hosts that change.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from scoring.model import AllocationMode, NodeName
from scoring.picture import Picture
from scoring.planning import tree
from scoring.planning.hosts import Host, hosts
from scoring.planning.obstacles import Bar, Obstacle
from scoring.planning.selection import Selection
from scoring.planning.tree import Branch, Forest
from scoring.planning.turns import in_turn
from scoring.planning.values import Shape, Site, Spans
from scoring.topology import Level

Room: TypeAlias = tuple[int, Bar | None]
"""How many members of a shape a host takes, and what keeps it from taking one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Where members of one shape have room, by host."""

    first: list[int]
    """Before any gang was planned, and nominated pods of gangs aside."""
    room: list[int]
    """Now."""
    bars: list[Bar | None]
    """Why there is none now."""
    number: int
    """Of the shape."""
    barred: Sequence[Obstacle | None]
    """What keeps it out whatever is free."""
    capacity: dict[Spans, list[int]]
    """By branch of each forest: now."""
    first_capacity: dict[Spans, list[int]]
    """Before any gang was planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """What branches would have for a shape if no pod were there, by the number of GPUs alone."""

    members: list[int]
    units: list[int]
    """Of its GPU resource, on hosts that it may go to."""


class Ground:
    """The hosts as they are now, and what follows for shapes and domains."""

    def __init__(self, picture: Picture, site: Site) -> None:
        self.policy = picture.policy
        self.hosts: list[Host] = hosts(picture, site)
        self.paths = [tree.path(host) for host in self.hosts]
        self.position: Mapping[NodeName, int] = {
            host.name: position for position, host in enumerate(self.hosts)
        }
        self.unlisted = len(picture.names - self.position.keys())
        """Nodes that report, and that the cluster does not have."""
        self._largest: dict[str, int] = {}
        self.changed: set[int] = set()
        """Hosts that are perhaps no more as they were."""
        self._first = tuple(self.hosts)
        self._forests: dict[Spans, Forest] = {}
        self._ages: dict[Spans, list[int]] = {}
        self._surveys: dict[Shape, Survey] = {}
        self._numbers: dict[Hashable, int] = {}
        self._fixed = [self.number(_fixed(host)) for host in self.hosts]
        self._looks = [self._look(position) for position in range(len(self.hosts))]
        self._emptied: dict[tuple[Shape, Spans], Emptied] = {}
        self._rooms: dict[tuple[int, int], Room] = {}
        self._cliques: dict[int, tuple[int, int]] = {}
        self._parts: dict[Spans, dict[int, set[Branch]]] = {}
        self._selected: dict[Selection, list[Obstacle | None]] = {}

    # --- domains ---------------------------------------------------------------------------------

    def forest(self, spans: Spans) -> Forest:
        """The trees of the domains of `spans`."""
        found = self._forests.get(spans)
        if found is None:
            found = tree.forest(self.hosts, self.paths, spans)
            self._forests[spans] = found
            self._ages[spans] = [0] * len(found.branches)
            self._parts[spans] = self._parts_of_cliques(found)
        return found

    def ages(self, spans: Spans) -> Sequence[int]:
        """How often something within each branch changed; kept up to date."""
        return self._ages[spans]

    def above(self, spans: Spans, positions: Iterable[int]) -> set[int]:
        """The serials of all branches that these hosts lie in, their own included."""
        leaves, found = self.forest(spans).leaves, set[int]()
        for position in positions:
            branch = leaves.get(position)
            while branch is not None and branch.serial not in found:
                found.add(branch.serial)
                branch = branch.parent
        return found

    def whole_clique(self, branch: Branch) -> int:
        """The GPUs of the clique that a branch is, or is a part of, where it has several nodes and all
        are free and healthy; else 0.
        """
        if branch.domain is None or branch.domain.level is not Level.CLIQUE:
            return 0
        clique = self._clique_of(branch.children[0].host)
        if clique is None:
            return 0
        age = self._ages[()][clique.serial]
        known = self._cliques.get(clique.serial)
        if known is None or known[0] != age:
            members = [self.hosts[child.host] for child in clique.children]
            gpus = sum(host.free_gpus() for host in members)
            known = age, gpus if all(host.whole for host in members) else 0
            self._cliques[clique.serial] = known
        return known[1]

    def _clique_of(self, position: int) -> Branch | None:
        """The clique of several nodes that a host is in, in the tree of the whole cluster."""
        parent = self.forest(()).leaves[position].parent
        is_one = parent is not None and parent.domain and parent.domain.level is Level.CLIQUE
        return parent if is_one else None

    def _parts_of_cliques(self, found: Forest) -> dict[int, set[Branch]]:
        """The branches over which a forest spreads a clique, by its serial: what happens to one host
        concerns all of them.
        """
        parts: dict[int, set[Branch]] = {}
        for position, leaf in found.leaves.items():
            clique = self._clique_of(position)
            if clique is not None and leaf.parent is not None:
                parts.setdefault(clique.serial, set()).add(leaf.parent)
        return parts

    # --- shapes ----------------------------------------------------------------------------------

    def room(self, position: int, shape: Shape) -> Room:
        """How many members of a shape a host takes now, and what keeps it from taking one."""
        return self._room(position, shape, self.number(shape), self._selection(shape.selection))

    def _room(
        self, position: int, shape: Shape, number: int, barred: Sequence[Obstacle | None]
    ) -> Room:
        if barred[position] is not None:
            return 0, barred[position]
        key = (self._looks[position], number)
        found = self._rooms.get(key)
        if found is None:
            host = self.hosts[position]
            most, obstacle = host.fits(shape)
            count, reason = in_turn(host, shape, most, self.policy)
            if obstacle is not None and reason is None:
                reason = in_turn(host, shape, 1, self.policy)[1]  # what is wrong beats what is full
            found = count, reason or obstacle
            self._rooms[key] = found
        return found

    def survey(self, shape: Shape) -> Survey:
        """The room of every host for a shape, kept up to date."""
        found = self._surveys.get(shape)
        if found is None:
            number, barred = self.number(shape), self._selection(shape.selection)
            rooms = [
                self._room(position, shape, number, barred) for position in range(len(self.hosts))
            ]
            found = Survey(
                first=[count for count, _ in rooms],
                room=[count for count, _ in rooms],
                bars=[bar for _, bar in rooms],
                capacity={},
                first_capacity={},
                number=number,
                barred=barred,
            )
            for position in self.changed:
                found.first[position] = self._first_room(position, shape)
            self._surveys[shape] = found
        return found

    def capacity(self, shape: Shape, spans: Spans) -> list[int]:
        """How many members of a shape each branch takes, kept up to date."""
        survey = self.survey(shape)
        if spans not in survey.capacity:
            survey.capacity[spans] = self.capacities(survey.room, spans)
        return survey.capacity[spans]

    def first_capacity(self, shape: Shape, spans: Spans) -> list[int]:
        """The same before any gang was planned."""
        survey = self.survey(shape)
        if spans not in survey.first_capacity:
            survey.first_capacity[spans] = self.capacities(survey.first, spans)
        return survey.first_capacity[spans]

    def emptied(self, shape: Shape, spans: Spans) -> Emptied:
        """What each branch would have for a shape that asks for GPUs if all pods were gone."""
        found = self._emptied.get((shape, spans))
        if found is None:
            need, barred = shape.need, self._selection(shape.selection)
            units = [
                0 if bar is not None else host.cluster.allocatable.get(need.resource, 0)
                for host, bar in zip(self.hosts, barred, strict=True)
            ]
            found = Emptied(
                members=self.capacities([each // need.count for each in units], spans),
                units=self.capacities(units, spans),
            )
            self._emptied[shape, spans] = found
        return found

    def capacities(self, room: Sequence[int], spans: Spans) -> list[int]:
        """The sums of `room` over each branch."""
        found = []
        for branch in self.forest(spans).branches:  # parts come before what they are part of
            if branch.host >= 0:
                found.append(room[branch.host])
            else:
                found.append(sum([found[child.serial] for child in branch.children]))
        return found

    def largest(self, resource: str) -> int:
        """The most units of a GPU resource that any node has for pods."""
        if resource not in self._largest:
            offers = [host.cluster.allocatable.get(resource, 0) for host in self.hosts]
            self._largest[resource] = max(offers, default=0)
        return self._largest[resource]

    # --- changes ---------------------------------------------------------------------------------

    def take(self, position: int, shape: Shape, count: int = 1) -> None:
        """`count` members of a shape take their room on a host; a negative count gives it back."""
        self.put(position, self.hosts[position].after(shape, count))

    def put(self, position: int, host: Host) -> None:
        """The host at `position` is like this now."""
        self.hosts[position] = host
        self._looks[position] = self._look(position)
        self.changed.add(position)
        clique = self._clique_of(position)
        for spans, forest in self._forests.items():
            ends = {forest.leaves[position]} if position in forest.leaves else set[Branch]()
            if clique is not None:
                ends |= self._parts[spans].get(clique.serial, set())
            for end in ends:
                branch: Branch | None = end
                while branch is not None:
                    self._ages[spans][branch.serial] += 1
                    branch = branch.parent
        for shape, survey in self._surveys.items():
            room, survey.bars[position] = self._room(position, shape, survey.number, survey.barred)
            more = room - survey.room[position]
            if not more:
                continue
            survey.room[position] += more
            for spans, capacity in survey.capacity.items():
                branch = self._forests[spans].leaves.get(position)
                while branch is not None:
                    capacity[branch.serial] += more
                    branch = branch.parent

    def _first_room(self, position: int, shape: Shape) -> int:
        now, look = self.hosts[position], self._looks[position]
        self.hosts[position] = self._first[position]
        self._looks[position] = self._look(position)
        count, _ = self.room(position, shape)
        self.hosts[position], self._looks[position] = now, look
        return count

    # --- keys ------------------------------------------------------------------------------------

    def _selection(self, selection: Selection) -> list[Obstacle | None]:
        found = self._selected.get(selection)
        if found is None:
            found = [selection.obstacle(host.cluster) for host in self.hosts]
            self._selected[selection] = found
        return found

    def look(self, position: int) -> int:
        """A number for all of a host that room and cost depend on, but for its labels and place."""
        return self._looks[position]

    def number(self, value: Hashable) -> int:
        """Equal values have one number, above 0, which is quick to look up by."""
        return self._numbers.setdefault(value, len(self._numbers) + 1)

    def _look(self, position: int) -> int:
        host = self.hosts[position]
        units = tuple(host.units.items())
        return self.number(
            (self._fixed[position], host.unnamed, host.left, host.pods, host.ports, units)
        )


def _fixed(host: Host) -> Hashable:
    """What verdicts and costs depend on, and no plan changes: equal for nodes that are alike."""
    candidate, offered = host.candidate, tuple(host.cluster.allocatable.items())
    if candidate is None:
        return offered
    node = candidate.node
    return (
        offered,
        tuple([gpu.numa for gpu in node.gpus]) if node.mode is AllocationMode.NVIDIA else None,
        node.fabric and node.fabric.state,
        node.mode,
        node.links,
        candidate.together,
        candidate.alone,
        candidate.free,
        candidate.held,
        candidate.nameless,
        candidate.mig,
        candidate.blocked,
        candidate.denied,
        candidate.allowed,
        candidate.freshness,
        candidate.breaker_open,
        candidate.readable,
        candidate.word,
        candidate.of_node,
    )
