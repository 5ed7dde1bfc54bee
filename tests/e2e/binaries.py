"""The programs of a control plane, built from Go modules and kept outside the tree.

`python -m e2e.binaries [VERSION ...]` builds ahead of the tests: the first time takes minutes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from e2e import builds, versions
from e2e.go import BuildError, Go

RECIPES: Final = Path(__file__).parent / "recipes"
KWOK_VERSION: Final = "0.7.0"

Build = Callable[[Go, str, Path, Path], None]
"""One of builds.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Where the programs are."""

    control_plane: Path
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler, by first argument."""
    kwok: Path
    stages: Path


def built(version: str) -> Binaries:
    """The programs for this version of Kubernetes, built where they are not there yet.

    Raises:
        BuildError: Go is missing or too old, the version is not served, or a build fails.
    """
    go = Go.found()
    plane = kept(go, "control-plane", version, _control_plane)
    kwok = kept(go, "kwok", KWOK_VERSION, builds.kwok)
    return Binaries(
        control_plane=plane / "control-plane", kwok=kwok / "kwok", stages=kwok / "stages"
    )


def served(version: str) -> str:
    """`version`, or the nearest patch release of it that the module proxy serves.

    Raises:
        BuildError: no release of that minor version is served.
    """
    go = Go.found()
    with tempfile.TemporaryDirectory() as directory:
        there = go.served(Path(directory), builds.KUBERNETES)
    found = versions.nearest(version, there)
    if found is None:
        raise BuildError(
            f"Kubernetes {version} is not served by the Go module proxy, nor its minor version"
        )
    return found


def _control_plane(go: Go, version: str, work: Path, kept: Path) -> None:
    if (nearest := served(version)) != version:
        raise BuildError(
            f"Kubernetes {version} is not served by the Go module proxy; "
            f"the nearest that is: {nearest}"
        )
    builds.control_plane(go, version, work, kept)


def kept(go: Go, name: str, version: str, build: Build) -> Path:
    """The directory of what `build` leaves: in the cache, keyed by all that goes into it.

    Raises:
        BuildError: it cannot be built.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot" / "e2e"
    cache.mkdir(parents=True, exist_ok=True)
    sources = sorted((RECIPES / name).iterdir())
    digest = hashlib.sha256(go.version.encode())
    for each in (*sources, Path(builds.__file__)):
        digest.update(each.read_bytes())
    place = cache / f"{name}-{version}-{digest.hexdigest()[:12]}"
    with _locked(place.with_name(f"{place.name}.lock")):
        if not place.exists():
            click.echo(f"building {name} {version}: minutes the first time", err=True)
            begun_s = time.monotonic()
            with tempfile.TemporaryDirectory(dir=cache) as work, _fresh(place) as fresh:
                for each in sources:
                    shutil.copy(each, work)
                build(go, version, Path(work), fresh)
            took_s = time.monotonic() - begun_s
            click.echo(f"built {name} {version} in {took_s:.0f} s", err=True)
    return place


@contextmanager
def _fresh(kept: Path) -> Iterator[Path]:
    """A directory that becomes `kept` at once and whole, or not at all."""
    fresh = Path(tempfile.mkdtemp(dir=kept.parent))
    try:
        yield fresh
        fresh.rename(kept)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One build at a time, among all processes; ends with the process."""
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main(wanted: list[str]) -> int:
    """Build for these versions, by default for that of `make e2e`."""
    try:
        for version in wanted or [versions.DEFAULT]:
            click.echo(built(version).control_plane)
    except BuildError as error:
        click.echo(error, err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
