"""A mistake of ours that one gang brings out: its own misfortune, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rehearsal import Rehearsal, rehearsal
from structlog.testing import capture_logs

from extender.controller.planning import loop
from extender.controller.planning.faults import Faults
from extender.controller.planning.loop import REPLAN_S
from scoring.gangs import gathering, recording
from scoring.gangs.record import GangState
from scoring.gangs.steps import Verb
from scoring.model import GangKey
from scoring.planning import quorum, shortfalls
from scoring.planning.outcome import Lack

__all__ = ["rehearsal"]

BAD, GOOD = GangKey("lab/bad"), GangKey("lab/good")


def breaks(patch: pytest.MonkeyPatch, place: object, name: str) -> None:
    """Let a function fail on one of the gangs."""
    sound: Callable[..., Any] = getattr(place, name)

    def broken(gang: Any, *args: Any, **kwargs: Any) -> Any:
        if gang.key == BAD:
            raise ZeroDivisionError("no such luck")
        return sound(gang, *args, **kwargs)

    broken.__name__ = name
    patch.setattr(place, name, broken)


def town(rehearsal: Rehearsal) -> None:
    """Room for two gangs."""
    for name in ("n0", "n1", "n2", "n3"):
        rehearsal.node(name)
    rehearsal.gang("bad")
    rehearsal.gang("good")


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (quorum, "quorum"),
        (shortfalls, "before_planning"),
        (recording, "record"),
        (recording, "holds_good"),
        (loop, "steps"),
    ],
)
def test_a_gang_that_planning_fails_on_stops_no_other(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    """Wherever it fails; and whoever comes later is planned as ever."""
    town(rehearsal)
    breaks(monkeypatch, place, name)
    begun = rehearsal.begun()
    assert begun.count(Verb.NOMINATE) >= 2
    rehearsal.node("n4")
    rehearsal.node("n5")
    rehearsal.gang("later")
    rehearsal.plans(2)
    assert None not in rehearsal.places("good").values()
    assert None not in rehearsal.places("later").values()


def test_the_gang_itself_waits_and_is_told_why(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing, which is logged once, with its key; it is planned once that works."""
    town(rehearsal)
    breaks(monkeypatch, quorum, "quorum")
    with capture_logs() as logs:
        rehearsal.plans()
        rehearsal.clock.pass_s(REPLAN_S)
        assert rehearsal.plans() == 1, "it is tried again"
    told = [line for line in logs if line["event"] == "gang_failed"]
    assert [(line["gang"], line["problem"]) for line in told] == [
        (BAD, "ZeroDivisionError: no such luck")
    ]
    record = rehearsal.planning.records[BAD]
    assert (record.state, record.lack) == (GangState.WAITING, Lack.INTERNAL_ERROR)
    assert "ZeroDivisionError: no such luck" in record.summary
    assert rehearsal.planning.tally.failing == 1
    monkeypatch.undo()
    rehearsal.clock.pass_s(REPLAN_S)
    rehearsal.plans()
    assert None not in rehearsal.places("bad").values()
    assert rehearsal.planning.tally.failing == 0


def test_a_record_that_cannot_be_made_leaves_the_old_one(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So its seats are kept, and a gang that is gone is no fault any more."""
    town(rehearsal)
    rehearsal.plans()
    before = rehearsal.planning.records[BAD]
    breaks(monkeypatch, recording, "record")
    rehearsal.show("bad-0", node=before.seats[next(iter(before.seats))].node)
    rehearsal.plans()
    assert rehearsal.planning.records[BAD] is before
    assert rehearsal.planning.tally.failing == 1
    rehearsal.gone("bad-0")
    rehearsal.gone("bad-1")
    rehearsal.plans()
    assert rehearsal.planning.tally.failing == 0


def test_a_gang_that_cannot_be_gathered_stays_what_it_was(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are gathered, and it is counted."""
    town(rehearsal)
    rehearsal.view.gangs()
    sound = gathering.gathered

    def broken(pods: Any, *rest: Any) -> Any:
        them = list(pods)
        if them[0].gang.key == BAD:
            raise ZeroDivisionError
        return sound(them, *rest)

    monkeypatch.setattr(gathering, "gathered", broken)
    rehearsal.gone("bad-1")
    rehearsal.gone("good-1")
    sizes = {gang.key: len(gang.pods) for gang in rehearsal.view.gangs()}
    assert sizes == {BAD: 2, GOOD: 1}
    assert rehearsal.view.skips.count == 1


def test_an_error_that_is_of_no_gang_is_not_hidden(rehearsal: Rehearsal) -> None:
    """Nor one that leaving the gang out does not help."""
    town(rehearsal)

    def fails(_: object) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Faults().outcomes("plan", fails, rehearsal.view.gangs())
