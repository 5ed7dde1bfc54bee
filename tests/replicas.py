"""One replica of the webhook in process, on fleets of the test's own: no cache, no thread, and a
clock that only the test turns.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from asking import Json, by_names, preemption
from strategies import fleet

from extender.config.model import WebhookConfig
from extender.webhook.app import Deps, create_app
from extender.webhook.board import Board
from extender.webhook.metrics import Metrics
from extender.webhook.records import Record
from scoring.gangs.rules import GangRules
from scoring.model import Cause, Fleet, Health, Node, NodeName, Scope
from scoring.policy import DEFAULT, Policy

PLANNED = GangRules()
"""Gangs of Surefoot's own convention are planned, and their plans bind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


class Replica:
    """A webhook that shows `found` and judges for real (`mode: enforce`) unless told otherwise."""

    def __init__(
        self,
        found: Fleet | None = None,
        *,
        policy: Policy = DEFAULT,
        gangs: GangRules = PLANNED,
        **settings: object,
    ) -> None:
        self.now_s = 1000.0
        self.config = WebhookConfig.model_validate({"mode": "enforce", **settings})
        self.records: list[Record] = []
        self.connected = True
        self.metrics = Metrics("0.0.test")
        self.board = Board(policy, lambda: self.now_s, self.config.max_snapshot_age)
        self.app = create_app(
            Deps(
                config=self.config,
                policy=policy,
                gangs=gangs,
                board=self.board,
                metrics=self.metrics,
                record=self.records.append,
                version="0.0.test",
                connected=lambda: self.connected,
            )
        )
        self._client = self.app.test_client()
        if found is not None:
            self.show(found)

    def show(self, found: Fleet, changed: Collection[NodeName] | None = None) -> None:
        """What the reader does at every sign of life from the cache."""
        self.board.publish(found, changed)

    def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """One request of any kind."""
        got = self._client.open(path, method=method, data=body)
        return Answer(status=got.status_code, body=got.data, headers=dict(got.headers))

    def get(self, path: str) -> Answer:
        """A page."""
        return self.ask("GET", path)

    def post(self, verb: str, body: Json | bytes) -> Answer:
        """A call as kube-scheduler makes it."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", f"/{verb}", sent)

    def filter(self, asker: Json, names: Iterable[str]) -> Json:
        """ExtenderFilterResult."""
        found: Json = self._good("filter", by_names(asker, names))
        return found

    def prioritize(self, asker: Json, names: Iterable[str]) -> list[Json]:
        """HostPriorityList."""
        found: list[Json] = self._good("prioritize", by_names(asker, names))
        return found

    def preempt(self, asker: Json, victims: Mapping[str, Iterable[str]]) -> Json:
        """The candidates that stay."""
        answer: Json = self._good("preempt", preemption(asker, victims))["NodeNameToMetaVictims"]
        return answer

    def explain(self, asker: Json, names: Iterable[str] | None = None, query: str = "") -> Json:
        """The answer of /explain."""
        body = {"Pod": asker} if names is None else by_names(asker, names)
        found: Json = self._good(f"explain{query}", body)
        return found

    def values(self) -> dict[str, float]:
        """/metrics: sample with its labels -> value."""
        return samples(self.get("/metrics").text)

    def _good(self, verb: str, body: Json) -> Any:
        answer = self.post(verb, body)
        assert answer.status == 200, answer.text
        return answer.json


def samples(page: str) -> dict[str, float]:
    """A Prometheus page as sample with its labels -> value."""
    lines = (line for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def cause(state: Health, name: str = "made.up", scope: Scope = Scope.GPU) -> tuple[Cause, ...]:
    """One open cause with this state."""
    return (Cause(id=name, state=state, scope=scope),)


def fleet_of(*nodes: Node) -> Fleet:
    """A fleet of these nodes, all seen a second ago."""
    return fleet(*nodes)
