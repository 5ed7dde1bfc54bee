"""What a document says that changes nothing: allowed, and seldom meant."""

from __future__ import annotations

from collections.abc import Iterator

from extender.store.documents import Document
from scoring.model import Breaker, BreakerState, Health, Node, Override


def notes(document: Document, now_s: float) -> list[str]:
    """A sentence for each such thing; `now_s`: Unix time."""
    match document.value:
        case Node() as node:
            return [*_gone(document, node), *_healthy(node)]
        case Override(until_s=float(end_s)) | Breaker(until_s=float(end_s)) if end_s <= now_s:
            return ["its until is past, so it changes nothing"]
        case Breaker(state=BreakerState.FROZEN, until_s=None):
            return ["frozen without until changes nothing"]
        case _:
            return []


def _gone(document: Document, node: Node) -> Iterator[str]:
    """GPUs that links name and the node does not have: lost, or a slip of the pen."""
    there = {gpu.index for gpu in node.gpus}
    pairs = document.body.get("links") or {}
    named = {int(end.removeprefix("GPU")) for pair in pairs for end in pair.split("-")}
    for index in sorted(named - there):
        yield f"links name GPU{index}, which is not among gpus: they change nothing"


def _healthy(node: Node) -> Iterator[str]:
    every = [*node.causes, *(cause for gpu in node.gpus for cause in gpu.causes)]
    for name in dict.fromkeys(cause.id for cause in every if cause.state is Health.HEALTHY):
        yield f"cause {name} has state HEALTHY, so it changes nothing"
