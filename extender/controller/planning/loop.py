"""The thread that plans while it leads.

A round looks at everything once: it plans anew if anything might make another plan, tells the cache,
and begins the writes that each gang needs next. It costs a fresh plan only when the standing ones do
not hold good, or a gang waits and the cluster changed. A plan that proceeds as planned is not made
again for each pod that is bound.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from extender.controller.cluster.view import ClusterView
from extender.controller.planning.acting import Actor
from extender.controller.planning.coverage import Coverage
from extender.controller.planning.ledger import Ledger
from extender.controller.planning.scene import Look, Scene
from extender.controller.planning.witness import Witness
from extender.kube.fence import Fence
from scoring.gangs import planning, recording
from scoring.gangs.denials import Denials
from scoring.gangs.evicting import Rest
from scoring.gangs.record import GangPlan
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.steps import overdue, steps
from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.planning.outcome import Outcome
from scoring.planning.values import Site

TICK_S: Final = 0.5
"""How often a round is made although nothing was heard: time alone lifts gates and wakes pods."""
COALESCE_S: Final = 0.01
"""Changes that come within this time after the first are one round."""
REPLAN_S: Final = 10.0
"""How often gangs that wait are planned anew although nothing changed: exclusions end, gangs starve."""
REST_RATIO: Final = 3.0
"""Planning takes at most one part in this and one of the time: what comes meanwhile waits."""

_log = structlog.get_logger("surefoot.controller")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the rounds came to, for metrics."""

    rounds: int = 0
    plans: int = 0
    plan_s: float = 0.0
    """Time spent on plans, together."""
    last_plan_s: float = 0.0
    overdue: int = 0
    """Gangs that run in part, and for too long."""
    problem: str | None = None
    """Why the last round failed."""


class Planning:
    """Plans and carries plans out. `start` it once, `close` it at the end."""

    def __init__(
        self,
        *,
        scene: Scene,
        view: ClusterView,
        ledger: Ledger,
        actor: Actor,
        witness: Witness,
        rules: GangRules,
        fence: Callable[[], Fence | None],
        ready: Callable[[], bool],
        acts: bool = True,
        clock: Callable[[], float] = time.monotonic,
        unix: Callable[[], float] = time.time,
    ) -> None:
        """`fence`: None while another leads. `ready`: whether everything was heard once. Without `acts`
        no pod is touched.
        """
        self.tally: Final = Tally()
        self._scene = scene
        self._view = view
        self._ledger = ledger
        self._actor = actor
        self._witness = witness
        self._rules = rules
        self._fence = fence
        self._ready = ready
        self._acts = acts
        self._clock = clock
        self._unix = unix
        self._term: int | None = None
        self._records: dict[GangKey, GangPlan] = {}
        self._said = False
        """Whether the cache was told anything in this term."""
        self._due = True
        """Whether something changed that may make another plan, since the last one."""
        self._rest_until_s = 0.0
        self._planned_s = -math.inf
        self._denials = Denials()
        self._coverage = Coverage()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="surefoot-planning", daemon=True)

    @property
    def records(self) -> Mapping[GangKey, GangPlan]:
        """What stands of each gang."""
        return self._records

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for what is on its way."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._actor.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._view.changes.wait(TICK_S):
                self._stop.wait(COALESCE_S)
            try:
                self.round()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
                _log.exception("planning_failed")
                self.tally.problem = f"{type(error).__name__}: {error}"
                self._due = True
                self._stop.wait(TICK_S)

    def round(self) -> None:
        """Look, and while leading plan if that is due, and begin the writes that are next."""
        fence = self._fence()
        term = fence.term if fence else None
        if term is None and self._term is not None:
            self._succeed(None, None)
        if not self._ready():
            return
        self._due |= bool(self._view.changes.take())
        look = self._scene.look(self._view.held())
        if look is None:
            return
        if term != self._term:
            self._succeed(term, look)
        self._witness.looked(look)
        if term is None:
            return
        gangs = self._gangs()
        self._record(gangs, self._outcomes(gangs, look), term)
        if self._acts:
            for gang in gangs:
                if record := self._records.get(gang.key):
                    self._actor.act(steps(gang, record, self._rules, self._unix()))
            self._actor.release(self._view.strays())
        self._count()

    def _gangs(self) -> Sequence[Gathered]:
        """What is planned. Where nobody acts on plans, they bind nobody either."""
        gangs = self._view.gangs()
        return gangs if self._acts else [replace(gang, hold=Hold.OFF) for gang in gangs]

    def _succeed(self, term: int | None, look: Look | None) -> None:
        """Go on with what the last leader left, or leave it to the next."""
        self._term, self._due, self._records, self._said = term, True, {}, False
        self._coverage.begin()
        self._witness.succeeded(term)
        if term is None or look is None:
            return
        fleet = look.picture.fleet
        ahead_s = fleet.now_s - self._unix()
        self._records = {
            key: replace(record, since_s=record.since_s - ahead_s)
            for key, record in fleet.plans.items()
        }
        self._denials = Denials()
        _log.info("leads", term=term, gangs=len(self._records))

    def _outcomes(self, gangs: Sequence[Gathered], look: Look) -> Mapping[GangKey, Outcome]:
        """Fresh plans, where they are due."""
        began_s, rooms = self._clock(), self._view.rooms()
        whole = self._coverage.whole(look, rooms.keys(), began_s)
        if not self._is_due(gangs, look):
            return {}
        if began_s < self._rest_until_s or not whole:
            self._due = True
            return {}
        site = Site(
            rooms=rooms,
            claims=tuple(self._view.claims()),
            exclusions=self._denials.exclusions().union(self._witness.exclusions(look.picture)),
        )
        found = planning.outcomes(look.picture, site, gangs, self._records, self._without)
        took_s = self._clock() - began_s
        self._due, self._planned_s = False, began_s
        self._rest_until_s = began_s + (1 + REST_RATIO) * took_s
        self.tally.plans += 1
        self.tally.plan_s += took_s
        self.tally.last_plan_s = took_s
        return found

    def _without(self, below: int) -> Rest:
        """What would be left without pods of a lower priority."""
        return Rest(held=self._view.held(below), rooms=self._view.rooms(below))

    def _is_due(self, gangs: Sequence[Gathered], look: Look) -> bool:
        """Whether another plan could come out."""
        fickle = False
        for gang in gangs:
            record = self._records.get(gang.key)
            if record is None or not recording.holds_good(gang, record):
                return True
            if gang.pending is None:
                continue
            if record.lack or any(seat.node is None for seat in record.seats.values()):
                fickle = True
            if any(not seat.bound and seat.node in look.changed for seat in record.seats.values()):
                return True
        late = self._clock() - self._planned_s >= REPLAN_S
        return fickle and (self._due or late or bool(look.changed))

    def _record(
        self, gangs: Sequence[Gathered], outcomes: Mapping[GangKey, Outcome], term: int
    ) -> None:
        before, now_s = self._records, self._unix()
        self._records = {}
        self._denials = self._denials.after(gangs, before, now_s)
        for gang in gangs:
            old, outcome = before.get(gang.key), outcomes.get(gang.key)
            known = old is not None and old.uid == gang.uid
            if outcome is None and not known and gang.pending is not None:
                continue  # its first plan is yet to be made
            new = recording.record(gang, outcome, old, term=term, now_s=now_s)
            self._records[gang.key] = new
            self._witness.planned(gang, old, new)
            self._witness.lasts(gang, new, now_s)
        if self._records != before or not self._said:
            self._said = True
            self._ledger.keep(gangs, self._records, term)

    def _count(self) -> None:
        self.tally.rounds += 1
        self.tally.problem = None
        now_s, records = self._unix(), self._records.values()
        self.tally.overdue = sum(overdue(record, self._rules, now_s) for record in records)
