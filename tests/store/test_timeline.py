"""The reader's own time line, without a server."""

from __future__ import annotations

import pytest

from extender.store.timeline import Timeline
from scoring.model import NodeName

A, B = NodeName("a"), NodeName("b")


def ms(seconds: float) -> bytes:
    """A stamp as it stands in the cache."""
    return str(round(seconds * 1000)).encode()


def test_time_goes_with_the_server() -> None:
    """Ages are those that the server's clock gives."""
    line = Timeline(1000.0)
    line.replace_stamps({b"a": ms(990)})
    line.advance(1001.5, 1.5)
    assert line.now_s - line.seen_s[A] == pytest.approx(11.5)


def test_time_never_goes_back() -> None:
    """A clock that is slewed back stops the line for a moment."""
    line = Timeline(1000.0)
    line.advance(998.0, 1.0)
    assert line.now_s == 1000.0
    line.advance(1002.0, 1.0)
    assert line.now_s == 1002.0


@pytest.mark.parametrize("jump_s", [3600.0, -500.0])
def test_a_departing_clock_leaves_ages_as_they_are_until_the_next_stamp(jump_s: float) -> None:
    """A failover to a server with another clock makes nothing older or younger."""
    line = Timeline(1000.0)
    line.replace_stamps({b"a": ms(990), b"b": ms(995)})
    line.advance(1001.0 + jump_s, 1.0)
    line.replace_stamps({b"a": ms(990), b"b": ms(1000.5 + jump_s)})
    assert line.now_s == 1001.0
    assert line.now_s - line.seen_s[A] == pytest.approx(11.0)
    assert line.now_s - line.seen_s[B] == pytest.approx(0.5)
    assert line.unix_s == pytest.approx(1001.0 + jump_s)


def test_silence_does_not_age_the_fleet() -> None:
    """After two minutes without an answer, ages go on from where they stood."""
    line = Timeline(1000.0)
    line.replace_stamps({b"a": ms(990)})
    line.advance(1120.0, 0.0)
    line.replace_stamps({b"a": ms(990)})
    assert line.now_s - line.seen_s[A] == pytest.approx(10.0)
    line.replace_stamps({b"a": ms(1119)})
    assert line.now_s - line.seen_s[A] == pytest.approx(1.0)


def test_a_stamp_of_the_future_is_now() -> None:
    """Nothing makes a node fresh for longer than its limit."""
    line = Timeline(1000.0)
    line.replace_stamps({b"a": ms(5000)})
    assert line.seen_s[A] == 1000.0


def test_a_stamp_that_is_none_is_named() -> None:
    """Junk is no stamp: the node was never seen, and the junk is shown."""
    line = Timeline(1000.0)
    line.replace_stamps({b"a": b"soon", b"b": ms(1)})
    assert set(line.seen_s) == {B}
    assert line.junk == {A: "b'soon' is no time in ms"}
    line.update_stamps({b"a": ms(999), b"b": b"-1"})
    assert set(line.seen_s) == {A}
    assert set(line.junk) == {B}


def test_stamps_come_and_go_one_by_one() -> None:
    """A new mapping replaces the one that a Fleet was given, and only when something differs."""
    line = Timeline(1000.0)
    line.update_stamps({b"a": ms(999)})
    given = line.seen_s
    line.update_stamps({b"a": ms(999), b"b": None})
    assert line.seen_s is given
    line.update_stamps({b"a": None, b"b": ms(1000)})
    assert given == {A: 999.0}
    assert line.seen_s == {B: 1000.0}
