"""What no sound API server does: faults for that of `kubes`."""

from __future__ import annotations

import threading

from kubes import Call, Fault


def unanswered(call: Call) -> None:
    """A write that is heeded, and whose answer is lost."""
    call.server.owner.heed(call)
    call.close_connection = True


def slow(release: threading.Event) -> Fault:
    """A write that is heeded only when the test lets it."""

    def fault(call: Call) -> None:
        release.wait(60)
        call.server.owner.write(call)

    return fault


def hangs(release: threading.Event) -> Fault:
    """No answer at all, until the test is over."""

    def fault(call: Call) -> None:
        release.wait(60)
        call.close_connection = True

    return fault


def says(*lines: bytes, then: threading.Event | None = None) -> Fault:
    """A watch of these pieces; afterwards the connection drops, or hangs until `then`."""

    def fault(call: Call) -> None:
        call.stream()
        for line in lines:
            call.chunk(line)
        if then is not None:
            then.wait(60)
        call.close_connection = True

    return fault


def ends(call: Call) -> None:
    """A watch that is over at once, properly."""
    call.stream()
    call.chunk(b"")
