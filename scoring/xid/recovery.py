"""The GPU recovery action: what the driver itself asks for (NVML field 230, text of XID 154).

Values: NVIDIA NVML `nvmlDeviceGpuRecoveryAction_t`. The driver's names for a value change between
branches (0x1 is `GPU Reset Required` or `PF FLR`), so the number decides and the name does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scoring.model import Health, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One recovery action and what it makes of the GPU."""

    value: int
    meaning: str
    state: Health | None = None
    """None: nothing to recover."""
    scope: Scope = Scope.GPU
    settles: bool = True
    """Whether it also answers how bad the GPU's own faults are; an IMEX domain is not the GPU."""


_RESET: Final = Health.RESET_REQUIRED
_REBOOT: Final = Health.REBOOT_REQUIRED
_DEGRADED: Final = Health.DEGRADED

ACTIONS: Final[Mapping[int, Action]] = {
    action.value: action
    for action in (
        Action(value=0, meaning="no recovery needed"),
        Action(value=1, meaning="the GPU must be reset", state=_RESET),
        Action(value=2, meaning="the node must be rebooted", state=_REBOOT),
        Action(
            value=3,
            meaning="peer-to-peer traffic must be drained",
            state=_DEGRADED,
            scope=Scope.LINK,
        ),
        Action(value=4, meaning="the GPU must be drained and reset", state=_RESET),
        Action(
            value=5,
            meaning="the IMEX domain must be recovered",
            state=_DEGRADED,
            scope=Scope.FABRIC,
            settles=False,
        ),
        Action(value=6, meaning="the GPU needs a bus reset", state=_RESET),
        Action(value=7, meaning="the whole system must be rebooted", state=_REBOOT),
    )
}

_CHANGED_TO: Final = re.compile(r"\bto\s+(?:0x([0-9a-f]{1,8})|([0-9]{1,9}))\b", re.IGNORECASE)


def action_of(value: int) -> Action:
    """The action with this number. One that nobody knows asks for a reset: fail closed."""
    return ACTIONS.get(value) or Action(
        value=value, meaning=f"unknown recovery action {value}", state=_RESET
    )


def stated(text: str) -> Action | None:
    """The action that the text of an XID 154 changed to; None where the text is cut."""
    match = _CHANGED_TO.search(text)
    if match is None:
        return None
    return action_of(int(match[1], 16) if match[1] else int(match[2]))
