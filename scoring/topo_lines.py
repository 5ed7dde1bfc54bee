"""Cuts the text of `nvidia-smi topo -m` into matrices: a header, rows of cells, what follows.

The text comes from terminals, tickets and logs: tabs may have become blanks, cells may stick
together, lines may be broken, quoted or coloured. Nothing is judged here (see `scoring.topo_text`).
Work is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from scoring.links import SELF, WORST, is_word

MAX_LINE: Final = 8_192
"""Longer lines are skipped: a real row of 16 GPUs and 64 cards has about 700 characters."""
MAX_ROWS: Final = 1_024
"""More rows of one matrix, or pieces of one row, are skipped."""
MAX_HEADER_LINES: Final = 16
"""A header broken into more lines is none."""
MAX_HEADERS: Final = 4_096
"""Behind so many headers the rest of a text is skipped."""


class Affinity(IntEnum):
    """The columns behind the devices, in the order in which drivers print them."""

    CPUS = 0
    NUMA = 1
    GPU_NUMA = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The column names of one matrix."""

    columns: tuple[int | None, ...] = ()
    """A GPU's index, or None for a network card."""
    affinities: tuple[tuple[Affinity, int], ...] = ()
    """With the offset on the line; -1 where the header was broken into several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row of one GPU."""

    gpu: int
    cells: tuple[str, ...]
    """Link classes by column; "" where a cell is empty or unreadable."""
    tail: tuple[tuple[str, int], ...]
    """The cells of affinity, with the offset on the line; -1: not known."""
    tabbed: bool
    """Whether tabs part the cells, so that empty ones show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One matrix as it stands in the text."""

    header: Header
    rows: tuple[Row, ...]
    legend_has_nvlink: bool
    """Whether a legend follows whose `NV#` line says that NVLink would have been shown."""
    ends_in_row: bool
    """Whether nothing follows the last row, so that it may be cut."""


# Colours, the escape character perhaps lost or spelt out; any other escape sequence.
_ANSI: Final = re.compile(
    r"(?:\x1b|\^\[|\\(?:e|033|x1b|u001b))\[[\d;?]*[A-Za-z]|\[\d*(?:;\d+)*m|\x1b[@-_]"
)
# Blanks of web pages, bars of tables, byte order marks.
_BLANKS: Final = {0xA0: " ", 0x2007: " ", 0x202F: " ", ord("|"): "\t", 0xFEFF: None, 0: None}
# Shell comments, quotes and prompts; then at most one time stamp as container logs have it, and one
# `host:` as pdsh prints it.
_LEAD: Final = re.compile(
    r"[\s#>$*`'\"]*"
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,+Z-]{5,40}\s(?:std(?:out|err) [FP] )?)?"
    r"(?:(?!GPU\d|NIC\d)[\w.-]{1,64}:[ \t]+)?\s*"
)

_CLASS: Final = r"(?:X|SYS|SOC|NODE|PHB|PXB|PIX)"
_WORD: Final = re.compile(rf"{_CLASS}|NV\d{{1,3}}")
_CELL: Final = re.compile(rf"(?:{_CLASS}|NV\d{{1,3}})+")
# A count must not swallow the digits of a CPU list, so the list sticks to a class only.
_CELL_AND_CPUS: Final = re.compile(rf"((?:{_CLASS}|NV\d{{1,3}})*{_CLASS})(\d[\d,-]*)")
_AFFINITY_CELL: Final = re.compile(r"N/A|[\d,-]+")
_LEGEND: Final = re.compile(rf"(?:{_CLASS}|NV#)\s*=")
_ROW: Final = re.compile(rf"GPU(\d{{1,4}})(?=[ \t]|{_CLASS}|NV\d)")

_AFFINITY_NAME: Final = re.compile(
    r"(CPU\s+Affinity)|(NUMA\s+Affinity)|(GPU\s+NUMA\s+ID)", re.IGNORECASE
)
_DEVICE: Final = re.compile(r"GPU(\d{1,4})|NIC\d+|mlx\d_(?:bond_)?\d+")
_DEVICES: Final = re.compile(r"(?:GPU\d{1,4}|NIC\d+|mlx\d_(?:bond_)?\d+)+")
_DEVICE_STARTS: Final = re.compile(r"(?=GPU\d|NIC\d)")
_OTHER_DEVICE: Final = re.compile(r"[A-Za-z][\w.-]*\d[\w.-]*")
_HEADER_WORDS: Final = ("GPU", "NIC", "CPU", "NUMA", "Affinity", "ID", "mlx5_")


@dataclass(slots=True)
class _Draft:
    """A matrix while its lines come in."""

    header: list[str] = field(default_factory=list)
    named: set[int] = field(default_factory=set)
    rows: list[tuple[int, list[str], int]] = field(default_factory=list)
    legend_has_nvlink: bool = False
    ends_in_row: bool = False

    def matrix(self) -> Matrix:
        return Matrix(
            header=_header(self.header),
            rows=tuple(_row(*row) for row in self.rows),
            legend_has_nvlink=self.legend_has_nvlink,
            ends_in_row=self.ends_in_row,
        )


def matrices(text: str) -> Iterator[Matrix]:
    """The matrices of `text` that have a row, in order. A header behind rows starts the next."""
    draft, headers = _Draft(), 0
    for raw in _ANSI.sub("", text).translate(_BLANKS).splitlines():
        lead = _LEAD.match(raw) if len(raw) <= MAX_LINE else None
        start = lead.end() if lead else len(raw)
        line = raw[start:]
        if not line:
            continue
        if not _take_row_line(draft, raw, start) and _is_header(line):
            named = {gpu for gpu in _columns(line) if gpu is not None}
            if draft.rows or named & draft.named:
                if draft.rows:
                    yield draft.matrix()
                draft = _Draft()
                headers += 1
                if headers >= MAX_HEADERS:
                    return
            if len(draft.header) < MAX_HEADER_LINES:
                draft.header.append(" " * len(raw[:start].expandtabs()) + line)
            draft.named |= named
    if draft.rows:
        yield draft.matrix()


def _take_row_line(draft: _Draft, raw: str, start: int) -> bool:
    """Add a row, or the rest of a broken one, or a legend's line to `draft`; False: it is neither."""
    line = raw[start:]
    row = _ROW.match(line)
    if _LEGEND.match(line):
        draft.ends_in_row = False
        draft.legend_has_nvlink |= line.startswith("NV#")
    elif row and _WORD.search(line, row.end()):
        if len(draft.rows) < MAX_ROWS:
            offset = len(raw[: start + row.end()].expandtabs())
            draft.rows.append((int(row[1]), [line[row.end() :].rstrip(" ")], offset))
        draft.ends_in_row = True
    elif draft.ends_in_row and _continues(line):
        if len(draft.rows[-1][1]) < MAX_ROWS:
            draft.rows[-1][1].append(line)
    else:
        draft.ends_in_row = False
        return False
    return True


def _continues(line: str) -> bool:
    """Whether a terminal broke a row here: the line goes on with cells or with CPU lists."""
    tokens = line.split()
    return bool(_link_part(tokens[0])) or all(_AFFINITY_CELL.fullmatch(token) for token in tokens)


def _is_header(line: str) -> bool:
    """Whether `line` names devices and affinities and nothing else, perhaps cut at its end."""
    affinity = _AFFINITY_NAME.search(line)
    tokens = line[: affinity.start()].split() if affinity else line.split()
    if not affinity:
        for _ in range(2):
            if tokens and any(word.startswith(tokens[-1]) for word in _HEADER_WORDS):
                tokens.pop()
    if not tokens:
        return affinity is not None
    return all(
        _DEVICES.fullmatch(token) or _OTHER_DEVICE.fullmatch(token) for token in tokens
    ) and (any(token.startswith("GPU") for token in tokens) or affinity is not None)


def _columns(header: str) -> tuple[int | None, ...]:
    """The devices of a header in order, glued names apart."""
    affinity = _AFFINITY_NAME.search(header)
    columns: list[int | None] = []
    for token in header[: affinity.start() if affinity else None].split():
        for name in filter(None, _DEVICE_STARTS.split(token)):
            if _DEVICES.fullmatch(name):
                columns += [int(gpu) if gpu else None for gpu in _DEVICE.findall(name)]
            elif _OTHER_DEVICE.fullmatch(name):
                columns.append(None)
    return tuple(columns)


def _header(lines: Sequence[str]) -> Header:
    text = " ".join(lines)
    affinities: dict[Affinity, int] = {}
    for name in _AFFINITY_NAME.finditer(text):
        offset = len(text[: name.start()].expandtabs()) if len(lines) == 1 else -1
        affinities.setdefault(Affinity((name.lastindex or 1) - 1), offset)
    return Header(columns=_columns(text), affinities=tuple(affinities.items()))


def _row(gpu: int, pieces: Sequence[str], offset: int) -> Row:
    """The cells of one row. The last link class on the line parts the matrix from the affinities."""
    text = " ".join(pieces)
    tabbed = "\t" in text
    if tabbed:
        fields = text.lstrip(" ").removeprefix("\t").split("\t")
        tokens = [(token, -1) for cell in fields for token in cell.split() or [""]]
    else:
        known = len(pieces) == 1
        tokens = [(m[0], offset + m.start() if known else -1) for m in re.finditer(r"\S+", text)]
    end = max((i for i, (token, _) in enumerate(tokens, 1) if _link_part(token)), default=0)
    cells = [word for token, _ in tokens[:end] for word in _words(_link_part(token))]
    tail: list[tuple[str, int]] = []
    if end:
        last, start = tokens[end - 1]
        part = len(_link_part(last))
        tail += [(last[part:], start + part if start >= 0 else -1)] if last[part:] else []
    for token, start in tokens[end:]:
        found = _AFFINITY_CELL.finditer(token)
        tail += [(m[0], start + m.start() if start >= 0 else -1) for m in found] or [("", start)]
    return Row(gpu=gpu, cells=tuple(cells), tail=tuple(tail), tabbed=tabbed)


def _link_part(token: str) -> str:
    """The link classes of a token, a CPU list that sticks to them left out; "" if it has none."""
    if _CELL.fullmatch(token):
        return token
    glued = _CELL_AND_CPUS.fullmatch(token)
    return glued[1] if glued else ""


def _words(cells: str) -> list[str]:
    """Glued cells apart, in today's words; one unreadable cell for what is no link class."""
    return [_canonical(word) for word in _WORD.findall(cells)] or [""]


def _canonical(word: str) -> str:
    if word == "SOC":  # the name of SYS before the 384 drivers
        return WORST
    if word.startswith("NV"):
        word = f"NV{int(word[2:])}"
    return word if word == SELF or is_word(word) else ""
