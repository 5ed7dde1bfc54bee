"""The breaker of each pool of nodes: whether too much of it fell silent together, or is excluded.

Many nodes do not fail within one minute. Where they seem to, the network or the cache did, and the
pool is frozen: its nodes keep their last verdicts for a while (`health.staleness`). And where soft
causes exclude a large part of a pool, or GPUs of many nodes within an hour, a rule is likelier at
fault than the GPUs, so the breaker opens: what still works may be used (`verdict`).

A function of the picture and of what was said before. No order of nodes matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from scoring.candidate import Candidate
from scoring.health.staleness import FREEZE_MAX_S
from scoring.model import Breaker, BreakerState, Fleet, Health, Need, NodeName, WorkClass
from scoring.picture import Picture
from scoring.policy import Policy
from scoring.verdict import SOFT, acceptable

_GANG: Final = Need(work=WorkClass.GANG, count=1)
_SOFT: Final = sum(state.bit for state in SOFT)

RENEWED_WITH: Final = 1.25
"""An open breaker is said to last so many times `close_after`, and again when less than one is left:
calm is at least that long, and the word is rarely written.
"""


EARLIER_S: Final = 5.0
"""How much earlier a freeze begins than the silence that it is for: clocks differ, and a node that
seems to have been stale before the freeze is not kept.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one node adds to its pool."""

    candidate: Candidate
    """What was counted: another object is counted anew."""
    gpus: int
    """Those that are not NEW."""
    usable: int
    """The set of those that gangs do not refuse for any cause."""
    excluded: int
    """The set of those that gangs refuse for soft causes alone."""

    def newly(self, before: Tally | None) -> bool:
        """Whether a GPU is excluded that was usable before. Of a node that was not counted before
        nobody knows since when its GPUs are.
        """
        return before is not None and bool(self.excluded & before.usable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the next look needs to know of the earlier ones. Times are on the fleet's time line."""

    frozen_until_s: Mapping[str, float] = field(default_factory=dict)
    open_until_s: Mapping[str, float] = field(default_factory=dict)
    tallies: Mapping[NodeName, Tally] = field(default_factory=dict)
    newly_s: Mapping[NodeName, float] = field(default_factory=dict)
    """When GPUs of each node were excluded last. What was under an earlier leader is not known."""


@dataclass(slots=True)
class _Pool:
    nodes: int = 0
    fell_silent: int = 0
    """Nodes that grew stale within `silent_within_s`."""
    kept: bool = False
    """Whether the freeze that stands keeps some node fresh that would be stale."""
    gpus: int = 0
    excluded: int = 0
    newly: int = 0
    """Nodes of which GPUs were excluded within `rate_within_s`."""


def look(picture: Picture, before: Memory | None) -> tuple[Mapping[str, Breaker], Memory]:
    """The word on each pool that needs one; a pool without a word is closed.

    `before`: None at a leader's first look, which takes over what its predecessor said. What a person
    put stands as long as it says: any `closed`, and whatever has no end.
    """
    fleet, rules, now_s = picture.fleet, picture.policy.breaker, picture.fleet.now_s
    memory = _taken_over(fleet) if before is None else before
    pools, tallies, newly_s = _pools(picture, memory)
    words: dict[str, Breaker] = {}
    frozen: dict[str, float] = {}
    opened: dict[str, float] = {}
    for name, pool in sorted(pools.items()):
        by_hand = put_by_hand(fleet, name)
        if by_hand is not None:
            words[name] = by_hand
            continue
        frozen_until_s = memory.frozen_until_s.get(name)
        if frozen_until_s is not None and (frozen_until_s <= now_s or not pool.kept):
            frozen_until_s = None
        if frozen_until_s is None and _freezes(pool, picture.policy):
            # From before the first of them grew stale, else it would not be kept.
            frozen_until_s = now_s - rules.silent_within_s - EARLIER_S + FREEZE_MAX_S
        open_until_s = _open_until_s(pool, memory.open_until_s.get(name), now_s, picture.policy)
        if open_until_s is not None:
            opened[name] = open_until_s
            words[name] = Breaker(pool=name, state=BreakerState.OPEN, until_s=open_until_s)
        if frozen_until_s is not None:
            frozen[name] = frozen_until_s
            words[name] = Breaker(pool=name, state=BreakerState.FROZEN, until_s=frozen_until_s)
    return MappingProxyType(words), Memory(
        frozen_until_s=frozen, open_until_s=opened, tallies=tallies, newly_s=newly_s
    )


def put_by_hand(fleet: Fleet, pool: str) -> Breaker | None:
    """The word that a person put on a pool: the leader's own always ends, and is never `closed`."""
    word = fleet.breakers.get(pool)
    if word is None or (word.until_s is not None and word.until_s <= fleet.now_s):
        return None
    return word if word.state is BreakerState.CLOSED or word.until_s is None else None


def _taken_over(fleet: Fleet) -> Memory:
    """What the words of an earlier leader say, where they still stand."""

    def ends_s(state: BreakerState) -> dict[str, float]:
        return {
            pool: word.until_s
            for pool, word in fleet.breakers.items()
            if word.state is state and word.until_s is not None and word.until_s > fleet.now_s
        }

    frozen = {
        pool: min(until_s, fleet.now_s + FREEZE_MAX_S)
        for pool, until_s in ends_s(BreakerState.FROZEN).items()
    }
    return Memory(frozen_until_s=frozen, open_until_s=ends_s(BreakerState.OPEN))


def _pools(
    picture: Picture, memory: Memory
) -> tuple[dict[str, _Pool], dict[NodeName, Tally], dict[NodeName, float]]:
    fleet, policy = picture.fleet, picture.policy
    stale_after_s, within_s = policy.stale_after_s, policy.breaker.silent_within_s
    pools: dict[str, _Pool] = {}
    tallies: dict[NodeName, Tally] = {}
    newly_s: dict[NodeName, float] = {}
    for name, candidate in picture.candidates.items():
        label = candidate.node.labels.get(policy.pool_label, "")
        if not label or (fleet.cluster and name not in fleet.cluster):
            continue  # a document of a node that is no more
        pool = pools.setdefault(label, _Pool())
        before = tally = memory.tallies.get(name)
        if tally is None or tally.candidate is not candidate:
            tally = _tally(candidate, policy)
        at_s = fleet.now_s if tally.newly(before) else memory.newly_s.get(name)
        if at_s is not None and fleet.now_s < at_s + policy.breaker.rate_within_s:
            newly_s[name] = at_s
            pool.newly += 1
        tallies[name] = tally
        pool.nodes += 1
        pool.gpus += tally.gpus
        pool.excluded += tally.excluded.bit_count()
        seen_s = fleet.seen_s.get(name)
        stale_s = -1.0 if seen_s is None else fleet.now_s - seen_s - stale_after_s
        if stale_s < 0.0:
            continue  # fresh, or never seen: it does not fall silent
        pool.fell_silent += stale_s < within_s
        began_s = memory.frozen_until_s.get(label, 0.0) - FREEZE_MAX_S
        pool.kept = pool.kept or fleet.now_s - stale_s > began_s
    return pools, tallies, newly_s


def _tally(candidate: Candidate, policy: Policy) -> Tally:
    """Silence is the freeze's concern, an operator's word nobody else's: causes alone count."""
    accepted = acceptable(_GANG, policy, breaker_open=False)
    gpus = usable = excluded = 0
    for position, causes in enumerate(candidate.causes):
        states = 0
        for cause in causes:
            states |= cause.state.bit
        if states & Health.NEW.bit:
            continue
        gpus += 1
        told = (candidate.allowed | candidate.denied) >> position & 1
        refused = states & ~Health.HEALTHY.bit & ~accepted
        if not refused:
            usable |= 1 << position
        elif not refused & ~_SOFT and not told:
            excluded |= 1 << position
    return Tally(candidate=candidate, gpus=gpus, usable=usable, excluded=excluded)


def _freezes(pool: _Pool, policy: Policy) -> bool:
    rules = policy.breaker
    return (
        pool.fell_silent >= rules.silent_nodes
        and pool.fell_silent > rules.silent_ratio * pool.nodes
    )


def _open_until_s(pool: _Pool, until_s: float | None, now_s: float, policy: Policy) -> float | None:
    """Until when the breaker is open; None: it is not."""
    rules = policy.breaker
    if until_s is not None and until_s <= now_s:
        until_s = None
    ratio = rules.open_ratio if until_s is None else rules.close_ratio
    much = pool.excluded > max(rules.open_gpus, ratio * pool.gpus)
    fast = pool.newly > max(rules.rate_nodes, rules.rate_ratio * pool.nodes)
    if not (much or fast):
        return until_s
    if until_s is None or until_s - now_s < rules.close_after_s:
        return now_s + RENEWED_WITH * rules.close_after_s
    return until_s
