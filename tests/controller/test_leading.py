"""Writes of whoever leads: each behind the fence of its own term."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import cluster_objects
import pytest
from kubes import ApiServer

from extender.controller.leading import LeadersWriter
from extender.kube.errors import FencedError
from extender.kube.fence import Fence
from extender.kube.writing import PatchKind

POD = "/api/v1/namespaces/lab/pods/a"
LABEL = b'{"metadata":{"labels":{"is":"new"}}}'


class Seat:
    """Who leads, and the writer that asks."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.fence: Fence | None = None
        self.writer = LeadersWriter(api.settings(folder), lambda: self.fence)


@pytest.fixture
def seat(api: ApiServer, tmp_path: Path) -> Iterator[Seat]:
    """One that does not lead yet."""
    api.set("pods", cluster_objects.pod("a"))
    made = Seat(api, tmp_path)
    yield made
    made.writer.close()


def test_nothing_is_sent_before_it_leads(seat: Seat, api: ApiServer) -> None:
    """Not even a connection is made."""
    with pytest.raises(FencedError, match="does not lead"):
        seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    with pytest.raises(FencedError, match="does not lead"):
        seat.writer.create("/api/v1/namespaces/lab/pods", b"{}")
    assert api.connections == 0


def test_a_leader_patches_and_creates(seat: Seat, api: ApiServer) -> None:
    """On connections that are kept."""
    seat.fence = Fence(1)
    answer = seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    assert json.loads(answer)["metadata"]["labels"] == {"is": "new"}
    other = json.dumps(cluster_objects.pod("b")).encode()
    seat.writer.create("/api/v1/namespaces/lab/pods", other)
    assert api.get("pods", "lab/b") is not None
    assert api.connections == 1


def test_each_term_has_connections_of_its_own(seat: Seat, api: ApiServer) -> None:
    """What an earlier fence let pass is over; and one that ended lets nothing pass."""
    first = seat.fence = Fence(1)
    seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    seat.fence = Fence(2)
    seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    assert api.connections == 2
    first.end()
    seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    assert api.connections == 2
    seat.fence.end()
    with pytest.raises(FencedError, match="no longer the leader of term 2"):
        seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    assert len(api.writes) == 3


def test_it_may_be_closed_at_any_time(seat: Seat) -> None:
    """Twice, and before it ever led."""
    seat.writer.close()
    seat.fence = Fence(1)
    seat.writer.patch(POD, LABEL, kind=PatchKind.MERGE)
    seat.writer.close()
    seat.writer.close()
