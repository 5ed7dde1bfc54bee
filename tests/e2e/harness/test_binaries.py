"""The programs are built once, by a Go that can, and kept whole or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e import binaries, versions
from e2e.go import BuildError, Go

GO = Go(program="go", version="go1.26.0")


def _fake_go(directory: Path, says: str) -> str:
    """A PATH with a `go` that only tells its version."""
    program = directory / "go"
    program.write_text(f"#!/bin/sh\necho 'go version {says} linux/amd64'\n")
    program.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize(
    ("says", "told"), [(None, "there is none"), ("go1.25.7", "there is go1.25.7")]
)
def test_a_go_that_is_missing_or_too_old_is_told_in_one_sentence(
    says: str | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed, and what is there instead."""
    monkeypatch.setenv("PATH", _fake_go(tmp_path, says) if says else str(tmp_path))
    with pytest.raises(BuildError) as caught:
        Go.found()
    assert str(caught.value) == (f"Go 1.26 or newer is needed on PATH to build Kubernetes; {told}")


def test_a_newer_go_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions compare as numbers."""
    monkeypatch.setenv("PATH", _fake_go(tmp_path, "go1.100rc1"))
    assert Go.found().version == "go1.100rc1"


def test_the_nearest_served_patch_release_is_found() -> None:
    """Of the same minor version; None where no release of it is served."""
    served = ("1.34.0", "1.34.4", "1.35.4", "1.36.1", "1.36.3")
    assert versions.nearest("1.36.3", served) == "1.36.3"
    assert versions.nearest("1.34.9", served) == "1.34.4"
    assert versions.nearest("1.33.1", served) is None


def test_two_who_build_at_once_get_one_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one waits, and takes what the first one built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = []

    def build(go: Go, version: str, work: Path, kept: Path) -> None:
        built.append(sorted(each.name for each in work.iterdir()))
        (kept / "program").write_text("ready")

    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(binaries.kept, GO, "kwok", "1", build) for _ in range(4)]
        places = {call.result() for call in calls}
    (place,) = places
    assert (place / "program").read_text() == "ready"
    assert built == [["tools.go"]]


def test_a_build_that_fails_leaves_nothing_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes half a build for a whole one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def broken(go: Go, version: str, work: Path, kept: Path) -> None:
        (kept / "program").write_text("half")
        raise BuildError("no")

    with pytest.raises(BuildError):
        binaries.kept(GO, "kwok", "1", broken)
    left = [each.name for each in (tmp_path / "surefoot" / "e2e").iterdir()]
    assert all(name.endswith(".lock") for name in left)
    assert not (binaries.kept(GO, "kwok", "1", lambda *_: None) / "program").exists()


def test_another_go_or_version_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is keyed by all that goes into it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    newer = Go(program="go", version="go1.27.0")
    places = {
        binaries.kept(go, "kwok", version, lambda *_: None)
        for go in (GO, newer)
        for version in ("1", "2")
    }
    assert len(places) == 4
