"""Candidates for a Lease of the tests' API server, each on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kubes import ApiServer, Json

from extender.kube.candidate import Candidate
from extender.kube.errors import KubeError
from extender.kube.lease import LeaseFile, LeaseSettings
from extender.kube.settings import KubeSettings

LEASE = LeaseSettings(name="surefoot", namespace="lab", duration_s=15.0, retry_s=2.0)
KEY = "lab/surefoot"


@dataclass(slots=True)
class World:
    """The time that all share, though no candidate reads it as it is."""

    now_s: float = 0.0


class Runner:
    """A candidate whose clock is set and runs as no other does."""

    def __init__(
        self, settings: KubeSettings, name: str, world: World, *, rate: float = 1.0
    ) -> None:
        self._file = LeaseFile(settings, LEASE)
        offset_s = 1000.0 * ord(name)
        self.candidate = Candidate(
            self._file, LEASE, name, clock=lambda: offset_s + rate * world.now_s
        )

    @property
    def term(self) -> int | None:
        """That in which it may write now."""
        fence = self.candidate.fence
        return fence.term if fence is not None and fence.holds() else None

    def step(self) -> int | None:
        """One step, which may fail; its term then."""
        with suppress(KubeError):  # to be tried again
            self.candidate.step()
        return self.term

    def close(self) -> None:
        """Go, without giving anything back, as a crash does."""
        self._file.close()


@contextmanager
def runners(settings: KubeSettings, world: World, *rates: float) -> Iterator[list[Runner]]:
    """Candidates `a`, `b`, ... with these rates of their clocks."""
    made = [
        Runner(settings, "abcdefgh"[number], world, rate=rate) for number, rate in enumerate(rates)
    ]
    try:
        yield made
    finally:
        for each in made:
            each.close()


def spec(api: ApiServer) -> Json:
    """What the Lease says."""
    found = api.get("leases", KEY)
    assert found is not None
    claim: Json = found["spec"]
    return claim
