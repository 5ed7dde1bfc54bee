"""Seats that kube-scheduler does not grant, for what the planner does not model: volumes, affinity
between pods, topology spread constraints.

It clears a nomination when it finds no node for the pod. Once may be a race with another pod; twice in
a row is a node that will not do, and the gang is planned without it for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from scoring.gangs.record import GangPlan
from scoring.gangs.values import Gathered
from scoring.model import GangKey, NodeName, PodUid
from scoring.planning.values import Exclusion
from scoring.reasons import Reason

ENOUGH: Final = 2
"""Denials from which a node is left out."""
WITHIN_S: Final = 120.0
"""... when they come within this time of each other."""
LEFT_OUT_S: Final = 300.0
_UNTOLD: Final = tuple(
    reason.text
    for reason in (
        *(Reason.GANG_UNPLANNED, Reason.GANG_INCOMPLETE, Reason.GANG_SHORT),
        *(Reason.MEMBER_UNPLANNED, Reason.NO_SNAPSHOT),
    )
)
_UNTIL_LIFTED: Final = 2**62
"""An epoch that no document of a node reaches: not its news, but time alone lifts the exclusion."""


def is_untold(message: str) -> bool:
    """Whether kube-scheduler's text on a refused pod holds a word of ours for a plan that the asked
    replica did not know. That says nothing of the node: the cache was behind, or away.
    """
    return any(text in message for text in _UNTOLD)


@dataclass(frozen=True, slots=True)
class _Denial:
    count: int
    last_s: float


Seats = Mapping[PodUid, NodeName]
_Denied = Mapping[tuple[GangKey, NodeName], _Denial]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denials:
    """What was denied lately. `after` gives the next state, `exclusions` what follows."""

    nominated: Seats = field(default_factory=lambda: MappingProxyType({}))
    """The nominations that were observed last, of members that wait for nothing but a node."""
    denied: _Denied = field(default_factory=lambda: MappingProxyType({}))

    def after(
        self, gangs: Iterable[Gathered], records: Mapping[GangKey, GangPlan], now_s: float
    ) -> Denials:
        """The state once `gangs` are observed as they are now."""
        nominated: dict[PodUid, NodeName] = {}
        denied = {
            key: each for key, each in self.denied.items() if now_s - each.last_s < LEFT_OUT_S
        }
        for gang in gangs:
            record = records.get(gang.key)
            for pod in gang.members:
                member = pod.member
                if member.bound is not None or pod.gated:
                    continue
                if member.nominated is not None:
                    nominated[member.uid] = member.nominated
                    continue
                seat = self.nominated.get(member.uid)
                if seat is None or not pod.refused or pod.untold or record is None:
                    continue
                if record.seat(member.uid) == seat:
                    denied[gang.key, seat] = _again(denied.get((gang.key, seat)), now_s)
        return Denials(nominated=nominated, denied=denied)

    def exclusions(self) -> frozenset[Exclusion]:
        """The nodes that gangs are planned without."""
        return frozenset(
            Exclusion(node=node, owner=key, epoch=_UNTIL_LIFTED, seq=0)
            for (key, node), each in self.denied.items()
            if each.count >= ENOUGH
        )


def _again(known: _Denial | None, now_s: float) -> _Denial:
    recent = known is not None and now_s - known.last_s <= WITHIN_S
    return _Denial(known.count + 1 if recent and known else 1, now_s)
