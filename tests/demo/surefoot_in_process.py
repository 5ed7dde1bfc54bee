"""Surefoot without processes: the demo's reports and questions answered by the scoring itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from extender.demo import documents
from extender.demo.agents import Causes
from extender.demo.cluster import Placement
from extender.demo.jobs import Job
from extender.demo.scenario import Scenario
from extender.wire.asks import ask_of
from extender.wire.pods import Pod
from scoring import picture, rank
from scoring.model import Allocation, Fleet, Node, NodeName
from scoring.picture import Picture
from scoring.policy import DEFAULT
from scoring.ranking import Ranking

NARROW = 32


class InProcess:
    """Reports and extender of one run, in simulated time throughout."""

    def __init__(self, plan: Scenario) -> None:
        self._plan = plan
        self._machines = {machine.name: machine for machine in plan.machines}
        self._nodes: dict[NodeName, Node] = {}
        self._allocations: dict[NodeName, dict[str, Allocation]] = {n: {} for n in self._machines}
        self._said: dict[NodeName, tuple[Mapping[int, Causes], frozenset[int], int]] = {}
        self._time_s = 0.0
        self._picture: Picture | None = None
        self._rankings: dict[object, Ranking] = {}

    def health(self, time_s: float) -> bool:
        """Take in what the agents would publish."""
        self._time_s = time_s
        self._changed()
        truth, new = self._plan.truth, False
        for name, machine in self._machines.items():
            silent_s = self._silent_s(name)
            causes, cut, _ = self._said.get(name, ({}, frozenset(), 0))
            if not silent_s:
                causes = {
                    gpu: found
                    for gpu in range(machine.product.gpus)
                    if (found := truth.causes(name, gpu, time_s))
                }
                cut = truth.cut(name, time_s)
            limits_s = (DEFAULT.stale_after_s, DEFAULT.unknown_after_s)
            view = (causes, cut, sum(silent_s >= limit_s for limit_s in limits_s))
            if self._said.get(name) != view:
                value = documents.node(machine, causes, cut, float).value
                assert isinstance(value, Node)
                self._nodes[name], self._said[name], new = value, view, True
        return new

    def started(self, job: Job, places: Sequence[Placement]) -> None:
        """Keep who holds what."""
        for place in places:
            value = documents.allocation(job, place, self._machines[place.node]).value
            assert isinstance(value, Allocation)
            self._allocations[place.node][value.uid] = value
        self._changed()

    def ended(self, job: Job, places: Sequence[Placement]) -> None:
        """Forget it."""
        for place in places:
            found = documents.allocation(job, place, self._machines[place.node]).value
            assert isinstance(found, Allocation)
            del self._allocations[place.node][found.uid]
        self._changed()

    def filter(self, pod: Mapping[str, Any], names: Sequence[NodeName]) -> list[NodeName]:
        """The best few of the fit ones."""
        ranks = self._ranking(pod).ranks
        fit = [name for name in names if name in ranks]
        if not ask_of(msgspec.convert(pod, Pod), DEFAULT).narrowable:
            return fit
        return sorted(fit, key=lambda name: (-ranks[name], name))[:NARROW]

    def prioritize(
        self, pod: Mapping[str, Any], names: Sequence[NodeName]
    ) -> Mapping[NodeName, int]:
        """0..10 for each."""
        found = self._ranking(pod)
        return {name: rank.points(found.ranks[name]) for name in names}

    def _changed(self) -> None:
        self._picture = None
        self._rankings.clear()

    def _silent_s(self, name: NodeName) -> float:
        since_s = self._plan.truth.silent_since_s(name, self._time_s)
        return 0.0 if since_s is None else self._time_s - since_s

    def _ranking(self, pod: Mapping[str, Any]) -> Ranking:
        need = ask_of(msgspec.convert(pod, Pod), DEFAULT).need
        if self._picture is None:
            self._picture = picture.picture(self._fleet(), DEFAULT)
        if need not in self._rankings:
            self._rankings[need] = picture.ranking_of(self._picture, need)
        return self._rankings[need]

    def _fleet(self) -> Fleet:
        return Fleet(
            generation=0,
            now_s=self._time_s,
            nodes=dict(self._nodes),
            seen_s={name: self._time_s - self._silent_s(name) for name in self._nodes},
            allocations={
                name: tuple(held.values()) for name, held in self._allocations.items() if held
            },
            gangs={},
            overrides={},
            breakers={},
        )
