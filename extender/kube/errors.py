"""What can go wrong with the API server, each with a sentence for people."""

from __future__ import annotations

from typing import Final

ABSENT: Final = 404
"""The status of what is not there, or not served."""


class KubeError(Exception):
    """The API server cannot be reached, or does not answer as it should."""


class UnreachableError(KubeError):
    """No connection, or it broke."""


class SilentError(UnreachableError):
    """It is connected and says nothing."""


class GarbageError(KubeError):
    """It said what is no answer of an API server."""


class RefusedError(KubeError):
    """An answer that is no success, or an error in the middle of a watch."""

    def __init__(self, told: str, *, status: int, retry_after_s: float = 0.0) -> None:
        super().__init__(told)
        self.status = status
        self.retry_after_s = retry_after_s
        """How long it asks to be left alone; 0: it does not say."""


class GoneError(RefusedError):
    """410: the version asked for is no longer kept. Only a new list helps."""


class SpentError(KubeError):
    """The Lease has counted as far as it can, so that nobody can lead in a higher term."""


class FencedError(KubeError):
    """Who wanted to write does not lead any more; nothing of the request was sent."""
