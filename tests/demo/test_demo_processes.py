"""Signals, child processes and the HTTP client of the demo, where things go wrong."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from extender.demo import processes
from extender.demo.client import Client, HttpExtender
from extender.demo.errors import DemoError
from extender.demo.interrupts import Interrupted, Interrupts
from extender.demo.processes import Child, free_port
from extender.ending import SIGNALS
from scoring.model import NodeName


@pytest.fixture
def handlers() -> Iterator[None]:
    """The signal handlers of the test run, put back afterwards."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_becomes_one_exception(number: signal.Signals, handlers: None) -> None:
    """With the exit code that shells expect; those that follow change nothing."""
    with Interrupts() as interrupts:
        with pytest.raises(Interrupted) as caught:
            signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    assert caught.value.code == 128 + number
    assert interrupts.received == number


def test_a_signal_waits_while_it_is_held_back(handlers: None) -> None:
    """What was begun is finished, then the signal counts."""
    reached = []

    def work(interrupts: Interrupts) -> None:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end of the block")
        reached.append("what comes after")

    with Interrupts() as interrupts, pytest.raises(Interrupted):
        work(interrupts)
    assert reached == ["the end of the block"]


def test_a_signal_while_all_is_being_ended_interrupts_nothing(handlers: None) -> None:
    """It is remembered for the exit code."""
    with Interrupts() as interrupts:
        interrupts.ignore()
        signal.raise_signal(signal.SIGINT)
    assert interrupts.received == signal.SIGINT


def test_without_a_signal_the_handlers_are_as_before(handlers: None) -> None:
    """The demo leaves no trace in the process."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_server_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    """The error holds its last words."""
    child = Child([sys.executable, "-c", "print('no room here')"], tmp_path)
    child.start()
    with pytest.raises(DemoError, match="ended at once: no room here"):
        child.wait_until(lambda: False)
    child.stop()


def test_a_server_that_is_never_ready_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a time that is long enough for every machine; and it is ended, deaf as it may be."""
    monkeypatch.setattr(processes, "START_S", 0.5)
    monkeypatch.setattr(processes, "STOP_S", 0.1)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    child = Child([sys.executable, "-c", deaf], tmp_path)
    child.start()
    with pytest.raises(DemoError, match="not ready: it said nothing"):
        child.wait_until(lambda: False)
    child.stop()
    with pytest.raises(DemoError, match="ended at once"):
        child.wait_until(lambda: False)
    child.stop()


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """With the system's word for it."""
    with pytest.raises(DemoError, match="No such file"):
        Child([str(tmp_path / "nothing")], tmp_path).start()


def test_a_serve_that_does_not_answer_is_an_error() -> None:
    """A sentence, no traceback."""
    client = Client("127.0.0.1", free_port())
    with pytest.raises(DemoError, match=r"GET /readyz\?verbose: .*refused"):
        client.wait_for(1)


class _Answers(Client):
    """A client that gets this answer to everything."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__("127.0.0.1", 0)
        self._answer = answer

    def post(self, path: str, body: object) -> Any:
        """The answer."""
        return self._answer


@pytest.mark.parametrize(
    "answer", [{"NodeNames": ["b"]}, {"NodeNames": ["a"], "Error": "out of order"}]
)
def test_an_answer_that_kube_scheduler_would_refuse_is_an_error(answer: dict[str, Any]) -> None:
    """A name that was not offered, or an `Error`."""
    extender = HttpExtender(_Answers(answer), lambda: None)
    with pytest.raises(DemoError, match="/filter answered"):
        extender.filter({}, [NodeName("a")])
