"""One run of the day: faults strike, jobs end, agents report, the scheduler works off its queue."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from extender.demo import losses, scheduler
from extender.demo.agents import health_of
from extender.demo.cluster import Cluster, Placement
from extender.demo.faults import DAY_S, REBOOT_S, ROUND_S, script
from extender.demo.fleet import Machine, fleet
from extender.demo.jobs import Job, arrivals
from extender.demo.outcome import Outcome, slowest_link_gbps
from extender.demo.scheduler import Extender
from extender.demo.truth import Truth
from scoring.model import NodeName
from scoring.policy import DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All that both runs share."""

    machines: tuple[Machine, ...]
    truth: Truth
    jobs: tuple[Job, ...]
    seed: int
    day_s: float


def scenario(nodes: int, seed: int, day_s: float = DAY_S) -> Scenario:
    """The fleet, the faults and the jobs of a seed. A short day is a fast one: what takes hours
    shrinks with it, probation included.
    """
    machines = fleet(nodes)
    faults = script(machines, seed, day_s)
    policy = replace(DEFAULT, probation_s=DEFAULT.probation_s * day_s / DAY_S)
    return Scenario(
        machines=machines,
        truth=Truth(faults, health_of(machines, faults, day_s, policy)),
        jobs=arrivals(machines, seed, day_s),
        seed=seed,
        day_s=day_s,
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job on its GPUs."""

    job: Job
    places: tuple[Placement, ...]
    start_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """How far a run is, for whoever watches."""

    time_s: float
    gangs_started: int
    gangs_on_degraded: int
    waiting: int
    utilisation_ratio: float
    gpu_hours_lost: float


Watch = Callable[[Glance], None]
Ask = Callable[[Job, float], None]
"""Told of each gang before the scheduler tries it."""


class Day:
    """The state of one run. `run` it once."""

    def __init__(self, plan: Scenario, extender: Extender | None, reports: Reports) -> None:
        self._plan = plan
        self._truth = plan.truth
        self._extender = extender
        self._reports = reports
        self._cluster = Cluster(plan.machines, plan.seed)
        self._gpus = sum(m.product.gpus for m in plan.machines)
        self._incidents = sorted(_incidents(plan.truth))
        self._coming = list(reversed(plan.jobs))
        self._queue: list[Job] = []
        self._stuck: set[str] = set()
        """Jobs that found no place since anything changed for the better."""
        self._tried: set[str] = set()
        self._running: dict[str, Running] = {}
        self._ends: list[tuple[float, str]] = []
        self._links_gbps: dict[str, float] = {}
        self._degraded: set[str] = set()
        self._impaired: set[str] = set()
        self._singles: set[str] = set()
        self._kills = 0
        self._lost_h = 0.0
        self._held_s = 0.0

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
            self._held_s += self._cluster.held * ROUND_S
            if watch is not None:
                watch(self._glance(time_s))
        for running in self._running.values():
            self._lost_h += self._slowed(running, time_s)
        return self._outcome(time_s)

    def _until(self, time_s: float) -> None:
        """What happens up to `time_s`, in its order."""
        while True:
            ends_s = self._ends[0][0] if self._ends else time_s + 1.0
            strikes_s = self._incidents[0][0] if self._incidents else time_s + 1.0
            if min(ends_s, strikes_s) > time_s:
                return
            if ends_s <= strikes_s:
                self._end(*heapq.heappop(self._ends))
            else:
                at_s, node, gpu = self._incidents.pop(0)
                for name in list(self._cluster.holders(node, None if gpu < 0 else gpu)):
                    self._kill(name, at_s)

    def _end(self, at_s: float, name: str) -> None:
        running = self._running.get(name)
        if running is None or at_s < running.start_s + running.job.duration_s:
            return  # it was killed meanwhile
        self._leave(running, at_s)

    def _kill(self, name: str, at_s: float) -> None:
        running = self._running[name]
        lost_h, left = losses.killed(running.job, at_s - running.start_s)
        self._lost_h += lost_h
        self._kills += running.job.is_gang
        self._leave(running, at_s)
        self._queue.append(left)

    def _leave(self, running: Running, at_s: float) -> None:
        self._lost_h += self._slowed(running, at_s)
        del self._running[running.job.name]
        self._cluster.release(running.places)
        self._reports.ended(running.job, running.places)
        self._stuck.clear()

    def _slowed(self, running: Running, end_s: float) -> float:
        faults = self._truth.of_gpus(running.places)
        return losses.slowed(running.job, faults, running.start_s, end_s)

    def _observe(self, time_s: float) -> None:
        """Kubernetes and the agents learn how things stand."""
        withdrawn, down = self._truth.withdrawn(time_s), self._truth.down(time_s)
        new = (withdrawn, down) != (self._cluster.withdrawn, self._cluster.down)
        self._cluster.withdrawn, self._cluster.down = withdrawn, down
        if self._reports.health(time_s) or new:
            self._stuck.clear()

    def _schedule(self, time_s: float, ask: Ask | None) -> None:
        while self._coming and self._coming[-1].arrival_s <= time_s:
            self._queue.append(self._coming.pop())
        self._queue.sort(key=lambda job: (job.arrival_s, job.name))
        waiting = []
        for job in self._queue:
            if job.name in self._stuck:
                waiting.append(job)
                continue
            if ask is not None and job.is_gang:
                ask(job, time_s)
            nodes = scheduler.chosen(
                job, self._cluster, self._extender, tried=job.name in self._tried
            )
            if nodes is None:
                self._stuck.add(job.name)
                self._tried.add(job.name)
                waiting.append(job)
            else:
                self._start(job, nodes, time_s)
        self._queue = waiting

    def _start(self, job: Job, nodes: Sequence[NodeName], time_s: float) -> None:
        places = self._cluster.commit(job, nodes)
        self._running[job.name] = Running(job=job, places=places, start_s=time_s)
        heapq.heappush(self._ends, (time_s + job.duration_s, job.name))
        self._reports.started(job, places)
        if not job.is_gang:
            self._singles.add(job.name)
            return
        cut = {place.node: self._truth.cut(place.node, time_s) for place in places}
        gbps = slowest_link_gbps(self._cluster.machines, cut, places)
        self._links_gbps.setdefault(job.name, gbps)
        if self._truth.unhealthy(places, time_s):
            self._degraded.add(job.name)
        if self._truth.impaired(places, time_s):
            self._impaired.add(job.name)

    def _glance(self, time_s: float) -> Glance:
        return Glance(
            time_s=time_s,
            gangs_started=len(self._links_gbps),
            gangs_on_degraded=len(self._degraded),
            waiting=len(self._queue),
            utilisation_ratio=self._cluster.held / self._gpus,
            gpu_hours_lost=self._lost_h,
        )

    def _outcome(self, time_s: float) -> Outcome:
        return Outcome(
            gangs_started=len(self._links_gbps),
            gangs_on_degraded=len(self._degraded),
            gangs_on_impaired=len(self._impaired),
            slowest_link_gbps_mean=statistics.fmean(self._links_gbps.values() or [0.0]),
            gpu_hours_lost=self._lost_h,
            singles_started=len(self._singles),
            gangs_killed=self._kills,
            utilisation_ratio=self._held_s / (self._gpus * time_s),
        )


def _incidents(truth: Truth) -> list[tuple[float, NodeName, int]]:
    """When jobs are killed: (time, node, GPU; -1 for all of the node, which reboots)."""
    kills = [
        (fault.start_s, fault.node, fault.gpu)
        for fault in truth.faults
        if fault.effect.kills and fault.gpu is not None
    ]
    reboots = [(fault.end_s - REBOOT_S, fault.node, -1) for fault in truth.faults if fault.rebooted]
    return kills + reboots
