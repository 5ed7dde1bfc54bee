"""What is told of pods that Surefoot keeps waiting to whoever looks at what owns them.

kube-scheduler says of each pod, on the pod, why no node takes it, with Surefoot's texts. A Job or a
ReplicaSet shows nothing of that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from scoring.gangs.values import Owner
from scoring.model import GangKey
from scoring.planning.seats import natural
from scoring.reasons import Reason

_TEXTS: Final = tuple(
    (reason, re.compile(rf"(?:(\d+) )?{re.escape(reason.text)}")) for reason in Reason
)


class Owned(Protocol):
    """A pod that kube-scheduler found no node for."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def message(self) -> str:
        """That of its condition `PodScheduled`: `0/3 nodes are available: 1 a GPU ...`."""

    @property
    def gang(self) -> GangKey | None:
        """The key of its gang."""

    @property
    def owner(self) -> Owner | None:
        """Its controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What is to be said of the pods of one owner, or of one gang on the owner of its first pod."""

    namespace: str
    owner: Owner
    reason: Reason
    """That of the most nodes."""
    note: str


def refusals(pods: Iterable[Owned], told: Collection[GangKey]) -> dict[str, Refusal]:
    """What is to be said, by the uid of the owner or the key of the gang. Of gangs that are `told` of
    already, and of pods that wait for anything else or that nobody owns, nothing is.
    """
    groups: dict[str, list[tuple[Owned, Owner, Reason]]] = {}
    for pod in pods:
        owner, reason = pod.owner, foremost(pod.message)
        if reason is None or owner is None or not (owner.kind and owner.name):
            continue
        if pod.gang is None or pod.gang not in told:
            groups.setdefault(pod.gang or owner.uid, []).append((pod, owner, reason))
    found = {}
    for key, group in groups.items():
        first, owner, reason = min(group, key=lambda each: natural(each[0].name))
        found[key] = Refusal(
            namespace=first.namespace,
            owner=owner,
            reason=reason,
            note=_note(first, len(group)),
        )
    return found


@lru_cache(maxsize=4096)
def foremost(message: str) -> Reason | None:
    """The reason of Surefoot's that refused the most nodes, the gravest of equals; None: none did."""
    counts = {
        reason: int(match[1] or 1) for reason, text in _TEXTS if (match := text.search(message))
    }
    return max(counts, key=lambda reason: counts[reason], default=None)


def _note(first: Owned, count: int) -> str:
    pods = f"pod {first.name} waits" if count == 1 else f"{count} pods wait, first {first.name}"
    return f"{pods}: {first.message}"
