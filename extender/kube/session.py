"""Kept connections to the API server, and who we are to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, ReadTimeoutError

from extender.kube import settings as kube_settings
from extender.kube.answers import Answer, plain
from extender.kube.errors import SilentError, UnreachableError
from extender.kube.fence import Fence
from extender.kube.settings import KubeSettings
from extender.version import VERSION

CONNECT_S: Final = 5.0


class Session:
    """One request after another, from any thread; nothing is ever sent twice."""

    def __init__(
        self, settings: KubeSettings, *, connections: int = 1, fence: Fence | None = None
    ) -> None:
        """Keep as many `connections` as threads ask at a time.

        Without a `fence` everything is sent.
        """
        self._settings = settings
        self._connections = connections
        self._fence = fence
        self._changing = threading.Lock()
        self._rest: RESTClientObject | None = None

    @contextmanager
    def answer(
        self,
        verb: str,
        target: str,
        *,
        silence_s: float,
        body: bytes | None = None,
        content: str | None = None,
    ) -> Iterator[Answer]:
        """The answer to one request for `target`, a path with its query; a success, and yet to be
        read. `content`: the type of the body.

        A body that is not read to its end costs its connection, and the next call a TLS handshake
        (34 ms instead of 1.4).

        Raises:
            KubeError: one of its kinds. After `UnreachableError` the request may have been
                heeded all the same.
        """
        rest = self._opened()
        configuration: Configuration = rest.configuration
        server = f"the API server at {configuration.host}"
        try:
            http = rest.pool_manager.request(
                verb,
                f"{configuration.host}{target}",
                body=body,
                headers=_headers(configuration, content),
                timeout=urllib3.Timeout(connect=min(CONNECT_S, silence_s), read=silence_s),
                preload_content=False,
                retries=False,  # the caller knows when to try again
                redirect=False,
            )
        except ReadTimeoutError as error:
            raise SilentError(f"{server} does not answer for {silence_s:g} s") from error
        except (HTTPError, OSError, ValueError, ConfigException) as error:
            raise UnreachableError(f"{server} cannot be reached: {plain(error)}") from error
        answer = Answer(http, server, silence_s)
        try:
            if http.status // 100 != 2:
                if http.status == 401:
                    # Tokens and certificates are renewed in their files.
                    self._forget(rest)
                raise answer.refusal()
            yield answer
        finally:
            http.close()  # only what was not read whole still has its connection
            http.release_conn()

    def close(self) -> None:
        """Give the connections back, and read the credentials again at the next request."""
        with self._changing:
            rest, self._rest = self._rest, None
        if rest is not None:
            rest.pool_manager.clear()

    def _opened(self) -> RESTClientObject:
        with self._changing:
            if self._rest is None:
                configuration = kube_settings.configuration(self._settings)
                configuration.connection_pool_maxsize = self._connections
                self._rest = RESTClientObject(configuration)
                if self._fence is not None:
                    _keep_behind(self._fence, self._rest.pool_manager)
            return self._rest

    def _forget(self, refused: RESTClientObject) -> None:
        """Close, unless another thread did so already."""
        with self._changing:
            if self._rest is refused:
                self._rest = None
        refused.pool_manager.clear()


class _Fenced(HTTPConnection):
    """A connection that sends its requests behind a fence."""

    fence: Fence

    def request(self, *args: Any, **options: Any) -> None:
        """Check and send as one; the answer is waited for outside."""
        if self.is_closed:
            self.connect()  # a handshake takes its time, and nobody else is to wait for it
        with self.fence.sending():
            super().request(*args, **options)


def _keep_behind(fence: Fence, manager: urllib3.PoolManager) -> None:
    """Have all connections of `manager`, through a proxy too, send behind `fence`."""

    def fenced(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
        connection = type("Fenced", (_Fenced, pool.ConnectionCls), {"fence": fence})
        return type("FencedPool", (pool,), {"ConnectionCls": connection})

    kinds = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: fenced(pool) for scheme, pool in kinds.items()}


def _headers(configuration: Configuration, content: str | None) -> dict[str, str]:
    """Who we are; the token is asked for each time, because it is renewed."""
    found: Any = configuration.auth_settings()
    tokens = {each["key"]: each["value"] for each in found.values() if each["value"]}
    typed = {"Content-Type": content} if content else {}
    return {"Accept": "application/json", "User-Agent": f"surefoot/{VERSION}", **tokens, **typed}
