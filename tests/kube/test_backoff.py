"""Pauses between tries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.kube.backoff import LONGEST_ASKED_S, Backoff


@given(st.integers(1, 30))
def test_pauses_double_up_to_a_bound(tries: int) -> None:
    """Each between half of its goal and all of it, so that neighbours come apart."""
    backoff = Backoff(first_s=0.2, last_s=10.0)
    pauses_s = [backoff.pause_s() for _ in range(tries)]
    for place, pause_s in enumerate(pauses_s):
        goal_s = min(0.2 * 2**place, 10.0)
        assert goal_s / 2 <= pause_s <= goal_s
    backoff.reset()
    assert backoff.pause_s() <= 0.2


@given(st.floats(0, 1e9))
def test_the_server_may_ask_for_more(asked_s: float) -> None:
    """Within reason, and never for less."""
    pause_s = Backoff(first_s=0.2, last_s=10.0).pause_s(asked_s)
    assert 0.1 <= pause_s <= max(0.2, LONGEST_ASKED_S)
    assert pause_s >= min(asked_s, LONGEST_ASKED_S)
