"""`surefoot demo`: a day of GPU faults, with Surefoot and without."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Final

import click
import msgspec

from extender.cli import options

SMALLEST_FLEET: Final = 4
LARGEST_FLEET: Final = 512


@click.command("demo")
@click.option(
    "--nodes",
    type=click.IntRange(SMALLEST_FLEET, LARGEST_FLEET),
    default=48,
    show_default=True,
    help="Size of the fleet.",
)
@click.option(
    "--seed", type=int, default=7, show_default=True, help="Another seed is another day."
)
@click.option(
    "--hours",
    type=click.FloatRange(1, 168),
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
    # Loaded here, so that `--help` answers at once.
    from extender.demo.interrupts import Interrupted, Interrupts  # noqa: PLC0415
    from extender.demo.processes import ServerError  # noqa: PLC0415

    with Interrupts() as interrupts:
        try:
            _demo(nodes, seed, hours, as_json, redis_url, interrupts)
        except Interrupted as interrupted:
            sys.exit(interrupted.code)
