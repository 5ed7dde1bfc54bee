"""Logs: one event name and keys, JSON or for people, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final

import structlog
from structlog.typing import Processor

LEVELS: Final = {
    name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")
}


def configure(*, as_json: bool, level: str) -> None:
    """Send structlog's events and the standard library's records the same way."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=last, foreign_pre_chain=shared)
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(LEVELS[level], logging.WARNING))
