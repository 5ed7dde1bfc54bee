"""What a site changes in the tables: the effect of single codes, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scoring.model import Health

RECORD: Final = "RECORD"
"""The word for `no effect on the state`."""

_ID: Final = re.compile(r"(?:xid|sxid)\.[1-9]\d{0,5}\Z")
EFFECTS: Final[Mapping[str, Health | None]] = {
    RECORD: None,
    **{
        state.name: state
        for state in (
            Health.SUSPECT,
            Health.DEGRADED,
            Health.RESET_REQUIRED,
            Health.REBOOT_REQUIRED,
            Health.FAILED,
        )
    },
}
"""What a site may write; None: no effect."""
AUTHORITY: Final = "xid.154"
"""The code that carries the driver's own verdict."""


class RuleError(ValueError):
    """A site rule that cannot stand; `code` says which."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(f"{code}: {problem}")
        self.code = code
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Site rules by code (`xid.63`, `sxid.20034`); None: record only.

    A rule stands in for the table and the decode of its code. The recovery action still overrides
    it where the code is linked to it, since that is the driver's word on this very fault.
    """

    overrides: tuple[tuple[str, Health | None], ...] = ()

    def has(self, code: str) -> bool:
        """Whether the site has its own rule for this code."""
        return any(code == known for known, _ in self.overrides)

    def state_of(self, code: str) -> Health | None:
        """The state that the site gives this code."""
        return dict(self.overrides)[code]


NO_RULES: Final = Rules()


def rules_of(words: Mapping[str, str]) -> Rules:
    """Read rules as people write them, `{"xid.63": "DEGRADED", "xid.109": "RECORD"}`.

    Raises RuleError for a code or a state that cannot be meant.
    """
    overrides: dict[str, Health | None] = {}
    for code, word in words.items():
        if not _ID.match(code):
            raise RuleError(code, "is not a code; write xid.N or sxid.N")
        if code == AUTHORITY:
            raise RuleError(code, "carries the driver's own verdict and cannot be overridden")
        if word.upper() not in EFFECTS:
            raise RuleError(code, f"{word} is not one of {', '.join(EFFECTS)}")
        overrides[code] = EFFECTS[word.upper()]
    return Rules(overrides=tuple(sorted(overrides.items())))
