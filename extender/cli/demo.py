"""`surefoot demo`: a day of GPU faults, with Surefoot and without."""

from __future__ import annotations

import importlib.util
import math
import sys
from typing import TYPE_CHECKING, Final

import click
import msgspec

from extender.cli import options

if TYPE_CHECKING:
    from extender.demo.interrupts import Interrupts
    from extender.demo.scenario import Scenario

SMALLEST_FLEET: Final = 4
LARGEST_FLEET: Final = 512


def _finite(_ctx: click.Context, _param: click.Parameter, hours: float) -> float:
    """Refuse `nan`, which no range holds out."""
    if not math.isfinite(hours):
        raise click.BadParameter("must be a number of hours")
    return hours


@click.command("demo", short_help="Run a simulated day of GPU faults, with Surefoot and without.")
@click.option(
    "--nodes",
    type=click.IntRange(SMALLEST_FLEET, LARGEST_FLEET),
    default=48,
    show_default=True,
    help="Size of the fleet.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Another seed is another day.")
@click.option(
    "--hours",
    type=click.FloatRange(1, 168),
    callback=_finite,
    default=24.0,
    show_default=True,
    help="Length of the simulated day; faults and jobs shrink or stretch with it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON and nothing else.")
@click.option(
    "--redis-url", metavar="URL", help="Use this Redis or Valkey instead of an embedded one."
)
def command(nodes: int, seed: int, hours: float, as_json: bool, redis_url: str | None) -> None:
    """Schedule a simulated day of GPU faults twice, with Surefoot and without.

    A real `surefoot serve` and a real Valkey run beside a simulated fleet and a small gang
    scheduler. Both runs meet the same jobs and faults.

    GPU hours are lost in two ways: a fault that kills a job costs all of its GPUs the time since
    the last checkpoint (every 30 min) and 10 min to restart; a slow GPU (thermal 0.6, NVLinks down
    0.7 of full speed) slows all GPUs of its job. The slowest link is that of the best ring through
    the GPUs that a gang's members were given in each node; the network is left out.

    Exit code 0: done. 1: a part does not run. 130: Ctrl-C. docs/demo.md tells the whole model.

    \b
    Example:
      surefoot demo --nodes 48 --seed 7
      surefoot demo --json
    """
    from extender.demo.interrupts import Interrupted, Interrupts  # noqa: PLC0415 - `--help` is quick

    with Interrupts() as interrupts:
        try:
            problem = _demo(nodes, seed, hours, as_json, redis_url, interrupts)
        except Interrupted as interrupted:
            sys.exit(interrupted.code)
    if interrupts.received is not None:
        sys.exit(Interrupted(interrupts.received).code)
    if problem is not None:
        options.fail(problem, code=1)


def _demo(
    nodes: int,
    seed: int,
    hours: float,
    as_json: bool,
    redis_url: str | None,
    interrupts: Interrupts,
) -> str | None:
    """Run it and print what came of it; what went wrong, or None."""
    from extender.demo.errors import DemoError  # noqa: PLC0415
    from extender.demo.faults import HOUR_S  # noqa: PLC0415
    from extender.demo.outcome import json_line  # noqa: PLC0415
    from extender.demo.run import run  # noqa: PLC0415
    from extender.demo.scenario import scenario  # noqa: PLC0415
    from extender.store.errors import StoreError  # noqa: PLC0415

    plan = scenario(nodes, seed, hours * HOUR_S)
    try:
        if not as_json:
            return _shown(plan, redis_url, interrupts)
        report = run(plan, interrupts, redis_url)
    except (DemoError, StoreError) as error:
        return str(error)
    line = json_line(report.with_surefoot, report.without, report.filter_latencies_s)
    click.echo(msgspec.json.encode(line).decode())
    return None


def _shown(plan: Scenario, redis_url: str | None, interrupts: Interrupts) -> str | None:
    """Run it with a table at the end, and live progress where there is a terminal."""
    from extender.demo.run import run  # noqa: PLC0415

    if importlib.util.find_spec("rich") is None:
        return "the table needs rich: pip install 'surefoot[demo]', or use --json"
    from rich.console import Console  # noqa: PLC0415 - an optional extra

    from extender.demo.show import Screen  # noqa: PLC0415 - needs rich

    screen = Screen(Console())
    screen.introduce(plan)
    with screen.live():
        report = run(plan, interrupts, redis_url, lambda which: screen.watch(which, plan.day_s))
    screen.conclude(report)
    return None
