"""What README and docs/demo.md say of the demo: the figures, rows and faults that it prints."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterator
from typing import Any

import pages
import pytest
from rich.console import Console
from surefoot_in_process import InProcess

from extender.cli.demo import command
from extender.demo.day import Day, NoReports
from extender.demo.faults import STORIES
from extender.demo.run import Report
from extender.demo.scenario import Scenario, scenario
from extender.demo.show import Screen

Rows = dict[str, tuple[str, ...]]


pytestmark = pytest.mark.untraced  # traced, the day takes three times as long


@functools.cache
def _plan() -> Scenario:
    """The demo's default day."""
    defaults: dict[str, Any] = {option.name: option.default for option in command.params}
    return scenario(defaults["nodes"], defaults["seed"])


@functools.cache
def _printed() -> Rows:
    """The rows that the demo prints for it, by title. Surefoot answers in process, so the times of
    `/filter` are made up.
    """
    plan = _plan()
    surefoot = InProcess(plan)
    report = Report(
        with_surefoot=Day(plan, surefoot, surefoot).run(),
        without=Day(plan, None, NoReports()).run(),
        filter_latencies_s=(0.001,),
        explained=(),
    )
    paper = io.StringIO()
    Screen(Console(file=paper, width=200)).conclude(report)
    return dict(_rows(paper.getvalue(), "│"))


def _rows(text: str, bar: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rows of a table, by their first cell; bold is not told, nor how many calls there were."""
    for line in text.splitlines():
        if line.startswith(bar):
            title, *cells = (cell.strip(" *") for cell in line.strip(bar).split(bar))
            yield re.sub(r"of \d+ calls", "of the calls", title), tuple(cells)


def _readme() -> tuple[str, str]:
    """What README says of its table, in a comment, and the table."""
    found = re.search(
        r"<!-- demo table: (.+?) -->\n(.+?)<!-- end of demo table -->",
        pages.text("README.md"),
        re.DOTALL,
    )
    assert found is not None
    return found[1], found[2]


def test_the_table_in_the_readme_is_what_the_demo_prints() -> None:
    """Each row is there, in order, with the figures of both runs; of the last one, which differs
    between machines, the form.
    """
    _, table = _readme()
    shown = list(_rows(table, "|"))[2:]  # below the head
    *figures, (latency, (_, times)) = _printed().items()
    assert shown[:-1] == figures
    assert (shown[-1][0], shown[-1][1][0]) == (latency, "")
    assert re.sub(r"[\d.]+", "0", shown[-1][1][1]) == re.sub(r"[\d.]+", "0", times)


def test_the_readme_says_which_day_its_table_is_of() -> None:
    """The command, with the seed, is beside the table, and the prose counts the day's faults."""
    plan, (told, _) = _plan(), _readme()
    assert f"`surefoot demo --seed {plan.seed}`" in told
    assert f"(seed {plan.seed}, {len(plan.truth.faults)} faults)" in pages.text("README.md")


def test_every_row_that_the_demo_prints_is_explained() -> None:
    """docs/demo.md has a row for each."""
    explained = dict(_rows(pages.text("docs/demo.md"), "|"))
    assert [title for title in _printed() if title not in explained] == []


def test_every_story_of_faults_is_told_with_its_number() -> None:
    """docs/demo.md has the stories that `STORIES` has, as often."""
    told = dict(_rows(pages.text("docs/demo.md"), "|"))
    assert {story.kind.value: told[story.kind.value][0] for story in STORIES} == {
        story.kind.value: f"{story.count:g}" for story in STORIES
    }
