"""The threads that carry steps out, one write at a time to each pod.

What fails is not repeated here: the next round derives it again from what is observed then. A pod
whose write was refused is left alone until it changes, or for a growing while; one that is evicted,
too, since no answer shows what becomes of it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog

from extender.controller.cluster.values import GatedPod
from extender.controller.planning import writes
from extender.controller.planning.writes import Write
from extender.controller.signs.ports import KubeWriter
from extender.kube.errors import FencedError, KubeError, RefusedError
from scoring.gangs.steps import Step, Verb
from scoring.model import PodUid

THREADS: Final = 8
FIRST_PAUSE_S: Final = 0.2
LAST_PAUSE_S: Final = 30.0
SEEN_S: Final = 5.0
"""How long a pod may be seen as it was before a write that came through."""
FORGET_S: Final = 60.0
"""How long after its pause a pod is remembered: who still wants the write tries it sooner."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One write to one pod."""

    uid: PodUid
    version: str
    pod: str
    """Its name, for people."""
    verb: Verb
    write: Write


@dataclass(slots=True)
class _Written:
    """A pod that was written to. As long as it is seen as it was before, nothing more is: who asks for
    it looked before that write was done, or the write failed.
    """

    version: str
    until_s: float
    pause_s: float


class Actor:
    """Carries steps out. `close` it at the end."""

    def __init__(
        self,
        server: KubeWriter,
        done: Callable[[bytes], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        unix: Callable[[], float] = time.time,
        threads: int = THREADS,
    ) -> None:
        """`done` takes each pod as the server answered it, on one of the threads, one at a time."""
        self._server = server
        self._done = done
        self._clock = clock
        self._unix = unix
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="surefoot-act")
        self._lock = threading.Lock()
        self._busy: set[PodUid] = set()
        self._written: dict[PodUid, _Written] = {}
        self._forget_s = clock() + FORGET_S
        self.endings: Final[Counter[tuple[Verb, Ending]]] = Counter()

    def act(self, steps: Iterable[Step]) -> None:
        """Begin what can be begun of `steps`."""
        for step in steps:
            pod, member = step.pod, step.pod.member
            self._begin(
                _Task(
                    uid=member.uid,
                    version=pod.version,
                    pod=f"{pod.namespace}/{member.name}",
                    verb=step.verb,
                    write=writes.write(step, self._unix()),
                )
            )

    def release(self, strays: Iterable[GatedPod]) -> None:
        """Lift our gate from pods that no plan will ever lift it from."""
        for pod in strays:
            self._begin(
                _Task(
                    uid=pod.uid,
                    version=pod.version,
                    pod=f"{pod.namespace}/{pod.name}",
                    verb=Verb.LIFT,
                    write=writes.release(pod),
                )
            )

    def close(self) -> None:
        """Begin nothing more, and wait for what is on its way."""
        self._pool.shutdown(cancel_futures=True)

    def _begin(self, task: _Task) -> None:
        with self._lock:
            last = self._written.get(task.uid)
            resting = (
                last is not None and last.version == task.version and self._clock() < last.until_s
            )
            if task.uid in self._busy or resting:
                return
            self._busy.add(task.uid)
        self._pool.submit(self._carry_out, task)

    def _carry_out(self, task: _Task) -> None:
        ending, answer = self._sent(task)
        with self._lock:
            # Under the lock: whoever acts on the answer must not find the pod busy still.
            try:
                if answer is not None:
                    self._done(answer)
            except Exception:  # noqa: BLE001 - the write is done, and a watch tells of it too
                _log.exception("answer_not_taken", pod=task.pod)
            self._busy.discard(task.uid)
            self.endings[task.verb, ending] += 1
            self._note(task.uid, task.version, done=answer is not None)

    def _sent(self, task: _Task) -> tuple[Ending, bytes | None]:
        """How it ended, and the pod as it is then; None: that shows in a watch alone, if at all."""
        write, ending, answer = task.write, Ending.DONE, None
        try:
            if write.kind is None:
                self._server.create(write.path, write.body)
            else:
                answer = self._server.patch(write.path, write.body, kind=write.kind)
        except FencedError:
            ending = Ending.FENCED
        except RefusedError as error:
            changed = error.status in _CHANGED
            ending = Ending.CHANGED if changed else self._failed(task, error)
        except KubeError as error:
            ending = self._failed(task, error)
        except Exception as error:  # noqa: BLE001 - one pod must never stop the others
            ending = self._failed(task, error)
        return ending, answer

    def _failed(self, task: _Task, error: Exception) -> Ending:
        _log.warning("write_failed", verb=task.verb.value, pod=task.pod, problem=str(error))
        return Ending.FAILED

    def _note(self, uid: PodUid, version: str, *, done: bool) -> None:
        now_s, known = self._clock(), self._written.get(uid)
        again = known is not None and known.version == version
        pause_s = min(LAST_PAUSE_S, 2 * known.pause_s) if again and known else FIRST_PAUSE_S
        pause_s = SEEN_S if done else pause_s
        self._written[uid] = _Written(version, now_s + pause_s, pause_s)
        if now_s >= self._forget_s:
            self._forget_s = now_s + FORGET_S
            self._written = {
                uid: each for uid, each in self._written.items() if now_s < each.until_s + FORGET_S
            }
