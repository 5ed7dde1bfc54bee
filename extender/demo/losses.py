"""GPU hours lost: the whole model, the same for both runs.

A gang works in lockstep and saves a checkpoint every `CHECKPOINT_S`. Whatever kills one member loses
what all of them did since the last checkpoint, and `RESTART_S` to come back. A slow GPU, or one
whose links are down, slows all GPUs of its job for as long as it lasts. Single jobs likewise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from extender.demo.faults import HOUR_S, MINUTE_S, Fault
from extender.demo.jobs import Job

CHECKPOINT_S: Final = 30 * MINUTE_S
RESTART_S: Final = 10 * MINUTE_S


def killed(job: Job, ran_s: float) -> tuple[float, Job]:
    """GPU hours that are lost when `job` is killed after `ran_s`, and the job that is left to do.

    What is left includes the restart, which is lost time too.
    """
    since_s = ran_s % CHECKPOINT_S
    lost_h = (since_s + RESTART_S) * job.total_gpus / HOUR_S
    return lost_h, job.left(job.duration_s - (ran_s - since_s) + RESTART_S)


def slowed(job: Job, faults: Iterable[Fault], start_s: float, end_s: float) -> float:
    """GPU hours that the faults of a job's GPUs cost it between `start_s` and `end_s`."""
    slow = [
        (max(fault.start_s, start_s), min(fault.end_s, end_s), fault.effect.speed_ratio)
        for fault in faults
        if fault.effect.speed_ratio < 1.0 and not (fault.effect.cuts_links and job.total_gpus == 1)
    ]
    edges_s = sorted({edge for begin_s, over_s, _ in slow for edge in (begin_s, over_s)})
    lost_s = 0.0
    for begin_s, over_s in itertools.pairwise(edges_s):
        ratios = [ratio for first, last, ratio in slow if first <= begin_s and over_s <= last]
        lost_s += (over_s - begin_s) * (1.0 - min(ratios, default=1.0))
    return lost_s * job.total_gpus / HOUR_S
