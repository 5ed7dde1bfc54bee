"""The Go toolchain: what is on PATH, what its module proxy serves, and one build of one program."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

MINIMUM: Final = (1, 26)
"""What Kubernetes 1.37 says in its go.mod."""
LAST_WORDS: Final = 2000
"""Characters of the output that an error repeats."""


class BuildError(Exception):
    """A program cannot be built; one sentence why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Go module at one version."""

    path: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go toolchain that is new enough."""

    program: str
    version: str

    @classmethod
    def found(cls) -> Self:
        """The one on PATH.

        Raises:
            BuildError: there is none, or it is too old.
        """
        needed = "Go {}.{} or newer is needed on PATH to build Kubernetes".format(*MINIMUM)
        program = shutil.which("go")
        if program is None:
            raise BuildError(f"{needed}; there is none")
        said = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
        numbers = re.search(r"\bgo(\d+)\.(\d+)\S*", said.stdout)
        if numbers is None:
            raise BuildError(f"{needed}; `go version` says: {said.stdout}{said.stderr}")
        if (int(numbers[1]), int(numbers[2])) < MINIMUM:
            raise BuildError(f"{needed}; there is {numbers[0]}")
        return cls(program=program, version=numbers[0])

    def run(self, directory: Path, *words: str) -> str:
        """What `go WORDS` prints, run in `directory`.

        Raises:
            BuildError: it fails.
        """
        done = subprocess.run(
            [self.program, *words],
            cwd=directory,
            env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"`go {' '.join(words)}` failed: {done.stderr[-LAST_WORDS:].strip()}")
        return done.stdout

    def served(self, directory: Path, path: str) -> tuple[str, ...]:
        """Release versions of a module that the proxy serves, without their v.

        Raises:
            BuildError: the proxy does not answer.
        """
        listed = self.run(directory, "list", "-m", "-versions", path).split()[1:]
        return tuple(each[1:] for each in listed if re.fullmatch(r"v\d+\.\d+\.\d+", each))

    def requirements(self, directory: Path, module: Module) -> GoMod:
        """go.mod of a module.

        Raises:
            BuildError: the module cannot be had.
        """
        told = self.run(directory, "mod", "download", "-json", f"{module.path}@{module.version}")
        file = json.loads(told)["GoMod"]
        read = json.loads(self.run(directory, "mod", "edit", "-json", file))
        return GoMod(
            requires={each["Path"]: each["Version"] for each in read["Require"]},
            staged=tuple(
                each["Old"]["Path"]
                for each in read.get("Replace") or ()
                if each["New"]["Path"].startswith("./staging/")
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GoMod:
    """What matters of a go.mod."""

    requires: Mapping[str, str]
    """Version by module."""
    staged: tuple[str, ...]
    """Modules that live in the same repository, and are published beside it."""
