"""What Prometheus reads of the leader's part of a controller: the election, gangs, writes to pods."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.controller.cluster.view import ClusterView
from extender.controller.planning.acting import Actor, Ending
from extender.controller.planning.loop import Planning
from extender.kube.election import Elector
from scoring.gangs.record import GangState
from scoring.gangs.steps import Verb


class GangFigures(Collector):
    """All figures, read from where they are kept when Prometheus asks."""

    def __init__(
        self, view: ClusterView, planning: Planning, actor: Actor, elector: Elector
    ) -> None:
        self._view = view
        self._planning = planning
        self._actor = actor
        self._elector = elector

    def collect(self) -> Iterator[Metric]:
        """Every family, those without a value too."""
        yield from self._of_election()
        yield from self._of_gangs()
        yield from self._of_writes()

    def _of_election(self) -> Iterator[Metric]:
        term = self._elector.status.term
        yield GaugeMetricFamily(
            "surefoot_controller_leads", "1 while this controller leads.", value=term is not None
        )
        yield GaugeMetricFamily(
            "surefoot_controller_term",
            "The term in which it leads; 0: it stands by.",
            value=term or 0,
        )

    def _of_gangs(self) -> Iterator[Metric]:
        gangs = self._view.gangs()
        waiting = sum(pod.gated for gang in gangs for pod in gang.members)
        yield GaugeMetricFamily(
            "surefoot_gang_gates_waiting",
            "Pods that our scheduling gate holds, as this controller sees them, leading or not.",
            value=waiting + len(self._view.strays()),
        )
        states = [record.state for record in self._planning.records.values()]
        found = GaugeMetricFamily(
            "surefoot_gangs", "Gangs that the leader plans, by state.", labels=["state"]
        )
        for state in GangState:
            found.add_metric([state.value], states.count(state))
        yield found
        tally = self._planning.tally
        yield GaugeMetricFamily(
            "surefoot_gangs_overdue",
            "Gangs that run in part, and for too long.",
            value=tally.overdue,
        )
        yield GaugeMetricFamily(
            "surefoot_gangs_failing",
            "Gangs that Surefoot itself fails on; the others are planned.",
            value=tally.failing,
        )
        yield CounterMetricFamily(
            "surefoot_gang_plans", "How often all pending gangs were planned.", value=tally.plans
        )
        yield CounterMetricFamily(
            "surefoot_gang_plan_seconds", "Time spent on that.", value=tally.plan_s
        )
        yield GaugeMetricFamily(
            "surefoot_gang_planning_works",
            "0 while the last round of planning failed.",
            value=tally.problem is None,
        )
        yield CounterMetricFamily(
            "surefoot_view_skipped",
            "Objects that could not be read for planning.",
            value=self._view.skips.count,
        )

    def _of_writes(self) -> Iterator[Metric]:
        writes = CounterMetricFamily(
            "surefoot_gang_writes",
            "Writes to pods of gangs, by verb and how they ended.",
            labels=["verb", "ending"],
        )
        for verb in Verb:
            for ending in Ending:
                count = self._actor.endings[verb, ending]
                writes.add_metric([verb.value, ending.value], count)
        yield writes
