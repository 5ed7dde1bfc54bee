"""`surefoot serve` in enforce mode, with two routes more: /echo decodes the request and sends the
names back, /echo-scores sends each one back with score 0, by the same decoder and encoders. What
/filter and /prioritize take beyond that is Surefoot's own.

Usage: echo.py REDIS_URL [BIND]. Prints the address on standard output once it listens.
"""

from __future__ import annotations

import sys

from flask import Flask, Response, request

from extender import logs, wiring
from extender.config.model import Mode, StoreConfig, SurefootConfig, WebhookConfig
from extender.webhook.server import Server
from extender.wire import scheduler


def _echo() -> Response:
    args = scheduler.decode_nodes(request.get_data(cache=False))
    answer = scheduler.encode_filter(args, passed=args.names, failed={}, unresolvable={})
    return Response(answer, mimetype="application/json")


def _echo_scores() -> Response:
    args = scheduler.decode_nodes(request.get_data(cache=False))
    answer = scheduler.encode_priorities([(name, 0) for name in args.names])
    return Response(answer, mimetype="application/json")


def serve(config: SurefootConfig) -> None:
    """Serve until a signal ends it, put together as `extender.wiring.serve` does."""
    logs.configure(as_json=True, level=config.log.level)
    running: list[wiring.Webhook] = []

    def build() -> Flask:
        made = wiring.webhook(config)
        made.app.add_url_rule("/echo", "echo", _echo, methods=["POST"])
        made.app.add_url_rule("/echo-scores", "echo_scores", _echo_scores, methods=["POST"])
        made.start()
        running.append(made)
        return made.app

    def stopped() -> None:
        for made in running:
            made.close()

    def started(address: str) -> None:
        print(address, flush=True)

    Server(config.webhook.bind, build, started=started, stopped=stopped).run()


if __name__ == "__main__":
    url, bind = [*sys.argv[1:], "127.0.0.1:0"][:2]
    serve(
        SurefootConfig(
            webhook=WebhookConfig(bind=bind, mode=Mode.ENFORCE), store=StoreConfig(url=url)
        )
    )
