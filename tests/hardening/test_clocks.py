"""The wall clock of a replica may say anything: it orders nothing and ages nothing."""

from __future__ import annotations

import ast
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from asking import Json, by_names, pod
from papers import node_paper, paper
from redis import Redis
from servers import eventually

import extender
import scoring
from extender import wiring
from extender.config.model import SurefootConfig
from extender.store.connect import StoreSettings
from extender.store.writer import Writer

MAY_ASK = {
    "extender/cli/put.py": "tells whoever puts a document that a time in it looks wrong",
    "extender/webhook/app.py": "stamps a decision record, for people",
    "extender/cli/gates.py": "tells people how long a pod has waited",
    "extender/controller/planning/acting.py": "stamps the annotation that wakes a pod",
    "extender/controller/planning/loop.py": "ages gangs beside the API server's creation times",
    "extender/controller/signs/signs.py": "dates events and conditions, for people",
    "extender/kube/lease.py": "dates renewals; nobody judges by them",
    "extender/demo/reports.py": "dates the demo's faults, which are simulated",
}
"""The files that may read the wall clock, and what for."""
CLOCKS = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}
YEAR_S = 3.2e7
NAMES = ("fresh", "stale", "sick", "denied")


def test_few_files_read_the_wall_clock() -> None:
    """Whatever else needs time takes the monotonic clock or that of the cache."""
    found = set()
    for package in (extender, scoring):
        root = Path(package.__path__[0])
        for file in root.rglob("*.py"):
            if any(map(_reads_a_clock, ast.walk(ast.parse(file.read_text())))):
                found.add(str(file.relative_to(root.parent)))
    assert found == set(MAY_ASK)


def _reads_a_clock(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return (module, name) in CLOCKS
        case ast.ImportFrom(module="time", names=names):
            return any(each.name.startswith("time") for each in names)
    return False


@contextmanager
def wired(store: StoreSettings) -> Iterator[wiring.Webhook]:
    """A replica as `serve` builds it, in this process, whose clock can be turned."""
    config = {"webhook": {"mode": "enforce", "narrow": 0}, "store": {"url": store.url}}
    made = wiring.webhook(SurefootConfig.model_validate(config))
    made.start()
    try:
        eventually(lambda: made.reader.status.loaded, "the first snapshot")
        yield made
    finally:
        made.close()


def answers(made: wiring.Webhook) -> list[Json]:
    """What the replica says of the fleet to a gang and to a single pod."""
    client = made.app.test_client()
    calls = [(verb, pod(8, gang=gang)) for verb in ("filter", "prioritize") for gang in (None, "g")]
    got = [client.post(f"/{verb}", data=json.dumps(by_names(who, NAMES))) for verb, who in calls]
    assert [each.status_code for each in got] == [200] * len(got)
    return [json.loads(each.data) for each in got]


def test_a_jumping_wall_clock_changes_no_verdict(
    store: StoreSettings, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Years back and forth at every look, before and after a reload: ages and overrides go
    by the clock of the cache.
    """
    seconds, _ = client.time()
    soon = datetime.fromtimestamp(seconds + 3600, UTC).isoformat()
    writer = Writer(store)
    writer.put([node_paper(name) for name in ("fresh", "denied")])
    writer.put([node_paper("sick", sick={0: "FAILED"})])
    writer.put([node_paper("stale")], sampled_s_ago=120)
    words = {"verdict": "deny", "who": "oncall", "why": "burns", "until": soon}
    writer.put([paper("Override", target="node/denied", **words)])
    with wired(store) as made:
        before = answers(made)
        single, gang = (set(answer["NodeNames"]) for answer in before[:2])
        assert (single, gang) == ({"fresh", "stale"}, {"fresh"})
        jumps = itertools.cycle((0.0, 50 * YEAR_S, -1.0, 90 * YEAR_S))
        monkeypatch.setattr(time, "time", lambda: next(jumps))
        assert answers(made) == before
        reloads = made.reader.status.reloads
        client.client_kill_filter(_type="normal", skipme=True)
        eventually(lambda: made.reader.status.reloads > reloads, "a reload")
        assert answers(made) == before
        writer.put([node_paper("sick")])
        eventually(lambda: "sick" in answers(made)[1]["NodeNames"], "a change", within_s=3)
    writer.close()
