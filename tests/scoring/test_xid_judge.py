"""Folding the events of one device: who names the incident, and whose word is final."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.model import Health, Scope
from scoring.xid.events import GpuEvent, Lost, Sxid, Xid
from scoring.xid.judge import (
    Findings,
    fold_history,
    fold_incident,
    fold_switches,
    fold_unattributed,
    split,
)
from scoring.xid.recovery import action_of
from scoring.xid.rules import RuleError, rules_of

NONE, RESET, REBOOT, DRAIN_P2P, IMEX = (action_of(value) for value in (0, 1, 2, 3, 5))


def xid(code: int, text: str = "", *, at_s: float | None = None) -> Xid:
    """One event of the GPU."""
    return Xid(pci="0000:3b:00.0", code=code, text=text, clock_s=at_s)


def says(value: int, *, at_s: float | None = None) -> Xid:
    """An XID 154 that changes the action to `value`."""
    return xid(154, f"GPU recovery action changed from 0x0 (None) to {value:#x} (words)", at_s=at_s)


def states(found: Findings) -> dict[str, Health]:
    """State by cause."""
    return {cause.id: cause.state for cause in found.causes}


LINK_DOWN = "NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6 0x00000000 0x0 0x0 0x0 0x0)"
SYMPATHETIC = "NVLink: fatal error detected on link 2(0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
PARITY = "NVLink: fatal error detected on link {}(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"


@pytest.mark.parametrize(
    ("codes", "causes", "recorded"),
    [
        ((31, 62, 45, 45), {"xid.62": Health.RESET_REQUIRED}, ("xid.31", "xid.45")),
        ((48, 171, 63, 45), {"xid.48": Health.RESET_REQUIRED}, ("xid.45", "xid.63", "xid.171")),
        ((172, 48), {"xid.48": Health.RESET_REQUIRED}, ("xid.172",)),
        ((172,), {"xid.172": Health.RESET_REQUIRED}, ()),
        ((79, 119, 119), {"xid.79": Health.REBOOT_REQUIRED}, ("xid.119",)),
        ((13, 43, 45), {}, ("xid.13", "xid.43", "xid.45")),
        ((163, 162), {}, ("xid.162",)),
        ((162, 163), {}, ("xid.162", "xid.163")),
        ((199,), {"xid.199": Health.SUSPECT}, ()),
        ((), {}, ()),
    ],
)
def test_followers_and_details_are_recorded_under_their_leader(
    codes: tuple[int, ...], causes: dict[str, Health], recorded: tuple[str, ...]
) -> None:
    """The fault that came first names the incident; what it drags along is only recorded."""
    found = fold_incident([xid(code) for code in codes])
    assert states(found) == causes
    assert found.recorded == recorded


def test_an_ecc_error_after_a_fatal_link_error_follows_it() -> None:
    """A fatal NVLink 5 error raises 48 locally; one that may be ignored does not explain 48."""
    harmless = "NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00000226 0x00000001 0x0)"
    assert states(fold_incident([xid(149, LINK_DOWN), xid(48)])) == {
        "xid.149": Health.RESET_REQUIRED
    }
    assert states(fold_incident([xid(149, harmless), xid(48)])) == {"xid.48": Health.RESET_REQUIRED}


def test_the_text_of_154_overrides_an_application_code() -> None:
    """31 is recorded by itself, but the driver asks for a reboot."""
    found = fold_incident([xid(31), says(2)])
    assert states(found) == {"xid.154": Health.REBOOT_REQUIRED}
    assert found.recorded == ("xid.31",)


@pytest.mark.parametrize(
    ("code", "value", "state"),
    [
        (48, 3, Health.DEGRADED),
        (48, 2, Health.REBOOT_REQUIRED),
        (48, 0, Health.SUSPECT),
        (48, 5, Health.RESET_REQUIRED),
        (119, 0, Health.RESET_REQUIRED),
        (143, 0, Health.RESET_REQUIRED),
        (54, 0, Health.FAILED),
        (94, 0, Health.DEGRADED),
    ],
)
def test_154_settles_only_repairs_that_are_linked_to_it(
    code: int, value: int, state: Health
) -> None:
    """119 is linked on no branch, 143 only from R575; 54 and 94 ask for no reset."""
    assert states(fold_incident([xid(code), says(value)]))[f"xid.{code}"] is state


def test_the_last_154_counts() -> None:
    """The action is a level: what it was before is over."""
    assert states(fold_incident([says(4), says(1)])) == {"xid.154": Health.RESET_REQUIRED}
    cleared = fold_incident([says(2), says(0)])
    assert (cleared.causes, cleared.recorded) == ((), ("xid.154",))


def test_154_says_nothing_of_what_comes_later() -> None:
    """A fault after the last action stands as the table has it."""
    assert states(fold_incident([says(0), xid(79)]))["xid.79"] is Health.REBOOT_REQUIRED


def test_a_reading_of_none_acquits_linked_codes_of_the_branch() -> None:
    """48 is linked from R565; without a known branch nothing is acquitted."""
    assert states(fold_incident([xid(48)], action=NONE, branch=570)) == {"xid.48": Health.SUSPECT}
    assert states(fold_incident([xid(48)], action=NONE)) == {"xid.48": Health.RESET_REQUIRED}
    unlinked = fold_incident([xid(119)], action=NONE, branch=580)
    assert states(unlinked) == {"xid.119": Health.RESET_REQUIRED}


def test_a_reading_above_none_raises_whatever_the_code() -> None:
    """The driver asks for a reset after a mere application fault."""
    found = fold_incident([xid(31)], action=RESET, branch=570)
    assert states(found) == {"recovery.action": Health.RESET_REQUIRED}
    assert fold_incident([], action=REBOOT).state is Health.REBOOT_REQUIRED


def test_a_reading_beats_the_text_of_154() -> None:
    """The reading is younger than the text."""
    assert states(fold_incident([says(2)], action=NONE)) == {}
    raised = fold_incident([says(1)], action=REBOOT)
    assert states(raised) == {"xid.154": Health.REBOOT_REQUIRED}


def test_imex_is_not_the_gpus_own_trouble() -> None:
    """It adds a cause for multi-node work and leaves the GPU's faults alone."""
    found = fold_incident([xid(48)], action=IMEX, branch=580)
    assert states(found) == {
        "xid.48": Health.RESET_REQUIRED,
        "recovery.action": Health.DEGRADED,
    }


def test_sympathetic_link_errors_count_only_where_nothing_explains_them() -> None:
    """Alone a weak sign; with a fault here or on a peer they are its echo."""
    assert states(fold_incident([xid(74, SYMPATHETIC)])) == {"xid.74": Health.SUSPECT}
    assert states(fold_incident([xid(74, SYMPATHETIC)], peer_fault=True)) == {}
    beside = fold_incident([xid(74, SYMPATHETIC), xid(79)])
    assert states(beside) == {"xid.79": Health.REBOOT_REQUIRED}


def test_parity_errors_act_when_they_come_back_on_one_link() -> None:
    """Two are watched, three on the same link ask for a reset."""
    twice = [xid(74, PARITY.format(link)) for link in (1, 1, 2)]
    assert states(fold_incident(twice)) == {"xid.74": Health.SUSPECT}
    thrice = [*twice, xid(74, PARITY.format(1))]
    assert states(fold_incident(thrice)) == {"xid.74": Health.RESET_REQUIRED}


def test_words_alone_join_the_xid_that_says_the_same() -> None:
    """`fallen off the bus` is printed beside XID 79; without it the loss still counts."""
    lost = Lost(pci="0000:3b:00.0")
    assert states(fold_incident([xid(79), lost])) == {"xid.79": Health.REBOOT_REQUIRED}
    assert states(fold_incident([lost])) == {"gpu.lost": Health.REBOOT_REQUIRED}


def test_silence_ends_an_incident() -> None:
    """An ECC error a day after a link error is its own; followers are folded within minutes."""
    far = [xid(149, LINK_DOWN, at_s=0.0), xid(48, at_s=90_000.0)]
    near = [xid(149, LINK_DOWN, at_s=0.0), xid(48, at_s=100.0)]
    assert set(states(fold_history(far))) == {"xid.149", "xid.48"}
    assert set(states(fold_history(near))) == {"xid.149"}


def test_a_clock_that_runs_back_or_is_missing() -> None:
    """Back means another boot, hence another incident; missing keeps events together."""
    assert list(split([])) == []
    assert len(list(split([xid(1, at_s=9.0), xid(1, at_s=2.0)]))) == 2
    assert len(list(split([xid(1, at_s=9.0), xid(1), xid(1, at_s=10.0)]))) == 1


def test_an_action_of_none_settles_earlier_incidents_too() -> None:
    """The GPU was reset a day later, and the driver says so."""
    found = fold_history([xid(48, at_s=0.0), says(4, at_s=1.0), says(0, at_s=90_000.0)])
    assert states(found) == {"xid.48": Health.SUSPECT}


def test_a_cause_keeps_count_times_and_evidence() -> None:
    """What a person needs to believe it."""
    events = [
        Xid(pci=None, code=46, line="NVRM: Xid ...: 46, stopped", unix_s=100.0, count=3),
        Xid(pci=None, code=46, line="later", unix_s=160.0),
    ]
    (cause,) = fold_incident(events).causes
    assert (cause.first_s, cause.last_s, cause.count) == (100.0, 160.0, 4)
    assert "46, stopped" in cause.evidence


_EVENTS = st.lists(
    st.one_of(
        st.integers(1, 200).map(xid),
        st.integers(0, 9).map(says),
        st.just(Lost(pci="0000:3b:00.0")),
    ),
    max_size=12,
)


@given(_EVENTS)
def test_every_event_is_either_a_cause_or_recorded(events: list[GpuEvent]) -> None:
    """Nothing is lost without a word, except what is declared over or said twice."""
    found = fold_incident(events)
    named = {cause.id for cause in found.causes} | set(found.recorded)
    explained = {"xid.163", "gpu.lost"}
    assert {event.id for event in events} - explained <= named
    assert not {cause.id for cause in found.causes} & set(found.recorded)


@given(_EVENTS, st.integers(1, 9))
def test_a_reading_above_none_never_leaves_less_than_it_asks(
    events: list[GpuEvent], value: int
) -> None:
    """The driver's request is a floor."""
    action = action_of(value)
    assert action.state is not None
    assert fold_incident(events, action=action, branch=580).state >= action.state


def test_switch_errors_become_causes_of_the_node() -> None:
    """Corrected ones are recorded, fatal ones count, heat lasts until it is declared over."""

    def switch(code: int, *, fatal: bool | None = None, pci: str = "0000:05:00.0") -> Sxid:
        return Sxid(pci=pci, code=code, fatal=fatal)

    found = fold_switches([switch(11012, fatal=False), switch(24007, fatal=True)])
    assert states(found) == {"sxid.24007": Health.RESET_REQUIRED}
    assert found.recorded == ("sxid.11012",)
    assert states(fold_switches([switch(10004), switch(10005)])) == {}
    other = fold_switches([switch(10004), switch(10005, pci="0000:06:00.0")])
    assert states(other) == {"sxid.10004": Health.SUSPECT}


def test_a_fault_without_an_address_makes_the_node_suspect() -> None:
    """Any of its GPUs may be meant."""
    found = fold_unattributed([Xid(pci=None, code=79), Xid(pci=None, code=31)])
    assert states(found) == {"xid.79": Health.SUSPECT}
    assert found.causes[0].scope is Scope.NODE
    assert found.recorded == ("xid.31",)


def test_a_site_changes_the_effect_of_single_codes() -> None:
    """Either way, for GPUs and switches, and through any decode."""
    rules = rules_of(
        {"xid.63": "degraded", "xid.94": "RECORD", "xid.149": "RECORD", "sxid.20034": "RECORD"}
    )
    found = fold_incident([xid(63), xid(94), xid(149, LINK_DOWN)], rules=rules)
    assert states(found) == {"xid.63": Health.DEGRADED}
    assert found.recorded == ("xid.94", "xid.149")
    assert fold_switches([Sxid(pci=None, code=20034, fatal=True)], rules).causes == ()


@pytest.mark.parametrize(
    ("code", "word", "problem"),
    [
        ("63", "DEGRADED", "not a code"),
        ("xid.0", "DEGRADED", "not a code"),
        ("xid.63", "HEALTHY", "not one of"),
        ("xid.63", "", "not one of"),
        ("xid.154", "RECORD", "driver's own verdict"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(code: str, word: str, problem: str) -> None:
    """The error names the code and what is wrong with it."""
    with pytest.raises(RuleError, match=problem) as caught:
        rules_of({code: word})
    assert caught.value.code == code
