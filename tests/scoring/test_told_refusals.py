"""What is told of waiting pods on what owns them."""

from __future__ import annotations

import pytest
from waiters import RESET, Waiter

from scoring.gangs.values import Owner
from scoring.model import GangKey
from scoring.reasons import Reason
from scoring.refusals import foremost, refusals

JOB = Owner(kind="Job", name="train", uid="uid-job")
OTHER = Owner(kind="Job", name="tune", uid="uid-other")
NOBODY: frozenset[GangKey] = frozenset()


class TestForemost:
    """Which of Surefoot's reasons a message of kube-scheduler's speaks of."""

    @pytest.mark.parametrize("reason", list(Reason))
    def test_every_reason_is_known(self, reason: Reason) -> None:
        """Each text that kube-scheduler repeats is recognised, be it alone."""
        assert foremost(f"0/1 nodes are available: 1 {reason.text}.") is reason
        assert foremost(reason.text) is reason

    @pytest.mark.parametrize(
        "message",
        ["", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "no nodes available"],
    )
    def test_what_is_kube_schedulers_own_is_none(self, message: str) -> None:
        """Counts, selectors and cordons; it knows when they change."""
        assert foremost(message) is None

    def test_that_of_the_most_nodes_counts(self) -> None:
        """And the gravest of equals."""
        suspect, failed = Reason.GPU_SUSPECT.text, Reason.GPU_FAILED.text
        assert foremost(f"0/12 nodes: 10 {suspect}, 2 {failed}.") is Reason.GPU_SUSPECT
        assert foremost(f"0/4 nodes: 2 {suspect}, 2 {failed}.") is Reason.GPU_FAILED


class TestRefusals:
    """One word for each owner, or gang."""

    def test_the_pods_of_an_owner_are_one_word(self) -> None:
        """How many wait, and what is said of the first of them by name."""
        pods = [Waiter(name=f"train-{at}", owner=JOB) for at in (10, 9, 11)]
        ((key, found),) = refusals(pods, NOBODY).items()
        assert (key, found.owner, found.namespace) == ("uid-job", JOB, "lab")
        assert found.reason is Reason.RESET_REQUIRED
        assert found.note == f"3 pods wait, first train-9: {RESET}"

    def test_a_gang_of_several_owners_is_one_word(self) -> None:
        """On the owner of its first pod."""
        gang = GangKey("lab/ranks")
        pods = [Waiter(name="b", gang=gang, owner=OTHER), Waiter(name="a", gang=gang, owner=JOB)]
        ((key, found),) = refusals(pods, NOBODY).items()
        assert (key, found.owner) == (gang, JOB)

    @pytest.mark.parametrize(
        "pod",
        [
            Waiter(),
            Waiter(owner=JOB, message="0/1 nodes are available: 1 Insufficient cpu."),
            Waiter(owner=JOB, gang=GangKey("lab/planned")),
            Waiter(owner=Owner(kind="", name="", uid="uid-odd")),
        ],
        ids=["owned by nobody", "waits for cpu", "in a gang that is told of", "odd owner"],
    )
    def test_of_others_nothing_is_said(self, pod: Waiter) -> None:
        """There is no owner to see it, or Surefoot has nothing to say, or said it elsewhere."""
        assert refusals([pod], {GangKey("lab/planned")}) == {}
