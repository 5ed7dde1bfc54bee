"""Surefoot's own processes, each with a configuration file of its own: `serve`, `controller`."""

from __future__ import annotations

import http.client
import json
import sys
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import yaml
from asking import Json
from replicas import Answer, samples

from e2e.processes import Process, free_port
from extender.store.connect import StoreSettings

PATIENT: Final = {"staleAfter": "1h", "unknownAfter": "2h"}
"""Nobody stamps the nodes of a test."""
LEASE: Final = {"namespace": "surefoot-system", "duration": "3s", "retry": "500ms"}
"""In the namespace where the ServiceAccount may write it."""
REQUEST_S: Final = 10.0
BASE: Json = {"apiVersion": "surefoot.dev/v1alpha1", "kind": "SurefootConfig"}


class Daemon:
    """One `surefoot` process on one port, to be killed, and started again there."""

    def __init__(self, command: str, config: Json, log: Path, *flags: str | Path) -> None:
        """`config` in the words of the file."""
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        file = log.with_suffix(".yaml")
        file.write_text(yaml.safe_dump({**BASE, **config}))
        self.process = Process(
            [
                *(sys.executable, "-m", "extender", command),
                *(f"--config={file}", f"--bind=127.0.0.1:{self.port}", *flags),
            ],
            log,
        )

    def stop(self) -> None:
        """As Kubernetes would."""
        self.process.stop()

    def kill(self) -> None:
        """End it at once, and whatever it forked."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: it neither answers nor writes, and does not know it."""
        self.process.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self.process.resume()

    def ready(self) -> bool:
        """What its readiness probe finds."""
        try:
            return self._ask("GET", "/readyz").status == HTTPStatus.OK
        except OSError:
            return False

    def values(self) -> dict[str, float]:
        """/metrics: sample with its labels -> value; empty while it does not answer."""
        try:
            return samples(self.metrics())
        except OSError:
            return {}

    def metrics(self) -> str:
        """/metrics as Prometheus reads it.

        Raises:
            OSError: it does not answer.
        """
        return self._ask("GET", "/metrics").text

    def _ask(self, method: str, path: str, body: str | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_S)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            got = connection.getresponse()
            return Answer(status=got.status, body=got.read(), headers=dict(got.headers))
        finally:
            connection.close()


class Surefoot(Daemon):
    """A replica of `surefoot serve`."""

    def __init__(
        self,
        store: StoreSettings,
        log: Path,
        *,
        policy: Json | None = None,
        gangs: Json | None = None,
        **webhook: object,
    ) -> None:
        """It enforces, and is patient with silent nodes, unless told otherwise."""
        config = {
            "webhook": {"mode": "enforce", **webhook},
            "store": {"url": store.url},
            "policy": {**PATIENT, **(policy or {})},
            "gangs": gangs or {},
        }
        super().__init__("serve", config, log)

    def start(self, *, nodes: int = 0) -> None:
        """Return once it answers and its snapshot has this many nodes."""
        self.process.start().wait_until(lambda: self.shows(nodes))

    def shows(self, nodes: int) -> bool:
        """Whether it answers, and its snapshot has this many nodes."""
        return self.values().get("surefoot_snapshot_nodes") == nodes

    def calls(self, verb: str) -> int:
        """How many requests of this verb it has answered."""
        count = f'surefoot_request_duration_seconds_count{{code="200",verb="{verb}"}}'
        return int(self.values().get(count, 0))

    def explain(self, body: Json) -> Any:
        """POST /explain."""
        return self._ask("POST", "/explain", json.dumps(body)).json

    def gang(self, namespace: str, name: str) -> Json | None:
        """GET /gangs/{namespace}/{name}; None while it knows no such gang."""
        got = self._ask("GET", f"/gangs/{namespace}/{name}")
        if got.status == HTTPStatus.NOT_FOUND:
            return None
        found: Json = got.json
        return found

    def is_led(self) -> bool:
        """Whether it knows of a controller that leads, so that plans bind."""
        live: bool = self._ask("GET", "/gangs").json["leader"]["live"]
        return live

    def gangs(self) -> list[Json]:
        """What it says of every gang, as `gang` does."""
        told = self._ask("GET", "/gangs").json
        names = [each["key"].partition("/") for each in told["gangs"]]
        return [found for namespace, _, name in names if (found := self.gang(namespace, name))]


class Controller(Daemon):
    """`surefoot controller`, which may do what the kubeconfig's user may."""

    def __init__(
        self,
        store: StoreSettings,
        kubeconfig: Path,
        log: Path,
        *,
        gangs: Json | None = None,
        policy: Json | None = None,
        **controller: object,
    ) -> None:
        """Several take turns by a Lease that is short, so that no test waits long for the next."""
        config = {
            "store": {"url": store.url},
            "policy": {**PATIENT, **(policy or {})},
            "gangs": gangs or {},
            "controller": {"lease": LEASE, **controller},
        }
        super().__init__("controller", config, log, f"--kubeconfig={kubeconfig}")

    def start(self) -> None:
        """Return once the cache has what the API server knows, or it stands by with all of that."""
        self.process.start().wait_until(self.ready)

    def leads(self) -> bool:
        """Whether it says of itself that it leads."""
        return self.values().get("surefoot_controller_leads") == 1
