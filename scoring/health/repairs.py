"""Reboots and GPU resets in the fold: they cure what asked for them, and count as attempts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from scoring.health.causes import Clear, clear_of
from scoring.health.draft import Draft
from scoring.health.record import GpuRecord
from scoring.model import Health

BOOTS_KEPT: Final = 8
"""Earlier boots that are remembered: more than can still be in any queue."""


def boot(draft: Draft, record: GpuRecord, boot_id: str | None, time_s: float) -> GpuRecord:
    """`record` in the boot of a newer poll. A reboot ends streaks and cures what it can."""
    if boot_id is None or boot_id == record.boot_id:
        return record
    if record.boot_id is None:
        return replace(record, boot_id=boot_id)
    draft.streaks.clear()
    for id_, each in draft.open.items():
        if clear_of(id_, each.peak) is Clear.REPAIR:
            history = draft.history(id_)
            draft.histories[id_] = replace(history, reboots=history.reboots + 1)
            draft.open[id_] = replace(each, repaired_s=time_s, clean_polls=0)
        else:
            draft.open[id_] = replace(each, clean_polls=0, clean_s=None)
    past = (*record.past_boots, record.boot_id)[-BOOTS_KEPT:]
    return replace(record, boot_id=boot_id, past_boots=past)


def reset(draft: Draft, reset_s: float) -> None:
    """A GPU reset cures what asks for no more than a reset, if it came after the last event."""
    for id_, each in draft.open.items():
        newer = (each.cause.last_s or 0.0) <= reset_s and (each.repaired_s or 0.0) < reset_s
        enough = each.cause.state <= Health.RESET_REQUIRED
        if newer and enough and clear_of(id_, each.peak) is Clear.REPAIR:
            history = draft.history(id_)
            draft.histories[id_] = replace(history, resets=history.resets + 1)
            draft.open[id_] = replace(each, repaired_s=reset_s, clean_polls=0)
