"""The gangs that docs/gangs.md shows, one for each convention at least."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from asking import Json

from extender.controller.cluster.places import INDICES
from scoring.model import Convention

PAGE: Final = Path(__file__).parents[1] / "docs" / "gangs.md"
SECTION: Final = "## Conventions, with an example of each"
SIZE: Final = 4
"""Members of every gang on that page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangExample:
    """One block of YAML."""

    name: str
    """Its heading, with a number where that has several."""
    convention: Convention
    documents: tuple[Json, ...]

    @property
    def pods(self) -> tuple[Json, ...]:
        """The one member that stands for all; empty where a Job makes them."""
        return tuple(each for each in self.documents if each["kind"] == "Pod")

    @property
    def beside(self) -> tuple[Json, ...]:
        """What stands beside the pods, a Job that makes them too."""
        return tuple(each for each in self.documents if each["kind"] != "Pod")


def gang_examples() -> tuple[GangExample, ...]:
    """All of them, in the order of the page."""
    return tuple(_examples())


def multiplied(pod: Json, size: int = SIZE) -> list[Json]:
    """The whole gang of one member: the last number of its name, and its index, count up from 0."""
    keys = {row.key for row in INDICES}
    found = []
    for number in range(size):
        made = deepcopy(pod)
        metadata = made["metadata"]
        metadata["name"] = re.sub(r"\d+$", str(number), metadata["name"])
        for texts in (metadata.get("labels", {}), metadata.get("annotations", {})):
            texts.update(dict.fromkeys(keys & texts.keys(), str(number)))
        found.append(made)
    return found


def _examples() -> Iterator[GangExample]:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n{SECTION}\n")
    section = re.split(r"^## ", section, maxsplit=1, flags=re.MULTILINE)[0]
    _, *parts = re.split(r"^### (.+)\n", section, flags=re.MULTILINE)
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks):
            yield GangExample(
                name=f"{heading}-{number}" if len(blocks) > 1 else heading,
                convention=Convention(heading),
                documents=tuple(yaml.safe_load_all(block)),
            )
