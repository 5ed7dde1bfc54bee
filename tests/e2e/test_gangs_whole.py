"""A gang runs whole or holds nothing, however its pods arrive, and whoever waits reads why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final

import pytest
from asking import Json

from e2e.conventions import indexed_job, members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates, gates_of
from e2e.history import History
from e2e.laws import assert_never_half, gangs_of, of_gang
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually, throughout
from scoring.gangs.rules import GATE

Arrival = Callable[[Pods, Gates, dict[str, int]], None]
"""Creates gangs of whole nodes by name and size."""


def _interleaved(pods: Pods, gates: Gates, sizes: dict[str, int]) -> None:
    """Plain pods, one of each gang in turn."""
    rounds: Iterator[tuple[Json, ...]] = zip(
        *(members(gang, size) for gang, size in sizes.items()), strict=True
    )
    pods.create(*(gates(each) for each in chain.from_iterable(rounds)))


def _as_jobs(pods: Pods, gates: Gates, sizes: dict[str, int]) -> None:
    """Indexed Jobs, whose pods the job controller creates side by side."""
    for gang, size in sizes.items():
        pods.beside(gates(indexed_job(gang, size)))


ARRIVALS: Final = pytest.mark.parametrize("arrive", [_interleaved, _as_jobs], ids=["pods", "jobs"])


def _hold_nothing(pods: Pods, gangs: Iterable[str]) -> bool:
    """Whether every member is behind its gate, without a node and without a nomination."""
    return all(
        gates_of(each) == [GATE]
        and "nodeName" not in each["spec"]
        and not each["status"].get("nominatedNodeName")
        for gang in gangs
        for each in pods.gang(gang).values()
    )


def _starts(pods: Pods, gang: str) -> bool:
    """Whether a member is bound."""
    return any("nodeName" in each["spec"] for each in pods.gang(gang).values())


def _all_run(pods: Pods, gang: str, size: int) -> bool:
    """Whether it is whole now."""
    phases = [each["status"]["phase"] for each in pods.gang(gang).values()]
    return phases.count("Running") == size


def _states(served: Surefoot, pods: Pods, *gangs: str) -> dict[str, str]:
    """What Surefoot says of gangs."""
    told = {gang: served.gang(pods.namespace, gang) for gang in gangs}
    return {gang: found["state"] for gang, found in told.items() if found}


@ARRIVALS
def test_of_two_gangs_with_room_for_one_one_runs_and_the_other_holds_nothing(
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
    arrive: Arrival,
) -> None:
    """Both are explained; when the first has ended, the second has its turn, whole."""
    surefoot = led(8)
    scheduler(configuration(extender(surefoot.url)))
    history.restart()
    arrive(pods, gates, {"a": 8, "b": 8})
    eventually(lambda: len(pods.all()) == 16, "both are there")
    first = eventually(
        lambda: next((gang for gang in "ab" if _starts(pods, gang)), ""), "one of them starts"
    )
    second = "b" if first == "a" else "a"
    assert len(set(pods.whole(first, 8).values())) == 8
    eventually(
        lambda: _states(surefoot.served, pods, "a", "b") == {first: "running", second: "waiting"},
        lambda: f"both are told of: {_states(surefoot.served, pods, 'a', 'b')}",
    )
    throughout(lambda: _hold_nothing(pods, (second,)), f"{second} holds nothing")
    waiting = surefoot.served.gang(pods.namespace, second)
    assert waiting is not None
    assert waiting["summary"]
    assert waiting["lack"]
    assert {each["node"] for each in waiting["members"]} == {None}
    pods.complete(*pods.gang(first))
    pods.whole(second, 8)
    assert_never_half(history.scenes())


@ARRIVALS
def test_four_gangs_of_half_the_cluster_each_take_turns(
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
    arrive: Arrival,
) -> None:
    """Two run, two hold nothing; each that ends makes room for one other. There are never more than
    two that hold anything, and never two halves.
    """
    surefoot = led(8)
    scheduler(configuration(extender(surefoot.url)))
    history.restart()
    gangs = ("a", "b", "c", "d")
    arrive(pods, gates, dict.fromkeys(gangs, 4))
    eventually(lambda: len(pods.all()) == 16, "all are there")

    done: list[str] = []

    def whole() -> list[str]:
        return [gang for gang in gangs if gang not in done and _all_run(pods, gang, 4)]

    for _ in gangs[:-1]:
        running = eventually(
            lambda: found if len(found := whole()) == 2 else [], "two gangs run whole"
        )
        waiting = set(gangs).difference(running, done)
        throughout(partial(_hold_nothing, pods, waiting), "the others hold nothing", for_s=1)
        done.append(running[0])
        pods.complete(*pods.gang(running[0]))
    eventually(lambda: len(whole()) == 1, "the last one runs on")
    scenes = list(history.scenes())
    assert_never_half(scenes)
    for scene in scenes:
        holding = [
            gang
            for gang in gangs_of(scene)
            if any(state.holds for state in of_gang(scene, gang).values())
        ]
        assert len(holding) <= 2
