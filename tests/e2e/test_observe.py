"""Observe mode: Surefoot sees everything, says what it would do, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from asking import Json
from redis import Redis

from e2e.caches import Cache
from e2e.extenders import Recorder, served
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually
from extender.store import keys
from scoring.reasons import Reason

SLOT: Final = "surefoot.dev/e2e-slot"
FLEET: Final = 6
SICK: Final = {f"gpu-{number}": {0: "DEGRADED"} for number in (1, 3, 5)}


@pytest.fixture
def observing(cache: Cache, gpu_nodes: Nodes, surefoot: MakesSurefoot) -> Surefoot:
    """Surefoot with a fleet of which one half is degraded; each node has a slot of its own."""
    for number in range(FLEET):
        gpu_nodes(1, labels={SLOT: str(number)})
    gpu_nodes.report(cache.settings, sick=SICK)
    return surefoot(mode="observe", nodes=FLEET)


@pytest.fixture
def recorder(observing: Surefoot) -> Iterator[Recorder]:
    """What is between kube-scheduler and Surefoot."""
    made = Recorder(observing.url)
    yield made
    made.close()


def member(number: int) -> Json:
    """A pod of a gang, for which one node is best: that with the slot of its number."""
    slot = {"matchExpressions": [{"key": SLOT, "operator": "In", "values": [str(number)]}]}
    preferred = [{"weight": 100, "preference": slot}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return pod(f"rank-{number}", gpus=8, gang="train", size=FLEET, affinity=affinity)


def placed(pods: Pods) -> dict[str, str]:
    """Where the members of a gang come to run; they are gone then."""
    names = pods.create(*(member(number) for number in range(FLEET)))
    found = pods.running(*names)
    pods.delete(*names)
    return found


def test_at_the_wire_everything_comes_back_as_it_went(
    observing: Surefoot, recorder: Recorder, pods: Pods, scheduler: MakesScheduler
) -> None:
    """/filter returns every name in order, /prioritize 0 for each, /preempt the victims it was given."""
    with served(recorder) as url:
        running = scheduler(configuration(extender(url)))
        pods.create(*(pod(f"low-{number}", gpus=8, priority="low") for number in range(FLEET)))
        pods.running(*(f"low-{number}" for number in range(FLEET)))
        pods.create(*(pod(f"high-{number}", gpus=8, priority="high", gang="x") for number in "ab"))
        pods.running("high-a", "high-b")
    for call in recorder.of("filter"):
        assert call.answered["NodeNames"] == call.asked["NodeNames"]
        assert not call.answered["FailedNodes"]
        assert not call.answered["FailedAndUnresolvableNodes"]
    for call in recorder.of("prioritize"):
        zeros = [{"Host": name, "Score": 0} for name in call.asked["NodeNames"]]
        assert call.answered == zeros
    for call in recorder.of("preempt"):
        assert call.answered["NodeNameToMetaVictims"] == call.asked["NodeNameToMetaVictims"]
        assert len(call.asked["NodeNameToMetaVictims"]) > 1
    assert {call.verb for call in recorder.calls} == {"filter", "prioritize", "preempt"}
    assert running.extender_errors() == []


def test_placements_are_those_without_surefoot(
    observing: Surefoot, pods: Pods, scheduler: MakesScheduler
) -> None:
    """Where each pod has one best node it goes there, degraded or not, with Surefoot and without."""
    alone = scheduler(configuration(), name="alone")
    without = placed(pods)
    alone.kill()
    observed = scheduler(configuration(extender(observing.url)))
    assert placed(pods) == without
    assert without == {f"rank-{number}": f"gpu-{number}" for number in range(FLEET)}
    assert observing.calls("filter") == FLEET
    assert observed.extender_errors() == []


def test_the_cache_says_what_it_would_have_done(
    cache: Cache, observing: Surefoot, pods: Pods, scheduler: MakesScheduler
) -> None:
    """A record for each decision: nodes that it would have refused with the reason, and its favourite."""
    scheduler(configuration(extender(observing.url)))
    degraded = {"kubernetes.io/hostname": "gpu-1"}
    pods.create(member(3), pod("stuck", gpus=8, gang="x", nodeSelector=degraded))
    assert pods.running("rank-3", "stuck") == {"rank-3": "gpu-3", "stuck": "gpu-1"}
    told = {each["ask"]["pod"]: each for each in records(cache, "filter", 2)}
    assert {each["mode"] for each in told.values()} == {"observe"}
    assert told["rank-3"]["verdict"] == "pass"
    assert told["rank-3"]["counts"] == {Reason.GPU_DEGRADED.value: len(SICK)}
    assert told["rank-3"]["best"]["node"] == "gpu-0"
    assert told["stuck"]["verdict"] == "veto"
    assert told["stuck"]["counts"] == {Reason.GPU_DEGRADED.value: 1}


def records(cache: Cache, verb: str, count: int) -> list[Any]:
    """The decision records of one verb in the cache, once there are `count`."""
    with Redis(port=cache.port, protocol=2) as client:

        def found() -> list[Any]:
            entries: Any = client.xrange(keys.DECISIONS.name)
            all_of_them = (json.loads(fields[b"record"]) for _, fields in entries)
            return [each for each in all_of_them if each["verb"] == verb]

        eventually(lambda: len(found()) >= count, f"{count} decisions on {verb} are recorded")
        return found()
