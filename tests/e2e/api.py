"""A small client of the API server: paths and JSON, as the administrator."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import urllib3
from asking import Json

from e2e.identities import Pair

TIMEOUT_S: Final = 30.0
MERGE: Final = "application/merge-patch+json"
CONNECTIONS: Final = 16
CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, call: str, status: int, message: str) -> None:
        super().__init__(f"{call}: {status} {message}")
        self.status = status


class Api:
    """Keeps its connections; safe to use from several threads."""

    def __init__(self, server: str, authority: Path, user: Pair) -> None:
        self._server = server
        self._pool = urllib3.PoolManager(
            maxsize=CONNECTIONS,
            ca_certs=str(authority),
            cert_file=str(user.certificate),
            key_file=str(user.key),
            retries=False,
            timeout=TIMEOUT_S,
        )

    def get(self, path: str, **query: str) -> Json:
        """One object, or a list.

        Raises:
            ApiError: with the status, as of every method here.
        """
        return self._call("GET", path, query=query)

    def find(self, path: str) -> Json | None:
        """One object, or None if it is not there."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def items(self, path: str, **query: str) -> list[Json]:
        """What a list holds."""
        found: list[Json] = self.get(path, **query)["items"]
        return found

    def events(self, path: str, since: str) -> list[Json]:
        """What became of the objects of a list since its version, in the server's own order.

        Takes a second. The server remembers a minute at least.
        """
        query = urlencode({"watch": "1", "resourceVersion": since, "timeoutSeconds": "1"})
        answer = self._pool.request("GET", f"{self._server}{path}?{query}")
        found = [json.loads(line) for line in answer.data.splitlines()]
        for each in found:
            if each.get("type") not in CHANGES:
                raise ApiError(f"watch {path}", answer.status, str(each))
        return found

    def create(self, path: str, body: Json) -> Json:
        """The object as it was stored."""
        return self._call("POST", path, body)

    def merge(self, path: str, body: Json) -> Json:
        """The object after a merge patch."""
        return self._call("PATCH", path, body, kind=MERGE)

    def delete(self, path: str, **query: str) -> None:
        """One object or, of a list, all that match; gone already is fine."""
        try:
            self._call("DELETE", path, query=query)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def ready(self) -> bool:
        """Whether the API server serves."""
        try:
            answer = self._pool.request("GET", f"{self._server}/readyz")
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == HTTPStatus.OK

    def close(self) -> None:
        """Close its connections."""
        self._pool.clear()

    def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: dict[str, str] | None = None,
        kind: str = "application/json",
    ) -> Json:
        sent = None if body is None else json.dumps(body)
        address = f"{self._server}{path}"
        if query:
            address += f"?{urlencode(query)}"
        answer = self._pool.request(method, address, body=sent, headers={"Content-Type": kind})
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise ApiError(f"{method} {path}", answer.status, answer.data.decode(errors="replace"))
        found: Json = answer.json()
        return found
