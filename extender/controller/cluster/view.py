"""The leader's view of the cluster: one lock around what reflectors write and planning reads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from extender.controller.cluster.changes import Changes
from extender.controller.cluster.nodes import Mark, SeenNode
from extender.controller.cluster.occupancy import Held, Occupancy, Rooms
from extender.controller.cluster.pods import PodReader
from extender.controller.cluster.refusals import FailedPod
from extender.controller.cluster.roster import Roster, Said
from extender.controller.cluster.shapes import POD
from extender.controller.cluster.values import GatedPod, Kept, RefusedPod, Seen
from extender.controller.skips import MALFORMED, Skips
from extender.kube.shapes import HEADED, Header
from scoring.gangs.gathering import GangId
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import GangPod, Gathered
from scoring.model import NodeName, PodUid
from scoring.planning.values import Claim
from scoring.policy import Policy

MOST_FAILED: Final = 1_000
"""Failed pods that wait to be taken; beyond it the oldest are forgotten."""


class ClusterView:
    """Safe for many threads."""

    def __init__(self, policy: Policy, rules: GangRules) -> None:
        self.reader: Final = PodReader(policy, rules)
        self.changes: Final = Changes()
        self.skips: Final = Skips("view")
        """Objects that could not be read, and pods that a PATCH answered in no readable form."""
        self._lock = threading.Lock()
        self._pods: dict[str, Kept] = {}
        self._waiting: set[str] = set()
        """Keys of pods that are nominated, refused or at our gate."""
        self._refused_told: tuple[RefusedPod, ...] | None = None
        """Those of them that were refused, as they were handed out; None: some changed since."""
        self._folded: dict[str, str] = {}
        """Versions of pods that a PATCH answered, and no watch showed yet."""
        self._said: dict[tuple[str, str], tuple[Said, ...]] = {}
        self._occupancy = Occupancy()
        self._marks: dict[NodeName, Mark] = {}
        self._marks_told: Mapping[NodeName, Mark] | None = None
        """A copy that was handed out; None: it is old."""
        self._roster = Roster(rules, self.skips.skip)
        self._failed: deque[FailedPod] = deque(maxlen=MOST_FAILED)

    # --- what is read ----------------------------------------------------------------------------

    def gangs(self) -> tuple[Gathered, ...]:
        """The gangs whose convention is planned, by key. One of hold OFF is none by its own word."""
        with self._lock:
            return self._roster.gangs()

    def rooms(self, below: int | None = None) -> Rooms:
        """What each node has beside GPUs, and what is held; with pods of a priority lower than
        `below` counted gone. The same object as before where nothing changed.
        """
        with self._lock:
            return self._occupancy.rooms(below)

    def held(self, below: int | None = None) -> Held:
        """The GPUs that bound pods hold, by node; otherwise like `rooms`."""
        with self._lock:
            return self._occupancy.held(below)

    def claims(self) -> tuple[Claim, ...]:
        """Nominated pods of no planned gang, by uid."""
        with self._lock:
            planned = self._planned()
            found = [pod.claim for pod in self._waiters() if pod.claim and pod.uid not in planned]
            return tuple(sorted(found, key=lambda claim: claim.uid))

    def refused(self) -> tuple[RefusedPod, ...]:
        """Unbound pods that ask for GPUs and were refused, by uid; those of gangs too. The same object
        as before where nothing changed: it is asked for ten times a second.
        """
        with self._lock:
            if self._refused_told is None:
                found = [pod.refused for pod in self._waiters() if pod.refused]
                self._refused_told = tuple(sorted(found, key=lambda pod: pod.uid))
            return self._refused_told

    def strays(self) -> tuple[GatedPod, ...]:
        """Pods at our gate that no planned gang will lift it from, by uid."""
        with self._lock:
            found = [pod.gated for pod in self._waiters() if pod.gated]
            return tuple(sorted(found, key=lambda pod: pod.uid))

    def take_failed(self) -> tuple[FailedPod, ...]:
        """Pods that nodes refused since the last call, each once."""
        with self._lock:
            found = tuple(self._failed)
            self._failed.clear()
            return found

    def marks(self) -> Mapping[NodeName, Mark]:
        """What each node carries of Surefoot's. The same object as before where nothing changed."""
        with self._lock:
            if self._marks_told is None:
                self._marks_told = MappingProxyType(dict(self._marks))
            return self._marks_told

    # --- what is written -------------------------------------------------------------------------

    def put_pod(self, key: str, now: Seen | None) -> None:
        """A pod as a watch shows it; None: nothing is kept of it, or it is gone."""
        with self._lock:
            self._see(key, now)

    def put_pods(self, found: Mapping[str, Seen], *, whole: bool) -> None:
        """All pods; where not `whole`, those that are missing may be there all the same."""
        with self._lock:
            gone = self._pods.keys() - found.keys() if whole else ()
            for key in gone:
                self._see(key, None)
            for key, now in found.items():
                self._see(key, now)

    def fold(self, raw: bytes) -> None:
        """A pod as the answer to a PATCH shows it, before the watch does.

        Nothing where the pod is gone, or was seen newer already.
        """
        try:
            header = HEADED.decode(raw).metadata
        except MALFORMED as error:
            self.skips.skip("", str(error))
            return
        try:
            now = self.reader.read(POD.decode(raw))
        except MALFORMED as error:
            self.skips.skip(header.key, str(error))
            return
        with self._lock:
            before = self._pods.get(header.key)
            if before is None or before.uid != header.uid:
                return
            if _older(header.resource_version, before.version):
                return
            if header.resource_version.isdecimal():
                self._folded[header.key] = header.resource_version
            self._move(header.key, now)

    def folded(self, header: Header) -> Seen | None:
        """A pod that waits, if it was folded in as the very version of `header`; None: it is news."""
        with self._lock:
            kept = self._pods.get(header.key)
            if kept is None or kept.uid != header.uid or kept.load is not None:
                return None
            version = self._folded.get(header.key)
            return Seen(kept, version) if version == header.resource_version else None

    def put_node(self, name: NodeName, now: SeenNode | None) -> None:
        """A node as a watch shows it; None: it is gone."""
        with self._lock:
            if self._stand(name, now):
                self.changes.note(nodes=(name,))

    def put_nodes(self, found: Mapping[NodeName, SeenNode], *, whole: bool) -> None:
        """All nodes; where not `whole`, those that are missing may be there all the same."""
        with self._lock:
            gone = self._occupancy.nodes() - found.keys() if whole else frozenset()
            now: dict[NodeName, SeenNode | None] = {**dict.fromkeys(gone), **found}
            self.changes.note(nodes=[name for name, each in now.items() if self._stand(name, each)])

    def put_said(self, source: str, key: str, now: tuple[Said, ...]) -> None:
        """What an object of one source says of gangs; empty: nothing, or it is gone."""
        with self._lock:
            self._hear((source, key), now)

    def put_all_said(
        self, source: str, found: Mapping[str, tuple[Said, ...]], *, whole: bool
    ) -> None:
        """What all objects of a source say; where not `whole`, others may say something too."""
        with self._lock:
            if whole:
                for held in [each for each in self._said if each[0] == source]:
                    if held[1] not in found:
                        self._hear(held, ())
            for key, now in found.items():
                self._hear((source, key), now)

    # --- under the lock --------------------------------------------------------------------------

    def _stand(self, name: NodeName, now: SeenNode | None) -> bool:
        """Whether what the node offers changed."""
        if self._marks.get(name) != (now.mark if now else None):
            self._marks_told = None
            if now is None:
                del self._marks[name]
            else:
                self._marks[name] = now.mark
        return self._occupancy.offer(name, now.room if now else None)

    def _see(self, key: str, now: Seen | None) -> None:
        before, folded = self._pods.get(key), self._folded.get(key)
        same = before is not None and now is not None and before.uid == now.kept.uid
        if same and folded is not None and now is not None and _older(now.version, folded):
            return
        self._folded.pop(key, None)
        self._move(key, now.kept if now else None)

    def _move(self, key: str, now: Kept | None) -> None:
        before = self._pods.get(key)
        if before == now:
            return
        if now is None:
            del self._pods[key]
        else:
            self._pods[key] = now
        waited, waits = _waiting(before), _waiting(now)
        if waited != waits:
            self._refused_told = None
        if any(waits):
            self._waiting.add(key)
        else:
            self._waiting.discard(key)
        failed = now.failed if now else None
        if failed is not None and not (before and before.failed and before.uid == failed.uid):
            self._failed.append(failed)
        self.changes.note(
            nodes=self._occupancy.move(key, before, now),
            gangs=self._regang(key, before.member if before else None, now.member if now else None),
            pods=waited != waits or failed is not None,
        )

    def _regang(self, key: str, before: GangPod | None, now: GangPod | None) -> Collection[GangId]:
        """The gangs of which that is worth telling: nobody writes to a pod that is bound, so that a
        new version alone is no news.
        """
        if before == now:
            return ()
        touched = self._roster.move(key, before, now)
        if before is not None and now is not None and now.member.bound is not None:
            return () if replace(before, version=now.version) == now else touched
        return touched

    def _hear(self, held: tuple[str, str], now: tuple[Said, ...]) -> None:
        before = self._said.pop(held, ())
        if now:
            self._said[held] = now
        self.changes.note(gangs=self._roster.hear(before, now))

    def _waiters(self) -> Iterator[Kept]:
        return (self._pods[key] for key in self._waiting)

    def _planned(self) -> frozenset[PodUid]:
        return frozenset(
            pod.member.uid
            for gang in self._roster.gangs()
            if gang.hold is not Hold.OFF
            for pod in gang.pods
        )


def _waiting(pod: Kept | None) -> tuple[object, ...]:
    """What of a pod is for those that look at pods one by one."""
    return (pod.claim, pod.refused, pod.gated) if pod else (None, None, None)


def _older(version: str, than: str) -> bool:
    """Whether a resourceVersion is surely older. One that is no number may always be newer."""
    if not (version.isdecimal() and than.isdecimal()):
        return False
    return int(version) < int(than)
