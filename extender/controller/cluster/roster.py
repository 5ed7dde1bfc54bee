"""Which pods each gang has, what objects say of it, and the gangs that come of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from scoring.gangs import gathering
from scoring.gangs.gathering import Crew, GangId
from scoring.gangs.rules import GangRules
from scoring.gangs.values import GangPod, Gathered, Group
from scoring.model import Convention, GangKey

K = TypeVar("K")
V = TypeVar("V")

Said: TypeAlias = Group | Crew
"""What one object says: of a gang, or of the pods that it owns."""


class Roster:
    """For one thread at a time. Only gangs that changed are gathered anew."""

    def __init__(self, rules: GangRules, failed: Callable[[str, str], None]) -> None:
        """`failed` is told of each gang that cannot be gathered, with the problem; it stays what it was."""
        self._rules = rules
        self._failed = failed
        self._pods: defaultdict[GangId, dict[str, GangPod]] = defaultdict(dict)
        """By the keys of the pods."""
        self._owned: defaultdict[str, dict[str, GangId]] = defaultdict(dict)
        """The gangs of an owner's pods, by its uid and their keys."""
        self._groups: dict[GangId, Group] = {}
        self._crews: dict[str, Crew] = {}
        self._gathered: dict[GangId, Gathered] = {}
        self._stale: set[GangId] = set()
        self._named: tuple[Gathered, ...] | None = None

    def move(self, key: str, before: GangPod | None, now: GangPod | None) -> set[GangId]:
        """A pod is something else now. The gangs that are touched."""
        touched: set[GangId] = set()
        if before is not None:
            id_ = gathering.gang_of(before)
            touched.add(id_)
            _take(self._pods, id_, key)
            if before.owner is not None:
                _take(self._owned, before.owner.uid, key)
        if now is not None:
            id_ = gathering.gang_of(now)
            touched.add(id_)
            self._pods[id_][key] = now
            if now.owner is not None:
                self._owned[now.owner.uid][key] = id_
        self._stale |= touched
        for id_ in touched - self._pods.keys():
            # At once: where nobody plans nobody asks for gangs either.
            self._stale.discard(id_)
            if self._gathered.pop(id_, None) is not None:
                self._named = None
        return touched

    def hear(self, before: Iterable[Said], now: Iterable[Said]) -> set[GangId]:
        """An object says something else now. The gangs that are touched."""
        olds, news = tuple(before), tuple(now)
        if olds == news:
            return set()
        for said in olds:
            if isinstance(said, Group):
                self._groups.pop(GangId(said.key, said.convention), None)
            else:
                self._crews.pop(said.uid, None)
        for said in news:
            if isinstance(said, Group):
                self._groups[GangId(said.key, said.convention)] = said
            else:
                self._crews[said.uid] = said
        touched = {id_ for said in (*olds, *news) for id_ in self._concerned(said)}
        self._stale |= touched
        return touched

    def gangs(self) -> tuple[Gathered, ...]:
        """The gangs that are planned; those that did not change are the same objects as before, and
        all of them where none changed.
        """
        if self._stale or self._named is None:
            for id_ in self._stale:
                self._gather(id_)
            self._stale = set()
            self._named = gathering.named(self._gathered.values())
        return self._named

    def _gather(self, id_: GangId) -> None:
        pods, group = self._pods[id_].values(), gathering.group_of(id_, self._groups)
        try:
            found = gathering.gathered(pods, group, self._crews, self._rules)
        except Exception as error:  # noqa: BLE001 - one gang must never stop the others
            self._failed(f"gang {id_.key}", f"{type(error).__name__}: {error}")
            return
        if found is not None:
            self._gathered[id_] = found

    def _concerned(self, said: Said) -> Iterator[GangId]:
        if isinstance(said, Crew):
            yield from self._owned.get(said.uid, {}).values()
            return
        id_ = GangId(said.key, said.convention)
        if id_ in self._pods:
            yield id_
        if said.convention is Convention.WORKLOAD:
            replicas = GangKey(f"{said.key}/")
            yield from (
                each
                for each in self._pods
                if each.convention is Convention.WORKLOAD and each.key.startswith(replicas)
            )


def _take(kept: dict[K, dict[str, V]], of: K, key: str) -> None:
    """Forget one, and whom it was the last of."""
    here = kept[of]
    del here[key]
    if not here:
        del kept[of]
