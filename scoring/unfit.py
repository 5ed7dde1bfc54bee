"""Which nodes are unfit for every gang, and which of them may carry a taint that says so.

The taint is for those who never ask Surefoot, as Kueue's topology-aware scheduling: it keeps single
pods away too, so a share of each pool is the most that may carry it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from scoring.health.staleness import breaker_of
from scoring.model import BreakerState, Need, NodeName, Taint, WorkClass
from scoring.picture import Picture
from scoring.reasons import Reason
from scoring.verdict import judge

TAINT: Final = Taint(key="surefoot.dev/unfit", effect="NoSchedule")

_HEALTH: Final = frozenset(
    {
        Reason.OVERRIDE_DENIED,
        Reason.GPU_LOST,
        Reason.GPU_FAILED,
        Reason.REBOOT_REQUIRED,
        Reason.RESET_REQUIRED,
        Reason.GPU_UNKNOWN,
        Reason.GPU_DEGRADED,
        Reason.GPU_UNMONITORED,
        Reason.GPU_PROBATION,
        Reason.GPU_SUSPECT,
        Reason.LINKS_IMPAIRED,
        Reason.NODE_SILENT,
    }
)
"""Reasons that last. Stale telemetry is back or silent soon, a new GPU is measured soon, and GPUs that
other pods hold are a matter of counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Which nodes are to carry the taint."""

    tainted: frozenset[NodeName]
    withheld: frozenset[NodeName]
    """Unfit, and not tainted: the share of their pool is used up, or its breaker is not closed."""


def unfit(picture: Picture, name: NodeName) -> bool:
    """Whether no gang may use the node, however few GPUs of it its members ask for. A node without a
    document is not: nobody knows.
    """
    found = picture.candidates.get(name)
    if found is None or name not in picture.fleet.nodes:
        return False
    counts = range(1, max(1, len(found.node.gpus)) + 1)
    return all(
        judge(found, Need(work=WorkClass.GANG, count=count), picture.policy).reason in _HEALTH
        for count in counts
    )


def marks(picture: Picture, unfit_ones: Iterable[NodeName], tainted: Collection[NodeName]) -> Marks:
    """Which of the `unfit_ones` are to carry the taint, given those that do: these keep it first."""
    label, fleet = picture.policy.pool_label, picture.fleet
    pools: dict[str, list[NodeName]] = {}
    for name in unfit_ones:
        pools.setdefault(fleet.nodes[name].labels.get(label, ""), []).append(name)
    sizes = _sizes(picture, pools)
    chosen: set[NodeName] = set()
    withheld: set[NodeName] = set()
    for pool, names in pools.items():
        most = max(1, math.floor(picture.policy.breaker.taint_ratio * sizes[pool]))
        breaker = breaker_of(fleet.nodes[names[0]], fleet, picture.policy)
        if breaker is not None and breaker.state is not BreakerState.CLOSED:
            most = 0
        keepers = sorted(name for name in names if name in tainted)
        others = sorted(name for name in names if name not in tainted)
        # A taint that stands goes when its node is fit, not when the share shrinks.
        room = max(0, most - len(keepers))
        chosen.update(keepers, others[:room])
        withheld.update(others[room:])
    return Marks(tainted=frozenset(chosen), withheld=frozenset(withheld))


def _sizes(picture: Picture, pools: Collection[str]) -> dict[str, int]:
    """How many nodes each of these pools has."""
    sizes = dict.fromkeys(pools, 0)
    if pools:
        for node in picture.fleet.nodes.values():
            pool = node.labels.get(picture.policy.pool_label, "")
            if pool in sizes:
                sizes[pool] += 1
    return sizes
