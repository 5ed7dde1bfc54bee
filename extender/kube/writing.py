"""Writes to the API server on kept connections, from several threads, behind a leader's fence.

Nothing is sent twice: a write whose answer was lost may have been heeded, and whoever asked for it
looks again before it asks once more. A connection that the server closed while it was idle is noticed
before anything is sent on it, and replaced.
"""

from __future__ import annotations

import threading
from enum import StrEnum
from typing import Final

from extender.kube.fence import Fence
from extender.kube.session import Session
from extender.kube.settings import KubeSettings

LARGEST: Final = 16 << 20
"""Bytes of an answer: etcd takes objects of 1.5 MB."""
_JSON: Final = "application/json"


class PatchKind(StrEnum):
    """How a patch is written down."""

    JSON = "application/json-patch+json"
    """Operations, `test` among them (RFC 6902)."""
    MERGE = "application/merge-patch+json"
    """The fields that change (RFC 7386)."""
    STRATEGIC = "application/strategic-merge-patch+json"
    """The same, with Kubernetes' lists merged by their keys."""


class Writer:
    """The API server, for as many threads as there are `connections`; more wait for their turn.

    With a fence, check and sending are one step, and one request at a time takes it, of all writers
    that share the fence. So a process that is stopped for longer than its lease has at most one
    request that is past its check.
    """

    def __init__(
        self,
        settings: KubeSettings,
        fence: Fence | None,
        *,
        connections: int = 8,
        timeout_s: float = 10.0,
    ) -> None:
        """`fence`: None for what everybody may write. `timeout_s`: how long an answer may take."""
        self._session = Session(settings, connections=connections, fence=fence)
        self._fence = fence
        self._timeout_s = timeout_s
        self._free = threading.BoundedSemaphore(connections)

    def patch(self, path: str, body: bytes, *, kind: PatchKind = PatchKind.JSON) -> bytes:
        """Change an object; it, as it is then.

        Raises:
            FencedError: the fence does not hold, and nothing was sent.
            RefusedError: it changed meanwhile (409), a `test` failed (422), it is gone (404), ...
            UnreachableError: no answer, whatever became of the write.
        """
        return self._send("PATCH", path, body, kind)

    def create(self, path: str, body: bytes) -> bytes:
        """Create an object at the path of its kind; it, as it is then. Raises as `patch` does."""
        return self._send("POST", path, body, _JSON)

    def replace(self, path: str, body: bytes) -> bytes:
        """Put an object in place of the one whose resourceVersion it names. Raises as `patch` does."""
        return self._send("PUT", path, body, _JSON)

    def close(self) -> None:
        """Give the connections back."""
        self._session.close()

    def _send(self, verb: str, path: str, body: bytes, content: str) -> bytes:
        with self._free:
            if self._fence is not None:
                self._fence.check()  # before a connection is made in vain
            with self._session.answer(
                verb, path, silence_s=self._timeout_s, body=body, content=content
            ) as answer:
                return answer.whole(within_s=self._timeout_s, largest=LARGEST)
