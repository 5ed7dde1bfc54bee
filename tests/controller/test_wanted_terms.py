"""The leader's own word in the wanted state: whole each time, and void with the term."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.controller.wanted import KINDS, REFLECTED, RULED, Wanted
from extender.store.schema import Kind
from extender.store.scripts import MIRRORED

POD, NODE, PLAN, GANG = Kind.ALLOCATION, Kind.CLUSTER_NODE, Kind.PLAN, Kind.GANG
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from([b"1", b"2"]))


def due(wanted: Wanted, most: int = 100) -> dict[str, bytes | None]:
    """What is to be written now, taken."""
    found = {wish.id: wish.document for wish in wanted.take(most)}
    wanted.done()
    return found


def test_every_kind_that_a_leader_writes_is_of_one_sort() -> None:
    """Told by the API server, or by the leader."""
    assert sorted(KINDS) == sorted(MIRRORED)
    assert not set(REFLECTED) & set(RULED)


def test_a_word_replaces_the_one_before(wanted: Wanted) -> None:
    """Only what differs is due; what is not said any more goes."""
    wanted.lead(1)
    assert wanted.rule(PLAN, {"a": b"1", "b": b"1"}, 1)
    assert due(wanted) == {"a": b"1", "b": b"1"}
    assert wanted.rule(PLAN, {"b": b"1", "c": b"1"}, 1)
    assert due(wanted) == {"a": None, "c": b"1"}


def test_a_term_begins_with_no_word(wanted: Wanted) -> None:
    """Neither what was said nor what was still to be written of it is known any more."""
    wanted.rule(PLAN, {"a": b"1"}, 1)
    wanted.lead(2)
    assert (due(wanted), wanted.count(PLAN), wanted.ruled(PLAN)) == ({}, 0, False)
    assert not wanted.rule(PLAN, {"b": b"1"}, 1)
    assert wanted.rule(PLAN, {}, 2)
    assert wanted.ruled(PLAN)
    assert due(wanted) == {}, "what stands of others is for a sweep to tell"


def test_a_planner_may_be_ahead_of_the_publisher(wanted: Wanted) -> None:
    """What it says in a term stands when that term begins for the writes, too."""
    wanted.lead(1)
    wanted.rule(PLAN, {"a": b"1"}, 1)
    wanted.rule(PLAN, {"b": b"1"}, 2)
    wanted.lead(2)
    assert (due(wanted), wanted.ruled(PLAN)) == ({"b": b"1"}, True)


def test_what_is_reflected_outlives_terms(wanted: Wanted) -> None:
    """The API server says it, whoever leads."""
    wanted.replace(POD, {"a": b"1"}, ())
    wanted.lead(1)
    wanted.lead(2)
    assert due(wanted) == {"a": b"1"}


def test_a_sweep_lets_go_what_is_not_wanted(wanted: Wanted) -> None:
    """And nothing that is."""
    wanted.lead(1)
    wanted.rule(PLAN, {"a": b"1"}, 1)
    due(wanted)
    wanted.sweep(PLAN, ["a", "stray"])
    assert due(wanted) == {"stray": None}


def test_the_words_of_a_leader_go_first(wanted: Wanted) -> None:
    """Before older ones of the API server."""
    wanted.replace(NODE, {"n": b"1"}, ())
    wanted.rule(GANG, {"g": b"1"}, 1)
    wanted.rule(PLAN, {"p": b"1"}, 1)
    assert [list(due(wanted, 1)) for _ in range(3)] == [["g"], ["p"], ["n"]]


def test_a_batch_of_large_documents_is_short(wanted: Wanted) -> None:
    """Each is written at all, however large."""
    wanted.replace(NODE, {str(number): b"x" * 10 for number in range(5)}, ())
    sizes = []
    while taken := wanted.take(100, most_bytes=15):
        sizes.append(len(taken))
        wanted.done()
    assert sizes == [2, 2, 1]


def test_it_is_settled_without_the_leaders_word() -> None:
    """Its readiness is that of what the API server says."""
    now_s = 100.0
    wanted = Wanted(lambda: now_s)
    wanted.rule(PLAN, {"p": b"1"}, 1)
    now_s = 101.0
    wanted.replace(NODE, {}, ())
    assert not wanted.complete()
    wanted.replace(POD, {}, ())
    assert wanted.complete()
    assert wanted.settled()
    assert wanted.lag_s() == 1.0, "the plan waits all the same"


def test_what_waited_for_a_leader_waits_from_then_on() -> None:
    """Hours of standing by are no lag."""
    now_s = 100.0
    wanted = Wanted(lambda: now_s)
    wanted.replace(POD, {"a": b"1"}, ())
    now_s = 7_300.0
    wanted.lead(1)
    assert wanted.lag_s() == 0.0
    now_s = 7_301.0
    assert wanted.lag_s() == 1.0


def test_waiting_ends_where_nothing_is_left_to_write(wanted: Wanted) -> None:
    """Void words and what was removed by others wake nobody."""
    wanted.rule(PLAN, {"p": b"1"}, 1)
    assert wanted.wait(0.0)
    wanted.lead(2)
    assert not wanted.wait(0.0)
    wanted.replace(POD, {}, ["gone"])
    assert wanted.wait(0.0)
    wanted.prune(POD, ())
    assert not wanted.wait(0.0)


def test_strays_are_what_nothing_is_known_of(wanted: Wanted) -> None:
    """What is wanted, and what is to go, is known."""
    assert not wanted.strays(POD, ["a"])
    wanted.replace(POD, {"a": b"1"}, ["b"])
    assert not wanted.strays(POD, ["a", "b"])
    assert wanted.strays(POD, ["a", "b", "c"])


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("rule"), st.integers(0, 4), DOCUMENTS),
            st.tuples(st.just("lead"), st.integers(0, 4), st.none()),
            st.tuples(st.just("write"), st.integers(0, 3), st.booleans()),
        ),
        max_size=15,
    )
)
def test_nothing_of_an_earlier_term_is_ever_written(steps: list[tuple[str, int, object]]) -> None:
    """Whatever planners say, early or late: each document that is taken is of the last word that was
    said in this term or a later one.
    """
    wanted, term = Wanted(), -1
    said: tuple[int, dict[str, bytes]] = (-1, {})
    for step, number, what in steps:
        match step, what:
            case "rule", dict(documents):
                taken = wanted.rule(PLAN, documents, number)
                assert taken == (number >= max(term, said[0]))
                said = (number, documents) if taken else said
            case "lead", None:
                term = max(term, number)
                wanted.lead(number)
            case "write", bool(fails):
                for wish in wanted.take(number):
                    assert wish.document is None or said[0] >= term
                    assert wish.document == (said[1].get(wish.id) if said[0] >= term else None)
                (wanted.give_back if fails else wanted.done)()
