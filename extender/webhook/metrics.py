"""What Prometheus reads of one replica. docs/metrics.md lists every name.

No label is a node, pod or GPU: the fleet's own gauges belong to the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

LATENCY_BUCKETS_S: Final = tuple(0.0005 * 2**i for i in range(14))
"""From half a millisecond to four seconds."""


class _Borrowed(Collector):
    """A counter that is kept elsewhere and only shown here."""

    def __init__(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        self._name, self._help, self._read = name, help_text, read

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily(self._name, self._help, value=self._read())


class Metrics:
    """The metrics of one webhook, in a registry of its own."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "surefoot_request_duration_seconds",
            "Time from the whole body to the whole answer, by verb and HTTP status.",
            ["verb", "code"],
            buckets=LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        self.decisions = Counter(
            "surefoot_decisions_total",
            "Decisions by verb, verdict and, where nothing passed, the reason of most nodes.",
            ["verb", "verdict", "reason"],
            registry=self.registry,
        )
        build = Gauge("surefoot_build_info", "Always 1.", ["version"], registry=self.registry)
        build.labels(version).set(1)

    def watch(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """A gauge that is read when Prometheus asks."""
        Gauge(name, help_text, registry=self.registry).set_function(read)

    def count(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """A counter that somebody else keeps, read when Prometheus asks."""
        self.registry.register(_Borrowed(name, help_text, read))

    def page(self) -> bytes:
        """The page in Prometheus' text form."""
        return generate_latest(self.registry)
