"""Plans of gangs as documents, and what readers make of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import PLANS, SINCE_S, document, plan
from redis import Redis
from servers import eventually
from watching import JSON, Watch, node, write_raw

from extender.store import documents, fleets, render
from extender.store.connect import StoreSettings
from extender.store.errors import DocumentError
from extender.store.load import Contents
from extender.store.picture import Picture
from extender.store.schema import MAX_MEMBERS, Kind
from extender.store.scripts import Change
from extender.store.timeline import Timeline
from extender.store.writer import Writer
from scoring.gangs.record import GangPlan, GangState, Seat
from scoring.gangs.rules import Hold
from scoring.model import Convention, GangKey, NodeName, PodUid

Begin = Callable[..., Watch]
TRAIN = GangKey("team/train")


@given(PLANS)
def test_a_plan_reads_back(value: GangPlan) -> None:
    """Everything that a leader says of a gang survives the cache."""
    paper = render.document(value)
    assert (paper.kind, paper.id) == (Kind.PLAN, value.gang)
    assert documents.decode(paper.kind, paper.id, paper.encoded) == value


@given(PLANS, st.randoms(use_true_random=False))
def test_equal_plans_are_equal_bytes(value: GangPlan, draw: Any) -> None:
    """In whatever order their seats came: what stands already is not written again."""
    seats, counts = list(value.seats.items()), list(value.counts.items())
    draw.shuffle(seats)
    draw.shuffle(counts)
    shuffled = plan(
        value.gang,
        **{
            name: getattr(value, name)
            for name in GangPlan.__dataclass_fields__
            if name not in ("gang", "seats", "counts")
        },
        seats=dict(seats),
        counts=dict(counts),
    )
    assert render.document(shuffled).encoded == render.document(value).encoded


def test_the_least_that_a_plan_says_promises_nothing() -> None:
    """No seat, no size, no term of a leader."""
    found = document().value
    assert isinstance(found, GangPlan)
    assert (found.term, found.min, found.seats) == (0, None, {})
    assert (found.state, found.seat(PodUid("u1"))) == (GangState.WAITING, None)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"gang": "alone"}, "gang: write it like <namespace>/<name>"),
        ({"gang": f"a/{'b' * 600}"}, "gang: expected text of 576 or less"),
        ({"convention": "lsw"}, "convention: 'lsw' is unknown, allowed: surefoot, native"),
        ({"hold": "requires"}, "hold: 'requires' is unknown, allowed: off, prefer, require, did"),
        ({"state": "runing"}, "did you mean running?"),
        ({"since": "2026-11-29T10:00:00"}, "since: expected an RFC 3339 time with a zone"),
        ({"since": None}, "since: expected an RFC 3339 time"),
        ({"term": -1}, "term: expected a whole number, 0 or more"),
        ({"term": 2**31}, "term: expected a whole number, 2147483647 or less"),
        ({"min": 0}, "min: expected a whole number, 1 or more"),
        ({"size": 2**53}, "size: expected a whole number, 9007199254740991 or less"),
        ({"seats": {"": {"pod": "a"}}}, "seats: expected text that is not empty"),
        ({"seats": {"u": {"node": "a"}}}, "pod: missing"),
        ({"seats": {"u": {"pod": "a", "node": "a/b"}}}, "node: write a name of letters"),
        ({"seats": {"u": {"pod": "a", "bound": True}}}, "seats.u.node: missing, a bound member"),
        ({"seats": [1]}, "seats: expected a mapping, got a list"),
        ({"domain": "a\nb"}, "domain: write it on one line"),
        ({"summary": "x" * 9000}, "summary: expected text of 8192 or less"),
        ({"counts": {"NoRoom": -1}}, "expected a whole number, 0 or more"),
        ({"unblock": ["x"] * 65}, "unblock: expected a list of 64 or less"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_named_by_its_path(
    fields: dict[str, Any], problem: str
) -> None:
    """As any other document."""
    with pytest.raises(DocumentError) as caught:
        document(**fields)
    assert problem in str(caught.value)


FIELDS = st.sampled_from(
    ["gang", "convention", "hold", "state", "since", "term", "seats", "counts", "unblock", "min"]
)


@given(st.dictionaries(FIELDS, JSON))
def test_any_plan_is_read_or_refused(fields: dict[str, Any]) -> None:
    """Whatever its fields hold, it is read or refused by name, nothing else."""
    try:
        paper = document(**fields)
    except DocumentError:
        return
    assert documents.decode(paper.kind, paper.id, paper.encoded) == paper.value


def seated(count: int) -> GangPlan:
    """A plan of so many members, with uids and names as long as those of Kubernetes."""
    uid, name = "0b6f0f6e-4a0a-4a5e-9d0e-{:012d}", "train-worker-{:06d}"
    return plan(
        seats={
            PodUid(uid.format(each)): Seat(
                pod=name.format(each), node=NodeName(f"gpu-node-{each:05d}"), bound=True
            )
            for each in range(count)
        }
    )


def test_the_largest_gang_has_a_plan() -> None:
    """A hundred thousand members fit, and not one more."""
    paper = render.document(seated(MAX_MEMBERS))
    assert documents.decode(Kind.PLAN, paper.id, paper.encoded) == paper.value
    with pytest.raises(DocumentError, match=r"seats: expected a mapping of 100000 or less"):
        render.document(seated(MAX_MEMBERS + 1))


def test_the_longest_key_of_a_gang_has_a_plan() -> None:
    """512 characters, and the convention behind it where another one has the same name."""
    key = GangKey(f"{'n' * 63}/{'g' * 448}~{Convention.COSCHEDULING_LEGACY}")
    assert render.document(plan(key)).id == key


# --- and what readers make of it -------------------------------------------------------------------


def test_a_plan_reaches_readers_and_changes_no_node(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """Each Fleet with a new plan comes at once, and names no node as changed."""
    writer.put([node()])
    seen = watch(store)
    assert seen.fleet.plans == {}
    began = len(seen.fleets)
    (put,) = writer.put([render.document(plan())])
    began_s = time.monotonic()
    eventually(lambda: seen.fleet.plans, "the plan")
    assert time.monotonic() - began_s < 1
    assert seen.fleet.plans == {TRAIN: plan()}
    assert writer.delete(Kind.PLAN, put.document.id)
    eventually(lambda: not seen.fleet.plans, "its end")
    assert {changed for _, changed in seen.fleets[began:]} == {frozenset()}
    assert seen.status.reloads == 1


def test_two_conventions_with_one_name_have_two_plans(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """Neither hides the other."""
    both = plan(), plan("team/train~kueue", convention=Convention.KUEUE, hold=Hold.PREFER)
    writer.put([render.document(each) for each in both])
    assert set(watch(store).fleet.plans) == {TRAIN, GangKey("team/train~kueue")}


@pytest.mark.parametrize(
    "raw", [b"junk", b"{}", b'{"apiVersion":"surefoot.dev/v2","kind":"Plan"}', b"\xff"]
)
def test_a_plan_that_cannot_be_read_hurts_nobody(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis, raw: bytes
) -> None:
    """It is quarantined by name; other gangs keep their plans, nodes their verdicts."""
    writer.put([node(), render.document(plan()), render.document(plan("team/other"))])
    seen = watch(store)
    assert len(seen.fleet.plans) == 2
    write_raw(client, Kind.PLAN, TRAIN, raw)
    eventually(lambda: set(seen.fleet.quarantined) == {f"Plan/{TRAIN}"}, "one in quarantine")
    assert (set(seen.fleet.plans), set(seen.fleet.nodes)) == ({"team/other"}, {"gpu-17"})
    assert set(fleets.look(store)[0].quarantined) == {f"Plan/{TRAIN}"}
    writer.put([render.document(plan())])
    eventually(lambda: len(seen.fleet.plans) == 2, "the plan again")
    assert not seen.fleet.quarantined


def test_since_is_put_on_the_readers_time_line() -> None:
    """Where the server's clock jumped, a plan keeps its distance to the server's now."""
    paper = render.document(plan())
    found: dict[Kind, dict[bytes, bytes]] = {kind: {} for kind in Kind}
    found[Kind.PLAN] = {paper.id.encode(): paper.encoded}
    contents = Contents(
        instance=b"i", generation=1, redis_s=SINCE_S + 10.0, seen={}, documents=found
    )
    picture, timeline = Picture(contents), Timeline(contents.redis_s)
    before = picture.fleet(1, timeline)
    timeline.advance(SINCE_S + 1_000.0, 1.0)
    after = picture.fleet(1, timeline)
    assert before.now_s - before.plans[TRAIN].since_s == 10.0
    assert after.now_s - after.plans[TRAIN].since_s == 1_000.0
    later = render.document(plan(since_s=SINCE_S + 900.0))
    picture.apply([Change(kind=Kind.PLAN, id=later.id.encode(), raw=later.encoded)])
    changed = picture.fleet(2, timeline)
    assert changed.now_s - changed.plans[TRAIN].since_s == 100.0
    assert after.now_s - after.plans[TRAIN].since_s == 1_000.0, "a Fleet never changes"
    picture.apply([Change(kind=Kind.PLAN, id=later.id.encode(), raw=None)])
    assert picture.fleet(3, timeline).plans == {}
