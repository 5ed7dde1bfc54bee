"""The Lua of the cache (`lua`) as typed functions: each runs as a whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis import Redis
from redis.client import Pipeline
from redis.commands.core import Script

from extender.store import keys, lua
from extender.store.errors import FencedError, StoreError
from extender.store.schema import Kind
from scoring.model import Rejection
from scoring.policy import REJECTION_KEPT_S

FIELDS: Final = {
    Kind.NODE: keys.NODES,
    Kind.ALLOCATION: keys.ALLOCATIONS,
    Kind.GANG: keys.GANGS,
    Kind.OVERRIDE: keys.OVERRIDES,
    Kind.BREAKER: keys.BREAKERS,
    Kind.REJECTION: keys.REJECTIONS,
    Kind.CLUSTER_NODE: keys.CLUSTER,
    Kind.PLAN: keys.PLANS,
}
"""The hash in which the documents of each kind stand."""

MIRRORED: Final = (Kind.ALLOCATION, Kind.CLUSTER_NODE, Kind.GANG, Kind.PLAN, Kind.BREAKER)
"""The kinds that a controller lets stand as it wishes."""
_CHANGE_KEYS: Final = (keys.INSTANCE.name, keys.GENERATION.name, keys.CHANGES.name)

_MOST_DIGITS: Final = 19
"""Of a number that the server counts with."""
MOST_CHANGES: Final = 1000
"""A reader that is further behind loads everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of one document."""

    changed: bool
    """False: a node's was not newer than the stored one, another's was the same."""
    generation: int
    epoch: int | None = None
    """Of a node: the order that is stored now."""
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How one document of the controller's is to stand in the cache."""

    kind: Kind
    """One of `MIRRORED`."""
    id: str
    document: bytes | None
    """None: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """What became of some wishes."""

    instance: bytes | None
    """None: the cache is empty, and nothing was written."""
    generation: int
    written: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One document as it is now; None: it is gone."""

    kind: Kind
    id: bytes
    raw: bytes | None
    seen: bytes | None = None
    """Of a node: its stamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Everything that changed since some generation, read at one moment."""

    instance: bytes | None
    generation: int
    redis_s: float
    complete: bool
    """False: some changes are lost or too many, only a full load helps."""
    documents: tuple[Change, ...]


class Scripts:
    """The scripts of one client. In a pipeline, functions queue; `stored` reads the results."""

    def __init__(self, client: Redis) -> None:
        self._nonce = secrets.token_hex(8)
        self._publish_node = client.register_script(lua.PUBLISH_NODE)
        self._put = client.register_script(lua.PUT)
        self._put_override = client.register_script(lua.PUT_OVERRIDE)
        self._put_rejection = client.register_script(lua.PUT_REJECTION)
        self._delete = client.register_script(lua.DELETE)
        self._mirror = client.register_script(lua.MIRROR)
        self._lead = client.register_script(lua.LEAD)
        self._stamp = client.register_script(lua.STAMP)
        self._next_epoch = client.register_script(lua.NEXT_EPOCH)
        self._changed_since = client.register_script(lua.CHANGED_SINCE)

    def publish_node(
        self,
        name: str,
        document: bytes,
        *,
        epoch: int | None,
        seq: int | None,
        sampled_ms_ago: int | None,
        pipe: Pipeline,
    ) -> None:
        """Store a node's document if (epoch, seq) is newer than the stored one's, and stamp it.

        Without epoch the stored one counts, without seq the one after the stored one.
        """
        stamp = "" if sampled_ms_ago is None else sampled_ms_ago
        order = ("" if epoch is None else epoch, "" if seq is None else seq)
        self._change(
            self._publish_node,
            (keys.NODES, keys.SEEN),
            (Kind.NODE, name, *order, document, stamp),
            pipe,
        )

    def put(self, kind: Kind, key: str, document: bytes, *, pipe: Pipeline) -> None:
        """Store an allocation, a gang, a plan or a breaker; an equal document changes nothing."""
        self._change(self._put, (FIELDS[kind],), (kind, key, document), pipe)

    def put_override(
        self, target: str, document: bytes, *, until_ms: int | None, pipe: Pipeline
    ) -> None:
        """Store an override, and sweep those that are over."""
        until = "" if until_ms is None else until_ms
        hashes = (keys.OVERRIDES, keys.OVERRIDE_ENDS)
        self._change(self._put_override, hashes, (Kind.OVERRIDE, target, document, until), pipe)

    def put_rejection(
        self,
        key: str,
        document: bytes,
        *,
        of: Rejection,
        at_ms: int,
        term: int | None,
        pipe: Pipeline,
    ) -> None:
        """Store a rejection and sweep those that are over. Where it is one too many, the oldest goes:
        of its owner on its node, else of its node, else of all.

        `term`: that of the leader who learnt of it; None: somebody else did, who needs none.
        """
        kept_ms = round(REJECTION_KEPT_S * 1000)
        most = (
            *("", keys.REJECTIONS_MAX),
            *(f"{of.node}/", keys.NODE_REJECTIONS_MAX),
            *(f"{of.node}/{of.owner}@", keys.OWNER_REJECTIONS_MAX),
        )
        hashes = (keys.REJECTIONS, keys.REJECTION_TIMES, keys.TERM)
        fence = "" if term is None else term
        args = (Kind.REJECTION, key, document, at_ms, kept_ms, fence, *most)
        self._change(self._put_rejection, hashes, args, pipe)

    def delete(self, kind: Kind, key: str, *, pipe: Pipeline) -> None:
        """Remove a document, and what belongs to it."""
        hashes = (FIELDS[kind], keys.SEEN, keys.OVERRIDE_ENDS, keys.REJECTION_TIMES)
        self._change(self._delete, hashes, (kind, key), pipe)

    def mirror(self, wishes: Iterable[Wish], *, term: int) -> Mirrored:
        """Let documents stand as a leader of `term` wishes, all at one moment; what stands so already
        is no change.

        An allocation that names its GPUs stays where the wish says the same without names.

        Raises:
            RedisError: the server failed.
            FencedError: there was a leader of a higher term; nothing is written.
        """
        args: list[Any] = [self._nonce, keys.CHANGES_MAX, term]
        for wish in wishes:
            args += (wish.kind, wish.id, wish.document or b"")
        hashes = (keys.TERM.name, *(FIELDS[kind].name for kind in MIRRORED))
        reply = self._mirror(keys=(*_CHANGE_KEYS, *hashes), args=args)
        instance, generation, written, removed = unfenced(reply, term)
        return Mirrored(
            instance=instance,
            generation=generation_of(generation),
            written=written,
            removed=removed,
        )

    def lead(self, term: int) -> None:
        """Leave a sign that a leader of `term` is at work.

        Raises:
            RedisError: the server failed.
            FencedError: there was a leader of a higher term; nothing is written.
        """
        names = (keys.TERM.name, keys.LEADER.name, keys.INSTANCE.name)
        unfenced(self._lead(keys=names, args=(self._nonce, term)), term)

    def stamp(self, nodes: Iterable[str], *, sampled_ms_ago: int = 0) -> int:
        """Say that `nodes` had a full sample then; returns the stamp, Redis TIME in ms."""
        args: list[Any] = [self._nonce, sampled_ms_ago, *nodes]
        return int(self._stamp(keys=(keys.SEEN.name, keys.INSTANCE.name), args=args))

    def next_epoch(self, node: str) -> int:
        """The epoch of an agent that starts now: above all earlier ones of its node."""
        names = (keys.EPOCH.of(node), keys.NODES.name, keys.INSTANCE.name)
        return int(self._next_epoch(keys=names, args=(self._nonce, node)))

    def changed_since(self, generation: int) -> Changes:
        """What changed after `generation`, with the documents as they are at this one moment.

        Raises:
            RedisError: the server failed.
            StoreError: the generation is no number.
        """
        hashes = (keys.SEEN.name, *(FIELDS[kind].name for kind in Kind))
        args = (generation, MOST_CHANGES, *Kind)
        reply = self._changed_since(keys=(*_CHANGE_KEYS, *hashes), args=args)
        instance, latest, (seconds, micros), ids, documents = reply
        numbers = [int(entry.partition(b"-")[0]) for entry in ids]
        current = generation_of(latest)
        return Changes(
            instance=instance,
            generation=current,
            redis_s=int(seconds) + int(micros) / 1e6,
            # The lengths first: whatever the counter says, the range must not fill the memory.
            complete=len(numbers) == current - generation
            and numbers == list(range(generation + 1, current + 1)),
            documents=tuple(
                Change(kind=Kind(kind.decode()), id=key, raw=raw, seen=seen or None)
                for kind, key, raw, seen in documents
            ),
        )

    def _change(
        self, script: Script, hashes: Iterable[keys.Key], args: Sequence[Any], pipe: Pipeline
    ) -> None:
        script(
            keys=(*_CHANGE_KEYS, *(key.name for key in hashes)),
            args=(self._nonce, keys.CHANGES_MAX, *args),
            client=pipe,
        )


def generation_of(raw: bytes | None) -> int:
    """The generation that the server says; 0 where there is none.

    Raises:
        StoreError: it is no number that the server counts with.
    """
    if raw is None:
        return 0
    if not raw.isdigit() or len(raw) > _MOST_DIGITS:
        raise StoreError(f"{keys.GENERATION.name} holds {raw[:32]!r}, not a number")
    return int(raw)


def unfenced(reply: Sequence[Any], term: int) -> Sequence[Any]:
    """What a fenced function of `Scripts` answers where its term was not too low.

    Raises:
        FencedError: it was.
    """
    if reply[0] == -1:
        raise FencedError(term, reply[1])
    return reply


def stored(reply: Sequence[Any]) -> Stored:
    """What a queued function of `Scripts` says of its document, once the pipeline ran."""
    changed, *order, generation = (int(part or 0) for part in reply)
    epoch, seq = order or (None, None)
    return Stored(changed=bool(changed), generation=generation, epoch=epoch, seq=seq)
