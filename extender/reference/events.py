"""The part of docs/health.md that lists XIDs and SXIDs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from extender.reference.markdown import runs_of, table
from scoring.xid.catalogue import CATALOGUE, Entry
from scoring.xid.sxid import SXIDS, SxidEntry


def xids() -> str:
    """What one XID means by itself."""
    return f"""## XIDs

What one XID means by itself. *Recorded*: it says nothing against the GPU, and is kept for patterns
(`policy.pattern`). 74 and 144-150 are decoded from the text of the message, 154 states the driver's
own recovery action and overrides the table. An XID that is not listed makes the GPU `SUSPECT`.

{_table("XID", CATALOGUE.values())}"""


def sxids() -> str:
    """What one SXID means by itself."""
    return f"""## SXIDs

Errors of an NVSwitch. A *potentially fatal* one that the driver calls non-fatal makes the fabric
`SUSPECT` only. An SXID that is not listed makes it `SUSPECT`, or `RESET_REQUIRED` where the driver
calls it fatal.

{_table("SXID", SXIDS.values())}"""


def _table(name: str, entries: Iterable[Entry | SxidEntry]) -> str:
    """One row for all codes that mean the same, in the order of their first."""
    grouped: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: each.code):
        state = f"`{entry.state.name}`" if entry.state is not None else "recorded"
        grouped[entry.meaning, entry.kind.value, state, entry.scope.value].append(entry.code)
    rows = ((runs_of(codes), *told) for told, codes in grouped.items())
    return table((name, "Meaning", "Class", "State", "Scope"), rows)
