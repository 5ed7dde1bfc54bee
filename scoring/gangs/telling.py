"""A gang in words: how far it has come, and what one of its members waits for."""

from __future__ import annotations

from typing import Final

from scoring.gangs.record import GangPlan, GangState, tally
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.sitting import counts, leads, word_on
from scoring.model import Ask, Fleet, GangKey
from scoring.planning.obstacles import Obstacle
from scoring.policy import Policy
from scoring.reasons import Reason


def sentence(plan: GangPlan) -> str:
    """How far a gang has come: the leader's own words, where it has some."""
    if plan.summary:
        return plan.summary
    count = tally(plan.seats)
    where = f" in {plan.domain}" if plan.domain else ""
    match plan.state:
        case GangState.PLANNED:
            some = f", {count.bound} of them bound" if count.bound else ""
            return f"Planned{where}: {count.seated} of {count.existing} pods have a node{some}."
        case GangState.RUNNING:
            return f"Runs{where}: {count.bound} of {count.existing} pods are bound."
        case GangState.PARTIAL:
            return f"{count.bound} of {count.existing} pods are bound, the rest has no plan."
        case GangState.WAITING:
            return "It has no plan yet."


def of_member(fleet: Fleet, ask: Ask, rules: GangRules, policy: Policy) -> str:
    """What the gang of a pod has come to, and the pod with it; empty where nothing is planned."""
    plan, hold = word_on(fleet, ask, rules)
    if hold is Hold.OFF:
        return ""
    if plan is None:
        return "Its gang has no plan yet." if leads(fleet, policy) else ""
    seat, count = plan.seats.get(ask.uid), tally(plan.seats)
    if seat is not None and seat.node is not None and seat.bound:
        return f"Bound on {seat.node} with its gang ({count.bound} of {count.existing} bound)."
    if plan.state in (GangState.WAITING, GangState.PARTIAL):
        return sentence(plan)
    seated = f"({count.seated} of {count.existing} seated)"
    if seat is None or seat.node is None:
        return f"Its gang is planned, with no node for this pod {seated}."
    return f"Planned on {seat.node} with its gang {seated}."


def unled(fleet: Fleet, ask: Ask, rules: GangRules, policy: Policy) -> str:
    """What is to be known of a pod whose gang would be planned if a controller led; else empty."""
    plan, hold = word_on(fleet, ask, rules)
    if hold is Hold.OFF or counts(fleet, plan, policy):
        return ""
    return "No controller leads, so the pods of its gang are judged one by one."


def absence(fleet: Fleet, key: GangKey, policy: Policy) -> str:
    """Why there is no word on the gang `key`."""
    if leads(fleet, policy):
        return f"no gang {key} is known to the controller that leads"
    if fleet.leader_s is None:
        return f"no gang {key} has a plan: no controller ever led here"
    return f"no gang {key} has a plan, and no controller leads"


def bar(word: str) -> str:
    """What keeps members off nodes, from a word of `GangPlan.counts`; the word where it is a newer one."""
    return _BARS.get(word, word)


_BARS: Final = {each.value: each.text for kind in (Reason, Obstacle) for each in kind}
