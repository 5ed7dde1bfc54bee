"""Decode of the messages whose number alone says nothing: 74, 144-150, 154, 155."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.model import Health, Scope
from scoring.xid import nvlink4, nvlink5, recovery
from scoring.xid.effect import effect
from scoring.xid.events import Lost, Xid
from scoring.xid.nvlink5 import CODES, UNITS, Resolution

IGNORE, FOLLOW, RESET = Resolution.IGNORE, Resolution.FOLLOW_154, Resolution.RESET


def text_74(*registers: int, link: int = 7) -> str:
    """The text of an XID 74 with these registers, the rest zero."""
    words = [*registers, *[0] * (7 - len(registers))]
    inside = ", ".join(hex(word) for word in words)
    return f"pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link {link}({inside})"


def text_5(intr_info: int, *words: int, unit: str = "UNIT", injected: int = 0) -> str:
    """The text of an XID 144-150."""
    inside = " ".join(f"0x{word:08x}" for word in (intr_info, *words, 0, 0, 0, 0))
    return f"{unit} Nonfatal XC0 i{injected} Link 05 ({inside})"


@pytest.mark.parametrize(
    ("registers", "sign"),
    [
        ((1 << 0,), nvlink4.Sign.HARMLESS),
        ((1 << 23 | 1 << 30,), nvlink4.Sign.HARMLESS),
        ((1 << 20,), nvlink4.Sign.SYMPATHETIC),
        ((1 << 1 | 1 << 0,), nvlink4.Sign.SYMPATHETIC),
        ((1 << 4,), nvlink4.Sign.WATCH),
        ((1 << 5 | 1 << 16,), nvlink4.Sign.ACT),
        ((1 << 22,), nvlink4.Sign.ACT),
        ((1 << 2,), nvlink4.Sign.ACT),
        ((0, 1 << 0), nvlink4.Sign.ACT),
        ((0, 0, 1 << 6), nvlink4.Sign.WATCH),
        ((0, 0, 1 << 13), nvlink4.Sign.ACT),
        ((0, 0, 0, 1 << 17), nvlink4.Sign.SYMPATHETIC),
        ((0, 0, 0, 1 << 18), nvlink4.Sign.FABRIC),
        ((0, 0, 0, 0, 1 << 20), nvlink4.Sign.HARMLESS),
        ((0, 0, 0, 0, 1 << 21), nvlink4.Sign.WATCH),
        ((), nvlink4.Sign.ACT),
    ],
)
def test_registers_of_74(registers: tuple[int, ...], sign: nvlink4.Sign) -> None:
    """The worst bit decides; a bit that nobody explains, or no bit at all, acts."""
    assert nvlink4.decode(text_74(*registers)).sign is sign


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=7, max_size=7),
    st.integers(0, 6),
    st.integers(0, 31),
)
def test_one_more_bit_never_makes_74_milder(registers: list[int], index: int, bit: int) -> None:
    """Monotone: setting a bit can only raise what the registers say."""
    more = [word | (1 << bit if i == index else 0) for i, word in enumerate(registers)]
    if any(registers):
        assert nvlink4.decode(text_74(*more)).sign >= nvlink4.decode(text_74(*registers)).sign


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVLink: fatal error detected on link 3",
        "NVLink: fatal error detected on link 3(0x1, 0x0, 0x0",
        "NVLink: fatal error detected on link 3(0x1, 0x0)",
    ],
)
def test_74_without_its_seven_registers_acts(text: str) -> None:
    """A cut message is never read as its harmless part."""
    error = nvlink4.decode(text)
    assert error.sign is nvlink4.Sign.ACT
    assert "not decodable" in error.meaning


def test_the_meaning_of_74_names_its_bits() -> None:
    """What an engineer looks up in NVIDIA's workflow."""
    assert nvlink4.decode(text_74(1 << 16, 0, 1 << 2)).meaning == (
        "NVLink 7 error, act: register 1 bit 16, register 3 bit 2"
    )


@pytest.mark.parametrize(
    ("xid", "intr_info", "words", "resolution"),
    [
        (144, 0x021, (0x02,), RESET),
        (144, 0x001, (0x04,), IGNORE),
        (145, 0x082, (0x01,), FOLLOW),
        (145, 0x004, (0x40,), RESET),
        (145, 0x0E2, (0x0C,), FOLLOW),
        (145, 0x0E2, (0x18,), RESET),
        (145, 0x0C2, (0x01,), IGNORE),
        (145, 0x4C2, (0x01,), RESET),
        (145, 0x086, (0x02,), RESET),
        (145, 0x006, (0x80000000,), IGNORE),
        (146, 0x143, (0x04,), RESET),
        (146, 0x00D, (0x02,), IGNORE),
        (147, 0x184, (0x01,), IGNORE),
        (148, 0x005, (0x80000000,), IGNORE),
        (145, 0x082 | 1 << 20, (0x01,), None),
        (149, 0x006, (), RESET),
        (149, 0x018, (0x1234,), RESET),
        (149, 0x1C6 | 0b100001 << 20, (), RESET),
        (149, 0x1C6 | 0b100110 << 20, (), IGNORE),
        (149, 0x011 | 0b101000 << 20, (), IGNORE),
        (149, 0x1C6 | 0b111111 << 20, (), None),
        (149, 0x226, (0x03,), IGNORE),
        (149, 0x246, (0x03,), IGNORE),
        (149, 0x014, (0x07,), RESET),
        (149, 0x014, (0x06,), None),
        (150, 0x000, (0xFFFFFFFF,), RESET),
        (150, 0x000, (0x00,), RESET),
        (150, 0x000, (0x05,), None),
    ],
)
def test_units_of_nvlink_5(
    xid: int, intr_info: int, words: tuple[int, ...], resolution: Resolution | None
) -> None:
    """Unit and status decide in both layouts, before and since driver R575."""
    assert nvlink5.decode(xid, text_5(intr_info, *words)).resolution is resolution


def test_no_word_is_read_differently_by_the_two_layouts() -> None:
    """The layout needs no driver version: within an XID no pattern of one fits a unit of the
    other.
    """
    for xid in CODES:
        units = [unit for unit in UNITS if unit.xid == xid]
        family = 0 if xid == 150 else xid - 143
        for old, new in itertools.product(units, units):
            low_bits = old.before_r575 << 5 | family
            assert low_bits & 0x7F not in new.since_r575 or old is new


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RLW_REMAP Nonfatal XC0 i0 Link 02",
        "RLW_REMAP Fatal   XC0 i0 Link 02 (0x0000008",
        "RLW_REMAP Fatal   XC0 i0 Link 02 (0x00000082",
        "RLW_REMAP Fatal   XC0 i0 Link 02 (0x00000082 0x0000004",
        "RLW_REMAP Fatal   XC0 i0 Link 02 (0x0000001f 0x00000040 0x0)",
    ],
)
def test_a_cut_or_foreign_message_is_suspect_and_no_more(text: str) -> None:
    """Never a verdict from the number alone, and never health either."""
    assert effect(Xid(pci=None, code=145, text=text)).state is Health.SUSPECT


def test_an_injected_error_is_as_bad_as_a_real_one_and_says_so() -> None:
    """The link is down either way."""
    found = effect(Xid(pci=None, code=149, text=text_5(0x006, injected=1)))
    assert found.state is Health.RESET_REQUIRED
    assert "injected" in found.meaning


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", None),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)", Health.RESET_REQUIRED),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", Health.REBOOT_REQUIRED),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", Health.DEGRADED),
        ("GPU recovery action changed from 0x3 (Drain P2P) to 0x4 (x)", Health.RESET_REQUIRED),
        ("GPU recovery action changed from 0x0 (None) to 0x5 (x)", Health.DEGRADED),
        ("GPU recovery action changed from 0x0 (None) to 0x6 (x)", Health.RESET_REQUIRED),
        ("GPU recovery action changed from 0x0 (None) to 0x7 (x)", Health.REBOOT_REQUIRED),
        ("GPU recovery action changed from 0x0 (None) to 0x63 (x)", Health.RESET_REQUIRED),
        ("GPU recovery action changed from 0x0 (None) to", Health.SUSPECT),
        ("", Health.SUSPECT),
    ],
)
def test_the_number_of_154_decides(text: str, state: Health | None) -> None:
    """Names change between drivers; an unknown number fails closed; a cut text is only suspect."""
    assert effect(Xid(pci=None, code=154, text=text)).state is state


def test_draining_peers_and_imex_leave_a_lone_gpu_usable() -> None:
    """Both concern traffic between GPUs."""
    assert recovery.action_of(3).scope.needs_peers
    assert recovery.action_of(5).scope.needs_peers
    assert not recovery.action_of(1).scope.needs_peers


def test_a_link_taken_down_on_purpose_is_recorded() -> None:
    """155 asks for a reset unless it says that the link was meant to go down."""
    down = "NVLINK_SW_DEFINED_ERROR Fatal XC0 i0 Link 04 : Link Down While Active."
    meant = "NVLINK_SW_DEFINED_ERROR Nonfatal XC0 i0 Link 04 : intentional link down"
    assert effect(Xid(pci=None, code=155, text=down)).state is Health.RESET_REQUIRED
    assert effect(Xid(pci=None, code=155, text=meant)).state is None


def test_a_contained_error_is_of_the_mig_instance_that_the_message_names() -> None:
    """94 harms one instance; without MIG it is the GPU's."""
    assert effect(Xid(pci=None, code=94)).scope is Scope.GPU
    assert effect(Xid(pci=None, code=94, gpu_instance=5)).scope is Scope.GPU_INSTANCE
    inner = Xid(pci=None, code=94, gpu_instance=5, compute_instance=0)
    assert effect(inner).scope is Scope.COMPUTE_INSTANCE
    assert effect(Xid(pci=None, code=95, gpu_instance=5)).scope is Scope.GPU


def test_a_gpu_off_the_bus_needs_a_reboot_with_or_without_a_number() -> None:
    """The driver may print the words alone."""
    assert effect(Lost(pci=None)).state is effect(Xid(pci=None, code=79)).state


def test_linked_needs_the_branch_that_introduced_the_link() -> None:
    """109 moves the recovery action from R570 on, 158 always, 119 never."""
    late = effect(Xid(pci=None, code=109))
    assert (late.linked(565), late.linked(570), late.linked(None)) == (False, True, False)
    assert effect(Xid(pci=None, code=158)).linked(None)
    assert not effect(Xid(pci=None, code=119)).linked(999)
