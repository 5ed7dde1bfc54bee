"""Writes of whoever leads: each goes through the fence of the term in which it is sent."""

from __future__ import annotations

import threading
from collections.abc import Callable

from extender.kube.errors import FencedError
from extender.kube.fence import Fence
from extender.kube.settings import KubeSettings
from extender.kube.writing import PatchKind, Writer


class LeadersWriter:
    """The API server, for the leader. Nothing is sent while this process does not lead.

    A fence belongs to one term, and the connections behind it do, too. Safe for many threads.
    """

    def __init__(self, kube: KubeSettings, fence: Callable[[], Fence | None]) -> None:
        """`fence`: that of this process now; None: it does not lead."""
        self._kube = kube
        self._fence = fence
        self._lock = threading.Lock()
        self._current: tuple[Fence, Writer] | None = None

    def patch(self, path: str, body: bytes, *, kind: PatchKind = PatchKind.JSON) -> bytes:
        """Change an object; it, as it is then. Raises as `Writer.patch` does."""
        return self._writer().patch(path, body, kind=kind)

    def create(self, path: str, body: bytes) -> bytes:
        """Create an object; it, as it is then. Raises as `Writer.create` does."""
        return self._writer().create(path, body)

    def close(self) -> None:
        """Give the connections back."""
        with self._lock:
            if self._current is not None:
                self._current[1].close()
                self._current = None

    def _writer(self) -> Writer:
        fence = self._fence()
        if fence is None:
            raise FencedError("this process does not lead, so nothing is written")
        with self._lock:
            if self._current is None or self._current[0] is not fence:
                if self._current is not None:
                    self._current[1].close()
                self._current = fence, Writer(self._kube, fence)
            return self._current[1]
