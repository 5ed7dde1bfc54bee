"""What an API server, or the way to it, may do: each costs as little as it can, and none spins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from following import QUICK, Follow, pod
from kubes import ApiServer, Fault, refuses
from servers import eventually
from test_reflector import lists, watches
from unsound import hangs, says

from extender.kube.status import Restart

Begin = Callable[..., Follow]
ADDED = b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"lab","resourceVersion":"150"}}}\n'


def test_a_version_that_is_gone_costs_a_new_list(api: ApiServer, follow: Begin) -> None:
    """410 in the middle of a watch: what went meanwhile is gone, what came is there."""
    api.set("pods", pod("a"))
    api.set("pods", pod("b"))
    seen = follow(replace(QUICK, watch_s=0.5))
    eventually(lambda: seen.status.synced, "synced")
    api.forget("pods", "lab/a")
    eventually(lambda: set(seen.now) == {"lab/b"}, "the new list")
    assert seen.reflector.restarts[Restart.GONE] >= 1
    assert lists(api) >= 2


def test_410_as_a_status_is_the_same(api: ApiServer, follow: Begin) -> None:
    """Some servers refuse the watch instead of beginning it."""
    api.faults["watch"].append(refuses(410, "too old"))
    seen = follow()
    eventually(lambda: seen.said.count("listed") == 2, "the new list")
    assert seen.reflector.restarts[Restart.GONE] == 1


def test_a_list_that_expires_begins_anew(api: ApiServer, follow: Begin) -> None:
    """410 on `continue`: half a list is no list, and is never handed out."""
    api.page_size = 2
    for number in range(6):
        api.set("pods", pod(f"p{number}"))
    api.faults["list"].extend([api.list, api.list, refuses(410, "the continue token is too old")])
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    assert seen.said == ["listing", "listing", "listed"]
    assert len(seen.now) == 6
    assert [query.get("continue") for _, query in api.calls if "limit" in query] == [
        *(None, "2", "4"),
        *(None, "2", "4"),
    ]


@pytest.mark.parametrize(
    "fault",
    [says(ADDED), says(ADDED, b'{"type":"ADDED","obj'), says(ADDED[:40], ADDED[40:])],
    ids=["dropped", "half a line", "a line in two pieces"],
)
def test_a_connection_that_drops_costs_no_list(api: ApiServer, follow: Begin, fault: Fault) -> None:
    """The next watch goes on from the last whole event; half an event is none."""
    api.version = 120
    api.faults["watch"].append(fault)
    seen = follow()
    eventually(lambda: len(watches(api)) == 2, "the next watch")
    assert watches(api) == ["120", "150"]
    assert (lists(api), seen.said) == (1, ["listing", "listed", "lab/b here"])
    assert seen.reflector.restarts[Restart.BROKEN] == 1


@pytest.mark.parametrize(
    "line",
    [
        b"<html>502</html>\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n',
        b'{"type":"MELTED","object":{"metadata":{"name":"a"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=["html", "no object", "no name", "unknown type", "no utf-8", "deep"],
)
def test_garbage_costs_a_new_list(api: ApiServer, follow: Begin, line: bytes) -> None:
    """A line that cannot be read may have been any change."""
    api.set("pods", pod("a"))
    api.faults["watch"].append(says(line))
    seen = follow()
    eventually(lambda: seen.said.count("listed") == 2, "the new list")
    assert seen.reflector.restarts[Restart.GARBAGE] == 1
    assert set(seen.now) == {"lab/a"}


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"metadata":{},"items":[]}'])
def test_a_garbled_list_is_asked_for_again(api: ApiServer, follow: Begin, body: bytes) -> None:
    """Nothing of it is handed out."""
    api.faults["list"].append(lambda call: call.answer(200, body))
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    assert seen.said == ["listing", "listing", "listed"]


def test_one_bad_object_hides_no_other(api: ApiServer, follow: Begin) -> None:
    """It is counted and left out, in a list, which is then not whole, and in a watch."""
    api.set("pods", pod("bad-1"))
    api.set("pods", pod("a"))
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    assert (seen.said[-1], set(seen.now), seen.status.skipped) == (
        "listed in part",
        {"lab/a"},
        1,
    )
    api.set("pods", pod("bad-2"))
    api.set("pods", pod("b"))
    eventually(lambda: "lab/b" in seen.now, "the next pod")
    assert (seen.status.skipped, lists(api)) == (2, 1)


def test_an_object_that_cannot_be_read_any_more_stays_what_it_was(
    api: ApiServer, follow: Begin
) -> None:
    """A mistake of our own is no sign that the object went; its end is told all the same."""
    api.set("pods", pod("a"))
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    seen.bad = "a"
    api.set("pods", pod("a"))
    api.set("pods", pod("b"))
    eventually(lambda: "lab/b" in seen.now, "the next pod")
    assert (seen.now["lab/a"], seen.status.skipped) == ("101", 1)
    api.delete("pods", "lab/a")
    eventually(lambda: set(seen.now) == {"lab/b"}, "its end")


def test_a_handler_that_fails_gets_a_new_list(api: ApiServer, follow: Begin) -> None:
    """A mistake of our own costs a list, not the thread."""
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    seen.fails_next = True
    api.set("pods", pod("a"))
    eventually(lambda: seen.said.count("listed") == 2, "the new list")
    assert set(seen.now) == {"lab/a"}
    assert seen.reflector.alive


def test_a_silent_server_is_noticed(
    api: ApiServer, follow: Begin, release: threading.Event
) -> None:
    """A watch that says nothing, not even a bookmark, is begun again from where it was."""
    api.version = 120
    api.faults["watch"].append(says(ADDED, then=release))
    seen = follow(replace(QUICK, silence_s=0.3))
    eventually(lambda: len(watches(api)) == 2, "the next watch")
    assert watches(api) == ["120", "150"]
    assert (lists(api), seen.reflector.restarts[Restart.SILENT]) == (1, 1)


def test_a_server_that_never_begins_is_noticed(
    api: ApiServer, follow: Begin, release: threading.Event
) -> None:
    """It takes the connection and the request, and that is all."""
    api.faults["watch"].append(hangs(release))
    seen = follow(replace(QUICK, silence_s=0.3))
    eventually(lambda: len(watches(api)) == 2, "the next watch")
    assert seen.reflector.restarts[Restart.SILENT] == 1


def test_drops_of_bytes_are_no_sign_of_life(
    api: ApiServer, follow: Begin, release: threading.Event
) -> None:
    """A line that comes byte by byte for ever is given up."""

    def drips(call: object) -> None:
        call.stream()  # type: ignore[attr-defined]
        while not release.wait(0.02):
            call.chunk(b" ")  # type: ignore[attr-defined]

    api.faults["watch"].append(drips)
    seen = follow(replace(QUICK, silence_s=0.4))
    eventually(lambda: len(watches(api)) == 2, "the next watch")
    assert seen.reflector.restarts[Restart.SILENT] == 1


def test_a_refusal_is_told_and_tried_again(api: ApiServer, follow: Begin) -> None:
    """403 until somebody grants the right: the sentence of the server is shown meanwhile."""
    api.faults["list"].extend([refuses(403, "pods is forbidden: User x cannot list")] * 4)
    seen = follow(replace(QUICK, first_pause_s=0.1))
    eventually(lambda: seen.status.problem, "a problem")
    assert "answered 403: pods is forbidden: User x cannot list" in str(seen.status.problem)
    assert not seen.status.synced
    eventually(lambda: seen.status.synced, "synced")
    assert (seen.status.problem, seen.reflector.restarts[Restart.REFUSED]) == (None, 4)


def test_retry_after_is_heeded(api: ApiServer, follow: Begin) -> None:
    """429 says how long to stay away; our own pause would be much shorter."""
    api.faults["list"].append(refuses(429, "slow down", Retry_After="1"))
    began_s = time.monotonic()
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    assert time.monotonic() - began_s >= 1.0


def test_a_refused_token_is_read_again(api: ApiServer, follow: Begin, tmp_path: object) -> None:
    """Tokens are renewed in their file: after a 401 the file counts, not what was read before."""
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    api.settings(tmp_path, token="a-new-token")  # type: ignore[arg-type]
    api.faults["list"].append(refuses(401, "Unauthorized"))
    seen.reflector.relist()
    eventually(lambda: api.tokens[-1] == "Bearer a-new-token", "the new token")


def test_a_server_that_is_away_is_found_again(api: ApiServer, follow: Begin) -> None:
    """No list is spent on a restart; what changed during it comes with the next watch."""
    api.set("pods", pod("a"))
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    api.stop()
    eventually(lambda: seen.status.problem, "a problem")
    api.set("pods", pod("b"))
    api.start()
    eventually(lambda: "lab/b" in seen.now, "what changed")
    assert lists(api) == 1
    assert seen.status.problem is None


def test_a_server_that_refuses_connections_is_not_stormed(
    api: ApiServer, follow: Begin, tmp_path: object
) -> None:
    """Tries become rarer: a second holds a handful."""
    api.stop()
    seen = follow(replace(QUICK, first_pause_s=0.1, last_pause_s=30.0))
    threading.Event().wait(1.5)
    assert 2 <= seen.reflector.restarts[Restart.BROKEN] <= 8
    assert "cannot be reached" in str(seen.status.problem)
    api.start()


def test_closing_ends_a_watch_at_once(api: ApiServer, follow: Begin) -> None:
    """Nobody waits for the next bookmark."""
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    seen.close()  # gives up after a while, with the thread alive
    assert not seen.reflector.alive
