"""What a real kube-scheduler does at 5,000 nodes, alone and with Surefoot: pods a second, and how long
one large gang takes.

A control plane of its own, without kubelets; each variant in its turn, several rounds, medians.
Prints a line of JSON for each, and on standard error how that compares with the goals.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cluster_gang_line
import cluster_pods
import pytest
from cluster_stage import Stage, stage
from cluster_variants import GANG_VARIANTS
from e2e.go import BuildError

LINES: Final = ("pods", "gang")
GANG_NAMES: Final = tuple(variant.name for variant in GANG_VARIANTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    nodes: int
    pods: int
    members: int
    rounds: int


FULL: Final = Sizes(nodes=5000, pods=400, members=400, rounds=3)
QUICK: Final = Sizes(nodes=500, pods=80, members=80, rounds=1)


def measure(on: Stage, sizes: Sizes, options: argparse.Namespace) -> None:
    """Measure what was asked for, and print each line as soon as it is known.

    The pods come first: a leader that has just gone would make the webhook wait for its plans.
    """
    if "pods" in options.only:
        bursts = cluster_pods.measured(on, sizes.pods, sizes.rounds)
        result = cluster_pods.line(sizes.nodes, sizes.pods, bursts)
        print(json.dumps(result), flush=True)
        cluster_pods.compare(result)
    if "gang" in options.only:
        runs = cluster_gang_line.measured(on, sizes.members, sizes.rounds, options.variants)
        result = cluster_gang_line.line(sizes.members, runs)
        print(json.dumps(result), flush=True)
        cluster_gang_line.compare(runs, result)
        if not all(runs.values()):
            sys.exit("not every variant of the gang could be measured: too slow at creating pods")


def main() -> None:
    """Run, and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in Sizes.__slots__:
        parser.add_argument(f"--{name}", type=int, help=f"default {getattr(FULL, name)}")
    parser.add_argument("--quick", action="store_true", help="smaller, for CI")
    parser.add_argument("--only", nargs="+", choices=LINES, default=LINES, help="default: both")
    parser.add_argument(
        "--variants", nargs="+", choices=GANG_NAMES, default=GANG_NAMES, help="of the gang only"
    )
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    base = QUICK if options.quick else FULL
    sizes = Sizes(
        **{name: getattr(options, name) or getattr(base, name) for name in Sizes.__slots__}
    )
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as directory:
        try:
            with stage(sizes.nodes, Path(directory)) as on:
                measure(on, sizes, options)
        except (BuildError, pytest.fail.Exception) as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
