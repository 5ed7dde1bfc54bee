"""One try to find nodes for some members of a gang, some others of it staying where they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from scoring.planning import spread
from scoring.planning.ground import Ground
from scoring.planning.search import Assignment, Search
from scoring.planning.seats import seated
from scoring.planning.tree import Branch
from scoring.planning.values import Member, PendingGang, Shape, Spans
from scoring.planning.view import Views


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """Where members of a gang stand and shall go, by host."""

    kept: Mapping[Member, int]
    """Those with a known host that stay."""
    new: Mapping[Member, int]

    @property
    def places(self) -> dict[Member, int]:
        """All of them."""
        return {**self.kept, **self.new}


def ladder(gang: PendingGang) -> list[Spans]:
    """What the members must share: at best the preferred level too, the required one in any case."""
    required = () if gang.topology.required is None else (gang.topology.required,)
    preferred = gang.topology.preferred
    if preferred is None or preferred in required:
        return [required]
    return [(*required, preferred), required]


def shapes_of(members: Sequence[Member]) -> tuple[Shape, ...]:
    """The shapes of these members, those that take most GPUs first, then in the members' order."""
    found = dict.fromkeys(member.shape for member in members)
    return tuple(sorted(found, key=lambda shape: -shape.need.count))


def counted(members: Sequence[Member], shapes: Sequence[Shape]) -> tuple[int, ...]:
    """How many members there are of each shape."""
    return tuple(sum(1 for member in members if member.shape == shape) for shape in shapes)


def attempt(
    views: Views,
    gang: PendingGang,
    members: Sequence[Member],
    kept: Mapping[Member, int],
    banned: Collection[int],
) -> Seating | None:
    """Nodes for all of `members`, near `kept` ones, whose room is taken already; None: none found."""
    if not members:
        return Seating(kept=kept, new={})  # what runs is never moved, wherever it runs
    ground, shapes = views.ground, shapes_of(members)
    counts = counted(members, shapes)
    for spans in ladder(gang):
        roots = trees(ground, spans, kept.values())
        if not roots:
            continue
        search = Search(
            views, spans, shapes, opened=ground.above(spans, kept.values()), banned=banned
        )
        found = search.best_of([branch for _, branch in roots], counts)
        if found is not None:
            return Seating(kept=kept, new=_seats(ground, members, shapes, found, kept))
    return None


def trees(ground: Ground, spans: Spans, inside: Collection[int]) -> list[tuple[str, Branch]]:
    """The trees that hold all of the hosts `inside`, with their names."""
    forest = ground.forest(spans)
    if not inside:
        return list(forest.roots)
    chains = [ground.above(spans, [position]) for position in set(inside)]
    return [root for root in forest.roots if all(root[1].serial in chain for chain in chains)]


def more(
    views: Views,
    gang: PendingGang,
    members: Sequence[Member],
    seating: Seating,
    banned: Collection[int],
) -> Seating:
    """As many of `members` as find a node within the narrowest domain that holds the others, whose
    room is taken already: they spread the gang no wider.
    """
    ground, new = views.ground, dict(seating.new)
    spans = ladder(gang)[-1]
    narrowest = _narrowest(ground, spans, seating.places.values())
    if narrowest is None:
        return seating
    taken: list[tuple[int, Shape, int]] = []
    for shape in shapes_of(members):
        queue = [member for member in members if member.shape == shape]
        opened = ground.above(spans, {**seating.kept, **new}.values())
        search = Search(views, spans, [shape], opened=opened, banned=banned)
        count = min(len(queue), *search.capacity(narrowest))
        found = search.best(narrowest, (count,))
        if found is None or not count:
            continue
        new |= _seats(ground, queue[:count], [shape], found, {**seating.kept, **new})
        for position, (more_here,) in found.items():
            ground.take(position, shape, more_here)
            taken.append((position, shape, more_here))
    for position, shape, count in taken:
        ground.take(position, shape, -count)
    return Seating(kept=seating.kept, new=new)


def _narrowest(ground: Ground, spans: Spans, positions: Collection[int]) -> Branch | None:
    """The narrowest branch that all of these hosts lie in."""
    chains = [ground.above(spans, [position]) for position in set(positions)]
    common = set.intersection(*chains) if chains else set()
    return ground.forest(spans).branches[min(common)] if common else None


def _seats(
    ground: Ground,
    members: Sequence[Member],
    shapes: Sequence[Shape],
    places: Assignment,
    kept: Mapping[Member, int],
) -> dict[Member, int]:
    standing: dict[int, int] = {}
    for member, position in kept.items():
        rank = 1 << 30 if member.index is None else member.index
        standing[position] = min(rank, standing.get(position, rank))
    return seated(members, shapes, places, ground.paths, standing)


def cost(ground: Ground, new: Mapping[Member, int]) -> int:
    """What the new places cost beside opening domains; their room is not taken yet."""
    gpus: dict[int, int] = {}
    for member, position in new.items():
        gpus[position] = gpus.get(position, 0) + member.shape.gpus
    total = sum(spread.on_host(ground.hosts[position], taken) for position, taken in gpus.items())
    of_cliques: dict[int, int] = {}
    forest = ground.forest(())
    for position, taken in gpus.items():
        branch = forest.leaves[position].parent
        if branch is not None:
            of_cliques[branch.serial] = of_cliques.get(branch.serial, 0) + taken
    for serial, taken in of_cliques.items():
        whole = ground.whole_clique(forest.branches[serial])
        total += spread.of_clique(whole, taken) if whole else 0
    return total
