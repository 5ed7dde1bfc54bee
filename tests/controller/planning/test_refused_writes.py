"""A gang of which the API server lets a pod never be written to: it holds no room for ever."""

from __future__ import annotations

import pytest
from kubes import Call, refuses
from servers import eventually
from town import Town, town

from extender.controller.planning import acting
from scoring.gangs.record import GangState
from scoring.planning.outcome import Lack

__all__ = ["town"]

DENIED = "policy 'teams' denied request: no quota"


def denies(patch: pytest.MonkeyPatch, town: Town, *, for_s: float) -> None:
    """An admission policy that refuses every write to one pod, in a cluster of two nodes."""
    town.nodes("n0", "n1")
    sound = town.api.write

    def admission(call: Call) -> None:
        (refuses(422, DENIED) if call.route.name == "train-0" else sound)(call)

    patch.setattr(town.api, "write", admission)
    patch.setattr(acting, "LATE_S", 0.1)
    patch.setattr(acting, "REFUSED_S", 0.5)
    patch.setattr(acting, "LET_GO_S", for_s)


def test_a_gang_whose_nomination_is_refused_for_good_is_told_why(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words of the API server; it has its turn again later."""
    denies(monkeypatch, town, for_s=5.0)
    train = town.gang("train")
    town.begin()
    record = town.says(lambda record: record.lack == Lack.WRITE_REFUSED)
    assert record.state is GangState.WAITING
    assert "refuses writes to train-0" in record.summary
    assert DENIED in record.summary
    eventually(lambda: town.nominated(train[1]) is None, "the other nomination is taken back")
    monkeypatch.undo()
    assert set(town.let_go(*train)) == {"n0", "n1"}


def test_another_gang_has_its_room_meanwhile(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is behind it."""
    denies(monkeypatch, town, for_s=300.0)
    town.gang("train")
    town.begin()
    town.says(lambda record: record.state is GangState.PLANNED)
    other = town.gang("other")
    assert set(town.let_go(*other)) == {"n0", "n1"}
