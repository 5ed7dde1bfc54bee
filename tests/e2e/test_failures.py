"""What becomes of GPU pods when Surefoot is gone, slow or talks nonsense, or when its cache is gone.

Two switches decide: kube-scheduler's `ignorable` where no answer comes that can be used, and
Surefoot's `failurePolicy` where it answers and knows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.impostors import Impostor, in_place_of
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.processes import free_port
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from scoring.reasons import Reason

DEGRADED = {0: "DEGRADED"}
INSTEAD: dict[str, dict[str, Any]] = {
    "nobody": {},
    "slow": {"after_s": 30.0},
    "broken": {"status": 500, "body": b"oops"},
    "no-json": {"body": b"<html>please log in</html>"},
    "an-error": {"body": json.dumps({"Error": "out of order"}).encode()},
    "a-stranger": {"body": json.dumps({"NodeNames": ["nowhere"]}).encode()},
}
"""What may be at Surefoot's address instead of it."""


@pytest.fixture(params=INSTEAD)
def instead(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of something that is not Surefoot."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = INSTEAD[request.param]
    if not options:
        yield url
        return
    with in_place_of(port, Impostor(**options)) as impostor:
        yield url
    assert impostor.calls


def test_ignorable_lets_pods_pass_without_surefoot(
    instead: str, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """Fail-open: the pod runs as if there were no extender, and the log says so."""
    gpu_nodes(2)
    running = scheduler(configuration(extender(instead, ignorable=True, httpTimeout="1s")))
    pods.create(pod("rank-0", gpus=8, gang="train"))
    pods.running("rank-0")
    assert running.extender_errors()


def test_not_ignorable_holds_pods_back_without_surefoot(
    instead: str, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """Fail-closed: the GPU pod waits and is tried again; a pod without GPUs is none of its business."""
    gpu_nodes(2)
    running = scheduler(configuration(extender(instead, ignorable=False, httpTimeout="1s")))
    pods.create(pod("rank-0", gpus=8, gang="train"), pod("web", gpus=0))
    pods.running("web")
    eventually(lambda: running.attempts("error") > 1, "it is tried again")
    assert pods.nodes()["rank-0"] is None
    assert running.extender_errors()


def test_a_pod_held_back_runs_once_surefoot_is_there_again(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Fail-closed loses no pod: it is retried, and judged."""
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={"gpu-0": DEGRADED})
    served = surefoot(nodes=2)
    running = scheduler(configuration(extender(served.url, ignorable=False)))
    served.kill()
    pods.create(pod("rank-0", gpus=8, gang="train"))
    eventually(lambda: running.attempts("error"), "its first attempt fails")
    served.start(nodes=2)
    assert pods.running("rank-0") == {"rank-0": "gpu-1"}


def test_the_last_snapshot_counts_while_the_cache_is_away(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """A lost cache is not a lost memory: until `maxSnapshotAge` the verdicts stand."""
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={"gpu-0": DEGRADED})
    scheduler(configuration(extender(surefoot(nodes=2).url)))
    cache.kill()
    pods.create(pod("rank-0", gpus=8, gang="train"))
    assert pods.running("rank-0") == {"rank-0": "gpu-1"}
    pods.create(pod("rank-1", gpus=8, gang="train"))
    assert f"1 {Reason.GPU_DEGRADED.text}" in pods.refused("rank-1")


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_a_snapshot_that_is_too_old_speaks_for_nobody(
    policy: str,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
) -> None:
    """Beyond `maxSnapshotAge`, `open` passes what was vetoed, and `closed` refuses all and says why."""
    gpu_nodes(1)
    gpu_nodes.report(cache.settings, sick={"gpu-0": DEGRADED})
    served = surefoot(nodes=1, failurePolicy=policy, maxSnapshotAge="2s")
    running = scheduler(configuration(extender(served.url)))
    cache.kill()
    eventually(lambda: not served.ready(), "its snapshot is too old")
    pods.create(pod("rank-0", gpus=8, gang="train"))
    if policy == "open":
        assert pods.running("rank-0") == {"rank-0": "gpu-0"}
    else:
        assert f"1 {Reason.NO_SNAPSHOT.text}" in pods.refused("rank-0")
        throughout(lambda: pods.nodes()["rank-0"] is None, "it waits")
    assert running.extender_errors() == []
