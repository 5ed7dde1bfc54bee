"""What the controller wants of the cache, on a real server: written when it differs, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis
from servers import Cache, eventually
from watching import Watch, allocation, node, other

from extender.store import fleets, keys
from extender.store.connect import StoreSettings
from extender.store.documents import Document
from extender.store.errors import StoreError
from extender.store.schema import Kind
from extender.store.scripts import Mirrored, Wish
from extender.store.writer import Writer
from scoring.model import NodeName, Taint

Begin = Callable[..., Watch]
GPU17 = NodeName("gpu-17")
HELD = "pod-1/nvidia.com/gpu"


def cluster_node(name: str = "gpu-17", **fields: object) -> Document:
    """A ClusterNode document, checked."""
    labels = fields.pop("labels", {})
    return other("ClusterNode", metadata={"name": name, "labels": labels}, **fields)


def wish(document: Document) -> Wish:
    """That it stands so."""
    return Wish(kind=document.kind, id=document.id, document=document.encoded)


def without(kind: Kind, key: str) -> Wish:
    """That it does not stand."""
    return Wish(kind=kind, id=key, document=None)


def outcome(done: Mirrored) -> tuple[int, int, int]:
    """Written, removed, and the generation after it."""
    return done.written, done.removed, done.generation


def test_only_what_differs_is_written(writer: Writer, client: Redis) -> None:
    """One generation and one entry of the stream for each document that changes, in one call."""
    wishes = [wish(allocation("gpu-17")), wish(cluster_node()), without(Kind.ALLOCATION, "x/y")]
    assert outcome(writer.mirror(wishes, term=1)) == (2, 0, 2)
    assert outcome(writer.mirror(wishes, term=1)) == (0, 0, 2)
    wishes[0] = without(Kind.ALLOCATION, HELD)
    wishes[1] = wish(cluster_node(unschedulable=True))
    assert outcome(writer.mirror(wishes, term=1)) == (1, 1, 4)
    entries = client.xrange(keys.CHANGES.name)
    assert isinstance(entries, list)
    kinds = [fields[b"kind"] for _, fields in entries if fields]
    assert kinds == [
        *(b"Allocation", b"ClusterNode"),
        *(b"Allocation", b"ClusterNode"),
    ]


def test_two_writers_of_the_same_truth_change_nothing(writer: Writer, store: StoreSettings) -> None:
    """Whoever comes second finds it done, so two controllers are harmless."""
    second = Writer(store)
    wishes = [wish(allocation("gpu-17")), wish(cluster_node())]
    writer.mirror(wishes, term=1)
    assert outcome(second.mirror(wishes, term=1)) == (0, 0, 2)
    second.close()


@pytest.mark.parametrize("gpus", [["GPU-gpu-17-0"], []], ids=["named", "none named"])
def test_a_count_does_not_replace_names(
    writer: Writer, store: StoreSettings, gpus: list[str]
) -> None:
    """An agent knows which GPUs a pod holds: who knows only how many says nothing new."""
    writer.put([allocation("gpu-17", gpus=gpus)])
    assert outcome(writer.mirror([wish(allocation("gpu-17"))], term=1)) == (0, 0, 1)
    (held,) = fleets.look(store)[0].allocations[GPU17]
    assert held.gpus == frozenset(gpus)


@pytest.mark.parametrize(
    "now",
    [
        allocation("gpu-18"),
        allocation("gpu-17", count=2),
        allocation("gpu-17", gpus=["GPU-gpu-17-1"]),
    ],
    ids=["elsewhere", "more", "others"],
)
def test_names_that_are_of_the_past_are_replaced(
    writer: Writer, store: StoreSettings, now: Document
) -> None:
    """On another node, or of another number, the names are no longer those of the pod's GPUs."""
    writer.put([allocation("gpu-17", gpus=["GPU-gpu-17-0"])])
    assert outcome(writer.mirror([wish(now)], term=1)) == (1, 0, 2)
    (found,) = (held for them in fleets.look(store)[0].allocations.values() for held in them)
    assert found == now.value


@pytest.mark.parametrize("junk", [b"junk", b"[]", b'{"gpus":', b"{}"])
def test_junk_is_replaced(writer: Writer, client: Redis, junk: bytes) -> None:
    """What cannot be read says nothing that must be kept."""
    client.hset(keys.ALLOCATIONS.name, HELD, junk)
    assert writer.mirror([wish(allocation("gpu-17"))], term=1).written == 1
    assert client.hget(keys.ALLOCATIONS.name, HELD) == allocation("gpu-17").encoded


def test_a_pod_that_went_takes_its_names_along(writer: Writer, client: Redis) -> None:
    """Whoever wrote the allocation: nobody holds what no pod holds."""
    writer.put([allocation("gpu-17", gpus=["GPU-gpu-17-0"])])
    assert outcome(writer.mirror([without(Kind.ALLOCATION, HELD)], term=1)) == (0, 1, 2)
    assert client.hlen(keys.ALLOCATIONS.name) == 0


def test_nothing_wanted_of_an_empty_cache_makes_no_data(writer: Writer, client: Redis) -> None:
    """To want away what is not there does not even name the instance; the term alone is kept."""
    done = writer.mirror([without(Kind.ALLOCATION, HELD)], term=1)
    assert (done.instance, outcome(done)) == (None, (0, 0, 0))
    assert client.keys() == [keys.TERM.name.encode()]


def test_the_ids_of_a_kind(writer: Writer) -> None:
    """Of all writers."""
    writer.put([allocation("gpu-17"), cluster_node()])
    assert writer.ids(Kind.ALLOCATION) == {HELD}
    assert writer.ids(Kind.CLUSTER_NODE) == {"gpu-17"}


def test_a_cache_that_is_away_is_an_error(cache: Cache) -> None:
    """Each look and each write says so in one sentence."""
    writer = Writer(cache.settings)
    cache.kill()
    for call in (
        writer.pulse,
        lambda: writer.ids(Kind.ALLOCATION),
        lambda: writer.mirror([wish(cluster_node())], term=1),
    ):
        with pytest.raises(StoreError, match=r"^the cache at redis://"):
            call()
    writer.close()


# --- and what readers make of it -------------------------------------------------------------------


def test_a_reader_follows_the_cluster(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """Cordon, taints and GPUs of a node reach the next Fleet, which names the node as changed."""
    writer.put([node()])
    seen = watch(store)
    assert seen.fleet.cluster == {}
    taint = {"key": "maintenance", "effect": "NoSchedule", "value": "soon"}
    there = cluster_node(
        unschedulable=True,
        taints=[taint],
        capacity={"nvidia.com/gpu": 8},
        allocatable={"nvidia.com/gpu": 7},
    )
    writer.mirror([wish(there)], term=1)
    eventually(lambda: GPU17 in seen.fleet.cluster, "the cluster's word", within_s=1)
    found = seen.fleet.cluster[GPU17]
    assert found == there.value
    assert found.taints == (Taint(key="maintenance", effect="NoSchedule", value="soon"),)
    assert seen.fleets[-1][1] == frozenset({GPU17})
    writer.mirror([without(Kind.CLUSTER_NODE, "gpu-17")], term=1)
    eventually(lambda: not seen.fleet.cluster, "gone", within_s=1)


def test_labels_come_from_both_the_document_first(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """Key by key: what the node's document names stands, the cluster adds the rest."""
    writer.put([node(metadata={"name": "gpu-17", "labels": {"rack": "r1"}}), node("bare")])
    labels = {"rack": "r9", "zone": "z1"}
    both = [wish(cluster_node(name, labels=labels)) for name in ("gpu-17", "bare")]
    writer.mirror(both, term=1)
    seen = watch(store)
    nodes = seen.fleet.nodes
    assert nodes[GPU17].labels == {"rack": "r1", "zone": "z1"}
    assert nodes[NodeName("bare")].labels == labels
    writer.mirror([wish(cluster_node(labels={"zone": "z2"}))], term=1)
    eventually(lambda: seen.fleet.nodes[GPU17].labels == {"rack": "r1", "zone": "z2"}, "the label")
    writer.put([node()])
    eventually(lambda: seen.fleet.nodes[GPU17].labels == {"zone": "z2"}, "the new document")
    writer.mirror([without(Kind.CLUSTER_NODE, "gpu-17")], term=1)
    eventually(lambda: seen.fleet.nodes[GPU17].labels == {}, "the document alone")


def test_the_clusters_product_says_how_fast_links_are(writer: Writer, store: StoreSettings) -> None:
    """A document without a model has the speed of the product that the cluster names."""
    plain = node(gpus=[{"uuid": f"GPU-{index}", "index": index} for index in (0, 1)])
    writer.put([plain])
    before = fleets.look(store)[0].nodes[GPU17].links
    writer.put([cluster_node(labels={"nvidia.com/gpu.product": "NVIDIA-B200"})])
    after = fleets.look(store)[0].nodes[GPU17].links
    assert before.words == after.words
    assert after.gbps[0][1] == 18 * 40.1 > before.gbps[0][1]


def test_a_node_of_the_cluster_alone_is_no_node_with_a_document(
    writer: Writer, store: StoreSettings
) -> None:
    """It stays unknown: nobody reported its health."""
    writer.put([cluster_node()])
    fleet = fleets.look(store)[0]
    assert (fleet.nodes, set(fleet.cluster)) == ({}, {"gpu-17"})


def test_a_broken_word_of_the_cluster_costs_the_node_nothing_else(
    writer: Writer, client: Redis, store: StoreSettings
) -> None:
    """It is quarantined by name; the node is judged by its own document."""
    writer.put([node()])
    client.hset(keys.CLUSTER.name, "gpu-17", b'{"apiVersion":"surefoot.dev/v1","kind":"Gang"}')
    fleet = fleets.look(store)[0]
    assert set(fleet.nodes) == {"gpu-17"}
    assert fleet.cluster == {}
    assert list(fleet.quarantined) == ["ClusterNode/gpu-17"]
