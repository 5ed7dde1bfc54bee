"""What is told of gangs: events on their owner and on one pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import members
import pytest
from clocks import Clock
from kubes import ApiServer
from members import NOW_S
from rehearsal import Rehearsal, rehearsal
from servers import eventually

from extender.controller.planning.witness import Witness
from extender.controller.signs.events import QUIET_S
from scoring.gangs.record import GangState
from scoring.gangs.values import Owner
from scoring.planning.outcome import Lack

__all__ = ["rehearsal"]

JOB = Owner(kind="Job", name="train", uid="uid-job")
GANG = members.gang(members.pod(0, bound="n0", owner=JOB), members.pod(1, owner=JOB))
WAITING = members.record(GANG, GangState.WAITING, lack=Lack.NO_ROOM.value, summary="no room")


class Hearing:
    """A witness, and what comes of what it says."""

    def __init__(self, of: Rehearsal, api: ApiServer) -> None:
        self.api = api
        self.clock: Clock = of.clock
        self.signs = of.signs
        self.witness = Witness(of.signs, list)
        self.signs.start()
        self.witness.succeeded(1)

    def events(self, count: int) -> list[tuple[str, str, str, int]]:
        """Reason, kind and name of what it is about, and how often: once there are so many."""

        def found() -> list[tuple[str, str, str, int]]:
            return [
                (body["reason"], of["kind"], of["name"], body["count"])
                for (kind, _), body in list(self.api._objects.items())
                if kind == "events"
                for of in [body["involvedObject"]]
            ]

        eventually(lambda: len(found()) >= count, f"{count} events")
        eventually(lambda: self.signs.events.outbox.pending == 0, "all are sent")
        assert len(found()) == count
        return found()


@pytest.fixture
def hearing(rehearsal: Rehearsal, api: ApiServer) -> Iterator[Hearing]:
    """One that leads."""
    made = Hearing(rehearsal, api)
    yield made
    made.signs.close()


def test_a_record_that_is_new_is_told_of(hearing: Hearing) -> None:
    """On the pod that waits, and on the owner."""
    hearing.witness.planned(GANG, None, WAITING)
    assert hearing.events(2) == [
        ("GangNoRoom", "Pod", "train-1", 1),
        ("GangNoRoom", "Job", "train", 1),
    ]


def test_a_record_that_says_the_same_is_not(hearing: Hearing) -> None:
    """In another term, with other counts."""
    hearing.witness.planned(GANG, WAITING, replace(WAITING, term=2, counts={"stale": 1}))
    hearing.witness.planned(GANG, None, WAITING)
    hearing.events(2)


@pytest.mark.parametrize(
    ("state", "reason"),
    [(GangState.RUNNING, "GangRuns"), (GangState.PLANNED, "GangPlanned")],
)
def test_what_becomes_of_it_is_the_reason(hearing: Hearing, state: GangState, reason: str) -> None:
    """Of a gang without owner the pod is told."""
    alone = members.gang(members.pod(0), members.pod(1))
    hearing.witness.planned(alone, WAITING, members.record(alone, state, "n0", "n1"))
    assert hearing.events(1) == [(reason, "Pod", "train-0", 1)]


def test_a_gang_that_is_overdue_is_told_of_once_in_a_while(hearing: Hearing) -> None:
    """However many rounds there are."""
    partial = members.record(GANG, GangState.PARTIAL, summary="1 of 2 members run")
    for second in range(50):
        hearing.witness.last([(GANG, partial)], NOW_S + second / 10)
    assert {each[0::3] for each in hearing.events(2)} == {("GangPartial", 1)}
    hearing.clock.pass_s(QUIET_S)
    hearing.witness.last([(GANG, partial)], NOW_S + QUIET_S)
    eventually(lambda: {each[3] for each in hearing.events(2)} == {2}, "once more")


def test_who_leads_no_more_tells_nothing(hearing: Hearing) -> None:
    """Another does."""
    hearing.witness.succeeded(None)
    hearing.witness.planned(GANG, None, WAITING)
    hearing.events(0)
