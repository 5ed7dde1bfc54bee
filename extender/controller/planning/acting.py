"""The threads that carry steps out, one write at a time to each pod.

What fails is not repeated here: the next round derives it again from what is observed then. A pod
whose write was refused is left alone until it changes, or for a growing while; one that is evicted,
too, since no answer shows what becomes of it. A write that waits for its turn is not begun once the
plan that it belongs to stands no more.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog

from extender.controller.cluster.values import GatedPod
from extender.controller.planning import writes
from extender.controller.planning.writes import Write
from extender.controller.signs.ports import KubeWriter
from extender.kube import paths
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
LATE_S: Final = 3.0
"""How long a pod may be seen as it was before a change. Whoever is told of one for longer, and sees none,
is refused for another reason: by an admission policy, say."""
REFUSED_S: Final = 30.0
"""Who is refused the same write to the same pod for so long is refused it for good ..."""
LET_GO_S: Final = 300.0
"""... which is believed for so long. Then it is tried again."""
_PASSING: Final = frozenset({404, 409, 429})
"""Refusals for what the pod is by now, or for the moment; others than 4xx are the server's own troubles."""
_BOOKS_ROOM: Final = frozenset({Verb.NOMINATE, Verb.LIFT})
"""The writes without which a plan holds room for nothing."""

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
    of: Step | GatedPod

    def write(self, now_s: float) -> Write:
        """The request."""
        of = self.of
        return writes.write(of, now_s) if isinstance(of, Step) else writes.release(of)


@dataclass(slots=True)
class _Written:
    """A pod that was written to. As long as it is seen as it was before, nothing more is: who asks for
    it looked before that write was done, or the write failed.
    """

    version: str
    since_s: float
    """When it was first written to as it is."""
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
        self._agenda: dict[PodUid, _Task] = {}
        """What is to be done as it was said last, done or not."""
        self._busy: set[PodUid] = set()
        """Pods of which a write is on its way, or waits for a thread."""
        self._written: dict[PodUid, _Written] = {}
        self._refusals: dict[PodUid, tuple[str, float]] = {}
        """What the API server says of pods that it lets nobody write to, and until when that is believed."""
        self._forget_s = clock() + FORGET_S
        self.endings: Final[Counter[tuple[Verb, Ending]]] = Counter()
        self.finished: Final = threading.Event()
        """Set when the last write on its way ends; whoever waits for that clears it."""

    def act(self, steps: Iterable[Step], strays: Iterable[GatedPod] = ()) -> None:
        """Begin these, and lift our gate from `strays`, which no plan will ever lift it from. What was
        to be done before, and is not among them any more, is not begun.
        """
        tasks = (*map(_step, steps), *map(_stray, strays))
        with self._lock:
            self._agenda = {task.uid: task for task in tasks}
            free = [
                uid
                for uid, task in self._agenda.items()
                if uid not in self._busy and not self._rests(task)
            ]
            self._busy.update(free)
        for uid in free:
            self._pool.submit(self._carry_out, uid)

    def refused(self) -> Mapping[PodUid, str]:
        """The pods that cannot be nominated or let go, as the API server has said for long: why."""
        now_s = self._clock()
        with self._lock:
            self._refusals = {uid: each for uid, each in self._refusals.items() if now_s < each[1]}
            return {uid: told for uid, (told, _) in self._refusals.items()}

    def close(self) -> None:
        """Begin nothing more, and wait for what is on its way."""
        self._pool.shutdown(cancel_futures=True)

    def _rests(self, task: _Task) -> bool:
        last = self._written.get(task.uid)
        return last is not None and last.version == task.version and self._clock() < last.until_s

    def _carry_out(self, uid: PodUid) -> None:
        with self._lock:
            task = self._agenda.get(uid)
            if task is None:
                self._busy.discard(uid)
                return
        ending, answer = self._sent(task)
        with self._lock:
            # Under the lock: whoever acts on the answer must not find the pod busy still.
            try:
                if answer is not None:
                    self._done(answer)
            except Exception:  # noqa: BLE001 - the write is done, and a watch tells of it too
                _log.exception("answer_not_taken", pod=task.pod)
            self._busy.discard(uid)
            self.endings[task.verb, ending] += 1
            self._note(uid, task.version, done=answer is not None)
            if not self._busy:
                self.finished.set()

    def _sent(self, task: _Task) -> tuple[Ending, bytes | None]:
        """How it ended, and the pod as it is then; None: that shows in a watch alone, if at all."""
        ending, answer = Ending.DONE, None
        try:
            write = task.write(self._unix())
            if write.kind is None:
                self._server.create(write.path, write.body)
            else:
                answer = self._server.patch(write.path, write.body, kind=write.kind)
        except FencedError:
            ending = Ending.FENCED
        except RefusedError as error:
            changed = error.status in paths.GONE and not self._is_late(task, LATE_S)
            ending = Ending.CHANGED if changed else self._failed(task, error)
            self._weigh(task, error)
        except KubeError as error:
            ending = self._failed(task, error)
        except Exception as error:  # noqa: BLE001 - one pod must never stop the others
            ending = self._failed(task, error)
        return ending, answer

    def _is_late(self, task: _Task, after_s: float) -> bool:
        """Whether the pod was first written to, as it is, so long ago."""
        with self._lock:
            last = self._written.get(task.uid)
        if last is None or last.version != task.version:
            return False
        return self._clock() >= last.since_s + after_s

    def _weigh(self, task: _Task, error: RefusedError) -> None:
        """Note a refusal that is not going to end by itself."""
        lasts = 400 <= error.status < 500 and error.status not in _PASSING
        if lasts and task.verb in _BOOKS_ROOM and self._is_late(task, REFUSED_S):
            with self._lock:
                self._refusals[task.uid] = str(error), self._clock() + LET_GO_S

    def _failed(self, task: _Task, error: Exception) -> Ending:
        _log.warning("write_failed", verb=task.verb.value, pod=task.pod, problem=str(error))
        return Ending.FAILED

    def _note(self, uid: PodUid, version: str, *, done: bool) -> None:
        now_s, known = self._clock(), self._written.get(uid)
        again = known is not None and known.version == version
        pause_s = min(LAST_PAUSE_S, 2 * known.pause_s) if again and known else FIRST_PAUSE_S
        pause_s = SEEN_S if done else pause_s
        since_s = known.since_s if again and known else now_s
        self._written[uid] = _Written(version, since_s, now_s + pause_s, pause_s)
        if now_s >= self._forget_s:
            self._forget_s = now_s + FORGET_S
            self._written = {
                uid: each for uid, each in self._written.items() if now_s < each.until_s + FORGET_S
            }


def _step(step: Step) -> _Task:
    pod, member = step.pod, step.pod.member
    return _Task(
        uid=member.uid,
        version=pod.version,
        pod=f"{pod.namespace}/{member.name}",
        verb=step.verb,
        of=step,
    )


def _stray(pod: GatedPod) -> _Task:
    return _Task(
        uid=pod.uid,
        version=pod.version,
        pod=f"{pod.namespace}/{pod.name}",
        verb=Verb.LIFT,
        of=pod,
    )
