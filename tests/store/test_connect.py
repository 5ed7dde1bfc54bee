"""Every way to reach the cache: users, rotated passwords, TLS, Sentinel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from redis import Redis
from redis.exceptions import RedisError
from servers import Cache, eventually, free_port, listens, running
from watching import Watch, node

from extender.store.connect import SentinelSettings, StoreSettings, Tls, connect
from extender.store.errors import StoreError
from extender.store.writer import Writer


def works(settings: StoreSettings) -> bool:
    """Whether a document can be written there."""
    writer = Writer(settings)
    try:
        return writer.put([node()])[0].outcome in ("stored", "not newer")
    except StoreError:
        return False
    finally:
        writer.close()


@pytest.fixture
def user(client: Redis, tmp_path: Path) -> Iterator[Path]:
    """An ACL user `surefoot` who may touch only Surefoot's keys; the file of its password."""
    password = tmp_path / "password"
    password.write_text("first\n")
    client.acl_setuser(
        "surefoot",
        enabled=True,
        passwords=["+first"],
        keys=["{surefoot:v1}:*"],
        categories=["+@all", "-@dangerous"],
    )
    yield password
    client.acl_deluser("surefoot")


def test_a_user_with_a_password_file_may_write_and_read(
    store: StoreSettings, user: Path, watch: Callable[..., Watch]
) -> None:
    """An ACL user restricted to Surefoot's keys can do all that Surefoot does."""
    settings = replace(store, username="surefoot", password_file=user)
    assert works(settings)
    assert watch(settings).shows("gpu-17")


def test_a_wrong_user_is_refused(store: StoreSettings, user: Path) -> None:
    """A wrong password and a missing file are errors with a sentence."""
    settings = replace(store, username="surefoot", password_file=user)
    user.write_text("wrong")
    with pytest.raises(StoreError, match="invalid username-password"):
        Writer(settings).ping()
    user.unlink()
    with pytest.raises(StoreError, match="No such file"):
        Writer(settings).ping()


def test_a_rotated_password_is_read_again(
    store: StoreSettings, user: Path, client: Redis, watch: Callable[..., Watch]
) -> None:
    """A reader whose user got a new password goes on with the new one, without a restart."""
    settings = replace(store, username="surefoot", password_file=user)
    assert works(settings)
    seen = watch(settings)
    assert seen.shows("gpu-17")
    user.write_text("second")
    client.acl_setuser("surefoot", enabled=True, passwords=["-first", "+second"])
    client.client_kill_filter(_type="normal", skipme=True)
    eventually(lambda: seen.status.reloads == 2 and seen.status.connected, "connected again")


@pytest.mark.parametrize("url", ["http://x", "redis://host:port", "rediss://h:99999/0"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """A slip in the URL is told before anything is tried."""
    with pytest.raises(StoreError, match=r"^store\.url: "):
        connect(StoreSettings(url=url))


def test_a_url_that_is_none_names_no_server() -> None:
    """The name for messages ends in the same error, not in a traceback."""
    with pytest.raises(StoreError, match=r"^store\.url: Invalid IPv6 URL"):
        _ = StoreSettings(url="redis://[::1").server


def test_servers_are_named_without_secrets() -> None:
    """What stands in messages and logs holds no password."""
    assert StoreSettings(url="redis://me:pw@h:1/2").server == "redis://h:1/2"
    named = StoreSettings(sentinel=SentinelSettings(hosts=(("a", 1), ("b", 2)), service="main"))
    assert named.server == "main of sentinel a:1, b:2"


@contextmanager
def tls_server(binary: str, tmp_path: Path) -> Iterator[StoreSettings]:
    """A Redis that speaks TLS only and asks for the client's certificate; how to reach it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    for name, issued in (
        ("server", authority.issue_cert("localhost", "127.0.0.1")),
        ("client", authority.issue_cert("surefoot")),
    ):
        issued.private_key_pem.write_to_path(str(tmp_path / f"{name}.key"))
        issued.cert_chain_pems[0].write_to_path(str(tmp_path / f"{name}.pem"))
    port = free_port()
    command = [binary, "--port", "0", "--tls-port", str(port), "--save", "", "--dir", str(tmp_path)]
    for option, file in (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem")):
        command += [f"--tls-{option}-file", str(tmp_path / file)]
    with running(command, tmp_path / "log", lambda: listens(port)):
        yield StoreSettings(
            url=f"redis://localhost:{port}/0",
            tls=Tls(
                ca=tmp_path / "ca.pem", cert=tmp_path / "client.pem", key=tmp_path / "client.key"
            ),
        )


def test_mutual_tls(redis_server: str, tmp_path: Path, watch: Callable[..., Watch]) -> None:
    """With the authority and a certificate it works; without either, or in the clear, it does not."""
    with tls_server(redis_server, tmp_path) as settings:
        assert works(settings)
        assert works(replace(settings, url=settings.url.replace("redis://", "rediss://")))
        assert watch(settings).shows("gpu-17")
        assert not works(replace(settings, tls=Tls(ca=tmp_path / "ca.pem")))
        assert not works(replace(settings, tls=None))
        stranger = tmp_path / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(str(stranger))
        assert settings.tls is not None
        assert not works(replace(settings, tls=replace(settings.tls, ca=stranger)))


def test_sentinel_names_the_primary_also_after_a_failover(
    redis_server: str, tmp_path: Path, watch: Callable[..., Watch]
) -> None:
    """Writers and readers follow Sentinel to the new primary, with the same user and password."""
    password = tmp_path / "password"
    password.write_text("secret")
    primary, replica, sentinel = (free_port() for _ in range(3))
    auth = ["--requirepass", "secret", "--masterauth", "secret", "--save", ""]
    watching = tmp_path / "sentinel.conf"
    watching.write_text(
        f"port {sentinel}\ndir {tmp_path}\nsentinel monitor main 127.0.0.1 {primary} 1\n"
        "sentinel auth-pass main secret\nsentinel down-after-milliseconds main 500\n"
        "sentinel failover-timeout main 1000\n"
    )
    settings = StoreSettings(
        sentinel=SentinelSettings(hosts=(("127.0.0.1", sentinel),), service="main"),
        password_file=password,
    )
    base = [redis_server, *auth, "--dir", str(tmp_path), "--port"]
    of_replica = [*base, str(replica), "--replicaof", f"127.0.0.1 {primary}"]
    with ExitStack() as stack:

        def start(command: list[str], port: int) -> subprocess.Popen[bytes]:
            log = tmp_path / f"{port}.log"
            return stack.enter_context(running(command, log, lambda: listens(port)))

        first = start([*base, str(primary)], primary)
        start([*of_replica, "--dbfilename", "replica.rdb"], replica)
        plain = stack.enter_context(closing(Redis(port=primary, password="secret", protocol=2)))
        eventually(lambda: plain.info("replication").get("slave0"), "a replica")
        start([redis_server, str(watching), "--sentinel"], sentinel)
        query = stack.enter_context(closing(Redis(port=sentinel, protocol=2)))
        eventually(lambda: _may_promote(query), "a sentinel with a replica", within_s=30)
        assert works(settings)
        seen = watch(settings)
        assert seen.shows("gpu-17")
        assert plain.wait(1, 5000) == 1
        first.kill()
        eventually(lambda: works(settings), "a new primary", within_s=60)
        eventually(lambda: seen.status.connected and seen.status.reloads > 1, "the reader is there")
        assert seen.shows("gpu-17")


def _may_promote(sentinel: Redis) -> bool:
    """Whether the Sentinel has a replica that it would make the primary."""
    try:
        replicas = sentinel.sentinel_slaves("main")
    except RedisError:
        return False
    return [one["master-link-status"] for one in replicas] == ["ok"]


def test_a_primary_that_nobody_knows_is_an_error(valkey: Cache) -> None:
    """A server that is no Sentinel, or knows no such service, is told in one sentence."""
    wrong = SentinelSettings(hosts=(("127.0.0.1", valkey.port),), service="main")
    with pytest.raises(StoreError, match="main of sentinel"):
        Writer(StoreSettings(sentinel=wrong)).ping()
