"""What Prometheus reads of a controller. docs/metrics.md lists every name.

Labels are kinds and reasons, never names of objects.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.controller.publisher import Publisher
from extender.controller.source import Source
from extender.controller.wanted import KINDS, Wanted
from extender.kube.reflector import Reflector
from extender.kube.status import Restart

_NEVER_S: Final = float("inf")


class MirrorFigures(Collector):
    """What is reflected and mirrored, and all else of every controller, read from where they are kept when Prometheus asks."""

    def __init__(
        self,
        version: str,
        sources: Sequence[Source],
        reflectors: Sequence[Reflector[Any]],
        wanted: Wanted,
        publisher: Publisher,
    ) -> None:
        self._version = version
        self._sources = sources
        self._reflectors = reflectors
        self._wanted = wanted
        self._publisher = publisher

    def collect(self) -> Iterator[Metric]:
        """Every family, those without a value too."""
        yield from self._of_kube()
        yield from self._of_cache()
        build = GaugeMetricFamily("surefoot_build_info", "Always 1.", labels=["version"])
        build.add_metric([self._version], 1)
        yield build

    def _of_kube(self) -> Iterator[Metric]:
        silence = GaugeMetricFamily(
            "surefoot_kube_silence_seconds",
            "Since the API server last said anything of this kind.",
            labels=["kind"],
        )
        relists = CounterMetricFamily(
            "surefoot_kube_lists", "Lists that came through, by kind.", labels=["kind"]
        )
        restarts = CounterMetricFamily(
            "surefoot_kube_watch_restarts",
            "Watches and lists that did not go on, by kind and reason.",
            labels=["kind", "reason"],
        )
        skipped = CounterMetricFamily(
            "surefoot_kube_skipped", "Objects that cannot be told, by kind.", labels=["kind"]
        )
        unlisted = GaugeMetricFamily(
            "surefoot_kube_unlisted",
            "1 while no list of this kind ever came through, and the last try failed.",
            labels=["kind"],
        )
        now_s = time.monotonic()
        unreadable = {source.reflector.name: source.mirror.skipped for source in self._sources}
        for reflector in (*(source.reflector for source in self._sources), *self._reflectors):
            name, status = reflector.name, reflector.status
            silence_s = status.silence_s(now_s)
            silence.add_metric([name], _NEVER_S if silence_s is None else silence_s)
            unlisted.add_metric([name], status.barred is not None)
            relists.add_metric([name], status.lists)
            skipped.add_metric([name], status.skipped + unreadable.get(name, 0))
            for reason in Restart:
                restarts.add_metric([name, reason.value], reflector.restarts[reason])
        yield from (silence, unlisted, relists, restarts, skipped)

    def _of_cache(self) -> Iterator[Metric]:
        documents = GaugeMetricFamily(
            "surefoot_mirror_documents",
            "Documents that the cache is to hold, by kind.",
            labels=["kind"],
        )
        for kind in KINDS:
            documents.add_metric([kind.value], self._wanted.count(kind))
        yield documents
        status = self._publisher.status
        writes = CounterMetricFamily(
            "surefoot_mirror_writes", "Documents written and removed.", labels=["outcome"]
        )
        writes.add_metric(["written"], status.written)
        writes.add_metric(["removed"], status.removed)
        yield writes
        yield CounterMetricFamily(
            "surefoot_mirror_fenced",
            "How often the cache had seen a leader of a higher term.",
            value=status.fenced,
        )
        yield GaugeMetricFamily(
            "surefoot_mirror_pending",
            "Documents yet to be written.",
            value=self._publisher.pending(),
        )
        yield GaugeMetricFamily(
            "surefoot_mirror_lag_seconds",
            "How long the oldest of them waits.",
            value=self._publisher.lag_s(),
        )
        yield GaugeMetricFamily(
            "surefoot_store_connected",
            "1 while the cache takes writes.",
            value=float(status.connected),
        )


class Metrics:
    """The page of one controller."""

    def __init__(self, *collectors: Collector) -> None:
        self._registry = CollectorRegistry()
        for collector in collectors:
            self._registry.register(collector)

    def page(self) -> bytes:
        """The page in Prometheus' text form."""
        return generate_latest(self._registry)
