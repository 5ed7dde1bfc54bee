"""However the tests end, no process outlives them, and a failure leaves its logs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from e2e.waiting import eventually

ROOT: Final = Path(__file__).parents[3]
SCENARIO: Final = """
import time
from pathlib import Path

from e2e.schedulers import configuration, extender

def test_everything(cache, gpu_nodes, scheduler, surefoot):
    gpu_nodes(1)
    scheduler(configuration(extender(surefoot().url)))
    Path("up").touch()
    {deed}
"""
PROCESSES: Final = 8
"""pytest, etcd, apiserver, manager, KWOK, Valkey, serve with its worker; and the scheduler."""


def _pytest(place: Path, deed: str, version: str) -> subprocess.Popen[str]:
    """A pytest of its own, whose children work in `place`."""
    (place / "test_scenario.py").write_text(SCENARIO.format(deed=deed))
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-p", "e2e.conftest", "test_scenario.py"),
            *(f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={place}"),
            *(f"--basetemp={place / 'base'}", f"--kubernetes={version}"),
        ],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _at_work(place: Path) -> dict[int, str]:
    """Command lines, by process id, of all processes that work in `place` or below."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if (process / "cwd").readlink().is_relative_to(place):
                command = (process / "cmdline").read_text()
                found[int(process.name)] = command.replace("\0", " ")
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where a pytest of its own works; even if the test fails, nothing works there afterwards."""
    yield tmp_path
    for process in _at_work(tmp_path):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_pytest(
    number: signal.Signals, place: Path, pytestconfig: pytest.Config
) -> None:
    """Ctrl-C, a polite end and a crash alike take the whole cluster with them."""
    tests = _pytest(place, "time.sleep(600)", pytestconfig.getoption("kubernetes"))
    eventually((place / "up").exists, "everything runs")
    assert len(_at_work(place)) > PROCESSES
    tests.send_signal(number)
    tests.communicate(timeout=60)
    eventually(lambda: not _at_work(place), "all are gone")


def test_a_failure_leaves_its_logs_and_says_where(place: Path, pytestconfig: pytest.Config) -> None:
    """The directories of the cluster and of the test are named, and hold what each program said."""
    tests = _pytest(place, "assert False", pytestconfig.getoption("kubernetes"))
    output, _ = tests.communicate(timeout=120)
    assert tests.returncode == 1
    told = [line for line in output.splitlines() if line.startswith("logs of the ")]
    places = dict(line.removeprefix("logs of the ").split(": ", 1) for line in told)
    cluster, test = (
        {log.name for log in Path(places[each]).glob("*.log")} for each in ("cluster", "test")
    )
    assert {"etcd.log", "kube-apiserver.log", "kwok.log"} <= cluster
    assert {"kube-scheduler.log", "surefoot.log", "valkey.log"} <= test
    assert not _at_work(place)
