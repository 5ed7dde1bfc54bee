"""The wanted state: at most one wish for each document, however often it changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.controller.wanted import Wanted
from extender.store.schema import Kind
from extender.store.scripts import Wish

POD, NODE = Kind.ALLOCATION, Kind.CLUSTER_NODE
IDS = st.sampled_from("abcd")
DOCUMENTS = st.dictionaries(IDS, st.sampled_from([b"1", b"2"]))


def due(wanted: Wanted, most: int = 100) -> dict[str, bytes | None]:
    """What is to be written now, taken."""
    found = {wish.id: wish.document for wish in wanted.take(most)}
    wanted.done()
    return found


def test_only_what_differs_is_due(wanted: Wanted) -> None:
    """The same state again is nothing to write."""
    wanted.replace(POD, {"a": b"1", "b": b"1"}, ())
    assert due(wanted) == {"a": b"1", "b": b"1"}
    wanted.replace(POD, {"a": b"1", "b": b"2", "c": b"1"}, ())
    assert due(wanted) == {"b": b"2", "c": b"1"}
    wanted.change(POD, ["a"], {"a": b"1"})
    wanted.change(POD, ["x"], {})
    assert (due(wanted), wanted.pending()) == ({}, 0)


def test_what_went_is_to_be_removed(wanted: Wanted) -> None:
    """Be it by a new list, by an event, or because nobody owns it."""
    wanted.replace(POD, {"a": b"1", "b": b"1", "c": b"1"}, ())
    due(wanted)
    wanted.replace(POD, {"b": b"1", "c": b"1"}, ["stray", "c"])
    wanted.change(POD, ["b"], {})
    assert due(wanted) == {"a": None, "b": None, "stray": None}


def test_many_changes_of_one_document_are_one_wish(wanted: Wanted) -> None:
    """However long the cache is away, what waits is bounded by what there is."""
    for number in range(1000):
        wanted.change(POD, (), {"a": str(number).encode()})
    assert (wanted.pending(), due(wanted)) == (1, {"a": b"999"})


def test_wishes_go_in_bounded_batches_oldest_first(wanted: Wanted) -> None:
    """No more at once than was asked for."""
    wanted.replace(POD, {str(number): b"1" for number in range(10)}, ())
    wanted.change(NODE, (), {"n": b"1"})
    assert [len(due(wanted, 4)) for _ in range(4)] == [4, 4, 3, 0]


def test_what_could_not_be_written_is_due_again(wanted: Wanted) -> None:
    """As it is wanted then: a change that came meanwhile is not undone."""
    wanted.replace(POD, {"a": b"1", "b": b"1"}, ())
    assert len(wanted.take(100)) == wanted.pending() == 2
    wanted.change(POD, ["a"], {"a": b"2"})
    wanted.give_back()
    assert due(wanted) == {"a": b"2", "b": b"1"}


def test_doubt_makes_everything_of_a_kind_due(wanted: Wanted) -> None:
    """After the cache lost its data; other kinds may be old news."""
    wanted.replace(POD, {"a": b"1"}, ())
    wanted.replace(NODE, {"n": b"1"}, ())
    due(wanted)
    wanted.doubt(NODE)
    assert {(wish.kind, wish.id) for wish in wanted.take(100)} == {(NODE, "n")}


def test_the_lag_is_that_of_the_oldest_wish() -> None:
    """It counts from the change, through failed tries; 0 while nothing waits."""
    now_s = 100.0
    wanted = Wanted(lambda: now_s)
    assert wanted.lag_s() == 0.0
    wanted.change(POD, (), {"a": b"1"})
    now_s = 103.0
    wanted.change(POD, (), {"b": b"1"})
    wanted.take(100)
    assert wanted.lag_s() == 3.0, "it is being written"
    wanted.give_back()
    assert wanted.lag_s() == 3.0
    wanted.take(100)
    wanted.done()
    assert wanted.lag_s() == 0.0


def test_it_is_settled_once_the_first_state_is_written() -> None:
    """Of both kinds, and whatever changes meanwhile or is in doubt later."""
    now_s = 100.0
    wanted = Wanted(lambda: now_s)
    wanted.replace(NODE, {}, ())
    assert not wanted.settled(), "there may be pods"
    wanted.replace(POD, {"a": b"1"}, ())
    assert not wanted.settled()
    wanted.take(100)
    assert not wanted.settled()
    now_s = 101.0
    wanted.change(POD, (), {"b": b"1"})
    wanted.done()
    assert wanted.settled()
    wanted.doubt(POD)
    assert wanted.settled()


def test_it_is_settled_without_a_whole_list_too(wanted: Wanted) -> None:
    """One object that cannot be read must not keep a controller from being ready."""
    wanted.replace(NODE, {}, ())
    wanted.known(POD)
    assert wanted.settled()


def test_waiting_ends_with_the_first_wish(wanted: Wanted) -> None:
    """And not before."""
    assert not wanted.wait(0.0)
    wanted.change(POD, (), {"a": b"1"})
    assert wanted.wait(0.0)
    wanted.take(100)
    assert not wanted.wait(0.0)


@pytest.mark.parametrize("fails", [False, True])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("replace"), DOCUMENTS, st.lists(IDS)),
            st.tuples(st.just("change"), DOCUMENTS, st.lists(IDS)),
            st.tuples(st.just("write"), st.integers(0, 3), st.booleans()),
        ),
        max_size=12,
    )
)
def test_the_cache_comes_to_hold_what_is_wanted(
    fails: bool, steps: list[tuple[object, ...]]
) -> None:
    """Whatever came, in whatever order, written or not: in the end exactly that stands there."""
    wanted, cache, goal = Wanted(), {}, {}
    stray = {"a": b"9"}
    cache.update(stray)

    def write(taken: tuple[Wish, ...]) -> None:
        wanted.done()
        for wish in taken:
            if wish.document is None:
                cache.pop(wish.id, None)
            else:
                cache[wish.id] = wish.document

    for step in steps:
        match step:
            case "replace", dict(documents), list():
                goal = dict(documents)
                wanted.replace(POD, documents, [id_ for id_ in cache if id_ not in documents])
            case "change", dict(documents), list(gone):
                for id_ in gone:
                    goal.pop(id_, None)
                goal.update(documents)
                wanted.change(POD, gone, documents)
            case "write", int(most), bool(broken):
                taken = wanted.take(most)
                if broken and fails:
                    wanted.give_back()
                else:
                    write(taken)
    wanted.replace(POD, dict(goal), [id_ for id_ in cache if id_ not in goal])
    write(wanted.take(100))
    assert cache == goal
