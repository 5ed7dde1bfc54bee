"""What the leader says of gangs, as documents of the cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import structlog

from extender.controller.wanted import Wanted
from extender.store import render
from extender.store.errors import DocumentError
from extender.store.schema import Kind
from scoring.gangs.record import GangPlan
from scoring.gangs.values import Gathered
from scoring.model import Gang, GangKey

_log = structlog.get_logger("surefoot.controller")


class Ledger:
    """Lets gangs and their plans stand in the cache."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._plans: dict[GangKey, tuple[GangPlan, bytes]] = {}
        """What was rendered last: most plans are as they were."""
        self._gangs: dict[GangKey, tuple[Gathered, Gang, bytes]] = {}
        self._logged: set[str] = set()

    def keep(
        self, gangs: Collection[Gathered], records: Mapping[GangKey, GangPlan], term: int
    ) -> None:
        """Let the cache say this of gangs, and nothing of any other."""
        plans: dict[GangKey, tuple[GangPlan, bytes]] = {}
        for key, record in records.items():
            last = self._plans.get(key)
            raw = last[1] if last and last[0] == record else self._rendered(record)
            if raw is not None:
                plans[key] = (record, raw)
        known: dict[GangKey, tuple[Gathered, Gang, bytes]] = {}
        for gang in gangs:
            of = self._gangs.get(gang.key)
            found = of if of and of[0] is gang else self._known(gang, of)
            if found is not None:
                known[gang.key] = found
        self._plans, self._gangs = plans, known
        for kind, told in ((Kind.PLAN, plans), (Kind.GANG, known)):
            self._wanted.rule(kind, {str(key): each[-1] for key, each in told.items()}, term)

    def told(self, gang: GangKey) -> bool:
        """Whether the cache has what was said last of a gang."""
        return not self._wanted.waits(Kind.PLAN, str(gang))

    def _known(
        self, gang: Gathered, last: tuple[Gathered, Gang, bytes] | None
    ) -> tuple[Gathered, Gang, bytes] | None:
        value = _gang(gang)
        raw = last[2] if last and last[1] == value else self._rendered(value)
        return None if raw is None else (gang, value, raw)

    def _rendered(self, value: Gang | GangPlan) -> bytes | None:
        """The document; None: a name of it can stand in none."""
        try:
            return render.document(value).encoded
        except DocumentError as error:
            if str(error) not in self._logged and len(self._logged) < 1_000:
                self._logged.add(str(error))
                _log.warning("gang_not_told", problem=str(error))
            return None


def _gang(gang: Gathered) -> Gang:
    return Gang(
        key=gang.key,
        convention=gang.convention,
        uid=gang.uid or None,
        min=gang.min,
        size=gang.size,
        members=tuple(pod.member.uid for pod in gang.members),
    )
