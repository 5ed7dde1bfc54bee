"""Signals end a command between its steps, never within one."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from extender.ending import SIGNALS, Ending


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """No signal is ignored, as it may be where the tests run without a terminal."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_kept_until_somebody_asks(number: signal.Signals) -> None:
    """It interrupts nothing, and whoever asks later, however often, is told."""
    with Ending() as ending:
        assert not ending.within(0.0)
        os.kill(os.getpid(), number)
        assert [ending.within(0.0), ending.within(0.0)] == [True, True]


def test_a_signal_in_a_finaliser_is_not_lost() -> None:
    """A finaliser swallows what is raised in it, so a handler that raised would be no way out."""

    class Closing:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with Ending() as ending:
        Closing()
        assert ending.within(0.0)


def test_a_signal_ends_the_wait_at_once() -> None:
    """A pause of a minute is over when Ctrl-C comes."""
    killing = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with Ending() as ending:
        began_s = time.monotonic()
        killing.start()
        assert ending.within(60.0)
    assert time.monotonic() - began_s < 30.0


def test_under_nohup_a_hangup_stays_ignored() -> None:
    """`nohup surefoot controller &` outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Ending() as ending:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not ending.within(0.0)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_afterwards_signals_do_what_they_did() -> None:
    """The handlers of before stand again."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with Ending():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
