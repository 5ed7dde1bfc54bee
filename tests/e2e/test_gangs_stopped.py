"""A leader is stopped past its Lease in mid-burst: what it has on its way comes late, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

import proxy

from e2e.caches import Cache
from e2e.candidates import Candidate, MakesCandidate
from e2e.conventions import members
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.gating import Gates, gates_of
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.relays import Request
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from extender.store.keys import GANGS, PLANS

SIZE: Final = 12
"""Members: more than the threads that write, so that some writes are not begun when it is stopped."""
NODES: Final = 2 * SIZE
HEEDED: Final = 3
"""Nominations that are heeded before the leader is stopped: the others are on their way."""
REFUSED: Final = frozenset({409, 422})
"""How the API server answers a write to what has changed meanwhile."""
DEGRADED: Final = {3: "DEGRADED"}
FENCED: Final = "surefoot_mirror_fenced_total"


def _pods_as_they_are(pods: Pods) -> dict[str, tuple[str, str | None]]:
    """Which version each pod has, and its nomination."""
    return {
        name: (each["metadata"]["resourceVersion"], each["status"].get("nominatedNodeName"))
        for name, each in pods.all().items()
    }


def _unanswered(requests: Collection[Request]) -> list[Request]:
    return [each for each in requests if each.of_pod and each.status is None]


def _nominated(requests: Collection[Request]) -> set[str]:
    """The nodes that a leader wanted for its members."""
    return {json.loads(each.body)[-1]["value"] for each in requests if each.of_pod}


def _stands_by(candidate: Candidate) -> bool:
    return candidate.controller.ready() and not candidate.controller.leads()


def test_its_writes_to_pods_fail_and_no_other_is_begun(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    gates: Gates,
    surefoot: MakesSurefoot,
    scheduler: MakesScheduler,
    candidate: MakesCandidate,
) -> None:
    """The nodes that it wanted are sick meanwhile, and the new leader has planned the gang elsewhere:
    each nomination that comes late would be taken, were it not for the version that it tests. At
    most one more is sent, whose thread was past the check, and meets the same.
    """
    gpu_nodes(NODES)
    gpu_nodes.report(cache.settings)
    served = surefoot(nodes=NODES)
    old = candidate()
    old.await_lead()
    new = candidate()
    relay = old.relay
    relay.stop_after(HEEDED, lambda each: each.of_pod, answered=False, then=old.controller.pause)
    pods.create(*(gates(each) for each in members("train", SIZE)))
    eventually(lambda: relay.stopped, "it is stopped in mid-burst")
    new.await_lead()
    wanted = _nominated(relay.requests)
    gpu_nodes.report(cache.settings, sick=dict.fromkeys(wanted, DEGRADED))
    eventually(
        lambda: _is_ready(pods) and wanted.isdisjoint(pods.nominations().values()),
        lambda: f"the new leader plans elsewhere: {pods.nominations()}",
    )
    planned, records, sent = _pods_as_they_are(pods), cache.holds(PLANS), len(relay.requests)
    late = _unanswered(relay.requests)
    assert late, "something is on its way"
    old.controller.resume()
    relay.release()
    eventually(lambda: _stands_by(old), "it stands by")
    eventually(lambda: not _unanswered(relay.requests), "what was late has come")
    throughout(new.controller.leads, "the new leader leads on")
    begun = [each for each in relay.requests[sent:] if each.writes and not each.of_lease]
    assert len(begun) <= 1, begun
    assert {each.status for each in (*late, *begun)} <= REFUSED, (late, begun)
    assert _pods_as_they_are(pods) == planned
    assert cache.holds(PLANS) == records
    scheduler(configuration(extender(served.url)))
    assert pods.whole("train", SIZE) == {name: node for name, (_, node) in planned.items()}


def _is_ready(pods: Pods) -> bool:
    """Whether every member is nominated and without a gate."""
    return all(pods.nominations().values()) and not any(map(gates_of, pods.all().values()))


def test_its_writes_to_the_cache_are_refused_by_their_term(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    gates: Gates,
    surefoot: MakesSurefoot,
    scheduler: MakesScheduler,
    candidate: MakesCandidate,
) -> None:
    """Its record of the gang comes when the new leader has written its own."""
    gpu_nodes(SIZE)
    gpu_nodes.report(cache.settings)
    served = surefoot(nodes=SIZE)
    scheduler(configuration(extender(served.url)))
    with proxy.before(cache) as wire:
        old = candidate(store=wire.settings)
        old.await_lead()
        new = candidate()
        wire.stall_at(1, f"{pods.namespace}/train".encode())
        pods.create(*(gates(each) for each in members("train", SIZE)))
        eventually(lambda: wire.stalled, "its record is on its way")
        old.controller.pause()
        new.await_lead()
        pods.whole("train", SIZE)
        eventually(
            lambda: (told := served.gang(pods.namespace, "train")) and told["state"] == "running",
            "the new leader has told all",
        )
        records = cache.holds(PLANS), cache.holds(GANGS)
        wire.heal()
        old.controller.resume()
        eventually(lambda: old.controller.values().get(FENCED) == 1, "the cache has refused it")
        throughout(lambda: _stands_by(old) and new.controller.leads(), "the new leader leads on")
        assert (cache.holds(PLANS), cache.holds(GANGS)) == records
        old.kill()
