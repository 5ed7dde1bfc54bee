"""A cluster with an API server, a cache and whole controllers, for the tests of gangs."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cluster_objects
import pytest
from cluster_objects import Json
from kubes import ApiServer
from papers import node_paper
from replicas import samples
from servers import eventually
from writes import Write

from extender.controller.control import Controller, ControlSettings
from extender.kube.lease import LeaseSettings
from extender.kube.status import Timing
from extender.store import fleets
from extender.store.connect import StoreSettings
from extender.store.writer import Writer
from scoring.gangs.record import GangPlan
from scoring.gangs.rules import GATE
from scoring.model import Fleet, GangKey

QUICK = Timing(first_pause_s=0.02, last_pause_s=0.2)
PATIENT = LeaseSettings(duration_s=6.0, retry_s=0.1)
"""A busy machine loses no lease."""


class Town:
    """What is there, and who does something to it."""

    def __init__(self, api: ApiServer, store: StoreSettings, folder: Path) -> None:
        self.api = api
        self.store = store
        self._folder = folder
        self._agent = Writer(store)
        self._controllers: list[Controller] = []

    def begin(self, *, timing: Timing = QUICK, **settings: Any) -> Controller:
        """Start a controller; it is closed after the test."""
        made = Controller(
            ControlSettings(
                kube=self.api.settings(self._folder),
                store=self.store,
                bind=("127.0.0.1", 0),
                version="0.0.test",
                lease=PATIENT,
                timing=timing,
                **settings,
            )
        )
        self._controllers.append(made)
        made.start()
        return made

    def close(self) -> None:
        """End everything."""
        for made in self._controllers:
            made.close()
        self._agent.close()

    # --- nodes -----------------------------------------------------------------------------------

    def nodes(self, *names: str) -> None:
        """Sound nodes of 8 GPUs."""
        for name in names:
            body = cluster_objects.node(name)
            body["status"]["allocatable"]["pods"] = "110"
            self.api.set("nodes", body)
        self.report(*names)

    def report(self, *names: str, **sick: Any) -> None:
        """Agents tell of their nodes; `sick`: as `papers.node_body` has it."""
        self._agent.put([node_paper(name, **sick) for name in names])

    # --- pods ------------------------------------------------------------------------------------

    def member(self, name: str, *, size: int = 2, gpus: int = 8, **more: Any) -> str:
        """A pod `gang-index` of a gang of Surefoot's own, at our gate. Its key."""
        gang = name.rpartition("-")[0]
        labels = {GATE: gang, f"{GATE}-size": str(size)}
        return self.pod(name, gpus, labels=more.pop("labels", labels), **more)

    def pod(
        self,
        name: str,
        gpus: int = 8,
        *,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        gates: tuple[str, ...] = (GATE,),
        **spec: Any,
    ) -> str:
        """A pod of namespace `lab`. Its key."""
        if gates:
            spec["schedulingGates"] = [{"name": gate} for gate in gates]
        body = cluster_objects.pod(name, gpus, **{"node": None, "phase": "Pending", **spec})
        body["metadata"].update(labels=labels or {}, annotations=annotations or {})
        self.api.set("pods", body)
        return f"lab/{name}"

    def gang(self, name: str, count: int = 2, **more: Any) -> list[str]:
        """All members of a gang. Their keys."""
        return [self.member(f"{name}-{at}", size=count, **more) for at in range(count)]

    def bind(self, key: str, node: str | None = None) -> None:
        """What kube-scheduler and a kubelet do; without `node`: to the nominated one."""

        def bound(body: Json) -> None:
            body["spec"]["nodeName"] = node or body["status"]["nominatedNodeName"]
            body["status"] = {"phase": "Running"}

        self.api.edit("pods", key, bound)

    def refuse(self, key: str) -> None:
        """What kube-scheduler writes where it finds no node."""
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

        def refused(body: Json) -> None:
            body["status"] = {"phase": "Pending", "conditions": [{**said, "message": "0/2 nodes"}]}

        self.api.edit("pods", key, refused)

    @staticmethod
    def looks_twice(controller: Controller) -> None:
        """Wait until a round of its planning began and ended."""
        tally = controller._planning.tally
        seen = tally.rounds
        eventually(lambda: tally.rounds > seen + 1, "two rounds")

    # --- what is seen ----------------------------------------------------------------------------

    def read(self, key: str) -> Json:
        """A pod as the API server has it."""
        body = self.api.get("pods", key)
        assert body is not None
        return body

    def nominated(self, key: str) -> str | None:
        """The node that a pod is nominated for."""
        found: str | None = self.read(key)["status"].get("nominatedNodeName")
        return found

    def gates(self, key: str) -> list[str]:
        """The gates that hold a pod."""
        return [each["name"] for each in self.read(key)["spec"].get("schedulingGates", ())]

    def is_let_go(self, *keys: str) -> bool:
        """Whether all of these are nominated, and held by no gate."""
        return all(self.nominated(key) and not self.gates(key) for key in keys)

    def let_go(self, *keys: str) -> list[str | None]:
        """Wait for that; their nodes."""
        eventually(lambda: self.is_let_go(*keys), f"{keys} are nominated and lifted", within_s=30)
        return [self.nominated(key) for key in keys]

    def writes(self, key: str = "") -> list[Write]:
        """All writes to a pod, or to any."""
        found = [each for each in list(self.api.writes) if each.route.kind == "pods"]
        return [each for each in found if not key or each.route.key == key]

    @property
    def fleet(self) -> Fleet:
        """What the cache says."""
        return fleets.look(self.store)[0]

    def record(self, gang: str = "train") -> GangPlan | None:
        """What the cache keeps of a gang."""
        return self.fleet.plans.get(GangKey(f"lab/{gang}"))

    def says(self, of: Callable[[GangPlan], bool], gang: str = "train") -> GangPlan:
        """Wait until the record of a gang is like this."""

        def found() -> GangPlan | None:
            record = self.record(gang)
            return record if record is not None and of(record) else None

        made = eventually(found, f"the record of {gang}", within_s=30)
        assert made is not None
        return made

    def events(self, reason: str) -> list[Json]:
        """Events of this reason, the oldest first."""
        found = [body for (kind, _), body in list(self.api._objects.items()) if kind == "events"]
        return [body for body in found if body["reason"] == reason]


def figure(of: Controller, name: str) -> float:
    """One of its metrics."""
    connection = http.client.HTTPConnection(of.address, timeout=10)
    try:
        connection.request("GET", "/metrics")
        return samples(connection.getresponse().read().decode())[name]
    finally:
        connection.close()


@pytest.fixture
def town(api: ApiServer, store: StoreSettings, tmp_path: Path) -> Iterator[Town]:
    """An empty cluster and an empty cache."""
    made = Town(api, store, tmp_path)
    yield made
    made.close()
