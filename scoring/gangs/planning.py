"""From gathered gangs to outcomes: plans where gangs fit, and for those that may evict, plans as if
pods of lower priority were gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from scoring.gangs import evicting
from scoring.gangs.evicting import Rest
from scoring.gangs.record import GangPlan
from scoring.gangs.recording import INCOMPLETE
from scoring.gangs.rules import OnShortfall
from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.picture import Picture
from scoring.planning import planner, shortfalls
from scoring.planning.outcome import Outcome, Plan, Shortfall
from scoring.planning.values import PendingGang, Site


def outcomes(
    scene: Picture,
    site: Site,
    gangs: Iterable[Gathered],
    records: Mapping[GangKey, GangPlan],
    without: Callable[[int], Rest] | None = None,
) -> Mapping[GangKey, Outcome]:
    """A plan or a shortfall for each gang of which something is to be planned.

    `records`: what stood so far. A member that has a seat and is not nominated yet keeps it like one
    that is: a write on its way must not move the plan. `without`: what would be left if all bound pods
    of a priority below this one were gone; None: nobody is evicted.
    """
    gangs = tuple(gangs)
    pending = {
        gang.key: seated(gang.pending, records.get(gang.key)) for gang in gangs if gang.pending
    }
    found: dict[GangKey, Outcome] = {
        outcome.gang: outcome for outcome in planner.plan(scene, site, pending.values())
    }
    for gang in gangs:
        waits = pending.get(gang.key)
        if without is None or waits is None or gang.on_shortfall is not OnShortfall.PREEMPT:
            continue
        outcome = found[gang.key]
        if isinstance(outcome, Plan) or outcome.lack.value in INCOMPLETE:
            continue
        emptied, roomy = evicting.left_with(scene, site, without(waits.priority))
        plans = (each for each in found.values() if isinstance(each, Plan))
        claims = (*roomy.claims, *evicting.claimed(plans, pending, waits))
        (second,) = planner.plan(emptied, replace(roomy, claims=claims), (waits,))
        if isinstance(second, Plan):
            found[gang.key] = second
    return found


def unready(gangs: Iterable[Gathered]) -> Mapping[GangKey, Shortfall]:
    """The shortfalls of gangs that cannot be planned at all yet, whatever room there is: members are
    missing, or nobody says how many there must be.
    """
    return {
        gang.key: found
        for gang in gangs
        if gang.pending and (found := shortfalls.before_planning(gang.pending)) is not None
    }


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
