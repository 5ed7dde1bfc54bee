"""Which standing plans may not do any more."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from extender.controller.cluster.occupancy import Rooms
from extender.controller.planning.scene import Look
from scoring.gangs import recording, settling
from scoring.gangs.record import GangPlan
from scoring.gangs.values import Gathered
from scoring.model import GangKey, PodUid


class Doubts:
    """What one look at the cluster makes doubtful."""

    def __init__(
        self,
        records: Mapping[GangKey, GangPlan],
        recorded: Mapping[GangKey, Gathered],
        look: Look,
        rooms: Rooms,
    ) -> None:
        """`recorded`: the gangs as the records have them."""
        self._records = records
        self._recorded = recorded
        self._look = look
        self._rooms = rooms

    def doubtful(self, gang: Gathered) -> bool:
        """Whether the gang is not what its record is about, or a member is still to come to a node that is
        gone, be it that the cache cannot tell yet, or that is not what it was planned as.
        """
        record, look = self._records.get(gang.key), self._look
        if record is None:
            return False
        if self._recorded.get(gang.key) is not gang and not recording.holds_good(gang, record):
            return True
        names = {seat for _, seat in settling.awaited(gang, record)}
        if not names <= self._rooms.keys():
            return True
        changed = names & look.changed
        return bool(changed) and settling.disturbed(
            look.before, look.picture, changed, self._settlers
        )

    @cached_property
    def _settlers(self) -> frozenset[PodUid]:
        """Those that are planned for what changed."""
        return frozenset(
            uid
            for record in self._records.values()
            for uid, seat in record.seats.items()
            if seat.node in self._look.changed
        )
