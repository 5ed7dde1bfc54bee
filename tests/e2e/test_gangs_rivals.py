"""What a nomination is worth: against pods of equal priority, of a higher one, and while Surefoot restarts.

In most of them the gang is nominated before a kube-scheduler runs, so that everybody stands in its queue
from the start.
"""

from __future__ import annotations

from e2e.cluster import Cluster
from e2e.conventions import members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates, gates_of, gates_stay
from e2e.history import History
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually

RIVAL = "rival"
RANKS = ("train-0", "train-1")


def _nominated(pods: Pods, gates: Gates) -> dict[str, str]:
    """A gang of two whole nodes, nominated and without gates."""
    pods.create(*(gates(each) for each in members("train", len(RANKS))))
    eventually(
        lambda: all(pods.nominations().values()) and not any(map(gates_of, pods.all().values())),
        lambda: f"the gang is planned: {pods.nominations()}",
    )
    return {name: node for name, node in pods.nominations().items() if node}


def test_an_equal_rival_cannot_take_nominated_room(
    cluster: Cluster, pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """The gang is nominated and still gated, all GPUs are free, and the rival wants one of them: it
    waits, and the gang runs where it was planned.
    """
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    with gates_stay(cluster, pods):
        pods.create(*(gates(each) for each in members("train", len(RANKS))))
        eventually(lambda: all(pods.nominations().values()), "all are nominated")
        planned = pods.nominations()
        pods.create(pod(RIVAL))
        pods.refused(RIVAL)
        assert not any(pods.nodes().values())
    assert pods.running(*RANKS) == planned
    assert pods.nodes()[RIVAL] is None


def test_a_rival_of_higher_priority_takes_it_and_the_gang_is_planned_anew(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """It wants the very node of one member; the gang finds another, and runs whole."""
    surefoot = led(3)
    planned = _nominated(pods, gates)
    wanted = planned["train-0"]
    where = {"kubernetes.io/hostname": wanted}
    pods.create(pod(RIVAL, gpus=8, priority="high", nodeSelector=where))
    scheduler(configuration(extender(surefoot.url)))
    assert pods.running(RIVAL, *RANKS)[RIVAL] == wanted
    assert len(set(pods.nodes().values())) == 3


def test_nominations_are_restored_while_surefoot_restarts(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler, history: History
) -> None:
    """kube-scheduler clears them when its extender does not answer; the controller writes them again,
    and the gang runs where it was planned.
    """
    surefoot = led(3)
    planned = _nominated(pods, gates)
    surefoot.served.kill()
    running = scheduler(configuration(extender(surefoot.url)))
    eventually(lambda: running.attempts("error") >= len(RANKS), "both fail for want of Surefoot")

    def lost_and_found(name: str) -> bool:
        seen = [state.nominated for state in history.of(name)]
        return planned[name] in seen and None in seen[seen.index(planned[name]) :]

    eventually(lambda: all(map(lost_and_found, RANKS)), "both have lost their nomination")
    eventually(lambda: pods.nominations() == planned, "both are nominated again")
    surefoot.served.start(nodes=3)
    assert pods.running(*RANKS) == planned
