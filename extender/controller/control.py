"""A controller: reflectors that fill the wanted state, a publisher that writes it, and its pages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from extender.controller.metrics import Metrics
from extender.controller.mirrors import NodeMirror, PodMirror, Told
from extender.controller.pages import Check, Pages
from extender.controller.publisher import Publisher
from extender.controller.source import Source
from extender.controller.wanted import Wanted
from extender.kube.client import Client
from extender.kube.reflector import Reflector
from extender.kube.settings import KubeSettings
from extender.kube.status import Timing
from extender.store.connect import StoreSettings
from extender.store.writer import Writer

PATHS = (("/api/v1/pods", PodMirror), ("/api/v1/nodes", NodeMirror))


class Controller:
    """Mirrors one cluster into one cache. `start` it once, `close` it at the end.

    Two of them side by side are harmless: both want the same bytes, and what stands is not written.
    """

    def __init__(
        self,
        kube: KubeSettings,
        store: StoreSettings,
        bind: tuple[str, int],
        version: str,
        *,
        timing: Timing | None = None,
    ) -> None:
        """Listen on `bind`, and do nothing else yet.

        Raises:
            BindError: the address cannot be had.
        """
        wanted, writer = Wanted(), Writer(store)
        self._sources = tuple(
            _source(path, kind(wanted, writer.ids), kube, timing) for path, kind in PATHS
        )
        self._wanted = wanted
        self._publisher = Publisher(
            writer, wanted, self._sources, term=lambda: 0, outranked=lambda _: None
        )
        self.metrics: Final = Metrics(version, self._sources, wanted, self._publisher)
        self._pages = Pages(*bind, lives=self._lives, ready=self._ready, metrics=self.metrics.page)

    @property
    def address(self) -> str:
        """Where its pages are."""
        return self._pages.address

    @property
    def sources(self) -> Sequence[Source]:
        """One of each kind."""
        return self._sources

    def start(self) -> None:
        """Start everything."""
        self._pages.start()
        self._publisher.start()
        for source in self._sources:
            source.reflector.start()

    def close(self) -> None:
        """Stop everything."""
        for source in self._sources:
            source.reflector.close()
        self._publisher.close()
        self._pages.close()

    def _lives(self) -> Iterator[Check]:
        for name, alive in (
            ("publisher", self._publisher.alive),
            *((source.reflector.name, source.reflector.alive) for source in self._sources),
        ):
            yield Check(name=name, good=alive, told="runs" if alive else "has ended")

    def _ready(self) -> Iterator[Check]:
        now_s = time.monotonic()
        for source in self._sources:
            status = source.reflector.status
            silence_s = status.silence_s(now_s)
            heard = "never heard" if silence_s is None else f"heard {silence_s:.0f}s ago"
            told = f"{'synced' if status.synced else 'not synced yet'}, {heard}"
            told += f": {status.problem}" if status.problem else ""
            yield Check(name=source.reflector.name, good=status.synced, told=told)
        status_of_cache = self._publisher.status
        good = status_of_cache.connected
        yield Check(
            name="cache",
            good=good,
            told="takes writes" if good else status_of_cache.problem or "not asked yet",
        )
        settled, lag_s = self._wanted.settled(), self._wanted.lag_s()
        told = f"{lag_s:.1f}s" if settled else "not all of the first lists is written yet"
        yield Check(name="lag", good=settled, told=told)


def _source(
    path: str, mirror: PodMirror | NodeMirror, kube: KubeSettings, timing: Timing | None
) -> Source:
    reflector: Reflector[Told] = Reflector(Client(kube), path, mirror, timing=timing)
    return Source(reflector, mirror)
