"""Reads the text of `nvidia-smi topo -m`: the GPUs and the link class of every pair.

What a damaged text still says is read, what it lacks stays missing, and every doubt is put into
words. `topo -mp` prints the same matrix with NVLink left out, so a text counts as complete only if
it shows NVLink or has the legend that would explain it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from scoring.links import DEFAULT_NVLINK_GBPS, SELF, nvlinks, speed_gbps
from scoring.topo_lines import Affinity, Matrix, Row, matrices

MAX_NUMA_ID: Final = 4_095
MAX_NAMED: Final = 8
"""So many of a kind are named in one problem, the rest are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopoGpu:
    """One GPU of the matrix. None: the text does not say, or says `N/A`."""

    name: str
    index: int
    numa: tuple[int, ...] | None = None
    cpus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopoText:
    """What one matrix says."""

    gpus: tuple[TopoGpu, ...]
    """By index, those that only the header names included."""
    pairs: Mapping[tuple[int, int], str]
    """Link class by (lower, higher) index. A pair that is absent could not be read."""
    complete: bool
    """Whether every GPU has its row and column, nothing is cut, and NVLink would have shown."""
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Doubts:
    """What was found wrong: a gap makes the answer incomplete, a remark does not."""

    gaps: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def parse(text: str) -> TopoText | None:
    """The fullest matrix in `text` (one with NVLink first); None when there is none to use."""
    found = [topo for topo in map(_resolve, matrices(text)) if topo]
    if not found:
        return None
    best = max(found, key=lambda topo: (any(map(nvlinks, topo.pairs.values())), len(topo.pairs)))
    if len(found) == 1:
        return best
    remark = f"the text holds {len(found)} matrices: only the fullest is read"
    return replace(best, problems=(*best.problems, remark))


def _resolve(matrix: Matrix) -> TopoText | None:
    doubts = _Doubts()
    columns = _unique(matrix.header.columns)
    rows = _distinct([_squeezed(row, len(columns)) for row in matrix.rows], doubts)
    columns, rows = _aligned(columns, rows, doubts)
    if matrix.ends_in_row:
        last = matrix.rows[-1].gpu
        width = len(columns) + len(matrix.header.affinities)
        rows = tuple(
            _without_cut_cell(row, rows, width, doubts) if row.gpu == last else row for row in rows
        )
    pairs = _pairs(columns, rows, doubts)
    alone = len(rows) == 1 and (matrix.header.affinities or len(rows[0].cells) > 1)
    if not pairs and not (alone and SELF in rows[0].cells and set(columns) <= {rows[0].gpu, None}):
        return None
    _find_gaps(matrix, columns, rows, doubts)
    if not matrix.legend_has_nvlink and not any(map(nvlinks, pairs.values())):
        doubts.gaps.append(
            "no NVLink class and no legend line for NV#: `topo -mp`, which hides NVLink, looks the same"
        )
    gpus = {gpu: TopoGpu(name=f"GPU{gpu}", index=gpu) for gpu in columns if gpu is not None}
    gpus |= _affinities(matrix, rows, doubts)
    return TopoText(
        gpus=tuple(gpus[index] for index in sorted(gpus)),
        pairs=MappingProxyType(pairs),
        complete=not doubts.gaps,
        problems=(*doubts.gaps, *doubts.remarks),
    )


def _unique(columns: Sequence[int | None]) -> tuple[int | None, ...]:
    """The columns with a repeated GPU taken as unknown: GPU1 again is GPU10 cut short."""
    seen = Counter[int]()
    unique: list[int | None] = []
    for gpu in columns:
        if gpu is not None:
            seen[gpu] += 1
        unique.append(gpu if gpu is not None and seen[gpu] == 1 else None)
    return tuple(unique)


def _squeezed(row: Row, width: int) -> Row:
    """`row` without its empty cells where they come from doubled tabs."""
    filled = tuple(cell for cell in row.cells if cell)
    if len(filled) == len(row.cells) or len(filled) != width:
        return row
    return replace(row, cells=filled, tail=tuple(item for item in row.tail if item[0]))


def _distinct(rows: Sequence[Row], doubts: _Doubts) -> tuple[Row, ...]:
    """The rows by GPU; of a repeated one the first."""
    first: dict[int, Row] = {}
    for row in rows:
        first.setdefault(row.gpu, row)
    repeated = {row.gpu for row in rows if row is not first[row.gpu]}
    if repeated:
        doubts.remarks.append(f"more than one row for {_names(repeated)}: the first is read")
    return tuple(first[gpu] for gpu in sorted(first))


# --- which column is which GPU -------------------------------------------------------------------


def _aligned(
    columns: tuple[int | None, ...], rows: tuple[Row, ...], doubts: _Doubts
) -> tuple[tuple[int | None, ...], tuple[Row, ...]]:
    """The GPU of each column, and the rows that fit.

    The `X` of a row stands in the column of its own GPU. That checks the header, and stands in for
    it where it is lost or does not fit most rows.
    """
    if not any(gpu is not None for gpu in columns):
        doubts.gaps.append("the header is missing: only GPUs that have a row are read")
        return _by_diagonal(rows), rows
    fit = tuple(row for row in rows if _fits(row, columns))
    if 2 * len(fit) < len(rows):
        doubts.gaps.append(
            "the header does not fit the rows: columns are told by the X of each row"
        )
        return _by_diagonal(rows), rows
    if len(fit) < len(rows):
        shifted = {row.gpu for row in rows} - {row.gpu for row in fit}
        doubts.gaps.append(f"cells of {_names(shifted)} do not stand under their columns: not read")
        rows = tuple(replace(row, cells=()) if row.gpu in shifted else row for row in rows)
    return columns, rows


def _fits(row: Row, columns: Sequence[int | None]) -> bool:
    """Whether the `X` of `row`, as far as it is printed, meets the row's own column."""
    own = columns.index(row.gpu) if row.gpu in columns else None
    crosses = [at for at, cell in enumerate(row.cells[: len(columns)]) if cell == SELF]
    return (not crosses and (own is None or len(row.cells) <= own)) or crosses == [own]


def _by_diagonal(rows: Iterable[Row]) -> tuple[int | None, ...]:
    at = {row.cells.index(SELF): row.gpu for row in rows if SELF in row.cells}
    return tuple(at.get(column) for column in range(max(at, default=-1) + 1))


# --- cells -> pairs ------------------------------------------------------------------------------


def _without_cut_cell(row: Row, rows: Sequence[Row], width: int, doubts: _Doubts) -> Row:
    """The last row without a last count that may be cut: `NV1` where the text has `NV18`."""
    if not row.cells or row.tail or len(row.cells) >= width or not nvlinks(row.cells[-1]):
        return row
    last = row.cells[-1]
    if not any(cell != last and cell.startswith(last) for other in rows for cell in other.cells):
        return row
    doubts.gaps.append(f"the row of GPU{row.gpu} ends in {last}, perhaps cut: not read")
    return replace(row, cells=row.cells[:-1])


def _pairs(
    columns: Sequence[int | None], rows: Iterable[Row], doubts: _Doubts
) -> dict[tuple[int, int], str]:
    """The link class of each pair that is printed at least once; of two that differ the slower."""
    printed: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for row in rows:
        for gpu, word in zip(columns, row.cells, strict=False):
            if gpu is not None and gpu != row.gpu and word and word != SELF:
                printed[min(gpu, row.gpu), max(gpu, row.gpu)].add(word)
    uneven = sorted(pair for pair, words in printed.items() if len(words) > 1)
    for low, high in uneven[:MAX_NAMED]:
        words = " and ".join(sorted(printed[low, high]))
        doubts.remarks.append(f"GPU{low}-GPU{high} is {words} by direction: the slower is kept")
    if len(uneven) > MAX_NAMED:
        doubts.remarks.append(f"{len(uneven) - MAX_NAMED} more pairs differ by direction")
    return {pair: min(printed[pair], key=_speed) for pair in sorted(printed)}


def _speed(word: str) -> tuple[float, str]:
    return speed_gbps(word, DEFAULT_NVLINK_GBPS), word


def _find_gaps(
    matrix: Matrix, columns: Sequence[int | None], rows: Sequence[Row], doubts: _Doubts
) -> None:
    """Note GPUs without a row or a column, cells that are missing, and a row that breaks off."""
    across = {gpu for gpu in columns if gpu is not None}
    down = {row.gpu for row in rows}
    at = [column for column, gpu in enumerate(columns) if gpu is not None]
    short = {
        row.gpu
        for row in rows
        if any(len(row.cells) <= column or not row.cells[column] for column in at)
    }
    for names, what in (
        (across - down, "no row for"),
        (down - across, "no column for"),
        (short, "cells are missing in the row of"),
    ):
        if names:
            doubts.gaps.append(f"{what} {_names(names)}")
    reach = {row.gpu: _reach(row) for row in rows}
    last = matrix.rows[-1].gpu
    whole = max((depth for gpu, depth in reach.items() if gpu != last), default=reach[last])
    if matrix.ends_in_row and reach[last] < whole:
        doubts.gaps.append(f"the text ends within the row of GPU{last}")


def _reach(row: Row) -> int:
    """How many affinity cells `row` has, up to the last that is not empty."""
    return max((at for at, (cell, _) in enumerate(row.tail, 1) if cell), default=0)


def _names(gpus: Iterable[int]) -> str:
    ordered = sorted(gpus)
    more = f" and {len(ordered) - MAX_NAMED} more" if len(ordered) > MAX_NAMED else ""
    return ", ".join(f"GPU{gpu}" for gpu in ordered[:MAX_NAMED]) + more


# --- affinities ----------------------------------------------------------------------------------

_RANGE: Final = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_LAST_RANGE: Final = re.compile(r"((?:.*,)?)([0-9]{1,6})-([0-9]{1,6})")
_LIST: Final = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")
_NOT_SAID: Final = ("", "N/A")


def _affinities(matrix: Matrix, rows: Sequence[Row], doubts: _Doubts) -> dict[int, TopoGpu]:
    """The GPUs that have a row, with the CPUs and NUMA nodes near them."""
    columns = matrix.header.affinities or tuple((column, -1) for column in Affinity)
    cells = {row.gpu: _assigned(row, columns) for row in rows}
    spans = Counter(span for cell in cells.values() for span in _spans(cell.get(Affinity.CPUS, "")))
    widest = max(map(len, cells.values()), default=0)
    gpus: dict[int, TopoGpu] = {}
    for gpu, cell in cells.items():
        cpus, numa = cell.get(Affinity.CPUS, ""), cell.get(Affinity.NUMA, "")
        if len(cell) < widest and numa in _NOT_SAID:
            cpus, numa = _unglued(cpus, spans) or (cpus, numa)
        if cpus not in _NOT_SAID and not _LIST.fullmatch(cpus):
            doubts.remarks.append(f"GPU{gpu}: {cpus[:40]!r} is no list of CPUs")
            cpus = ""
        nodes = _ids(numa)
        if numa not in _NOT_SAID and nodes is None:
            doubts.remarks.append(f"GPU{gpu}: {numa[:40]!r} is no list of NUMA nodes")
        gpus[gpu] = TopoGpu(
            name=f"GPU{gpu}", index=gpu, numa=nodes, cpus=None if cpus in _NOT_SAID else cpus
        )
    return gpus


def _assigned(row: Row, columns: Sequence[tuple[Affinity, int]]) -> dict[Affinity, str]:
    """The affinity cells of `row` that are not empty, by column.

    Tabs keep empty cells apart. Between blanks an empty cell leaves no trace but its place: the
    column whose name starts nearest.
    """
    names = [name for name, _ in columns]
    placed = all(start >= 0 for _, start in columns) and all(start >= 0 for _, start in row.tail)
    if row.tabbed or not placed or len(row.tail) >= len(columns):
        found = zip(names, (cell for cell, _ in row.tail), strict=False)
    else:
        nearest = [min(columns, key=lambda c: abs(c[1] - at))[0] for _, at in row.tail]
        found = zip(nearest, (cell for cell, _ in row.tail), strict=True)
    return {name: cell for name, cell in found if cell}


def _spans(cpus: str) -> list[int]:
    """The lengths of the ranges of a CPU list."""
    return [int(high) - int(low) for low, high in _RANGE.findall(cpus) if high]


def _unglued(cpus: str, spans: Counter[int]) -> tuple[str, str] | None:
    """A CPU list and the NUMA id that sticks to it, apart: `0-27,56-831` is `0-27,56-83` and `1`.

    Believed only if exactly one cut makes the last range as long as another range of the text.
    """
    glued = _LAST_RANGE.fullmatch(cpus)
    if not glued:
        return None
    head, low, high = glued.groups()
    cuts = [
        (f"{head}{low}-{high[:at]}", high[at:])
        for at in range(max(1, len(high) - 2), len(high))
        if int(high[:at]) - int(low) in spans and str(int(high[at:])) == high[at:]
    ]
    return cuts[0] if len(cuts) == 1 else None


def _ids(numa: str) -> tuple[int, ...] | None:
    """The ids of a list like `0,8,252-255`; None if it is none."""
    if not _LIST.fullmatch(numa):
        return None
    ids: set[int] = set()
    for low, high in _RANGE.findall(numa):
        first, last = int(low), int(high or low)
        if not first <= last <= MAX_NUMA_ID:
            return None
        ids.update(range(first, last + 1))
    return tuple(sorted(ids))
