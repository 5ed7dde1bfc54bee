"""What was worked out for a set of node names, kept for the next request that offers the same set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from scoring.model import NodeName

T = TypeVar("T")


class Memo(Generic[T]):
    """Values by one or more sets of names. Safe for many threads, which may do the same work twice.

    Sets are told apart by size and hash: to compare the names of two equal sets of thousands costs as
    much as most of what is kept here, and to hold them costs memory. Python hashes strings with 64
    bits of a key of the process, so that nobody can choose names that collide.
    """

    def __init__(self, most: int) -> None:
        """`most`: how many values are kept; when there are more all are dropped."""
        self._most = most
        self._kept: dict[tuple[int, ...], T] = {}

    def get(self, make: Callable[..., T], *sets: frozenset[NodeName]) -> T:
        """`make(*sets)`, or what it returned for equal sets."""
        key = tuple(part for names in sets for part in (len(names), hash(names)))
        if key in self._kept:
            return self._kept[key]
        made = make(*sets)
        if len(self._kept) >= self._most:
            self._kept = {}
        self._kept[key] = made
        return made
