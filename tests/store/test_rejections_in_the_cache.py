"""Rejections on a real server: what is kept, for how long, and what readers see."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis import Redis
from servers import eventually
from watching import Watch, node, other, write_raw

from extender.store import documents, fleets, keys
from extender.store.connect import StoreSettings
from extender.store.documents import Document
from extender.store.errors import DocumentError
from extender.store.load import Contents
from extender.store.picture import Picture
from extender.store.schema import Kind
from extender.store.timeline import Timeline
from extender.store.writer import Writer
from scoring import rejections
from scoring.model import Fleet, NodeName, Rejection
from scoring.policy import DEFAULT, REJECTION_KEPT_S

Begin = Callable[..., Watch]
GPU17 = NodeName("gpu-17")


def ago(seconds: float) -> str:
    """The time so long ago, as documents write it."""
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def rejection(owner: str = "lab/Job/train", on: str = "gpu-17", **more: Any) -> Document:
    """A Rejection document, checked."""
    return other("Rejection", node=on, owner=owner, reason="UnexpectedAdmissionError", **more)


def at_gpu17(fleet: Fleet) -> tuple[Rejection, ...]:
    """The rejections of the node in a Fleet."""
    return fleet.rejections.get(GPU17, ())


def ids(client: Redis) -> set[str]:
    """The rejections that are stored."""
    stored = client.hkeys(keys.REJECTIONS.name)
    timed = client.zrange(keys.REJECTION_TIMES.name, 0, -1)
    assert isinstance(stored, list)
    assert isinstance(timed, list)
    assert set(stored) == set(timed)
    return {each.decode() for each in stored if isinstance(each, bytes)}


def test_rejections_of_one_owner_accumulate(writer: Writer, store: StoreSettings) -> None:
    """Each is one document; the Fleet has them by node, with their ages."""
    writer.put([rejection(at=ago(60)), rejection(at=ago(30)), rejection("lab/ranks", at=ago(5))])
    writer.put([rejection(on="gpu-18", at=ago(1))])
    fleet, _ = fleets.look(store)
    ages_s = [round(fleet.now_s - each.at_s) for each in at_gpu17(fleet)]
    assert sorted(ages_s) == [5, 30, 60]
    assert set(fleet.rejections) == {GPU17, NodeName("gpu-18")}


def test_the_same_rejection_is_one(writer: Writer, store: StoreSettings) -> None:
    """A reporter that says it twice changes nothing; another name at the same time is another pod."""
    at = ago(5)
    first, again, named = writer.put(
        [rejection(at=at), rejection(at=at), rejection(at=at, metadata={"name": "train-1"})]
    )
    assert [each.outcome for each in (first, again, named)] == ["stored", "unchanged", "stored"]
    assert len(at_gpu17(fleets.look(store)[0])) == 2


def test_without_a_time_it_is_now_by_the_clock_of_the_cache(
    writer: Writer, store: StoreSettings, client: Redis
) -> None:
    """Several in one file are several, and the document says the time from then on."""
    results = writer.put([rejection(), rejection(at=None), rejection()])
    assert {each.document.id for each in results} == ids(client)
    fleet, contents = fleets.look(store)
    ages_s = [fleet.now_s - each.at_s for each in at_gpu17(fleet)]
    assert len(ages_s) == 3
    assert all(-0.01 <= age_s < 2 for age_s in ages_s)
    kept = [json.loads(raw) for raw in contents.documents[Kind.REJECTION].values()]
    assert all(each["at"].endswith("+00:00") for each in kept)


def test_a_time_yet_to_come_is_now(writer: Writer, store: StoreSettings) -> None:
    """A reporter's clock that runs ahead must not keep a node penalised for years."""
    writer.put([rejection(at="2099-01-01T00:00:00Z")])
    fleet, _ = fleets.look(store)
    (only,) = at_gpu17(fleet)
    assert fleet.now_s - only.at_s == pytest.approx(0, abs=2)


def test_a_stored_document_without_a_time_is_quarantined(
    writer: Writer, store: StoreSettings, client: Redis
) -> None:
    """Only the writer may leave it out: a reader never guesses."""
    undated = rejection()
    assert not undated.dated
    write_raw(client, Kind.REJECTION, undated.id, undated.encoded)
    fleet, _ = fleets.look(store)
    assert fleet.rejections == {}
    assert fleet.quarantined == {f"Rejection/{undated.id}": "at: missing"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"owner": ""}, "owner: expected"),
        ({"owner": None}, "owner: expected text"),
        ({"node": "a/b"}, "node: write a name of letters"),
        ({"at": "noon"}, "at: "),
        ({"at": "2026-11-29T10:00:00"}, "at: "),
        ({"reason": 7}, "reason: expected text"),
        ({"metadata": {"name": ""}}, "metadata.name: expected"),
    ],
)
def test_a_rejection_that_cannot_be_used_is_named_by_its_path(
    fields: dict[str, Any], problem: str
) -> None:
    """As any other document."""
    whole = {"node": "gpu-17", "owner": "lab/ranks", "reason": "OutOfcpu", **fields}
    with pytest.raises(DocumentError) as caught:
        other("Rejection", **whole)
    assert problem in str(caught.value)


def test_a_reader_follows_and_names_the_node(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """A new rejection, and its removal, change their node and no other."""
    writer.put([node("gpu-17"), node("gpu-18")])
    seen = watch(store)
    assert seen.fleet.generation == 2
    (put,) = writer.put([rejection()])
    eventually(lambda: at_gpu17(seen.fleet), "the rejection")
    assert writer.delete(Kind.REJECTION, put.document.id)
    eventually(lambda: not seen.fleet.rejections, "its removal")
    assert [changed for _, changed in seen.fleets[1:] if changed] == [{GPU17}, {GPU17}]


def test_what_is_over_is_swept_by_the_next_write(writer: Writer, client: Redis) -> None:
    """The cache keeps them for a day."""
    young, over = rejection(at=ago(REJECTION_KEPT_S - 60)), rejection(at=ago(REJECTION_KEPT_S + 5))
    writer.put([young, over])
    assert ids(client) == {young.id, over.id}
    (latest,) = writer.put([rejection("lab/ranks")])
    assert ids(client) == {young.id, latest.document.id}


def test_what_is_over_leaves_readers_by_itself(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """Without a write, and its node is named then."""
    writer.put([node(), rejection(at=ago(REJECTION_KEPT_S - 1.0))])
    seen = watch(store)
    assert len(at_gpu17(seen.fleet)) == 1
    eventually(lambda: not seen.fleet.rejections, "the end")
    assert [changed for _, changed in seen.fleets if changed] == [{GPU17}]


def test_an_owner_pushes_out_its_own_oldest_rejections_only(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A workload that is tried for ever hides nobody else's rejections; readers see what went."""
    rare = rejection("lab/ranks", at=ago(5_000))
    like = rejection("lab/Job/trainer", at=ago(5_000))
    writer.put([rare, like])
    seen = watch(store)
    assert len(at_gpu17(seen.fleet)) == 2
    many = [rejection(at=ago(4_000 - number)) for number in range(keys.OWNER_REJECTIONS_MAX + 4)]
    writer.put(many)
    kept = {each.id for each in (rare, like, *many[4:])}
    assert ids(client) == kept
    eventually(lambda: len(at_gpu17(seen.fleet)) == len(kept), "the same in a reader")
    generation = client.get(keys.GENERATION.name)
    assert isinstance(generation, bytes)
    eventually(lambda: seen.fleet.generation == int(generation), "the last change")
    assert seen.fleet.rejections == fleets.look(store)[0].rejections
    assert seen.status.reloads == 1


def test_a_node_keeps_so_many(writer: Writer, client: Redis) -> None:
    """However many owners meet the same; other nodes are not asked to make room."""
    elsewhere = rejection(on="gpu-1", at=ago(9_000))
    many = [
        rejection(f"lab/Job/{number}", at=ago(4_000 - number))
        for number in range(keys.NODE_REJECTIONS_MAX + 3)
    ]
    writer.put([elsewhere, *many])
    assert ids(client) == {each.id for each in (elsewhere, *many[3:])}


def test_the_fleet_keeps_so_many(
    writer: Writer, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of all goes, where every node refuses somebody."""
    monkeypatch.setattr(keys, "REJECTIONS_MAX", 20)
    many = [rejection(on=f"n{number}", at=ago(4_000 - number)) for number in range(25)]
    writer.put(many)
    assert ids(client) == {each.id for each in many[5:]}


def test_times_are_put_on_the_readers_time_line() -> None:
    """Where the server's clock jumped, a rejection keeps its distance to the server's now."""
    at_s = 1_795_946_400.0
    made = documents.check(
        {
            "apiVersion": "surefoot.dev/v1",
            "kind": "Rejection",
            "node": "gpu-17",
            "owner": "lab/ranks",
            "reason": "OutOfcpu",
            "at": datetime.fromtimestamp(at_s, UTC).isoformat(),
        }
    )
    found: dict[Kind, dict[bytes, bytes]] = {kind: {} for kind in Kind}
    found[Kind.REJECTION] = {made.id.encode(): made.encoded}
    contents = Contents(instance=b"i", generation=1, redis_s=at_s + 10.0, seen={}, documents=found)
    picture, timeline = Picture(contents), Timeline(contents.redis_s)
    before = picture.fleet(1, timeline)
    timeline.advance(at_s + 1_000.0, 1.0)
    after = picture.fleet(1, timeline)
    assert before.now_s - at_gpu17(before)[0].at_s == 10.0
    assert after.now_s - at_gpu17(after)[0].at_s == 1_000.0
    assert after.now_s == before.now_s + 1.0


def test_a_black_hole_is_seen_from_documents_alone(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """Three refused pods of two workloads in the cache make the node SUSPECT and cost the owner."""
    writer.put([node()])
    seen = watch(store)
    writer.put([rejection(), rejection(), rejection("lab/ranks")])
    eventually(lambda: len(at_gpu17(seen.fleet)) == 3, "the rejections")
    fleet = seen.fleet
    cause, _ = rejections.suspicion(at_gpu17(fleet), fleet.now_s, DEFAULT)
    assert cause is not None
    assert rejections.by_node(fleet, "lab/ranks", DEFAULT)[GPU17] > 0.7
