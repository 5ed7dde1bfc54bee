"""The thread that plans while it leads.

A round looks at everything once: it plans anew if anything might make another plan, tells the cache,
and begins the writes that each gang needs next. It costs a fresh plan only when the standing ones do
not hold good, or a gang waits and the cluster changed. A plan that proceeds as planned is not made
again for each pod that is bound, and gangs of which nothing is new cost next to nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from extender.controller.cluster.occupancy import Rooms
from extender.controller.cluster.view import ClusterView
from extender.controller.planning.acting import Actor
from extender.controller.planning.coverage import Coverage
from extender.controller.planning.doubts import Doubts
from extender.controller.planning.faults import Faults
from extender.controller.planning.ledger import Ledger
from extender.controller.planning.scene import Look, Scene
from extender.controller.planning.tally import Tally
from extender.controller.planning.witness import Witness
from extender.kube.fence import Fence
from scoring.gangs import planning, recording, settling
from scoring.gangs.denials import Denials
from scoring.gangs.evicting import Rest
from scoring.gangs.record import GangPlan
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.steps import Step, Verb, overdue, steps
from scoring.gangs.unread import Unread
from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.planning.outcome import Outcome
from scoring.planning.values import Site

TICK_S: Final = 0.5
"""How often a round is made although nothing was heard: time alone lifts gates and wakes pods."""
COALESCE_S: Final = 0.01
"""Changes that come within this time after the first are one round ..."""
ROUND_RATIO: Final = 9.0
"""... or within so many times what the last round took, until the last write has ended: the writes of a
burst need the processor more than rounds do, which have nothing to add to them."""
MOST_TAKEN_S: Final = 0.03
"""A round counts as no longer than that, so that a nomination that was cleared is soon written again."""
REPLAN_S: Final = 10.0
"""How often gangs that wait are planned anew although nothing changed: exclusions end, gangs starve."""
READ_S: Final = 0.15
"""From a plan to the first lift at least: replicas read a change of the cache within tens of ms."""
EARLY_S: Final = 0.03
"""How soon it is looked again whether the cache has a plan."""
EVICT_S: Final = 60.0
"""From the eviction of one partial gang to that of another: what leaves may complete the next."""
REST_RATIO: Final = 3.0
"""Planning takes at most one part in this and one of the time: what comes meanwhile waits."""

_log = structlog.get_logger("surefoot.controller")


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
        unread: Callable[[], Sequence[Unread]] = tuple,
        acts: bool = True,
        clock: Callable[[], float] = time.monotonic,
        unix: Callable[[], float] = time.time,
    ) -> None:
        """`fence`: None while another leads. `ready`: whether everything was heard once, but for what is
        `unread`. Without `acts` no pod is touched.
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
        self._unread = unread
        self._acts = acts
        self._clock = clock
        self._unix = unix
        self._term: int | None = None
        self._records: Mapping[GangKey, GangPlan] = {}
        self._said = False
        """Whether the cache was told of the records as they are."""
        self._recorded: Mapping[GangKey, Gathered] = {}
        """The gangs as the records have them."""
        self._owed = True
        """Whether a plan must be made, as soon as that may be: it was due, and put off."""
        self._due = True
        """Whether something changed since the last plan that may give room to gangs that wait."""
        self._doubted: set[GangKey] = set()
        """The gangs whose standing plan may not do any more, and that are yet to be planned anew."""
        self._hushed: tuple[Sequence[Gathered], Sequence[Gathered]] = ((), ())
        """The gangs of the view, and what is planned of them where nobody acts on plans."""
        self._rooms: Rooms = {}
        """What the view said last of room beside GPUs."""
        self._rest_until_s = 0.0
        self._planned_s = -math.inf
        self._denials = Denials()
        self._early = False
        """Whether gates wait for the cache to have a plan."""
        self._evicted: tuple[GangKey | None, float] = None, -math.inf
        """The last gang of which members were evicted, and when."""
        self._coverage = Coverage()
        self._faults = Faults()
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
        self._actor.finished.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._actor.close()

    def _run(self) -> None:
        took_s = 0.0
        while not self._stop.is_set():
            if self._view.changes.wait(self._patience_s()):
                self._collect(took_s)
            began_s = self._clock()
            try:
                self.round()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
                _log.exception("planning_failed")
                self.tally.problem = f"{type(error).__name__}: {error}"
                self._owed = True
                self._stop.wait(TICK_S)
            else:
                self.tally.problem = None
            took_s = min(self._clock() - began_s, MOST_TAKEN_S)

    def _collect(self, took_s: float) -> None:
        """Let what comes within some time be one round; the end of the last write ends that time, too."""
        self._actor.finished.wait(max(COALESCE_S, ROUND_RATIO * took_s))
        self._actor.finished.clear()

    def _patience_s(self) -> float:
        """How long to wait for a change: not beyond the moment at which an owed plan may be made, or at
        which the cache may have a plan.
        """
        if self._early:
            return EARLY_S
        rest_s = self._rest_until_s - self._clock() if self._owed else 0.0
        return min(TICK_S, rest_s) if rest_s > 0 else TICK_S

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
        rooms = self._view.rooms()  # before gangs: who is bound meanwhile must not count twice
        gangs = self._gangs()
        self._heed(gangs)
        self._record(gangs, self._outcomes(gangs, look, rooms), term)
        if self._acts:
            self._actor.act(self._steps(gangs), self._view.strays())
        self._count(gangs)

    def _steps(self, gangs: Sequence[Gathered]) -> Iterator[Step]:
        """The writes that are next. Of gangs that are to be evicted one at a time is."""
        now_s, self._early = self._unix(), False
        for gang in gangs:
            found = self._undoubted(gang, now_s)
            if self._is_early(gang, found, now_s):
                self._early = True
                continue
            if all(step.verb is not Verb.EVICT for step in found) or self._may_evict(gang):
                yield from found

    def _undoubted(self, gang: Gathered, now_s: float) -> Sequence[Step]:
        """The steps that can be taken: what is let go cannot be gated again, so it waits for the plan
        that is owed.
        """
        record = self._records.get(gang.key)
        if record is None:
            return ()
        found = self._faults.attempt(gang.key, steps, gang, record, self._rules, now_s) or ()
        if gang.key not in self._doubted:
            return found
        return [step for step in found if step.verb is not Verb.LIFT]

    def _is_early(self, gang: Gathered, found: Sequence[Step], now_s: float) -> bool:
        """Whether these would be the first lifts of a gang whose plan a replica may not have read yet: one
        that still knows that the gang waits would refuse its members.
        """
        if all(step.verb is not Verb.LIFT for step in found):
            return False
        read = now_s - self._records[gang.key].since_s >= READ_S and self._ledger.told(gang.key)
        return not read and all(pod.gated for pod in gang.members)

    def _may_evict(self, gang: Gathered) -> bool:
        now_s, (key, since_s) = self._clock(), self._evicted
        if key != gang.key and now_s - since_s < EVICT_S:
            return False
        self._evicted = gang.key, now_s
        return True

    def _gangs(self) -> Sequence[Gathered]:
        """What is planned. Where nobody acts on plans, they bind nobody either."""
        gangs = self._view.gangs()
        if self._acts:
            return gangs
        if self._hushed[0] is not gangs:
            self._hushed = gangs, [replace(gang, hold=Hold.OFF) for gang in gangs]
        return self._hushed[1]

    def _succeed(self, term: int | None, look: Look | None) -> None:
        """Go on with what the last leader left, or leave it to the next."""
        self._term, self._owed, self._said, self._early = term, True, False, False
        self._records, self._recorded = {}, {}
        self._faults = Faults()
        self.tally.overdue = self.tally.failing = 0
        self._coverage.begin()
        self._witness.succeeded(term)
        self._actor.act(())
        if term is None or look is None:
            return
        fleet = look.picture.fleet
        self._records = {key: record.moved(-fleet.ahead_s) for key, record in fleet.plans.items()}
        self._denials = Denials()
        self._doubted = set(self._records)
        _log.info("leads", term=term, gangs=len(self._records))

    def _heed(self, gangs: Sequence[Gathered]) -> None:
        """Notice the seats that kube-scheduler did not grant. What is planned without a node now is
        planned anew.
        """
        before = self._denials.exclusions()
        pending = [gang for gang in gangs if gang.pending is not None]
        self._denials = self._denials.after(pending, self._records, self._unix())
        self._owed |= bool(self._denials.exclusions() - before)

    def _outcomes(
        self, gangs: Sequence[Gathered], look: Look, rooms: Rooms
    ) -> Mapping[GangKey, Outcome]:
        """Fresh plans, where they are due. That members are missing is told at no cost, so that a gang
        whose pods come one by one is not planned each time.
        """
        looked = partial(planning.unready, unread=self._unread(), refusals=self._actor.refused())
        unready = self._faults.outcomes("unready", looked, gangs)
        ready = [gang for gang in gangs if gang.pending is not None and gang.key not in unready]
        self._owed = self._is_due(ready, look, rooms)
        began_s = self._clock()
        covered = self._coverage.whole(look, rooms.keys(), began_s)
        if not self._owed or not covered or began_s < self._rest_until_s:
            return unready
        site = Site(
            rooms=rooms,
            claims=tuple(self._view.claims()),
            exclusions=self._denials.exclusions().union(self._witness.exclusions(look.picture)),
        )
        found = self._faults.outcomes(
            "plan",
            lambda sound: planning.outcomes(
                look.picture, site, sound, self._records, self._without
            ),
            [gang for gang in gangs if not recording.is_unjudged(unready.get(gang.key))],
        )
        took_s = self._clock() - began_s
        self._owed = self._due = False
        self._doubted = set()
        self._planned_s = began_s
        self._rest_until_s = began_s + (1 + REST_RATIO) * took_s
        self.tally.plans += 1
        self.tally.plan_s += took_s
        return {**unready, **found}

    def _without(self, below: int) -> Rest:
        """What would be left without pods of a lower priority."""
        return Rest(held=self._view.held(below), rooms=self._view.rooms(below))

    def _is_due(self, pending: Sequence[Gathered], look: Look, rooms: Rooms) -> bool:
        """Whether another plan could come out."""
        doubts = Doubts(self._records, self._recorded, look, rooms)
        self._doubted |= {
            gang.key for gang in pending if self._faults.attempt(gang.key, doubts.doubtful, gang)
        }
        self._doubted &= {gang.key for gang in pending}
        crowded = self._is_crowded(pending, rooms)
        if self._owed or self._doubted or crowded:
            return bool(pending)
        records = [self._records.get(gang.key) for gang in pending if gang.key not in self._faults]
        if None in records:
            return True
        fickle = bool(self._faults) or any(
            record.lack or any(seat.node is None for seat in record.seats.values())
            for record in records
            if record is not None
        )
        late = self._clock() - self._planned_s >= REPLAN_S
        return fickle and (self._due or late or bool(look.changed))

    def _is_crowded(self, pending: Sequence[Gathered], rooms: Rooms) -> bool:
        """Whether planned nodes have no room any more. The view tells it, be the cache away."""
        before, self._rooms = self._rooms, rooms
        return rooms is not before and settling.crowded(pending, self._records, rooms)

    def _record(
        self, gangs: Sequence[Gathered], outcomes: Mapping[GangKey, Outcome], term: int
    ) -> None:
        before, now_s = self._records, self._unix()
        records: dict[GangKey, GangPlan] = {}
        for gang in gangs:
            old, outcome = before.get(gang.key), outcomes.get(gang.key)
            if old and outcome is None and self._recorded.get(gang.key) is gang:
                records[gang.key] = old
                continue
            known = old is not None and old.uid == gang.uid
            if outcome is None and not known and gang.pending is not None:
                continue  # its first plan is yet to be made
            new = self._faults.attempt(
                gang.key, recording.record, gang, outcome, old, term=term, now_s=now_s
            )
            if new is not None:
                self._witness.planned(gang, old, new)
            if (stands := new or old) is not None:
                records[gang.key] = stands
        # At once: others read them, and a round that fails must not leave half of them.
        self._records = records
        self._recorded = {gang.key: gang for gang in gangs if gang.key in records}
        self._said &= records == before
        if not self._said:
            self._ledger.keep(gangs, records, term)
            self._said = True

    def _count(self, gangs: Sequence[Gathered]) -> None:
        self.tally.rounds += 1
        now_s, records = self._unix(), self._records
        late = [
            (gang, record)
            for gang in gangs
            if (record := records.get(gang.key)) and overdue(record, self._rules, now_s)
        ]
        self.tally.overdue = len(late)
        self._faults.keep(gangs)
        self.tally.failing = len(self._faults)
        self._witness.last(late, now_s)
