"""The board: what the reader pins up is what requests see, with rankings kept ready and true."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import dgx_h100
from replicas import cause
from strategies import NOW_S, fleet, fleets, needs, nodes

from extender.webhook.board import KEEP_S, MOST, Board, View
from scoring import picture, ranking
from scoring.model import (
    Breaker,
    BreakerState,
    Fleet,
    Health,
    Need,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    WorkClass,
)
from scoring.picture import Picture
from scoring.policy import DEFAULT
from scoring.ranking import Ranking
from scoring.reasons import Reason

GANG_8 = Need(work=WorkClass.GANG, count=8)


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """The board's clock."""
    return Clock()


@pytest.fixture
def board(clock: Clock) -> Board:
    """A board that usable snapshots leave after five minutes."""
    return Board(DEFAULT, clock, 300.0)


def shown(board: Board) -> View:
    """The newest view, which must be there."""
    view = board.latest()
    assert view is not None
    return view


def asked(board: Board, need: Need = GANG_8) -> Ranking:
    """The ranking that a request would read now."""
    return board.ranking(shown(board), need)


def fresh(found: Fleet, need: Need) -> Ranking:
    """The ranking made from scratch."""
    return picture.ranking_of(picture.picture(found, DEFAULT), need)


class TestAge:
    """How old the snapshot is, and whether it may be used."""

    def test_nothing_is_usable_before_the_first_fleet(self, board: Board) -> None:
        """No guess is presented as a picture."""
        assert (board.view(), board.latest()) == (None, None)

    def test_a_view_is_usable_until_it_is_older_than_the_limit(
        self, board: Board, clock: Clock
    ) -> None:
        """To the second; afterwards people still see it, requests do not."""
        board.publish(fleet(dgx_h100()), None)
        clock.now_s += 300
        assert board.view() is shown(board)
        assert board.age_s() == 300
        clock.now_s += 0.1
        assert board.view() is None
        assert board.latest() is not None

    def test_any_sign_of_life_makes_it_young_again(self, board: Board, clock: Clock) -> None:
        """A tick without changes counts as heard."""
        found = fleet(dgx_h100())
        board.publish(found, None)
        clock.now_s += 1000
        board.publish(replace(found, now_s=found.now_s + 1), frozenset())
        assert board.age_s() == 0
        assert board.view() is shown(board)


class TestPublish:
    """What changes, and what time changes."""

    def test_a_changed_node_changes_its_verdict_and_no_other(self, board: Board) -> None:
        """The view that a request holds meanwhile stays as it was."""
        a, b = dgx_h100(name="a"), dgx_h100(name="b")
        board.publish(fleet(a, b), None)
        before = asked(board)
        sick = dgx_h100(name="a", causes={0: cause(Health.FAILED)})
        board.publish(fleet(sick, b, generation=2), {a.name})
        assert asked(board).vetoes == {a.name: Reason.GPU_FAILED}
        assert asked(board).ranks == {b.name: before.ranks[b.name]}
        assert before.vetoes == {}
        assert shown(board).picture.fleet.generation == 2

    def test_a_node_that_is_gone_is_gone_from_every_ranking(self, board: Board) -> None:
        """It is unknown from then on."""
        a, b = dgx_h100(name="a"), dgx_h100(name="b")
        board.publish(fleet(a, b), None)
        asked(board)
        board.publish(fleet(b), {a.name})
        assert (set(asked(board).ranks), asked(board).vetoes) == ({b.name}, {})

    def test_a_node_falls_due_by_time_alone_and_comes_back(self, board: Board) -> None:
        """Nobody names it: a minute without a sample makes it stale, ten silent, a sample fresh."""
        node = dgx_h100()
        for later_s, seen_s, reason in (
            (0.0, 0.0, None),
            (59.9, 0.0, None),
            (60.0, 0.0, Reason.NODE_STALE),
            (600.0, 0.0, Reason.NODE_SILENT),
            (601.0, 600.5, None),
        ):
            found = fleet(node, now_s=NOW_S + later_s, seen_s={node.name: NOW_S + seen_s})
            board.publish(found, None if later_s == 0 else frozenset())
            assert asked(board).vetoes.get(node.name) == reason, later_s

    def test_an_operators_word_and_an_open_breaker_run_out_by_time(self, board: Board) -> None:
        """At their `until`, without a change in the cache."""
        node = dgx_h100()
        pool = node.labels[DEFAULT.pool_label]
        word = Override(
            target=f"node/{node.name}",
            verdict=OverrideVerdict.DENY,
            who="oncall",
            why="burns",
            until_s=NOW_S + 5,
        )
        sick = dgx_h100(name="sick", causes={0: cause(Health.NEW)})
        opened = Breaker(pool=pool, state=BreakerState.OPEN, until_s=NOW_S + 5)
        found = replace(fleet(node, sick), overrides={word.target: word}, breakers={pool: opened})
        single = Need(work=WorkClass.SINGLE, count=8)
        board.publish(found, None)
        assert set(asked(board, single).vetoes) == {node.name}
        board.publish(replace(found, now_s=NOW_S + 5), frozenset())
        assert set(asked(board, single).vetoes) == {sick.name}


class TestRankings:
    """Kept ready for what is asked, equal to what would be made anew, and forgotten in the end."""

    @settings(max_examples=40, deadline=None)
    @given(
        found=fleets(),
        wanted=st.lists(needs(), min_size=1, max_size=3),
        steps=st.lists(
            st.tuples(st.sampled_from(["node", "gone", "time", "all"]), nodes("node-1", 5)),
            max_size=5,
        ),
    )
    def test_rankings_that_are_kept_equal_those_made_anew(
        self, found: Fleet, wanted: list[Need], steps: list[tuple[str, Node]]
    ) -> None:
        """After any steps of changes, departures, time and reloads."""
        board = Board(DEFAULT, Clock(), 300.0)
        board.publish(found, None)
        for need in wanted:
            asked(board, need)
        for kind, node in steps:
            found, changed = stepped(found, kind, node)
            board.publish(found, changed)
            for need in wanted:
                assert asked(board, need) == fresh(found, need)

    def test_a_ranking_is_made_once_and_then_kept_ready(
        self, board: Board, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A request for a known need makes none; the reader changes it node by node."""
        a, b = dgx_h100(name="a"), dgx_h100(name="b")
        board.publish(fleet(a, b), None)
        asked(board)

        def made(_picture: Picture, _need: Need) -> Ranking:
            pytest.fail("made from scratch")

        monkeypatch.setattr(picture, "ranking_of", made)
        monkeypatch.setattr(ranking, "ranking", made)
        asked(board)
        board.publish(fleet(a, b, generation=2), {a.name})
        assert set(asked(board).ranks) == {a.name, b.name}

    def test_a_need_that_nobody_asks_about_is_forgotten(self, board: Board, clock: Clock) -> None:
        """After ten minutes; asking again in time keeps it."""
        other = replace(GANG_8, count=4)
        board.publish(fleet(dgx_h100()), None)
        asked(board), asked(board, other)
        clock.now_s += KEEP_S - 1
        asked(board)
        clock.now_s += 2
        board.publish(fleet(dgx_h100()), frozenset())
        assert kept(board) == {GANG_8}

    def test_at_most_64_needs_are_kept_the_last_asked_ones(
        self, board: Board, clock: Clock
    ) -> None:
        """Odd asks cannot slow the reader down for ever."""
        board.publish(fleet(dgx_h100()), None)
        many = [replace(GANG_8, resource=f"nvidia.com/odd-{i}") for i in range(MOST + 10)]
        for need in many:
            clock.now_s += 1
            asked(board, need)
        board.publish(fleet(dgx_h100()), frozenset())
        assert kept(board) == set(many[10:])

    def test_many_threads_that_ask_at_once_get_one_ranking(self, board: Board) -> None:
        """Members of a gang come together: one of them does the work."""
        board.publish(fleet(*(dgx_h100(name=f"n{i}") for i in range(50))), None)
        view, found = shown(board), []
        ready = threading.Barrier(8)

        def ask() -> None:
            ready.wait(5)
            found.append(board.ranking(view, GANG_8))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert len(found) == 8
        assert all(each is found[0] for each in found)


def kept(board: Board) -> set[Need]:
    """The needs whose rankings the newest view has ready."""
    return set(shown(board).rankings)


def stepped(found: Fleet, kind: str, node: Node) -> tuple[Fleet, frozenset[NodeName] | None]:
    """The fleet after one step, and what the reader would say changed."""
    generation = found.generation + 1
    if kind == "node":
        after = replace(found, nodes={**found.nodes, node.name: node}, generation=generation)
        return after, frozenset({node.name})
    if kind == "gone":
        left = {name: each for name, each in found.nodes.items() if name != node.name}
        return replace(found, nodes=left, generation=generation), frozenset({node.name})
    if kind == "time":
        return replace(found, now_s=found.now_s + 70), frozenset()
    return replace(found, generation=generation), None
