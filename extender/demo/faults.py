"""The script of the day: which GPU fails when and how, at seeded random places and times.

Nothing here knows of Surefoot or of schedulers: both runs meet the same faults. Times are seconds
since the start of the day. Trouble starts and ends early within a round of the scheduler, so that
agents have polled and published it before the round's placements (docs/demo.md, detection).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from extender.demo.fleet import Machine
from scoring.model import NodeName

ROUND_S: Final = 120.0
"""The scheduler works off its queue this often."""
ONSET_S: Final = (1.0, 44.0)
"""Part of a round in which trouble starts or ends: three polls of 15 s fit before its placements."""
REBOOT_S: Final = 480.0
"""A node is down for this long when it is rebooted."""
MINUTE_S: Final = 60.0
HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
SHORTEST_S: Final = 10 * MINUTE_S
"""Of a fault; a reboot must fit."""
SOONEST_S: Final = 6 * MINUTE_S
"""From one fault to what follows it: silence is known by then."""
FULL_FLEET_NODES: Final = 48
"""The fleet for which `STORIES` says how much happens in 24 hours."""


class Kind(StrEnum):
    """What goes wrong."""

    BUS_LOSS = "XID 79: off the bus"
    MEMORY_ERROR = "XID 48: double-bit error"
    LINK_ERROR = "XID 74: NVLink error"
    REMAP_PENDING = "row remap pending"
    LINKS_DOWN = "NVLinks down"
    THERMAL = "thermal slowdown"
    SILENCE = "agent silent"


class Repair(StrEnum):
    """What the people on duty do about it."""

    NOTHING = "nothing"
    RESET = "reset"
    REBOOT = "reboot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a kind of fault does, physically."""

    repair: Repair = Repair.NOTHING
    kills: bool = False
    """It ends the job that runs on the GPU, with an XID that the stock device plugin withdraws a
    GPU for."""
    speed_ratio: float = 1.0
    """How fast the GPU works meanwhile."""
    cuts_links: bool = False
    """The slowness is of the links: a pod that uses one GPU alone does not feel it."""


EFFECTS: Final = MappingProxyType(
    {
        Kind.BUS_LOSS: Effect(repair=Repair.REBOOT, kills=True),
        Kind.MEMORY_ERROR: Effect(repair=Repair.RESET, kills=True),
        Kind.LINK_ERROR: Effect(repair=Repair.RESET, kills=True),
        Kind.REMAP_PENDING: Effect(repair=Repair.RESET),
        Kind.LINKS_DOWN: Effect(speed_ratio=0.7, cuts_links=True),
        Kind.THERMAL: Effect(speed_ratio=0.6),
        Kind.SILENCE: Effect(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of one GPU, or the silence of one node's agent."""

    kind: Kind
    node: NodeName
    gpu: int | None
    """Index; None: the node's agent."""
    start_s: float
    end_s: float
    """Repaired, over, or the end of the day."""
    repaired: bool = True
    """Whether its repair (or nothing) ends it; else another fault takes over, or it lasts until the day ends."""

    @property
    def effect(self) -> Effect:
        """What it does."""
        return EFFECTS[self.kind]

    @property
    def rebooted(self) -> bool:
        """Whether a reboot of the node ends it."""
        return self.repaired and self.effect.repair is Repair.REBOOT

    def active(self, time_s: float) -> bool:
        """Whether it is there at this time."""
        return self.start_s <= time_s < self.end_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How often a kind of trouble starts, how long it lasts, and what may follow."""

    kind: Kind
    count: float
    """In `DAY_S` on `FULL_FLEET_NODES`."""
    lasts_h: tuple[float, float]
    then: Kind | None = None
    """What may come next on the same GPU ..."""
    then_share: float = 0.0
    """... with this probability ..."""
    then_after_h: tuple[float, float] = (0.0, 0.0)
    """... this long after it started (`within`) or was repaired."""
    within: bool = False
    takes_over: bool = False
    """What follows ends this one: the repair is then of both."""
    then_lasts_h: tuple[float, float] = (0.4, 1.0)


TO_THE_END_H: Final = (100.0, 100.0)
STORIES: Final = (
    # What returns from a repair fails again half of the time (NVSentinel #695): hence probation.
    # A board that falls off the bus twice stays out of service until it is replaced.
    Story(kind=Kind.BUS_LOSS, count=3, lasts_h=(0.6, 1.5), then=Kind.BUS_LOSS, then_share=0.5, then_after_h=(0.4, 2.0), then_lasts_h=TO_THE_END_H),
    Story(kind=Kind.MEMORY_ERROR, count=3, lasts_h=(0.4, 1.0), then=Kind.MEMORY_ERROR, then_share=0.6, then_after_h=(0.4, 2.5)),
    Story(kind=Kind.LINK_ERROR, count=2, lasts_h=(0.4, 1.0), then=Kind.LINK_ERROR, then_share=0.6, then_after_h=(0.4, 2.5)),
    # The bad row stays in use until the reset: the next access to it may be the uncorrectable one.
    Story(kind=Kind.REMAP_PENDING, count=4, lasts_h=(4.0, 9.0), then=Kind.MEMORY_ERROR, then_share=0.6, then_after_h=(0.7, 2.5), within=True, takes_over=True),
    Story(kind=Kind.LINKS_DOWN, count=5, lasts_h=(5.0, 11.0)),
    Story(kind=Kind.THERMAL, count=5, lasts_h=(5.0, 11.0)),
    # A node that cannot be watched is the one that overheats unseen.
    Story(kind=Kind.SILENCE, count=3, lasts_h=(1.5, 4.0), then=Kind.THERMAL, then_share=0.7, then_after_h=(0.15, 0.5), within=True, then_lasts_h=(2.0, 5.0)),
)  # fmt: skip


def script(machines: Sequence[Machine], seed: int, day_s: float = DAY_S) -> tuple[Fault, ...]:
    """The faults of one day, in order of their start. At least one of each kind."""
    rng = random.Random(f"faults {seed}")
    scale = len(machines) / FULL_FLEET_NODES * day_s / DAY_S
    stories = [s for s in STORIES for _ in range(max(1, round(s.count * scale)))]
    found: list[Fault] = []
    places = _places(machines, rng)
    for story in stories:
        node, gpu = next(place for place in places if _can(place[0], story.kind))
        start_s = _onset(rng.uniform(0.02, 0.7) * day_s, rng)
        found += _told(story, node, gpu, start_s, day_s, rng)
    return tuple(sorted(found, key=lambda f: (f.start_s, f.node, f.kind)))


def _places(machines: Sequence[Machine], rng: random.Random) -> Iterator[tuple[Machine, int]]:
    """GPUs at random: on every node one before any node has two, so that stories stay apart."""
    orders = {m.name: rng.sample(range(m.product.gpus), m.product.gpus) for m in machines}
    for turn in itertools.count():
        for machine in rng.sample(list(machines), len(machines)):
            order = orders[machine.name]
            yield machine, order[turn % len(order)]


def _can(machine: Machine, kind: Kind) -> bool:
    """Whether such a fault exists on this product: no NVLink on L40S, no row remapping on V100."""
    if kind in (Kind.LINK_ERROR, Kind.LINKS_DOWN):
        return machine.product.nvlinks > 0
    return kind is not Kind.REMAP_PENDING or machine.product.key != "v100"


def _onset(time_s: float, rng: random.Random) -> float:
    return time_s // ROUND_S * ROUND_S + rng.uniform(*ONSET_S)


def _told(
    story: Story, machine: Machine, gpu: int, start_s: float, day_s: float, rng: random.Random
) -> Iterator[Fault]:
    """The fault that a story begins with, and what follows."""
    hour_s = HOUR_S * day_s / DAY_S  # a short day is a fast one

    def later(since_s: float, hours: tuple[float, float], least_s: float) -> float:
        return _onset(since_s + max(least_s, rng.uniform(*hours) * hour_s), rng)

    end_s = later(start_s, story.lasts_h, SHORTEST_S)
    next_s = later(start_s if story.within else end_s, story.then_after_h, SOONEST_S)
    follows = rng.random() < story.then_share and next_s < day_s
    taken_over = follows and story.takes_over
    end_s = min(end_s, next_s) if taken_over else end_s
    place = None if story.kind is Kind.SILENCE else gpu
    yield _fault(story.kind, machine, place, (start_s, end_s), day_s, cured=not taken_over)
    if follows and story.then is not None:
        end_s = later(next_s, story.then_lasts_h, SHORTEST_S)
        yield _fault(story.then, machine, gpu, (next_s, end_s), day_s)


def _fault(
    kind: Kind,
    machine: Machine,
    gpu: int | None,
    span_s: tuple[float, float],
    day_s: float,
    *,
    cured: bool = True,
) -> Fault:
    start_s, end_s = span_s
    return Fault(
        kind=kind,
        node=machine.name,
        gpu=gpu,
        start_s=start_s,
        end_s=min(end_s, day_s),
        repaired=cured and end_s < day_s,
    )
