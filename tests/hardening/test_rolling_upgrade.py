"""Writers of the next version beside this one: what is new is ignored or quarantined, never health."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asking import Json, by_names, pod, refused
from papers import node_body, node_paper
from redis import Redis
from servers import eventually

from extender import wiring
from extender.config.model import SurefootConfig
from extender.store import keys
from extender.store.connect import StoreSettings
from extender.store.scripts import Scripts
from extender.store.writer import Writer
from scoring.reasons import Reason

GANG = pod(8, gang="sweep")


def newer(body: Json, **fields: Any) -> Json:
    """The same document by a writer of the next minor version: a new field at every level."""
    gpus = [
        {**gpu, "serial": 17, "causes": [{**cause, "confidence": 0.9} for cause in gpu["causes"]]}
        for gpu in body["gpus"]
    ]
    metadata = {**body["metadata"], "annotations": {"a": "b"}, "generation": 3}
    return {**body, "metadata": metadata, "gpus": gpus, "racks": {"a": [1, None]}, **fields}


def with_cause(name: str, **cause: Any) -> Json:
    """A node one GPU of which has this cause."""
    body = node_body(name)
    body["gpus"][3]["causes"] = [{"id": "next.thing", "state": "FAILED", **cause}]
    return body


UNREADABLE = (
    with_cause("new-state", state="MELTED"),
    with_cause("new-state-that-sounds-well", state="OK"),
    with_cause("new-scope", scope="rack"),
    node_body("new-mode", allocationMode="cdi"),
    node_body("new-link", links={"GPU0-GPU1": "NVX9"}),
    node_body("new-state-of-node", causes=[{"id": "next.thing", "state": "MELTED"}]),
    node_body("new-type", expected="eight"),
    {**node_body("new-major"), "apiVersion": "surefoot.dev/v2"},
)
"""Documents whose meaning this version cannot know."""


def publish(client: Redis, *bodies: Json) -> None:
    """Write as the next version's writer would: past the checks of this one."""
    scripts = Scripts(client)
    with client.pipeline(transaction=False) as pipe:
        for body in bodies:
            scripts.publish_node(
                body["metadata"]["name"],
                json.dumps(body).encode(),
                epoch=None,
                seq=None,
                sampled_ms_ago=0,
                pipe=pipe,
            )
        pipe.execute()


@contextmanager
def wired(store: StoreSettings, **webhook: str) -> Iterator[wiring.Webhook]:
    """A replica of this version, in this process."""
    config = {"webhook": {"mode": "enforce", **webhook}, "store": {"url": store.url}}
    made = wiring.webhook(SurefootConfig.model_validate(config))
    made.start()
    try:
        eventually(lambda: made.reader.status.loaded, "the first snapshot")
        yield made
    finally:
        made.close()


def judged(made: wiring.Webhook, asker: Json, *names: str) -> tuple[list[str], dict[str, str]]:
    """The nodes that pass, and the reasons of the others."""
    got = made.app.test_client().post("/filter", data=json.dumps(by_names(asker, names)))
    assert got.status_code == 200
    answer: Json = json.loads(got.data)
    return sorted(answer["NodeNames"]), refused(answer)


@pytest.fixture
def writer(store: StoreSettings) -> Iterator[Writer]:
    """A writer of this version into the worker's cache, which is empty."""
    made = Writer(store)
    yield made
    made.close()


def test_what_is_only_new_changes_no_verdict(
    store: StoreSettings, client: Redis, writer: Writer
) -> None:
    """Healthy stays healthy and sick stays sick, whichever version wrote it, side by side."""
    writer.put([node_paper("old"), node_paper("old-sick", sick={1: "FAILED"})])
    publish(client, newer(node_body("new")))
    publish(client, newer(node_body("new-sick", sick={1: "FAILED"})))
    with wired(store) as made:
        assert judged(made, GANG, "old", "new", "old-sick", "new-sick")[0] == ["new", "old"]
        reasons = {judged(made, GANG, name)[1][name] for name in ("old-sick", "new-sick")}
        assert reasons == {Reason.GPU_FAILED.text}
        assert made.reader.status.quarantined == 0


def test_versions_take_turns_on_one_node(
    store: StoreSettings, client: Redis, writer: Writer
) -> None:
    """An agent that is updated, and rolled back: each document is newer than the one before."""
    with wired(store) as made:
        writer.put([node_paper("a", sick={1: "FAILED"})])
        eventually(lambda: judged(made, GANG, "a")[1] == {"a": Reason.GPU_FAILED.text}, "old, sick")
        publish(client, newer(node_body("a")))
        eventually(lambda: judged(made, GANG, "a")[0] == ["a"], "new, well")
        stored: Any = client.hget(keys.NODES.name, "a")
        assert json.loads(stored)["racks"] == {"a": [1, None]}
        writer.put([node_paper("a", sick={1: "FAILED"})])
        eventually(lambda: judged(made, GANG, "a")[1] == {"a": Reason.GPU_FAILED.text}, "old again")


@pytest.mark.parametrize("known_before", [False, True], ids=["at-load", "as-changes"])
def test_what_this_version_cannot_read_is_quarantined_and_takes_no_gang(
    store: StoreSettings, client: Redis, writer: Writer, known_before: bool
) -> None:
    """Such nodes alone are unknown, whatever was known of them; the neighbour serves; a readable
    document ends it.
    """
    names = [str(body["metadata"]["name"]) for body in UNREADABLE]
    everyone = sorted(["a", *names])
    writer.put([node_paper(name) for name in (everyone if known_before else ["a"])])
    if not known_before:
        publish(client, *UNREADABLE)
    with wired(store) as made:
        if known_before:
            assert judged(made, GANG, *everyone)[0] == everyone
            publish(client, *UNREADABLE)
        eventually(lambda: judged(made, GANG, *everyone)[0] == ["a"], "the neighbour alone")
        assert judged(made, GANG, *names)[1] == dict.fromkeys(names, Reason.NODE_UNREADABLE.text)
        page = made.app.test_client().get("/metrics").text
        assert f"surefoot_quarantined {len(names)}.0" in page
        writer.put([node_paper(name) for name in names])
        eventually(lambda: judged(made, GANG, *everyone)[0] == everyone, "readable again")
        assert made.reader.status.quarantined == 0


def test_no_pod_comes_to_what_cannot_be_read_whatever_the_unknown_is_allowed(
    store: StoreSettings, client: Redis
) -> None:
    """It may say that every GPU failed: `unknownNodes` is for nodes that say nothing."""
    publish(client, UNREADABLE[0])
    refused = {"new-state": Reason.NODE_UNREADABLE.text}
    for policy in ("pass", "single", "veto"):
        with wired(store, unknownNodes=policy) as made:
            assert judged(made, pod(1), "new-state")[1] == refused


@pytest.mark.parametrize(
    "fabric",
    [
        {"state": "next-state", "status": "success"},
        {"state": "completed", "status": "next-status"},
        {"state": "completed", "status": "success", "healthSummary": "next-word"},
    ],
)
def test_a_fabric_in_words_of_the_next_version_takes_no_gang(
    store: StoreSettings, writer: Writer, fabric: Json
) -> None:
    """Words of the fabric are free text in documents: one that is not known to be good is not."""
    writer.put([node_paper("a", fabric=fabric)])
    with wired(store) as made:
        assert judged(made, GANG, "a")[1] == {"a": Reason.LINKS_IMPAIRED.text}
