"""More clients than there may be connections: the newest one is served."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from servers import Cache
from serving import PATIENT, Serve, ask, dial

ROOM = 12
"""Connections that the server of these tests may have."""
SMALL = f"""
from extender.webhook import server
server.SETTINGS["worker_connections"] = {ROOM}"""


@pytest.fixture(scope="module")
def small(own_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A server that a few clients fill."""
    log = tmp_path_factory.mktemp("small") / "log"
    with Serve(own_cache.settings, log, before=SMALL, **PATIENT) as serve:
        yield serve


@pytest.mark.parametrize("asks", [True, False], ids=["that asked", "that are silent"])
def test_idle_clients_do_not_keep_others_out(small: Serve, asks: bool) -> None:
    """Three times as many as there is room for stay connected, and each new one is served."""
    with ExitStack() as stack:
        for _ in range(3 * ROOM):
            if asks:
                idle = stack.enter_context(closing(small.connect()))
                assert ask(idle, "GET", "/livez").status == 200
            else:
                stack.enter_context(dial(small))
        assert small.ask("GET", "/livez").status == 200


def test_who_never_asked_goes_first(small: Serve) -> None:
    """kube-scheduler's kept connection outlives a crowd that only dials."""
    with ExitStack() as stack:
        kept = stack.enter_context(closing(small.connect()))
        assert ask(kept, "GET", "/livez").status == 200
        for _ in range(3 * ROOM):
            stack.enter_context(dial(small))
        assert small.ask("GET", "/livez").status == 200
        assert ask(kept, "GET", "/livez").status == 200


def test_clients_that_never_close_are_closed_at_last(small: Serve) -> None:
    """Each asks for the end of its connection and keeps its own end open: they do not pile up."""
    with ExitStack() as stack:
        for _ in range(100):
            sock = stack.enter_context(dial(small))
            sock.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            assert answer.status == 200
            answer.close()
        assert small.ask("GET", "/livez").status == 200
