"""A reader whose Fleets are kept, and documents to feed it with."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from redis import Redis
from servers import eventually

from extender.store import documents, keys
from extender.store.connect import StoreSettings
from extender.store.documents import Document
from extender.store.reader import Reader
from extender.store.schema import Kind
from extender.store.scripts import FIELDS
from extender.store.status import Status
from scoring.model import Fleet, NodeName

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
"""Whatever JSON can say, small."""


class Watch:
    """A started reader with short ticks, and every Fleet that it handed out."""

    def __init__(self, settings: StoreSettings, *, max_snapshot_age_s: float) -> None:
        self.fleets: list[tuple[Fleet, frozenset[NodeName] | None]] = []
        self._reader = Reader(
            settings,
            lambda fleet, changed: self.fleets.append((fleet, changed)),
            max_snapshot_age_s=max_snapshot_age_s,
            seen_every_s=0.1,
            tick_s=0.05,
        )
        self._reader.start()

    @property
    def status(self) -> Status:
        """The reader's word on itself."""
        return self._reader.status

    @property
    def fleet(self) -> Fleet:
        """The Fleet that was handed out last; waits for the first one."""
        eventually(lambda: self.fleets, "a first Fleet")
        return self.fleets[-1][0]

    def shows(self, *names: str) -> bool:
        """Whether exactly these nodes are in the last Fleet, and seen."""
        return set(self.fleet.nodes) == set(names) and set(names) <= set(self.fleet.seen_s)

    def close(self) -> None:
        """Stop the reader."""
        self._reader.close()


def body(name: str = "gpu-17", **fields: Any) -> dict[str, Any]:
    """A Node document of two GPUs, as plain values."""
    return {
        "apiVersion": "surefoot.dev/v1",
        "kind": "Node",
        "metadata": {"name": name},
        "links": {"GPU0-GPU1": "NV18"},
        "gpus": [
            {"uuid": f"GPU-{name}-{index}", "index": index, "model": "H100"} for index in (0, 1)
        ],
        **fields,
    }


def node(name: str = "gpu-17", **fields: Any) -> Document:
    """The same, checked."""
    return documents.check(body(name, **fields))


def other(kind: str, **fields: Any) -> Document:
    """A document of another kind, checked."""
    return documents.check({"apiVersion": "surefoot.dev/v1", "kind": kind, **fields})


def allocation(node_name: str, *, uid: str = "pod-1", count: int = 1, **more: Any) -> Document:
    """An Allocation document, checked."""
    return other(
        "Allocation",
        node=node_name,
        pod=f"{uid}-name",
        uid=uid,
        namespace="team",
        resource="nvidia.com/gpu",
        count=count,
        **more,
    )


def override(target: str, **more: Any) -> Document:
    """An Override document that denies, checked."""
    fields = {"verdict": "deny", "who": "oncall", "why": "burns", **more}
    return other("Override", target=target, **fields)


def write_raw(client: Redis, kind: Kind, key: str, raw: bytes) -> None:
    """Write past the writer, as a broken or newer one might, and announce it."""
    client.eval(
        """redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
        local generation = redis.call('INCR', KEYS[2])
        redis.call('XADD', KEYS[3], generation .. '-1', 'kind', ARGV[1], 'id', ARGV[2])""",
        3,
        FIELDS[kind].name,
        keys.GENERATION.name,
        keys.CHANGES.name,
        kind,
        key,
        raw,
    )
