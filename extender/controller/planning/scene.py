"""What plans rest on: the health of nodes as the cache has it, and who holds which GPUs as the API
server has it, which is newer than what the cache was told of it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace

from extender.controller.cluster.occupancy import Held
from scoring import picture
from scoring.model import Allocation, Fleet, NodeName
from scoring.picture import Picture
from scoring.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The picture now, and the one before."""

    picture: Picture
    before: Picture | None
    """None: there was none."""
    changed: frozenset[NodeName]
    """The nodes that may differ between them."""
    anew: bool
    """Whether the cache was read anew, so that any node may differ."""


class Scene:
    """Hears of fleets on the reader's thread, and is looked at by another."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._lock = threading.Lock()
        self._fleet: Fleet | None = None
        self._changed: set[NodeName] = set()
        self._all = True
        """Whether any node may have changed."""
        self._last: Picture | None = None
        """The picture that was made last, and below what it was made of."""
        self._of: Fleet | None = None
        self._held: Held = {}
        self._merged: dict[NodeName, tuple[Allocation, ...]] = {}

    def hear(self, fleet: Fleet, changed: Collection[NodeName] | None) -> None:
        """The cache says this now; `changed` as `store.reader.Publish` has it."""
        with self._lock:
            self._fleet = fleet
            if changed is None:
                self._all = True
            else:
                self._changed.update(changed)

    def look(self, held: Held) -> Look | None:
        """The picture with these allocations; None: the cache said nothing yet."""
        with self._lock:
            fleet, changed, everything = self._fleet, self._changed, self._all
            self._changed, self._all = set(), False
        if fleet is None:
            return None
        try:
            return self._looked(fleet, held, changed, everything=everything)
        except Exception:
            self._all = True  # what changed was taken, and stands in no picture
            raise

    def _looked(
        self, fleet: Fleet, held: Held, changed: Collection[NodeName], *, everything: bool
    ) -> Look:
        before, anew = self._last, everything or self._last is None
        moved = _differing(self._held, held)
        merged = self._merge(fleet, held, moved)
        whole = replace(fleet, allocations=merged)
        if before is None or anew:
            found = picture.picture(whole, self._policy)
            names = found.names | (before.names if before else frozenset())
        else:
            names = frozenset({*changed, *moved, *picture.due(before, whole)})
            found = before
            if names or fleet is not self._of:
                found = picture.advanced(before, whole, names)
        self._last, self._of, self._held, self._merged = found, fleet, held, merged
        return Look(picture=found, before=before, changed=names, anew=anew)

    def _merge(
        self, fleet: Fleet, held: Held, moved: Collection[NodeName]
    ) -> dict[NodeName, tuple[Allocation, ...]]:
        """What is held, with the names of GPUs; made anew where it may differ from the last look."""
        told = fleet.allocations
        renamed = _differing(self._of.allocations if self._of else {}, told)
        renamed.update(moved)
        if not renamed:
            return self._merged
        merged = dict(self._merged)
        for name in renamed:
            merged.pop(name, None)
            if name in held:
                merged[name] = _named(told.get(name, ()), held[name])
        return merged


def _differing(before: Held, now: Held) -> set[NodeName]:
    """The nodes of which the two do not have the same object."""
    if before is now:
        return set()
    gone = before.keys() - now.keys()
    return {name for name, each in now.items() if before.get(name) is not each} | gone


def _named(known: tuple[Allocation, ...], held: tuple[Allocation, ...]) -> tuple[Allocation, ...]:
    """What is held, with the GPUs where the cache knows which: agents tell it, the API server does
    not.
    """
    if known == held:
        return known
    named = {(each.uid, each.resource): each for each in known if each.gpus is not None}
    if not named:
        return held
    return tuple(
        each if other is None or (other.node, other.count) != (each.node, each.count) else other
        for each in held
        for other in (named.get((each.uid, each.resource)),)
    )
