"""What can go wrong with the cache, each with a sentence for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Self

from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError

from extender.store.schema import ADVICE


class StoreError(Exception):
    """The cache cannot be reached, or does not answer as it should."""


class FencedError(StoreError):
    """A write of a leader that was followed by another one. Nothing was written."""

    def __init__(self, term: int, highest: int) -> None:
        super().__init__(
            f"the cache refuses what a leader of term {term} writes: it has seen term {highest}"
        )
        self.term = term
        """That of the write."""
        self.highest = highest
        """The highest one that the cache has seen."""


@contextmanager
def reaching(server: str) -> Iterator[None]:
    """Turn the client's errors into one `StoreError` that names the server."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreError(f"the cache at {server} {told(error)}") from error


_REFUSALS: Final = (
    (ReadOnlyError, "-READONLY ", "takes no writes: it is a read-only replica, not the primary"),
    (
        OutOfMemoryError,
        "-OOM ",
        "is full: it takes no writes at its `maxmemory`, and evicts nothing",
    ),
)
"""What a server may refuse: the client's error, the code within a script's error (Redis before 7),
and what that means."""
_IN_PIPELINE: Final = re.compile(r"\ACommand # \d+ \(.*?\) of pipeline caused error: ", re.DOTALL)


def told(error: RedisError | OSError) -> str:
    """What a client's error says of the server, without the command that met it."""
    problem = _IN_PIPELINE.sub("", str(error))
    for known, code, meaning in _REFUSALS:
        if isinstance(error, known) or code in problem:
            return meaning
    return f"failed: {problem}"


LONGEST: Final = 600
"""Characters of a problem that are told: what was given is quoted, and it may be a megabyte."""


class DocumentError(ValueError):
    """A document that cannot be used: where it stands, the path inside it, and what is wrong."""

    def __init__(self, problem: str, *, path: str = "", where: str = "") -> None:
        if len(problem) > LONGEST:
            problem = f"{problem[: LONGEST // 2]} ... {problem[-LONGEST // 2 :]}"
        super().__init__(": ".join(part for part in (where, path, problem) if part))
        self.problem = problem
        self.path = path
        self.where = where

    def at(self, where: str) -> Self:
        """The same error, of the document at `where`."""
        return type(self)(self.problem, path=self.path, where=where)


_TYPES: Final[Mapping[str, str]] = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "datetime": "an RFC 3339 time",
    "null": "nothing",
}
_PATH: Final = re.compile(r" - at `(?:key` in `)?\$\.?(?P<path>[^`]*)`\Z")
_MISSING: Final = re.compile(r"Object missing required field `(?P<field>[^`]+)`\Z")
_EXPECTED: Final = re.compile(r"Expected `(?P<want>[^`]+)`(?P<rest>.*)\Z", re.DOTALL)
_GOT: Final = re.compile(r", got `(?P<got>[^`]+)`")
_BOUNDS: Final = (
    (re.compile(r" of length >= 1\Z"), " that is not empty"),
    (re.compile(r" of length >= (\d+)\Z"), r" of \1 or more"),
    (re.compile(r" of length <= (\d+)\Z"), r" of \1 or less"),
    (re.compile(r" >= (-?\d+)\Z"), r", \1 or more"),
    (re.compile(r" <= (-?\d+)\Z"), r", \1 or less"),
    (re.compile(r" with a timezone component\Z"), " with a zone, like 2026-11-29T18:50:00Z"),
)
_NO_TIME: Final = "Invalid RFC3339 encoded datetime"
_ADVICE: Final = {f" matching regex {pattern!r}": told for pattern, told in ADVICE.items()}


def from_validation(message: str) -> DocumentError:
    """The error behind a message of msgspec's validation, in the words of this project.

    `Object missing required field `uuid` - at `$.gpus[2]`` is `gpus[2].uuid: missing`.
    """
    found = _PATH.search(message)
    path = found["path"].replace("[...]", "[*]") if found else ""
    text = message[: found.start()] if found else message
    if missing := _MISSING.match(text):
        return DocumentError("missing", path=f"{path}.{missing['field']}".lstrip("."))
    if text == _NO_TIME:
        return DocumentError("expected an RFC 3339 time, like 2026-11-29T18:50:00Z", path=path)
    if expected := _EXPECTED.match(text):
        if advice := _ADVICE.get(expected["rest"]):
            return DocumentError(advice, path=path)
        rest = _GOT.sub(lambda got: f", got {_TYPES.get(got['got'], got['got'])}", expected["rest"])
        for bound, shown in _BOUNDS:
            rest = bound.sub(shown, rest)
        wanted = " or ".join(_TYPES.get(want, want) for want in expected["want"].split(" | "))
        return DocumentError(f"expected {wanted}{rest}", path=path)
    return DocumentError(text, path=path)
