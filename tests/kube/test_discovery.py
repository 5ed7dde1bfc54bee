"""What is served, in which version, and how a reflector lives with what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from following import QUICK, Follow, pod
from kubes import ApiServer, refuses
from servers import eventually

from extender.kube.client import Client
from extender.kube.discovery import Discovered, served
from extender.kube.errors import GarbageError, RefusedError
from extender.kube.status import Restart

GROUP = "scheduling.x-k8s.io"
PLACE = Discovered(GROUP, "podgroups")
OFTEN = replace(QUICK, absent_s=0.1, watch_s=0.6)
Begin = Callable[..., Follow]


@pytest.fixture
def client(api: ApiServer, tmp_path: Path) -> Iterator[Client]:
    """A client of the API server."""
    made = Client(api.settings(tmp_path))
    yield made
    made.close()


class TestServed:
    """One version of each resource."""

    def test_the_preferred_version_comes_first(self, api: ApiServer, client: Client) -> None:
        """What it lacks is taken from the next one; parts of objects are none."""
        api.groups[GROUP] = {
            "v1beta1": ("podgroups", "podgroups/status"),
            "v1alpha1": ("podgroups", "elasticquotas"),
        }
        assert served(client, GROUP) == {"podgroups": "v1beta1", "elasticquotas": "v1alpha1"}
        assert PLACE.path(client) == "/apis/scheduling.x-k8s.io/v1beta1/podgroups"

    def test_a_group_that_is_absent_serves_nothing(self, api: ApiServer, client: Client) -> None:
        """As most groups are on most clusters."""
        assert served(client, GROUP) == {}
        assert PLACE.path(client) is None
        api.groups[GROUP] = {"v1": ("elasticquotas",)}
        assert PLACE.path(client) is None

    def test_a_version_that_went_in_between_is_left_out(
        self, api: ApiServer, client: Client
    ) -> None:
        """The group still names it, and it is gone a moment later."""
        api.groups[GROUP] = {"v1": ("podgroups",)}
        names = b'{"versions":[{"version":"v2"},{"version":"v1"}]}'
        api.faults["read"].append(lambda call: call.answer(200, names))
        assert served(client, GROUP) == {"podgroups": "v1"}

    def test_errors_are_no_absence(self, api: ApiServer, client: Client) -> None:
        """An API server that fails says nothing of what it serves."""
        api.faults["read"].append(refuses(503, "not now"))
        with pytest.raises(RefusedError, match="503: not now"):
            served(client, GROUP)

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"versions":[{}]}'])
    def test_garbage_is_told(self, api: ApiServer, client: Client, body: bytes) -> None:
        """In a sentence that names the group."""
        api.faults["read"].append(lambda call: call.answer(200, body))
        with pytest.raises(GarbageError, match=r"what is served of scheduling\.x-k8s\.io cannot"):
            served(client, GROUP)


class TestReflector:
    """A kind that may not be served."""

    def test_what_is_absent_is_empty_and_no_problem(self, api: ApiServer, follow: Begin) -> None:
        """The handler hears so once, and nothing is counted as a failure."""
        seen = follow(OFTEN, place=PLACE)
        eventually(lambda: seen.status.synced, "synced")
        before = len(api.tokens)
        eventually(lambda: len(api.tokens) >= before + 3, "discovery is asked again")
        assert seen.said == ["listing", "listed"]
        assert (seen.status.served, seen.status.problem) == (False, None)
        assert (seen.reflector.name, seen.reflector.fresh) == ("podgroups", True)
        assert not seen.reflector.restarts
        assert api.calls == []

    def test_discovery_is_not_asked_all_the_time(self, api: ApiServer, follow: Begin) -> None:
        """Dozens of kinds may be absent."""
        seen = follow(replace(QUICK, absent_s=60.0), place=PLACE)
        eventually(lambda: seen.status.synced, "synced")
        eventually(lambda: len(api.tokens) == 1, "one question")
        assert seen.reflector.fresh

    def test_what_comes_is_followed(self, api: ApiServer, follow: Begin) -> None:
        """Somebody installs it while the controller runs."""
        seen = follow(OFTEN, place=PLACE)
        eventually(lambda: seen.status.synced, "synced")
        api.set("podgroups", pod("g"))
        api.groups[GROUP] = {"v1": ("podgroups",)}
        eventually(lambda: set(seen.now) == {"lab/g"}, "the first group")
        assert seen.status.served

    def test_what_goes_is_gone(self, api: ApiServer, follow: Begin) -> None:
        """With all its objects; and it may come back."""
        api.groups[GROUP] = {"v1": ("podgroups",)}
        api.set("podgroups", pod("g"))
        seen = follow(OFTEN, place=PLACE)
        eventually(lambda: seen.now, "the group")
        del api.groups[GROUP]
        eventually(lambda: not seen.status.served, "its end")
        assert seen.now == {}
        assert seen.status.problem is None
        api.groups[GROUP] = {"v2": ("podgroups",)}
        eventually(lambda: set(seen.now) == {"lab/g"}, "the group again")

    def test_a_version_that_goes_is_replaced(self, api: ApiServer, follow: Begin) -> None:
        """By one that is served then: nothing is ever gone."""
        api.groups[GROUP] = {"v1": ("podgroups",)}
        api.set("podgroups", pod("g"))
        seen = follow(OFTEN, place=PLACE)
        eventually(lambda: seen.now, "the group")
        api.groups[GROUP] = {"v2": ("podgroups",)}
        eventually(lambda: seen.said.count("listed") == 2, "the new list")
        assert set(seen.now) == {"lab/g"}
        assert seen.status.served

    def test_an_api_server_that_does_not_say_is_asked_again(
        self, api: ApiServer, follow: Begin
    ) -> None:
        """Nothing is synced before it does."""
        api.faults["read"].extend([refuses(503, "not now")] * 3)
        seen = follow(replace(OFTEN, first_pause_s=0.1), place=PLACE)
        eventually(lambda: seen.status.problem, "a problem")
        assert not seen.status.synced
        eventually(lambda: seen.status.synced, "synced")
        assert seen.reflector.restarts[Restart.REFUSED] == 3

    def test_closing_ends_the_wait(self, api: ApiServer, follow: Begin) -> None:
        """At once."""
        seen = follow(replace(QUICK, absent_s=60.0), place=PLACE)
        eventually(lambda: seen.status.synced, "synced")
        seen.close()
        assert not seen.reflector.alive
