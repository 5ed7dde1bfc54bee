"""The invariants of the design that concern telemetry, the cache and what one request does to
others, each named after it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asking import by_names, by_nodes, pod, preemption, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import dgx_h100
from papers import node_body, node_paper, paper
from redis import Redis
from replicas import Replica, cause, fleet_of, samples
from servers import Cache, eventually
from strategies import NOW_S, fleet

from extender import wiring
from extender.config.model import SurefootConfig
from extender.store import keys
from extender.store.connect import StoreSettings
from extender.store.schema import Kind
from extender.store.writer import Writer
from scoring.model import AllocationMode, Cause, Health
from scoring.reasons import OF_STATE, Reason

GANG_8 = pod(8, gang="sweep")
few = settings(max_examples=25, deadline=None)


@contextmanager
def wired(store: StoreSettings) -> Iterator[wiring.Webhook]:
    """A replica as `serve` builds it, on a real cache, without gunicorn."""
    config = {"webhook": {"mode": "enforce"}, "store": {"url": store.url}}
    made = wiring.webhook(SurefootConfig.model_validate(config))
    made.start()
    try:
        eventually(lambda: made.reader.status.loaded, "the first snapshot")
        yield made
    finally:
        made.close()


def posted(made: wiring.Webhook, verb: str, body: Any) -> bytes:
    """The answer of a replica; it must be a 200."""
    got = made.app.test_client().post(f"/{verb}", data=json.dumps(body))
    assert got.status_code == 200, got.text
    return bytes(got.data)


@pytest.fixture
def writer(store: StoreSettings) -> Iterator[Writer]:
    """A writer into the worker's cache, which is empty."""
    made = Writer(store)
    yield made
    made.close()


def dump(client: Redis) -> dict[bytes, Any]:
    """All that the cache holds, the log of decisions apart."""
    names: Any = client.keys("*")
    return {name: client.dump(name) for name in names if name != keys.DECISIONS.name.encode()}


class TestInvariant1:
    """Requests change nothing, and replicas agree."""

    def test_invariant_1_no_verb_changes_the_cache(
        self, store: StoreSettings, client: Redis, writer: Writer
    ) -> None:
        """A byte-for-byte dump of every key is the same before and after hundreds of calls."""
        writer.put([node_paper("a"), node_paper("b", sick={1: "FAILED"})])
        held = {"node": "a", "pod": "p", "uid": "v", "namespace": "lab"}
        writer.put([paper("Allocation", resource="nvidia.com/gpu", count=2, **held)])
        with wired(store) as made:
            before = dump(client)
            for asker in (pod(1), pod(8), GANG_8, pod(0)):
                for _ in range(25):
                    posted(made, "filter", by_names(asker, ["a", "b", "c"]))
                    posted(made, "filter", by_nodes(asker, ["a", "b"]))
                    posted(made, "prioritize", by_names(asker, ["a", "b", "c"]))
                    posted(made, "preempt", preemption(asker, {"a": ["v"], "b": []}))
                    posted(made, "explain", {"Pod": asker})
            eventually(lambda: made.decisions.waiting == 0, "every record is shipped")
            assert dump(client) == before
            assert len(before) >= 5
        assert client.xlen(keys.DECISIONS.name) == 400

    def test_invariant_1_replicas_on_one_cache_agree(
        self, store: StoreSettings, writer: Writer
    ) -> None:
        """Two replicas that loaded at different generations give the same bytes for the same one."""
        writer.put([node_paper(f"n-{i}", sick={i % 8: "DEGRADED"}) for i in range(0, 20, 2)])
        with wired(store) as one:
            writer.put([node_paper(f"n-{i}") for i in range(1, 20, 2)])
            writer.delete(Kind.NODE, "n-4")
            with wired(store) as other:
                newest = other.reader.status.generation
                eventually(lambda: one.reader.status.generation == newest, "both are up to date")
                names = [f"n-{i}" for i in range(22)]
                for asker in (pod(1), pod(8), GANG_8):
                    for verb in ("filter", "prioritize"):
                        body = by_names(asker, names)
                        assert posted(one, verb, body) == posted(other, verb, body)


class TestInvariant2:
    """No data is not health."""

    @pytest.mark.parametrize(
        ("age_s", "reason"),
        [(59.0, None), (61.0, Reason.NODE_STALE), (601.0, Reason.NODE_SILENT)],
    )
    def test_invariant_2_telemetry_grows_old_into_unknown(
        self, age_s: float, reason: Reason | None
    ) -> None:
        """Fresh for a minute, stale until ten, then UNKNOWN: a gang goes to fresh nodes only."""
        node = dgx_h100()
        one = Replica(fleet(node, seen_s={node.name: NOW_S - age_s}))
        expected = {} if reason is None else {node.name: reason.text}
        assert refused(one.filter(GANG_8, [node.name])) == expected

    def test_invariant_2_time_alone_makes_a_kept_verdict_old(self) -> None:
        """The reader only says that time passed, and names no node: the verdict follows."""
        node = dgx_h100()
        one = Replica(fleet(node))
        assert one.filter(GANG_8, [node.name])["NodeNames"] == [node.name]
        later = fleet(node, seen_s={node.name: NOW_S - 1}, now_s=NOW_S + 60)
        one.show(later, frozenset())
        assert refused(one.filter(GANG_8, [node.name])) == {node.name: Reason.NODE_STALE.text}

    def test_invariant_2_unknown_never_improves_a_worse_verdict(self) -> None:
        """A silent node with a failed GPU stays refused to single pods, which accept UNKNOWN."""
        node = dgx_h100(causes={0: cause(Health.FAILED)})
        one = Replica(fleet(node, seen_s={}))
        assert refused(one.filter(pod(8), [node.name])) == {node.name: Reason.GPU_FAILED.text}

    def test_invariant_2_a_node_never_sampled_is_not_healthy(self) -> None:
        """A document without a stamp, and a node without a document, take no gang."""
        node = dgx_h100()
        one = Replica(fleet(node, seen_s={}))
        assert one.filter(GANG_8, [node.name, "unreported"])["NodeNames"] == []


class TestInvariant3:
    """Severity is the maximum over open causes; each closes for itself."""

    @few
    @given(
        states=st.lists(st.sampled_from(sorted(OF_STATE)), min_size=1, max_size=5), data=st.data()
    )
    def test_invariant_3_the_worst_open_cause_speaks_and_closing_one_leaves_the_others(
        self, states: list[Health], data: st.DataObject
    ) -> None:
        """Causes are closed one by one in any order: the reason is always that of the worst left."""
        causes = [Cause(id=f"made.up-{i}", state=state) for i, state in enumerate(states)]
        while causes:
            node = dgx_h100(causes={5: tuple(causes)})
            worst = max(each.state for each in causes)
            told = refused(Replica(fleet_of(node)).filter(GANG_8, [node.name]))
            assert told == {node.name: OF_STATE[worst].text}
            causes.pop(data.draw(st.integers(0, len(causes) - 1)))
        node = dgx_h100()
        assert Replica(fleet_of(node)).filter(GANG_8, [node.name])["NodeNames"] == [node.name]


class TestInvariant9:
    """The request path does no I/O."""

    def test_invariant_9_no_request_opens_or_connects_or_sends(self) -> None:
        """Python's audit events of every call: no file, no socket, no process."""
        found = fleet_of(dgx_h100(name="a"), dgx_h100(name="b", causes={0: cause(Health.FAILED)}))
        one = Replica(found)
        bodies = [
            (verb, json.dumps(body).encode())
            for asker in (pod(1), pod(8), GANG_8, pod(0))
            for verb, body in (
                ("filter", by_names(asker, ["a", "b", "c"])),
                ("filter", by_nodes(asker, ["a", "b"])),
                ("prioritize", by_names(asker, ["a", "b"])),
                ("preempt", preemption(asker, {"a": ["v"]})),
                ("explain", {"Pod": asker}),
            )
        ]
        bodies.append(("filter", b"junk"))
        for verb, body in bodies:  # imports and caches of the first time
            one.post(verb, body)
        with listening() as events:
            one.show(found)  # so that every ranking is made anew
            answers = [one.post(verb, body).status for verb, body in bodies]
            one.filter(pod(3, gang="never-asked-before"), ["a"])
        assert answers == [200] * 20 + [400]
        assert events == []

    def test_invariant_9_the_ear_hears(self, tmp_path: Any) -> None:
        """What the test above relies on: an opened file is heard."""
        with listening() as events:
            (tmp_path / "x").write_text("x")
        assert events == ["open"]

    def test_invariant_9_records_wait_while_the_cache_hangs_and_answers_do_not(
        self, cache: Cache
    ) -> None:
        """A hundred decisions are answered at once while nothing can be shipped; then all arrive."""
        writer = Writer(cache.settings)
        writer.put([node_paper("a")])
        writer.close()
        with wired(cache.settings) as made:
            posted(made, "filter", by_names(pod(1), ["a"]))
            eventually(lambda: made.decisions.shipped == 1, "the first record")
            cache.pause()
            began_s = time.monotonic()
            for _ in range(100):
                posted(made, "filter", by_names(pod(1), ["a"]))
            assert time.monotonic() - began_s < 10.0, "each would wait for a second"
            assert made.decisions.shipped == 1
            cache.resume()
            eventually(lambda: made.decisions.shipped == 101, "all records")
            assert made.decisions.dropped == 0


_ears: list[list[str]] = []
_IO = ("open", "socket.", "subprocess.", "os.", "shutil.", "tempfile.", "glob.")


def _hear(event: str, _args: object) -> None:
    if _ears and event.startswith(_IO):
        _ears[-1].append(event)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every audit event of I/O while the block runs; a hook cannot be taken away, so there is one."""
    if not getattr(sys, "_surefoot_ear", False):
        sys.addaudithook(_hear)
        sys._surefoot_ear = True  # type: ignore[attr-defined]
    heard: list[str] = []
    _ears.append(heard)
    try:
        yield heard
    finally:
        _ears.pop()


class TestInvariant10:
    """The sets that the kubelet may hand out are judged, not the set that we would like."""

    @pytest.mark.parametrize(
        ("mode", "passes"), [(AllocationMode.UNKNOWN, False), (AllocationMode.PLANNED, True)]
    )
    def test_invariant_10_one_bad_free_gpu_spoils_a_part_ask_unless_a_plan_is_honoured(
        self, mode: AllocationMode, passes: bool
    ) -> None:
        """Four of eight: any may come, the bad one too; a cooperating plugin takes the healthy ones."""
        node = dgx_h100(causes={7: cause(Health.FAILED)}, mode=mode)
        answer = Replica(fleet_of(node)).filter(pod(4, gang="a"), [node.name])
        assert bool(answer["NodeNames"]) is passes


Spoil = Callable[[Redis], None]


def _raw(kind: keys.Key, field: str, value: bytes) -> Spoil:
    def spoil(client: Redis) -> None:
        client.hset(kind.name, field, value)

    return spoil


class TestInvariant12:
    """One bad pod, document, metric or label never hurts another."""

    @pytest.mark.parametrize(
        "spoil",
        [
            _raw(keys.NODES, "bad", b"\xff\x00 no JSON"),
            _raw(keys.NODES, "bad", b"{}"),
            _raw(
                keys.NODES,
                "bad",
                json.dumps({**node_body("bad"), "apiVersion": "surefoot.dev/v2"}).encode(),
            ),
            _raw(keys.NODES, "bad", json.dumps(node_body("other")).encode()),
            _raw(keys.SEEN, "bad", b"yesterday"),
            _raw(keys.ALLOCATIONS, "uid/gpu", b"[]"),
            _raw(keys.OVERRIDES, "node/good", b'{"verdict": "deny"}'),
            _raw(keys.BREAKERS, "pool", b'"open"'),
            _raw(keys.GANGS, "lab/sweep", b"0"),
        ],
        ids=[
            "bytes",
            "empty",
            "newer",
            "misplaced",
            "stamp",
            "alloc",
            "override",
            "breaker",
            "gang",
        ],
    )
    def test_invariant_12_a_bad_document_is_quarantined_and_the_others_are_judged(
        self, store: StoreSettings, client: Redis, writer: Writer, spoil: Spoil
    ) -> None:
        """It is counted in /metrics, and the good node takes its gang."""
        writer.put([node_paper("good")])
        spoil(client)
        with wired(store) as made:
            found = samples(made.app.test_client().get("/metrics").text)
            assert found["surefoot_quarantined"] == 1
            answer = json.loads(posted(made, "filter", by_names(GANG_8, ["good", "bad"])))
            assert answer["NodeNames"] == ["good"]
            alone = json.loads(posted(made, "filter", by_names(GANG_8, ["bad"])))
            assert alone["NodeNames"] == []

    def test_invariant_12_a_bad_pod_is_a_400_and_the_next_one_is_judged(self) -> None:
        """The refusal is one sentence, counted in /metrics, and leaves nothing behind."""
        node = dgx_h100()
        one = Replica(fleet_of(node))
        refusal = one.post("filter", by_names(pod("-1"), [node.name]))
        assert refusal.status == 400
        assert "is negative" in refusal.json["Error"]
        assert one.filter(GANG_8, [node.name])["NodeNames"] == [node.name]
        count = 'surefoot_request_duration_seconds_count{code="400",verb="filter"}'
        assert one.values()[count] == 1

    def test_invariant_12_odd_words_in_labels_and_annotations_fail_nobody(self) -> None:
        """Unknown states are left out and told; a strange gang size is an unknown one."""
        node = dgx_h100(
            labels={"topology.kubernetes.io/zone": "\u202e", "nvidia.com/gpu.clique": ""}
        )
        one = Replica(fleet_of(node))
        asker = pod(8, annotations={"surefoot.dev/allow": "SUSPECT, ALMOST-FINE"})
        asker["metadata"]["labels"] = {
            "surefoot.dev/gang": "a" * 5000,
            "surefoot.dev/gang-size": "many",
        }
        assert one.filter(asker, [node.name])["NodeNames"] == [node.name]
        assert "ALMOST-FINE" in one.explain(asker)["ask"]["notes"][0]
