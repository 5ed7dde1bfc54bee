"""How a request and a change grow with the fleet, inside one process: JSON line and docs/growth.svg.

No network, no Redis: what is left is the part that depends on the number of nodes. Medians of
repeated calls; compare within one run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from asks import bodies
from fleet import fleet as synthetic

from extender.config.model import Mode, WebhookConfig
from extender.webhook.answers import Judge
from extender.webhook.board import Board
from extender.wire import asks, scheduler
from scoring import picture
from scoring.gangs.rules import GangRules
from scoring.model import Allocation, Fleet, Node, NodeName
from scoring.policy import DEFAULT

SIZES: Final = (100, 300, 1000, 3000, 5000, 10_000, 20_000)
NOW_S: Final = 1_000.0
PICTURE: Final = Path(__file__).parents[1] / "docs" / "growth.svg"
SERIES: Final = {
    "filter_ms": ("/filter: decode, judge, encode", "#2f7d4f"),
    "echo_ms": ("decode and encode all names", "#8a8a8a"),
    "change_ms": ("one node's change", "#b5651d"),
    "new_need_ms": ("first pod of a new need", "#5b5bd6"),
    "rebuild_ms": ("whole fleet anew", "#c2255c"),
}


def built(nodes: int) -> tuple[Fleet, tuple[NodeName, ...], tuple[str, ...]]:
    """The bench's fleet as a value, its names, and its half-placed gangs."""
    made = synthetic(nodes)
    found: dict[NodeName, Node] = {}
    held: dict[NodeName, list[Allocation]] = {}
    for document in made.documents():
        value = document.value
        if isinstance(value, Node):
            found[value.name] = value
        elif isinstance(value, Allocation):
            held.setdefault(value.node, []).append(value)
    return (
        Fleet(
            generation=1,
            now_s=NOW_S,
            nodes=found,
            seen_s=dict.fromkeys(found, NOW_S),
            allocations={name: tuple(them) for name, them in held.items()},
            gangs={},
            overrides={},
            breakers={},
        ),
        made.names,
        made.gangs,
    )


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """The median of `repeats` calls."""
    took = []
    for _ in range(repeats):
        started_s = time.perf_counter()
        call()
        took.append((time.perf_counter() - started_s) * 1000)
    return round(statistics.median(took), 4)


def measured(nodes: int, repeats: int) -> dict[str, float]:
    """The figures of one size."""
    fleet, names, gangs = built(nodes)
    board = Board(DEFAULT, time.monotonic, 300.0)
    board.publish(fleet, None)
    judge = Judge(WebhookConfig(mode=Mode.ENFORCE), board, GangRules())
    pods = itertools.cycle(list(itertools.islice(bodies(names, gangs), 16)))

    def answer() -> bytes:
        request = scheduler.decode_nodes(next(pods))
        decision = judge.filter(request, asks.ask_of(request.pod, DEFAULT))
        return scheduler.encode_filter(
            request, passed=list(decision.passed), failed={}, unresolvable={}
        )

    def echo() -> bytes:
        request = scheduler.decode_nodes(next(pods))
        return scheduler.encode_filter(request, passed=request.names, failed={}, unresolvable={})

    answer()
    view = board.latest()
    assert view is not None
    need = next(iter(view.rankings))
    few = max(3, repeats // 20)
    changed = itertools.cycle(names[:: max(1, nodes // 50)])
    return {
        "nodes": nodes,
        "filter_ms": median_ms(answer, repeats),
        "echo_ms": median_ms(echo, repeats),
        "change_ms": median_ms(lambda: board.publish(fleet, {next(changed)}), repeats),
        "new_need_ms": median_ms(lambda: picture.ranking_of(view.picture, need), few),
        "rebuild_ms": median_ms(lambda: picture.picture(fleet, DEFAULT), few),
    }


def drawn(rows: Sequence[dict[str, float]]) -> str:
    """The figures as lines on logarithmic axes; readable in light and dark."""
    left, top, width, height = 80, 20, 520, 300
    values = [row[key] for row in rows for key in SERIES]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(rows[0]["nodes"]), math.log10(rows[-1]["nodes"])

    def at(nodes: float, value: float) -> tuple[float, float]:
        x = left + width * (math.log10(nodes) - first) / (last - first)
        y = top + height * (1 - (math.log10(value) - low) / (high - low))
        return round(x, 1), round(y, 1)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 380" font-family="sans-serif" font-size="13">',
        "<title>Milliseconds by number of nodes</title>",
        "<desc>Both axes are logarithmic. A request grows as decoding its names does; a node's change costs less than that.</desc>",
        (
            "<style>text{fill:#57606a}.grid{stroke:#8886;stroke-width:.5}"
            "@media (prefers-color-scheme: dark){text{fill:#9aa4af}}</style>"
        ),
    ]
    for power in range(low, high + 1):
        _, y = at(rows[0]["nodes"], 10.0**power)
        parts.append(f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{10.0**power:g} ms</text>'
        )
    for row in rows:
        x, _ = at(row["nodes"], 10.0**low)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{top}" y2="{top + height}"/>')
        parts.append(
            f'<text x="{x}" y="{top + height + 18}" text-anchor="middle">{row["nodes"]:,.0f}</text>'
        )
    parts.append(
        f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">nodes of 8 GPUs</text>'
    )
    ends = []
    for key, (label, colour) in SERIES.items():
        points = [at(row["nodes"], row[key]) for row in rows]
        path = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        ends.append((points[-1][1], label, colour))
    free_y = 0.0
    for y, label, colour in sorted(ends):
        free_y = max(y, free_y + 16)  # labels of lines that end together stand one below another
        x = left + width + 8
        parts.append(f'<text x="{x}" y="{free_y + 4}" style="fill:{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Measure every size, print one line, and draw it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--draw", action="store_true", help="write docs/growth.svg")
    options = parser.parse_args()
    rows = [measured(nodes, options.repeats) for nodes in SIZES]
    if options.draw:
        PICTURE.write_text(drawn(rows), encoding="utf-8")
    print(json.dumps({"bench": "growth", "rows": rows}))


if __name__ == "__main__":
    main()
