"""The reference pages that are written from the code, so that they cannot differ from it.

`python -m extender.reference` writes them (`make docs`); with `--check` it writes nothing and fails
with a list of those that are out of date (`make check`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from extender.reference import configuration, health, reasons

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "configuration.md": configuration.page,
    "reasons.md": reasons.page,
    "health.md": health.page,
}
"""Each generated page under `docs/` and what writes it."""


def stale(docs: Path = DOCS) -> list[str]:
    """The pages that are missing or differ from what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (docs / name).is_file() or (docs / name).read_text(encoding="utf-8") != page()
    ]
