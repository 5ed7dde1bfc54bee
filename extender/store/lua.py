"""The Lua of the cache. `scripts` holds the typed functions that run it.

Every script that changes what a verdict depends on counts the generation up and appends the change
to a stream under the id `<generation>-1`. So a reader that has generation g and finds g + 1 next
has missed nothing, and a number that is missing tells of a gap.

What a leader writes is fenced: its term (`leaseTransitions` of its Lease) goes with the write, and
the highest term so far is kept. Of a lower one nothing is written, and the answer is {-1, highest}.
A cache that lost its data has no highest term until the next write of a leader, within a second or
so: a leader that was stopped past its lease could write until then. Its own check of the Lease, which
it makes before each write, keeps it from that; what such a leader may still have on the wire is one
batch, and the new one compares everything with a cache that lost its data.
"""

from __future__ import annotations

from typing import Final

from extender.store.schema import MAX_TERM

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
-- KEYS: instance, generation, changes, ...; ARGV: nonce, length of changes, ...
local function change_of(kind, id)
  name_instance(KEYS[1], ARGV[1])
  local generation = redis.call('INCR', KEYS[2])
  local entry = {'XADD', KEYS[3], 'MAXLEN', '~', ARGV[2], int(generation) .. '-1',
                 'kind', kind, 'id', id}
  local added = redis.pcall(unpack(entry))
  if type(added) == 'table' and added.err then
    -- The stream is ahead of the counter, which somebody deleted: begin it anew. Readers see a gap.
    redis.call('DEL', KEYS[3])
    redis.call(unpack(entry))
  end
  return generation
end
-- The same for scripts of one document; ARGV[3]: kind, ARGV[4]: id
local function change(id) return change_of(ARGV[3], id or ARGV[4]) end
"""
)

_FENCE: Final = """
-- The highest term so far where `term` is lower, else nil. Junk is no term.
local function outranked(key, term)
  local held = redis.call('GET', key)
  local highest = held and string.match(held, '^%d+$') and #held < 16 and tonumber(held)
  if highest and highest > MAX_TERM then highest = nil end
  if highest and highest > tonumber(term) then return highest end
  if not highest or highest < tonumber(term) then redis.call('SET', key, term) end
end
""".replace("MAX_TERM", str(MAX_TERM))

_ORDER_OF: Final = """
-- The epoch and seq in front of a stored node document; none where it is missing or junk.
local function order_of(document)
  if not document then return nil end
  local epoch, seq = string.match(document, '^{"epoch":(%d+),"seq":(%d+),')
  return tonumber(epoch), tonumber(seq)
end
"""

PUBLISH_NODE: Final = (
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

PUT: Final = (
    _CHANGE
    + """
-- KEYS[4]: hash of the kind; ARGV[5]: document
if redis.call('HGET', KEYS[4], ARGV[4]) == ARGV[5] then return {0, redis.call('GET', KEYS[2])} end
local generation = change()
redis.call('HSET', KEYS[4], ARGV[4], ARGV[5])
return {1, generation}
"""
)

PUT_OVERRIDE: Final = (
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

PUT_REJECTION: Final = (
    _CHANGE
    + _FENCE
    + """
-- KEYS[4]: rejected, KEYS[5]: rejected-at, KEYS[6]: term; ARGV[5]: document, ARGV[6]: its time in
-- Unix ms, ARGV[7]: how long one is kept in ms, ARGV[8]: the term, or '' for nobody's,
-- ARGV[9...]: pairs of how ids begin and the most that may, each group within the one before
local highest = ARGV[8] ~= '' and outranked(KEYS[6], ARGV[8])
if highest then return {-1, highest} end
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
for i = 9, #ARGV, 2 do
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

DELETE: Final = (
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

MIRROR: Final = (
    _CHANGE
    + _FENCE
    + """
-- KEYS[4]: term, KEYS[5...]: alloc, cluster, gangs, plans, breaker; ARGV[3]: the term,
-- ARGV[4...]: kind, id and document of each; an empty document: it is to go
local highest = outranked(KEYS[4], ARGV[3])
if highest then return {-1, highest} end
local hashes = {Allocation = KEYS[5], ClusterNode = KEYS[6], Gang = KEYS[7], Plan = KEYS[8],
                Breaker = KEYS[9]}
-- Whether the held allocation says what the new one says, and which GPUs besides.
local function says_more(held, new)
  local sound, known = pcall(cjson.decode, held)
  if not sound or type(known) ~= 'table' or type(known.gpus) ~= 'table' then return false end
  local count = cjson.decode(new)
  return type(count.gpus) ~= 'table' and known.node == count.node and known.count == count.count
end
local written, removed = 0, 0
for i = 4, #ARGV, 3 do
  local kind, id, document = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local held = redis.call('HGET', hashes[kind], id)
  if document == '' then
    if held then
      change_of(kind, id)
      redis.call('HDEL', hashes[kind], id)
      removed = removed + 1
    end
  elseif not held or (held ~= document
      and not (kind == 'Allocation' and says_more(held, document))) then
    change_of(kind, id)
    redis.call('HSET', hashes[kind], id, document)
    written = written + 1
  end
end
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]), written, removed}
"""
)

STAMP: Final = (
    _PRELUDE
    + """
-- KEYS[1]: seen, KEYS[2]: instance; ARGV[1]: nonce, ARGV[2]: age in ms, ARGV[3...]: nodes
name_instance(KEYS[2], ARGV[1])
local stamp = int(now_ms() - tonumber(ARGV[2]))
for i = 3, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], stamp) end
return stamp
"""
)

LEAD: Final = (
    _PRELUDE
    + _FENCE
    + """
-- KEYS[1]: term, KEYS[2]: leader, KEYS[3]: instance; ARGV[1]: nonce, ARGV[2]: the term
local highest = outranked(KEYS[1], ARGV[2])
if highest then return {-1, highest} end
name_instance(KEYS[3], ARGV[1])
local stamp = int(now_ms())
redis.call('SET', KEYS[2], stamp .. ' ' .. ARGV[2])
return {stamp}
"""
)

NEXT_EPOCH: Final = (
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

CHANGED_SINCE: Final = """
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
