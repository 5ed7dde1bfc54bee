"""What changed since somebody looked."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from scoring.gangs.gathering import GangId
from scoring.model import NodeName

MOST_NAMED: Final = 1 << 14
"""Gangs or nodes that are named. Where nobody takes them, all of them are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What may be otherwise now. More than really is, never less."""

    nodes: frozenset[NodeName] = frozenset()
    """Whose room or held GPUs changed, or that came or went."""
    gangs: frozenset[GangId] = frozenset()
    """Whose pods, group or owner changed. Where `pending` is equal before and after, nothing that
    planning depends on did."""
    pods: bool = False
    """Whether pods changed that were refused, are nominated, or wait at our gate outside a gang."""
    everything: bool = False
    """Too much changed to be named."""

    def __bool__(self) -> bool:
        return bool(self.nodes or self.gangs or self.pods or self.everything)


class Changes:
    """Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came = threading.Event()
        self._nodes: set[NodeName] = set()
        self._gangs: set[GangId] = set()
        self._pods = self._everything = False

    def note(
        self,
        *,
        nodes: Collection[NodeName] = (),
        gangs: Collection[GangId] = (),
        pods: bool = False,
    ) -> None:
        """Say that these changed."""
        if not (nodes or gangs or pods):
            return
        with self._lock:
            self._nodes.update(nodes)
            self._gangs.update(gangs)
            self._pods |= pods
            if max(len(self._nodes), len(self._gangs)) > MOST_NAMED:
                self._nodes, self._gangs, self._everything = set(), set(), True
            self._came.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a change; whether there is one."""
        return self._came.wait(seconds)

    def take(self) -> Changed:
        """All that changed since the last call."""
        with self._lock:
            found = Changed(
                nodes=frozenset(self._nodes),
                gangs=frozenset(self._gangs),
                pods=self._pods,
                everything=self._everything,
            )
            self._nodes, self._gangs = set(), set()
            self._pods = self._everything = False
            self._came.clear()
            return found
