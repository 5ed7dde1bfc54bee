"""The repository itself: what builds the image, what is pinned, what must not be in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pages
import pytest

LOCKS = sorted((pages.ROOT / "requirements").glob("*.txt"))
REGISTRIES = (
    ("docker", "io"),
    ("ghcr", "io"),
    ("gcr", "io"),
    ("quay", "io"),
    ("nvcr", "io"),
    ("registry", "k8s", "io"),
    ("mcr", "microsoft", "com"),
    ("public", "ecr", "aws"),
    ("pypi", "org"),
    ("files", "pythonhosted", "org"),
)
"""In pieces, so that this file does not name one."""


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=False)


def _instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, continued lines joined."""
    lines = [line for line in pages.text("Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (word, rest.strip())
        for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())
    ]


def test_the_image_is_built_by_venv_and_pip_alone() -> None:
    """Each RUN is `python -m venv` and `pip install --require-hashes`, so a test can do the same."""
    runs = [rest for word, rest in _instructions() if word == "RUN"]
    assert runs
    for run in runs:
        for command in map(str.strip, run.split("&&")):
            made = re.fullmatch(r"python3? -m venv \S+", command)
            filled = re.match(r"\S*pip install\b", command) and "--require-hashes" in command
            assert made or filled, command


def test_everything_that_the_image_copies_is_there() -> None:
    """Each COPY source exists and is not kept out by .dockerignore."""
    let_in = {line[1:] for line in pages.text(".dockerignore").splitlines() if line.startswith("!")}
    copied = [
        source
        for word, rest in _instructions()
        if word == "COPY" and "--from=" not in rest
        for source in rest.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (pages.ROOT / source).exists(), source
        assert source in let_in


def test_the_image_runs_as_a_number_and_starts_surefoot() -> None:
    """`runAsNonRoot` can be checked, and no shell stands between."""
    told = dict(_instructions())
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", told["USER"])
    assert told["ENTRYPOINT"].startswith("[")
    assert '"extender"' in told["ENTRYPOINT"]


def test_hadolint_finds_nothing() -> None:
    """The Dockerfile is clean by hadolint's rules."""
    done = _run(Path(sys.executable).parent / "hadolint", "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_locks_pin_everything_with_hashes_and_name_no_address(lock: Path) -> None:
    """Each requirement is an exact version with a hash, from whatever index the user has."""
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==\S+", entry), entry.splitlines()[0]
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


def test_what_the_image_runs_accepts_the_runtime_lock(tmp_path: Path) -> None:
    """The Dockerfile's two commands work, offline: pip finds the lock complete, with a hash for
    every dependency of a dependency, and satisfied by what the tests run on.
    """
    made = _run(sys.executable, "-m", "venv", tmp_path / "venv")
    assert made.returncode == 0, made.stderr
    options = ("--dry-run", "--no-index", "--require-hashes", "--disable-pip-version-check")
    found = _run(
        *(tmp_path / "venv" / "bin" / "pip", "--python", sys.executable, "install", "--quiet"),
        *(*options, "-r", "requirements/runtime.txt"),
    )
    assert found.returncode == 0, found.stderr


def test_no_registry_is_named() -> None:
    """Images and packages come from the user's own registries: names here are bare."""
    hosts = re.compile("|".join(rf"\b{re.escape('.'.join(parts))}\b" for parts in REGISTRIES))
    for file in pages.tracked():
        found = hosts.search(file.read_bytes().decode("utf-8", "replace"))
        assert found is None, f"{found} in {file}"


def test_the_makefile_has_the_usual_targets_and_help_tells_of_them() -> None:
    """`make help` lists whatever a newcomer needs."""
    done = _run("make", "--no-print-directory", "help")
    assert done.returncode == 0
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    usual = {"install", "demo", "test", "check", "bench", "fuzz", "format", "help"}
    assert usual <= listed
    phony = re.search(r"^\.PHONY: (.+)$", pages.text("Makefile"), re.MULTILINE)
    assert phony is not None
    assert usual <= set(phony[1].split())


def test_the_licence_is_apache_2() -> None:
    """LICENSE is the whole of it, and the package says so."""
    text = pages.text("LICENSE")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert tomllib.loads(pages.text("pyproject.toml"))["project"]["license"] == "Apache-2.0"


def test_each_dependency_of_the_product_says_why_it_is_there() -> None:
    """A dependency, or an extra's, has a comment on its line."""
    text = pages.text("pyproject.toml")
    project = tomllib.loads(text)["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    for name in (*project["dependencies"], *extras):
        line = next(line for line in text.splitlines() if f'"{name}"' in line)
        assert re.search(r"#\s*\S.{2,}", line), name
