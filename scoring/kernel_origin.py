"""Whether the kernel itself printed a log line, told by what stands before its message.

A user process may quote an XID (a person searching the log, an agent reporting one); only the
kernel's own messages are faults. Known prefixes: dmesg in all its time formats and with
`--decode`, /dev/kmsg records, syslog as of RFC 3164 and RFC 5424, journalctl's short formats, and
none at all.
"""

from __future__ import annotations

import re
from typing import Final

PREFIX_MAX: Final = 400
"""Characters: no prefix is longer, and a longer text is not searched for one."""

_KERNEL_PRIORITY_MAX: Final = 7
"""Syslog priorities 0 to 7 are the facility `kern`."""

_TIME: Final = (
    r"(?:\w{2,4}\s+)?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"(?:Z|\s?UTC|\s?[A-Z]{3,4}(?=\s)|\s?[+-]\d\d:?\d\d)?"
    r"|\d{9,12}(?:\.\d+)?"
    r"|(?:\S{1,12}\s+){1,2}\d{1,2}\s+\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\s+\d{4})?"
)
_BRACKET: Final = (
    r"\[\s*(?:[<+]?\s*\d+\.\d+>?(?:\s*<[^>]{0,20}>)?|[TC]\d+|\.\.\.|[^\[\]\"']{0,40}\d\d:\d\d[^\[\]\"']{0,40})"
    r"(?:,\s*\d+)?\s*\]"
)
_HOST: Final = r"[^\s\"'\[\]()]*[^\s:\"'\[\]()]"

PREFIX: Final = re.compile(
    rf"""
    (?:/\S*?:(?:\d+:)?|\d{{1,9}}:(?=\S))?\s*            # grep's file name or line number
    (?:MESSAGE=)?                                       # journalctl -o verbose
    (?:<(?P<priority>\d{{1,3}})>\s?(?:1\s)?)?
    (?:(?P<record>\d{{1,3}}),\d+,\d+,[^;]{{0,40}};)?    # /dev/kmsg
    (?:(?P<facility>[a-z]\w{{1,9}})\s*:(?:emerg|alert|crit|err|warn|notice|info|debug)\s*:)?
    \s*+
    (?:(?:{_BRACKET})\s*+)*+
    (?:(?:(?P<time>{_TIME})\s+)?
       (?:
         (?:{_HOST}\s+)?(?:kern\.\w+\s+)?(?P<kernel>kernel)(?:\[\d+\])?(?::|\s+-\s+\S+\s+(?:-|\[.{{0,80}}?\]))
         |(?(time){_HOST})
       )?
    )
    \s*+
    (?:message\ repeated\ (?P<repeats>\d+)\ times:\s*\[)?
    \s*+(?:(?:{_BRACKET})\s*+)*+
    """,
    re.VERBOSE | re.IGNORECASE,
)

# Runs of spaces would let the pattern divide them among its optional parts in too many ways.
_SPACES: Final = re.compile(r"\s+")
_OWN_TIME: Final = re.compile(rf"(?:{_BRACKET})\s*\Z")
_PROCESS: Final = re.compile(r"\s*(?:[^\s:\[\]]+\[\d+\]:|audit\b)")
_ATTACHED: Final = re.compile(r"[\w.)\]!}]\Z")


def of_kernel(prefix: str) -> re.Match[str] | None:
    """The match of `PREFIX` where all of `prefix` is the kernel's; None where it is another's."""
    if len(prefix) > PREFIX_MAX:
        return None
    match = PREFIX.fullmatch(_SPACES.sub(" ", prefix))
    return match if match is not None and _is_kernel_facility(match) else None


def joined_to_kernel(before: str) -> bool:
    """Whether `before` is another kernel message that a second one was printed right onto, without
    a line break: two processors did so at the same time.
    """
    before = _SPACES.sub(" ", before)
    match = PREFIX.match(before[:PREFIX_MAX])
    if match is None or not _is_kernel_facility(match):
        return False
    marked = match["kernel"] or match["record"] or match["priority"] or match["facility"]
    if not marked and "[" not in match[0]:
        return False
    body = before[match.end() :]
    if _PROCESS.match(body):
        return False
    return bool(_OWN_TIME.search(body[-PREFIX_MAX:]) or _ATTACHED.search(body))


def _is_kernel_facility(match: re.Match[str]) -> bool:
    priority = match["priority"] or match["record"]
    if priority is not None and int(priority) > _KERNEL_PRIORITY_MAX:
        return False
    return match["facility"] is None or match["facility"].lower() == "kern"
