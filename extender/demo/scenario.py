"""Fleet, faults and jobs of one seed: all that both runs share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from extender.demo.agents import health_of
from extender.demo.faults import DAY_S, script
from extender.demo.fleet import Machine, fleet
from extender.demo.jobs import Job, arrivals
from extender.demo.truth import Truth
from scoring.policy import DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One day, before anybody schedules it."""

    machines: tuple[Machine, ...]
    truth: Truth
    jobs: tuple[Job, ...]
    """In order of arrival."""
    seed: int
    day_s: float

    @property
    def gpus(self) -> int:
        """GPUs of the whole fleet."""
        return sum(machine.product.gpus for machine in self.machines)


def scenario(nodes: int, seed: int, day_s: float = DAY_S) -> Scenario:
    """The day of a seed. A short day is a fast one: what takes hours shrinks with it, probation
    included.
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
