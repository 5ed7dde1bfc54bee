"""Prometheus text, read line by line: what is whole counts, whatever stands around it.

`prometheus_client.parser` gives up on the first bad line; a page that was cut, or an error answer in
its place, must still yield what arrived. Format: Prometheus "Text-based format" 0.0.4 (OpenMetrics'
exemplars are skipped).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_LINE: Final = re.compile(
    r"""\s* (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*) \s*
        (?: \{ (?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*) \} )?
        \s* (?<=[\s}]) (?P<value>[^\s_]+)
        (?: \s+ (?P<time_ms>-?\d{1,18}) )?
        \s* (?:\#.*)? \Z""",
    re.VERBOSE,
)
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_OF_ESCAPE: Final = {"n": "\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One series of the page."""

    name: str
    labels: Mapping[str, str]
    value: float
    time_s: float | None = None
    """The time stamp of the sample, Unix time; None: the page gives none."""


def rows(text: str) -> Iterator[Row]:
    """The series that can be read. A last line without its end is not whole: its number may be cut.

    Label values never hold a line feed, so lines are split at it alone.
    """
    *whole, _ = text.split("\n")
    for line in whole:
        row = _row(line)
        if row is not None:
            yield row


def _row(line: str) -> Row | None:
    match = None if line.lstrip().startswith("#") else _LINE.match(line)
    if match is None:
        return None
    try:
        value = float(match["value"])
    except ValueError:
        return None
    return Row(
        name=match["name"],
        labels={name: _unescaped(text) for name, text in _LABEL.findall(match["labels"] or "")},
        value=value,
        time_s=int(match["time_ms"]) / 1000 if match["time_ms"] else None,
    )


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _OF_ESCAPE.get(found[1], found[1]), text)
