"""Gangs whose members change: made anew, done, late, more or fewer, behind the gates of others."""

from __future__ import annotations

from typing import Final

from asking import Json

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.conventions import indexed_job, members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import Led, MakesLed
from e2e.gating import Gates
from e2e.history import History
from e2e.nodes import NODES, Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from scoring.planning.outcome import Lack

RACK: Final = "node.coreweave.cloud/rack"
QUOTA: Final = {"name": "example.com/quota"}
"""Somebody else's gate."""


def _two_racks(gpu_nodes: Nodes) -> None:
    """Three nodes in each."""
    for rack in ("r1", "r2"):
        gpu_nodes(3, prefix=rack, labels={RACK: rack})


def _rack(node: str) -> str:
    return node.partition("-")[0]


def _spare(nodes: Nodes, ran: dict[str, str]) -> str:
    """The third node of the rack in which a gang of two runs."""
    (rack,) = {_rack(node) for node in ran.values()}
    (found,) = {name for name in nodes.names if _rack(name) == rack} - set(ran.values())
    return found


def _told(surefoot: Led, pods: Pods, gang: str = "train") -> Json:
    """What Surefoot says of a gang; empty: nothing."""
    return surefoot.served.gang(pods.namespace, gang) or {}


def _is(surefoot: Led, pods: Pods, state: str, *, least: int, gang: str = "train") -> None:
    """Wait until Surefoot says this of a gang."""

    def said() -> bool:
        told = _told(surefoot, pods, gang)
        return (told.get("state"), told.get("min")) == (state, least)

    eventually(said, lambda: f"{state} with {least}: {_told(surefoot, pods, gang)}")


def _lacks(surefoot: Led, pods: Pods, lack: Lack, *words: str) -> None:
    """Wait until Surefoot says that a gang lacks this, in a sentence with these words: of pods that come
    one by one it says each time how many there are.
    """

    def said() -> bool:
        told = _told(surefoot, pods)
        return told.get("lack") == lack and all(each in told["summary"] for each in words)

    eventually(said, lambda: f"{lack} {words}: {_told(surefoot, pods)}")


def _holds_nothing(pods: Pods, *names: str) -> bool:
    """Whether these pods have neither a node nor a nomination."""
    nodes, nominations = pods.nodes(), pods.nominations()
    return not any(nodes[name] or nominations[name] for name in names)


# --- made anew -----------------------------------------------------------------------------------


def test_a_member_that_its_job_makes_anew_joins_near_the_others(
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """Its node is cordoned and it is deleted: of four free nodes its successor gets the one in the rack
    where the other member runs on.
    """
    _two_racks(gpu_nodes)
    surefoot = led(0)
    scheduler(configuration(extender(surefoot.url)))
    pods.beside(gates(indexed_job("train", 2)))
    ran = pods.whole("train", 2)
    lost, stays = sorted(ran)
    cluster.api.merge(f"{NODES}/{ran[lost]}", {"spec": {"unschedulable": True}})
    pods.delete(lost)
    again = pods.whole("train", 2)
    assert again == {stays: ran[stays], (again.keys() - {stays}).pop(): _spare(gpu_nodes, ran)}


def test_a_replacement_goes_near_and_not_on_the_node_that_failed_its_predecessor(
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
) -> None:
    """Though it comes at once, and the node is free and looks as healthy as ever."""
    _two_racks(gpu_nodes)
    surefoot = led(0)
    scheduler(configuration(extender(surefoot.url)))
    ran = pods.running(*pods.create(*map(gates, members("train", 2))))
    pods.fail("train-1", "UnexpectedAdmissionError")
    pods.create(gates(pod("train-2", gpus=8, gang="train")))
    assert pods.running("train-0", "train-2") == {
        "train-0": ran["train-0"],
        "train-2": _spare(gpu_nodes, ran),
    }
    assert ran["train-1"] not in {state.holds for state in history.of("train-2")}


def test_a_node_that_failed_a_member_has_it_again_once_it_reports_anew(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """Until then the replacement waits, though that is the only free node."""
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    ran = pods.running(*pods.create(*map(gates, members("train", 2))))
    pods.fail("train-1", "UnexpectedAdmissionError")
    pods.create(gates(pod("train-2", gpus=8, gang="train")))
    _lacks(surefoot, pods, Lack.NO_ROOM)
    throughout(lambda: _holds_nothing(pods, "train-2"), "it waits", for_s=2)
    gpu_nodes.report(cache.settings)
    assert pods.running("train-0", "train-2") == {
        "train-0": ran["train-0"],
        "train-2": ran["train-1"],
    }


def test_a_gang_that_is_made_anew_under_its_name_is_another(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """A Job of two is deleted and one of three made at once, while the old pods still run: it waits for
    a third node, and runs whole.
    """
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    pods.beside(gates(indexed_job("train", 2)))
    old = pods.whole("train", 2)
    uid = _told(surefoot, pods)["uid"]
    pods.remove(indexed_job("train", 2), wait=False)
    pods.beside(gates(indexed_job("train", 3)))
    eventually(lambda: len(pods.all().keys() - old.keys()) == 3, "the new pods are there")
    eventually(lambda: not pods.all().keys() & old.keys(), "the old pods are gone")
    _is(surefoot, pods, "waiting", least=3)
    _lacks(surefoot, pods, Lack.NO_ROOM)
    throughout(lambda: _holds_nothing(pods, *pods.all()), "nobody is bound", for_s=1)
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    pods.whole("train", 3)
    _is(surefoot, pods, "running", least=3)
    assert _told(surefoot, pods)["uid"] != uid


# --- more or fewer -------------------------------------------------------------------------------


def test_members_that_are_done_are_needed_no_more(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """Of three one completes: the gang of the other two runs on, gets its lost member anew, and leaves
    the third node to others.
    """
    surefoot = led(3)
    scheduler(configuration(extender(surefoot.url)))
    pods.beside(gates(indexed_job("train", 3)))
    done, lost, stays = sorted(pods.whole("train", 3))
    pods.complete(done)
    _is(surefoot, pods, "running", least=2)
    pods.create(pod("other", gpus=8))
    pods.running("other")
    pods.delete(lost)
    (again,) = eventually(lambda: pods.all().keys() - {done, stays, "other"}, "it is made anew")
    pods.running(stays, again)
    _is(surefoot, pods, "running", least=2)


def test_a_gang_waits_for_its_last_member_and_says_which_that_is(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """There is room for all: for five seconds nobody is nominated, then all run."""
    surefoot = led(4)
    scheduler(configuration(extender(surefoot.url)))
    late = members("train", 4)
    last = late.pop(2)
    pods.create(*map(gates, late))
    _lacks(surefoot, pods, Lack.MEMBERS_MISSING, "3 of 4 pods exist", "train-2")
    throughout(lambda: _holds_nothing(pods, *pods.all()), "all wait", for_s=5)
    pods.create(gates(last))
    pods.running(*pods.all())
    _is(surefoot, pods, "running", least=4)


def test_a_gang_grows_when_there_is_room_and_shrinks_at_once(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """From two to four on three nodes: the two run on, and none of the new ones starts before there is
    room for both. From four to two: what is left of it runs on, and another gang has the rest.
    """
    surefoot = led(3)
    scheduler(configuration(extender(surefoot.url)))
    job = gates(indexed_job("train", 2))
    pods.beside(job)
    ran = pods.whole("train", 2)
    pods.change(job, parallelism=4, completions=4)
    eventually(lambda: len(pods.gang("train")) == 4, "there are four")
    _is(surefoot, pods, "partial", least=4)
    new = pods.gang("train").keys() - ran.keys()
    throughout(lambda: _holds_nothing(pods, *new), "the new ones wait", for_s=1)
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    assert ran.items() < pods.whole("train", 4).items()
    pods.change(job, parallelism=2, completions=2)
    _is(surefoot, pods, "running", least=2)
    pods.create(*map(gates, members("other", 2)))
    pods.whole("other", 2)
    assert pods.running(*ran) == ran


# --- behind the gates of others ------------------------------------------------------------------


def test_members_behind_the_gate_of_others_neither_count_nor_reserve(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """A gang that came later runs where they might; when its pods are done and one gate is gone, the gang
    still waits for the other member, and then runs whole.
    """
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    first = pods.create(*(gates(each) for each in members("train", 2, schedulingGates=[QUOTA])))
    pods.create(*map(gates, members("later", 2)))
    later = pods.whole("later", 2)
    assert _holds_nothing(pods, *first)
    assert _told(surefoot, pods)["members"] == []
    pods.complete(*later)
    pods.ungate(first[0], QUOTA["name"])
    _lacks(surefoot, pods, Lack.MEMBERS_MISSING, "1 of 2 pods exist")
    throughout(lambda: _holds_nothing(pods, *first), "nobody is nominated", for_s=1)
    pods.ungate(first[1], QUOTA["name"])
    pods.running(*first)
