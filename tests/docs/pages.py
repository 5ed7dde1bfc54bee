"""The texts of the repository that people read."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
_FENCE: Final = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


def tracked() -> list[Path]:
    """Every file of the repository, those that nobody has added yet included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    files = (ROOT / name.decode() for name in listed.stdout.split(b"\0") if name)
    return [file for file in files if file.is_file()]


def markdown() -> list[Path]:
    """Every page in Markdown."""
    return [file for file in tracked() if file.suffix == ".md"]


def text(name: str) -> str:
    """One file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def links(page: Path) -> Iterator[str]:
    """The targets of the links and pictures of a page that stay inside the repository."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in found}


def fenced(page: Path, language: str) -> list[str]:
    """The blocks of one language of a page, without their indentation."""
    found = re.findall(
        rf"^( *)```{language}\n(.*?)^\1```",
        page.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]
