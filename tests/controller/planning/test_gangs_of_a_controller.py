"""Gangs from the API server to lifted gates: the whole controller, while all goes as planned."""

from __future__ import annotations

import json
import threading
from functools import partial

import pytest
from kubes import ApiServer, Call
from redis import Redis
from servers import eventually
from town import Town, figure, town

from extender.config.model import Mode
from scoring.gangs.record import GangState
from scoring.gangs.rules import GATE, WAKE, GangRules, Hold, OnShortfall
from scoring.model import Convention, GangKey
from scoring.planning.outcome import Lack

__all__ = ["town"]

ON_SHORTFALL = "surefoot.dev/on-shortfall"


def test_a_gang_is_nominated_and_then_lifted_with_two_writes_a_member(town: Town) -> None:
    """Nothing happens to any before the last of them exists."""
    town.nodes("n0", "n1")
    town.begin()
    first = town.member("train-0")
    town.says(lambda record: record.lack == Lack.MEMBERS_MISSING)
    assert town.writes() == []
    last = town.member("train-1")
    assert set(town.let_go(first, last)) == {"n0", "n1"}
    for key in (first, last):
        assert [each.route.part for each in town.writes(key)] == ["status", ""]
    lifted = [number for number, each in enumerate(town.writes()) if not each.route.part]
    assert min(lifted) == 2, "both are nominated before the first is lifted"


def test_of_two_gangs_with_room_for_one_the_second_holds_nothing(town: Town) -> None:
    """It is told why, and has its turn once there is room."""
    town.nodes("n0", "n1")
    one = town.gang("train")
    town.begin()
    town.let_go(*one)
    other = town.gang("other")
    record = town.says(lambda record: bool(record.lack), "other")
    assert record.state is GangState.WAITING
    assert "0 of 2 members fit" in record.summary
    for key in one:
        town.bind(key)
    town.says(lambda record: record.state is GangState.RUNNING)
    assert [town.nominated(key) for key in other] == [None, None]
    assert [town.gates(key) for key in other] == [[GATE], [GATE]]
    assert not any(town.writes(key) for key in other)
    for key in one:
        town.api.delete("pods", key)
    assert set(town.let_go(*other)) == {"n0", "n1"}


def test_a_nomination_that_is_cleared_is_written_again(town: Town) -> None:
    """Whoever cleared it."""
    town.nodes("n0", "n1")
    keys = town.gang("train")
    town.begin()
    nodes = town.let_go(*keys)
    town.api.edit("pods", keys[0], lambda body: body["status"].pop("nominatedNodeName"))
    eventually(lambda: town.nominated(keys[0]) == nodes[0], "it is nominated again")
    assert len(town.writes(keys[0])) == 3


def test_a_node_that_turns_bad_before_the_lift_is_planned_around(town: Town) -> None:
    """The next plan stands; no gate is lifted for a nomination of the last."""
    town.nodes("n0", "n1", "n2")
    held, release = threading.Event(), threading.Event()

    def hold(call: Call) -> None:
        if call.route.name == "train-1" and not release.is_set():
            held.set()
            release.wait(60)

    town.api.heeding = hold
    keys = town.gang("train")
    town.begin()
    first = eventually(lambda: town.nominated(keys[0]), "the first nomination", within_s=30)
    assert held.wait(30)
    assert first is not None
    town.report(first, sick={0: "RESET_REQUIRED"})
    again = eventually(lambda: town.nominated(keys[0]) != first, "another node", within_s=30)
    assert again
    release.set()
    nodes = town.let_go(*keys)
    assert first not in nodes
    assert len(set(nodes)) == 2
    parts = [each.route.part for each in town.writes(keys[0])]
    assert parts == ["status", "status", ""], "it was lifted once, and last"


def test_a_plan_that_proceeds_is_not_made_again(town: Town) -> None:
    """One plan, though four pods are nominated, lifted and bound, and the cache says so."""
    town.nodes("n0", "n1")
    controller = town.begin()
    eventually(lambda: controller.leads and len(town.fleet.cluster) == 2, "it leads", within_s=30)
    keys = [town.member(f"train-{at}", size=4, gpus=4) for at in range(3)]
    town.says(lambda record: record.lack == Lack.MEMBERS_MISSING)
    before = figure(controller, "surefoot_gang_plans_total")
    keys.append(town.member("train-3", size=4, gpus=4))
    town.let_go(*keys)

    def knows(count: int) -> bool:
        return sum(map(len, town.fleet.allocations.values())) == count

    for number, key in enumerate(keys):
        town.bind(key)
        eventually(partial(knows, number + 1), "the cache knows")
    town.says(lambda record: record.state is GangState.RUNNING)
    assert figure(controller, "surefoot_gang_plans_total") - before == 1


def test_a_seat_that_is_denied_twice_is_left_out(town: Town) -> None:
    """kube-scheduler knows what the planner does not: the gang is planned elsewhere."""
    town.nodes("n0", "n1", "n2")
    key, other = town.gang("train")
    controller = town.begin()
    denied, taken = town.let_go(key, other)
    town.bind(other)
    for _ in range(2):
        eventually(lambda: town.nominated(key) == denied, "it is tried")
        town.looks_twice(controller)
        town.refuse(key)
    eventually(lambda: town.nominated(key) not in (None, denied), "the other node")
    assert town.nominated(key) != taken


def test_who_observes_touches_no_pod_and_holds_nobody(town: Town) -> None:
    """What would be is recorded all the same; no sign of life has replicas wait for its plans."""
    town.nodes("n0", "n1")
    keys = [*town.gang("train"), town.pod("stray")]
    controller = town.begin(mode=Mode.OBSERVE)
    record = town.says(lambda record: record.state is GangState.PLANNED)
    assert record.hold is Hold.OFF
    assert {seat.node for seat in record.seats.values()} == {"n0", "n1"}
    town.looks_twice(controller)
    assert town.writes() == []
    assert all(town.gates(key) == [GATE] for key in keys)
    assert town.fleet.leader_s is None


def test_pods_at_our_gate_without_a_gang_are_let_go(town: Town) -> None:
    """Others' gates stay."""
    alone = town.pod("alone")
    queued = town.pod("queued", gates=("kueue.x-k8s.io/admission", GATE, "team.dev/later"))
    unplanned = town.pod("unplanned", labels={"scheduling.x-k8s.io/pod-group": "torch"})
    town.nodes("n0")
    town.begin()

    def is_free(key: str) -> bool:
        return not town.gates(key)

    for key in (alone, unplanned):
        eventually(partial(is_free, key), f"{key} is let go", within_s=30)
    rest = ["kueue.x-k8s.io/admission", "team.dev/later"]
    eventually(lambda: town.gates(queued) == rest, "our gate alone is lifted")


def test_a_group_that_says_that_it_is_no_gang_is_let_go(town: Town) -> None:
    """Its pods wait for nobody."""
    town.api.groups["scheduling.k8s.io"] = {"v1alpha2": ("podgroups",)}
    body = {"metadata": {"name": "ranks", "namespace": "lab", "uid": "uid-ranks"}}
    town.api.set("podgroups", {**body, "spec": {"schedulingPolicy": {"basic": {}}}})
    key = town.pod("ranks-0", schedulingGroup={"podGroupName": "ranks"})
    town.nodes("n0")
    town.begin(rules=GangRules(plan={Convention.NATIVE: Hold.REQUIRE}))
    eventually(lambda: town.gates(key) == [], "it is let go", within_s=30)
    assert town.nominated(key) is None
    assert town.says(lambda _: True, "ranks").hold is Hold.OFF


def test_a_preferred_plan_is_carried_out_as_well(town: Town) -> None:
    """And recorded as one that binds nobody."""
    town.nodes("n0", "n1")
    keys = town.gang("train")
    town.begin(rules=GangRules(plan={Convention.SUREFOOT: Hold.PREFER}))
    assert set(town.let_go(*keys)) == {"n0", "n1"}
    assert town.says(lambda record: not record.lack).hold is Hold.PREFER


def test_a_gang_that_may_evict_is_nominated_where_lower_pods_run(town: Town) -> None:
    """And one that may not waits."""
    town.nodes("n0", "n1")
    for name in ("n0", "n1"):
        town.pod(f"low-{name}", gates=(), node=name, phase="Running")
    waits = town.gang("waits", priority=10)
    town.begin()
    town.says(lambda record: bool(record.lack), "waits")
    keys = town.gang("train", priority=10, annotations={ON_SHORTFALL: "preempt"})
    assert set(town.let_go(*keys)) == {"n0", "n1"}
    assert not any(town.writes(key) for key in waits)


def test_a_gang_is_shown_to_autoscalers_after_its_time(town: Town) -> None:
    """Lifted without nominations; when nodes come it is nominated, and woken once."""
    rules = GangRules(on_shortfall=OnShortfall.AUTOSCALE, autoscale_after_s=0.5)
    town.nodes("n0")
    keys = town.gang("train")
    town.begin(rules=rules)
    eventually(lambda: not any(map(town.gates, keys)), "they are lifted", within_s=30)
    assert [town.nominated(key) for key in keys] == [None, None]
    for key in keys:
        town.refuse(key)
    town.nodes("n1")
    town.let_go(*keys)

    def woken() -> bool:
        return all(WAKE in town.read(key)["metadata"]["annotations"] for key in keys)

    eventually(woken, "they are woken")
    town.says(lambda record: record.state is GangState.PLANNED)
    assert all(len(town.writes(key)) == 3 for key in keys), "lifted, nominated, woken"


def test_another_goes_on_where_the_last_leader_ended(town: Town) -> None:
    """Records keep their time, and no pod is written to again."""
    town.nodes("n0", "n1")
    keys, waits = town.gang("train"), town.gang("waits")
    first = town.begin()
    nodes = town.let_go(*keys)
    town.says(lambda record: bool(record.lack), "waits")
    before = dict(town.fleet.plans)
    count = len(town.writes())
    town.begin()
    first.close()
    town.says(lambda record: record.term > before[GangKey("lab/train")].term)
    for key, record in town.fleet.plans.items():
        assert record.since_s == pytest.approx(before[key].since_s, abs=0.01)
        assert record.seats == before[key].seats
    assert len(town.writes()) == count
    assert [town.nominated(key) for key in keys] == nodes
    assert not any(map(town.nominated, waits))


def test_what_the_cache_says_of_a_gang_is_what_is_there(town: Town, client: Redis) -> None:
    """Also once the cache lost it all; and nothing of a gang that is gone."""
    town.nodes("n0", "n1")
    keys = town.gang("train")
    town.begin()
    nodes = town.let_go(*keys)
    town.bind(keys[0])

    def told() -> bool:
        record, gang = town.record(), town.fleet.gangs.get(GangKey("lab/train"))
        if record is None or gang is None:
            return False
        seats = {seat.pod: (seat.node, seat.bound) for seat in record.seats.values()}
        return (
            seats == {"train-0": (nodes[0], True), "train-1": (nodes[1], False)}
            and set(gang.members) == {"uid-train-0", "uid-train-1"}
            and (gang.size, record.size) == (2, 2)
        )

    eventually(told, "the gang and its record")
    client.flushall()
    town.report("n0", "n1")
    eventually(told, "both again", within_s=30)
    for key in keys:
        town.api.delete("pods", key)
    eventually(lambda: not town.fleet.plans and not town.fleet.gangs, "nothing of it")


def test_a_gang_that_runs_in_part_for_too_long_is_told_of(town: Town) -> None:
    """As a figure; its pods are left alone."""
    town.nodes("n0")
    town.member("train-0", gates=(), node="n0", phase="Running")
    town.member("train-1")
    controller = town.begin(rules=GangRules(partial_after_s=0.3))
    eventually(lambda: figure(controller, "surefoot_gangs_overdue") == 1, "it is overdue")
    assert figure(controller, 'surefoot_gangs{state="partial"}') == 1
    assert town.writes() == []


def test_a_gang_that_runs_in_part_is_evicted_where_that_is_allowed(
    town: Town, api: ApiServer
) -> None:
    """Each member once, by its uid and version."""
    town.nodes("n0")
    key = town.member("train-0", gates=(), node="n0", phase="Running")
    town.member("train-1")
    version = town.read(key)["metadata"]["resourceVersion"]
    town.begin(rules=GangRules(partial_after_s=0.3, release_partial=True))
    eventually(lambda: api.get("pods", key) is None, "it is evicted", within_s=30)
    (write,) = town.writes(key)
    assert (write.verb, write.route.part) == ("POST", "eviction")
    wanted = json.loads(write.body)["deleteOptions"]["preconditions"]
    assert wanted == {"uid": "uid-train-0", "resourceVersion": version}
