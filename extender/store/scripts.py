"""The Lua of the cache as typed functions: each runs as a whole or not at all.

Every script that changes what a verdict depends on counts the generation up and appends the change
to a stream under the id `<generation>-1`. So a reader that has generation g and finds g + 1 next
has missed nothing, and a number that is missing tells of a gap.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis import Redis
from redis.client import Pipeline
from redis.commands.core import Script

from extender.store import keys
from extender.store.errors import StoreError
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
}
"""The hash in which the documents of each kind stand."""

_CHANGE_KEYS: Final = (keys.INSTANCE.name, keys.GENERATION.name, keys.CHANGES.name)

_PRELUDE: Final = """
local function int(number) return string.format('%.0f', number) end
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
-- Name the data once. The time tells it from data that the same writer began before a loss.
local function name_instance(key, nonce)
  local time = redis.call('TIME')
  redis.call('SET', key, string.format('%s-%s%06d', nonce, time[1], tonumber(time[2])), 'NX')
end
"""

_CHANGE: Final = (
    _PRELUDE
    + """
-- KEYS: instance, generation, changes, ...; ARGV: nonce, length of changes, kind, id, ...
local function change(id)
  name_instance(KEYS[1], ARGV[1])
  local generation = redis.call('INCR', KEYS[2])
  local entry = {'XADD', KEYS[3], 'MAXLEN', '~', ARGV[2], int(generation) .. '-1',
                 'kind', ARGV[3], 'id', id or ARGV[4]}
  local added = redis.pcall(unpack(entry))
  if type(added) == 'table' and added.err then
    -- The stream is ahead of the counter, which somebody deleted: begin it anew. Readers see a gap.
    redis.call('DEL', KEYS[3])
    redis.call(unpack(entry))
  end
  return generation
end
"""
)

_ORDER_OF: Final = """
-- The epoch and seq in front of a stored node document; none where it is missing or junk.
local function order_of(document)
  if not document then return nil end
  local epoch, seq = string.match(document, '^{"epoch":(%d+),"seq":(%d+),')
  return tonumber(epoch), tonumber(seq)
end
"""

_PUBLISH_NODE: Final = (
    _CHANGE
    + _ORDER_OF
    + """
-- KEYS[4]: nodes, KEYS[5]: seen; ARGV[5..6]: epoch, seq or '', ARGV[7]: document,
-- ARGV[8]: age in ms of the sample to stamp, or '' for no stamp
local held_epoch, held_seq = order_of(redis.call('HGET', KEYS[4], ARGV[4]))
local epoch = tonumber(ARGV[5]) or held_epoch or 0
local seq = tonumber(ARGV[6]) or (epoch == held_epoch and held_seq + 1) or 1
if held_epoch and (epoch < held_epoch or (epoch == held_epoch and seq <= held_seq)) then
  return {0, int(held_epoch), int(held_seq), redis.call('GET', KEYS[2])}
end
local generation = change()
redis.call('HSET', KEYS[4], ARGV[4],
  '{"epoch":' .. int(epoch) .. ',"seq":' .. int(seq) .. ',' .. string.sub(ARGV[7], 2))
if ARGV[8] ~= '' then redis.call('HSET', KEYS[5], ARGV[4], int(now_ms() - tonumber(ARGV[8]))) end
return {1, int(epoch), int(seq), generation}
"""
)

_PUT: Final = (
    _CHANGE
    + """
-- KEYS[4]: hash of the kind; ARGV[5]: document
if redis.call('HGET', KEYS[4], ARGV[4]) == ARGV[5] then return {0, redis.call('GET', KEYS[2])} end
local generation = change()
redis.call('HSET', KEYS[4], ARGV[4], ARGV[5])
return {1, generation}
"""
)

_PUT_OVERRIDE: Final = (
    _CHANGE
    + """
-- KEYS[4]: override, KEYS[5]: override-ends; ARGV[5]: document, ARGV[6]: its end in Unix ms or ''
for _, target in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', int(now_ms()))) do
  redis.call('HDEL', KEYS[4], target)
  redis.call('ZREM', KEYS[5], target)
end
if redis.call('HGET', KEYS[4], ARGV[4]) == ARGV[5] then return {0, redis.call('GET', KEYS[2])} end
local generation = change()
redis.call('HSET', KEYS[4], ARGV[4], ARGV[5])
redis.call('ZREM', KEYS[5], ARGV[4])
if ARGV[6] ~= '' then redis.call('ZADD', KEYS[5], ARGV[6], ARGV[4]) end
return {1, generation}
"""
)

_PUT_REJECTION: Final = (
    _CHANGE
    + """
-- KEYS[4]: rejected, KEYS[5]: rejected-at; ARGV[5]: document, ARGV[6]: its time in Unix ms,
-- ARGV[7]: how long one is kept in ms, ARGV[8...]: pairs of how ids begin and the most that may,
-- each group within the one before
local function drop(id)
  redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[5], id)
end
-- Readers drop by themselves what is over.
local over = int(now_ms() - tonumber(ARGV[7]))
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', over)) do drop(id) end
if redis.call('HGET', KEYS[4], ARGV[4]) == ARGV[5] then return {0, redis.call('GET', KEYS[2])} end
local generation = change()
redis.call('HSET', KEYS[4], ARGV[4], ARGV[5])
redis.call('ZADD', KEYS[5], ARGV[6], ARGV[4])
-- One came, so one is too many at most: the oldest of the narrowest group that is full.
local group, oldest = redis.call('ZRANGE', KEYS[5], 0, -1), nil
for i = 8, #ARGV, 2 do
  local within = {}
  for _, id in ipairs(group) do
    if string.find(id, ARGV[i], 1, true) == 1 then within[#within + 1] = id end
  end
  if #within > tonumber(ARGV[i + 1]) then oldest = within[1] end
  group = within
end
if oldest then
  drop(oldest)
  generation = change(oldest)
end
return {1, generation}
"""
)

_DELETE: Final = (
    _CHANGE
    + """
-- KEYS[4]: hash of the kind, KEYS[5]: seen, KEYS[6]: override-ends, KEYS[7]: rejected-at
if redis.call('HEXISTS', KEYS[4], ARGV[4]) == 0 then return {0, redis.call('GET', KEYS[2])} end
local generation = change()
redis.call('HDEL', KEYS[4], ARGV[4])
if ARGV[3] == 'Node' then redis.call('HDEL', KEYS[5], ARGV[4]) end
if ARGV[3] == 'Override' then redis.call('ZREM', KEYS[6], ARGV[4]) end
if ARGV[3] == 'Rejection' then redis.call('ZREM', KEYS[7], ARGV[4]) end
return {1, generation}
"""
)

_STAMP: Final = (
    _PRELUDE
    + """
-- KEYS[1]: seen, KEYS[2]: instance; ARGV[1]: nonce, ARGV[2]: age in ms, ARGV[3...]: nodes
name_instance(KEYS[2], ARGV[1])
local stamp = int(now_ms() - tonumber(ARGV[2]))
for i = 3, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], stamp) end
return stamp
"""
)

_NEXT_EPOCH: Final = (
    _PRELUDE
    + _ORDER_OF
    + """
-- KEYS[1]: epoch:<node>, KEYS[2]: nodes, KEYS[3]: instance; ARGV[1]: nonce, ARGV[2]: node
name_instance(KEYS[3], ARGV[1])
local held = order_of(redis.call('HGET', KEYS[2], ARGV[2])) or 0
local epoch = redis.call('INCR', KEYS[1])
if epoch <= held then
  -- The counter was lost, or somebody put a document by hand: stay ahead of what is stored.
  epoch = held + 1
  redis.call('SET', KEYS[1], int(epoch))
end
return int(epoch)
"""
)

_CHANGED_SINCE: Final = """
-- KEYS: instance, generation, changes, seen, then the hash of each kind;
-- ARGV: generation that the reader has, the most changes to hand out, then the name of each kind
local found = {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]), redis.call('TIME')}
local entries = redis.call('XRANGE', KEYS[3], '(' .. ARGV[1] .. '-1', '+', 'COUNT', ARGV[2])
local hash = {}
for i = 3, #ARGV do hash[ARGV[i]] = KEYS[i + 2] end
local ids, documents, done = {}, {}, {}
for i, entry in ipairs(entries) do
  ids[i] = entry[1]
  local kind, id = entry[2][2], entry[2][4]
  if id and hash[kind] and not done[kind .. ' ' .. id] then
    done[kind .. ' ' .. id] = true
    documents[#documents + 1] = {kind, id, redis.call('HGET', hash[kind], id),
      kind == 'Node' and redis.call('HGET', KEYS[4], id)}
  end
end
found[4], found[5] = ids, documents
return found
"""

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
        self._publish_node = client.register_script(_PUBLISH_NODE)
        self._put = client.register_script(_PUT)
        self._put_override = client.register_script(_PUT_OVERRIDE)
        self._put_rejection = client.register_script(_PUT_REJECTION)
        self._delete = client.register_script(_DELETE)
        self._stamp = client.register_script(_STAMP)
        self._next_epoch = client.register_script(_NEXT_EPOCH)
        self._changed_since = client.register_script(_CHANGED_SINCE)

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
        """Store an allocation, a gang or a breaker; an equal document changes nothing."""
        self._change(self._put, (FIELDS[kind],), (kind, key, document), pipe)

    def put_override(
        self, target: str, document: bytes, *, until_ms: int | None, pipe: Pipeline
    ) -> None:
        """Store an override, and sweep those that are over."""
        until = "" if until_ms is None else until_ms
        hashes = (keys.OVERRIDES, keys.OVERRIDE_ENDS)
        self._change(self._put_override, hashes, (Kind.OVERRIDE, target, document, until), pipe)

    def put_rejection(
        self, key: str, document: bytes, *, of: Rejection, at_ms: int, pipe: Pipeline
    ) -> None:
        """Store a rejection and sweep those that are over. Where it is one too many, the oldest goes:
        of its owner on its node, else of its node, else of all.
        """
        kept_ms = round(REJECTION_KEPT_S * 1000)
        most = (
            *("", keys.REJECTIONS_MAX),
            *(f"{of.node}/", keys.NODE_REJECTIONS_MAX),
            *(f"{of.node}/{of.owner}@", keys.OWNER_REJECTIONS_MAX),
        )
        hashes = (keys.REJECTIONS, keys.REJECTION_TIMES)
        args = (Kind.REJECTION, key, document, at_ms, kept_ms, *most)
        self._change(self._put_rejection, hashes, args, pipe)

    def delete(self, kind: Kind, key: str, *, pipe: Pipeline) -> None:
        """Remove a document, and what belongs to it."""
        hashes = (FIELDS[kind], keys.SEEN, keys.OVERRIDE_ENDS, keys.REJECTION_TIMES)
        self._change(self._delete, hashes, (kind, key), pipe)

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


def stored(reply: Sequence[Any]) -> Stored:
    """What a queued function of `Scripts` says of its document, once the pipeline ran."""
    changed, *order, generation = (int(part or 0) for part in reply)
    epoch, seq = order or (None, None)
    return Stored(changed=bool(changed), generation=generation, epoch=epoch, seq=seq)
