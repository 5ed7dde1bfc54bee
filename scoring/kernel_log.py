"""Read the text of a kernel log: XIDs, NVSwitch errors, GPUs that fell off the bus, UUIDs.

Forms that are understood (printed by NVIDIA's kernel modules, from 2013 to the 595 branch):
`NVRM: Xid (PCI:0000:3b:00): 79, ...`, the same with MIG instances in the parentheses, without
`PCI:`, with a shorter or longer address or none; `nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): ...`;
`GPU has fallen off the bus` on one line or spread over three.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from scoring.kernel_clock import NO_STAMP, Stamp, stamp_of
from scoring.kernel_origin import joined_to_kernel, of_kernel
from scoring.xid.events import KernelEvent, Lost, Sxid, Xid

SPREAD_MAX: Final = 12
"""Driver messages within which a message that was printed line by line has to end."""

_CANDIDATE: Final = re.compile(r"NVRM|nvidia-nvswitch")
_MARKER: Final = re.compile(r"NVRM:|nvidia-nvswitch\d*:")
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_ADDRESS: Final = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?"
_BUS_ID: Final = re.compile(
    r"(?:PCI:)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,4}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE
)
_XID: Final = re.compile(
    r"NVRM:\s*(?:GPU\s?\d+:?\s+)?Xid\s*(?:\((?:PCI:)?(?P<pci>[0-9a-f:.]*)(?P<mig>[^)]{0,64})\))?"
    r"\s*:\s*(?P<code>\d{1,5})(?!\d)\s*,?\s*(?P<text>.*)",
    re.IGNORECASE,
)
_SXID: Final = re.compile(
    r"nvidia-nvswitch\d*:\s*SXid\s*\((?:PCI:)?(?P<pci>[0-9a-f:.]*)[^)]{0,64}\)"
    r"\s*:\s*(?P<code>\d{1,6})(?!\d)\s*,?\s*(?P<text>.*)",
    re.IGNORECASE,
)
_INSTANCE: Final = re.compile(r"GPU-(C?I):(\d+)", re.IGNORECASE)
_UUID: Final = re.compile(
    rf"NVRM:\s*GPU at (?:PCI:)?(?P<pci>{_ADDRESS}):?\s+(?P<uuid>GPU-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})",
    re.IGNORECASE,
)
_OF_GPU: Final = re.compile(rf"(?<![0-9a-f.])(?<![0-9a-f]:)({_ADDRESS})(?![0-9a-f])", re.IGNORECASE)
_FALLEN: Final = "fallen off the bus"
_NAMES_GPU: Final = re.compile(
    rf"NVRM:\s*The NVIDIA GPU (?:at )?(?:PCI:)?{_ADDRESS}", re.IGNORECASE
)
_OTHER_END: Final = "installed in this system is"
_SWITCH_LINK: Final = re.compile(r"\bLink (\d+)")
_SWITCH_SEVERITY: Final = re.compile(r"Severity (\d+)")
_FATAL_WORDS: Final[Mapping[str, bool]] = {
    "fatal": True,
    "non-fatal": False,
    "nonfatal": False,
    "correctable": False,
    "corrected": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLog:
    """What a log says of NVIDIA devices."""

    events: tuple[KernelEvent, ...] = ()
    """In the order of the log."""
    uuids: Mapping[str, str] = field(default_factory=dict)
    """GPU UUID by PCI address, where the driver printed it."""
    messages: int = 0
    """Messages of NVIDIA's drivers, whatever they say; 0: the log tells nothing of GPUs."""


def decode(data: bytes) -> str:
    """The text of a log file: UTF-8 or, with a byte order mark, UTF-16; bad bytes are replaced."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def parse(text: str) -> KernelLog:
    """Read a whole log. Lines without a word of NVIDIA's drivers cost next to nothing."""
    reader = KernelLogReader()
    events: list[KernelEvent] = []
    for line in _candidates(text):
        events.extend(reader.feed(line))
    return KernelLog(
        events=tuple(reader.with_severity(events)), uuids=reader.uuids, messages=reader.messages
    )


@lru_cache(maxsize=4096)
def pci_address(text: str) -> str | None:
    """`0000:3b:00.0` for `3B:00`, `PCI:0000:3b:00`, `00000000:3B:00.0`; None if it is none."""
    match = _BUS_ID.fullmatch(text.strip())
    if match is None:
        return None
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


class _Message(NamedTuple):
    """One message of a driver, the prefix of the log taken off."""

    text: str
    stamp: Stamp
    times: int


class KernelLogReader:
    """Reads a log line by line, for whoever follows one. Not safe for threads."""

    def __init__(self) -> None:
        self.uuids: dict[str, str] = {}
        self.messages = 0
        self._spread_pci: str | None = None
        self._spread_left = 0
        self._fatal: dict[tuple[str | None, int], bool | None] = {}

    def feed(self, line: str) -> Iterator[KernelEvent]:
        """The events of one line, without its line break."""
        for message in _messages(line):
            self.messages += 1
            event = self._read(message)
            if event is not None:
                yield event

    def with_severity(self, events: list[KernelEvent]) -> Iterator[KernelEvent]:
        """`events` with the severity that a later detail line gave to a switch's error."""
        for event in events:
            if isinstance(event, Sxid) and event.fatal is None:
                yield replace(event, fatal=self._fatal.get((event.pci, event.code)))
            else:
                yield event

    def _read(self, message: _Message) -> KernelEvent | None:
        xid = _XID.match(message.text)
        if xid:
            return _xid(xid, message)
        sxid = _SXID.match(message.text)
        if sxid:
            return self._sxid(sxid, message)
        uuid = _UUID.match(message.text)
        if uuid:
            self.uuids[pci_address(uuid["pci"]) or uuid["pci"]] = uuid["uuid"]
            return None
        return self._lost(message)

    def _sxid(self, match: re.Match[str], message: _Message) -> Sxid | None:
        """The first line of an error; its lines of detail only tell the severity."""
        pci, code, text = pci_address(match["pci"]), int(match["code"]), match["text"]
        key = (pci, code)
        fatal = _FATAL_WORDS.get(text.partition(",")[0].strip().lower())
        severity = _SWITCH_SEVERITY.match(text)
        if severity:
            fatal = severity[1] != "0"
        if severity or text.startswith("Data"):
            known = key in self._fatal
            if self._fatal.get(key) is None:
                self._fatal[key] = fatal
            if known:
                return None
        self._fatal.setdefault(key, fatal)
        link = _SWITCH_LINK.search(text)
        return Sxid(
            pci=pci,
            line=message.text,
            unix_s=message.stamp.unix_s,
            clock_s=message.stamp.clock_s,
            count=message.times,
            code=code,
            text=text,
            fatal=fatal,
            link=int(link[1]) if link else None,
        )

    def _lost(self, message: _Message) -> Lost | None:
        if self._spread_left:
            self._spread_left -= 1
        if _FALLEN in message.text:
            address = _OF_GPU.search(message.text)
            spread = self._spread_pci if self._spread_left else None
            self._spread_left = 0
            return Lost(
                pci=pci_address(address[1]) if address else spread,
                line=message.text,
                unix_s=message.stamp.unix_s,
                clock_s=message.stamp.clock_s,
                count=message.times,
            )
        if _NAMES_GPU.match(message.text) and _OTHER_END not in message.text:
            address = _OF_GPU.search(message.text)
            self._spread_pci = pci_address(address[1]) if address else None
            self._spread_left = SPREAD_MAX
        elif _OTHER_END in message.text:
            self._spread_left = 0
        return None


def _xid(match: re.Match[str], message: _Message) -> Xid:
    instances = {
        kind.upper(): int(number) for kind, number in _INSTANCE.findall(match["mig"] or "")
    }
    return Xid(
        pci=pci_address(match["pci"] or ""),
        line=message.text,
        unix_s=message.stamp.unix_s,
        clock_s=message.stamp.clock_s,
        count=message.times,
        code=int(match["code"]),
        text=match["text"],
        gpu_instance=instances.get("I"),
        compute_instance=instances.get("CI"),
    )


def _candidates(text: str) -> Iterator[str]:
    """Each line that speaks of NVIDIA's drivers, found by its words and cut at its breaks."""
    end = 0
    for match in _CANDIDATE.finditer(text):
        if match.start() < end:
            continue
        start = max(text.rfind("\n", end, match.start()), text.rfind("\r", end, match.start())) + 1
        start = max(start, end)
        end = _line_end(text, match.end())
        yield text[start:end]


def _line_end(text: str, start: int) -> int:
    newline = text.find("\n", start)
    stop = len(text) if newline < 0 else newline
    bare = text.find("\r", start, stop)
    return stop if bare < 0 else bare


def _messages(line: str) -> Iterator[_Message]:
    """The kernel's messages on one line, each with its time and how often it was printed."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if line.startswith("{"):
        line = _from_json(line)
    marks = list(_MARKER.finditer(line))
    if not marks:
        return
    before = line[: marks[0].start()].lstrip("\ufeff\x00")
    prefix = of_kernel(before)
    if prefix is None and not joined_to_kernel(before):
        return
    stamp = stamp_of(before) if before else NO_STAMP
    count = int(prefix["repeats"]) if prefix and prefix["repeats"] else 1
    ends = [*(mark.start() for mark in marks[1:]), len(line)]
    for mark, end in zip(marks, ends, strict=True):
        yield _Message(line[mark.start() : end].rstrip(), stamp, count)


def _from_json(line: str) -> str:
    """A record of `journalctl -o json` as a short line; as it is where it is none of the kernel's."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if record.get("_TRANSPORT") != "kernel" or not isinstance(record.get("MESSAGE"), str):
        return line
    return f"kernel: {record['MESSAGE']}"
