"""Reading kernel logs: every prefix, only the kernel's own words, in time linear in the text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.kernel_clock import stamp_of
from scoring.kernel_log import KernelLogReader, decode, parse, pci_address
from scoring.xid.events import Lost, Sxid, Xid

BODY = "NVRM: Xid (PCI:0000:3b:00): 46, pid=7, name=train, GPU stopped"
GPU = "0000:3b:00.0"
UUID = "GPU-5ad0c0de-1234-4a5b-8c6d-00c0ffee0001"


def codes(text: str) -> list[tuple[str | None, int]]:
    """Address and code of each XID in `text`."""
    return [(e.pci, e.code) for e in parse(text).events if isinstance(e, Xid)]


KERNEL_PREFIXES = [
    "",
    "   ",
    "kernel: ",
    "kernel:",
    "[   12.345678] ",
    "[   12.345678] [   T1946] ",
    "[   12.345678][  C12] ",
    "[Sun Feb 23 16:24:18 2025] ",
    "[Sun Feb 23 16:24:18 2025 <    0.000004>] ",
    "[Feb23 16:24] ",
    "[  +0.000005] ",
    "[<    0.000005>] ",
    "[...] ",
    "<4>[   12.345678] ",
    "<4>",
    "4,1723,12345678,-;",
    "kern  :warn  : [   12.345678] ",
    "kern  :err   : 2025-01-21T04:41:44,283302+00:00 ",
    "kern  :err   : [Tue Jan 21 04:41:44 2025] ",
    "Feb  3 04:17:05 gpu-7 kernel: ",
    "Feb  3 04:17:05 gpu-7 kernel: [ 5112.114201] ",
    "Feb 03 04:17:05 gpu-7.dc.example kernel[0]: ",
    "set 12 18:38:24 gpu-7 kernel: ",
    "2026-04-03T06:20:28.545191+00:00 gpu-7 kernel: ",
    "2026-04-03T06:20:28+0000 gpu-7 kernel: ",
    "2026-04-03T06:20:28Z gpu-7 kernel: [ 5112.114201] ",
    "Fri 2026-04-03 06:20:28 UTC gpu-7 kernel: ",
    "1775197228.545191 gpu-7 kernel: ",
    "[  551.000001] gpu-7 kernel: ",
    "<4>1 2026-04-03T06:20:28.545191+00:00 gpu-7 kernel - - - ",
    "Feb  3 04:17:05 10.1.2.3 kernel: ",
    "Feb  3 04:17:05 fd00::17 kernel: ",
    "Feb  3 04:17:05 gpu-7 kern.warn kernel: [ 5112.114201] ",
    "Feb  3 04:17:05 gpu-7 ",
    "/var/log/kern.log:Feb  3 04:17:05 gpu-7 kernel: ",
    "812:Feb  3 04:17:05 gpu-7 kernel: ",
    "    MESSAGE=",
    "\x1b[32m[   12.345678] \x1b[0m\x1b[33m",
]

OTHER_PREFIXES = [
    "Feb  3 04:17:05 gpu-7 sudo[88]: root : COMMAND=/usr/bin/grep ",
    'Feb  3 04:17:05 gpu-7 sudo: ops : COMMAND=/usr/bin/grep "',
    "Feb  3 04:17:05 gpu-7 trainer[88]: ",
    "Feb  3 04:17:05 gpu-7 trainer: ",
    "Feb  3 04:17:05 gpu-7 trainer[88]: Feb  3 04:17:01 gpu-7 kernel: ",
    "Feb  3 04:17:05 gpu-7 trainer[88]: kernel: ",
    "2026-04-03T06:20:28+00:00 gpu-7 health-check: found ",
    "<12>Feb  3 04:17:05 gpu-7 kernel: ",
    "<14>1 2026-04-03T06:20:28+00:00 gpu-7 agent 77 - - ",
    "12,1723,12345678,-;",
    "user  :notice: [   12.345678] ",
    "Feb  3 04:17:05 gpu-7 user.warn trainer: ",
    "Feb  3 04:17:05 gpu-7 trainer[88]: message repeated 2 times: [ ",
    "daemon:info  : 2025-01-21T04:41:44,283302+00:00 ",
    "[   12.345678] systemd[1]: note: ",
    "[   12.345678] gpu-check: found ",
    '[   12.345678] audit: type=1123 msg="grep ',
    "[   12.345678] audit: type=1123 cmd=",
    "[INFO] ",
    "ERROR worker 3: ",
    "$ dmesg | grep '",
    "# journalctl -k | grep ",
    "I saw ",
    '{"level":"error","msg":"',
    "2026-04-03T06:20:28.5Z stderr F app says ",
]


@pytest.mark.parametrize("prefix", KERNEL_PREFIXES)
def test_the_kernels_messages_are_read_whatever_stands_before_them(prefix: str) -> None:
    """dmesg, /dev/kmsg, syslog, journal, colours, grep: one event each."""
    assert codes(f"{prefix}{BODY}\n") == [(GPU, 46)]


@pytest.mark.parametrize("prefix", OTHER_PREFIXES)
def test_a_user_process_that_quotes_an_xid_is_no_fault(prefix: str) -> None:
    """Only the kernel's own messages count."""
    log = parse(f"{prefix}{BODY}\n")
    assert (log.events, log.messages) == ((), 0)


@pytest.mark.parametrize(
    ("shown", "address"),
    [
        ("(PCI:0000:3b:00)", GPU),
        ("(PCI:0000:3B:00)", GPU),
        ("(PCI:0000:3b:00.0)", GPU),
        ("(0000:3b:00)", GPU),
        ("(3b:00)", GPU),
        ("(PCI:00000000:3b:00.0)", GPU),
        ("(PCI:0008:01:00)", "0008:01:00.0"),
        ("(PCI:0000:10:1c)", "0000:10:1c.0"),
        ("(PCI:0000:3b:00 GPU-I:05)", GPU),
        ("(PCI:0000:3b:00 GPU-I:05 GPU-CI:00)", GPU),
        (" (PCI:nonsense)", None),
        ("", None),
    ],
)
def test_addresses_take_one_form(shown: str, address: str | None) -> None:
    """Domain, bus, device, function in lower case; none stays none."""
    assert codes(f"NVRM: Xid {shown}: 13, Graphics Exception\n") == [(address, 13)]


@pytest.mark.parametrize(
    "tail", [": 79, pid='<unknown>', name=<unknown>, text", ": 79, text", ": 79,", ": 79", ":79, x"]
)
def test_what_follows_the_code_may_be_anything(tail: str) -> None:
    """Drivers of ten years differ in it."""
    assert codes(f"NVRM: Xid (PCI:0000:3b:00){tail}") == [(GPU, 79)]


def test_the_mig_instance_is_read() -> None:
    """Both numbers stand inside the parentheses."""
    (event,) = parse("NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:01): 94, pid=1").events
    assert isinstance(event, Xid)
    assert (event.gpu_instance, event.compute_instance) == (5, 1)


def test_joined_messages_are_taken_apart() -> None:
    """Two processors print at once, or a log lost its line breaks."""
    glued = "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 45, pid=7, Ch 08NVRM: Xid (PCI:0000:5e:00): 79, off"
    stamped = (
        "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 45, Ch 08 [ 1.1] NVRM: Xid (PCI:0000:5e:00): 79, off"
    )
    other = "[ 1.0] usb 1-1: Product: KeyboardNVRM: Xid (PCI:0000:5e:00): 79, off"
    later = "[ 1.0] usb 1-1: new device [ 1.1] NVRM: Xid (PCI:0000:5e:00): 79, off"
    escaped = "kernel: NVRM: Xid (PCI:0000:3b:00): 45, Ch 08#012NVRM: Xid (PCI:0000:5e:00): 79, off"
    both = [(GPU, 45), ("0000:5e:00.0", 79)]
    assert [codes(glued), codes(stamped), codes(escaped)] == [both] * 3
    assert [codes(other), codes(later)] == [both[1:]] * 2


def test_repeats_that_syslog_folded_are_counted() -> None:
    """`message repeated 17 times` holds the message again."""
    line = f"Feb  3 04:17:05 gpu-7 kernel: message repeated 17 times: [ [ 51.1] {BODY}]"
    assert [event.count for event in parse(line).events] == [17]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_any_line_break_ends_a_line(line_break: str) -> None:
    """A user's line does not swallow the kernel's next one."""
    text = line_break.join(["gpu-7 app[1]: NVRM: quoted", BODY, "other", BODY, ""])
    assert codes(text) == [(GPU, 46), (GPU, 46)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_and_bad_bytes_do_no_harm(encoding: str) -> None:
    """Logs come through Windows and through broken terminals."""
    assert codes(decode(f"{BODY}\n".encode(encoding))) == [(GPU, 46)]
    assert codes(decode(b"\xff\xfe\xff junk\n")) == []
    assert codes(decode(b"\x80\x81 junk\n" + BODY.encode() + b" name=\xff\xfe\n")) == [(GPU, 46)]


def test_journal_json_tells_the_kernel_by_its_transport() -> None:
    """The same words by another sender are no fault."""

    def record(transport: str) -> str:
        return json.dumps({"_TRANSPORT": transport, "MESSAGE": BODY, "PRIORITY": "4"})

    assert codes(record("kernel")) == [(GPU, 46)]
    assert codes(record("syslog")) == []
    assert codes('{"_TRANSPORT":"kernel","MESSAGE":"NVRM: Xid') == []


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "[ 1.0] NVRM: GPU 3b:00.0: GPU has fallen off the bus.",
        "NVRM: GPU at PCI:0000:3b:00: has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus",
        (
            "[ 1.0] NVRM: The NVIDIA GPU 0000:3b:00.0\n[ 1.1] usb 1-1: hello\n"
            "[ 1.2] NVRM: (PCI ID: 10de:2330) installed in this system has\n"
            "[ 1.3] NVRM: fallen off the bus and is not responding to commands."
        ),
    ],
)
def test_a_gpu_off_the_bus_is_found_without_an_xid(text: str) -> None:
    """On one line or spread over three."""
    assert [(type(e), e.pci) for e in parse(text).events] == [(Lost, GPU)]


def test_a_message_that_ends_otherwise_blames_no_gpu() -> None:
    """The same first line also begins `... is not supported`."""
    log = parse(
        "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1b80)\n"
        "NVRM: installed in this system is not supported by this driver.\n"
        "NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert [event.pci for event in log.events] == [None]


def test_the_uuid_of_an_address_is_kept() -> None:
    """The driver prints it once before the first XID."""
    log = parse(f"NVRM: GPU at PCI:0000:3B:00: {UUID}\nNVRM: GPU Board Serial Number: 1\n")
    assert (log.uuids, log.events, log.messages) == ({GPU: UUID}, (), 2)


def test_switch_errors_carry_the_drivers_word_and_fold_their_details() -> None:
    """One error prints three lines; a cut log may hold only the later ones."""
    first = "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 24007, {}, Link 28 timeout (First)\n"
    more = "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 24007, Severity 1 Engine instance 46\n"
    data = "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 24007, Data {0x00140004, 0x00100000}\n"

    def fatal(text: str) -> list[bool | None]:
        return [event.fatal for event in parse(text).events if isinstance(event, Sxid)]

    assert fatal(first.format("Fatal") + more + data) == [True]
    assert fatal(first.format("Non-fatal") + data) == [False]
    assert fatal(first.format("Correctable")) == [False]
    assert fatal(more + data) == [True]
    assert fatal(data) == [None]
    (event,) = parse(first.format("Fatal")).events
    assert isinstance(event, Sxid)
    assert (event.pci, event.code, event.link) == ("0000:c4:00.0", 24007, 28)


@pytest.mark.parametrize(
    ("prefix", "unix_s", "clock_s"),
    [
        ("[   12.5] ", None, 12.5),
        ("1970-01-02T00:00:01.5+00:00 gpu-7 kernel: ", 86_401.5, 86_401.5),
        ("1970-01-01T02:00:00,25+02:00 h kernel: ", 0.25, 7_200.25),
        ("2024-02-29T00:00:00Z h kernel: ", 1_709_164_800.0, 1_709_164_800.0),
        ("2024-02-29 00:00:00 h kernel: ", None, 1_709_164_800.0),
        ("[Thu Jan  1 00:01:00 1970] ", None, 60.0),
        ("Jan  1 00:00:00 h kernel: ", None, 946_684_800.0),
        ("set 12 18:38:24 h kernel: ", None, None),
        ("", None, None),
    ],
)
def test_times_are_read_as_far_as_they_are_told(
    prefix: str, unix_s: float | None, clock_s: float | None
) -> None:
    """Only a time zone makes Unix time."""
    stamp = stamp_of(prefix)
    assert (stamp.unix_s, stamp.clock_s) == (unix_s, clock_s)


def test_an_event_carries_the_time_of_its_line() -> None:
    """For telling incidents apart."""
    (event,) = parse(f"[   12.5] {BODY}").events
    assert event.clock_s == 12.5


_PIECES = [*"NVRM: Xid(PC0139a.,[]\n\r\t<>{}\"'", "kernel:", BODY, " 79", "\x1b[0m", "[ 1.0] "]


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_no_text_raises(text: str) -> None:
    """Whatever a log holds, reading it ends with events or without."""
    assert parse(text).messages >= len(parse(text).events)


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    """Any file can be fed."""
    assert parse(decode(data)).messages >= 0


@given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_an_address_in_its_own_form_stays_as_it_is(
    domain: int, bus: int, device: int, function: int
) -> None:
    """Normalising twice is normalising once."""
    address = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert pci_address(address) == address
    assert pci_address(f"PCI:{address.upper()}") == address


@pytest.mark.parametrize(
    "text",
    [
        " " * 399 + "x NVRM: Xid",
        "[ 1.1] " * 56 + "x NVRM:",
        "a:" * 190 + " NVRM:",
        "ab " * 130 + "NVRM:",
        "Feb  3 04:17:05 " * 24 + "NVRM:",
        "[ 1.1] usb " + "[ 1.1] " * 500 + "NVRM:",
        "NVRM: Xid (" + "(" * 400,
        "{" * 400 + "NVRM:",
        '{"a":' * 5000 + "NVRM:",
        "NVRM:" * 100,
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.timeout(20)
def test_lines_made_to_be_slow_are_not(text: str) -> None:
    """A thousand hostile lines are read at once: no pattern backtracks over a whole line."""
    assert not parse(f"{text}\n" * 1_000).events


def test_the_drivers_name_alone_is_no_message() -> None:
    """Version banners and half lines name it too."""
    log = parse("NVRM version: NVIDIA UNIX\nNVRM: Xid (PCI:0000:3b\nNVRM: Xid (PCI:0000:3b:00): \n")
    assert (log.events, log.messages) == ((), 2)


def test_a_follower_of_a_log_sees_what_a_reader_of_the_whole_sees() -> None:
    """The agent feeds line by line."""
    lines = [
        "[ 1.0] NVRM: The NVIDIA GPU 0000:3b:00.0",
        "[ 1.1] NVRM: fallen off the bus and is not responding to commands.",
        f"[ 2.0] {BODY}",
    ]
    reader = KernelLogReader()
    followed = [event for line in lines for event in reader.feed(line)]
    assert tuple(followed) == parse("\n".join(lines)).events
