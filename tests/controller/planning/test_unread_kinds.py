"""A kind of groups that cannot be read: its gangs wait, and nobody else does."""

from __future__ import annotations

import http.client
from dataclasses import replace

import pytest
from kubes import Call, Fault, refuses
from servers import eventually
from town import QUICK, Town, figure, town

from extender.controller.control import Controller
from scoring.gangs.record import GangState
from scoring.gangs.rules import GATE, GangRules, Hold
from scoring.model import Convention
from scoring.planning.outcome import Lack

__all__ = ["town"]

RULES = GangRules(plan=dict.fromkeys((Convention.SUREFOOT, Convention.COSCHEDULING), Hold.REQUIRE))
HASTY = replace(QUICK, patience_s=0.2)
MPI = {"scheduling.x-k8s.io/pod-group": "mpi"}
FORBIDDEN = refuses(403, "podgroups is forbidden: User x cannot list")


def garbage(call: Call) -> None:
    """No JSON of an API server."""
    call.answer(200, b"<html>welcome</html>")


@pytest.fixture
def barred(town: Town, monkeypatch: pytest.MonkeyPatch) -> dict[str, Fault]:
    """How lists of some kinds are answered, in a cluster of four nodes that serves all of them."""
    town.nodes("n0", "n1", "n2", "n3")
    town.api.groups |= {
        "batch": {"v1": ("jobs",)},
        "scheduling.x-k8s.io": {"v1alpha1": ("podgroups",)},
    }
    faults: dict[str, Fault] = {}
    sound = town.api.list
    monkeypatch.setattr(town.api, "list", lambda call: faults.get(call.kind, sound)(call))
    return faults


def readiness(of: Controller) -> tuple[int, str]:
    """Status and text of its probe."""
    connection = http.client.HTTPConnection(of.address, timeout=10)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("fault", "told"),
    [(FORBIDDEN, "403: podgroups is forbidden"), (garbage, "cannot be read")],
    ids=["forbidden", "garbage"],
)
def test_gangs_of_a_kind_that_cannot_be_read_wait_and_are_told_why(
    town: Town, barred: dict[str, Fault], fault: Fault, told: str
) -> None:
    """The others are planned; when it can be read, its gangs are too."""
    barred["podgroups"] = fault
    train = town.gang("train")
    mpi = [town.pod(f"mpi-{at}", labels=MPI) for at in range(2)]
    controller = town.begin(timing=HASTY, rules=RULES)
    town.let_go(*train)
    record = town.says(lambda record: record.lack == Lack.KIND_UNREADABLE, "mpi")
    assert record.state is GangState.WAITING
    assert "podgroups.scheduling.x-k8s.io cannot be read" in record.summary
    assert told in record.summary
    assert [(town.nominated(key), town.gates(key)) for key in mpi] == [(None, [GATE])] * 2
    status, text = readiness(controller)
    assert status == 503
    assert told in text
    assert "gangs that need it wait" in text
    name = 'surefoot_kube_unlisted{kind="podgroups.scheduling.x-k8s.io"}'
    assert figure(controller, name) == 1
    group = {"metadata": {"namespace": "lab", "name": "mpi"}, "spec": {"minMember": 2}}
    town.api.set("podgroups", group)
    barred.clear()
    assert set(town.let_go(*train, *mpi)) == {"n0", "n1", "n2", "n3"}
    assert figure(controller, name) == 0
    eventually(lambda: readiness(controller)[0] == 200, "ready")


def test_who_states_its_size_needs_no_jobs(town: Town, barred: dict[str, Fault]) -> None:
    """They would say no more; who does not state it waits for them."""
    barred["jobs"] = refuses(403, "jobs is forbidden")
    train = town.gang("train")
    town.pod("open-0", labels={GATE: "open"})
    town.begin(timing=HASTY, rules=RULES)
    town.let_go(*train)
    record = town.says(lambda record: record.lack == Lack.KIND_UNREADABLE, "open")
    assert "jobs.batch cannot be read" in record.summary


@pytest.mark.parametrize("kind", ["podgroups", "pods"])
def test_nobody_leads_without_having_tried_or_without_pods(
    town: Town, barred: dict[str, Fault], kind: str
) -> None:
    """An API server that has just started refuses everything for a moment; and without pods or nodes
    nothing can be said, however long it lasts.
    """
    barred[kind] = FORBIDDEN
    timing = replace(QUICK, patience_s=3600.0) if kind == "podgroups" else HASTY
    controller = town.begin(timing=timing, rules=RULES)
    reflector = next(each for each in controller._reflectors() if each.name.startswith(kind))
    eventually(lambda: sum(reflector.restarts.values()) >= 5, "some tries")
    assert not controller.leads
    barred.clear()
    eventually(lambda: controller.leads, "it leads")
