"""A real cache for the commands that need one."""

from servers import cache, client, store, valkey

__all__ = ["cache", "client", "store", "valkey"]
