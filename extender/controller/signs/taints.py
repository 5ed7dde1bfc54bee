"""Sets and removes the taint of nodes that are unfit for every gang. Off, it only counts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from extender.controller.signs.outbox import Outbox
from extender.controller.signs.pace import Pace
from extender.controller.signs.ports import KubeWriter, NodeMark, View
from extender.kube import paths
from extender.kube.errors import RefusedError
from scoring import unfit
from scoring.model import NodeName, Taint
from scoring.picture import Picture
from scoring.unfit import TAINT

RATE_HZ: Final = 1.0
"""Nodes a second: what a mistake can do until somebody sees it is bounded."""
TICK_S: Final = 1.0
PATIENCE_S: Final = 10.0
"""How long a write is given until the view shows it, before it is tried again."""
MOST_LOOKS: Final = 500
"""Nodes that one tick judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One taint that comes or goes."""

    node: NodeName
    uid: str
    version: str
    taints: tuple[Taint, ...]
    """As they are."""
    add: bool


class Taints:
    """The taints of one cluster's nodes. For one thread at a time."""

    def __init__(self, view: View, kube: KubeWriter, *, on: bool) -> None:
        """Not `on`: no taint is set, and those of an earlier time are removed."""
        self.outbox: Final = Outbox[Write]("taints", self._patch)
        self.unfit = 0
        """Nodes that are unfit for every gang."""
        self.chosen = 0
        """Those of them that carry the taint, or would if it were on."""
        self.withheld = 0
        """Those that may not: the share of their pool is used up, or its breaker is not closed."""
        self._view = view
        self._kube = kube
        self._on = on
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._pace = Pace(RATE_HZ)
        self._unfit: set[NodeName] = set()
        self._unjudged: dict[NodeName, None] = {}
        self._whole = False
        self._all = True
        self._next_s = 0.0
        self._sent: dict[NodeName, tuple[str, float]] = {}
        self.outbox.clear()

    def fleet_changed(self, changed: Collection[NodeName] | None) -> None:
        """These nodes may be fit, or unfit, now; None: any."""
        if changed is None:
            self._all = True
        else:
            self._unjudged.update(dict.fromkeys(changed))

    def tick(self, picture: Picture, now_s: float) -> None:
        """Judge what changed, and write what is due."""
        self._judge(picture)
        if not self._whole or now_s < self._next_s:
            return
        self._next_s = now_s + TICK_S
        seen = self._view.marks()
        tainted = {name for name, mark in seen.items() if TAINT in mark.taints}
        marks = unfit.marks(picture, self._unfit & seen.keys(), tainted if self._on else set())
        self.unfit, self.chosen = len(self._unfit), len(marks.tainted)
        self.withheld = len(marks.withheld)
        wanted = marks.tainted if self._on else frozenset[NodeName]()
        self._sent = {name: sent for name, sent in self._sent.items() if name in seen}
        # What is fit again comes first: it costs capacity.
        changes = (*sorted(tainted - wanted), *sorted(wanted - tainted))
        waiting = [name for name in changes if not self._on_its_way(name, seen[name], now_s)]
        chosen = waiting[: self._pace.allows(now_s)]
        self._pace.spend(len(chosen))
        for name in chosen:
            mark = seen[name]
            self._sent[name] = (mark.version, now_s)
            self.outbox.put(
                Write(
                    node=name,
                    uid=mark.uid,
                    version=mark.version,
                    taints=mark.taints,
                    add=name in wanted,
                )
            )

    def _judge(self, picture: Picture) -> None:
        if self._all:
            self._all = False
            self._unjudged.update(dict.fromkeys(picture.names | self._unfit))
        for name in list(islice(self._unjudged, MOST_LOOKS)):
            del self._unjudged[name]
            (self._unfit.add if unfit.unfit(picture, name) else self._unfit.discard)(name)
        # A document that went takes its verdict along.
        self._unfit = {name for name in self._unfit if name in picture.fleet.nodes}
        self._whole = self._whole or not self._unjudged

    def _on_its_way(self, name: NodeName, mark: NodeMark, now_s: float) -> bool:
        version, sent_s = self._sent.get(name, ("", 0.0))
        return mark.version == version and now_s < sent_s + PATIENCE_S

    def _patch(self, write: Write) -> None:
        operations = paths.unchanged(write.uid, write.version)
        ours = {"key": TAINT.key, "effect": TAINT.effect}
        if not write.add:
            at = f"/spec/taints/{write.taints.index(TAINT)}"
            operations += [
                {"op": "test", "path": f"{at}/key", "value": TAINT.key},
                {"op": "remove", "path": at},
            ]
        elif write.taints:
            operations.append({"op": "add", "path": "/spec/taints/-", "value": ours})
        else:
            operations.append({"op": "add", "path": "/spec/taints", "value": [ours]})
        try:
            self._kube.patch(paths.node(write.node), msgspec.json.encode(operations))
        except RefusedError as error:
            if error.status not in paths.GONE:
                raise
            # The node changed meanwhile: the next look is at what it is then.
