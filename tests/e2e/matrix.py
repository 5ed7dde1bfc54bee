"""Runs every test on every version, and writes docs/compatibility.md from what came out.

`python -m e2e.matrix [VERSION ...]`; words after `--` go to pytest. What came out is kept, version by
version and file by file, so that one version, or some files, can be run again: the page has the latest
of each. Exit code 1: some test failed.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import click

from e2e import binaries, versions
from e2e.go import BuildError

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PAGE: Final = ROOT / "docs" / "compatibility.md"
INTRODUCTION: Final = """\
<!-- Written by `make e2e-matrix` from its own results. -->
# Kubernetes versions

Each row is a file of [tests/e2e](../tests/e2e/README.md), which runs Surefoot in front of the real
kube-scheduler of that version, with real etcd, kube-apiserver and kube-controller-manager.
"""


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "**failed**"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One test on one version."""

    file: str
    outcome: Outcome
    reason: str = ""
    """Why it was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """All tests on one version."""

    wanted: str
    version: str
    """The one that ran: the nearest to `wanted` that the module proxy serves."""
    results: tuple[Result, ...]


def run(wanted: str, words: Sequence[str]) -> Column:
    """Run the tests on this version, or the nearest that is served.

    Raises:
        BuildError: it cannot be built.
    """
    version = binaries.served(wanted)
    binaries.built(version)
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest"),
                *(f"--kubernetes={version}", f"--junitxml={report}", *words),
                *sorted(HERE.glob("test_*.py")),
            ],
            cwd=ROOT,
            check=False,
        )
        if not report.exists():
            raise BuildError(f"the tests on Kubernetes {version} did not end by themselves")
        return Column(wanted=wanted, version=version, results=tuple(results(report)))


def shelf() -> Path:
    """Where columns are kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "surefoot" / "e2e" / "results"


def kept(place: Path) -> dict[str, Column]:
    """The columns that are kept, by the version that was wanted; of files that are no more: nothing."""
    found = {}
    for file in sorted(place.glob("*.json")):
        said = json.loads(file.read_text())
        lines = tuple(
            Result(file=each["file"], outcome=Outcome(each["outcome"]), reason=each["reason"])
            for each in said["results"]
            if (HERE / each["file"]).exists()
        )
        column = Column(wanted=said["wanted"], version=said["version"], results=lines)
        found[column.wanted] = column
    return found


def keep(place: Path, column: Column) -> Column:
    """Keep a column, and what was kept of files that it has no result of; the whole column then."""
    place.mkdir(parents=True, exist_ok=True)
    ran = {each.file for each in column.results}
    before = kept(place).get(column.wanted)
    rest = () if before is None or before.version != column.version else before.results
    results = (*column.results, *(each for each in rest if each.file not in ran))
    whole = replace(column, results=results)
    lines = [
        {"file": each.file, "outcome": each.outcome.value, "reason": each.reason}
        for each in whole.results
    ]
    said = {"wanted": whole.wanted, "version": whole.version, "results": lines}
    (place / f"{whole.wanted}.json").write_text(json.dumps(said))
    return whole


def results(report: Path) -> Iterable[Result]:
    """What a report in JUnit's form says; a test with an error in its teardown has failed."""
    for case in ET.parse(report).iter("testcase"):
        file = f"{case.get('classname', '').rpartition('.')[2]}.py"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield Result(file=file, outcome=Outcome.FAILED)
        elif skipped is not None:
            yield Result(file=file, outcome=Outcome.SKIPPED, reason=skipped.get("message", ""))
        else:
            yield Result(file=file, outcome=Outcome.PASSED)


def page(columns: Sequence[Column]) -> str:
    """docs/compatibility.md."""
    files = sorted({result.file for column in columns for result in column.results})
    notes: dict[str, int] = {}
    rows = [
        ["behaviour", *(column.version for column in columns)],
        ["---"] * (len(columns) + 1),
        *(
            [f"[{_title(file)}](../tests/e2e/{file})"]
            + [_cell(file, column, notes) for column in columns]
            for file in files
        ),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    reasons = "\n".join(f"{number}. {reason}" for reason, number in notes.items())
    absent = "\n".join(
        f"{column.wanted} is not served by the Go module proxy that this ran with; "
        f"{column.version} is the nearest that is."
        for column in columns
        if column.wanted != column.version
    )
    parts = (INTRODUCTION.rstrip(), table, reasons and f"Skipped, because:\n\n{reasons}", absent)
    return "\n\n".join(filter(None, parts)) + "\n"


def _cell(file: str, column: Column, notes: dict[str, int]) -> str:
    """As `4 passed, 1 skipped (1)`, where (1) is the number of a note."""
    mine = [result for result in column.results if result.file == file]
    counts = Counter(result.outcome for result in mine)
    numbers = sorted(
        {notes.setdefault(each.reason, len(notes) + 1) for each in mine if each.reason}
    )
    noted = f" ({', '.join(map(str, numbers))})" if numbers else ""
    told = ", ".join(f"{counts[each]} {each}" for each in Outcome if counts[each])
    return f"{told}{noted}" or "none"


def _title(file: str) -> str:
    """The first sentence of a test file, without its full stop."""
    written = ast.get_docstring(ast.parse((HERE / file).read_text())) or file
    return " ".join(written.split("\n\n")[0].split()).rstrip(".")


def main(words: list[str]) -> int:
    """Run them all, even after a failure."""
    at = words.index("--") if "--" in words else len(words)
    wanted, for_pytest = words[:at], words[at + 1 :]
    try:
        columns = [run(each, for_pytest) for each in wanted or versions.ALL]
    except BuildError as error:
        click.echo(error, err=True)
        return 1
    for column in columns:
        keep(shelf(), column)
    every = kept(shelf())
    PAGE.write_text(page([every[version] for version in versions.ALL if version in every]))
    failed = [
        result
        for column in columns
        for result in column.results
        if result.outcome is Outcome.FAILED
    ]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
