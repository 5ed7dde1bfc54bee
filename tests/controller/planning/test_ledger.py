"""What the cache is told of gangs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import members
import pytest
from structlog.testing import CapturingLogger

from extender.controller.planning.ledger import Ledger
from extender.controller.wanted import Wanted
from extender.store import documents
from extender.store.schema import Kind
from scoring.gangs.record import GangState
from scoring.model import Gang, GangKey, PodUid

KEY = GangKey("ml/train")
TRAIN = members.gang(members.pod(0), members.pod(1), size=2)
RECORD = members.record(TRAIN, GangState.PLANNED, "n0", "n1")


def taken(wanted: Wanted) -> dict[tuple[Kind, str], Any]:
    """What is to be written now, as it is read back; None: removed."""
    found: dict[tuple[Kind, str], Any] = {
        (wish.kind, wish.id): wish.document and documents.decode(wish.kind, wish.id, wish.document)
        for wish in wanted.take(100)
    }
    wanted.done()
    return found


def test_a_gang_and_its_record_are_told(wanted: Wanted) -> None:
    """As they can be read back."""
    Ledger(wanted).keep([TRAIN], {KEY: RECORD}, 1)
    gang = Gang(
        key=KEY,
        convention=TRAIN.convention,
        uid=None,
        min=2,
        size=2,
        members=(PodUid("uid-0"), PodUid("uid-1")),
    )
    assert taken(wanted) == {(Kind.PLAN, KEY): RECORD, (Kind.GANG, KEY): gang}


def test_only_what_changed_is_told_again(wanted: Wanted) -> None:
    """A gang of which another object says the same, neither."""
    ledger = Ledger(wanted)
    ledger.keep([TRAIN], {KEY: RECORD}, 1)
    taken(wanted)
    ledger.keep([replace(TRAIN)], {KEY: replace(RECORD)}, 1)
    assert taken(wanted) == {}
    told = replace(RECORD, summary="news")
    ledger.keep([TRAIN], {KEY: told}, 1)
    assert taken(wanted) == {(Kind.PLAN, KEY): told}


def test_nothing_is_said_of_a_gang_that_is_gone(wanted: Wanted) -> None:
    """Nor of its record."""
    ledger = Ledger(wanted)
    ledger.keep([TRAIN], {KEY: RECORD}, 1)
    taken(wanted)
    ledger.keep([], {}, 1)
    assert taken(wanted) == {(Kind.PLAN, KEY): None, (Kind.GANG, KEY): None}


def test_a_gang_that_is_done_stays_on_record(wanted: Wanted) -> None:
    """It needs nobody any more, which no number in a document says."""
    done = replace(TRAIN, min=0, size=0, pods=())
    record = replace(RECORD, min=0, size=0, seats={})
    Ledger(wanted).keep([done], {KEY: record}, 1)
    assert taken(wanted) == {
        (Kind.PLAN, KEY): replace(record, min=None, size=None),
        (Kind.GANG, KEY): Gang(
            key=KEY, convention=TRAIN.convention, uid=None, min=None, size=None, members=()
        ),
    }


def test_what_no_document_can_hold_is_left_out_and_said_once(
    wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others stand."""
    log, ledger = CapturingLogger(), Ledger(wanted)
    monkeypatch.setattr("extender.controller.planning.ledger._log", log)
    odd = GangKey("ml/" + 3_000 * "x")
    gangs = [replace(TRAIN, key=odd), TRAIN]
    records = {odd: replace(RECORD, gang=odd), KEY: RECORD}
    for _ in range(2):
        ledger.keep(gangs, records, 1)
        assert taken(wanted).keys() <= {(Kind.PLAN, KEY), (Kind.GANG, KEY)}
    assert [wanted.count(kind) for kind in (Kind.PLAN, Kind.GANG)] == [1, 1]
    assert [call.args for call in log.calls] == [("gang_not_told",)] * 2, "one of each kind"
