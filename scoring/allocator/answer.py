"""The answer of every allocator: the sets of GPUs that may be handed out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """What may come of one ask. GPUs are positions, sets of them bitmasks."""

    sets: frozenset[int] | None
    """Every set that may be handed out; None: too many cases to tell, so any set may be."""
    may_fail: bool | None
    """Whether the plugin may fail the pod with a nil device; None: unknown."""
    exact: bool
    """False: more may come (`sets` is None), or less (it rests on assumptions, see `pairs`)."""


NOTHING: Final = Possible(sets=frozenset(), may_fail=False, exact=True)
"""The plugin proposes no set."""

UNKNOWN: Final = Possible(sets=None, may_fail=None, exact=False)
"""Beyond what is analysed: any set may come."""


def either(answers: Iterable[Possible], *, exact: bool) -> Possible:
    """What may come when one of `answers` holds and nobody knows which."""
    sets: set[int] = set()
    may_fail = False
    for answer in answers:
        if answer.sets is None:
            return UNKNOWN
        sets |= answer.sets
        may_fail = may_fail or bool(answer.may_fail)
        exact = exact and answer.exact
    return Possible(sets=frozenset(sets), may_fail=may_fail, exact=exact)
