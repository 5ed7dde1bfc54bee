"""Real caches, and the command."""

from servers import cache, client, redis_server, store, valkey
from serving import own_cache, served

__all__ = ["cache", "client", "own_cache", "redis_server", "served", "store", "valkey"]
