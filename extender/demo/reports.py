"""The agents' way into the cache: node documents, stamps and allocations.

The day passes thousands of times faster than the server's clock, by which Surefoot tells how old a
sample is. So the age of a sample is carried over, not its time: a node that is heard is stamped now,
and one that has been silent for n simulated seconds is stamped n seconds ago, whenever it crosses a
limit of the policy. Nobody but the demo's clock writes for a silent node: its document stays as it
was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from extender.demo import documents
from extender.demo.agents import Causes
from extender.demo.cluster import Placement
from extender.demo.fleet import Machine
from extender.demo.jobs import Job
from extender.demo.scenario import Scenario
from extender.demo.scheduler import RESOURCE, pod_uid
from extender.store.documents import Document
from extender.store.schema import Kind
from extender.store.writer import Writer
from scoring.model import NodeName
from scoring.policy import DEFAULT

STAMP_EVERY_S: Final = 2.0
"""Of real time: how often the nodes that are heard are stamped anew."""

_View = tuple[tuple[tuple[int, Causes], ...], frozenset[int], int]
"""Open causes by GPU, GPUs whose links are down, limits of staleness that were crossed."""


class CacheReports:
    """Reports of the whole fleet into one cache. `settle` brings what was reported to Surefoot."""

    def __init__(self, plan: Scenario, writer: Writer, wait: Callable[[], None]) -> None:
        """`wait` returns once Surefoot's picture holds everything that was written."""
        self._plan = plan
        self._writer = writer
        self._wait = wait
        self._said: dict[NodeName, _View] = {}
        self._documents: dict[NodeName, Document] = {}
        self._allocations: dict[str, Document | None] = {}
        """To be written; None: to be removed."""
        self._dirty = False
        self._stamped_s = time.monotonic()
        self._machines = {machine.name: machine for machine in plan.machines}

    def health(self, time_s: float) -> bool:
        """Publish every node whose state differs from what was said of it."""
        new = [m for m in self._plan.machines if self._news(m, time_s)]
        for machine in new:
            silent_s = self._silent_s(machine.name, time_s)
            self._writer.put([self._documents[machine.name]], sampled_s_ago=silent_s)
        self._dirty = self._dirty or bool(new)
        self._keep_fresh(time_s)
        return bool(new)

    def started(self, job: Job, places: Sequence[Placement]) -> None:
        """Write the job's allocations with the next `settle`."""
        for place in places:
            found = documents.allocation(job, place, self._machines[place.node])
            self._allocations[found.id] = found

    def ended(self, job: Job, places: Sequence[Placement]) -> None:
        """Remove them."""
        for place in places:
            self._allocations[f"{pod_uid(job, place.member)}/{RESOURCE}"] = None

    def settle(self) -> None:
        """Write what is left to write, and wait until Surefoot has seen it."""
        if not (self._dirty or self._allocations):
            return
        for key, document in self._allocations.items():
            if document is None:
                self._writer.delete(Kind.ALLOCATION, key)
        self._writer.put([each for each in self._allocations.values() if each is not None])
        self._allocations.clear()
        self._dirty = False
        self._wait()

    def _silent_s(self, node: NodeName, time_s: float) -> float:
        since_s = self._plan.truth.silent_since_s(node, time_s)
        return 0.0 if since_s is None else time_s - since_s

    def _news(self, machine: Machine, time_s: float) -> bool:
        """Whether there is something new to say of a node; its document is then up to date."""
        name, truth = machine.name, self._plan.truth
        silent_s = self._silent_s(name, time_s)
        causes, cut, _ = self._said.get(name, ((), frozenset(), 0))
        if not silent_s:
            causes = tuple(
                (gpu, found)
                for gpu in range(machine.product.gpus)
                if (found := truth.causes(name, gpu, time_s))
            )
            cut = truth.cut(name, time_s)
        limits_s = (DEFAULT.stale_after_s, DEFAULT.unknown_after_s)
        view = (causes, cut, sum(silent_s >= limit_s for limit_s in limits_s))
        if self._said.get(name) == view:
            return False
        if self._said.get(name, view)[:2] != view[:2] or name not in self._documents:
            shift_s = time.time() - time_s
            self._documents[name] = documents.node(
                machine, dict(causes), cut, lambda at_s: shift_s + at_s
            )
        self._said[name] = view
        return True

    def _keep_fresh(self, time_s: float) -> None:
        if time.monotonic() - self._stamped_s < STAMP_EVERY_S:
            return
        heard = [name for name in self._machines if not self._silent_s(name, time_s)]
        self._writer.stamp(heard)
        self._stamped_s = time.monotonic()
