"""Breakers: a pool that falls silent together is frozen, one that rules exclude is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pools import POOL, fleet_of, names, of_state, seen
from strategies import NOW_S

from scoring import breakers
from scoring.breakers import Memory
from scoring.health.staleness import Freshness
from scoring.model import Breaker, BreakerState, Health, Node, NodeName
from scoring.picture import Picture
from scoring.policy import DEFAULT, BreakerPolicy, Policy, PolicyError

WELL, LATE_S = Health.HEALTHY, 80.0
"""An age at which telemetry is stale since twenty seconds."""
HOUR_S = 3_600.0


def silent(
    silent_ones: int, all_of_them: int, age_s: float = LATE_S, *, now_s: float = NOW_S
) -> Picture:
    """A pool of which some nodes fell silent."""
    nodes = [of_state(name) for name in names(all_of_them)]
    ages_s = dict.fromkeys(names(silent_ones), age_s)
    return seen(fleet_of(*nodes, ages_s=ages_s, now_s=now_s))


def excluded(gpus: int, state: Health = Health.SUSPECT, *, now_s: float = NOW_S) -> Picture:
    """A pool of ten machines, eighty GPUs, of which so many are in this state."""
    nodes = [
        of_state(name, *([state] * max(0, min(8, gpus - 8 * at))))
        for at, name in enumerate(names(10))
    ]
    return seen(fleet_of(*nodes, now_s=now_s))


def one_by_one(nodes: int, every_s: float, *, of: int = 10) -> list[BreakerState]:
    """What is said while one GPU each of so many nodes is excluded, one after another."""
    said: list[BreakerState] = []
    memory = None
    for bad in range(nodes + 1):
        pool = [
            of_state(name, *([Health.SUSPECT] if at < bad else []))
            for at, name in enumerate(names(of))
        ]
        words, memory = breakers.look(seen(fleet_of(*pool, now_s=NOW_S + every_s * bad)), memory)
        said += states(words).values()
    return said


def states(words: Mapping[str, Breaker]) -> dict[str, BreakerState]:
    """The state of each pool that is not closed."""
    return {pool: word.state for pool, word in words.items()}


class TestFrozen:
    """Too much of a pool falls silent at once."""

    @pytest.mark.parametrize(
        ("silent_ones", "freezes"),
        [(0, False), (3, False), (4, True), (10, True)],
        ids=["none", "30 % is not more", "40 %", "all"],
    )
    def test_more_than_the_part_freezes(self, silent_ones: int, freezes: bool) -> None:
        """At the ratio of the policy nothing happens, above it the pool is frozen."""
        words, _ = breakers.look(silent(silent_ones, 10), None)
        assert states(words) == ({POOL: BreakerState.FROZEN} if freezes else {})

    def test_one_node_alone_is_its_own_trouble(self) -> None:
        """A pool of two nodes of which one is down is not frozen, whatever its part is."""
        assert not breakers.look(silent(1, 2), None)[0]
        assert breakers.look(silent(2, 3), None)[0]

    def test_nodes_that_fell_silent_one_after_another_freeze_nothing(self) -> None:
        """The same part, spread over more than a minute, is no common cause."""
        nodes = [of_state(name) for name in names(10)]
        ages_s = {name: 61.0 + 40.0 * at for at, name in enumerate(names(4))}
        assert not breakers.look(seen(fleet_of(*nodes, ages_s=ages_s)), None)[0]

    def test_nodes_of_the_past_count_for_nothing(self) -> None:
        """Documents of nodes that the cluster no longer has neither fall silent nor dilute."""
        nodes = [of_state(name) for name in names(10)]
        fleet = fleet_of(*nodes, ages_s=dict.fromkeys(names(4), LATE_S))
        gone = {name: each for name, each in fleet.cluster.items() if name not in names(4)}
        assert not breakers.look(seen(replace(fleet, cluster=gone)), None)[0]

    def test_the_frozen_nodes_keep_their_verdicts(self) -> None:
        """With the word in the cache every node that fell silent within the minute is fresh."""
        picture = silent(6, 10, age_s=119.9)
        words, _ = breakers.look(picture, None)
        frozen = seen(replace(picture.fleet, breakers=words))
        assert {each.freshness for each in frozen.candidates.values()} == {Freshness.FRESH}

    def test_one_that_was_silent_before_is_not_revived(self) -> None:
        """A node that was long stale when the others fell silent stays so."""
        nodes = [of_state(name) for name in names(10)]
        ages_s = {**dict.fromkeys(names(5), LATE_S), NodeName("n0"): 500.0}
        fleet = fleet_of(*nodes, ages_s=ages_s)
        words, _ = breakers.look(seen(fleet), None)
        frozen = seen(replace(fleet, breakers=words))
        assert frozen.candidates[NodeName("n0")].freshness is Freshness.STALE
        assert frozen.candidates[NodeName("n1")].freshness is Freshness.FRESH

    def test_it_is_over_after_ten_minutes_and_not_begun_again(self) -> None:
        """The hold ends, whatever is still silent; the same silence is no second freeze."""
        picture, memory = silent(6, 10), None
        ends_s = 0.0
        for passed_s in range(0, 900, 20):
            fleet = replace(picture.fleet, now_s=NOW_S + passed_s)
            words, memory = breakers.look(seen(fleet), memory)
            if words:
                ends_s = words[POOL].until_s or 0.0
                assert fleet.now_s < ends_s <= NOW_S + 600.0
            else:
                assert fleet.now_s >= ends_s
        assert ends_s > NOW_S

    def test_it_is_over_when_everybody_is_back(self) -> None:
        """Nothing is kept any more, so the next node that dies is seen to."""
        words, memory = breakers.look(silent(6, 10), None)
        assert words
        assert breakers.look(silent(1, 10), memory)[0]
        assert not breakers.look(silent(0, 10), memory)[0]

    def test_pools_freeze_apart(self) -> None:
        """Nodes of another pool, and those of none, have nothing to do with it."""
        nodes = [of_state(name) for name in names(4)]
        nodes += [of_state(name, pool="A100") for name in names(4, "a")]
        nodes += [of_state(name, pool="") for name in names(4, "x")]
        silent_ones = [*names(4, "a"), *names(4, "x")]
        picture = seen(fleet_of(*nodes, ages_s=dict.fromkeys(silent_ones, LATE_S)))
        assert states(breakers.look(picture, None)[0]) == {"A100": BreakerState.FROZEN}

    @given(now=st.integers(4, 9), then=st.integers(1, 10), later_s=st.floats(0.0, 500.0))
    def test_one_node_more_silent_never_thaws_a_pool(
        self, now: int, then: int, later_s: float
    ) -> None:
        """Within the hold a pool in which more is silent is frozen where one with less is."""
        _, memory = breakers.look(silent(now, 10), None)

        def frozen(count: int) -> bool:
            picture = silent(count, 10, age_s=LATE_S + later_s, now_s=NOW_S + later_s)
            return bool(breakers.look(picture, memory)[0])

        assert frozen(min(10, then + 1)) >= frozen(then)


class TestOpen:
    """Soft causes exclude too much of a pool."""

    @pytest.mark.parametrize(
        ("gpus", "opens"), [(0, False), (16, False), (17, True)], ids=["none", "20 %", "more"]
    )
    def test_more_than_the_budget_opens(self, gpus: int, opens: bool) -> None:
        """At the budget of 20 % nothing happens, above it the breaker opens."""
        words, _ = breakers.look(excluded(gpus), None)
        assert states(words) == ({POOL: BreakerState.OPEN} if opens else {})

    @pytest.mark.parametrize(
        "state", [Health.RESET_REQUIRED, Health.REBOOT_REQUIRED, Health.FAILED, Health.NEW]
    )
    def test_what_cannot_be_used_counts_for_nothing(self, state: Health) -> None:
        """Hard states are excluded for good reason, and new GPUs for a short time."""
        assert not breakers.look(excluded(80, state), None)[0]

    def test_what_the_policy_accepts_is_not_excluded(self) -> None:
        """Where gangs may use SUSPECT GPUs they spend no budget."""
        policy = replace(DEFAULT, gang=replace(DEFAULT.gang, suspect=True))
        assert not breakers.look(seen(excluded(40).fleet, policy), None)[0]

    def test_a_few_gpus_never_open_it(self) -> None:
        """Three GPUs of a pool of one machine are much of it, and no pattern."""
        one = [of_state("n0", *[Health.SUSPECT] * 3)]
        assert not breakers.look(seen(fleet_of(*one)), None)[0]
        one = [of_state("n0", *[Health.SUSPECT] * 4)]
        assert breakers.look(seen(fleet_of(*one)), None)[0]

    @pytest.mark.parametrize(("nodes", "opens"), [(3, False), (4, True)], ids=["three", "more"])
    def test_gpus_of_many_nodes_within_an_hour_open(self, nodes: int, opens: bool) -> None:
        """One GPU each is far from the budget, and still a pattern."""
        assert (BreakerState.OPEN in one_by_one(nodes, 600.0)) is opens

    def test_slower_than_that_they_do_not(self) -> None:
        """Some nodes a day are how GPUs age."""
        assert one_by_one(10, 1_200.0) == []

    def test_a_pool_that_is_large_may_lose_a_tenth_of_its_nodes(self) -> None:
        """At the ratio nothing happens."""
        assert one_by_one(5, 60.0, of=50) == []
        assert one_by_one(6, 60.0, of=50) == [BreakerState.OPEN]

    def test_gpus_that_come_back_from_repair_are_not_newly_excluded(self) -> None:
        """Nobody could use them before; nor could they in an hour of which nobody knows."""
        _, memory = breakers.look(excluded(0, Health.FAILED), None)
        for state in (Health.FAILED, Health.PROBATION):
            nodes = [of_state(name, state) for name in names(10)]
            words, memory = breakers.look(seen(fleet_of(*nodes)), memory)
            assert not words
        nodes = [of_state(name, Health.SUSPECT) for name in names(10)]
        assert not breakers.look(seen(fleet_of(*nodes)), None)[0]

    def test_it_closes_after_an_hour_of_calm(self) -> None:
        """Between the two ratios it stays, below both it closes one hour later, and not before."""
        _, memory = breakers.look(excluded(17), None)
        for minutes in range(10, 300, 10):  # trouble goes on in between
            words, memory = breakers.look(excluded(14, now_s=NOW_S + 60.0 * minutes), memory)
            assert words
        calm_s = NOW_S + 60.0 * 290
        open_for_s = 0.0
        for minutes in range(5, 100, 5):
            words, memory = breakers.look(excluded(12, now_s=calm_s + 60.0 * minutes), memory)
            open_for_s = 60.0 * minutes if words else open_for_s
        assert HOUR_S - 600.0 <= open_for_s <= breakers.RENEWED_WITH * HOUR_S

    def test_its_word_is_rarely_written(self) -> None:
        """A day of trouble is some hundred words, not one for each second."""
        said, memory = set(), None
        for minutes in range(0, 24 * 60, 5):
            words, memory = breakers.look(excluded(40, now_s=NOW_S + 60.0 * minutes), memory)
            said.add(words[POOL].until_s)
        assert len(said) <= 24 * 4

    def test_a_freeze_hides_it_and_gives_it_back(self) -> None:
        """One word a pool: while it is frozen it is not open, and afterwards it is as before."""
        _, memory = breakers.look(excluded(17), None)
        picture = excluded(17)
        quiet = replace(picture.fleet, seen_s=dict.fromkeys(picture.names, NOW_S - LATE_S))
        words, memory = breakers.look(seen(quiet), memory)
        assert states(words) == {POOL: BreakerState.FROZEN}
        words, _ = breakers.look(excluded(14), memory)
        assert states(words) == {POOL: BreakerState.OPEN}


class TestLeaders:
    """What another leader, or a person, said before."""

    @pytest.mark.parametrize("state", [BreakerState.OPEN, BreakerState.FROZEN])
    def test_a_new_leader_takes_over(self, state: BreakerState) -> None:
        """A breaker that tripped under the last leader stands until its end."""
        word = Breaker(pool=POOL, state=state, until_s=NOW_S + 300.0)
        nodes = [of_state(name) for name in names(10)]
        fleet = fleet_of(*nodes, ages_s={NodeName("n0"): LATE_S}, breakers=[word])
        words, memory = breakers.look(seen(fleet), None)
        assert words == {POOL: word}
        later = replace(fleet, now_s=NOW_S + 301.0, breakers={})
        assert not breakers.look(seen(later), memory)[0]

    def test_an_ended_word_is_not_taken_up_again(self) -> None:
        """Until the cache has heard that a pool thawed it still shows it frozen."""
        words, memory = breakers.look(silent(6, 10), None)
        _, memory = breakers.look(silent(0, 10), memory)
        stale_word = replace(silent(0, 10).fleet, breakers=words)
        assert not breakers.look(seen(stale_word), memory)[0]

    @pytest.mark.parametrize(
        "word",
        [
            Breaker(pool=POOL, state=BreakerState.CLOSED),
            Breaker(pool=POOL, state=BreakerState.CLOSED, until_s=NOW_S + 60.0),
            Breaker(pool=POOL, state=BreakerState.OPEN),
        ],
        ids=["closed", "closed for a minute", "open"],
    )
    def test_a_persons_word_stands(self, word: Breaker) -> None:
        """What an operator put is neither changed nor ended by the leader."""
        fleet = replace(excluded(40).fleet, breakers={POOL: word})
        _, memory = breakers.look(excluded(40), None)
        assert breakers.look(seen(fleet), memory)[0] == {POOL: word}


class TestLaws:
    """What holds for every fleet."""

    @given(
        found=st.lists(
            st.tuples(
                st.sampled_from(["A", "B", ""]),
                st.lists(st.sampled_from(list(Health)), max_size=8),
                st.sampled_from([1.0, 61.0, 119.0, 121.0, 5_000.0]),
            ),
            min_size=1,
            max_size=8,
        ),
        order=st.randoms(use_true_random=False),
    )
    def test_no_order_of_nodes_matters(
        self, found: list[tuple[str, list[Health], float]], order: Random
    ) -> None:
        """The same nodes in any order come to the same words and the same memory."""
        nodes: list[Node] = [
            of_state(f"n{at}", *states, pool=pool) for at, (pool, states, _) in enumerate(found)
        ]
        ages_s = {NodeName(f"n{at}"): age_s for at, (_, _, age_s) in enumerate(found)}
        shuffled = list(nodes)
        order.shuffle(shuffled)
        one, other = (
            breakers.look(seen(fleet_of(*each, ages_s=ages_s)), None) for each in (nodes, shuffled)
        )
        assert one[0] == other[0]
        assert one[1].open_until_s == other[1].open_until_s
        assert one[1].frozen_until_s == other[1].frozen_until_s

    @given(ages_s=st.lists(st.floats(0.0, 59.9), min_size=1, max_size=6))
    def test_a_healthy_pool_is_closed(self, ages_s: list[float]) -> None:
        """Fresh nodes without causes need no word, whatever was before."""
        nodes = [of_state(name) for name in names(len(ages_s))]
        picture = seen(fleet_of(*nodes, ages_s=dict(zip(names(len(ages_s)), ages_s, strict=True))))
        assert not breakers.look(picture, None)[0]
        assert not breakers.look(picture, Memory())[0]

    def test_a_memory_costs_no_verdict(self) -> None:
        """Nodes that did not change are counted once."""
        picture = excluded(17)
        _, first = breakers.look(picture, None)
        _, second = breakers.look(picture, first)
        assert all(second.tallies[name] is first.tallies[name] for name in picture.names)

    def test_an_open_breaker_closes_below_where_it_opens(self) -> None:
        """A policy in which it would flap is refused."""
        with pytest.raises(PolicyError, match=r"breaker\.close_ratio: must not be higher"):
            Policy(breaker=BreakerPolicy(open_ratio=0.1, close_ratio=0.2))
