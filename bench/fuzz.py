"""`make fuzz`: tests/fuzz with new seeds until the time is over; the first failure ends it.

A failing example stays in .hypothesis and is tried first the next time; its seed is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time


def main() -> int:
    """Exit code 0: nothing found. 1: a failure, printed by pytest above its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=None, help="run only this seed")
    options = parser.parse_args()
    started_s, seed, rounds = time.monotonic(), options.seed or 1, 0
    while rounds == 0 or (options.seed is None and time.monotonic() - started_s < options.seconds):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            [*command, f"--hypothesis-seed={seed}", "tests/fuzz"],
            check=False,
            capture_output=True,
            text=True,
        )
        rounds += 1
        if done.returncode != 0:
            print(done.stdout, done.stderr, sep="\n")
            print(f"fuzz: seed {seed} fails; again with: make fuzz ARGS='--seed {seed}'")
            return 1
        seed += 1
    print(f"fuzz: {rounds} rounds in {time.monotonic() - started_s:.0f} s, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
