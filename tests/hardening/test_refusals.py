"""A cache that answers and refuses: a read-only replica, one without memory, wrong passwords.

Whoever reads goes on, whoever writes is told in one sentence, and decisions wait or are counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from commands import Surefoot
from papers import node_body, node_paper, paper
from redis import Redis
from redis.exceptions import OutOfMemoryError, ReadOnlyError, ResponseError
from servers import Cache, eventually
from viewing import looks, view

from extender.store import keys
from extender.store.decisions import BATCH, DecisionLog
from extender.store.errors import StoreError, reaching
from extender.store.writer import Writer
from scoring.model import NodeName

Refuse = Callable[[Redis], None]
RECORD = b"x" * 1000


def read_only(server: Redis) -> None:
    """Make it a replica of a primary that is not there."""
    server.replicaof("127.0.0.1", "1")


def full(server: Redis) -> None:
    """Leave it no memory for writes."""
    server.config_set("maxmemory", 1)


REFUSALS = pytest.mark.parametrize(
    ("refuse", "meaning"),
    [
        (read_only, "takes no writes: it is a read-only replica, not the primary"),
        (full, "is full: it takes no writes at its `maxmemory`, and evicts nothing"),
    ],
    ids=["read-only", "full"],
)


@pytest.fixture
def plain(cache: Cache) -> Iterator[Redis]:
    """A client of the cache of this test, which holds one node."""
    writer = Writer(cache.settings)
    writer.put([node_paper("gpu-1")])
    writer.close()
    with closing(Redis(port=cache.port)) as client:
        yield client


def accept(server: Redis) -> None:
    """Take writes again."""
    server.replicaof("NO", "ONE")
    server.config_set("maxmemory", 0)


@REFUSALS
def test_a_writer_is_told_in_one_sentence(
    cache: Cache, plain: Redis, refuse: Refuse, meaning: str
) -> None:
    """Every write names the server and what it is, without the command that met it."""
    sentence = f"the cache at {cache.settings.server} {meaning}"
    refuse(plain)
    with closing(Writer(cache.settings)) as writer:
        held = {"node": "gpu-1", "pod": "p", "uid": "u", "namespace": "lab", "count": 1}
        for write in (
            lambda: writer.put([node_paper("gpu-2")]),
            lambda: writer.put([paper("Allocation", resource="nvidia.com/gpu", **held)]),
            lambda: writer.stamp([NodeName("gpu-1")]),
            lambda: writer.next_epoch(NodeName("gpu-1")),
        ):
            with pytest.raises(StoreError) as refused:
                write()
            assert str(refused.value) == sentence
        accept(plain)
        assert writer.put([node_paper("gpu-2")])[0].stored.changed


@REFUSALS
def test_put_ends_with_exit_code_1_and_one_sentence(
    cache: Cache, plain: Redis, refuse: Refuse, meaning: str
) -> None:
    """Nothing is claimed as stored, and nothing of the document is there."""
    refuse(plain)
    before = plain.dbsize(), plain.get(keys.GENERATION.name), plain.hgetall(keys.SEEN.name)
    result = Surefoot(cache.settings.url)("put", "-", stdin=json.dumps(node_body("gpu-2")))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: the cache at {cache.settings.server} {meaning}\n"
    assert not plain.hexists(keys.NODES.name, "gpu-2")
    after = plain.dbsize(), plain.get(keys.GENERATION.name), plain.hgetall(keys.SEEN.name)
    assert after == before


@REFUSALS
def test_a_reader_reads_on(cache: Cache, plain: Redis, refuse: Refuse, meaning: str) -> None:
    """The one that was there is answered still, a new one loads, and both follow what comes next."""
    with view(cache.settings) as old:
        eventually(lambda: old.shows("gpu-1"), "the fleet")
        refuse(plain)
        looks(old)
        with view(cache.settings) as new, closing(Writer(cache.settings)) as writer:
            eventually(lambda: new.shows("gpu-1"), "the fleet")
            accept(plain)
            writer.put([node_paper("gpu-2")])
            for each in (old, new):
                eventually(lambda one=each: one.shows("gpu-1", "gpu-2"), "the next change")  # type: ignore[misc]


@REFUSALS
def test_decisions_wait_up_to_a_bound_and_the_rest_is_counted(
    cache: Cache, plain: Redis, refuse: Refuse, meaning: str
) -> None:
    """The newest are shipped, once each, when the cache takes writes again."""
    refuse(plain)
    log = DecisionLog(cache.settings, capacity=100)
    log.start()
    for number in range(300):
        log.append(str(number).encode)
    eventually(lambda: log.dropped == 200, "a full queue")
    accept(plain)
    eventually(lambda: log.shipped == 100, "the rest")
    log.close()
    assert recorded(plain) == [str(number).encode() for number in range(200, 300)]
    assert (log.shipped, log.dropped) == (100, 200)


def recorded(server: Redis) -> list[bytes]:
    """What the stream holds, oldest first."""
    entries = server.xrange(keys.DECISIONS.name)
    return [fields[b"record"] for _, fields in entries]  # type: ignore[misc,union-attr,index]


def leave(server: Redis, size: int) -> None:
    """Let the memory end after about so many bytes more."""
    server.config_set("maxmemory", server.info("memory")["used_memory"] + size)


def test_memory_that_ends_in_the_middle_of_a_put_leaves_whole_documents(
    cache: Cache, plain: Redis
) -> None:
    """Those that are there have their stamp and their change; a reader never sees half of one."""
    with closing(Writer(cache.settings)) as writer:
        leave(plain, 300_000)
        with pytest.raises(StoreError, match="is full"):
            writer.put([node_paper(f"n{number}") for number in range(400)])
        stored = plain.hkeys(keys.NODES.name)
        assert 1 < len(stored) < 401
        assert set(stored) == set(plain.hkeys(keys.SEEN.name))
        assert plain.get(keys.GENERATION.name) == str(len(stored)).encode()
        assert plain.xlen(keys.CHANGES.name) == len(stored)
        with view(cache.settings) as seen:
            names = [name.decode() for name in stored]  # type: ignore[union-attr]
            eventually(lambda: seen.shows(*names), "what is there")
            assert seen.status.quarantined == 0


def test_memory_that_ends_in_the_middle_of_a_batch_ships_no_record_twice(
    cache: Cache, plain: Redis
) -> None:
    """What a nearly full cache took of a batch is not sent again, however often the rest is."""
    full(plain)
    log = DecisionLog(cache.settings)
    log.start()
    for number in range(600):
        log.append(partial(_record, number))
    for _ in range(3):
        tried = refused_calls(plain)
        eventually(lambda before=tried: refused_calls(plain) > before, "another try")  # type: ignore[misc]
        leave(plain, 100_000)
    assert plain.xlen(keys.DECISIONS.name) % BATCH
    plain.config_set("maxmemory", 0)
    eventually(lambda: log.shipped == 600, "the rest")
    log.close()
    numbers = [int(record[:3]) for record in recorded(plain)]
    assert sorted(numbers) == list(range(600))
    assert log.dropped == 0


def refused_calls(server: Redis) -> int:
    """How many records the server refused so far."""
    return int(server.info("commandstats")["cmdstat_xadd"]["rejected_calls"])


def _record(number: int) -> bytes:
    return b"%03d" % number + RECORD


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (ReadOnlyError("You can't write."), "takes no writes"),
        (OutOfMemoryError("command not allowed"), "is full"),
        (
            ResponseError("Error running script (call to f_1): @user_script:7: -OOM command not"),
            "is full",
        ),
        (
            ResponseError("Error running script (call to f_1): @user_script:7: -READONLY You"),
            "takes no writes",
        ),
        (
            ResponseError("Command # 7 (EVALSHA ab (x)\n...) of pipeline caused error: NOPERM no"),
            "failed: NOPERM no",
        ),
    ],
)
def test_old_and_new_servers_are_told_alike(error: Exception, meaning: str) -> None:
    """Redis 6.2 wraps what a script met into an error without a code of its own."""
    with pytest.raises(StoreError) as told, reaching("redis://h"):
        raise error
    assert str(told.value).startswith(f"the cache at redis://h {meaning}")
    assert "EVALSHA" not in str(told.value)


BAD_PASSWORDS = pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"wrong\n", "invalid username-password pair"),
        (b"\xff\xfe", "is no UTF-8 text"),
        (None, "No such file or directory"),
    ],
    ids=["wrong", "no text", "missing"],
)


@BAD_PASSWORDS
def test_a_bad_password_is_told_and_a_rotated_one_is_found_without_a_restart(
    cache: Cache, plain: Redis, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    """Reader, decisions and `put` say what is wrong, never the password, and recover by themselves."""
    plain.config_set("requirepass", "secret")
    plain.execute_command("AUTH", "secret")  # type: ignore[no-untyped-call]
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    settings = replace(cache.settings, password_file=file)
    log = DecisionLog(settings)
    log.start()
    log.append(partial(bytes, b"waits"))
    command = Surefoot(cache.settings.url)
    put = partial(command, "put", "-", STORE__PASSWORD_FILE=str(file))
    with closing(log), view(settings) as reader:
        eventually(lambda: reader.status.problem, "a problem that is told")
        refused = put(stdin=json.dumps(node_body("gpu-2")))
        for told in (reader.status.problem or "", refused.stderr):
            assert told.removeprefix("error: ").startswith("the cache at redis://127.0.0.1")
            assert problem in told
            assert "wrong" not in told
            assert told.strip().count("\n") == 0
        assert (refused.exit_code, log.shipped) == (1, 0)
        file.write_text("secret\n")
        eventually(lambda: reader.status.connected and reader.status.loaded, "the new password")
        eventually(lambda: log.shipped == 1, "the record that waited")
        assert put(stdin=json.dumps(node_body("gpu-2"))).exit_code == 0
