"""Requests as bytes, and errors as one sentence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubes import ApiServer, Call, kubeconfig, refuses
from unsound import says

from extender.kube import answers
from extender.kube import client as http
from extender.kube.client import Client, Query
from extender.kube.errors import (
    GarbageError,
    GoneError,
    KubeError,
    RefusedError,
    SilentError,
    UnreachableError,
)
from extender.kube.settings import KubeSettings

PODS = "/api/v1/pods"


@pytest.fixture
def client(api: ApiServer, tmp_path: Path) -> Iterator[Client]:
    """A client of the API server."""
    made = Client(api.settings(tmp_path))
    yield made
    made.close()


def problem(client: Client) -> str:
    """The sentence of a request that must fail."""
    with pytest.raises(KubeError) as caught:
        client.get(PODS, {"limit": 1})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_connections_are_kept(api: ApiServer, client: Client) -> None:
    """Through whole answers, through refusals, and through watches that ended properly."""
    for _ in range(3):
        client.get(PODS, {"limit": 1})
    api.faults["list"].append(refuses(403))
    assert "403" in problem(client)
    query: Query = {"watch": 1, "resourceVersion": "100", "timeoutSeconds": "0"}
    with client.lines(PODS, query, silence_s=5) as lines:
        assert list(lines) == []
    client.get(PODS, {"limit": 1})
    assert api.connections == 1


def test_a_watch_that_is_left_costs_its_connection_only(api: ApiServer, client: Client) -> None:
    """What is not read to its end cannot be used again; the next request has a new one."""
    api.set("pods", {"metadata": {"name": "a"}})
    query: Query = {"watch": 1, "resourceVersion": "100", "timeoutSeconds": "30"}
    with client.lines(PODS, query, silence_s=5) as lines:
        assert b'"ADDED"' in next(lines)
    client.get(PODS, {"limit": 1})
    assert api.connections == 2


def test_lines_that_come_in_pieces_and_together(api: ApiServer, client: Client) -> None:
    """Chunks are no lines; empty ones are none at all."""
    api.faults["watch"].append(says(b"on", b"e\ntwo\n\n", b"th", b"ree\n", b"half"))
    query = {"watch": 1}
    with client.lines(PODS, query, silence_s=5) as lines:
        assert [next(lines) for _ in range(3)] == [b"one", b"two", b"three"]
        with pytest.raises(UnreachableError, match="broke off"):
            next(lines)


def test_a_status_is_told(api: ApiServer, client: Client) -> None:
    """The server's own sentence, its code, and how long to stay away."""
    api.faults["list"].append(refuses(429, "slow down", Retry_After="7"))
    with pytest.raises(RefusedError, match=r"answered 429: slow down$") as caught:
        client.get(PODS, {})
    assert (caught.value.status, caught.value.retry_after_s) == (429, 7.0)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<html>", "answered 502: no reason given"),
        (b'{"message":null}', "answered 502: no reason given"),
        (b"", "answered 502: no reason given"),
        (b'{"message":"gone","code":410}', "answered 410: gone"),
        (b'{"message":"%s"}' % (b"x" * 10_000), "answered 502: xxx"),
    ],
    ids=["html", "null", "nothing", "its code", "long"],
)
def test_a_status_that_is_none_is_an_error_all_the_same(
    api: ApiServer, client: Client, body: bytes, told: str
) -> None:
    """What a proxy answers may be anything; nobody repeats a page of it."""
    api.faults["list"].append(lambda call: call.answer(502, body))
    found = problem(client)
    assert told in found
    assert len(found) < 1000


def test_a_code_of_an_event_is_that_of_an_answer() -> None:
    """410 is 410, wherever it stands; details say how long to wait."""
    told = answers.refusal("x", b'{"code":410,"message":"old"}', status=500)
    assert isinstance(told, GoneError)
    ahead = b'{"code":504,"message":"Timeout: Too large resource version: 9, current: 7"}'
    assert isinstance(answers.refusal("x", ahead, status=504), GoneError), "etcd was restored"
    waits = answers.refusal("x", b'{"code":429,"details":{"retryAfterSeconds":3}}', status=500)
    assert (waits.status, waits.retry_after_s) == (429, 3.0)


def test_a_page_that_drips_is_given_up(
    api: ApiServer, client: Client, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece comes in time, and yet it would take for ever."""

    def drips(call: Call) -> None:
        call.stream()
        while not release.wait(0.02):
            call.chunk(b" ")

    monkeypatch.setattr(http, "PAGE_S", 0.2)
    api.faults["list"].append(drips)
    with pytest.raises(SilentError, match="for one answer"):
        client.get(PODS, {})


def test_a_page_beyond_measure_is_given_up(
    api: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded, whatever is sent."""
    monkeypatch.setattr(http, "LARGEST_PAGE", 1 << 20)
    api.faults["list"].append(lambda call: call.answer(200, b" " * (2 << 20)))
    with pytest.raises(GarbageError, match="more than 1 MiB"):
        client.get(PODS, {})


def test_an_event_beyond_measure_is_given_up(
    api: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in a watch."""
    monkeypatch.setattr(http, "LONGEST_LINE", 1 << 20)
    api.faults["watch"].append(says(*[b" " * (1 << 18)] * 8))
    with (
        client.lines(PODS, {"watch": 1}, silence_s=5) as lines,
        pytest.raises(GarbageError, match="more than 1 MiB"),
    ):
        next(lines)


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "https://[::1]:1"])
def test_a_server_that_is_not_there_is_told(tmp_path: Path, server: str) -> None:
    """With its address, and the reason in the system's words."""
    file = tmp_path / "config"
    file.write_text(json.dumps(kubeconfig(server)))
    client = Client(KubeSettings(kubeconfig=file))
    assert problem(client).startswith(f"the API server at {server} cannot be reached: ")
    client.close()
