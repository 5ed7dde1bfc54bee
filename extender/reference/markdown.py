"""Markdown, and the texts that stand under the members of an enum."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

HEAD: Final = "<!-- Written by `python -m extender.reference`: change the code instead. -->\n"
"""The first line of each page."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    cells = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in cells) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def member_docs(kind: type[Enum]) -> Mapping[str, str]:
    """The text under each member of an enum, by the member's name."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found: dict[str, str] = {}
    member = ""
    for statement in typing.cast("ast.ClassDef", body).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=member)]):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if member:
                found[member] = " ".join(text.split())
            case _:
                member = ""
    return found


def runs_of(codes: Sequence[int]) -> str:
    """`1-4, 6` for 1, 2, 3, 4, 6."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][-1] + 1:
            runs[-1].append(code)
        else:
            runs.append([code])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )
