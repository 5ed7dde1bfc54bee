"""Two controllers, one Lease: one leads, the other stands by until the first is gone or hangs."""

from __future__ import annotations

from e2e.conventions import members
from e2e.fixtures import MakesController
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates
from e2e.pods import Pods
from e2e.surefoots import Controller
from e2e.waiting import eventually, throughout


def _pair(controller: MakesController) -> tuple[Controller, Controller]:
    """The one that leads, and the one that stands by."""
    both = [controller(name=name) for name in ("one", "two")]
    eventually(lambda: sum(each.leads() for each in both) == 1, "one of them leads")
    leader, standby = sorted(both, key=lambda each: not each.leads())
    return leader, standby


def test_one_leads_and_both_are_ready(controller: MakesController) -> None:
    """A rollout waits for readiness: whoever stands by must not hold it up."""
    leader, standby = _pair(controller)
    throughout(lambda: leader.leads() and not standby.leads(), "they do not take turns", for_s=5)
    assert leader.ready()
    assert standby.ready()


def test_the_other_leads_when_the_first_is_killed(controller: MakesController) -> None:
    """Once the Lease has run out: nobody says goodbye for it."""
    leader, standby = _pair(controller)
    leader.kill()
    eventually(standby.leads, "the other leads")


def test_the_other_leads_at_once_when_the_first_ends(controller: MakesController) -> None:
    """SIGTERM gives the Lease back, and the process ends well."""
    leader, standby = _pair(controller)
    leader.stop()
    eventually(standby.leads, "the other leads")


def test_a_leader_that_hung_finds_another_in_its_place(
    controller: MakesController, led: MakesLed, pods: Pods, gates: Gates
) -> None:
    """The other one plans meanwhile; the first stands by when it goes on."""
    surefoot = led(2)
    second = controller(name="second")
    eventually(lambda: surefoot.controller.leads() and not second.leads(), "the first one leads")
    surefoot.controller.pause()
    eventually(second.leads, "the other leads")
    pods.create(*(gates(each) for each in members("train", 2)))
    eventually(lambda: all(pods.nominations().values()), "it plans")
    surefoot.controller.resume()
    eventually(
        lambda: surefoot.controller.ready() and not surefoot.controller.leads(), "it stands by"
    )
    throughout(second.leads, "the other leads on")
