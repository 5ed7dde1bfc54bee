"""Controllers that want to lead, each behind a relay of its own, so that a test chooses at which of its
writes one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

import pytest

from e2e import relays
from e2e.cluster import Cluster
from e2e.fixtures import MakesController
from e2e.relays import Relay
from e2e.surefoots import Controller
from e2e.waiting import eventually
from extender.store.connect import StoreSettings


class Candidate:
    """One of them."""

    def __init__(self, controller: Controller, relay: Relay) -> None:
        self.controller = controller
        self.relay = relay

    def await_lead(self) -> None:
        """Return once it leads."""
        __tracebackhide__ = True
        eventually(self.controller.leads, f"{self.controller.process.log.stem} leads")

    def kill(self) -> None:
        """End it at once; what waited in its relay is lost with it."""
        self.controller.kill()
        self.relay.close()


MakesCandidate = Callable[..., Candidate]


@pytest.fixture
def candidate(cluster: Cluster, controller: MakesController) -> Iterator[MakesCandidate]:
    """Starts them: `candidate(prepare=..., store=...)`, where `prepare` is given the relay before the
    controller is started behind it.
    """
    numbers = count(1)
    with ExitStack() as stack:

        def start(
            *,
            prepare: Callable[[Relay], None] = lambda _: None,
            store: StoreSettings | None = None,
        ) -> Candidate:
            relay = stack.enter_context(relays.before(cluster))
            prepare(relay)
            name = f"candidate-{next(numbers)}"
            return Candidate(controller(name=name, via=relay, store=store), relay)

        yield start
