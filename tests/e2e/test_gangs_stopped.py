"""A leader is stopped past its Lease in mid-burst: what it has on its way comes late, and changes nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import proxy
from asking import Json

from e2e.caches import Cache
from e2e.candidates import Candidate, MakesCandidate
from e2e.conventions import members
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.gating import Gates
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.relays import Request
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from extender.store.keys import GANGS, PLANS

SIZE: Final = 8
HEEDED: Final = 3
"""Nominations that are heeded before the leader is stopped: the others are on their way."""
REFUSED: Final = frozenset({409, 422})
"""How the API server answers a write to what has changed meanwhile."""
FENCED: Final = "surefoot_mirror_fenced_total"


def _versions(pods: Pods) -> dict[str, Json]:
    """Which version each pod has."""
    return {name: each["metadata"]["resourceVersion"] for name, each in pods.all().items()}


def _unanswered(requests: Collection[Request]) -> list[Request]:
    return [each for each in requests if each.of_pod and each.status is None]


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
    """Those on their way meet pods that the new leader has touched; at most one more is sent, whose
    thread was past the check, and meets the same.
    """
    gpu_nodes(SIZE)
    gpu_nodes.report(cache.settings)
    scheduler(configuration(extender(surefoot(nodes=SIZE).url)))
    old = candidate()
    old.await_lead()
    new = candidate()
    relay = old.relay
    relay.stop_after(HEEDED, lambda each: each.of_pod, answered=False, then=old.controller.pause)
    pods.create(*(gates(each) for each in members("train", SIZE)))
    eventually(lambda: relay.stopped, "it is stopped in mid-burst")
    new.await_lead()
    pods.whole("train", SIZE)
    late = _unanswered(relay.requests)
    whole, records, sent = _versions(pods), cache.holds(PLANS), len(relay.requests)
    old.controller.resume()
    relay.release()
    eventually(lambda: _stands_by(old), "it stands by")
    eventually(lambda: not _unanswered(relay.requests), "what was late has come")
    throughout(new.controller.leads, "the new leader leads on")
    begun = [each for each in relay.requests[sent:] if each.writes and not each.of_lease]
    assert len(begun) <= 1, begun
    assert {each.status for each in (*late, *begun)} <= REFUSED, (late, begun)
    assert _versions(pods) == whole
    assert cache.holds(PLANS) == records


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
