"""From gathered gangs to outcomes: plans where gangs fit, and for those that may evict, plans as if
pods of lower priority were gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from scoring.gangs import evicting
from scoring.gangs.evicting import Rest
from scoring.gangs.record import GangPlan
from scoring.gangs.recording import INCOMPLETE
from scoring.gangs.rules import OnShortfall
from scoring.gangs.unread import Unread
from scoring.gangs.values import Gathered
from scoring.model import GangKey, PodUid
from scoring.picture import Picture
from scoring.planning import planner, shortfalls
from scoring.planning.faults import blaming
from scoring.planning.outcome import Outcome, Plan, Shortfall
from scoring.planning.values import PendingGang, Site


def outcomes(
    scene: Picture,
    site: Site,
    gangs: Iterable[Gathered],
    records: Mapping[GangKey, GangPlan],
    without: Callable[[int], Rest] | None = None,
) -> Mapping[GangKey, Outcome]:
    """A plan or a shortfall for each gang of which something is to be planned, in their order.

    `records`: what stood so far. A member that has a seat and is not nominated yet keeps it like one
    that is: a write on its way must not move the plan. `without`: what would be left if all bound pods
    of a priority below this one were gone; None: nobody is evicted.

    Who may evict is planned a second time at its own turn, so that what victims leave is not given to
    those behind it while others are still to go.

    Raises:
        GangError: it failed on one of them.
    """
    gangs = tuple(gangs)
    pending: dict[GangKey, PendingGang] = {}
    for gang in gangs:
        if gang.pending:
            with blaming(gang.key):
                pending[gang.key] = seated(gang.pending, records.get(gang.key))
    evicts = {gang.key for gang in gangs if gang.on_shortfall is OnShortfall.PREEMPT}
    found: dict[GangKey, Outcome] = {}
    turns = deque(planner.plan(scene, site, pending.values()))
    if without is None or evicts.isdisjoint(pending):
        return {outcome.gang: outcome for outcome in turns}
    emptied = cache(lambda below: evicting.left_with(scene, site, without(below)))
    while turns:
        outcome = turns.popleft()
        found[outcome.gang] = outcome
        if outcome.gang not in evicts or not _short_of_room(outcome):
            continue
        waits, later = pending[outcome.gang], [pending[each.gang] for each in turns]
        taken = evicting.taken(found.values(), pending)
        with blaming(outcome.gang):
            second = evicting.planned(*emptied(waits.priority), waits, taken, later)
        if second is None:
            continue
        found[outcome.gang] = second
        if any(_meet(second, each) for each in turns):
            taken = evicting.taken(found.values(), pending)
            left = replace(site, claims=(*site.claims, *taken))
            turns = deque(planner.plan(scene, left, later))
    return found


def _short_of_room(outcome: Outcome) -> bool:
    return isinstance(outcome, Shortfall) and outcome.lack.value not in INCOMPLETE


def _meet(plan: Plan, other: Outcome) -> bool:
    """Whether both use one node."""
    return isinstance(other, Plan) and not set(plan.places.values()).isdisjoint(
        other.places.values()
    )


def unready(
    gangs: Iterable[Gathered],
    unread: Sequence[Unread] = (),
    refusals: Mapping[PodUid, str] = MappingProxyType({}),
) -> Mapping[GangKey, Shortfall]:
    """The shortfalls of gangs that cannot be planned at all yet, whatever room there is: what says how
    many members there must be is `unread`, or nobody says it, or members are missing; or the API server
    refuses to let pods be written to (`refusals`: what it says of them).

    Raises:
        GangError: it failed on one of them.
    """
    short: dict[GangKey, Shortfall] = {}
    for gang in gangs:
        with blaming(gang.key):
            found = _unready(gang, gang.pending, unread, refusals) if gang.pending else None
        if found is not None:
            short[gang.key] = found
    return short


def _unready(
    gang: Gathered,
    pending: PendingGang,
    unread: Sequence[Unread],
    refusals: Mapping[PodUid, str],
) -> Shortfall | None:
    for each in unread:
        if each.hides(gang):
            return shortfalls.unreadable(pending, each.kind, each.problem)
    return shortfalls.before_planning(pending) or shortfalls.refused(pending, refusals)


def seated(gang: PendingGang, record: GangPlan | None) -> PendingGang:
    """The gang with every seat of its record as a nomination."""
    if record is None or record.uid != gang.uid:
        return gang
    members = tuple(
        replace(member, nominated=record.seat(member.uid))
        if member.bound is None and record.seat(member.uid) is not None
        else member
        for member in gang.members
    )
    return replace(gang, members=members)
