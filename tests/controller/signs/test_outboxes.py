"""Queues that never make anybody wait."""

from __future__ import annotations

import threading

from servers import eventually

from extender.controller.signs.outbox import Outbox
from extender.kube.errors import UnreachableError


def test_whoever_puts_never_waits() -> None:
    """However long one sending takes; what is being sent is pending."""
    going, sent = threading.Event(), list[int]()

    def send(item: int) -> None:
        going.wait(30)
        sent.append(item)

    box = Outbox("slow", send)
    box.start()
    for item in range(3):
        box.put(item)
    assert box.pending == 3
    going.set()
    eventually(lambda: box.pending == 0, "all are sent")
    box.close()
    assert sent == [0, 1, 2]
    assert not box.alive


def test_what_no_server_took_is_given_back_once() -> None:
    """A surprise is not: it would be one again."""
    errors: dict[str, Exception] = {"away": UnreachableError("no route"), "odd": KeyError("x")}

    def send(item: str) -> None:
        if item in errors:
            raise errors[item]

    box = Outbox("failing", send, most=3)
    for item in ("pushed out", "away", "odd", "fine"):
        box.put(item)
    box.start()
    eventually(lambda: box.sent == 1, "the last is sent")
    box.close()
    assert (box.failed, box.dropped) == (2, 1)
    assert box.take_lost() == ["pushed out", "away"]
    assert box.take_lost() == []
