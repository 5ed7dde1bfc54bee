"""The thread that keeps a candidate stepping, and tells who leads."""

from __future__ import annotations

import random
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from extender.kube.candidate import Candidate
from extender.kube.errors import KubeError, RefusedError
from extender.kube.fence import Fence, since_boot_s
from extender.kube.lease import LeaseFile, LeaseSettings
from extender.kube.settings import KubeSettings

_log = structlog.get_logger("surefoot.kube.election")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionStatus:
    """What an elector says of itself."""

    holder: str = ""
    """Who leads, as the Lease said last; empty: nobody."""
    term: int | None = None
    """That of this process; None: it does not lead."""
    heard_s: float | None = None
    """When the API server answered last, on the local monotonic clock."""
    problem: str | None = None
    """Why the last step failed; None: it did not."""


class Elector:
    """Wants to lead for as long as it runs. `start` it once, `close` it at the end."""

    def __init__(
        self,
        kube: KubeSettings,
        settings: LeaseSettings,
        *,
        changed: Callable[[], None] = lambda: None,
        able: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = since_boot_s,
    ) -> None:
        """`changed` is called on the elector's thread, after `fence` became another; it must not
        take long, since renewals wait for it. Who is not `able` yet takes no Lease, and gives none
        back for that.
        """
        self.identity: Final = f"{socket.gethostname()}_{uuid.uuid4()}"
        """Of this process; the Lease names it while this leads."""
        self._settings = settings
        self._file = LeaseFile(kube, settings)
        self._candidate = Candidate(self._file, settings, self.identity, clock)
        self._changed = changed
        self._able = able
        self._status = ElectionStatus()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="surefoot-elector", daemon=True)

    @property
    def fence(self) -> Fence | None:
        """What writes are to ask; None: this process does not lead now."""
        fence = self._candidate.fence
        return fence if fence is not None and fence.holds() else None

    @property
    def leads(self) -> bool:
        """Whether this process leads now."""
        return self.fence is not None

    @property
    def status(self) -> ElectionStatus:
        """What is known of the election now."""
        fence = self.fence
        return replace(self._status, term=fence.term if fence else None)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to look and to take."""
        self._thread.start()

    def raise_to(self, term: int) -> None:
        """Somebody led in this term already, though the Lease does not know: lead in a higher one.
        Called from another thread.
        """
        self._candidate.raise_to(term)
        self._wake.set()

    def close(self) -> None:
        """Stop, and give the Lease back, so that a successor need not wait.

        Close first what writes. Where the API server does not answer, that is left to the end of
        the process, and the Lease to the end of its time.
        """
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(self._settings.duration_s / 2)
        fence = self._candidate.fence
        if fence is not None:
            fence.end()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            before = self._candidate.fence
            leads = before is not None and before.holds()
            asked_s = self._hindered_s(self._candidate.step) if leads or self._able() else 0.0
            self._tell(before)
            self._wake.wait(self._pause_s(asked_s))
        before = self._candidate.fence
        self._hindered_s(self._candidate.resign)
        self._tell(before)
        self._file.close()

    def _hindered_s(self, step: Callable[[], None]) -> float:
        """Do it, and note how it went; how long the API server asks to be left alone, in seconds."""
        problem, asked_s, heard_s = None, 0.0, self._status.heard_s
        try:
            step()
            heard_s = time.monotonic()
        except RefusedError as error:
            problem, asked_s = str(error), error.retry_after_s
        except KubeError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
            _log.exception("election_failed")
            problem = f"{type(error).__name__}: {error}"
        if problem is not None and self._status.problem is None:
            # Said once: what follows are more tries.
            _log.warning("election_hindered", problem=problem)
        holder = self._candidate.holder
        self._status = ElectionStatus(holder=holder, heard_s=heard_s, problem=problem)
        return asked_s

    def _tell(self, before: Fence | None) -> None:
        """Log and call back where the fence is another than before."""
        fence = self._candidate.fence
        if fence is before:
            return
        _log.info("leads" if fence else "stands_by", term=fence.term if fence else None)
        try:
            self._changed()
        except Exception:  # noqa: BLE001 - a mistake of whoever listens must not end the term
            _log.exception("election_not_told")

    def _pause_s(self, asked_s: float) -> float:
        """Until the next step: at once where another's time ends, and never so long that a leader
        misses its renewal.
        """
        retry_s = self._settings.retry_s
        due_s = self._candidate.wait_s() if self._candidate.fence is None else 0.0
        pause_s = min(retry_s, due_s) if due_s else retry_s
        return max(pause_s, min(asked_s, self._settings.duration_s / 4)) * random.uniform(1.0, 1.1)
