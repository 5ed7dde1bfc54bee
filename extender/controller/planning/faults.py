"""The gangs that Surefoot itself fails on. Each is one gang's misfortune: the others are planned on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import structlog

from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.planning import shortfalls
from scoring.planning.faults import GangError
from scoring.planning.outcome import Outcome, Shortfall

P = ParamSpec("P")
T = TypeVar("T")

_log = structlog.get_logger("surefoot.controller")


class Faults:
    """What failed of late, by gang and what was done with it. Each is logged once while it lasts."""

    def __init__(self) -> None:
        self._lasting: dict[tuple[GangKey, str], str] = {}

    def __contains__(self, gang: GangKey) -> bool:
        """Whether something fails on this gang."""
        return any(key == gang for key, _ in self._lasting)

    def __len__(self) -> int:
        """How many gangs something fails on."""
        return len({key for key, _ in self._lasting})

    def keep(self, gangs: Iterable[Gathered]) -> None:
        """Forget the gangs that are not among these any more."""
        keys = {gang.key for gang in gangs} if self._lasting else ()
        self._lasting = {of: told for of, told in self._lasting.items() if of[0] in keys}

    def attempt(
        self, gang: GangKey, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """What comes of doing this for one gang; None: it failed, which is noted."""
        try:
            found = work(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - one gang must never stop the others
            self._note(gang, work.__name__, error)
            return None
        self._lasting.pop((gang, work.__name__), None)
        return found

    def outcomes(
        self,
        work: str,
        plan: Callable[[Sequence[Gathered]], Mapping[GangKey, Outcome]],
        gangs: Sequence[Gathered],
    ) -> Mapping[GangKey, Outcome]:
        """What `plan` finds for all of them. Those that it fails on are left out, hold nothing and wait:
        each costs one plan more, since what was found until then may rest on it.
        """
        failed: dict[GangKey, Shortfall] = {}
        while True:
            sound = [gang for gang in gangs if gang.key not in failed]
            try:
                found = plan(sound)
            except GangError as error:
                told = self._note(error.gang, work, error.__cause__ or error)
                failed |= {
                    gang.key: shortfalls.failed(gang.pending, told)
                    for gang in sound
                    if gang.key == error.gang and gang.pending
                }
                if error.gang not in failed:
                    raise
            else:
                for gang in sound:
                    self._lasting.pop((gang.key, work), None)
                return {**found, **failed}

    def _note(self, gang: GangKey, work: str, error: BaseException) -> str:
        told = f"{type(error).__name__}: {error}"
        if self._lasting.get((gang, work)) != told:
            self._lasting[gang, work] = told
            _log.error("gang_failed", gang=gang, work=work, problem=told, exc_info=error)
        return told
