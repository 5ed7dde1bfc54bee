"""One consistent look at the whole cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import ResponseError

from extender.store import keys
from extender.store.errors import StoreError
from extender.store.keys import text_of
from extender.store.schema import Kind
from extender.store.scripts import FIELDS, generation_of

ATTEMPTS: Final = 8
"""To read while nothing changes."""


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
    leader: bytes | None = None
    """The stamp of the last leader."""
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
    leader: bytes | None
    """The stamp of the last leader; None: there is none, or not asked."""


def contents(client: Redis) -> Contents:
    """Load everything, as it is at one moment.

    Raises:
        RedisError: the server failed, or nodes, stamps or counters are of the wrong type.
        StoreError: the generation is no number, or the data never stood still.
    """

    def ask(pipe: Pipeline) -> None:
        pipe.time()
        pipe.hgetall(keys.SEEN.name)
        pipe.get(keys.LEADER.name)
        for kind in Kind:
            pipe.hgetall(FIELDS[kind].name)

    instance, generation, (time, seen, leader, *hashes) = _one_moment(client, ask)
    documents: dict[Kind, Mapping[bytes, bytes]] = {}
    broken: dict[str, str] = {}
    for kind, found in zip(Kind, hashes, strict=True):
        if kind is not Kind.NODE and isinstance(found, ResponseError):
            # One spoilt key must not cost the others; without nodes there is nothing to judge.
            documents[kind], broken[f"{kind}/*"] = {}, str(found)
        else:
            documents[kind] = _sound(found)
    return Contents(
        instance=instance,
        generation=generation,
        redis_s=_seconds(_sound(time)),
        seen=_sound(seen),
        leader=_stamp(leader),
        documents=documents,
        broken=broken,
    )


def census(client: Redis) -> Census:
    """Which data this is, and which nodes are there, without the documents.

    Raises:
        RedisError: the server failed.
        StoreError: the generation is no number, or the data never stood still.
    """

    def ask(pipe: Pipeline) -> None:
        pipe.hkeys(keys.NODES.name)
        pipe.hkeys(keys.SEEN.name)

    instance, generation, (nodes, seen) = _one_moment(client, ask)
    return Census(
        instance=instance,
        generation=generation,
        nodes=frozenset(map(text_of, _sound(nodes))),
        seen=frozenset(map(text_of, _sound(seen))),
    )


def pulse(client: Redis, *, with_seen: bool) -> Pulse:
    """Instance, generation and time, and on demand the stamps and the leader's, of one moment.

    Raises:
        RedisError: the server failed.
        StoreError: the generation is no number, or the data never stood still.
    """

    def ask(pipe: Pipeline) -> None:
        pipe.time()
        if with_seen:
            pipe.hgetall(keys.SEEN.name)
            pipe.get(keys.LEADER.name)

    instance, generation, (time, *stamps) = _one_moment(client, ask)
    return Pulse(
        instance=instance,
        generation=generation,
        redis_s=_seconds(_sound(time)),
        seen=_sound(stamps[0]) if with_seen else None,
        leader=_stamp(stamps[1]) if with_seen else None,
    )


def _one_moment(
    client: Redis, ask: Callable[[Pipeline], None]
) -> tuple[bytes | None, int, list[Any]]:
    """Instance, generation, and the replies to what `ask` queues, errors among them, between which
    no document changed.

    A transaction would say so by itself, but a server that is full refuses to queue its commands,
    reads too. A server runs a short pipeline in one go, so a second attempt is rare.
    """
    for _ in range(ATTEMPTS):
        with client.pipeline(transaction=False) as pipe:
            _ask_version(pipe)
            ask(pipe)
            _ask_version(pipe)
            first, second, *replies, third, fourth = pipe.execute(raise_on_error=False)
        instance, generation = _sound(first), _sound(second)
        if (instance, generation) == (_sound(third), _sound(fourth)):
            return instance, generation_of(generation), replies
    raise StoreError(f"the cache changed during each of {ATTEMPTS} attempts to read it")


def _ask_version(pipe: Pipeline) -> None:
    pipe.get(keys.INSTANCE.name)
    pipe.get(keys.GENERATION.name)


def _sound(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _stamp(reply: Any) -> bytes | None:
    """The stamp of the leader. A spoilt key must cost nothing else: what the server says of it is no
    stamp, and is told as that.
    """
    return str(reply).encode() if isinstance(reply, ResponseError) else _sound(reply)


def _seconds(time: tuple[int, int]) -> float:
    return time[0] + time[1] / 1e6
