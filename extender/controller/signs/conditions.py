"""Writes the node condition `GpuHealthDegraded`, where it says something else than it should."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from extender.controller.signs.events import Events, EventType, Target
from extender.controller.signs.outbox import Outbox
from extender.controller.signs.outdated import Outdated
from extender.controller.signs.pace import Pace
from extender.controller.signs.ports import KubeWriter, NodeMark, View
from extender.kube import paths
from extender.kube.errors import RefusedError
from extender.kube.writing import PatchKind
from scoring.conditions import TYPE, UNREPORTED, NodeCondition, Status, condition
from scoring.model import NodeName
from scoring.picture import Picture

RATE_HZ: Final = 20.0
"""Writes a second: each one is an event for everybody who watches nodes."""
SWEEP_S: Final = 60.0
"""How often all nodes are looked at, whoever changed them."""
RETOLD_S: Final = 300.0
"""How often a condition is written for its message alone."""
TRUSTED_S: Final = 10.0
"""How long our own write counts for more than a view that may not show it yet."""
MOST_LOOKS: Final = 500
"""Nodes that one tick looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One condition on its way."""

    node: NodeName
    uid: str
    version: str
    """Those of the node as it was looked at."""
    wanted: NodeCondition
    turned: bool
    """Whether its status changes."""


class Conditions:
    """The conditions of one cluster's nodes. For one thread at a time."""

    def __init__(
        self, view: View, kube: KubeWriter, events: Events, wall: Callable[[], float]
    ) -> None:
        self.outbox: Final = Outbox[Write]("conditions", self._patch)
        self.counts: dict[Status, int] = {}
        """How many nodes have a condition of each status."""
        self._outdated: Outdated[NodeName] = Outdated()
        self._view = view
        self._kube = kube
        self._events = events
        self._wall = wall
        self.forget()

    @property
    def due(self) -> int:
        """Nodes that are yet to be looked at."""
        return len(self._urgent) + len(self._swept)

    @property
    def vain(self) -> int:
        """Writes to nodes that were gone, or not any more what they had been looked at as."""
        return self._outdated.vain

    def forget(self) -> None:
        """Begin anew: what nodes carry is read from them."""
        self._pace = Pace(RATE_HZ)
        self._urgent: dict[NodeName, None] = {}
        self._swept: dict[NodeName, None] = {}
        self._sweep_s = 0.0
        self._written: dict[NodeName, tuple[NodeCondition, float]] = {}
        self._outdated.forget()
        self.outbox.clear()

    def fleet_changed(self, changed: Collection[NodeName] | None) -> None:
        """Look at these nodes soon; None: at all."""
        if changed is None:
            self._sweep_s = 0.0
        else:
            self._urgent.update(dict.fromkeys(sorted(changed)))

    def tick(self, picture: Picture, now_s: float) -> None:
        """Write what is due, as many as the pace allows."""
        marks = self._view.marks()
        self._look_again(marks)
        if now_s >= self._sweep_s:
            self._sweep_s = now_s + SWEEP_S
            self._swept.update(dict.fromkeys(sorted(marks)))
            self._written = {name: each for name, each in self._written.items() if name in marks}
            found = [each.condition.status for each in marks.values() if each.condition]
            self.counts = {status: found.count(status) for status in Status}
            for lost in self.outbox.take_lost():
                self._written.pop(lost.node, None)
        left, written = self._pace.allows(now_s), 0
        if self.outbox.pending >= RATE_HZ:
            return  # the server is slow: what would wait is decided anew when its turn comes
        for queue in (self._urgent, self._swept):
            for name in list(islice(queue, MOST_LOOKS)):
                if written >= left:
                    break
                del queue[name]
                mark = marks.get(name)
                write = self._due(picture, name, mark, now_s) if mark else None
                if write is not None and mark is not None:
                    self._written[name] = (write.wanted, now_s)
                    self.outbox.put(write)
                    self._tell(write, mark)
                    written += 1
        self._pace.spend(written)

    def _due(self, picture: Picture, name: NodeName, mark: NodeMark, now_s: float) -> Write | None:
        wanted = condition(picture, name)
        ours, ours_s = self._written.get(name, (None, now_s - RETOLD_S))
        there = ours if ours is not None and now_s < ours_s + TRUSTED_S else mark.condition
        if wanted is None:
            if there is None:
                return None
            wanted = UNREPORTED
        if there is None or there.status is not wanted.status:
            return _write(name, mark, wanted, turned=True)
        stands = there == wanted or (there.reason == wanted.reason and now_s < ours_s + RETOLD_S)
        return None if stands else _write(name, mark, wanted, turned=False)

    def _look_again(self, marks: Mapping[NodeName, NodeMark]) -> None:
        """Look at those soon whose write was in vain, as soon as the view knows better."""
        self._outdated.take()
        for name in self._outdated.settle(
            lambda name: marks[name].version if name in marks else None
        ):
            self._written.pop(name, None)
            self._urgent[name] = None

    def _tell(self, write: Write, mark: NodeMark) -> None:
        """An event where the status turns; the first word on a node that is well is no news."""
        if not write.turned or (mark.condition is None and write.wanted.status is Status.FALSE):
            return
        bad = write.wanted.status is not Status.FALSE
        self._events.about(
            Target(kind="Node", name=write.node, uid=mark.uid),
            write.wanted.reason,
            write.wanted.message,
            EventType.WARNING if bad else EventType.NORMAL,
        )

    def _patch(self, write: Write) -> None:
        now = paths.rfc3339(self._wall())
        told = {
            "type": TYPE,
            "status": write.wanted.status.value,
            "reason": write.wanted.reason,
            "message": write.wanted.message,
            "lastHeartbeatTime": now,
            **({"lastTransitionTime": now} if write.turned else {}),
        }
        body = {
            # Nodes change seldom enough to name the version: kubelets report every five minutes if
            # nothing turns, and their heartbeats are Leases.
            "metadata": {"uid": write.uid, "resourceVersion": write.version},
            "status": {"conditions": [told]},
        }
        try:
            self._kube.patch(
                f"{paths.node(write.node)}/status",
                msgspec.json.encode(body),
                kind=PatchKind.STRATEGIC,
            )
        except RefusedError as error:
            if error.status not in paths.GONE:
                raise
            self._outdated.note(write.node, write.version)


def _write(node: NodeName, mark: NodeMark, wanted: NodeCondition, *, turned: bool) -> Write:
    return Write(node=node, uid=mark.uid, version=mark.version, wanted=wanted, turned=turned)
