"""The routes: bytes in, bytes out. What is decided stands in `answers`."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog
from flask import Flask, Response, request
from werkzeug.exceptions import (
    ClientDisconnected,
    HTTPException,
    MethodNotAllowed,
    RequestEntityTooLarge,
    ServiceUnavailable,
)

from extender.config.model import WebhookConfig
from extender.webhook.answers import Decision, Judge
from extender.webhook.board import Board
from extender.webhook.explanations import LIMIT, explanation
from extender.webhook.gang_pages import NO_SNAPSHOT, add_gangs
from extender.webhook.metrics import Metrics
from extender.webhook.problems import problem
from extender.webhook.records import Record
from extender.wire import asks, scheduler
from extender.wire.errors import WireError
from scoring.gangs.rules import GangRules
from scoring.model import Ask, NodeName
from scoring.policy import Policy, digest
from scoring.reasons import Reason

LARGEST_BODY: Final = 256 << 20
"""Bytes. 5,000 full Nodes are about 80 MB."""

_TEXTS: Final = {reason: reason.text for reason in Reason}
_CURABLE: Final = frozenset(reason for reason in Reason if not reason.unresolvable)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """What the app is made of; `extender.wiring` puts it together."""

    config: WebhookConfig
    policy: Policy
    gangs: GangRules
    board: Board
    metrics: Metrics
    record: Callable[[Record], None]
    """Takes a decision for the log; never blocks."""
    version: str
    connected: Callable[[], bool]
    """Whether the cache answers right now; for /readyz?verbose."""


class Webhook:
    """The handlers of one app."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._judge = Judge(deps.config, deps.board, deps.gangs)
        self._policy_digest = digest(deps.policy)
        self._replica = secrets.token_hex(3)
        self._numbers = itertools.count(1)

    def filter(self, body: bytes) -> bytes:
        """ExtenderFilterResult for ExtenderArgs."""
        started_s = time.perf_counter()
        args = scheduler.decode_nodes(body)
        ask = asks.ask_of(args.pod, self._deps.policy)
        decision = self._judge.filter(args, ask)
        self._keep("filter", started_s, ask, args.offered, decision)
        if self._judge.observes:
            return scheduler.encode_filter(args, passed=args.names, failed={}, unresolvable={})
        failed, unresolvable = _refusals(args.names, decision)
        return scheduler.encode_filter(
            args, passed=decision.passed, failed=failed, unresolvable=unresolvable
        )

    def prioritize(self, body: bytes) -> bytes:
        """HostPriorityList for ExtenderArgs."""
        started_s = time.perf_counter()
        args = scheduler.decode_nodes(body)
        ask = asks.ask_of(args.pod, self._deps.policy)
        decision, scores = self._judge.prioritize(args, ask)
        self._keep("prioritize", started_s, ask, args.offered, decision)
        if self._judge.observes:
            scores = [(name, 0) for name in args.names]
        return scheduler.encode_priorities(scores)

    def preempt(self, body: bytes) -> bytes:
        """ExtenderPreemptionResult for ExtenderPreemptionArgs."""
        started_s = time.perf_counter()
        args = scheduler.decode_preemption(body)
        ask = asks.ask_of(args.pod, self._deps.policy)
        decision, kept = self._judge.preempt(args, ask)
        self._keep("preempt", started_s, ask, frozenset(args.victims), decision)
        return scheduler.encode_preemption(args.victims if self._judge.observes else kept)

    def explain(self, body: bytes) -> bytes:
        """Why each node fits or not: every reason, never narrowed, nothing recorded."""
        args = scheduler.decode_explain(body)
        ask = asks.ask_of(args.pod, self._deps.policy)
        limit = _limit(request.args.get("limit"))
        view = self._deps.board.latest()
        if view is None:
            raise ServiceUnavailable(NO_SNAPSHOT)
        told = explanation(
            view.picture,
            ask,
            args.names,
            self._judge.unreported(ask),
            self._deps.gangs,
            decision=self._next_id(),
            limit=limit,
        )
        return msgspec.json.encode(told)

    def _next_id(self) -> str:
        return f"{self._replica}-{next(self._numbers)}"

    def _keep(
        self,
        verb: str,
        started_s: float,
        ask: Ask,
        names: frozenset[NodeName],
        decision: Decision,
    ) -> None:
        """Count a decision and hand it on."""
        generation, now_s = decision.snapshot or (None, None)
        reason = decision.main_reason or ""
        self._deps.metrics.decisions.labels(verb, decision.outcome.value, reason).inc()
        record = Record(
            id=self._next_id(),
            verb=verb,
            at_s=time.time(),
            took_s=time.perf_counter() - started_s,
            mode=self._deps.config.mode,
            ask=ask,
            names=names,
            decision=decision,
            generation=generation,
            now_s=now_s,
            policy=self._policy_digest,
        )
        self._deps.record(record)


def _refusals(
    names: Sequence[NodeName], decision: Decision
) -> tuple[dict[NodeName, str], dict[NodeName, str]]:
    """What freeing GPUs would cure, and what eviction cannot help, each with its text."""
    if not decision.vetoes:
        return {}, {}
    failed: dict[NodeName, str] = {}
    unresolvable = dict(zip(names, map(_TEXTS.__getitem__, decision.vetoes), strict=True))
    if not _CURABLE.isdisjoint(decision.tally):
        for name, reason in zip(names, decision.vetoes, strict=True):
            if reason in _CURABLE:
                failed[name] = unresolvable.pop(name)
    return failed, unresolvable


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise WireError("must be a whole number of nodes, 0 to 999999", "limit")
    return int(text)


def create_app(deps: Deps) -> Flask:
    """The WSGI app. Start the reader and the decision log beside it (see `extender.wiring`)."""
    app = Flask("surefoot", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    webhook = Webhook(deps)
    for verb, answer in (
        ("filter", webhook.filter),
        ("prioritize", webhook.prioritize),
        ("preempt", webhook.preempt),
        ("explain", webhook.explain),
    ):
        app.add_url_rule(f"/{verb}", verb, _posted(deps.metrics, verb, answer), methods=["POST"])
    _add_pages(app, deps)
    add_gangs(app, deps.board, deps.policy)
    app.register_error_handler(HTTPException, _refused)
    return app


def _posted(
    metrics: Metrics, verb: str, answer: Callable[[bytes], bytes]
) -> Callable[[], Response]:
    """A handler that turns what is malformed into a 400 with one sentence."""

    def handle() -> Response:
        started_s = time.perf_counter()
        code = 500
        try:
            body = _body()
            started_s = time.perf_counter()
            answered = answer(body)
        except WireError as error:
            code = 400
            log.warning("refused", verb=verb, problem=str(error)[:500])
            return problem(400, str(error))
        except HTTPException as error:
            code = error.code or 500
            raise
        else:
            code = 200
            return Response(answered, mimetype="application/json")
        finally:
            metrics.requests.labels(verb, str(code)).observe(time.perf_counter() - started_s)

    return handle


def _body() -> bytes:
    """The whole body.

    Raises:
        RequestEntityTooLarge: it is beyond the limit.
        WireError: it did not come whole, or its chunks are none.
    """
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise
    except ClientDisconnected as error:
        raise WireError("it ended early, or paused for too long", "the body") from error
    except Exception as error:  # what a server's parser of chunks raises is its own affair
        raise WireError(f"cannot be read: {error}", "the body") from error
    if request.content_length is None and len(body) >= LARGEST_BODY:
        raise RequestEntityTooLarge  # a body in chunks is cut there
    return body


def _refused(error: HTTPException) -> Response:
    sentences = {
        404: "no such path; Surefoot serves /filter /prioritize /preempt /explain /gangs /livez /readyz /healthz /metrics /version",
        405: "this path takes another method",
        413: f"the body is larger than {LARGEST_BODY >> 20} MiB",
    }
    code = error.code or 500
    told = problem(code, sentences.get(code, error.description or error.name))
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        told.headers["Allow"] = ", ".join(error.valid_methods)
    return told


def _add_pages(app: Flask, deps: Deps) -> None:
    def livez() -> Response:
        return Response("ok\n", mimetype="text/plain")

    def readyz() -> Response:
        checks = _checks(deps)
        ready = all(good for _, good, _, counts in checks if counts)
        lines = [f"[{'+' if good else '-'}]{name} {text}" for name, good, text, _ in checks]
        told = "verbose" in request.args or not ready
        body = "\n".join([*lines, "ready" if ready else "not ready"]) if told else "ok"
        return Response(body + "\n", status=200 if ready else 503, mimetype="text/plain")

    def metrics() -> Response:
        return Response(
            deps.metrics.page(), content_type="text/plain; version=0.0.4; charset=utf-8"
        )

    def version() -> Response:
        return Response(msgspec.json.encode({"version": deps.version}), mimetype="application/json")

    for page in (livez, readyz, metrics, version):
        app.add_url_rule(f"/{page.__name__}", page.__name__, page, methods=["GET"])
    app.add_url_rule("/healthz", "healthz", livez, methods=["GET"])


def _checks(deps: Deps) -> list[tuple[str, bool, str, bool]]:
    """(name, good, text, whether it decides readiness)."""
    view, age_s = deps.board.latest(), deps.board.age_s()
    limit_s = deps.config.max_snapshot_age
    connected = deps.connected()
    generation = view.picture.fleet.generation if view else None
    return [
        ("redis", connected, "answers" if connected else "does not answer", False),
        ("snapshot", view is not None, f"generation {generation}" if view else "none yet", True),
        ("snapshot-age", age_s <= limit_s, f"{age_s:.1f}s of {limit_s:.0f}s", True),
    ]
