"""The demo on a terminal: progress while it runs, the table and three decisions at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table
from rich.text import Text

from extender.config import durations
from extender.demo.day import Watch
from extender.demo.decisions import Explained
from extender.demo.faults import HOUR_S, MINUTE_S, Kind
from extender.demo.outcome import Outcome, percentile_ms
from extender.demo.run import Report
from extender.demo.scenario import Scenario
from extender.demo.tally import Glance

GPU_CHARACTERS: Final = 12
"""Enough of a UUID to tell GPUs apart."""
NARROW: Final = 104
"""Columns of a terminal below which the bar leaves its place to the figures."""


class Screen:
    """Shows a demo on one console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description:<7}"),
            *([] if console.width < NARROW else [BarColumn(bar_width=24)]),
            TextColumn(
                "{task.fields[now]}", table_column=Column(no_wrap=True, overflow="ellipsis")
            ),
            console=console,
            disable=not console.is_terminal,
        )

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show progress, on a terminal, while the block runs."""
        with self._progress:
            yield

    def introduce(self, plan: Scenario) -> None:
        """Say what is about to happen."""
        gangs = sum(job.is_gang for job in plan.jobs)
        faults = plan.truth.faults
        self._console.print(
            f"{len(plan.machines)} nodes, {plan.gpus} GPUs; {plan.day_s / HOUR_S:g} simulated hours with"
            f" {gangs} gangs, {len(plan.jobs) - gangs} single jobs, {len(faults)} faults"
            f" (seed {plan.seed})"
        )
        counts = {kind: sum(f.kind is kind for f in faults) for kind in Kind}
        told = ", ".join(f"{count} x {kind.value}" for kind, count in counts.items())
        self._console.print(Text(told, style="dim"))

    def watch(self, which: str, day_s: float) -> Watch | None:
        """Who is told of the progress of one of the two runs."""
        task = self._progress.add_task(which, total=day_s, now="")

        def show(glance: Glance) -> None:
            self._progress.update(task, completed=glance.time_s, now=_now(glance))

        return show

    def conclude(self, report: Report) -> None:
        """The table and the decisions."""
        self._console.print()
        self._console.print(_table(report))
        for explained in report.explained:
            self._console.print()
            self._decision(explained)

    def _decision(self, explained: Explained) -> None:
        told = explained.told
        fits = told["verdict"] == "pass"
        verdict = f"fits, rank {told['rank']:.2f}" if fits else told["text"]
        head = Text.assemble(
            (f"{clock(explained.time_s)}  ", "dim"),
            (f"{explained.pod} ({explained.gpus} GPUs) on {explained.node}: ", "bold"),
            (verdict, "green" if fits else "red"),
        )
        self._console.print(head)
        if fits:
            parts = ", ".join(f"{name} {value:.2f}" for name, value in told["parts"].items())
            self._line(f"parts: {parts}")
        for each in told["evidence"][:3]:
            place = (each["gpu"] or "node")[:GPU_CHARACTERS]
            age = "" if each["age_s"] is None else f" ({durations.ago(each['age_s'])})"
            self._line(f"{place} {each['cause']}{age}: {each['value']}")
        if not fits:
            self._line(f"what to do: {told['advice']}")
        self._line(explained.summary, style="dim")

    def _line(self, text: str, style: str = "") -> None:
        """A detail, indented on each of its lines."""
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, 4), expand=False))


def clock(time_s: float) -> str:
    """The time of the simulated day, `14:32`."""
    return f"{int(time_s // HOUR_S):02d}:{int(time_s % HOUR_S // MINUTE_S):02d}"


def _now(glance: Glance) -> str:
    return (
        f"{clock(glance.time_s)} {glance.gangs_started:3d} gangs,"
        f" {glance.gangs_on_degraded:2d} on bad GPUs, {glance.waiting:2d} waiting,"
        f" {glance.utilisation_ratio:3.0%} used, {glance.gpu_hours_lost:4.0f} GPU h lost"
    )


def _table(report: Report) -> Table:
    table = Table(title="The same day twice", title_justify="left")
    table.add_column("")
    table.add_column("without", justify="right")
    table.add_column("with Surefoot", justify="right", style="bold")
    for title, one, other in _rows(report.without, report.with_surefoot):
        table.add_row(title, one, other)
    latencies_s = report.filter_latencies_s
    table.add_row(
        f"/filter p50, p99 of {len(latencies_s)} calls",
        "",
        f"{percentile_ms(latencies_s, 0.5):.1f} ms, {percentile_ms(latencies_s, 0.99):.1f} ms",
    )
    return table


def _rows(without: Outcome, with_: Outcome) -> Iterator[tuple[str, str, str]]:
    for title, name, form in (
        ("gangs started", "gangs_started", "d"),
        ("gangs on a degraded GPU", "gangs_on_degraded", "d"),
        ("  of these, broken or slow at that moment", "gangs_on_impaired", "d"),
        ("gangs killed by a fault while they ran", "gangs_killed", "d"),
        ("mean slowest link, GB/s", "slowest_link_gbps_mean", ".1f"),
        ("GPU hours lost", "gpu_hours_lost", ".1f"),
        ("single jobs started", "singles_started", "d"),
        ("GPUs in use, mean", "utilisation_ratio", ".0%"),
    ):
        yield title, format(getattr(without, name), form), format(getattr(with_, name), form)
