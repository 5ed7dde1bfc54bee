"""`GET /gangs` and `GET /gangs/{namespace}/{name}`: what the leading controller says of gangs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from flask import Flask, Response, request

from extender.webhook import gangs
from extender.webhook.board import Board
from extender.webhook.problems import problem
from extender.wire.errors import WireError
from scoring.gangs import telling
from scoring.gangs.record import GangState
from scoring.model import Convention, Fleet, GangKey
from scoring.policy import Policy

NO_SNAPSHOT: Final = "there is no snapshot of the cache yet, look at /readyz?verbose"

W = TypeVar("W", bound=StrEnum)


def add_gangs(app: Flask, board: Board, policy: Policy) -> None:
    """The two pages. They tell of the newest snapshot, however old."""

    def every() -> Response:
        fleet = _fleet(board)
        if fleet is None:
            return problem(503, NO_SNAPSHOT)
        try:
            state = _word(GangState, "state")
        except WireError as error:
            return problem(400, str(error))
        return _json(gangs.listing(fleet, policy, state))

    def one(namespace: str, name: str) -> Response:
        fleet = _fleet(board)
        if fleet is None:
            return problem(503, NO_SNAPSHOT)
        try:
            convention = _word(Convention, "convention")
        except WireError as error:
            return problem(400, str(error))
        key = GangKey(f"{namespace}/{name}")
        plan = gangs.find(fleet, key, convention)
        if plan is None:
            return problem(404, telling.absence(fleet, key, policy))
        return _json(gangs.whole(fleet, policy, plan))

    app.add_url_rule("/gangs", "gangs", every, methods=["GET"])
    # A name may hold slashes: a native Workload's has its group and replica.
    app.add_url_rule("/gangs/<namespace>/<path:name>", "gang", one, methods=["GET"])


def _fleet(board: Board) -> Fleet | None:
    view = board.latest()
    return None if view is None else view.picture.fleet


def _word(words: type[W], parameter: str) -> W | None:
    """A parameter of the query, or `WireError`; None: it is not there."""
    text = request.args.get(parameter)
    if text is None:
        return None
    try:
        return words(text)
    except ValueError as error:
        allowed = ", ".join(words)
        raise WireError(f"{text[:40]!r} is unknown, allowed: {allowed}", parameter) from error


def _json(told: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(told), mimetype="application/json")
