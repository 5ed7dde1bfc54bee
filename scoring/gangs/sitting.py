"""Where a member of a gang may go: what the leader's plan leaves of the nodes.

The leader plans; here its word is read, and nothing is planned (invariant 13). A plan reaches a pod on
two ways, by the cache and by the pod's own `status.nominatedNodeName`, and either may be a moment ahead
of the other: a member passes on the node of either.

A leader that fell silent for `policy.gang.leader_silence` binds nobody: its plans are then a
preference, and who has none is judged like any pod. So gates that are lifted by hand free a gang.
A plan that somebody put where no leader ever was binds without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scoring.gang import qualified
from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import GangRules, Hold
from scoring.model import Ask, Convention, Fleet, GangKey, NodeName
from scoring.planning.outcome import Lack
from scoring.policy import Policy
from scoring.reasons import Reason

BEHIND_FIRST: Final = 0.9
"""The most that any other node is worth where a plan is preferred: 9 points of 10."""

_SEATED: Final = frozenset({GangState.PLANNED, GangState.RUNNING})
"""The states in which members have nodes of a plan."""

_OF_LACK: Final[Mapping[str, Reason]] = MappingProxyType(
    {
        "": Reason.GANG_UNPLANNED,
        Lack.MEMBERS_MISSING: Reason.GANG_INCOMPLETE,
        Lack.SIZE_UNKNOWN: Reason.GANG_INCOMPLETE,
        Lack.KIND_UNREADABLE: Reason.GANG_UNPLANNED,
        Lack.WRITE_REFUSED: Reason.GANG_UNPLANNED,
        Lack.INTERNAL_ERROR: Reason.GANG_UNPLANNED,
    }
)
"""Why a gang has no plan; every other lack is one of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """What is left of the nodes for one pod."""

    seat: NodeName | None = None
    """The node that is planned for it."""
    nominated: NodeName | None = None
    """The node of its own nomination, where that counts beside the seat."""
    refusal: Reason | None = None
    """Why it may go to no other node; None: it may, where the verdict allows."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes of the plan, the seat first."""
        return tuple(dict.fromkeys(name for name in (self.seat, self.nominated) if name))

    def refuses(self, name: NodeName) -> Reason | None:
        """Why the plan keeps the pod off `name`, whatever the verdict says; None: it does not."""
        return None if name in (self.seat, self.nominated) else self.refusal

    def spares(self, name: NodeName) -> Reason | None:
        """Why no pod on `name` is to be evicted for this one. A nomination alone is no plan to evict
        by: it may be left from an earlier one.
        """
        return None if name == self.seat else self.refusal

    def worth(self, name: NodeName, value: float) -> float:
        """What `name` is worth, 0..1, where it is worth `value` to a pod without a plan."""
        if self.refusal is not None:
            return 0.0 if self.refuses(name) else value
        if self.seat is None:
            return value
        return 1.0 if name == self.seat else min(value, BEHIND_FIRST)


FREE: Final = Sitting()
"""Of a pod that no plan concerns."""


def sitting(fleet: Fleet, ask: Ask, rules: GangRules, policy: Policy) -> Sitting:
    """Where the pod of `ask` may go; a look-up or two, and none for a pod of no gang."""
    plan, hold = word_on(fleet, ask, rules)
    if hold is Hold.OFF:
        return FREE
    binds = hold is Hold.REQUIRE and counts(fleet, plan, policy)
    if plan is not None and plan.state in _SEATED:
        seat = plan.seat(ask.uid)
        return _bound_to(seat, ask) if binds else Sitting(seat=seat)
    if not binds:
        return FREE
    if plan is not None:
        return Sitting(refusal=_OF_LACK.get(plan.lack, Reason.GANG_SHORT))
    if ask.nominated is not None:
        return Sitting(nominated=ask.nominated, refusal=Reason.PLANNED_ELSEWHERE)
    return Sitting(refusal=Reason.GANG_UNPLANNED)


def _bound_to(seat: NodeName | None, ask: Ask) -> Sitting:
    """The sitting of a member whose gang has a binding plan."""
    planned = seat is not None or ask.nominated is not None
    return Sitting(
        seat=seat,
        nominated=ask.nominated,
        refusal=Reason.PLANNED_ELSEWHERE if planned else Reason.MEMBER_UNPLANNED,
    )


def word_on(fleet: Fleet, ask: Ask, rules: GangRules) -> tuple[GangPlan | None, Hold]:
    """The leader's word on the gang of `ask`, and how much it binds: as the record says, and where
    there is none, as the site's rules do. OFF for a pod of no gang.
    """
    if ask.gang is None:
        return None, Hold.OFF
    plan = plan_of(fleet.plans, ask.gang.key, ask.gang.convention)
    return plan, rules.hold(ask.gang.convention) if plan is None else plan.hold


def plan_of(
    plans: Mapping[GangKey, GangPlan], key: GangKey, convention: Convention
) -> GangPlan | None:
    """The leader's word on a gang. Where two conventions use one name, the later one in the
    detector's order is kept under `namespace/name~convention`.
    """
    found = plans.get(key)
    if found is not None and found.convention is convention:
        return found
    return plans.get(qualified(key, convention))


def counts(fleet: Fleet, plan: GangPlan | None, policy: Policy) -> bool:
    """Whether what the cache says of a gang counts, be it `plan` or that there is none."""
    return leads(fleet, policy) or (plan is not None and fleet.leader_s is None)


def leads(fleet: Fleet, policy: Policy) -> bool:
    """Whether a leading controller was heard lately, so that its word binds."""
    silence_s = policy.gang.leader_silence_s
    return fleet.leader_s is not None and fleet.now_s - fleet.leader_s < silence_s
