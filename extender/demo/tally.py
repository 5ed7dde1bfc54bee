"""What a run comes to, counted while it runs and scored against the truth."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from extender.demo import losses
from extender.demo.cluster import Placement
from extender.demo.jobs import Job
from extender.demo.outcome import Outcome, slowest_link_gbps
from extender.demo.scenario import Scenario


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


class Tally:
    """The figures of one run."""

    def __init__(self, plan: Scenario) -> None:
        self._plan = plan
        self._machines = {machine.name: machine for machine in plan.machines}
        self._links_gbps: dict[str, float] = {}
        self._degraded: set[str] = set()
        self._impaired: set[str] = set()
        self._singles: set[str] = set()
        self._kills = 0
        self._lost_h = 0.0
        self._ratios: list[float] = []

    def started(self, job: Job, places: Sequence[Placement], time_s: float) -> None:
        """A job was given these GPUs."""
        if not job.is_gang:
            self._singles.add(job.name)
            return
        truth = self._plan.truth
        cut = {place.node: truth.cut(place.node, time_s) for place in places}
        self._links_gbps.setdefault(job.name, slowest_link_gbps(self._machines, cut, places))
        if truth.unhealthy(places, time_s):
            self._degraded.add(job.name)
        if truth.impaired(places, time_s):
            self._impaired.add(job.name)

    def left(self, running: Running, time_s: float) -> None:
        """A job has left its GPUs, or the day is over; whatever was slow meanwhile cost it."""
        faults = self._plan.truth.of_gpus(running.places)
        self._lost_h += losses.slowed(running.job, faults, running.start_s, time_s)

    def killed(self, running: Running, time_s: float) -> Job:
        """A fault killed a job; what of it is left to do."""
        lost_h, left = losses.killed(running.job, time_s - running.start_s)
        self._lost_h += lost_h
        self._kills += running.job.is_gang
        return left

    def round(self, time_s: float, held: int, waiting: int) -> Glance:
        """A round is over: GPUs that jobs hold, jobs that wait."""
        self._ratios.append(held / self._plan.gpus)
        return Glance(
            time_s=time_s,
            gangs_started=len(self._links_gbps),
            gangs_on_degraded=len(self._degraded),
            waiting=waiting,
            utilisation_ratio=self._ratios[-1],
            gpu_hours_lost=self._lost_h,
        )

    def outcome(self) -> Outcome:
        """The figures at the end."""
        return Outcome(
            gangs_started=len(self._links_gbps),
            gangs_on_degraded=len(self._degraded),
            gangs_on_impaired=len(self._impaired),
            slowest_link_gbps_mean=statistics.fmean(self._links_gbps.values() or [0.0]),
            gpu_hours_lost=self._lost_h,
            singles_started=len(self._singles),
            gangs_killed=self._kills,
            utilisation_ratio=statistics.fmean(self._ratios),
        )
