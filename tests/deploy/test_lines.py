"""YAML with a comment above each line: what is written is read back, and the comments stay."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender.rendering.lines import WIDTH, Block, Items, Line, Value, Words, page

SCALARS = st.booleans() | st.integers() | st.text("aé: #-'\"[]{}!&*0\\", max_size=8)
COMMENTS = st.sampled_from(("", "Why.", "a: b # [c]", "- long " * 40))


def _blocks(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Block]:
    keys = st.sampled_from(("a", "b", "camelCase", "on"))
    lines = st.builds(Line, keys, values, COMMENTS)
    return st.lists(lines, min_size=1, max_size=3, unique_by=lambda each: each.key).map(tuple)


VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=3).map(tuple).map(Words),
    lambda inner: (
        _blocks(inner) | st.lists(_blocks(inner), min_size=1, max_size=2).map(tuple).map(Items)
    ),
    max_leaves=6,
)


def _plain(value: Value) -> Any:
    match value:
        case Words(words):
            return list(words)
        case Items(blocks):
            return [_plain(block) for block in blocks]
        case tuple() as lines:
            return {line.key: _plain(line.value) for line in lines}
        case scalar:
            return scalar


@given(_blocks(VALUES), COMMENTS)
def test_what_is_written_is_read_back(block: Block, about: str) -> None:
    """Whatever stands in keys, values and comments."""
    assert yaml.safe_load(page(about, block)) == _plain(block)


def test_a_comment_stands_above_its_line_and_a_lists_above_the_dash() -> None:
    """So that it is read before the line, and where people put it by hand."""
    item = (Line("name", "a", "The name."), Line("wet", True, "Why wet."))
    block = (Line("list", Items((item, item)), "All of them."), Line("words", Words(("x", "y: z"))))
    assert page("First.\n\nSecond.", block) == (
        "# First.\n#\n# Second.\n"
        "# All of them.\nlist:\n"
        "# The name.\n- name: a\n  # Why wet.\n  wet: true\n"
        "# The name.\n- name: a\n  # Why wet.\n  wet: true\n"
        "words: [x, 'y: z']\n"
    )


def test_long_comments_are_wrapped_at_the_margin_of_their_line() -> None:
    """No line is wider than an editor's window beside another."""
    text = page("", (Line("a", (Line("b", 1, "word " * 60),)),))
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) > 4
    assert all(line.startswith("  # word") for line in lines[1:-1])
