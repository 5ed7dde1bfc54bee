"""Pods that wait, as the cluster view shows them."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.gangs.values import Owner
from scoring.model import GangKey, Need, PodUid, WorkClass
from scoring.planning.selection import ANYWHERE, Selection
from scoring.reasons import Reason

GANG_8 = Need(work=WorkClass.GANG, count=8)
SINGLE_1 = Need(work=WorkClass.SINGLE, count=1)
RESET = f"0/3 nodes are available: 1 {Reason.RESET_REQUIRED.text}, 2 Insufficient nvidia.com/gpu."
"""What kube-scheduler says of a pod that Surefoot kept off one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """An unbound pod."""

    name: str = "train-0"
    namespace: str = "lab"
    need: Need = GANG_8
    selection: Selection = ANYWHERE
    message: str = RESET
    gang: GangKey | None = None
    owner: Owner | None = None
    priority: int = 0
    created_s: float = 0.0
    woken_at: str = ""
    version: str = ""

    @property
    def uid(self) -> PodUid:
        """One for each name."""
        return PodUid(f"uid-{self.name}")
