"""Plans of gangs, as values and as documents."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from watching import other

from extender.store.documents import Document
from scoring.gangs.record import GangPlan, GangState, Seat
from scoring.gangs.rules import Hold
from scoring.model import Convention, GangKey, NodeName, PodUid

SINCE_S = 1_795_946_400.25


def plan(name: str = "team/train", **fields: Any) -> GangPlan:
    """A plan of two members, of which one is bound."""
    whole: dict[str, Any] = {
        "convention": Convention.LWS,
        "uid": "g1",
        "term": 4,
        "hold": Hold.REQUIRE,
        "state": GangState.PLANNED,
        "min": 2,
        "size": 2,
        "seats": {
            PodUid("u1"): Seat(pod="train-0", node=NodeName("gpu-17"), bound=True),
            PodUid("u2"): Seat(pod="train-1", node=NodeName("gpu-18")),
        },
        "since_s": SINCE_S,
        "domain": "clique c3",
        **fields,
    }
    return GangPlan(gang=GangKey(name), **whole)


def document(**fields: Any) -> Document:
    """A Plan document, checked; the least that one says, and `fields`."""
    least = {
        "gang": "team/train",
        "convention": "lws",
        "hold": "require",
        "state": "waiting",
        "since": "2026-11-29T10:00:00Z",
    }
    return other("Plan", **{**least, **fields})


WORDS = st.text("abc-x9", min_size=1, max_size=6)
SEATS = st.one_of(
    st.builds(Seat, pod=WORDS),
    st.builds(Seat, pod=WORDS, node=st.sampled_from(["n1", "n2"]), bound=st.booleans()),
)
PLANS = st.builds(
    GangPlan,
    gang=st.builds("{}/{}".format, WORDS, WORDS),
    convention=st.sampled_from(Convention),
    uid=st.just("") | WORDS,
    term=st.integers(0, 2**31 - 1),
    hold=st.sampled_from(Hold),
    state=st.sampled_from(GangState),
    min=st.none() | st.integers(1, 1000),
    size=st.none() | st.integers(1, 1000),
    seats=st.dictionaries(WORDS, SEATS, max_size=5),
    since_s=st.integers(0, 2**33).map(lambda quarters: quarters / 4),
    partial_s=st.none() | st.integers(0, 2**31).map(float),
    domain=st.just("") | WORDS,
    lack=st.just("") | WORDS,
    summary=st.text(max_size=20),
    counts=st.dictionaries(WORDS, st.integers(0, 5000), max_size=4),
    nearest=st.text(max_size=20),
    unblock=st.lists(st.text(max_size=20), max_size=3).map(tuple),
)
"""Any plan that a leader may write."""
