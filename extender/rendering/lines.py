"""YAML in which every line may say why it is there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import yaml

Scalar: TypeAlias = str | int | bool
WIDTH: Final = 100
"""Columns, comments included."""


@dataclass(frozen=True, slots=True)
class Line:
    """A key, its value, and the comment above it. Positional: rows of a table are read so."""

    key: str
    value: Value
    why: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """A list of scalars, on one line."""

    words: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of mappings."""

    blocks: tuple[Block, ...]


Block: TypeAlias = tuple[Line, ...]
Value: TypeAlias = Scalar | Words | Items | Block


def page(about: str, block: Block) -> str:
    """A YAML document with a comment at its head; an empty line in `about` parts paragraphs."""
    head = [line for part in about.split("\n\n") for line in (*_comment(part, ""), "#")][:-1]
    return "".join(f"{line}\n" for line in (*head, *_mapping(block, "")))


def _mapping(block: Block, margin: str) -> Iterator[str]:
    for line in block:
        yield from _comment(line.why, margin)
        head = f"{margin}{_scalar(line.key)}:"
        match line.value:
            case Items(blocks):
                yield head
                for each in blocks:
                    yield from _item(each, margin)
            case tuple() as inner:
                yield head
                yield from _mapping(inner, f"{margin}  ")
            case Words(words):
                yield f"{head} {_scalar(list(words))}"
            case value:
                yield f"{head} {_scalar(value)}"


def _item(block: Block, margin: str) -> Iterator[str]:
    """The mapping with its dash before the first key, and that key's comment above the dash."""
    dash = f"{margin}- "
    for text in _mapping(block, f"{margin}  "):
        if dash and text.lstrip().startswith("#"):
            yield f"{margin}{text.lstrip()}"
        else:
            yield f"{dash}{text.lstrip()}" if dash else text
            dash = ""


def _comment(text: str, margin: str) -> list[str]:
    head = f"{margin}# "
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=head,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _scalar(value: Scalar | list[Scalar]) -> str:
    """On one line, quoted where it must be."""
    return yaml.safe_dump(value, default_flow_style=True, width=1 << 20).split("\n")[0]
