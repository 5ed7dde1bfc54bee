"""The work of the day: gangs and single jobs with seeded random sizes, times and durations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from extender.demo.faults import DAY_S, HOUR_S
from extender.demo.fleet import PRODUCTS, Machine, Product

GANG_LOAD: Final = 0.56
"""Share of each product's GPU hours that gangs ask for; singles ask for `SINGLE_LOAD` of all."""
SINGLE_LOAD: Final = 0.11
GANG_HOURS: Final = (0.75, 3.25)
SINGLE_HOURS: Final = (0.5, 4.0)
LAST_ARRIVAL: Final = 0.8
"""Of the day: what comes is to be started before the day ends."""

GANGS: Final = (
    # members, GPUs of each, weight
    (2, 8, 4),
    (3, 8, 2),
    (2, 4, 4),
    (4, 4, 3),
    (3, 2, 3),
    (4, 2, 2),
    (2, 2, 3),
)
"""Shapes of gangs; a product gets those that its nodes can hold."""
SMALLEST_GANG: Final = 4
"""GPUs in all; it is allowed whatever the size of the fleet."""
SINGLES: Final = ((1, 5), (2, 3), (4, 2))
"""GPUs of single jobs, and weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A gang (two members or more) or a single pod."""

    name: str
    members: int
    gpus: int
    """Of each member."""
    arrival_s: float
    duration_s: float
    """Left to do; of a job that was interrupted, since its last checkpoint."""
    product: str | None = None
    """Node label that it selects; None: any."""

    @property
    def is_gang(self) -> bool:
        """Whether its members work in lockstep."""
        return self.members > 1

    @property
    def total_gpus(self) -> int:
        """Over all members."""
        return self.members * self.gpus

    def left(self, duration_s: float) -> Job:
        """The same job with this much to do."""
        return replace(self, duration_s=duration_s)


def arrivals(machines: Sequence[Machine], seed: int, day_s: float = DAY_S) -> tuple[Job, ...]:
    """The jobs of one day, in order of arrival."""
    rng = random.Random(f"jobs {seed}")
    gangs = [gang for product in PRODUCTS for gang in _gangs(product, machines, rng, day_s)]
    singles = _singles(sum(m.product.gpus for m in machines), rng, day_s)
    return tuple(sorted((*gangs, *singles), key=lambda job: (job.arrival_s, job.name)))


def _gangs(
    product: Product, machines: Sequence[Machine], rng: random.Random, day_s: float
) -> Iterator[Job]:
    """Gangs for one product until they ask for its share, none larger than a quarter of it."""
    pool = sum(product.gpus for m in machines if m.product == product)
    shapes = [
        shape
        for shape in GANGS
        if shape[1] <= product.gpus and shape[0] * shape[1] <= max(pool / 4, SMALLEST_GANG)
    ]
    asked_s, number = 0.0, 0
    while shapes and asked_s < GANG_LOAD * pool * day_s:
        members, gpus, _ = rng.choices(shapes, [shape[2] for shape in shapes])[0]
        job = Job(
            name=f"gang-{product.key}-{number:03d}",
            members=members,
            gpus=gpus,
            arrival_s=rng.uniform(0.0, LAST_ARRIVAL * day_s),
            duration_s=rng.uniform(*GANG_HOURS) * HOUR_S * day_s / DAY_S,
            product=product.label,
        )
        asked_s += job.total_gpus * job.duration_s
        number += 1
        yield job


def _singles(gpus_total: int, rng: random.Random, day_s: float) -> Iterator[Job]:
    asked_s, number = 0.0, 0
    while asked_s < SINGLE_LOAD * gpus_total * day_s:
        (gpus,) = rng.choices([s[0] for s in SINGLES], [s[1] for s in SINGLES])
        job = Job(
            name=f"single-{number:03d}",
            members=1,
            gpus=gpus,
            arrival_s=rng.uniform(0.0, LAST_ARRIVAL * day_s),
            duration_s=rng.uniform(*SINGLE_HOURS) * HOUR_S * day_s / DAY_S,
        )
        asked_s += job.total_gpus * job.duration_s
        number += 1
        yield job
