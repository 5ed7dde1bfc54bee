"""From a configuration to the parts of a server."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from extender import logs, wiring
from extender.config.model import SurefootConfig
from extender.store.connect import SentinelSettings, StoreSettings, Tls


def settings(**store: object) -> StoreSettings:
    """How to reach the store of this configuration."""
    return wiring.store_settings(SurefootConfig.model_validate({"store": store}))


def test_a_url_is_taken_as_it_is() -> None:
    """The default is a Redis on this machine."""
    assert settings() == StoreSettings(url="redis://localhost:6379/0")
    assert settings(url="unix:///run/redis.sock").url == "unix:///run/redis.sock"


def test_sentinels_tls_and_credentials_reach_the_store() -> None:
    """Every field, files as paths."""
    found = settings(
        sentinel={"hosts": ["a:26379", "[::1]:26380"], "service": "primary"},
        username="surefoot",
        passwordFile="/run/secret",
        tls={"ca": "/ca.pem", "cert": "/c.pem", "key": "/k.pem"},
    )
    assert found.sentinel == SentinelSettings(
        hosts=(("a", 26379), ("::1", 26380)), service="primary"
    )
    assert (found.username, found.password_file) == ("surefoot", Path("/run/secret"))
    assert found.tls == Tls(ca=Path("/ca.pem"), cert=Path("/c.pem"), key=Path("/k.pem"))


def test_a_webhook_that_was_never_started_can_be_closed() -> None:
    """As after a failed start; nothing hangs."""
    made = wiring.webhook(SurefootConfig())
    assert made.app.test_client().get("/readyz").status_code == 503
    made.close()


@pytest.fixture
def untouched() -> Iterator[None]:
    """Logging as it was, afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("untouched")
def test_logs_of_all_are_json_lines_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Ours, and those of libraries; a traceback is one field of one line."""
    logs.configure(as_json=True, level="info")
    log = structlog.get_logger("test")
    log.debug("unheard")
    log.info("heard", node="gpu-1")
    try:
        int("odd\nvalue")
    except ValueError:
        log.exception("failed")
    logging.getLogger("redis").warning("lost %s", "it")
    logging.getLogger("redis").info("unheard")
    told, errors = capfd.readouterr()
    lines = [json.loads(line) for line in errors.splitlines()]
    assert told == ""
    assert [line["event"] for line in lines] == ["heard", "failed", "lost it"]
    assert (lines[0]["node"], lines[0]["level"]) == ("gpu-1", "info")
    assert "ValueError: invalid" in lines[1]["exception"]
    assert all(line["timestamp"].endswith("Z") for line in lines)


@pytest.mark.usefixtures("untouched")
def test_logs_for_people_are_no_json(capfd: pytest.CaptureFixture[str]) -> None:
    """`log.format: console`."""
    logs.configure(as_json=False, level="debug")
    structlog.get_logger("test").debug("heard", node="gpu-1")
    errors = capfd.readouterr().err
    assert "heard" in errors
    assert not errors.startswith("{")
