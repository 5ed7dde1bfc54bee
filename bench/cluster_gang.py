"""How long one large gang takes from its first create to its last binding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from asking import Json
from cluster_binding import GATE, PODS, Binding
from cluster_stage import Stage, tell
from cluster_surefoot import Running, surefoot
from cluster_variants import Variant
from cluster_volley import Created, Volley
from cluster_writes import Write
from e2e.pods import pod
from e2e.schedulers import Scheduler
from fleet import GPUS

WARM_UP: Final = 20
CREATED_WITHIN_S: Final = 1.0
"""Slower creation would hide how slow the scheduler is: the run is void."""
RETRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the controller did for one gang."""

    writes: Sequence[Write]
    """Those to its members."""
    figures: Mapping[str, float]
    """By how much its own counters grew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One gang, bound whole."""

    took_s: float
    created: Created
    nodes: Sequence[str]
    failed: int
    """Attempts of kube-scheduler that found no node."""
    told: Told | None
    """None: without Surefoot."""


class Gangs:
    """Runs them one after the other on one stage, and leaves it without pods."""

    def __init__(self, stage: Stage, members: int) -> None:
        self._stage = stage
        self._members = members
        self._binding = Binding(stage.cluster.api)

    def run(self, variant: Variant, name: str) -> Run | None:
        """One gang by a fresh kube-scheduler and, where the variant has it, a fresh Surefoot.

        None: creating the members took too long each time.

        Raises:
            RuntimeError: members that Surefoot judged are on nodes with a sick GPU.
        """
        with ExitStack() as stack:
            stack.callback(self._binding.clear)
            beside = stack.enter_context(surefoot(self._stage, name)) if variant.judged else None
            log = self._stage.directory / f"{name}.log"
            config = variant.config(beside.url if beside else "")
            scheduler = Scheduler(self._stage.cluster, config, log, verbosity=0)
            stack.callback(scheduler.kill)
            scheduler.start()
            self._timed(scheduler, beside, f"{name}-warm", WARM_UP)
            for attempt in range(1 + RETRIES):
                found = self._timed(scheduler, beside, f"{name}-{attempt}", self._members)
                if found is not None:
                    self._check(found, variant, name)
                    return found
        return None

    def _check(self, found: Run, variant: Variant, name: str) -> None:
        sick = self._stage.sick(found.nodes)
        if sick and variant.judged:
            raise RuntimeError(f"{name}: {sick} members are where Surefoot lets none go")
        tell(
            f"{name}: {found.took_s:.2f} s, members created in {found.created.took_s:.2f} s,"
            f" {found.failed} attempts failed, {sick} members on nodes with a sick GPU"
        )

    def _timed(
        self, scheduler: Scheduler, beside: Running | None, gang: str, members: int
    ) -> Run | None:
        """None: creating the members took too long."""
        bodies = _bodies(gang, members, gated=beside is not None)
        names = frozenset(body["metadata"]["name"] for body in bodies)
        failed = _failed(scheduler)
        figures = beside.figures() if beside else {}
        with Volley(self._stage.cluster.plane) as volley:
            created = volley.create(PODS, bodies)
        if created.took_s > CREATED_WITHIN_S:
            tell(f"{gang}: void, members created in {created.took_s:.2f} s")
            self._binding.clear()
            return None
        self._binding.wait_until_bound(scheduler)
        found = Run(
            took_s=self._binding.bound_s(names) - created.first_s,
            created=created,
            nodes=tuple(self._binding.nodes().values()),
            failed=_failed(scheduler) - failed,
            told=_told(beside, names, figures) if beside else None,
        )
        self._binding.clear()
        return found


def _bodies(gang: str, members: int, *, gated: bool) -> list[Json]:
    gates = [GATE] if gated else []
    return [
        pod(f"{gang}-{number}", gpus=GPUS, gang=gang, size=members, schedulingGates=gates)
        for number in range(members)
    ]


def _failed(scheduler: Scheduler) -> int:
    return scheduler.attempts("unschedulable") + scheduler.attempts("error")


def _told(beside: Running, names: Collection[str], before: Mapping[str, float]) -> Told:
    return Told(
        writes=[
            each
            for each in beside.writes.all()
            if each.name in names and each.resource.startswith("pods")
        ],
        figures={
            name: now - before.get(name, 0.0)
            for name, now in beside.figures().items()
            if now != before.get(name, 0.0)
        },
    )
