"""What came of one run of the day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.demo.cluster import Placement
from extender.demo.fleet import Machine
from scoring.model import NodeName
from scoring.rings import mask_of, ring


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of one run. A gang that was started again after a fault counts once."""

    gangs_started: int
    gangs_on_degraded: int
    """With a GPU among those drawn that was not HEALTHY when the gang started."""
    gangs_on_impaired: int
    """Of these, with one that was broken or slow at that moment, not only on probation."""
    slowest_link_gbps_mean: float
    """Over gangs, at their first start."""
    gpu_hours_lost: float
    singles_started: int
    gangs_killed: int
    """Kills of running gangs."""
    utilisation_ratio: float

    def summary(self) -> dict[str, float]:
        """The figures that `--json` prints."""
        return {
            "gangs_started": self.gangs_started,
            "gangs_on_degraded": self.gangs_on_degraded,
            "slowest_link_gbps_mean": round(self.slowest_link_gbps_mean, 2),
            "gpu_hours_lost": round(self.gpu_hours_lost, 2),
        }


def slowest_link_gbps(
    machines: Mapping[NodeName, Machine],
    cut: Mapping[NodeName, frozenset[int]],
    places: Sequence[Placement],
) -> float:
    """The slowest link that a gang waits for: the worst of its members' rings, each within its node.

    The network between nodes is the same in both runs and left out. Infinity where every member has
    one GPU.
    """
    return min(
        (
            ring(machines[p.node].links(cut.get(p.node, frozenset())), mask_of(p.gpus)).gbps
            for p in places
        ),
        default=math.inf,
    )


def percentile_ms(latencies_s: Sequence[float], share: float) -> float:
    """The latency below which this share of the calls stayed, in ms; 0 without calls."""
    if not latencies_s:
        return 0.0
    ordered = sorted(latencies_s)
    return 1000.0 * ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def json_line(
    with_surefoot: Outcome, without: Outcome, filter_latencies_s: Sequence[float]
) -> dict[str, Any]:
    """The one line of `--json`."""
    return {
        "with": with_surefoot.summary(),
        "without": without.summary(),
        "filter_ms": {
            "p50": round(percentile_ms(filter_latencies_s, 0.5), 2),
            "p99": round(percentile_ms(filter_latencies_s, 0.99), 2),
        },
    }
