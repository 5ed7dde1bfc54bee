"""Servers as children: started apart from the terminal's signals, ended for certain."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from extender.demo.errors import DemoError

START_S: Final = 20.0
STOP_S: Final = 5.0
POLL_S: Final = 0.02


class Child:
    """One server process, and whatever it forks."""

    def __init__(
        self, command: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`directory` is where it works and where its log is kept."""
        self._command = list(command)
        self._directory = directory
        self._environment = environment
        self._log = directory / f"{Path(command[0]).name}-{id(self):x}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, in a session of its own: Ctrl-C is the demo's to handle.

        Raises:
            DemoError: it cannot be run.
        """
        try:
            with self._log.open("wb") as output:
                self._process = subprocess.Popen(  # noqa: S603 - our own command
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise DemoError(f"{self._command[0]}: {error.strerror}") from error

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Return once `ready` is true.

        Raises:
            DemoError: it ended, or was not ready within `START_S`.
        """
        deadline_s = time.monotonic() + START_S
        while not ready():
            if self._process is None or self._process.poll() is not None:
                raise DemoError(f"{self._command[0]} ended at once: {self._last_words()}")
            if time.monotonic() > deadline_s:
                raise DemoError(f"{self._command[0]} is not ready: {self._last_words()}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """End it and all that it forked; nothing where it does not run."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-1000:].strip() or "it said nothing"


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether something accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
