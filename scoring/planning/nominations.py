"""The room that nominated members of gangs hold which are still to be planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from scoring.planning.faults import blaming
from scoring.planning.ground import Ground
from scoring.planning.seats import in_order
from scoring.planning.values import Member, PendingGang, Shape


class Nominations:
    """Who holds what by nomination. All of it is taken from the ground at first, gang after gang."""

    def __init__(self, ground: Ground, gangs: Sequence[PendingGang]) -> None:
        self._ground = ground
        self._held: dict[Member, tuple[int, int]] = {}
        """The host of each member, and the priority of its gang."""
        for gang in gangs:
            with blaming(gang.key):
                self._hold(gang)

    def _hold(self, gang: PendingGang) -> None:
        for member in in_order(gang.members):
            position = self._ground.position.get(member.nominated) if member.nominated else None
            if member.bound is not None or position is None:
                continue
            if self._ground.hosts[position].fits(member.shape)[0]:
                self._held[member] = position, gang.priority
                self._ground.take(position, member.shape)

    def released(self, gang: PendingGang) -> dict[Member, int]:
        """The nominations of `gang` that nobody took; they hold nothing from now on."""
        own = {
            member: self._held.pop(member)[0]
            for member in in_order(gang.members)
            if member in self._held
        }
        for member, position in own.items():
            self._ground.take(position, member.shape, -1)
        return own

    def below(self, priority: int) -> list[Member]:
        """Nominated members of gangs with a strictly lower priority."""
        return [member for member, (_, theirs) in self._held.items() if theirs < priority]

    def lift(self, members: Collection[Member]) -> None:
        """Let these hold nothing for the moment."""
        for member in members:
            self._ground.take(self._held[member][0], member.shape, -1)

    def restore(self, members: Collection[Member]) -> None:
        """Let these hold their room again; those whose room is gone never will."""
        for member in members:
            position, _ = self._held[member]
            if self._ground.hosts[position].fits(member.shape)[0]:
                self._ground.take(position, member.shape)
            else:
                del self._held[member]


def kept(
    ground: Ground, nominated: Mapping[Member, int], banned: Collection[int]
) -> dict[Member, int]:
    """Those of these members that may stay where they are nominated. Their room is taken."""
    groups: dict[tuple[int, Shape], list[Member]] = {}
    for member, position in nominated.items():
        if position not in banned:
            groups.setdefault((position, member.shape), []).append(member)
    found: dict[Member, int] = {}
    for (position, shape), members in groups.items():
        staying = members[: ground.room(position, shape)[0]]
        if staying:
            ground.take(position, shape, len(staying))
            found |= dict.fromkeys(staying, position)
    return found
