"""Sentinel makes a replica the primary that lacks the last writes of the old one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from papers import node_paper
from redis import Redis
from redis.exceptions import RedisError
from servers import eventually, free_port, listens, running
from viewing import View, view

from extender.store import keys
from extender.store.connect import SentinelSettings, StoreSettings
from extender.store.decisions import DecisionLog
from extender.store.documents import Document
from extender.store.errors import StoreError
from extender.store.writer import Writer
from scoring.model import NodeName

TEN = tuple(f"n{number}" for number in range(10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A primary and its replica, watched by one Sentinel."""

    settings: StoreSettings
    primary: subprocess.Popen[bytes]
    replica: subprocess.Popen[bytes]
    old: Redis
    """The primary, as long as it runs."""
    new: Redis
    """The replica, which will be the primary."""


@pytest.fixture
def pair(redis_server: str, tmp_path: Path) -> Iterator[Pair]:
    """Debian's redis-server, three times."""
    primary, replica, sentinel = (free_port() for _ in range(3))
    rules = tmp_path / "sentinel.conf"
    rules.write_text(
        f"port {sentinel}\ndir {tmp_path}\nsentinel monitor main 127.0.0.1 {primary} 1\n"
        "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 1000\n"
    )
    base = [redis_server, "--save", "", "--repl-diskless-sync-delay", "0", "--dir", str(tmp_path)]
    with ExitStack() as stack:

        def start(port: int, *command: str) -> subprocess.Popen[bytes]:
            log = tmp_path / f"{port}.log"
            return stack.enter_context(running(command, log, lambda: listens(port)))

        first = start(primary, *base, "--port", str(primary))
        second = start(
            replica, *base, "--port", str(replica), "--replicaof", f"127.0.0.1 {primary}"
        )
        old, new, query = (
            stack.enter_context(closing(Redis(port=port, protocol=2)))
            for port in (primary, replica, sentinel)
        )
        eventually(lambda: new.info("replication")["master_link_status"] == "up", "a replica")
        start(sentinel, redis_server, str(rules), "--sentinel")
        eventually(lambda: _knows_a_replica(query), "a Sentinel that knows it", within_s=30)
        hosts = (("127.0.0.1", sentinel),)
        yield Pair(
            settings=StoreSettings(sentinel=SentinelSettings(hosts=hosts, service="main")),
            primary=first,
            replica=second,
            old=old,
            new=new,
        )


def _knows_a_replica(sentinel: Redis) -> bool:
    try:
        found = sentinel.sentinel_slaves("main")
    except RedisError:
        return False
    return [one["master-link-status"] for one in found] == ["ok"]


def lose_the_next_writes(pair: Pair) -> None:
    """From now on the replica hears nothing, and the primary does not wait for it."""
    os.kill(pair.replica.pid, signal.SIGSTOP)
    pair.old.execute_command("CLIENT", "KILL", "TYPE", "replica")  # type: ignore[no-untyped-call]


def fail_over(pair: Pair) -> None:
    """The primary dies; the replica, awake again, will be made the primary."""
    pair.primary.kill()
    os.kill(pair.replica.pid, signal.SIGCONT)
    eventually(
        lambda: pair.new.info("replication")["role"] == "master",
        "a new primary",
        within_s=60,
    )


def is_sick(seen: View, name: str) -> bool:
    """Whether the reader shows a cause on the node."""
    node = seen.fleet.nodes.get(NodeName(name)) if seen.fleet else None
    return node is not None and any(gpu.causes for gpu in node.gpus)


def test_a_failover_that_lost_writes_is_followed_from_where_it_stands(pair: Pair) -> None:
    """The generation fell and rises again past the old one: nothing of the lost writes stays, and
    what agents publish again is shown.
    """
    writer = Writer(pair.settings)
    writer.put([node_paper(name) for name in TEN])
    eventually(lambda: pair.new.get(keys.GENERATION.name) == b"10", "ten replicated writes")
    log = DecisionLog(pair.settings)
    log.start()
    with closing(writer), closing(log), view(pair.settings) as seen:
        eventually(lambda: seen.shows(*TEN), "the fleet")
        lose_the_next_writes(pair)
        writer.put([node_paper(TEN[0], sick={0: "FAILED"}), node_paper("lost")])
        eventually(lambda: seen.shows(*TEN, "lost") and is_sick(seen, TEN[0]), "the lost writes")
        fail_over(pair)
        log.append("kept".encode)
        # More changes than were lost, so that the counter alone would not tell.
        changes = [node_paper(name, expected=8) for name in TEN[1:]]
        eventually(lambda: _written(writer, changes), "a writer at the new primary", within_s=30)
        assert int(pair.new.get(keys.GENERATION.name) or 0) > 12
        eventually(lambda: seen.shows(*TEN), "what the new primary has")
        assert not is_sick(seen, TEN[0])
        writer.put([node_paper(TEN[0], sick={0: "FAILED"})])
        eventually(lambda: is_sick(seen, TEN[0]), "what its agent published again")
        assert seen.status.cut_off_since_s() is None
        eventually(lambda: log.shipped == 1, "the decision", within_s=5)


def _written(writer: Writer, documents: Sequence[Document]) -> bool:
    try:
        writer.put(documents)
    except StoreError:
        return False
    return True
