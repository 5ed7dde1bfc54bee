"""What the tests of the controller share."""

from __future__ import annotations

import pytest
from kubes import api
from servers import cache, client, store, valkey

from extender.controller.wanted import Wanted

__all__ = ["api", "cache", "client", "store", "valkey"]


@pytest.fixture
def wanted() -> Wanted:
    """Nothing yet."""
    return Wanted()
