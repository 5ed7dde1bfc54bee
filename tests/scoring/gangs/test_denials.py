"""Nodes that kube-scheduler does not grant to a gang."""

from __future__ import annotations

import pytest
from members import KEY, NOW_S, gang, pod, record

from scoring.gangs.denials import LEFT_OUT_S, WITHIN_S, Denials, is_untold
from scoring.gangs.record import GangState
from scoring.gangs.values import Gathered
from scoring.reasons import Reason

SEATED = gang(pod(0, gated=False, nominated="n0"))
DENIED = gang(pod(0, gated=False, refused=True))
RECORDS = {KEY: record(SEATED, GangState.PLANNED, "n0")}


def after(*seen: Gathered, every_s: float = 1.0) -> Denials:
    """What is known once the gang was seen like this."""
    found = Denials()
    for at, each in enumerate(seen):
        found = found.after([each], RECORDS, NOW_S + at * every_s)
    return found


def excluded(found: Denials) -> set[str]:
    """The names of nodes that the gang is planned without."""
    return {each.node for each in found.exclusions() if each.owner == KEY}


def test_a_seat_that_is_denied_once_is_tried_again() -> None:
    """Another pod may have been quicker, and is gone by then."""
    assert excluded(after(SEATED, DENIED)) == set()


def test_a_seat_that_is_denied_twice_is_left_out() -> None:
    """Whatever forbids it there, the planner does not know it."""
    assert excluded(after(SEATED, DENIED, SEATED, DENIED)) == {"n0"}


def test_a_replica_that_did_not_know_the_plan_denies_no_seat() -> None:
    """The cache was away for a moment, and the node is as good as before."""
    untold = gang(pod(0, gated=False, refused=True, untold=True))
    assert excluded(after(SEATED, untold, SEATED, untold, SEATED, untold)) == set()


@pytest.mark.parametrize(
    ("reason", "untold"),
    [
        (Reason.GANG_SHORT, True),
        (Reason.GANG_UNPLANNED, True),
        (Reason.GANG_INCOMPLETE, True),
        (Reason.MEMBER_UNPLANNED, True),
        (Reason.PLANNED_ELSEWHERE, False),
    ],
)
def test_what_it_did_not_know_stands_in_its_own_words(reason: Reason, untold: bool) -> None:
    """Who knew the plan refuses all other nodes for another node that is planned."""
    told = f"0/20 nodes are available: 17 Insufficient nvidia.com/gpu, 3 {reason.text}."
    assert is_untold(told) is untold


def test_one_denial_counts_once_however_often_it_is_looked_at() -> None:
    """Until the pod was nominated again there is nothing to deny."""
    assert excluded(after(SEATED, DENIED, DENIED, DENIED)) == set()


def test_denials_far_apart_do_not_add_up() -> None:
    """They have causes of their own."""
    assert excluded(after(SEATED, DENIED, SEATED, DENIED, every_s=WITHIN_S)) == set()


def test_a_nomination_that_was_cleared_for_an_error_is_no_denial() -> None:
    """kube-scheduler says Unschedulable where it found no node, and else tries again by itself."""
    cleared = gang(pod(0, gated=False))
    assert excluded(after(SEATED, cleared, SEATED, cleared)) == set()


def test_a_node_is_left_out_for_a_while_only() -> None:
    """Then it is tried anew."""
    found = after(SEATED, DENIED, SEATED, DENIED)
    assert excluded(found.after([DENIED], RECORDS, NOW_S + 3 + LEFT_OUT_S)) == set()
