"""Decision records: enough to say later what was asked, what was known, and what was answered.

A record is cheap to make on the request path; what costs (digest, counts, the runner-up) or may
block (the log) is left to the thread that ships it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec
import structlog

from extender.config.model import Mode
from extender.webhook.answers import Decision
from extender.webhook.memo import Memo
from scoring import ranking
from scoring.model import Ask, Health, NodeName
from scoring.reasons import Reason

KEPT: Final = 1024
"""kube-scheduler offers pods of one kind much the same nodes: few sets, each of them often."""

log = structlog.get_logger()
_digests: Memo[str] = Memo(KEPT)
_strangers: Memo[int] = Memo(KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One decision."""

    id: str
    verb: str
    at_s: float
    """Unix time of this replica: for people, nothing is ordered by it."""
    took_s: float
    mode: Mode
    ask: Ask
    names: frozenset[NodeName]
    decision: Decision
    generation: int | None
    """Of the snapshot; None where there was none."""
    now_s: float | None
    """The snapshot's time: with the generation it fixes the answer."""
    policy: str
    """Digest of the policy."""

    def tell(self) -> bytes:
        """Log the decision in one line, and give the record as JSON."""
        ask, decision = self.ask, self.decision
        log.info(
            "decision",
            id=self.id,
            verb=self.verb,
            namespace=ask.namespace,
            pod=ask.name,
            gang=ask.gang.key if ask.gang else None,
            verdict=decision.outcome.value,
            reason=decision.main_reason,
            names=len(self.names),
            passed=len(decision.passed),
            observed=self.mode is Mode.OBSERVE,
        )
        return self.encode()

    def encode(self) -> bytes:
        """The record as JSON."""
        return msgspec.json.encode(self.fields())

    def fields(self) -> dict[str, Any]:
        """The record as JSON has it."""
        best = self._best(2)
        return {
            "id": self.id,
            "at": datetime.fromtimestamp(self.at_s, UTC).isoformat(timespec="milliseconds"),
            "verb": self.verb,
            "mode": self.mode.value,
            "verdict": self.decision.outcome.value,
            "ask": ask_fields(self.ask),
            "names": len(self.names),
            "namesDigest": names_digest(self.names),
            "passed": len(self.decision.passed),
            "generation": self.generation,
            "now": self.now_s,
            "policy": self.policy,
            "counts": {reason.value: count for reason, count in self._counts().items()},
            "best": best[0] if best else None,
            "runnerUp": best[1] if len(best) > 1 else None,
            "tookMs": round(self.took_s * 1000, 3),
        }

    def _counts(self) -> Counter[Reason]:
        """How many of the offered nodes each reason refuses."""
        decision = self.decision
        if decision.ranking is None or decision.tally:
            return decision.tally
        count = ranking.reasons(decision.ranking, self.names)
        if decision.unreported is not None:
            count[decision.unreported] += _strangers.get(_difference, self.names, decision.known)
        return +count

    def _best(self, count: int) -> list[dict[str, Any]]:
        found, passed = self.decision.ranking, self.decision.passed
        if found is None:
            return []
        if self.decision.narrowed:
            best = list(islice(passed, count))
        else:
            best = found.first(frozenset(passed), count)
        return [{"node": name, "rank": round(found.ranks.get(name, 0.0), 6)} for name in best]


def _difference(names: frozenset[NodeName], known: frozenset[NodeName]) -> int:
    return len(names - known)


def names_digest(names: frozenset[NodeName]) -> str:
    """Sixteen hex digits that say which nodes were offered, whatever their order: a sum, because
    to sort thousands of names costs more than the decision.
    """
    return _digests.get(_digest, names)


def _digest(names: frozenset[NodeName]) -> str:
    return f"{sum(map(_mark, names)) % 2**64:016x}"


@lru_cache(maxsize=1 << 17)
def _mark(name: NodeName) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest())


def ask_fields(ask: Ask) -> dict[str, Any]:
    """An ask as JSON has it, in records and explanations."""
    gang = ask.gang
    return {
        "namespace": ask.namespace,
        "pod": ask.name,
        "uid": ask.uid,
        "work": ask.need.work.value,
        "resource": ask.need.resource or None,
        "kind": ask.need.kind.value,
        "count": ask.need.count,
        "gang": None
        if gang is None
        else {"key": gang.key, "convention": gang.convention.value, "min": gang.min},
        "allow": _states(ask.need.allow),
        "deny": _states(ask.need.deny),
        "preemptible": ask.need.preemptible,
        "narrowable": ask.narrowable,
        "nominated": ask.nominated,
        "notes": list(ask.notes),
    }


def _states(states: frozenset[Health]) -> list[str]:
    return [state.name for state in sorted(states)]
