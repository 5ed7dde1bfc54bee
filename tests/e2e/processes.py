"""Servers as children: with a log each, ended for certain, and never outliving the tests."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import pytest

from e2e.waiting import eventually

TETHER: Final = Path(__file__).with_name("tether.py")
PORTS: Final = range(15_000, 32_000)
"""Below those that the kernel gives to outgoing connections, which come and go by the thousand."""
START_S: Final = 180.0
"""For the start of a program while others compile or test on the same cores."""
LAST_WORDS: Final = 3000
"""Characters of a log that a failure repeats."""


class Process:
    """One program, and whatever it forks; it can be started again after its end."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is added to that of the tests; the log of a later start is appended."""
        self.log = log
        self._command = [str(word) for word in command]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it, in a session of its own: Ctrl-C is for the tests to handle.

        Call it in a thread that lives on: the kernel takes that thread for the parent.
        """
        assert not self.runs(), f"{self.log.stem} runs already"
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-ISE", str(TETHER), str(os.getpid()), *self._command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        return self

    def wait_until(self, ready: Callable[[], bool], within_s: float = START_S) -> None:
        """Return once `ready` is true; fails with the end of its log if it ends or takes longer."""
        name = self.log.stem
        eventually(lambda: not self.runs() or ready(), f"{name} is ready", within_s=within_s)
        if not self.runs():
            pytest.fail(f"{name} ended at once; {self.log} ends with:\n{self.text()[-LAST_WORDS:]}")

    def runs(self) -> bool:
        """Whether it was started and did not end."""
        return self._process is not None and self._process.poll() is None

    def stop(self, within_s: float = 15.0) -> None:
        """SIGTERM as Kubernetes would send it, and SIGKILL to whatever is left."""
        if self._process is not None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(within_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to it and to whatever it forked; nothing where it does not run."""
        if self._process is not None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End the pause."""
        self._signal(signal.SIGCONT)

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def _signal(self, number: signal.Signals) -> None:
        """To its whole process group, which may outlive it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def free_port() -> int:
    """A port that nothing listens on, and that no outgoing connection will take meanwhile."""
    while True:
        port = secrets.choice(PORTS)  # not seeded, so no two workers choose alike
        with socket.socket() as probe:
            # As Go's and Python's servers do: a port whose last connections linger is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
