"""The real `surefoot serve`, as a process of its own, enforcing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from extender.config.load import PREFIX
from extender.demo.processes import Child, free_port, listens
from extender.demo.redis_server import Held

HOST = "127.0.0.1"


@contextmanager
def serving(store_url: str, directory: Path, held: Held) -> Iterator[int]:
    """Run `surefoot serve` on a free port, which is yielded, until the block ends.

    Raises:
        DemoError: it does not start.
    """
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(PREFIX)},
        f"{PREFIX}WEBHOOK__MODE": "enforce",
        f"{PREFIX}WEBHOOK__BIND": f"{HOST}:{port}",
        f"{PREFIX}STORE__URL": store_url,
        f"{PREFIX}LOG__LEVEL": "warning",
    }
    child = Child([sys.executable, "-m", "extender", "serve"], directory, environment)
    try:
        with held():
            child.start()
        child.wait_until(lambda: listens(port))
        yield port
    finally:
        child.stop()
