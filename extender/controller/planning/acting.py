"""The threads that carry steps out, one write at a time to each pod.

What fails is not repeated here: the next round derives it again from what is observed then. A pod
whose write was refused is left alone until it changes, or for a growing while.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

import structlog

from extender.controller.planning.writes import PatchKind, write
from extender.kube.errors import FencedError, KubeError, RefusedError
from scoring.gangs.steps import Step, Verb
from scoring.model import PodUid

THREADS: Final = 8
FIRST_PAUSE_S: Final = 0.2
LAST_PAUSE_S: Final = 30.0
_CHANGED: Final = frozenset({404, 409, 422})
"""Answers which tell that the pod is not what it was looked at as."""

_log = structlog.get_logger("surefoot.controller")


class Ending(StrEnum):
    """How a write ended."""

    DONE = "done"
    CHANGED = "changed"
    """The pod was not what it had been looked at as: it changed, went, or was bound."""
    FENCED = "fenced"
    """Not sent: somebody else may lead."""
    FAILED = "failed"


class Patches(Protocol):
    """The API server, for writing."""

    def patch(self, path: str, body: bytes, *, kind: PatchKind = ...) -> bytes:
        """Change an object; the object as it is then."""


@dataclass(slots=True)
class _Trouble:
    """A pod whose last write failed."""

    version: str
    until_s: float
    pause_s: float


class Actor:
    """Carries steps out. `close` it at the end."""

    def __init__(
        self,
        server: Patches,
        done: Callable[[bytes], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        unix: Callable[[], float] = time.time,
        threads: int = THREADS,
    ) -> None:
        """`done` takes each pod as the server answered it, on one of the threads."""
        self._server = server
        self._done = done
        self._clock = clock
        self._unix = unix
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="surefoot-act")
        self._lock = threading.Lock()
        self._busy: set[PodUid] = set()
        self._trouble: dict[PodUid, _Trouble] = {}
        self.endings: Final[Counter[tuple[Verb, Ending]]] = Counter()

    def act(self, steps: Iterable[Step]) -> int:
        """Begin what can be begun of `steps`; how many that is."""
        begun = 0
        for step in steps:
            if self._may_begin(step):
                self._pool.submit(self._carry_out, step)
                begun += 1
        return begun

    @property
    def busy(self) -> int:
        """How many writes are on their way."""
        return len(self._busy)

    def forget(self, alive: Callable[[PodUid], bool]) -> None:
        """Forget the troubles of pods that are no more."""
        with self._lock:
            self._trouble = {uid: each for uid, each in self._trouble.items() if alive(uid)}

    def close(self) -> None:
        """Begin nothing more, and wait for what is on its way."""
        self._pool.shutdown(cancel_futures=True)

    def _may_begin(self, step: Step) -> bool:
        uid = step.pod.member.uid
        with self._lock:
            trouble = self._trouble.get(uid)
            resting = (
                trouble is not None
                and trouble.version == step.pod.version
                and self._clock() < trouble.until_s
            )
            if uid in self._busy or resting:
                return False
            self._busy.add(uid)
            return True

    def _carry_out(self, step: Step) -> None:
        uid = step.pod.member.uid
        ending = Ending.FAILED
        try:
            ending = self._write(step)
        finally:
            with self._lock:
                self._busy.discard(uid)
                self.endings[step.verb, ending] += 1
                if ending is Ending.DONE:
                    self._trouble.pop(uid, None)
                else:
                    self._note(uid, step.pod.version)

    def _write(self, step: Step) -> Ending:
        asked = write(step, self._unix())
        try:
            answer = self._server.patch(asked.path, asked.body, kind=asked.kind)
        except FencedError:
            return Ending.FENCED
        except RefusedError as error:
            if error.status in _CHANGED:
                return Ending.CHANGED
            return self._failed(step, error)
        except KubeError as error:
            return self._failed(step, error)
        except Exception as error:  # noqa: BLE001 - one pod must never stop the others
            return self._failed(step, error)
        self._done(answer)
        return Ending.DONE

    def _failed(self, step: Step, error: Exception) -> Ending:
        pod = f"{step.pod.namespace}/{step.pod.member.name}"
        _log.warning("write_failed", verb=step.verb.value, pod=pod, problem=str(error))
        return Ending.FAILED

    def _note(self, uid: PodUid, version: str) -> None:
        known = self._trouble.get(uid)
        again = known is not None and known.version == version
        pause_s = min(LAST_PAUSE_S, 2 * known.pause_s) if again and known else FIRST_PAUSE_S
        self._trouble[uid] = _Trouble(version, self._clock() + pause_s, pause_s)
