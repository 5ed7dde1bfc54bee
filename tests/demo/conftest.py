"""Servers for the tests of the demo."""

from __future__ import annotations

from servers import cache, redis_server

__all__ = ["cache", "redis_server"]
