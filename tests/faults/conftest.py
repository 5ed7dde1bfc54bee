"""A real cache, and a real server on one."""

from servers import cache, client, store, valkey
from serving import own_cache, served

__all__ = ["cache", "client", "own_cache", "served", "store", "valkey"]
