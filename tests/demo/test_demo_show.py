"""What the demo shows on terminals of several widths."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from extender.demo.decisions import Explained
from extender.demo.show import NARROW, Screen
from extender.demo.tally import Glance
from scoring.model import NodeName

BUSY = Glance(
    time_s=52_320.0,
    gangs_started=120,
    gangs_on_degraded=12,
    waiting=12,
    utilisation_ratio=0.87,
    gpu_hours_lost=1050.0,
)
FIGURES = "14:32 120 gangs, 12 on bad GPUs, 12 waiting, 87% used, 1050 GPU h lost"
ADVICE = "Wait until the node has drained, then reset the GPU, and look at its log afterwards; now."
TOLD: dict[str, Any] = {
    "verdict": "veto",
    "text": "a GPU that the pod may get needs a reset",
    "advice": ADVICE,
    "evidence": [{"gpu": "GPU-0", "cause": "xid.48", "value": "double-bit error", "age_s": 5191.0}],
}


def shown(width: int) -> str:
    """The last line that a terminal of this width shows of a busy day."""
    text = io.StringIO()
    screen = Screen(Console(file=text, width=width, force_terminal=True, color_system=None))
    with screen.live():
        watch = screen.watch("without", 86_400.0)
        assert watch is not None
        watch(BUSY)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", text.getvalue())
    return [line for line in re.split(r"[\r\n]+", plain) if line.strip()][-1]


@pytest.mark.parametrize("width", [80, 100, NARROW, 200])
def test_progress_is_one_line_with_every_figure(width: int) -> None:
    """Nothing is cut where a usual terminal ends."""
    assert shown(width).startswith("without ")
    assert shown(width).rstrip().endswith(FIGURES)


def test_the_bar_yields_to_the_figures() -> None:
    """Where there is room for both there is a bar."""
    assert "\u2501" not in shown(NARROW - 1)
    assert "\u2501" in shown(NARROW)


def test_advice_is_wrapped_and_not_cut() -> None:
    """Each of its lines is indented; an age is hours and minutes."""
    text = io.StringIO()
    screen = Screen(Console(file=text, width=60))
    screen._decision(
        Explained(
            time_s=52_320.0, pod="p", gpus=8, node=NodeName("n"), told=TOLD, summary="None fits."
        )
    )
    lines = text.getvalue().splitlines()
    assert all(len(line) <= 60 for line in lines)
    at = next(i for i, line in enumerate(lines) if "what to do: " in line)
    told = [line for line in lines[at:] if "None fits." not in line]
    assert len(told) > 1
    assert all(line.startswith("    ") for line in told)
    assert " ".join(" ".join(told).split()) == f"what to do: {ADVICE}"
    assert any("(1h26m31s ago)" in line for line in lines)
