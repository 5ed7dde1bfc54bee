"""What a caller gets instead of an answer: one sentence, and a status that fits it."""

from __future__ import annotations

import msgspec
from flask import Response


def problem(code: int, sentence: str) -> Response:
    """`Error` is where kube-scheduler looks, `error` where people do."""
    body = msgspec.json.encode({"Error": sentence, "error": sentence})
    return Response(body, status=code, mimetype="application/json")
