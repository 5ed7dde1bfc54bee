"""Touches the waiting pods that a change of health helps, so that kube-scheduler tries them again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from extender.controller.signs.outbox import Outbox
from extender.controller.signs.outdated import Outdated
from extender.controller.signs.ports import KubeWriter, RefusedPod, View
from extender.kube import paths
from extender.kube.errors import RefusedError
from extender.kube.writing import PatchKind
from scoring import wake_queue, wakes
from scoring.gangs.rules import WAKE
from scoring.model import GangKey, NodeName, PodUid
from scoring.picture import Picture
from scoring.wake_queue import Recent
from scoring.wakes import Strangers

AGAIN_S: Final = 5.0
"""From a touch that did not get through to the next."""


class Wakes:
    """The waiting pods of one cluster. For one thread at a time."""

    def __init__(
        self,
        view: View,
        kube: KubeWriter,
        strangers: Strangers,
        planned: Callable[[], Collection[GangKey]],
        wall: Callable[[], float],
    ) -> None:
        """`planned`: gangs whose members whoever plans them wakes."""
        self.outbox: Final = Outbox[RefusedPod]("wakes", self._touch)
        self._view = view
        self._kube = kube
        self._strangers = strangers
        self._planned = planned
        self._wall = wall
        self._again_s = 0.0
        self._outdated: Outdated[PodUid] = Outdated()
        self.forget()

    @property
    def called(self) -> int:
        """How many pods are yet to be touched."""
        return len(self._queue.calls)

    @property
    def vain(self) -> int:
        """Touches of pods that were gone, or not any more what they had been looked at as."""
        return self._outdated.vain

    def forget(self) -> None:
        """Begin anew, as a leader that saw nothing of what was before."""
        self._queue = wake_queue.EMPTY
        self._recent: Recent = {}
        self._known: dict[PodUid, str] = {}
        self._outdated.forget()
        self.outbox.clear()

    def fleet_changed(
        self, old: Picture | None, new: Picture, changed: Collection[NodeName] | None, now_s: float
    ) -> None:
        """Call the pods that the change helps. Without an `old` picture, or where it may have been
        another cache's (`changed` None): those too that some node would take now.
        """
        before = {}
        if old is not None:
            names = old.names | new.names if changed is None else changed
            before = wakes.before_change(old, new, names)
        self._recent = wake_queue.recalled(self._recent, before, now_s)
        if not before and old is not None and changed is not None:
            return
        pods = self._touchable()
        if not pods:
            return
        found = wakes.helped(before, new, pods, self._strangers)
        if old is None or changed is None:
            fitting = wakes.placeable(new, pods, self._strangers)
            found = {**dict.fromkeys(fitting, True), **found}
        self._call(found, now_s)

    def tick(self, picture: Picture, now_s: float) -> None:
        """Touch whoever is due."""
        if now_s >= self._again_s:
            self._again_s = now_s + AGAIN_S
            self._call({pod.uid: False for pod in self.outbox.take_lost()}, now_s)
        pods = self._touchable()
        self._late(picture, pods, now_s)
        self._look_again(pods, now_s)
        calls = self._queue.calls
        blocked = {
            pod.uid
            for pod in pods
            if pod.uid in calls and (pod.uid in self._outdated or self._touched_lately(pod))
        }
        chosen, self._queue = wake_queue.due(self._queue, pods, now_s, blocked)
        for pod in chosen:
            self.outbox.put(pod)

    def _late(self, picture: Picture, pods: list[RefusedPod], now_s: float) -> None:
        """Call those whose refusal is news: they may have been judged before the last changes."""
        news = [pod for pod in pods if self._known.get(pod.uid) != pod.message]
        self._known = {pod.uid: pod.message for pod in pods}
        self._recent = wake_queue.recalled(self._recent, {}, now_s)
        if news and self._recent:
            before = {name: then for name, (_, then) in self._recent.items()}
            self._call(wakes.helped(before, picture, news, self._strangers), now_s)

    def _look_again(self, pods: list[RefusedPod], now_s: float) -> None:
        """Call those again whose touch was in vain; they are touched when the view knows better."""
        if missed := self._outdated.take():
            self._queue = wake_queue.unheard(self._queue, missed, now_s)
        if self._outdated:
            self._outdated.settle({pod.uid: pod.version for pod in pods}.get)

    def _touchable(self) -> list[RefusedPod]:
        """The pods that wait and that nobody else wakes: mostly none, ten times a second."""
        refused = self._view.refused()
        return wakes.touchable(refused, self._planned()) if refused else []

    def _touched_lately(self, pod: RefusedPod) -> bool:
        """Perhaps by an earlier leader. A time ahead of us is another clock's, and says nothing."""
        at_s = paths.unix_s(pod.woken_at)
        return at_s is not None and 0.0 <= self._wall() - at_s < wake_queue.PAUSE_S

    def _call(self, found: Mapping[PodUid, bool], now_s: float) -> None:
        if found:
            self._queue = wake_queue.called(self._queue, found, now_s)

    def _touch(self, pod: RefusedPod) -> None:
        body = {
            "metadata": {
                # Another pod of that name, or one that somebody touched, is not what was looked at.
                "uid": pod.uid,
                "resourceVersion": pod.version,
                "annotations": {WAKE: paths.rfc3339(self._wall())},
            }
        }
        path = paths.pod(pod.namespace, pod.name)
        try:
            self._kube.patch(path, msgspec.json.encode(body), kind=PatchKind.MERGE)
        except RefusedError as error:
            if error.status not in paths.GONE:
                raise
            self._outdated.note(pod.uid, pod.version)
