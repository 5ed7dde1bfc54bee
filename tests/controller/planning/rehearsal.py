"""The planning loop by hand: rounds, time, and what is observed come from the test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cluster_objects
import pytest
from clocks import Clock
from cluster_objects import Json
from kubes import ApiServer
from machines import dgx_h100
from strategies import fleet

from extender.config.model import Mode, UnknownNodes
from extender.controller.cluster.nodes import seen as seen_node
from extender.controller.cluster.pods import PodReader
from extender.controller.cluster.shapes import POD
from extender.controller.cluster.values import Seen
from extender.controller.cluster.view import ClusterView
from extender.controller.objects import NODE
from extender.controller.planning.acting import Actor
from extender.controller.planning.ledger import Ledger
from extender.controller.planning.loop import Planning
from extender.controller.planning.scene import Scene
from extender.controller.planning.witness import Witness
from extender.controller.signs.breakers import RuledBreakers
from extender.controller.signs.events import Target
from extender.controller.signs.signs import Signs
from extender.controller.wanted import Wanted
from extender.kube.fence import Fence
from extender.kube.writing import Writer as KubeWriter
from extender.store.connect import StoreSettings
from extender.store.writer import Writer
from scoring.gangs.rules import GATE, GangRules
from scoring.model import Cause, ClusterNode, Fleet, GangKey, Health, Node, NodeName
from scoring.policy import DEFAULT

GPU = "nvidia.com/gpu"
SICK = (Cause(id="xid.79", state=Health.RESET_REQUIRED),)


class Rehearsal:
    """A loop that nobody runs but the test. Its writes go to an API server without pods."""

    def __init__(self, api: ApiServer, store: StoreSettings, folder: Path) -> None:
        self.rules = GangRules()
        self.clock = Clock()
        self.plan_s = 0.0
        """How long each plan takes."""
        self.fence: Fence | None = Fence(1)
        self.ready = True
        self.view = ClusterView(DEFAULT, self.rules)
        self.scene = Scene(DEFAULT)
        self.wanted = Wanted()
        self._kube = KubeWriter(api.settings(folder), Fence(1))
        self._cache = Writer(store)
        self.signs = Signs(
            view=self.view,
            kube=self._kube,
            cache=self._cache,
            sink=RuledBreakers(self.wanted),
            home=Target(kind="Lease", name="surefoot"),
            mode=Mode.ENFORCE,
            unknown_nodes=UnknownNodes.SINGLE,
            taint=False,
            planned=frozenset,
            clock=self.clock,
            wall=self.clock,
        )
        self._nodes: dict[NodeName, Node] = {}
        self._fleet: Fleet | None = None
        self._version = 100
        self._bodies: dict[str, Json] = {}
        self.planning = Planning(
            scene=self.scene,
            view=self.view,
            ledger=Ledger(self.wanted),
            actor=Actor(self._kube, self.view.fold, threads=1),
            witness=Witness(self.signs, self._keys),
            rules=self.rules,
            fence=lambda: self.fence,
            ready=lambda: self.ready,
            clock=self.clock,
            unix=self.clock,
        )

    def _keys(self) -> list[GangKey]:
        """Asked for with each plan: what a plan costs in time, it costs here."""
        self.clock.pass_s(self.plan_s)
        return []

    def close(self) -> None:
        """End it."""
        self.planning.close()
        self._kube.close()
        self._cache.close()

    # --- what is observed ------------------------------------------------------------------------

    def node(self, name: str, *, sick: bool = False) -> None:
        """A node of 8 GPUs as its agent and the API server tell of it now."""
        body = cluster_objects.node(name)
        body["status"]["allocatable"]["pods"] = "110"
        self.view.put_node(NodeName(name), seen_node(NODE.decode(cluster_objects.raw(body)[1])))
        self._nodes[NodeName(name)] = dgx_h100(name=name, causes={0: SICK} if sick else {})
        self.hear(name)

    def hear(self, *changed: str, **more: Any) -> None:
        """A fleet of all nodes, `changed` in these."""
        units = {GPU: 8}
        cluster = {
            name: ClusterNode(name=name, labels={}, capacity=units, allocatable=units)
            for name in self._nodes
        }
        found = replace(fleet(*self._nodes.values()), cluster=cluster, **more)
        first = self._fleet is None
        self._fleet = found
        self.scene.hear(found, None if first else frozenset(map(NodeName, changed)))

    def member(self, name: str, *, size: int = 2, gpus: int = 8, **spec: Any) -> str:
        """A pod `gang-index` at our gate. Its name."""
        gates = {} if "nodeName" in spec else {"schedulingGates": [{"name": GATE}]}
        body = cluster_objects.pod(name, gpus, **{"node": None, **gates, **spec})
        labels = {GATE: name.rpartition("-")[0], f"{GATE}-size": str(size)}
        body["metadata"]["labels"] = labels
        self._bodies[name] = body
        return self.show(name)

    def gang(self, name: str, count: int = 2, **more: Any) -> list[str]:
        """All members of one."""
        return [self.member(f"{name}-{at}", size=count, **more) for at in range(count)]

    def show(
        self, name: str, *, node: str | None = None, gated: bool = False, **status: Any
    ) -> str:
        """A pod as a watch shows it now, on `node` if it is bound; `gated`: our gate is still there."""
        self._version += 1
        body = self._bodies[name]
        body["metadata"]["resourceVersion"] = str(self._version)
        body["status"] = {"phase": "Pending", **status}
        if node:
            body["spec"]["nodeName"] = node
        if (node or status) and not gated:
            body["spec"].pop("schedulingGates", None)
        kept = PodReader(DEFAULT, self.rules).read(POD.decode(cluster_objects.raw(body)[1]))
        assert kept is not None
        self.view.put_pod(f"lab/{name}", Seen(kept, str(self._version)))
        return name

    def gone(self, name: str) -> None:
        """A pod is deleted."""
        self.view.put_pod(f"lab/{name}", None)

    # --- what comes of it ------------------------------------------------------------------------

    def plans(self, rounds: int = 1) -> int:
        """How many plans these rounds make."""
        before = self.planning.tally.plans
        for _ in range(rounds):
            self.planning.round()
        return self.planning.tally.plans - before

    def places(self, gang: str = "train") -> dict[str, NodeName | None]:
        """Where the members of a gang are planned."""
        record = self.planning.records[GangKey(f"lab/{gang}")]
        return {seat.pod: seat.node for seat in record.seats.values()}


@pytest.fixture
def rehearsal(api: ApiServer, store: StoreSettings, tmp_path: Path) -> Iterator[Rehearsal]:
    """A leader of an empty cluster."""
    made = Rehearsal(api, store, tmp_path)
    yield made
    made.close()
