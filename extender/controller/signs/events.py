"""Events that `kubectl describe` shows, on pods, on what owns them, and on nodes.

core/v1 Events: 1.34 to 1.37 serve them, kubectl reads them, and unlike those of events.k8s.io their
count may be patched (k8s.io/kubernetes pkg/apis/core/validation/events.go).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import msgspec

from extender.controller.signs.outbox import Outbox
from extender.controller.signs.ports import KubeWriter
from extender.kube import paths
from extender.kube.errors import RefusedError
from extender.kube.writing import PatchKind
from scoring.model import GangKey

COMPONENT: Final = "surefoot"
LONGEST_NOTE: Final = 1024
"""Bytes; the API server's own limit for new Events."""
LONGEST_REASON: Final = 128
QUIET_S: Final = 60.0
"""The same event again within this time is only counted; and a gang has one event in it."""
MOST_KNOWN: Final = 4_096
"""Events that are remembered, to be counted instead of created again."""
MOST_HELD: Final = 4_096
"""Gangs of which an event waits for its turn."""
_CLUSTER_NAMESPACE: Final = "default"
"""Where Events on objects without a namespace are."""


class EventType(StrEnum):
    """As Events write it."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The object that an event is about."""

    api_version: str = "v1"
    kind: str
    namespace: str = ""
    """Empty: it has none."""
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, and how often it happened."""

    target: Target
    reason: str
    note: str
    type: EventType
    name: str
    """Of the Event object."""
    count: int
    first_s: float
    last_s: float
    """Unix times."""


@dataclass(slots=True)
class _Known:
    event: Event
    """As it was sent last."""
    sent_s: float
    untold: int = 0
    """How often it happened since."""


@dataclass(frozen=True, slots=True)
class _Held:
    targets: tuple[Target, ...]
    reason: str
    note: str
    type: EventType
    due_s: float = 0.0
    """When its turn comes."""


class Events:
    """Safe for many threads. Nothing here waits for the API server, or fails."""

    def __init__(
        self, kube: KubeWriter, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        """`clock`: monotonic seconds; `wall`: Unix seconds."""
        self.outbox: Final = Outbox[Event]("events", self._send)
        self.repeated = 0
        """Events that were only counted."""
        self.replaced = 0
        """Events of a gang that a later one took the place of before their turn."""
        self._kube = kube
        self._clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Target, str, str], _Known] = OrderedDict()
        self._gang_s: dict[GangKey, float] = {}
        self._held: OrderedDict[GangKey, _Held] = OrderedDict()
        self._acting = False
        self._serial = 0

    def act(self, *, acting: bool) -> None:
        """Whether events are sent from now on; what is told meanwhile is lost."""
        with self._lock:
            self._acting = acting
            self._held.clear()
            self.outbox.clear()

    def about(
        self,
        target: Target,
        reason: str,
        note: str,
        type: EventType = EventType.NORMAL,  # noqa: A002 - the Event's own word
        *,
        gang: GangKey | None = None,
        also: tuple[Target, ...] = (),
        after_s: float = 0.0,
    ) -> None:
        """Tell something of an object, and of those in `also`.

        `reason`: CamelCase. `note`: a sentence, cut at 1024 bytes. Of a `gang` one event a minute is
        sent: another one waits for its turn, and a later one takes its place. `after_s`: how long
        what is said of a gang waits for a later word at least; words that follow each other wait no
        longer for it.
        """
        told = _Held((target, *also), reason[:LONGEST_REASON], _bounded(note), type)
        with self._lock:
            if not self._acting:
                return
            now_s = self._clock()
            if self._repeats(told, now_s):
                if gang is not None and self._held.pop(gang, None) is not None:
                    self.replaced += 1
                return
            if gang is not None:
                before = self._held.pop(gang, None)
                self.replaced += before is not None
                due_s = now_s + after_s if before is None else min(before.due_s, now_s + after_s)
                due_s = max(due_s, self._gang_s.get(gang, -QUIET_S) + QUIET_S)
                if now_s < due_s:
                    self._hold(gang, replace(told, due_s=due_s))
                    return
                self._gang_s[gang] = now_s
            self._tell(told, now_s)

    def tick(self) -> None:
        """Send what waited for its turn."""
        with self._lock:
            now_s = self._clock()
            self._gang_s = {
                gang: at_s for gang, at_s in self._gang_s.items() if now_s < at_s + QUIET_S
            }
            for gang in [gang for gang, told in self._held.items() if told.due_s <= now_s]:
                self._gang_s[gang] = now_s
                told = self._held.pop(gang)
                if not self._repeats(told, now_s):
                    self._tell(told, now_s)

    def _hold(self, gang: GangKey, told: _Held) -> None:
        if len(self._held) >= MOST_HELD:
            self._held.popitem(last=False)
            self.replaced += 1
        self._held[gang] = told

    def _repeats(self, told: _Held, now_s: float) -> bool:
        """Whether the same was told a moment ago; then it is counted, and told with the next."""
        known = self._known.get((told.targets[0], told.reason, told.note))
        if known is None or now_s >= known.sent_s + QUIET_S:
            return False
        known.untold += 1
        self.repeated += 1
        return True

    def _tell(self, told: _Held, now_s: float) -> None:
        for target in told.targets:
            self._tell_of(target, told, now_s)

    def _tell_of(self, target: Target, told: _Held, now_s: float) -> None:
        key = (target, told.reason, told.note)
        wall_s = self._wall()
        known = self._known.pop(key, None)
        if known is None:
            event = Event(
                target=target,
                reason=told.reason,
                note=told.note,
                type=told.type,
                name=self._name(target, wall_s),
                count=1,
                first_s=wall_s,
                last_s=wall_s,
            )
        else:
            count = known.event.count + known.untold + 1
            event = replace(known.event, count=count, last_s=wall_s)
        self._known[key] = _Known(event, now_s)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        self.outbox.put(event)

    def _name(self, target: Target, wall_s: float) -> str:
        """`train-0.18c5f0a2b3d4e5f6`, as other components name theirs: no two are alike."""
        self._serial += 1
        stem = target.name[:200].lower().rstrip("-.") or "surefoot"
        return f"{stem}.{int(wall_s * 1e9) + self._serial:x}"

    def _send(self, event: Event) -> None:
        namespace = event.target.namespace or _CLUSTER_NAMESPACE
        at = paths.events(namespace)
        if event.count > 1:
            more = {"count": event.count, "lastTimestamp": paths.rfc3339(event.last_s)}
            try:
                self._kube.patch(
                    f"{at}/{event.name}", msgspec.json.encode(more), kind=PatchKind.MERGE
                )
            except RefusedError as error:
                if error.status != 404:
                    raise
            else:
                return  # else the API server forgot it, as it does after an hour
        self._kube.create(at, msgspec.json.encode(_body(event, namespace)))


def _body(event: Event, namespace: str) -> dict[str, Any]:
    target = event.target
    regarded = {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
        "uid": target.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": namespace},
        "involvedObject": {key: value for key, value in regarded.items() if value},
        "reason": event.reason,
        "message": event.note,
        "type": event.type.value,
        "count": event.count,
        "firstTimestamp": paths.rfc3339(event.first_s),
        "lastTimestamp": paths.rfc3339(event.last_s),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }


def _bounded(note: str) -> str:
    encoded = note.encode("utf-8", "replace")
    if len(encoded) <= LONGEST_NOTE:
        return encoded.decode()
    return encoded[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
