"""A ledger while one poll is folded into it: opening, raising and closing causes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from scoring.health import damping
from scoring.health.breaches import Breach
from scoring.health.causes import CATALOGUE, counts_of
from scoring.health.damping import History, Penalty
from scoring.health.pattern import Incident
from scoring.health.record import Ledger, OpenCause
from scoring.model import Cause, Health, Scope
from scoring.policy import Policy


@dataclass(slots=True, kw_only=True)
class Draft:
    """The parts of a ledger, open for change."""

    policy: Policy
    open: dict[str, OpenCause]
    streaks: dict[str, int]
    incidents: tuple[Incident, ...]
    histories: dict[str, History]
    penalty: Penalty

    @classmethod
    def of(cls, ledger: Ledger, policy: Policy) -> Draft:
        """A draft that starts as `ledger`."""
        return cls(
            policy=policy,
            open=dict(ledger.open),
            streaks=dict(ledger.streaks),
            incidents=ledger.incidents,
            histories=dict(ledger.histories),
            penalty=ledger.penalty,
        )

    def ledger(self) -> Ledger:
        """The draft as a value."""
        return Ledger(
            open=MappingProxyType({id_: self.open[id_] for id_ in sorted(self.open)}),
            streaks=MappingProxyType({id_: self.streaks[id_] for id_ in sorted(self.streaks)}),
            incidents=self.incidents,
            histories=MappingProxyType({i: self.histories[i] for i in sorted(self.histories)}),
            penalty=self.penalty,
        )

    def history(self, cause: str) -> History:
        """What the cause did before."""
        return self.histories.get(cause, damping.FIRST)

    def enter(
        self,
        cause: str,
        state: Health,
        scope: Scope,
        time_s: float,
        evidence: str,
        *,
        linked: bool = False,
    ) -> None:
        """Open a cause that is not open."""
        history = self.history(cause).entered(time_s, self.policy)
        self.histories[cause] = history
        state = damping.escalated(state, history, self.policy)
        self.streaks.pop(cause, None)
        self.open[cause] = OpenCause(
            cause=Cause(
                id=cause, state=state, scope=scope, first_s=time_s, last_s=time_s, evidence=evidence
            ),
            peak=state,
            linked=linked,
        )
        if state >= Health.DEGRADED:
            self._penalise(cause, time_s)

    def enter_known(
        self, cause: str, time_s: float, evidence: str = "", *, state: Health | None = None
    ) -> None:
        """Open a cause of the catalogue that is not open."""
        spec = CATALOGUE[cause]
        self.enter(cause, spec.state if state is None else state, spec.scope, time_s, evidence)

    def raise_to(self, cause: str, state: Health, scope: Scope, time_s: float) -> None:
        """Make an open cause as severe as `state` at least; the wider scope stays."""
        was = self.open[cause]
        state = damping.escalated(state, self.history(cause), self.policy)
        if state >= was.cause.state:
            narrow = was.cause.scope.needs_peers and not scope.needs_peers
            kept = scope if narrow or state > was.cause.state else was.cause.scope
            self.open[cause] = replace(
                was, cause=replace(was.cause, state=state, scope=kept), peak=max(was.peak, state)
            )
        if was.peak < Health.DEGRADED <= state:
            self._penalise(cause, time_s)

    def show_again(self, breach: Breach, time_s: float) -> None:
        """An open cause that a sample shows again has the state that it shows now.

        FAILED stays, and so does what repairs that did not last have made of it.
        """
        was = self.open[breach.cause]
        state = damping.escalated(breach.state, self.history(breach.cause), self.policy)
        cause = replace(
            was.cause,
            state=was.cause.state if was.cause.state is Health.FAILED else state,
            scope=breach.scope,
            last_s=time_s,
            evidence=breach.evidence,
        )
        self.open[breach.cause] = replace(
            was, cause=cause, clean_polls=0, clean_s=None, repaired_s=None
        )
        self.raise_to(breach.cause, breach.state, breach.scope, time_s)

    def lose(self, time_s: float) -> None:
        """The GPU is not on the bus."""
        was = self.open.get("gpu.lost")
        if was is None:
            self.enter_known("gpu.lost", time_s, "the driver does not list it")
            return
        cause = replace(was.cause, last_s=time_s)
        self.open["gpu.lost"] = replace(was, cause=cause, repaired_s=None, clean_polls=0)

    def close(self, cause: str, time_s: float) -> None:
        """The cause is over; its older events are stale from now on."""
        del self.open[cause]
        self.histories[cause] = replace(self.history(cause), closed_s=time_s)

    def put_on_probation(self, time_s: float) -> None:
        """The GPU comes back from a repair: its term begins, or begins again."""
        if "probation" not in self.open:
            self.enter_known("probation", time_s)
        self._extend("probation", time_s + self.policy.probation_s)

    def _extend(self, cause: str, until_s: float) -> None:
        term = self.open[cause]
        self.open[cause] = replace(term, until_s=max(until_s, term.until_s or until_s))

    def _penalise(self, cause: str, time_s: float) -> None:
        if not counts_of(cause) or "flap.failed" in self.open:
            return
        flap = self.policy.flap
        grown = self.penalty.grown(time_s, self.policy)
        if grown is self.penalty:
            return
        self.penalty = grown
        failed_s = grown.reached_s(flap.failed_at, time_s, self.policy)
        if failed_s is not None:
            self.enter_known("flap.failed", time_s, self._sum_at(failed_s))
        reached_s = grown.reached_s(flap.probation_at, time_s, self.policy)
        if reached_s is not None:
            if "flap" not in self.open:
                self.enter_known("flap", time_s, self._sum_at(reached_s))
            # From the end of the slot, whichever of its entries came first.
            self._extend("flap", reached_s + self.policy.incident_gap_s + flap.probation_for_s)

    def _sum_at(self, time_s: float) -> str:
        return f"penalty {self.penalty.at(time_s, self.policy):.3g}"
