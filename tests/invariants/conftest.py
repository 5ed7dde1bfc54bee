"""Real caches for the invariants that need one."""

from servers import cache, client, store, valkey

__all__ = ["cache", "client", "store", "valkey"]
