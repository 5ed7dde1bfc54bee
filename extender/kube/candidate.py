"""One of those who want a Lease: what it does in one step, on its own clock alone.

Another's clock is never read. How long another may still lead is judged by how long its claim was
seen here without a change, as client-go does. A Lease that somebody deletes may still be trusted in by
its leader: who saw it waits as long as if it had been renewed just then. A process that never saw it
cannot know, and neither can one that missed it altogether, between two deletions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from extender.kube.errors import ABSENT, RefusedError, SpentError
from extender.kube.fence import Fence, since_boot_s
from extender.kube.lease import LAST_TERM, Claim, Lease, LeaseFile, LeaseSettings

HELD_RATIO: Final = 2 / 3
"""Of the duration that a leader trusts its last renewal for; the rest is for clocks that run apart."""
_CHANGED: Final = frozenset({ABSENT, 409})
"""The Lease is no longer what it was."""


class Candidate:
    """Takes the Lease where it is free, and renews it. Stepped by one thread."""

    def __init__(
        self,
        file: LeaseFile,
        settings: LeaseSettings,
        identity: str,
        clock: Callable[[], float] = since_boot_s,
    ) -> None:
        """`identity`: no other process, nor an earlier one, has it."""
        self.identity: Final = identity
        self.fence: Fence | None = None
        """That of the term that it leads; it may no longer hold."""
        self._file = file
        self._settings = settings
        self._clock = clock
        self._last: Lease | None = None
        """As this candidate wrote it."""
        self._claim: Claim | None = None
        self._looked = False
        self._since_s = -math.inf
        """Since when the claim is what it is."""
        self._highest = 0
        """Of the terms seen in the Lease."""
        self._raised = 0

    @property
    def holder(self) -> str:
        """Who holds the Lease, as last seen; empty: nobody."""
        return self._claim.holder if self._claim else ""

    def raise_to(self, term: int) -> None:
        """Somebody led in this term already: lead in a higher one, from the next step on."""
        self._raised = max(self._raised, min(term, LAST_TERM))

    def step(self) -> None:
        """Renew what is held, take what is free, and stand by otherwise.

        Raises:
            SpentError: there is no higher term; only a person can help.
            KubeError: the API server refused or did not answer; the step is to be tried again.
        """
        if self.fence is not None and not self.fence.holds():
            self._lose()
        try:
            self._claim_it(self._last if self.fence is not None else self._look())
        except RefusedError as error:
            if error.status not in _CHANGED:
                raise
            self._claim_it(self._look())

    def resign(self) -> None:
        """Lead no longer, and leave the Lease to whoever wants it.

        Raises:
            KubeError: it could not be given back, and stays taken until its time is over.
        """
        led, last = self.fence, self._last
        self._lose()
        if led is None:
            return
        try:
            self._file.write(last, "", led.term, anew=False)
        except RefusedError as error:
            if error.status not in _CHANGED:
                raise
            lease = self._look()
            if lease is not None and lease.claim.holder == self.identity:
                self._file.write(lease, "", led.term, anew=False)

    def wait_s(self) -> float:
        """How long from now another's claim lasts; 0: none does."""
        return max(0.0, self._since_s + self._lasts_s() - self._clock())

    def _look(self) -> Lease | None:
        """Read the Lease, and note since when it is what it is."""
        lease = self._file.read()
        claim = lease.claim if lease else None
        if claim != self._claim or not self._looked:
            # A Lease that was never seen binds nobody; one that is gone may still be trusted in.
            self._since_s = self._clock() if claim or self._looked else -math.inf
        self._claim, self._looked = claim, True
        self._highest = max(self._highest, claim.transitions if claim else 0)
        return lease

    def _claim_it(self, lease: Lease | None) -> None:
        """Renew, take or leave `lease`; None: there is none."""
        mine = lease is not None and lease.claim.holder == self.identity
        # Whoever leads makes a Lease that somebody deleted at once; the others wait for that.
        heir = lease is None and self.fence is not None and self.fence.holds()
        if not mine:
            self._lose()
        if not (mine or heir) and self.wait_s() > 0:
            return
        least = max(self._highest, self._raised)
        began_s = self._clock()
        until_s = began_s + HELD_RATIO * self._settings.duration_s
        if self.fence is not None and least <= self.fence.term:
            self._wrote(self._file.write(lease, self.identity, self.fence.term, anew=False))
            self.fence.extend(until_s)
            return
        self._lose()
        if least > LAST_TERM:
            raise SpentError(
                f"leaseTransitions of the Lease is {least} and cannot rise: end all controllers,"
                f" delete the Lease {self._settings.place}/{self._settings.name} and the term that"
                " the cache keeps, and start them again"
            )
        self._wrote(self._file.write(lease, self.identity, least + 1, anew=True))
        self.fence = Fence(least + 1, until_s=until_s, clock=self._clock)

    def _wrote(self, lease: Lease) -> None:
        self._last, self._claim, self._since_s = lease, lease.claim, self._clock()
        self._highest = max(self._highest, lease.claim.transitions)

    def _lose(self) -> None:
        if self.fence is not None:
            self.fence.end()
            self.fence = None

    def _lasts_s(self) -> float:
        """How long after a change others trust the claim."""
        claim = self._claim
        if claim is None:
            return self._settings.duration_s
        return (claim.duration_s or self._settings.duration_s) if claim.holder else 0.0
