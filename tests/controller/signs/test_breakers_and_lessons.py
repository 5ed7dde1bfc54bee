"""Breakers and rejections on their way into the cache, and what the figures say of it all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from pools import POOL, fleet_of, names, of_state, seen
from prometheus_client import CollectorRegistry, generate_latest
from servers import eventually
from signing import Stage, stage
from strategies import NOW_S

from extender.config.model import Mode
from extender.controller.signs.metrics import SignFigures
from extender.controller.signs.signs import Signs
from scoring.model import BreakerState, NodeName
from scoring.picture import Picture

__all__ = ["stage"]

TEN = names(10)
CACHE_S = 1_790_000_200.0
"""Unix time by the cache's clock at `NOW_S`. The leader's own is some minutes slow."""
AHEAD_S = NOW_S - CACHE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A pod that a node refused."""

    node: NodeName = TEN[0]
    owner: str = "lab/ranks"
    reason: str = "UnexpectedAdmissionError"
    name: str = "rank-3"
    at_s: float = CACHE_S


@pytest.fixture
def signs(stage: Stage) -> Iterator[Signs]:
    """Signs of a leader that only observes: the cache is kept all the same."""
    found = stage.signs(mode=Mode.OBSERVE)
    found.start()
    found.lead(7)
    yield found
    found.close()


def silent(count: int, now_s: float = NOW_S) -> Picture:
    """Ten nodes of which some fell silent."""
    nodes = [replace(of_state(name), epoch=2, seq=8) for name in TEN]
    fleet = fleet_of(*nodes, ages_s=dict.fromkeys(TEN[:count], 80.0), now_s=now_s)
    return seen(replace(fleet, ahead_s=AHEAD_S))


def shown(stage: Stage, signs: Signs, picture: Picture) -> None:
    """One Fleet, and the ticks until the next."""
    signs.on_fleet(None, picture, frozenset())
    signs.tick()
    stage.clock.pass_s(2.5)
    signs.tick()


class TestBreakers:
    """What is to stand in the cache."""

    def test_a_pool_that_falls_silent_is_frozen_and_thawed(
        self, stage: Stage, signs: Signs
    ) -> None:
        """The word is written when it changes, and not with each look; in Unix time of the cache, whose
        clock all readers go by.
        """
        for picture in (silent(0), silent(6), silent(6), silent(0)):
            shown(stage, signs, picture)
        first, frozen, thawed = stage.cache.breakers
        assert (first, thawed) == ({}, {})
        word = frozen[POOL]
        assert word.state is BreakerState.FROZEN
        assert word.until_s is not None
        assert CACHE_S + 500 < word.until_s < CACHE_S + 603
        assert signs.breakers.trips[BreakerState.FROZEN] == 1

    def test_an_enforcing_leader_raises_one_alert(self, stage: Stage) -> None:
        """One event on Surefoot itself for the freeze and one for its end, and the metric."""
        found = stage.signs()
        found.start()
        found.lead(7)
        for picture in (silent(0), silent(6), silent(7), silent(0)):
            shown(stage, found, picture)
        eventually(lambda: len(stage.events()) == 2, "both are told")
        found.close()
        told = [(each["type"], each["reason"]) for each in stage.events()]
        assert told == [("Warning", "PoolFrozen"), ("Normal", "PoolBreakerClosed")]
        assert {each["involvedObject"]["kind"] for each in stage.events()} == {"Lease"}

    def test_a_new_leader_goes_on_without_an_alert(self, stage: Stage, signs: Signs) -> None:
        """What the cache says already is said again, with the same end, and is no trip."""
        shown(stage, signs, silent(6))
        word = stage.cache.breakers[-1][POOL]
        placed = replace(word, until_s=(word.until_s or 0.0) + AHEAD_S)
        signs.rest()
        signs.lead(8)
        picture = silent(6)
        shown(stage, signs, seen(replace(picture.fleet, breakers={POOL: placed})))
        assert stage.cache.breakers[-1][POOL].until_s == pytest.approx(word.until_s)
        assert signs.breakers.trips[BreakerState.FROZEN] == 1

    def test_a_standby_says_nothing(self, stage: Stage) -> None:
        """Only the leader's word counts."""
        found = stage.signs()
        shown(stage, found, silent(6))
        assert not stage.cache.breakers


class TestLessons:
    """What failed pods teach."""

    def test_a_failed_pod_is_learnt_once(self, stage: Stage, signs: Signs) -> None:
        """As a rejection with the node's document, in the leader's term."""
        failed = Failure()
        stage.view.failures.append(failed)
        shown(stage, signs, silent(0))
        ((found, term),) = eventually(lambda: stage.cache.rejections, "it is kept")
        assert term == 7
        assert (found.node, found.owner, found.name) == ("n0", "lab/ranks", "rank-3")
        assert (found.epoch, found.seq, found.at_s) == (2, 8, failed.at_s)
        known = replace(found, at_s=failed.at_s + AHEAD_S)
        stage.view.failures.append(failed)
        picture = silent(0)
        shown(stage, signs, seen(replace(picture.fleet, rejections={found.node: (known,)})))
        assert signs.lessons.known == 1
        assert len(stage.cache.rejections) == 1

    def test_a_cache_that_is_away_learns_later(self, stage: Stage, signs: Signs) -> None:
        """Nothing is lost for a while."""
        stage.cache.broken = True
        stage.view.failures.append(Failure())
        shown(stage, signs, silent(0))
        eventually(lambda: signs.lessons.outbox.failed, "it was not kept")
        stage.cache.broken = False
        shown(stage, signs, silent(0))
        eventually(lambda: stage.cache.rejections, "it is kept")

    def test_it_is_known_before_the_cache_tells_of_it(self, stage: Stage, signs: Signs) -> None:
        """A replacement is planned as soon as it is there, and the way by the cache is longer."""
        signs.on_fleet(None, silent(0), frozenset())
        stage.view.failures.append(Failure())
        (found,) = signs.learn()
        assert (found.node, found.owner, found.name) == ("n0", "lab/ranks", "rank-3")
        assert signs.learn() == (found,)
        fleet = replace(silent(0).fleet, rejections={found.node: (replace(found, at_s=NOW_S),)})
        signs.on_fleet(None, seen(fleet), frozenset())
        assert signs.learn() == ()

    def test_who_does_not_lead_leaves_it_to_the_leader(self, stage: Stage, signs: Signs) -> None:
        """What it had learnt, too."""
        signs.on_fleet(None, silent(0), frozenset())
        stage.view.failures.append(Failure())
        assert signs.learn()
        signs.rest()
        stage.view.failures.append(Failure())
        assert signs.learn() == ()
        assert stage.view.failures

    def test_it_is_an_event_on_the_node(self, stage: Stage) -> None:
        """With the pod, its owner and the kubelet's reason."""
        stage.add_nodes("n0")
        found = stage.signs()
        found.start()
        found.lead(7)
        stage.view.failures.append(Failure())
        shown(stage, found, silent(0))
        (told,) = eventually(
            lambda: [each for each in stage.events() if each["reason"] == "PodRejected"],
            "it is told",
        )
        found.close()
        assert told["message"].startswith(
            "failed pod rank-3 of lab/ranks: UnexpectedAdmissionError."
        )
        assert told["involvedObject"]["uid"] == "uid-n0"


def test_every_figure_is_on_the_page(stage: Stage, signs: Signs) -> None:
    """Also those that never happened; no label names an object."""
    registry = CollectorRegistry()
    registry.register(SignFigures(signs))
    shown(stage, signs, silent(6))
    page = generate_latest(registry).decode()
    for line in (
        'surefoot_breaker_pools{state="frozen"} 1.0',
        'surefoot_breaker_trips_total{state="open"} 0.0',
        'surefoot_signs_total{kind="wakes",outcome="sent"} 0.0',
        'surefoot_node_conditions{status="True"} 0.0',
        'surefoot_unfit_nodes{part="withheld"} 0.0',
        'surefoot_events_spared_total{reason="repeated"} 0.0',
        "surefoot_wakes_pending 0.0",
    ):
        assert line in page.splitlines()
    assert POOL not in page
    assert signs.alive
