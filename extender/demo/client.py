"""HTTP as kube-scheduler speaks it to an extender: one kept-alive connection, JSON both ways."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from extender.demo.errors import DemoError
from scoring.model import NodeName

TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.002
_GENERATION: Final = re.compile(r"generation (\d+)")


class Client:
    """One connection to a running `serve`. Not safe for threads."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)

    def post(self, path: str, body: object) -> Any:
        """The JSON answer to a JSON body.

        Raises:
            DemoError: not a 200.
        """
        encoded = msgspec.json.encode(body)
        status, answer = self._call("POST", path, encoded, {"Content-Type": "application/json"})
        if status != http.HTTPStatus.OK:
            raise DemoError(f"POST {path} was answered with {status}: {answer[:200]!r}")
        return msgspec.json.decode(answer)

    def generation(self) -> int | None:
        """The generation of the picture that answers rest on; None: there is none yet.

        Raises:
            DemoError: no answer.
        """
        _, answer = self._call("GET", "/readyz?verbose", None, {})
        found = _GENERATION.search(answer.decode(errors="replace"))
        return int(found[1]) if found else None

    def wait_for(self, generation: int) -> None:
        """Return once answers rest on `generation` or a later one.

        Raises:
            DemoError: not within `TIMEOUT_S`.
        """
        deadline_s = time.monotonic() + TIMEOUT_S
        while (self.generation() or 0) < generation:
            if time.monotonic() > deadline_s:
                raise DemoError(f"serve has not seen generation {generation} of the cache")
            time.sleep(POLL_S)

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def _call(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise DemoError(f"{method} {path}: {error}") from error


class HttpExtender:
    """An extender over HTTP, node cache capable, that keeps the time of each /filter."""

    def __init__(self, client: Client, settle: Callable[[], None]) -> None:
        """`settle` is called before each question."""
        self._client = client
        self._settle = settle
        self.filter_latencies_s: list[float] = []

    def filter(self, pod: Mapping[str, Any], names: Sequence[NodeName]) -> list[NodeName]:
        """The fit ones of `names`.

        Raises:
            DemoError: an error, or a name that was not offered, which kube-scheduler refuses.
        """
        self._settle()
        started_s = time.perf_counter()
        answer = self._client.post("/filter", {"Pod": pod, "NodeNames": names})
        self.filter_latencies_s.append(time.perf_counter() - started_s)
        passed: list[NodeName] = answer["NodeNames"]
        if answer.get("Error") or not set(passed) <= set(names):
            raise DemoError(f"/filter answered {answer!r:.200}")
        return passed

    def prioritize(
        self, pod: Mapping[str, Any], names: Sequence[NodeName]
    ) -> Mapping[NodeName, int]:
        """0..10 for each of `names`; kube-scheduler swallows errors of this one.

        Raises:
            DemoError: no usable answer.
        """
        answer = self._client.post("/prioritize", {"Pod": pod, "NodeNames": names})
        return {NodeName(each["Host"]): int(each["Score"]) for each in answer}

    def explain(self, pod: Mapping[str, Any], names: Sequence[NodeName]) -> Mapping[str, Any]:
        """Why each of `names` fits or not.

        Raises:
            DemoError: no usable answer.
        """
        self._settle()
        found: Mapping[str, Any] = self._client.post("/explain", {"Pod": pod, "NodeNames": names})
        return found
