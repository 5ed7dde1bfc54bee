"""What keeps a member off a node besides its GPUs' health, which `scoring.reasons` names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from scoring.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    text: str
    cure: str


class Obstacle(StrEnum):
    """A stable identifier, in the order in which a node is looked at."""

    UNREPORTED_TO_CLUSTER = "NotInCluster"
    OUTSIDE = "OutsideDomains"
    FAILED_BEFORE = "FailedBefore"
    CORDONED = "Cordoned"
    TAINTED = "Tainted"
    NOT_SELECTED = "NotSelected"
    TOO_SMALL = "TooFewGpus"
    GPUS_HELD = "GpusHeld"
    PODS_SHORT = "PodsShort"
    CPU_SHORT = "CpuShort"
    MEMORY_SHORT = "MemoryShort"
    STORAGE_SHORT = "StorageShort"
    PORT_TAKEN = "PortTaken"
    PLANNED = "PlannedForOthers"

    @property
    def text(self) -> str:
        """What is so of the node."""
        return _ROWS[self].text

    @property
    def cure(self) -> str:
        """What would make the node do, after "would do if"; empty where nothing short would."""
        return _ROWS[self].cure


_ROWS: Final[Mapping[Obstacle, _Row]] = MappingProxyType(
    {
        Obstacle.UNREPORTED_TO_CLUSTER: _Row(text="not a node of the cluster", cure=""),
        Obstacle.OUTSIDE: _Row(text="no label of the required level", cure=""),
        Obstacle.FAILED_BEFORE: _Row(
            text="failed this gang before", cure="it reported again after it failed the gang"
        ),
        Obstacle.CORDONED: _Row(text="cordoned", cure="it were uncordoned"),
        Obstacle.TAINTED: _Row(text="tainted", cure="its taint were tolerated"),
        Obstacle.NOT_SELECTED: _Row(text="not selected by the pod", cure=""),
        Obstacle.TOO_SMALL: _Row(text="fewer GPUs than the pod asks", cure=""),
        Obstacle.GPUS_HELD: _Row(text="GPUs held by pods", cure="pods freed its GPUs"),
        Obstacle.PODS_SHORT: _Row(text="no room for another pod", cure="a pod left it"),
        Obstacle.CPU_SHORT: _Row(text="too little cpu", cure="pods freed cpu"),
        Obstacle.MEMORY_SHORT: _Row(text="too little memory", cure="pods freed memory"),
        Obstacle.STORAGE_SHORT: _Row(
            text="too little ephemeral storage", cure="pods freed ephemeral storage"
        ),
        Obstacle.PORT_TAKEN: _Row(text="host port taken", cure="its host port were free"),
        Obstacle.PLANNED: _Row(
            text="planned for gangs before this one", cure="no gang before this one had it"
        ),
    }
)

Bar: TypeAlias = Reason | Obstacle
"""Why a node takes no member: its health, or anything else."""
