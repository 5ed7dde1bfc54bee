"""One run of the day: faults strike, jobs end, agents report, the scheduler works off its queue."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from extender.demo import scheduler
from extender.demo.cluster import Cluster, Placement
from extender.demo.faults import REBOOT_S, ROUND_S
from extender.demo.jobs import Job
from extender.demo.outcome import Outcome
from extender.demo.scenario import Scenario
from extender.demo.scheduler import Extender
from extender.demo.tally import Glance, Running, Tally
from extender.demo.truth import Truth
from scoring.model import NodeName


class Reports(Protocol):
    """Where agents report to. Answers of the extender rest on everything that was reported."""

    def health(self, time_s: float) -> bool:
        """Report the health of the fleet at this time; whether anything is new."""
        ...

    def started(self, job: Job, places: Sequence[Placement]) -> None:
        """The kubelets say which GPUs a job holds."""
        ...

    def ended(self, job: Job, places: Sequence[Placement]) -> None:
        """They are free again."""
        ...


class NoReports:
    """The run without Surefoot: nobody listens."""

    def health(self, time_s: float) -> bool:  # noqa: ARG002 - nobody listens
        """Nothing is new."""
        return False

    def started(self, job: Job, places: Sequence[Placement]) -> None:
        """Nobody listens."""

    def ended(self, job: Job, places: Sequence[Placement]) -> None:
        """Nobody listens."""


Watch = Callable[[Glance], None]
"""Told of each round."""
Ask = Callable[[Job, float], None]
"""Told of each gang before the scheduler tries it."""


class _Strike(NamedTuple):
    """Jobs are killed at this time, on one GPU or on a whole node."""

    at_s: float
    node: NodeName
    gpu: int | None


class Day:
    """The state of one run. `run` it once."""

    def __init__(self, plan: Scenario, extender: Extender | None, reports: Reports) -> None:
        self._plan = plan
        self._extender = extender
        self._reports = reports
        self._cluster = Cluster(plan.machines, plan.seed)
        self._tally = Tally(plan)
        self._strikes = _strikes(plan.truth)
        self._coming = deque(plan.jobs)
        self._queue: list[Job] = []
        self._stuck: set[str] = set()
        """Jobs that found no place since anything changed for the better."""
        self._tried: set[str] = set()
        """Jobs that ever found none."""
        self._running: dict[str, Running] = {}
        self._ends: list[tuple[float, str]] = []
        """A heap; jobs that were killed meanwhile are in it still."""

    def offered(self, job: Job) -> list[NodeName]:
        """The nodes that hold a member of `job` by count: those that the extender is asked about."""
        free = self._cluster.free_counts(job.product)
        return sorted(name for name, count in free.items() if count >= job.gpus)

    def run(self, watch: Watch | None = None, ask: Ask | None = None) -> Outcome:
        """Go through the day, round by round."""
        time_s = 0.0
        while time_s < self._plan.day_s:
            time_s += ROUND_S
            self._until(time_s)
            self._observe(time_s)
            self._schedule(time_s, ask)
            glance = self._tally.round(time_s, self._cluster.held, len(self._queue))
            if watch is not None:
                watch(glance)
        for running in self._running.values():
            self._tally.left(running, time_s)
        return self._tally.outcome()

    def _until(self, time_s: float) -> None:
        """What happens up to `time_s`, in its order."""
        while True:
            ends_s = self._ends[0][0] if self._ends else time_s + 1.0
            strikes_s = self._strikes[0].at_s if self._strikes else time_s + 1.0
            if min(ends_s, strikes_s) > time_s:
                return
            if ends_s <= strikes_s:
                self._end(*heapq.heappop(self._ends))
            else:
                self._kill(self._strikes.popleft())

    def _end(self, at_s: float, name: str) -> None:
        running = self._running.get(name)
        if running is not None and at_s >= running.start_s + running.job.duration_s:
            self._leave(running, at_s)

    def _kill(self, strike: _Strike) -> None:
        for name in list(self._cluster.holders(strike.node, strike.gpu)):
            running = self._running[name]
            self._queue.append(self._tally.killed(running, strike.at_s))
            self._leave(running, strike.at_s)

    def _leave(self, running: Running, at_s: float) -> None:
        self._tally.left(running, at_s)
        del self._running[running.job.name]
        self._cluster.release(running.places)
        self._reports.ended(running.job, running.places)
        self._stuck.clear()

    def _observe(self, time_s: float) -> None:
        """Kubernetes and the agents learn how things stand."""
        withdrawn, down = self._plan.truth.withdrawn(time_s), self._plan.truth.down(time_s)
        new = (withdrawn, down) != (self._cluster.withdrawn, self._cluster.down)
        self._cluster.withdrawn, self._cluster.down = withdrawn, down
        self._cluster.cut = {
            name: self._plan.truth.cut(name, time_s) for name in self._cluster.machines
        }
        if self._reports.health(time_s) or new:
            self._stuck.clear()

    def _schedule(self, time_s: float, ask: Ask | None) -> None:
        """Try each job of the queue, the oldest first; one that does not fit holds nothing up."""
        while self._coming and self._coming[0].arrival_s <= time_s:
            self._queue.append(self._coming.popleft())
        self._queue.sort(key=lambda job: (job.arrival_s, job.name))
        self._queue = [job for job in self._queue if not self._placed(job, time_s, ask)]

    def _placed(self, job: Job, time_s: float, ask: Ask | None) -> bool:
        if job.name in self._stuck:
            return False
        if ask is not None and job.is_gang:
            ask(job, time_s)
        tried = job.name in self._tried
        nodes = scheduler.chosen(job, self._cluster, self._extender, tried=tried)
        if nodes is None:
            self._stuck.add(job.name)
            self._tried.add(job.name)
            return False
        places = self._cluster.commit(job, nodes)
        self._running[job.name] = Running(job=job, places=places, start_s=time_s)
        heapq.heappush(self._ends, (time_s + job.duration_s, job.name))
        self._reports.started(job, places)
        self._tally.started(job, places, time_s)
        return True


def _strikes(truth: Truth) -> deque[_Strike]:
    """When jobs are killed: by a fault of their GPU, or by a reboot of their node."""
    kills = [
        _Strike(fault.start_s, fault.node, fault.gpu)
        for fault in truth.faults
        if fault.effect.kills
    ]
    reboots = [
        _Strike(fault.end_s - REBOOT_S, fault.node, None)
        for fault in truth.faults
        if fault.rebooted
    ]
    return deque(sorted(kills + reboots, key=lambda strike: strike.at_s))
