"""The `surefoot` command, as a call in this process and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from click.testing import CliRunner, Result

from extender.cli import main


@dataclass(frozen=True, slots=True)
class Surefoot:
    """The command on one cache."""

    url: str

    def __call__(self, *words: str, stdin: bytes | str = "", **environment: str) -> Result:
        """In this process, with variables `SUREFOOT_...` of its own."""
        settings = {f"SUREFOOT_{name}": value for name, value in environment.items()}
        runner = CliRunner(env={"SUREFOOT_STORE__URL": self.url, **settings})
        result = runner.invoke(main, words, input=stdin, prog_name="surefoot")
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result

    def process(self, *words: str, code: str = "") -> subprocess.Popen[str]:
        """In a process of its own; `code` runs in it first."""
        start = [sys.executable, "-m", "extender"]
        if code:
            start = [sys.executable, "-c", f"from extender.cli import main; {code}\nmain()"]
        return subprocess.Popen(
            [*start, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SUREFOOT_STORE__URL": self.url, "PYTHONUNBUFFERED": "1"},
        )
