"""`surefoot put` of a Plan, as of any kind."""

from __future__ import annotations

import json
from typing import Any

from commands import Surefoot
from redis import Redis

from extender.store import keys

PLAN: dict[str, Any] = {
    "apiVersion": "surefoot.dev/v1",
    "kind": "Plan",
    "gang": "lab/train",
    "convention": "surefoot",
    "hold": "require",
    "state": "planned",
    "since": "2026-11-29T18:50:00Z",
    "seats": {"u1": {"pod": "train-0", "node": "gpu-1"}},
}


def test_a_plan_is_stored_told_and_removed(surefoot: Surefoot, client: Redis) -> None:
    """By the key of its gang; nothing else is needed to remove it."""
    first, again = (surefoot("put", "-", stdin=json.dumps(PLAN)) for _ in range(2))
    assert (first.exit_code, first.stdout) == (0, "Plan lab/train stored\n")
    assert again.stdout == "Plan lab/train unchanged\n"
    stored: Any = client.hget(keys.PLANS.name, "lab/train")
    assert json.loads(stored) == PLAN
    named = {key: PLAN[key] for key in ("apiVersion", "kind", "gang")}
    gone = surefoot("put", "-", "--delete", stdin=json.dumps(named))
    assert (gone.exit_code, gone.stdout) == (0, "Plan lab/train deleted\n")
    assert client.hlen(keys.PLANS.name) == 0


def test_a_plan_that_cannot_be_used_is_named_by_its_path(surefoot: Surefoot, client: Redis) -> None:
    """Nothing is stored."""
    result = surefoot("put", "-", stdin=json.dumps({**PLAN, "hold": "requires"}))
    assert result.exit_code == 2
    assert "hold: 'requires' is unknown, allowed: off, prefer, require" in result.stderr
    assert client.exists(keys.PLANS.name) == 0
