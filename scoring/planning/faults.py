"""Whose turn it was when planning failed: a mistake of ours must be one gang's misfortune, not that of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scoring.model import GangKey


class GangError(Exception):
    """Planning failed on one gang; `__cause__` says how. Nothing that was found for others counts."""

    def __init__(self, gang: GangKey) -> None:
        super().__init__(f"planning failed on the gang {gang}")
        self.gang = gang


@contextmanager
def blaming(gang: GangKey) -> Iterator[None]:
    """What fails in here, fails on `gang`.

    Raises:
        GangError: something did.
    """
    try:
        yield
    except Exception as error:
        raise GangError(gang) from error
