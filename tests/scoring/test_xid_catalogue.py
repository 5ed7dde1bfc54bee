"""The XID and SXID tables: complete, consistent, and cautious where NVIDIA says nothing."""

from __future__ import annotations

import pytest

from scoring.model import Health, Scope
from scoring.xid.catalogue import CATALOGUE, Pattern, XidClass, entry_of
from scoring.xid.sxid import SXIDS, SxidClass, state_of, sxid_entry_of


def test_every_code_up_to_173_has_one_entry() -> None:
    """The table has no gap and no code twice (a second entry would leave one missing)."""
    assert sorted(CATALOGUE) == list(range(1, 174))


def test_an_application_fault_is_never_held_against_the_gpu_by_itself() -> None:
    """Tenants cause them in storms; each is recorded and left to a pattern."""
    faults = [e for e in CATALOGUE.values() if e.kind is XidClass.APPLICATION]
    assert {e.state for e in faults} == {None}
    assert all(e.pattern is not None for e in faults)


def test_retired_and_unknown_codes_are_suspect() -> None:
    """What no list explains is a reason to look, not a verdict."""
    retired = {e.state for e in CATALOGUE.values() if e.kind is XidClass.RETIRED}
    assert retired == {Health.SUSPECT}
    assert entry_of(999).state is Health.SUSPECT


def test_a_code_refers_only_to_codes_of_the_table() -> None:
    """Leaders, details and cleared codes exist."""
    for entry in CATALOGUE.values():
        assert entry.follows | entry.clears <= CATALOGUE.keys()
        assert entry.detail_of is None or entry.detail_of in CATALOGUE


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (46, Health.RESET_REQUIRED),
        (54, Health.FAILED),
        (63, None),
        (79, Health.REBOOT_REQUIRED),
        (92, Health.SUSPECT),
        (94, Health.DEGRADED),
        (109, Health.SUSPECT),
        (121, None),
        (140, Health.RESET_REQUIRED),
        (151, Health.REBOOT_REQUIRED),
        (156, Health.DEGRADED),
        (167, Health.REBOOT_REQUIRED),
    ],
)
def test_the_state_of_a_code(code: int, state: Health | None) -> None:
    """The verdict of a code alone, without a recovery action."""
    assert entry_of(code).state is state


@pytest.mark.parametrize("code", [46, 119, 140, 151])
def test_codes_without_a_documented_link_have_none(code: int) -> None:
    """For these an action of none proves nothing."""
    assert entry_of(code).linked_from is None


def test_some_codes_say_more_when_they_come_back() -> None:
    """A second push-buffer checksum error within the window is a sign of the GPU."""
    assert entry_of(80).pattern is Pattern.REPEAT


def test_the_guides_switch_errors_are_all_there() -> None:
    """The Fabric Manager guide lists this many codes in each group."""
    kinds = [entry.kind for entry in SXIDS.values()]
    assert kinds.count(SxidClass.CORRECTED) == 22
    assert kinds.count(SxidClass.POTENTIALLY_FATAL) == 43
    assert kinds.count(SxidClass.ALWAYS_FATAL) == 21
    assert len(SXIDS) == 92


@pytest.mark.parametrize(
    ("code", "fatal", "state"),
    [
        (20034, True, Health.RESET_REQUIRED),
        (20034, None, Health.RESET_REQUIRED),
        (20034, False, Health.SUSPECT),
        (23009, False, Health.REBOOT_REQUIRED),
        (11012, False, None),
        (11012, True, Health.RESET_REQUIRED),
        (29999, False, Health.SUSPECT),
        (29999, True, Health.RESET_REQUIRED),
        (12028, False, Health.DEGRADED),
    ],
)
def test_the_drivers_word_decides_where_the_guide_leaves_it_open(
    code: int, fatal: bool | None, state: Health | None
) -> None:
    """Potentially fatal and unknown errors are as bad as the driver says."""
    assert state_of(sxid_entry_of(code), fatal=fatal) is state


def test_an_error_of_the_whole_fabric_concerns_every_pod_of_the_node() -> None:
    """Its cure resets all GPUs, so pods of one GPU are hit too."""
    assert sxid_entry_of(12020).scope is Scope.NODE
    assert not sxid_entry_of(19084).scope.needs_peers
    assert sxid_entry_of(20034).scope.needs_peers
