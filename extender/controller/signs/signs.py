"""All signs of one leader, in one object: told of each change of the fleet, and ticked in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from extender.config.model import Mode, UnknownNodes
from extender.controller.signs.breakers import Breakers
from extender.controller.signs.conditions import Conditions
from extender.controller.signs.events import Events, Target
from extender.controller.signs.lessons import Lessons
from extender.controller.signs.owners import Owners
from extender.controller.signs.ports import BreakerSink, CacheWriter, KubeWriter, View
from extender.controller.signs.taints import Taints
from extender.controller.signs.wakes import Wakes
from scoring.model import GangKey, NodeName, Rejection
from scoring.picture import Picture


class Signs:
    """What the leader says to the outside.

    In `observe` mode only the cache is kept: breakers and rejections. Who does not lead says nothing.
    `start` it once, `close` it at the end; ten ticks a second are enough. Safe for many threads, and
    no call waits for a server.
    """

    def __init__(
        self,
        *,
        view: View,
        kube: KubeWriter,
        cache: CacheWriter,
        sink: BreakerSink,
        home: Target,
        mode: Mode,
        unknown_nodes: UnknownNodes,
        taint: bool,
        planned: Callable[[], Collection[GangKey]],
        told: Callable[[], Collection[GangKey]] = frozenset,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`home`: what stands for Surefoot itself, as its Lease. `planned`: the gangs whose members
        the planning loop wakes. `told`: those that it tells of. `clock`: monotonic seconds. `wall`: Unix seconds, for what the
        API server is told.
        """
        self._enforces = mode is Mode.ENFORCE
        self._clock = clock
        self._lock = threading.Lock()
        self._term: int | None = None
        self._picture: Picture | None = None
        self._fresh = False
        self.events: Final = Events(kube, clock, wall)
        self.wakes: Final = Wakes(view, kube, unknown_nodes.admits, planned, wall)
        self.conditions: Final = Conditions(view, kube, self.events, wall)
        self.taints: Final = Taints(view, kube, on=taint)
        self.owners: Final = Owners(view, self.events, told)
        self.breakers: Final = Breakers(sink, self.events, home, self._leading)
        self.lessons: Final = Lessons(cache, view, self.events, self._leading)
        self.outboxes: Final = (
            self.wakes.outbox,
            self.conditions.outbox,
            self.taints.outbox,
            self.events.outbox,
            self.lessons.outbox,
        )

    @property
    def alive(self) -> bool:
        """Whether all of its threads run."""
        return all(outbox.alive for outbox in self.outboxes)

    def start(self) -> None:
        """Be ready to speak."""
        for outbox in self.outboxes:
            outbox.start()

    def close(self) -> None:
        """Fall silent for good."""
        self.rest()
        for outbox in self.outboxes:
            outbox.close()

    def lead(self, term: int) -> None:
        """Speak from now on, as the leader of `term`."""
        with self._lock:
            self._forget()
            self._term = term
            self.events.act(acting=self._enforces)

    def rest(self) -> None:
        """Another leads: say nothing more."""
        with self._lock:
            self._term = None
            self._forget()
            self.events.act(acting=False)

    def on_fleet(
        self, old: Picture | None, new: Picture, changed: Collection[NodeName] | None
    ) -> None:
        """The fleet is `new` now, which differs from `old` in the nodes `changed` at most, those that
        time changed (`picture.due`) among them; None: in any.

        To be told of every Fleet that the reader hands out, whoever leads: time passes with them.
        """
        with self._lock:
            self._picture = new
            if self._term is None or not self._enforces:
                return
            if self._fresh:
                # What changed between two leaders nobody has heeded.
                old, changed, self._fresh = None, None, False
            self.wakes.fleet_changed(old, new, changed, self._clock())
            self.conditions.fleet_changed(changed)
            self.taints.fleet_changed(changed)

    def tick(self) -> None:
        """Say what is due."""
        with self._lock:
            picture, now_s = self._picture, self._clock()
            if picture is None or self._term is None:
                return
            self.breakers.tick(picture, now_s)
            self.lessons.tick(picture, now_s)
            if not self._enforces:
                return
            if self._fresh:
                self._fresh = False
                self.wakes.fleet_changed(None, picture, None, now_s)
            self.wakes.tick(picture, now_s)
            self.owners.tick(now_s)
            self.conditions.tick(picture, now_s)
            self.taints.tick(picture, now_s)
            self.events.tick()

    def learn(self) -> Sequence[Rejection]:
        """Take in what nodes failed until now; of all that was learnt, what no Fleet shows yet."""
        with self._lock:
            if self._picture is not None and self._term is not None:
                self.lessons.tick(self._picture, self._clock())
            return self.lessons.untold

    def _forget(self) -> None:
        self._fresh = True
        for each in (
            self.wakes,
            self.owners,
            self.conditions,
            self.taints,
            self.breakers,
            self.lessons,
        ):
            each.forget()

    def _leading(self) -> int:
        """The term; of nobody who leads it is one that the cache refuses."""
        return -1 if self._term is None else self._term
