"""Why a gang has no plan: what cannot be met, which domain came nearest, what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from scoring.model import NodeName, PodUid, ResourceKind
from scoring.planning import attempt, misses, quorum
from scoring.planning.obstacles import Bar, Obstacle
from scoring.planning.outcome import Lack, Miss, Shortfall
from scoring.planning.search import Search
from scoring.planning.tree import Branch
from scoring.planning.values import Member, PendingGang, Shape, Spans
from scoring.planning.view import Views
from scoring.reasons import Reason

MOST_ADVICE = 2
"""Reasons of which the advice is given."""


def before_planning(gang: PendingGang) -> Shortfall | None:
    """What keeps a gang from being planned at all: it is not known how many members it needs, or they
    do not all exist.
    """
    if gang.min is None:
        return _told(
            gang,
            Lack.SIZE_UNKNOWN,
            "nobody says how many members the gang needs",
            unblock=("create the group object, or say the size on the pods",),
        )
    if len(gang.members) < gang.min:
        return _told(
            gang,
            Lack.MEMBERS_MISSING,
            quorum.absent(gang),
            unblock=("see why the owner does not create them: quota, admission, its own status",),
        )
    return None


def unreadable(gang: PendingGang, kind: str, problem: str) -> Shortfall:
    """The gang waits since the objects that say what it needs cannot be read."""
    return _told(
        gang,
        Lack.KIND_UNREADABLE,
        f"{kind} cannot be read, so nobody knows what the gang needs: {problem}",
        unblock=(f"let the controller list and watch {kind}",),
    )


def refused(gang: PendingGang, refusals: Mapping[PodUid, str]) -> Shortfall | None:
    """The gang waits since the API server refuses to let a member be nominated or let go, by what it says;
    None: it refuses none.
    """
    for member in gang.members:
        told = refusals.get(member.uid) if member.bound is None else None
        if told is not None:
            return _told(
                gang,
                Lack.WRITE_REFUSED,
                f"the API server refuses writes to {member.name}: {told}",
                unblock=("see which admission policy, webhook or missing right refuses them",),
            )
    return None


def failed(gang: PendingGang, problem: str) -> Shortfall:
    """The gang waits since planning failed on it, by no fault of its own."""
    return _told(
        gang,
        Lack.INTERNAL_ERROR,
        f"Surefoot failed to plan the gang: {problem}",
        unblock=("see the log of the controller that leads, and report it; others are planned on",),
    )


def shortfall(
    views: Views,
    gang: PendingGang,
    members: Sequence[Member],
    bound: Mapping[Member, int],
    banned: Collection[int],
    *,
    hold: bool,
) -> Shortfall:
    """Why `members` find no places. With `hold` those that do in the best domain take their room."""
    return _Account(views, gang, members, bound, banned).told(hold=hold)


class _Account:
    """What is found out about one gang."""

    def __init__(
        self,
        views: Views,
        gang: PendingGang,
        members: Sequence[Member],
        bound: Mapping[Member, int],
        banned: Collection[int],
    ) -> None:
        self._views = views
        self._ground = views.ground
        self._gang = gang
        self._bound = bound
        self._banned = banned
        self._homeless = [member for member in members if member.bound is None]
        self._needed = len(members)
        self._spans: Spans = attempt.ladder(gang)[-1]
        self._shapes = attempt.shapes_of(self._homeless)
        self._counts = attempt.counted(self._homeless, self._shapes)
        views_of = [views.view(self._spans, [shape], frozenset(banned)) for shape in self._shapes]
        self._now = [view.capacities[0] for view in views_of]
        self._before = [views.ground.first_capacity(shape, self._spans) for shape in self._shapes]

    def told(self, *, hold: bool) -> Shortfall:
        ground = self._ground
        too_large = self._too_large()
        if too_large is not None:
            return self._shortfall(Lack.TOO_LARGE, too_large)
        roots = attempt.trees(ground, self._spans, self._bound.values())
        if not roots:
            return self._without_a_tree()
        able = self._able(roots)
        hold = hold and bool(able)  # else it would hold for ever, and never run
        name, best = min(able if hold else roots, key=lambda root: (*self._merit(root[1]), root[0]))
        cures = misses.cures(ground, best, self._short_of(best), self._banned)
        lack, placed = self._lack(roots), sum(self._fitting(best))
        found = self._shortfall(lack, "")
        held: dict[PodUid, NodeName] = {}
        if hold or len(self._shapes) > 1:  # shapes that fit alone may not fit together
            held = self._partial(best, hold=hold)
            placed = len(held)
        near = Miss(
            domain=name,
            placed=min(placed + self._needed - len(self._homeless), self._needed - 1),
            needed=self._needed,
            cures=cures,
        )
        return replace(
            found,
            constraint=self._sentence(lack, near),
            unblock=found.unblock if able else (self._more_nodes(), *found.unblock),
            nearest=near,
            held=MappingProxyType(held if hold else {}),
        )

    def _too_large(self) -> str | None:
        """A member that no node could ever hold."""
        for shape in self._shapes:
            need = shape.need
            largest = self._ground.largest(need.resource)
            if need.kind is not ResourceKind.NONE and need.count > largest:
                return f"a member asks {need.count} {need.resource}, the largest node has {largest}"
        return None

    def _without_a_tree(self) -> Shortfall:
        level = self._level()
        if self._bound and self._ground.forest(self._spans).roots:
            told = f"all members must share one {level}, and those that run do not"
            return self._shortfall(Lack.MEMBERS_APART, told)
        told = f"all members must share one {level}, and no node is in any"
        return self._shortfall(Lack.DOMAIN_TOO_SMALL, told)

    def _level(self) -> str:
        return " and one ".join(map(str, self._spans))

    # --- the nearest domain ------------------------------------------------------------------------

    def _fitting(self, branch: Branch) -> list[int]:
        """How many members of each shape have room in a domain."""
        return [
            min(count, capacity[branch.serial])
            for capacity, count in zip(self._now, self._counts, strict=True)
        ]

    def _merit(self, branch: Branch) -> tuple[int, int]:
        """The more members fit the better, then the more would if gangs before this one had none."""
        before = [
            min(count, capacity[branch.serial])
            for capacity, count in zip(self._before, self._counts, strict=True)
        ]
        return -sum(self._fitting(branch)), -sum(before)

    def _able(self, roots: Sequence[tuple[str, Branch]]) -> list[tuple[str, Branch]]:
        """The domains whose GPUs are enough for the gang when all other pods are gone."""
        members = [*self._homeless, *self._bound]
        asking = [each for each in members if each.shape.need.kind is not ResourceKind.NONE]
        shapes = attempt.shapes_of(asking)
        counts = attempt.counted(asking, shapes)
        return [root for root in roots if self._could_hold(root[1], shapes, counts)]

    def _could_hold(self, branch: Branch, shapes: Sequence[Shape], counts: Sequence[int]) -> bool:
        offered: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for shape, count in zip(shapes, counts, strict=True):
            emptied, resource = self._ground.emptied(shape, self._spans), shape.need.resource
            if emptied.members[branch.serial] < count:
                return False
            offered[resource] = max(offered[resource], emptied.units[branch.serial])
            asked[resource] += count * shape.need.count
        return asked <= offered

    def _more_nodes(self) -> str:
        where = f"no {self._level()}" if self._spans else "the cluster"
        never = "could" if self._spans else "could not"
        return f"add nodes, or ask for fewer GPUs: even empty, {where} {never} hold the gang"

    def _short_of(self, branch: Branch) -> Shape:
        """The shape that lacks room; the largest where each alone would fit."""
        for shape, count, fits in zip(
            self._shapes, self._counts, self._fitting(branch), strict=True
        ):
            if fits < count:
                return shape
        return self._shapes[0]

    def _partial(self, branch: Branch, *, hold: bool) -> dict[PodUid, NodeName]:
        """As many members as fit in a domain. With `hold` they take their room."""
        ground, held = self._ground, dict[PodUid, NodeName]()
        taken: list[tuple[int, Shape, int]] = []
        opened = ground.above(self._spans, self._bound.values())
        for shape, count in zip(self._shapes, self._counts, strict=True):
            search = Search(self._views, self._spans, [shape], opened=opened, banned=self._banned)
            found = search.best(branch, (min(count, *search.capacity(branch)),))
            if found is None:  # pragma: no cover - capacity of one shape is room for so many
                raise AssertionError("a domain holds its capacity")
            queue = [member for member in self._homeless if member.shape == shape]
            for position, (here,) in found.items():
                for member in queue[:here]:
                    held[member.uid] = ground.hosts[position].name
                del queue[:here]
            for position, (here,) in found.items():
                ground.take(position, shape, here)
                taken.append((position, shape, here))
            opened |= ground.above(self._spans, found)
        for position, shape, count in () if hold else taken:
            ground.take(position, shape, -count)
        return held

    # --- the reason --------------------------------------------------------------------------------

    def _lack(self, roots: Sequence[tuple[str, Branch]]) -> Lack:
        ground = self._ground
        surveys = [ground.survey(shape) for shape in self._shapes]
        if any(
            all(
                sums[branch.serial] >= count
                for sums, count in zip(self._before, self._counts, strict=True)
            )
            for _, branch in roots
        ) and not all(survey.first == survey.room for survey in surveys):
            return Lack.BEHIND_OTHERS
        if self._spans and all(
            sum(survey.room) >= count for survey, count in zip(surveys, self._counts, strict=True)
        ):
            return Lack.DOMAIN_TOO_SMALL
        return Lack.NO_ROOM

    def _sentence(self, lack: Lack, near: Miss) -> str:
        have, need = len(self._bound), len(self._homeless)
        more = f" beside the {have} that run" if have else ""
        what = f"{need} members need a node{more}" if need > 1 else f"1 member needs a node{more}"
        if lack is Lack.BEHIND_OTHERS:
            return f"{what}, and gangs before this one take the room"
        if lack is Lack.DOMAIN_TOO_SMALL:
            return f"{what} within one {self._level()}, and none has room for them all"
        within = f" within one {self._level()}" if self._spans else ""
        return f"{what}{within}, and {near.domain} has room for {near.placed - have}"

    def _counted(self) -> dict[Bar, int]:
        """How many nodes take no member of the shape that asks most, by what keeps it out."""
        ground = self._ground
        survey = ground.survey(self._shapes[0])
        leaves = ground.forest(self._spans).leaves
        bars: Counter[Bar] = Counter()
        for at, (room, first, bar) in enumerate(
            zip(survey.room, survey.first, survey.bars, strict=True)
        ):
            if at in self._banned:
                bars[Obstacle.FAILED_BEFORE] += 1
            elif at not in leaves:
                bars[Obstacle.OUTSIDE] += 1
            elif not room and bar is not None:
                bars[Obstacle.PLANNED if first else bar] += 1
        if ground.unlisted:
            bars[Obstacle.UNREPORTED_TO_CLUSTER] = ground.unlisted
        return dict(sorted(bars.items(), key=lambda each: (-each[1], each[0])))

    def _shortfall(self, lack: Lack, sentence: str) -> Shortfall:
        counts = self._counted()
        return _told(
            self._gang,
            lack,
            sentence,
            counts=counts,
            unblock=(*self._structural(lack), *_advice(counts)),
        )

    def _structural(self, lack: Lack) -> tuple[str, ...]:
        level = self._level()
        return {
            Lack.BEHIND_OTHERS: ("wait for those gangs, or give this one a higher priority",),
            Lack.DOMAIN_TOO_SMALL: (f"ask for a wider level than {level}, or free nodes in one",),
            Lack.MEMBERS_APART: (f"restart the gang, or ask for a wider level than {level}",),
            Lack.TOO_LARGE: ("ask fewer GPUs for each member",),
        }.get(lack, ())


def _advice(counts: Mapping[Bar, int]) -> tuple[str, ...]:
    """What to do about the most frequent reasons of health."""
    reasons = [bar for bar in counts if isinstance(bar, Reason)]
    return tuple(reason.advice for reason in reasons[:MOST_ADVICE])


def _told(
    gang: PendingGang,
    lack: Lack,
    sentence: str,
    *,
    counts: Mapping[Bar, int] = MappingProxyType({}),
    unblock: tuple[str, ...] = (),
) -> Shortfall:
    return Shortfall(
        gang=gang.key,
        uid=gang.uid,
        lack=lack,
        constraint=sentence,
        counts=MappingProxyType(dict(counts)),
        unblock=unblock,
    )
