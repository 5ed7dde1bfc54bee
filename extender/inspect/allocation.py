"""`surefoot inspect allocation`: which sets of GPUs NVIDIA's stock device plugin may hand out."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from scoring.allocator.best_effort import MAX_PARTITIONS, possible
from scoring.allocator.pairs import PCIE_POINTS, PairScores, pair_points, pair_scores
from scoring.rings import mask_of, positions

MAX_GPUS: Final = 72
"""GPUs of the largest NVLink domain that is sold as one machine."""

_OLD_WORDS: Final = {"SOC": "SYS"}
_Cell = TypeVar("_Cell")
_log = logging.getLogger(__name__)


class UnusableError(ValueError):
    """The text is no machine with an ask; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A machine, its free GPUs as positions, and how many of them are asked for."""

    scores: PairScores
    available: int
    size: int


def report(data: bytes) -> dict[str, Any] | None:
    """The answer of `inspect allocation --json`; None when the text is no machine with an ask, and
    standard error says why.

    `possible`: every set that may come, over every order in which kubelet may list the free GPUs;
    `may_fail`: some order makes the plugin fail the pod. Both are null, and `mode` is `unknown`, for
    asks with more than `MAX_PARTITIONS` partitions.
    """
    try:
        asked = question(data)
    except UnusableError as error:
        _log.warning("%s", error)
        return None
    found = possible(asked.scores, asked.available, asked.size)
    if found.sets is None:
        return {"possible": None, "may_fail": None, "mode": "unknown"}
    sets = sorted(list(positions(each)) for each in found.sets)
    return {"possible": sets, "may_fail": found.may_fail, "mode": "nvidia"}


def render(answer: Mapping[str, Any]) -> str:
    """The same for people: how many sets, a line for each, then what may go wrong."""
    if answer["possible"] is None:
        return f"unknown: any set may come (over {MAX_PARTITIONS:,} ways to part the free GPUs)"
    sets = answer["possible"]
    if len(sets) == 1:
        lines = ["one set of GPUs may be handed out:"]
    else:
        lines = [f"{len(sets)} sets of GPUs, one of which may be handed out:"] if sets else []
    lines += ["  " + " ".join(map(str, each)) for each in sets]
    if answer["may_fail"]:
        lines.append("may fail: some order of the free GPUs makes the plugin return a nil device")
    return "\n".join(lines or ["no set: more GPUs are asked for than are available"])


def question(data: bytes) -> Question:
    """What the text asks. Raises UnusableError, which says what is wrong with it."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnusableError("not JSON") from error
    if not isinstance(document, dict):
        raise UnusableError("not a JSON object")
    pcie = _matrix(document, "pci", _pcie_class, "PIX")
    nvlink = _matrix(document, "nvlink", _count, 0)
    if len(pcie) != len(nvlink):
        raise UnusableError(f"pci has {len(pcie)} GPUs, nvlink {len(nvlink)}")
    points = tuple(
        tuple(map(pair_points, classes, counts))
        for classes, counts in zip(pcie, nvlink, strict=True)
    )
    size = _count(document.get("size"))
    if not size:
        raise UnusableError("size: not a number of GPUs, 1 or more")
    return Question(
        scores=pair_scores(points),
        available=_available(document.get("available"), len(points)),
        size=size,
    )


def _matrix(
    document: Mapping[str, Any], name: str, read: Callable[[object], _Cell | None], itself: _Cell
) -> list[list[_Cell]]:
    """A square, symmetric matrix. Its diagonal is not looked at and becomes `itself`."""
    rows = document.get(name)
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_GPUS:
        raise UnusableError(f"{name}: not a matrix of 1 to {MAX_GPUS} GPUs")
    matrix: list[list[_Cell]] = []
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(rows):
            raise UnusableError(f"{name}[{i}]: not a row of {len(rows)} cells")
        cells = [itself if i == j else read(cell) for j, cell in enumerate(row)]
        known = [cell for cell in cells if cell is not None]
        if len(known) < len(cells):
            j = cells.index(None)
            raise UnusableError(f"{name}[{i}][{j}]: not understood: {row[j]!s:.40}")
        for j in range(i):
            if known[j] != matrix[j][i]:
                raise UnusableError(f"{name}: the two directions of GPUs {j} and {i} differ")
        matrix.append(known)
    return matrix


def _pcie_class(cell: object) -> str | None:
    word = _OLD_WORDS.get(cell, cell) if isinstance(cell, str) else None
    return word if word in PCIE_POINTS else None


def _count(cell: object) -> int | None:
    return cell if isinstance(cell, int) and not isinstance(cell, bool) and cell >= 0 else None


def _available(value: object, gpus: int) -> int:
    """The listed positions as a set; a position listed twice is a mistake, not two GPUs."""
    if not isinstance(value, list):
        raise UnusableError("available: not a list of positions")
    listed = [position for position in map(_count, value) if position is not None]
    if len(listed) < len(value) or any(position >= gpus for position in listed):
        raise UnusableError(f"available: positions must be 0 to {gpus - 1}")
    if len(set(listed)) < len(listed):
        raise UnusableError("available: a position is listed twice")
    return mask_of(listed)
