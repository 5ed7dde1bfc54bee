"""What Prometheus reads of the signs. Labels are kinds, never names of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.controller.signs.signs import Signs
from scoring.conditions import Status
from scoring.model import BreakerState

_TRIPPED: Final = (BreakerState.OPEN, BreakerState.FROZEN)


class SignFigures(Collector):
    """All figures of one controller's signs, read when Prometheus asks."""

    def __init__(self, signs: Signs) -> None:
        self._signs = signs

    def collect(self) -> Iterator[Metric]:
        """Every family, those without a value too."""
        yield from self._of_outboxes()
        yield from self._of_breakers()
        yield from self._of_nodes()
        signs = self._signs
        yield GaugeMetricFamily(
            "surefoot_wakes_pending",
            "Pods that are to be touched so that kube-scheduler tries them again.",
            value=signs.wakes.called,
        )
        events = CounterMetricFamily(
            "surefoot_events_spared", "Events that were not sent, by reason.", labels=["reason"]
        )
        events.add_metric(["repeated"], signs.events.repeated)
        events.add_metric(["replaced"], signs.events.replaced)
        yield events

    def _of_outboxes(self) -> Iterator[Metric]:
        total = CounterMetricFamily(
            "surefoot_signs",
            "Signs by kind (wakes, conditions, taints, events, rejections) and outcome.",
            labels=["kind", "outcome"],
        )
        for outbox in self._signs.outboxes:
            total.add_metric([outbox.name, "sent"], outbox.sent)
            total.add_metric([outbox.name, "failed"], outbox.failed)
            total.add_metric([outbox.name, "dropped"], outbox.dropped)
        yield total

    def _of_breakers(self) -> Iterator[Metric]:
        pools = GaugeMetricFamily(
            "surefoot_breaker_pools", "Pools whose breaker is not closed.", labels=["state"]
        )
        trips = CounterMetricFamily(
            "surefoot_breaker_trips", "How often a breaker tripped.", labels=["state"]
        )
        now = self._signs.breakers.pools
        for state in _TRIPPED:
            pools.add_metric([state.value], now[state])
            trips.add_metric([state.value], self._signs.breakers.trips[state])
        yield from (pools, trips)

    def _of_nodes(self) -> Iterator[Metric]:
        conditions = GaugeMetricFamily(
            "surefoot_node_conditions",
            "Nodes by the status of their condition GpuHealthDegraded.",
            labels=["status"],
        )
        for status in Status:
            conditions.add_metric([status.value], self._signs.conditions.counts.get(status, 0))
        yield conditions
        taints = self._signs.taints
        nodes = GaugeMetricFamily(
            "surefoot_unfit_nodes",
            "Nodes that are unfit for every gang: all, those chosen for the taint (also where it is"
            " off), those that may not carry it.",
            labels=["part"],
        )
        nodes.add_metric(["all"], taints.unfit)
        nodes.add_metric(["chosen"], taints.chosen)
        nodes.add_metric(["withheld"], taints.withheld)
        yield nodes
