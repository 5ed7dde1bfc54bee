"""The best plan of a small instance by mixed-integer programming, written apart from the planner.

One variable for each way to fill a node, one for each domain that is opened, one for each domain that
the gang may have to stay in. The parts of the objective are minimised one after the other, each
under the least values of those before it. What a node takes is reckoned here anew, for the nodes
that `instances` makes: 4 GPUs behind one switch, modes `unknown` and `planned`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from instances import GPUS, Instance
from scipy.optimize import LinearConstraint, milp

from scoring.candidate import Candidate
from scoring.model import AllocationMode, Health, NodeName
from scoring.planning.outcome import Objective
from scoring.planning.values import Shape
from scoring.rings import positions
from scoring.topology import Level

LEVELS: Final = (Level.ZONE, Level.BLOCK, Level.RACK, Level.CLIQUE, Level.NODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """One way to put members on a node."""

    node: int
    counts: tuple[int, ...]
    suspects: int
    left: int
    gpus: int


class _Program:
    """Rows over named binary variables."""

    def __init__(self) -> None:
        self._columns: dict[Any, int] = {}
        self._rows: list[tuple[Mapping[Any, float], float, float]] = []

    def row(self, terms: Mapping[Any, float], low: float, high: float) -> None:
        for name in terms:
            self._columns.setdefault(name, len(self._columns))
        self._rows.append((terms, low, high))

    def least(self, terms: Mapping[Any, float]) -> int | None:
        """The least value of a sum, which is a row from then on; None: nothing is feasible."""
        for name in terms:
            self._columns.setdefault(name, len(self._columns))
        count = len(self._columns)
        matrix = [self._dense(row, count) for row, _, _ in self._rows]
        found = milp(
            self._dense(terms, count),
            integrality=[1] * count,
            bounds=(0, 1),
            constraints=LinearConstraint(
                matrix, [low for _, low, _ in self._rows], [high for _, _, high in self._rows]
            ),
            options={"mip_rel_gap": 0.0},
        )
        if found.status == 2:
            return None
        if found.status != 0:
            raise RuntimeError(found.message)
        value: int = round(found.fun)
        self.row(terms, value, value)
        return value

    def _dense(self, terms: Mapping[Any, float], count: int) -> list[float]:
        row = [0.0] * count
        for name, factor in terms.items():
            row[self._columns[name]] += factor
        return row


def objective(instance: Instance) -> Objective | None:
    """The least objective of a plan for all members; None: there is no plan."""
    members = [member for member in instance.gang.members if member.bound is None]
    wanted = Counter(member.shape for member in members)
    shapes = sorted(wanted, key=lambda shape: shape.need.count)
    hosts = sorted(instance.picture.candidates)
    paths = [_path(instance.picture.candidates[name]) for name in hosts]
    pinned = {hosts.index(member.bound) for member in instance.gang.members if member.bound}
    fillings = [
        filling
        for position, name in enumerate(hosts)
        for filling in _fillings(instance, position, name, shapes)
    ]
    program = _Program()
    for shape_at, shape in enumerate(shapes):
        taken = {each: float(each.counts[shape_at]) for each in fillings}
        program.row(taken or {"nothing": 0.0}, wanted[shape], wanted[shape])
    groups = [_group(instance, position, name, paths) for position, name in enumerate(hosts)]
    for position in range(len(hosts)):
        here = [each for each in fillings if each.node == position]
        if not here and position not in pinned:
            continue
        program.row({**dict.fromkeys(here, 1.0), "nothing": 0.0}, 0, 1)
        for domain in paths[position]:
            program.row({domain: 1.0, **dict.fromkeys(here, -1.0)}, 0, 1)
            if position in pinned:
                program.row({domain: 1.0}, 1, 1)
        stays = {("group", groups[position]): 1.0}
        program.row({**stays, **dict.fromkeys(here, -1.0)}, 0, 1)
        if position in pinned:
            program.row(stays, 1, 1)
        if groups[position] is None:
            program.row(stays, 0, 0)
    program.row({("group", group): 1.0 for group in set(groups)}, 0, 1)
    return _lexicographic(program, paths, fillings, _whole_cliques(instance, hosts, paths))


def _lexicographic(
    program: _Program,
    paths: Sequence[Sequence[Any]],
    fillings: Sequence[Filling],
    cliques: Mapping[Any, int],
) -> Objective | None:
    values = []
    for depth in range(len(LEVELS)):
        values.append(program.least(dict.fromkeys({path[depth] for path in paths}, 1.0)))
        if values[-1] is None:
            return None
    values.append(program.least({"nothing": 0.0, **{each: each.suspects for each in fillings}}))
    stranded: dict[Any, float] = {"nothing": 0.0, **{each: float(each.left) for each in fillings}}
    for clique, gpus in cliques.items():
        stranded[clique] = gpus
        for each in fillings:
            if paths[each.node][3] == clique:
                stranded[each] -= each.gpus
    values.append(program.least(stranded))
    return None if None in values else _objective(values)


def _objective(values: Sequence[int | None]) -> Objective:
    zones, blocks, racks, cliques, nodes, suspects, stranded = (value or 0 for value in values)
    return Objective(
        zones=zones, blocks=blocks, racks=racks, cliques=cliques, nodes=nodes,
        suspect_gpus=suspects, stranded_gpus=stranded,
    )  # fmt: skip


def _path(candidate: Candidate) -> tuple[Any, ...]:
    """The domains of a node, widest first, each told by all that are wider."""
    wide = tuple(reversed(candidate.domains))
    return tuple(wide[: depth + 1] for depth in range(len(wide)))


def _group(
    instance: Instance, position: int, name: NodeName, paths: Sequence[Sequence[Any]]
) -> Any:
    """The domain that the gang may have to stay in; None: the node is in none."""
    required = instance.gang.topology.required
    if required is None:
        return "everywhere"
    if isinstance(required, Level):
        return paths[position][LEVELS.index(required)][-1]
    return instance.picture.candidates[name].node.labels.get(required)


def _fillings(
    instance: Instance, position: int, name: NodeName, shapes: Sequence[Shape]
) -> Iterator[Filling]:
    """Every way to put members on a node."""
    candidate, room = instance.picture.candidates[name], instance.site.rooms[name]
    free = list(positions(candidate.free))
    states = [candidate.together[at] for at in free]
    bad = sum(1 for state in states if state & ~Health.SUSPECT.bit)
    sick = sum(1 for state in states if state)
    planned = candidate.node.mode is AllocationMode.PLANNED
    cores = room.allocatable.cpu_m - room.held.cpu_m
    for counts in product(*(range(GPUS // shape.need.count + 1) for shape in shapes)):
        gpus = sum(count * shape.need.count for count, shape in zip(counts, shapes, strict=True))
        asked = sum(
            count * shape.amounts.cpu_m for count, shape in zip(counts, shapes, strict=True)
        )
        mixed = sum(1 for count in counts if count) > 1
        usable = len(free) - bad if planned and not mixed else (0 if bad else len(free))
        if not gpus or gpus > usable or asked > cores:
            continue
        if sum(counts) > room.pods - room.held_pods:
            continue
        left = len(free) - gpus
        whole = len(free) == GPUS
        yield Filling(
            node=position,
            counts=counts,
            suspects=max(0, gpus - (len(free) - sick)) if planned else min(gpus, sick),
            left=2 * left if whole else left,
            gpus=gpus,
        )


def _whole_cliques(
    instance: Instance, hosts: Sequence[Any], paths: Sequence[Sequence[Any]]
) -> dict[Any, int]:
    """The GPUs of each clique of several nodes that are all free and healthy."""
    found: dict[Any, int] = {}
    sizes = Counter(path[3] for path in paths)
    for clique, size in sizes.items():
        members = [name for name, path in zip(hosts, paths, strict=True) if path[3] == clique]
        ready = (instance.picture.candidates[name] for name in members)
        if size > 1 and all(not each.held and not any(each.together) for each in ready):
            found[clique] = size * GPUS
    return found
