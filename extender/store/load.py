"""One consistent look at the whole cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from extender.store import keys
from extender.store.errors import StoreError
from extender.store.keys import text_of
from extender.store.schema import Kind
from extender.store.scripts import FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Which data this is, and which nodes are there."""

    instance: bytes | None
    generation: int
    nodes: frozenset[str]
    seen: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything, as it was at one moment."""

    instance: bytes | None
    generation: int
    redis_s: float
    seen: Mapping[bytes, bytes]
    documents: Mapping[Kind, Mapping[bytes, bytes]]
    broken: Mapping[str, str] = field(default_factory=dict)
    """Keys that hold something else than they should, and what the server said."""

    @property
    def census(self) -> Census:
        """What `census` would have said at that moment."""
        return Census(
            instance=self.instance,
            generation=self.generation,
            nodes=frozenset(map(text_of, self.documents[Kind.NODE])),
            seen=frozenset(map(text_of, self.seen)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What a reader asks every second."""

    instance: bytes | None
    generation: int
    redis_s: float
    seen: Mapping[bytes, bytes] | None
    """None: not asked."""


def contents(client: Redis) -> Contents:
    """Load everything in one transaction.

    Raises:
        RedisError: the server failed, or nodes, stamps or counters are of the wrong type.
        StoreError: the generation is no number.
    """
    with client.pipeline(transaction=True) as pipe:
        pipe.get(keys.INSTANCE.name)
        pipe.get(keys.GENERATION.name)
        pipe.time()
        pipe.hgetall(keys.SEEN.name)
        for kind in Kind:
            pipe.hgetall(FIELDS[kind].name)
        instance, generation, time, seen, *hashes = pipe.execute(raise_on_error=False)
    documents: dict[Kind, Mapping[bytes, bytes]] = {}
    broken: dict[str, str] = {}
    for kind, found in zip(Kind, hashes, strict=True):
        if kind is not Kind.NODE and isinstance(found, ResponseError):
            # One spoilt key must not cost the others; without nodes there is nothing to judge.
            documents[kind], broken[f"{kind}/*"] = {}, str(found)
        else:
            documents[kind] = _sound(found)
    return Contents(
        instance=_sound(instance),
        generation=_generation(_sound(generation)),
        redis_s=_seconds(_sound(time)),
        seen=_sound(seen),
        documents=documents,
        broken=broken,
    )


def census(client: Redis) -> Census:
    """Which data this is, and which nodes are there, without the documents.

    Raises:
        RedisError: the server failed.
        StoreError: the generation is no number.
    """
    with client.pipeline(transaction=True) as pipe:
        pipe.get(keys.INSTANCE.name)
        pipe.get(keys.GENERATION.name)
        pipe.hkeys(keys.NODES.name)
        pipe.hkeys(keys.SEEN.name)
        instance, generation, nodes, seen = pipe.execute()
    return Census(
        instance=instance,
        generation=_generation(generation),
        nodes=frozenset(map(text_of, nodes)),
        seen=frozenset(map(text_of, seen)),
    )


def pulse(client: Redis, *, with_seen: bool) -> Pulse:
    """Instance, generation and time, and on demand the stamps, of one moment.

    Raises:
        RedisError: the server failed.
        StoreError: the generation is no number.
    """
    with client.pipeline(transaction=True) as pipe:
        pipe.get(keys.INSTANCE.name)
        pipe.get(keys.GENERATION.name)
        pipe.time()
        if with_seen:
            pipe.hgetall(keys.SEEN.name)
        instance, generation, time, *seen = pipe.execute()
    return Pulse(
        instance=instance,
        generation=_generation(generation),
        redis_s=_seconds(time),
        seen=seen[0] if with_seen else None,
    )


def _sound(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _generation(raw: bytes | None) -> int:
    if raw is None:
        return 0
    if not raw.isdigit():
        raise StoreError(f"{keys.GENERATION.name} holds {raw[:32]!r}, not a number")
    return int(raw)


def _seconds(time: tuple[int, int]) -> float:
    return time[0] + time[1] / 1e6
