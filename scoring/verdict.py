"""May this pod go to this node? One candidate, one need, one verdict.

kube-scheduler owns counts and Surefoot owns fitness (invariant 5): a verdict never says
"too few free". It judges the sets of GPUs that the kubelet may hand out (invariant 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from scoring.allocator.answer import UNKNOWN, Possible, either
from scoring.allocator.best_effort import partition_count
from scoring.allocator.reach import reachable
from scoring.allocator.shares import Shares, possible_gpus
from scoring.candidate import STALE, Candidate
from scoring.health.staleness import Freshness
from scoring.model import (
    AllocationMode,
    Health,
    Need,
    OverrideVerdict,
    ResourceKind,
    WorkClass,
)
from scoring.policy import GangsUnderOpenBreaker, Policy
from scoring.reasons import OF_STATE, Reason
from scoring.rings import positions, submasks

SOFT: Final = frozenset(
    {
        Health.NEW,
        Health.SUSPECT,
        Health.PROBATION,
        Health.UNMONITORED,
        Health.DEGRADED,
        Health.UNKNOWN,
    }
)
"""States in which a GPU still works or may work: an open breaker or an annotation may admit them."""

MOST_PARTITIONS: Final = 1_000
"""Ways to part the free GPUs, up to which a verdict predicts the plugin: every ask of up to 8 free GPUs
(280 at most). 16 GPUs would cost seconds for the first pod of a kind.
"""

MOST_SHARED: Final = 8
"""GPUs of a node in shares, up to which a verdict predicts the plugin: 16 would cost 0.3 s for the
first pod of a kind.
"""

MOST_DEAD: Final = 3
"""GPUs of one node that do not work, up to which the plugin's views of them are gone through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one node, with the GPUs that it rests on."""

    reason: Reason | None
    """None: the pod may go there."""
    reach: int
    """The GPUs of which every set that may be handed out is made, as positions."""
    must: int
    """Those of `reach` that each such set holds for certain."""
    count: int
    """How many GPUs of `reach` a set has: the pod's count, or all of them where there are fewer."""
    chosen: bool
    """Whether the best set of `reach` will be handed out (a plan) instead of any of them."""
    sets: frozenset[int] | None
    """Every set that may be handed out; None: any `count` of `reach`."""
    bad: int
    """GPUs whose health this pod may not use, as positions."""

    @property
    def fits(self) -> bool:
        """Whether the pod may go there."""
        return self.reason is None


def judge(candidate: Candidate, need: Need, policy: Policy) -> Judgement:
    """May a pod with this need go to this node?"""
    if need.kind is ResourceKind.NONE:
        return _judged(None, 0, 0, chosen=False)
    if not candidate.node.gpus:
        return _judged(_without_gpus(candidate, need, policy), 0, 0, chosen=False)
    pool = candidate.of_kind(need.kind)
    bad = unusable(candidate, need, policy) & pool
    if candidate.blocked:
        return _judged(Reason.GPU_LOST, pool, need.count, chosen=False, bad=bad)
    if need.kind is ResourceKind.SHARED:
        return _any_of(candidate, need, policy, _drawn_from(candidate, need) or pool, bad, 1)
    if need.kind is not ResourceKind.WHOLE:
        # An instance may be on any GPU, whoever else holds a part of it.
        return _any_of(candidate, need, policy, pool, bad, 1)
    if (
        need.count > pool.bit_count()
        and not acceptable(need, policy, candidate.breaker_open) & Health.UNKNOWN.bit
    ):
        return _judged(Reason.FEWER_GPUS, pool, pool.bit_count(), chosen=False, bad=bad)
    free = candidate.free & pool
    count = min(need.count, pool.bit_count())
    if free.bit_count() - candidate.nameless < need.count:
        return _lagging(candidate, need, policy, pool, bad, count)
    if not candidate.nameless:
        if candidate.node.mode is AllocationMode.PLANNED:
            return _planned(candidate, need, policy, pool, bad, count)
        if candidate.node.mode is AllocationMode.NVIDIA:
            return _stock(candidate, need, policy, free, bad, count)
    return _any_of(candidate, need, policy, free, bad, count)


def _without_gpus(candidate: Candidate, need: Need, policy: Policy) -> Reason | None:
    """Why a node that shows no GPU is refused; None: its GPUs are unknown, and that will do."""
    if candidate.word is not None:
        return Reason.OVERRIDE_DENIED if candidate.word is OverrideVerdict.DENY else None
    if not candidate.readable:
        return Reason.NODE_UNREADABLE
    accepted = acceptable(need, policy, candidate.breaker_open)
    state = worst_of(candidate.of_node & ~accepted)
    if state is not Health.HEALTHY:
        return OF_STATE[state]
    return None if accepted & Health.UNKNOWN.bit else Reason.FEWER_GPUS


def _any_of(
    candidate: Candidate, need: Need, policy: Policy, reach: int, bad: int, count: int
) -> Judgement:
    """Any `count` of `reach` may come, so each GPU of it must be usable."""
    reason = _reason(candidate, need, policy, reach & bad) if reach & bad else None
    return _judged(reason, reach, count, chosen=False, bad=bad)


def _stock(
    candidate: Candidate, need: Need, policy: Policy, free: int, bad: int, count: int
) -> Judgement:
    """One of the sets that NVIDIA's best-effort policy may hand out will come, so each must do.

    Where the plugin may answer with a device that is none it fails the pod (go-gpuallocator PR 80).
    """
    found = _plugin_answer(candidate, free, count)
    if found.sets is None:
        return _any_of(candidate, need, policy, free, bad, count)
    if found.may_fail:
        return _judged(Reason.PLUGIN_MAY_FAIL, free, count, chosen=False, bad=bad)
    reach = 0
    for taken in found.sets:
        reach |= taken
    reason = _reason(candidate, need, policy, reach & bad) if reach & bad else None
    return _judged(reason, reach, count, chosen=False, bad=bad, sets=found.sets)


def _plugin_answer(candidate: Candidate, free: int, count: int) -> Possible:
    """What the plugin may hand out, whichever of the GPUs that do not work it has noticed.

    It withdraws a GPU on some XIDs and not on others, and forgets it when it restarts, so every view
    of it counts (NVIDIA/k8s-device-plugin internal/rm/health.go).
    """
    dead = _dead(candidate, free)
    if partition_count(free.bit_count(), count) > MOST_PARTITIONS:
        return UNKNOWN
    if not dead:
        return reachable(candidate.node, free, count)
    if dead.bit_count() > MOST_DEAD:
        return UNKNOWN
    views = (free & ~withdrawn for withdrawn in submasks(dead))
    answers = [
        reachable(candidate.node, view, count) for view in views if view.bit_count() >= count
    ]
    return either(answers, exact=len(answers) == 1)


def _drawn_from(candidate: Candidate, need: Need) -> int:
    """The GPUs that the pod's shares may come from, whichever of those that do not work the plugin
    has noticed; 0: that cannot be told (split GPUs have shares of their own), or our view has too
    few free.
    """
    sharing, used = candidate.node.sharing, candidate.shares_used
    if sharing is None or used is None or len(used) > MOST_SHARED or candidate.mig:
        return 0
    dead = _dead(candidate, (1 << len(used)) - 1)
    if dead.bit_count() > MOST_DEAD:
        return 0
    reach = 0
    for withdrawn in submasks(dead):
        free = tuple(
            Shares(
                total=sharing.replicas,
                free=0 if withdrawn >> position & 1 else max(0, sharing.replicas - count),
            )
            for position, count in enumerate(used)
        )
        found = possible_gpus(free, need.count, sharing.policy)
        if found.sets is None:
            return 0
        for gpus in found.sets:
            reach |= gpus
    return reach


def _dead(candidate: Candidate, gpus: int) -> int:
    """Those of `gpus` that do not work, so that the plugin may have withdrawn them."""
    return sum(
        1 << position
        for position in positions(gpus)
        if worst_of(candidate.together[position]) >= Health.RESET_REQUIRED
    )


def _planned(
    candidate: Candidate, need: Need, policy: Policy, pool: int, bad: int, count: int
) -> Judgement:
    """The best usable free GPUs will come; where they are too few, held ones may become free."""
    free = candidate.free & pool
    if (free & ~bad).bit_count() >= count:
        return _judged(None, free & ~bad, count, chosen=True, bad=bad)
    if (pool & ~bad).bit_count() >= count:
        return _judged(Reason.HEALTHY_GPUS_HELD, free, count, chosen=True, bad=bad)
    return _judged(_reason(candidate, need, policy, pool & bad), free, count, chosen=True, bad=bad)


def _lagging(
    candidate: Candidate, need: Need, policy: Policy, pool: int, bad: int, count: int
) -> Judgement:
    """Our view has fewer free GPUs than the scheduler counts: judge free and held ones alike.

    All that are free for certain will be in the set. Freeing the right held GPUs would cure a node
    whose free ones are usable and which has enough usable ones, if we know who holds which.
    """
    must = candidate.free & pool if not candidate.nameless else 0
    if not pool & bad:
        return _judged(None, pool, count, chosen=False, must=must)
    planned = candidate.node.mode is AllocationMode.PLANNED
    curable = (
        (planned or not must & bad)
        and (pool & ~bad).bit_count() >= count
        and not candidate.nameless
    )
    reason = Reason.HEALTHY_GPUS_HELD if curable else _reason(candidate, need, policy, pool & bad)
    return _judged(reason, pool, count, chosen=False, must=must, bad=bad)


def _judged(
    reason: Reason | None,
    reach: int,
    count: int,
    *,
    chosen: bool,
    must: int = 0,
    bad: int = 0,
    sets: frozenset[int] | None = None,
) -> Judgement:
    return Judgement(
        reason=reason, reach=reach, must=must, count=count, chosen=chosen, sets=sets, bad=bad
    )


def unusable(candidate: Candidate, need: Need, policy: Policy) -> int:
    """The GPUs that a pod with this need may not use: some open cause has a state it refuses."""
    accepted = acceptable(need, policy, candidate.breaker_open)
    refused = candidate.denied
    for position, states in enumerate(candidate.together if need.talks else candidate.alone):
        if states & ~accepted:
            refused |= 1 << position
    return refused


@lru_cache(maxsize=4096)
def acceptable(need: Need, policy: Policy, breaker_open: bool) -> int:
    """The set of states that the policy accepts for this need; STALE may be in it."""
    states: set[Health] = {Health.HEALTHY}
    stale_too = False
    if need.work is WorkClass.GANG:
        if policy.gang.suspect:
            states.add(Health.SUSPECT)
    else:
        states.add(Health.SUSPECT)
        if policy.single.degraded:
            states.add(Health.DEGRADED)
        if policy.single.unknown:
            states |= {Health.UNKNOWN, Health.UNMONITORED}
            stale_too = True
        if need.preemptible:
            states.add(Health.PROBATION)
    admits = need.work is WorkClass.SINGLE or policy.breaker.gangs is GangsUnderOpenBreaker.ADMIT
    if breaker_open and admits:
        states |= SOFT
        stale_too = True
    states |= need.allow & SOFT
    stale_too = stale_too or Health.UNKNOWN in need.allow
    states -= need.deny
    stale_too = stale_too and Health.UNKNOWN not in need.deny
    return sum(state.bit for state in states) | (STALE if stale_too else 0)


def _reason(candidate: Candidate, need: Need, policy: Policy, culprits: int) -> Reason:
    """The reason that the worst of these GPUs gives. `culprits` is not empty."""
    if culprits & candidate.denied:
        return Reason.OVERRIDE_DENIED
    together, alone = 0, 0
    for position in range(len(candidate.node.gpus)):
        if culprits >> position & 1:
            together |= candidate.together[position]
            alone |= candidate.alone[position]
    accepted = acceptable(need, policy, candidate.breaker_open)
    refused = (together if need.talks else alone) & ~accepted
    state = worst_of(refused)
    if state is Health.HEALTHY:
        return Reason.NODE_STALE
    if state is Health.UNKNOWN and candidate.freshness is Freshness.SILENT:
        return Reason.NODE_SILENT
    if state > worst_of(alone & ~accepted):
        return Reason.LINKS_IMPAIRED
    return OF_STATE[state]


def worst_of(states: int) -> Health:
    """The most severe state of a set kept as an integer, STALE left aside."""
    states &= STALE - 1
    return Health(states.bit_length() - 1) if states else Health.HEALTHY
