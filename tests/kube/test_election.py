"""Electors as they run: threads, sockets, real time, and processes that are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from electing import spec
from kubes import ApiServer, refuses
from servers import eventually
from unsound import hangs

from extender.kube import lease
from extender.kube.election import Elector
from extender.kube.fence import Fence
from extender.kube.lease import LeaseSettings

QUICK = LeaseSettings(name="surefoot", namespace="lab", duration_s=1.0, retry_s=0.1)
PATIENT = replace(QUICK, duration_s=60.0)
"""A busy machine costs nobody the lead."""
Begin = Callable[..., Elector]


@pytest.fixture
def begin(api: ApiServer, tmp_path: Path) -> Iterator[Begin]:
    """Start electors; all are closed after the test."""
    started: list[Elector] = []

    def start(settings: LeaseSettings = PATIENT, **more: Any) -> Elector:
        made = Elector(api.settings(tmp_path), settings, **more)
        started.append(made)
        made.start()
        return made

    yield start
    for one in started:
        one.close()


def led(elector: Elector, description: str) -> Fence:
    """Its fence, once it leads."""
    fence = eventually(lambda: elector.fence, description)
    assert fence is not None
    return fence


def test_the_first_one_leads_and_the_second_stands_by(begin: Begin) -> None:
    """Both say so."""
    first = begin()
    eventually(lambda: first.leads, "the first one leads")
    second = begin()
    eventually(lambda: second.status.holder == first.identity, "the second one knows")
    assert (second.leads, second.fence, second.status.term) == (False, None, None)
    assert first.status.term == 1
    assert first.identity != second.identity
    assert first.alive


def test_who_is_not_able_to_lead_takes_no_lease(begin: Begin) -> None:
    """Not even a free one; and who leads already keeps it."""
    able = threading.Event()
    waits = begin(able=able.is_set)
    second = begin()
    eventually(lambda: second.leads, "another one leads")
    second.close()
    able.set()
    eventually(lambda: waits.leads, "it is able")
    able.clear()
    assert led(waits, "it leads on").holds()


def test_a_successor_need_not_wait_for_one_that_ended(api: ApiServer, begin: Begin) -> None:
    """Its Lease is given back, and no write of it passes any more."""
    first = begin()
    fence = led(first, "the first one leads")
    second = begin()
    eventually(lambda: second.status.holder, "the second one looks")
    first.close()
    assert not first.alive
    assert not fence.holds()
    eventually(lambda: second.leads, "the second one leads")
    assert spec(api)["holderIdentity"] == second.identity


def test_changes_are_told(begin: Begin) -> None:
    """To whoever plans; a mistake of theirs ends no term."""
    told: list[int | None] = []

    def changed() -> None:
        ready.wait(10)
        told.append(made[0].status.term)
        raise ValueError("a mistake")

    made: list[Elector] = []
    ready = threading.Event()
    made.append(begin(changed=changed))
    ready.set()
    eventually(lambda: made[0].leads, "it leads")
    made[0].raise_to(5)
    eventually(lambda: told == [1, 6], "both terms")
    made[0].close()
    assert told == [1, 6, None]


def test_a_server_that_is_away_costs_the_lead_until_it_is_back(
    api: ApiServer, begin: Begin
) -> None:
    """Said once, in a sentence."""
    elector = begin(QUICK)
    fence = led(elector, "it leads")
    api.stop()
    eventually(lambda: not fence.holds(), "its time is over")
    eventually(lambda: elector.status.problem, "a problem")
    assert "cannot be reached" in str(elector.status.problem)
    assert elector.fence is None
    api.start()
    again = led(elector, "it leads again")
    assert again.term > fence.term
    eventually(lambda: elector.status.problem is None, "no problem")


def test_a_server_that_hangs_is_tried_again_in_time(
    api: ApiServer, begin: Begin, release: threading.Event
) -> None:
    """One lost renewal costs no term."""
    elector = begin(replace(QUICK, duration_s=12.0))
    fence = led(elector, "it leads")
    api.faults["write"].append(hangs(release))
    eventually(lambda: elector.status.problem, "a problem")
    eventually(lambda: elector.status.problem is None, "the next renewal")
    assert elector.fence is fence


def test_what_hinders_is_told(api: ApiServer, begin: Begin) -> None:
    """The right to write Leases is missing, or the namespace is."""
    api.faults["read"].extend([refuses(403, "leases is forbidden")] * 1000)
    elector = begin()
    eventually(lambda: elector.status.problem, "a problem")
    assert "answered 403: leases is forbidden" in str(elector.status.problem)
    assert elector.alive
    api.faults["read"].clear()
    eventually(lambda: elector.leads, "it leads")


def test_a_leader_that_dies_is_replaced(api: ApiServer, begin: Begin) -> None:
    """After its time, without a word of it."""
    api.set(
        "leases",
        {
            "metadata": {"name": "surefoot", "namespace": "lab"},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 3},
        },
    )
    elector = begin()
    assert led(elector, "it leads").term == 4


class TestNamespace:
    """Where the Lease is, where nothing is set."""

    def test_that_of_the_pod(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As its service account says."""
        file = tmp_path / "namespace"
        file.write_text("team-a\n")
        monkeypatch.setattr(lease, "NAMESPACE_FILE", file)
        assert LeaseSettings().place == "team-a"
        assert LeaseSettings(namespace="b").place == "b"

    def test_ours_outside_of_a_pod(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As our manifests make it."""
        monkeypatch.setattr(lease, "NAMESPACE_FILE", tmp_path / "none")
        assert LeaseSettings().place == "surefoot"


WRITER = """
import sys, threading
from pathlib import Path
from extender.kube.election import Elector
from extender.kube.fence import Fence
from extender.kube.errors import KubeError
from extender.kube.lease import LeaseSettings
from extender.kube.settings import KubeSettings
from extender.kube.writing import Writer

kube = KubeSettings(kubeconfig=Path(sys.argv[1]))
elector = Elector(kube, LeaseSettings(name="surefoot", namespace="lab", duration_s=3.0, retry_s=0.1))
elector.start()
while (fence := elector.fence) is None:
    threading.Event().wait(0.01)
writer = Writer(kube, fence)

def write():
    while True:
        try:
            writer.create("/api/v1/namespaces/lab/events", b'{"metadata":{"generateName":"e"}}')
        except KubeError:
            threading.Event().wait(0.01)

for _ in range(8):
    threading.Thread(target=write, daemon=True).start()
sys.stdin.read()
"""


def events(api: ApiServer) -> int:
    """How many writes came from the other process."""
    return sum(write.route.kind == "events" for write in api.writes)


def test_a_process_that_is_stopped_past_its_lease_sends_one_request_at_most(
    api: ApiServer, begin: Begin, tmp_path: Path
) -> None:
    """Eight threads write as fast as they can when SIGSTOP comes; another leads when it goes on."""
    kubeconfig = api.settings(tmp_path).kubeconfig
    stopped = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(kubeconfig)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        eventually(lambda: events(api) > 20, "it writes", within_s=30.0)
        stopped.send_signal(signal.SIGSTOP)
        elector = begin(PATIENT)
        fence = led(elector, "another leads")
        assert fence.term > 1
        before = events(api)
        stopped.send_signal(signal.SIGCONT)
        threading.Event().wait(0.5)
        assert events(api) - before <= 1
        assert elector.fence is fence
    finally:
        stopped.kill()
        stopped.communicate()
