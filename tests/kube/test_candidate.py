"""Who leads: one at a time, in ever higher terms, by everybody's own clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from electing import KEY, LEASE, Runner, World, runners, spec
from kubes import ApiServer, refuses
from unsound import unanswered

from extender.kube.errors import RefusedError, SpentError, UnreachableError
from extender.kube.fence import Fence
from extender.kube.lease import LAST_TERM

DURATION_S = LEASE.duration_s


@pytest.fixture
def world() -> World:
    """Time stands still until a test moves it."""
    return World()


@pytest.fixture
def pair(api: ApiServer, tmp_path: Path, world: World) -> Iterator[list[Runner]]:
    """Two candidates."""
    with runners(api.settings(tmp_path), world, 1.0, 1.0) as made:
        yield made


def test_the_first_one_makes_the_lease(api: ApiServer, pair: list[Runner]) -> None:
    """In term 1, with all that others may want to read in it."""
    first, second = pair
    assert (first.step(), second.step()) == (1, None)
    claim = spec(api)
    assert (claim["holderIdentity"], claim["leaseTransitions"]) == ("a", 1)
    assert claim["leaseDurationSeconds"] == 15
    assert claim["renewTime"] == claim["acquireTime"]
    assert claim["renewTime"].endswith("Z")
    assert len(claim["renewTime"]) == len("2026-11-29T10:00:00.000000Z")
    assert second.candidate.holder == "a"


def test_a_leader_renews_and_keeps_its_term(pair: list[Runner], world: World) -> None:
    """For as long as it does so, nobody else leads."""
    first, second = pair
    for _ in range(20):
        assert (first.step(), second.step()) == (1, None)
        world.now_s += LEASE.retry_s


def test_a_leader_that_cannot_renew_stops_after_two_thirds(
    api: ApiServer, pair: list[Runner], world: World
) -> None:
    """Counted from when the last renewal began; the others wait for the whole duration."""
    first, second = pair
    first.step()
    second.step()
    api.faults["write"].extend([refuses(503)] * 10)
    world.now_s = DURATION_S * 2 / 3 - 0.01
    assert first.step() == 1
    world.now_s = DURATION_S * 2 / 3
    assert first.term is None
    world.now_s = DURATION_S - 0.01
    assert second.step() is None
    api.faults["write"].clear()
    world.now_s = DURATION_S
    assert second.step() == 2
    assert first.step() is None


def test_whoever_takes_its_own_lease_back_has_a_new_term(pair: list[Runner], world: World) -> None:
    """It did not lead for a while, and its old writes must not pass for new ones."""
    first, _ = pair
    first.step()
    old = first.candidate.fence
    world.now_s = 100.0
    assert first.step() == 2
    assert old is not None
    assert not old.holds()


def test_a_lease_that_is_given_back_is_free_at_once(api: ApiServer, pair: list[Runner]) -> None:
    """In the next term."""
    first, second = pair
    first.step()
    assert second.step() is None
    first.candidate.resign()
    assert first.term is None
    assert (spec(api)["holderIdentity"], spec(api)["leaseTransitions"]) == ("", 1)
    assert second.step() == 2


def test_a_lease_that_was_touched_is_given_back_all_the_same(
    api: ApiServer, pair: list[Runner]
) -> None:
    """As long as it is this one's; another's is left as it is."""
    first, second = pair
    first.step()
    found = api.get("leases", KEY)
    assert found is not None
    api.set("leases", found)
    first.candidate.resign()
    assert spec(api)["holderIdentity"] == ""
    assert second.step() == 2
    api.set("leases", lease("x"))
    second.candidate.resign()
    assert spec(api)["holderIdentity"] == "x"


def test_a_lease_that_is_gone_is_not_given_back(api: ApiServer, pair: list[Runner]) -> None:
    """Nobody needs it for that."""
    pair[0].step()
    api.delete("leases", KEY)
    pair[0].candidate.resign()
    assert api.get("leases", KEY) is None


def test_who_does_not_lead_gives_nothing_back(api: ApiServer, pair: list[Runner]) -> None:
    """Standing by, there is nothing to write."""
    first, second = pair
    first.step()
    second.step()
    second.candidate.resign()
    assert spec(api)["holderIdentity"] == "a"


def test_no_clock_of_another_is_believed(api: ApiServer, pair: list[Runner], world: World) -> None:
    """A Lease that says it was renewed a thousand years ago, or hence, is judged by what is seen."""
    _, second = pair
    for year in ("1026", "3026"):
        api.set("leases", lease("x", renewTime=f"{year}-01-01T00:00:00.000000Z"))
        begin_s = world.now_s
        assert second.step() is None
        world.now_s = begin_s + DURATION_S - 0.1
        assert second.step() is None
    world.now_s = begin_s + DURATION_S
    assert second.step() == 8


def test_a_holder_that_was_promised_longer_is_waited_for(
    api: ApiServer, pair: list[Runner], world: World
) -> None:
    """Another release of the controller may have other settings."""
    _, second = pair
    api.set("leases", lease("x", leaseDurationSeconds=60))
    assert second.step() is None
    world.now_s = 59.0
    assert second.step() is None
    world.now_s = 60.0
    assert second.step() == 8


def test_a_change_that_is_no_renewal_prolongs_nothing(
    api: ApiServer, pair: list[Runner], world: World
) -> None:
    """Somebody labels the Lease all the time, and its holder is gone."""
    _, second = pair
    api.set("leases", lease("x"))
    second.step()
    world.now_s = DURATION_S
    touched = lease("x")
    touched["metadata"]["labels"] = {"seen": "again"}
    api.set("leases", touched)
    assert second.step() == 8
    kept = api.get("leases", KEY)
    assert kept is not None
    assert kept["metadata"]["labels"] == {"seen": "again"}, "what others wrote stays"


@pytest.mark.parametrize("holes", [{}, {"spec": {}}, {"spec": {"leaseTransitions": None}}])
def test_a_lease_with_holes_is_free(
    api: ApiServer, pair: list[Runner], holes: dict[str, object]
) -> None:
    """Made by hand, or by a tool that knows no better."""
    api.set("leases", {"metadata": {"name": "surefoot", "namespace": "lab"}, **holes})
    assert pair[0].step() == 1


class TestConflicts:
    """Somebody else wrote first."""

    def test_a_leader_whose_lease_was_touched_renews_all_the_same(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """It reads again, and keeps its term."""
        first, _ = pair
        first.step()
        found = api.get("leases", KEY)
        assert found is not None
        found["metadata"]["labels"] = {"seen": "yes"}
        api.set("leases", found)
        assert first.step() == 1

    def test_a_leader_that_was_replaced_stops_at_once(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """Whoever the other is."""
        first, _ = pair
        first.step()
        api.set("leases", lease("x"))
        assert first.step() is None
        assert first.candidate.holder == "x"

    def test_only_one_of_two_takes_what_is_free(
        self, api: ApiServer, pair: list[Runner], world: World
    ) -> None:
        """Both saw the same version; the API server lets one of them write."""
        first, second = pair
        api.set("leases", lease(""))
        old = first.candidate._look()
        assert second.step() == 8
        with pytest.raises(RefusedError, match="409"):
            first.candidate._claim_it(old)
        assert (first.step(), second.term) == (None, 8)

    def test_a_renewal_whose_answer_was_lost_counts_once_it_is_seen(
        self, api: ApiServer, pair: list[Runner], world: World
    ) -> None:
        """Until then the one before it counts."""
        first, _ = pair
        first.step()
        world.now_s = 9.0
        api.faults["write"].append(unanswered)
        assert first.step() == 1
        world.now_s = 9.5
        assert first.step() == 1
        world.now_s = 19.0
        assert first.term == 1
        world.now_s = 19.5
        assert first.term is None

    def test_a_claim_whose_answer_was_lost_is_made_again(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """In one more term: what came of the first one is not known."""
        first, _ = pair
        api.faults["write"].append(unanswered)
        with pytest.raises(UnreachableError):
            first.candidate.step()
        assert first.step() == 2


class TestDeleted:
    """Somebody deletes the Lease."""

    def test_its_leader_makes_it_again_in_a_higher_term(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """Others that saw it wait for that."""
        first, second = pair
        api.set("leases", lease(""))
        assert (first.step(), second.step()) == (8, None)
        api.delete("leases", KEY)
        assert second.step() is None
        assert first.step() == 9
        assert second.step() is None

    def test_where_its_leader_is_gone_too_a_successor_waits(
        self, api: ApiServer, pair: list[Runner], world: World
    ) -> None:
        """For the whole duration, since it was seen to be gone; terms go on from what was seen."""
        first, second = pair
        api.set("leases", lease(""))
        assert (first.step(), second.step()) == (8, None)
        api.delete("leases", KEY)
        world.now_s = 3.0
        assert second.step() is None
        world.now_s = 3.0 + DURATION_S - 0.1
        assert second.step() is None
        world.now_s = 3.0 + DURATION_S
        assert (second.step(), first.term) == (9, None)

    def test_a_term_that_only_the_cache_remembers_is_outdone(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """By who leads, at its next renewal, and by who will."""
        first, second = pair
        assert first.step() == 1
        old = first.candidate.fence
        second.candidate.raise_to(60)
        first.candidate.raise_to(41)
        first.candidate.raise_to(40)
        assert (first.step(), spec(api)["leaseTransitions"]) == (42, 42)
        assert isinstance(old, Fence)
        assert not old.holds()
        assert first.step() == 42
        first.candidate.resign()
        assert second.step() == 61

    def test_a_term_beyond_what_a_lease_can_count_is_not_believed(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """The API server would refuse every renewal."""
        pair[0].candidate.raise_to(10**15)
        assert pair[0].step() == LAST_TERM + 1 == 2**31 - 1

    def test_a_lease_that_cannot_count_further_is_left_alone(
        self, api: ApiServer, pair: list[Runner]
    ) -> None:
        """There is no higher term to lead in: whoever can help is told how."""
        api.set("leases", lease("", leaseTransitions=2**31 - 1))
        with pytest.raises(SpentError, match="delete the Lease lab/surefoot and the term"):
            pair[0].candidate.step()
        assert spec(api)["holderIdentity"] == ""
        assert pair[0].candidate.fence is None


def lease(holder: str, **more: object) -> dict[str, dict[str, object]]:
    """One of somebody else, in its seventh term."""
    return {
        "metadata": {"name": "surefoot", "namespace": "lab"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "leaseTransitions": 7,
            "renewTime": "2026-11-29T10:00:00.000000Z",
            **more,
        },
    }
