"""From the API server into the cache, and from there to a reader: the whole controller."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_objects import node, pod
from commands import Surefoot
from kubes import ApiServer, refuses
from papers import node_paper, paper
from redis import Redis
from replicas import samples
from servers import Cache, eventually
from waiters import RESET

from extender import logs
from extender.controller.control import Controller, ControlSettings
from extender.controller.planning import witness
from extender.controller.signs import owners
from extender.kube.lease import LeaseSettings
from extender.kube.status import Timing
from extender.listening import BindError
from extender.store import fleets, keys
from extender.store.connect import StoreSettings
from extender.store.documents import Document
from extender.store.writer import Writer
from scoring.model import Fleet, GpuUuid, NodeName

QUICK = Timing(first_pause_s=0.02, last_pause_s=0.2)
Begin = Callable[..., Controller]


def settings(
    api: ApiServer, store: StoreSettings, tmp_path: Path, port: int = 0
) -> ControlSettings:
    """A controller of the API server and the cache, with little patience."""
    return ControlSettings(
        kube=api.settings(tmp_path),
        store=store,
        bind=("127.0.0.1", port),
        version="0.0.test",
        lease=LeaseSettings(duration_s=1.0, retry_s=0.1),
        timing=QUICK,
    )


@pytest.fixture
def begin(api: ApiServer, tmp_path: Path) -> Iterator[Begin]:
    """Start controllers of the API server; all are closed after the test."""
    started: list[Controller] = []

    def start(store: StoreSettings) -> Controller:
        made = Controller(settings(api, store, tmp_path))
        started.append(made)
        made.start()
        return made

    yield start
    for one in started:
        one.close()


def page(address: str, path: str) -> tuple[int, str]:
    """Status and text of a page."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def ready(controller: Controller) -> bool:
    """Whether its probe says so."""
    return page(controller.address, "/readyz")[0] == 200


def leads(controller: Controller) -> bool:
    """Whether it leads, and has written what it found first."""
    return controller.leads and ready(controller)


def holders(fleet: Fleet) -> dict[str, dict[str, int]]:
    """How many GPUs each pod holds, by node."""
    return {
        name: {held.pod: held.count for held in them} for name, them in fleet.allocations.items()
    }


def held(pod_name: str, **more: object) -> Document:
    """One GPU of gpu-0, put by somebody else."""
    who = {"pod": pod_name, "uid": f"uid-{pod_name}", "namespace": "lab", "node": "gpu-0"}
    return paper("Allocation", **who, resource="nvidia.com/gpu", count=1, **more)


def test_pods_and_nodes_reach_the_cache(api: ApiServer, begin: Begin, store: StoreSettings) -> None:
    """Who holds how many GPUs where, and what the API server says of each node."""
    api.set("nodes", node("gpu-0", zone="z1"))
    api.set("pods", pod("a", 2))
    api.set("pods", pod("foreign", 1, node="gpu-1", schedulerName="volcano"))
    api.set("pods", pod("waits", 8, node=None))
    begin(store)
    goal = {"gpu-0": {"a": 2}, "gpu-1": {"foreign": 1}}
    eventually(lambda: holders(fleets.look(store)[0]) == goal, "the list")
    eventually(lambda: fleets.look(store)[0].cluster, "the node")
    api.set("pods", pod("waits", 8, node="gpu-2"))
    api.delete("pods", "lab/a")
    goal = {"gpu-1": {"foreign": 1}, "gpu-2": {"waits": 8}}
    eventually(lambda: holders(fleets.look(store)[0]) == goal, "the changes")
    cordoned = node("gpu-0", zone="z2")
    cordoned["spec"]["unschedulable"] = True
    api.set("nodes", cordoned)
    name = NodeName("gpu-0")
    eventually(lambda: fleets.look(store)[0].cluster[name].unschedulable, "the cordon")
    assert fleets.look(store)[0].cluster[name].labels == {"zone": "z2"}


def test_what_no_pod_holds_any_more_is_swept_at_the_start(
    api: ApiServer, begin: Begin, store: StoreSettings
) -> None:
    """Allocations of pods that went while no controller was there, hand-put ones too."""
    writer = Writer(store)
    writer.put([held(name, gpus=[f"GPU-{name}"]) for name in ("gone", "a")])
    writer.close()
    api.set("pods", pod("a"))
    begin(store)
    eventually(lambda: holders(fleets.look(store)[0]) == {"gpu-0": {"a": 1}}, "the sweep")
    (found,) = fleets.look(store)[0].allocations[NodeName("gpu-0")]
    assert found.gpus == frozenset({GpuUuid("GPU-a")}), "an agent knows better which ones"


def test_a_refused_list_sweeps_nothing(api: ApiServer, begin: Begin, store: StoreSettings) -> None:
    """Without the right to list, nothing is known to be gone."""
    writer = Writer(store)
    writer.put([held("a")])
    writer.close()
    api.faults["list"].extend([refuses(403, "forbidden")] * 1000)
    controller = begin(store)
    eventually(lambda: "403: forbidden" in page(controller.address, "/readyz")[1], "the refusal")
    assert page(controller.address, "/readyz")[0] == 503
    assert page(controller.address, "/livez") == (200, "ok\n")
    assert holders(fleets.look(store)[0]) == {"gpu-0": {"a": 1}}


def test_a_cache_that_comes_late_is_swept_too(api: ApiServer, begin: Begin, cache: Cache) -> None:
    """The list came while the cache was away: when it is back, another list tells what to sweep."""
    writer = Writer(cache.settings)
    writer.put([held("gone")])
    writer.close()
    api.set("pods", pod("a"))
    cache.pause()
    controller = begin(cache.settings)
    eventually(
        lambda: all(each.reflector.status.synced for each in controller.sources),
        "the lists",
        within_s=30,
    )
    assert not leads(controller)
    cache.resume()
    goal = {"gpu-0": {"a": 1}}
    eventually(lambda: holders(fleets.look(cache.settings)[0]) == goal, "the sweep", within_s=20)
    eventually(lambda: leads(controller), "ready")


def test_a_removal_that_the_cache_lost_is_repeated(
    api: ApiServer, begin: Begin, store: StoreSettings, client: Redis
) -> None:
    """A failover to a replica that lagged: the pod is gone, and nobody wants its document."""
    api.set("pods", pod("a"))
    api.set("pods", pod("b"))
    controller = begin(store)
    eventually(lambda: leads(controller) and _seen(controller) == 2, "written")
    lagging = client.hget(keys.ALLOCATIONS.name, "uid-b/nvidia.com/gpu")
    api.delete("pods", "lab/b")
    eventually(lambda: holders(fleets.look(store)[0]) == {"gpu-0": {"a": 1}}, "the removal")
    eventually(lambda: _seen(controller) == 1, "all of it")
    pipe = client.pipeline(transaction=True)
    pipe.hset(keys.ALLOCATIONS.name, "uid-b/nvidia.com/gpu", lagging)
    pipe.decr(keys.GENERATION.name)
    pipe.xtrim(keys.CHANGES.name, maxlen=0)
    pipe.execute()
    eventually(lambda: holders(fleets.look(store)[0]) == {"gpu-0": {"a": 1}}, "the sweep")


def test_one_of_two_controllers_writes(api: ApiServer, begin: Begin, store: StoreSettings) -> None:
    """The other is as ready, and knows as much."""
    api.set("nodes", node("gpu-0", zone="z1"))
    api.set("pods", pod("a"))
    both = [begin(store), begin(store)]
    eventually(lambda: all(map(ready, both)), "both are ready")
    eventually(lambda: fleets.look(store)[0].generation == 2, "the first state")
    api.set("pods", pod("b", node="gpu-1"))
    eventually(lambda: "gpu-1" in fleets.look(store)[0].allocations, "the change")
    eventually(lambda: all(_seen(each) == 2 for each in both), "both have seen it")
    assert fleets.look(store)[0].generation == 3
    assert [each.leads for each in both].count(True) == 1


def test_another_takes_over_when_the_leader_ends(
    api: ApiServer, begin: Begin, store: StoreSettings
) -> None:
    """At once, since the Lease is given back; what changes from then on is written by the other."""
    first = begin(store)
    eventually(lambda: first.leads, "the first leads")
    second = begin(store)
    eventually(lambda: ready(second), "the second is ready")
    first.close()
    api.set("pods", pod("a"))
    eventually(lambda: "gpu-0" in fleets.look(store)[0].allocations, "the change")
    assert second.leads


def _seen(controller: Controller) -> float:
    values = samples(page(controller.address, "/metrics")[1])
    pending = values["surefoot_mirror_pending"]
    return values['surefoot_mirror_documents{kind="Allocation"}'] if not pending else -1.0


def test_owners_of_refused_pods_are_told_unless_their_gang_is_planned(
    api: ApiServer, begin: Begin, store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a planned gang the planning loop says why it waits."""
    monkeypatch.setattr(owners, "PATIENCE_S", 0.0)
    monkeypatch.setattr(owners, "TICK_S", 0.1)
    monkeypatch.setattr(witness, "GATHERS_S", 0.0)
    for job in ("ranks", "tune"):
        body = pod(f"{job}-0", 2, node=None, phase="Pending")
        body["metadata"]["ownerReferences"] = [
            {"kind": "Job", "name": job, "uid": f"uid-job-{job}", "controller": True}
        ]
        if job == "ranks":
            body["metadata"]["labels"] = {"surefoot.dev/gang": job, "surefoot.dev/gang-size": "2"}
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        body["status"]["conditions"] = [{**refused, "message": RESET}]
        api.set("pods", body)
    begin(store)

    def heard() -> set[str]:
        events = [write.json for write in list(api.writes) if write.route.kind == "events"]
        return {
            f"{each['involvedObject']['name']} {each['reason']}"
            for each in events
            if each["involvedObject"]["kind"] == "Job"
        }

    eventually(lambda: len(heard()) == 2, "both are told", within_s=20.0)
    assert heard() == {"tune ResetRequired", "ranks GangMembersMissing"}


def test_its_figures_are_there(api: ApiServer, begin: Begin, store: StoreSettings) -> None:
    """Objects, lists, restarts, writes, lag and what was skipped."""
    api.set("pods", pod("a"))
    api.set("pods", pod("bad", "many"))
    controller = begin(store)
    eventually(lambda: leads(controller) and _seen(controller) == 1, "written")
    values = samples(page(controller.address, "/metrics")[1])
    assert values['surefoot_kube_skipped_total{kind="pods"}'] == 1
    assert values['surefoot_kube_lists_total{kind="nodes"}'] == 1
    assert values['surefoot_kube_watch_restarts_total{kind="pods",reason="gone"}'] == 0
    assert values['surefoot_mirror_writes_total{outcome="written"}'] == 1
    assert values["surefoot_mirror_lag_seconds"] == 0
    assert 0 <= values['surefoot_kube_silence_seconds{kind="pods"}'] < 60
    assert values['surefoot_build_info{version="0.0.test"}'] == 1


@pytest.mark.parametrize(
    ("path", "status"), [("/", 404), ("/livez", 200), ("/healthz", 200), ("/metrics", 200)]
)
def test_its_pages(begin: Begin, store: StoreSettings, path: str, status: int) -> None:
    """Those that Kubernetes and Prometheus ask for."""
    assert page(begin(store).address, path)[0] == status


def test_head_has_no_body(begin: Begin, store: StoreSettings) -> None:
    """Its length alone: a body would be the next answer of the connection."""
    host, _, port = begin(store).address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"HEAD /livez HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"Content-Length: 3" in head
    assert body == b""


def test_an_address_that_is_taken_is_told(
    api: ApiServer, begin: Begin, store: StoreSettings, tmp_path: Path
) -> None:
    """In one sentence, before anything starts."""
    port = int(begin(store).address.rpartition(":")[2])
    with pytest.raises(BindError, match=rf"^cannot listen on 127\.0\.0\.1:{port}: "):
        Controller(settings(api, store, tmp_path, port))


# --- the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_runs_until_a_signal_ends_it(
    api: ApiServer, store: StoreSettings, tmp_path: Path, number: signal.Signals
) -> None:
    """JSON logs say where it listens; exit code 0."""
    api.set("pods", pod("a"))
    file = api.settings(tmp_path).kubeconfig
    words = ("controller", f"--kubeconfig={file}", "--bind=127.0.0.1:0")
    with Surefoot(store.url).process(*words) as process:
        assert process.stderr is not None
        told = json.loads(process.stderr.readline())
        while told["event"] != "listening":
            told = json.loads(process.stderr.readline())
        assert told["api_server"] == f"http://127.0.0.1:{api.port}"
        eventually(lambda: "leads in term" in page(told["address"], "/readyz?verbose")[1], "leads")
        eventually(lambda: page(told["address"], "/readyz")[0] == 200, "ready")
        process.send_signal(number)
        _, rest = process.communicate(timeout=20)
        assert all(json.loads(line) for line in rest.splitlines())
        assert process.returncode == 0
    assert holders(fleets.look(store)[0]) == {"gpu-0": {"a": 1}}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--kubeconfig=/nowhere"], "error: /nowhere: "),
        (["--kubeconfig={file}", "--context=other"], "error: {file}: "),
        (["--kubeconfig={junk}"], "error: {junk}: "),
        (["--kubeconfig={file}", "--bind=127.0.0.1:{taken}"], "error: cannot listen on "),
    ],
    ids=["no file", "no context", "no kubeconfig", "taken"],
)
def test_what_it_cannot_start_with_is_told(
    api: ApiServer,
    store: StoreSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    problem: str,
) -> None:
    """One sentence, and exit code 1."""
    monkeypatch.setattr(logs, "configure", lambda **_: None)  # those of the tests stay
    (tmp_path / "junk").write_text("- just\n- a list\n")
    names = {
        "file": str(api.settings(tmp_path).kubeconfig),
        "junk": str(tmp_path / "junk"),
        "taken": str(api.port),
    }
    ended = Surefoot(store.url)("controller", *(w.format(**names) for w in words))
    assert ended.exit_code == 1
    assert ended.stderr.startswith(problem.format(**names))
    assert len(ended.stderr.splitlines()) == 1


def test_only_this_command_loads_the_kubernetes_client() -> None:
    """Half a second, and 60 MiB, that no other process should pay."""
    code = "import sys; from extender import wiring; print('kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_explain_tells_what_the_api_server_says_against_a_node(
    api: ApiServer, begin: Begin, store: StoreSettings, tmp_path: Path
) -> None:
    """The cordon, the taint, and the GPU that the device plugin took back."""
    writer = Writer(store)
    writer.put([node_paper("gpu-0")])
    writer.close()
    there = node("gpu-0", zone="z1")
    there["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "maintenance", "value": "soon", "effect": "NoSchedule"},
        ],
    }
    there["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    api.set("nodes", there)
    begin(store)
    eventually(lambda: fleets.look(store)[0].cluster, "the node")
    asker = json.dumps(pod("asker", 1, node=None))
    result = Surefoot(store.url)("explain", "--pod", "-", "-o", "json", stdin=asker)
    assert result.exit_code == 0, "verdicts are not about that"
    told = json.loads(result.stdout)["nodes"]["gpu-0"]["evidence"]
    assert [(each["cause"], each["value"]) for each in told] == [
        ("cordoned", "takes no new pods"),
        ("taint", "maintenance=soon:NoSchedule"),
        ("allocatable", "7 nvidia.com/gpu of 8 GPUs"),
    ]
