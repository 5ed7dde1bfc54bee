"""What a site says of gangs: which conventions are planned, and what becomes of those that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from scoring.model import Convention

GATE: Final = "surefoot.dev/gang"
"""The scheduling gate that holds a member until its gang has a plan, and the label that names its gang."""
ON_SHORTFALL: Final = "surefoot.dev/on-shortfall"
"""The annotation by which a gang's pods choose their own `OnShortfall`."""

WAKE: Final = "surefoot.dev/wake"
"""The annotation that tells when a pod was last woken; that it changes is what wakes it."""


class Hold(StrEnum):
    """How much a plan binds the members of a gang."""

    OFF = "off"
    """Not planned: each member is judged and ranked by itself."""
    PREFER = "prefer"
    """The planned node comes first, every fit node passes."""
    REQUIRE = "require"
    """Only the planned node passes, and none without a plan."""


class OnShortfall(StrEnum):
    """What becomes of a gang that does not fit."""

    WAIT = "wait"
    AUTOSCALE = "autoscale"
    """Its gates are lifted without nominations after a while, so that autoscalers see its pods."""
    PREEMPT = "preempt"
    """It is planned with pods of lower priority counted free, if it fits then."""


PLANNED: Final[Mapping[Convention, Hold]] = MappingProxyType({Convention.SUREFOOT: Hold.REQUIRE})


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRules:
    """The configuration's `gangs` as a value."""

    plan: Mapping[Convention, Hold] = field(default_factory=lambda: PLANNED)
    """A convention that is absent is OFF."""
    on_shortfall: OnShortfall = OnShortfall.WAIT
    autoscale_after_s: float = 60.0
    """How long a gang has no plan before `autoscale` lifts its gates."""
    partial_after_s: float = 600.0
    """How long a gang may run with fewer members than it needs before that is reported."""
    release_partial: bool = False
    """Whether its members are evicted then."""

    def hold(self, convention: Convention) -> Hold:
        """How much a plan binds gangs of `convention`."""
        return self.plan.get(convention, Hold.OFF)
