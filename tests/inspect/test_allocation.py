"""`surefoot inspect allocation`: its answers, and what it refuses to answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from extender.cli.inspect import command
from extender.inspect.allocation import render, report

PAIRS: dict[str, Any] = {
    "pci": [
        ["X", "NODE", "SYS", "SYS"],
        ["NODE", "X", "SYS", "SYS"],
        ["SYS", "SYS", "X", "NODE"],
        ["SYS", "SYS", "NODE", "X"],
    ],
    "nvlink": [[0, 0, 4, 0], [0, 0, 0, 4], [4, 0, 0, 0], [0, 4, 0, 0]],
    "available": [0, 1, 2, 3],
    "size": 2,
}


def _flat(gpus: int, size: int) -> dict[str, Any]:
    return {
        "pci": [["X" if i == j else "SYS" for j in range(gpus)] for i in range(gpus)],
        "nvlink": [[0] * gpus for _ in range(gpus)],
        "available": list(range(gpus)),
        "size": size,
    }


def _answer(**changes: Any) -> dict[str, Any] | None:
    return report(json.dumps(PAIRS | changes).encode())


def test_the_answer_lists_every_set() -> None:
    """Sets of positions, ascending, and whether the plugin may fail."""
    assert _answer() == {"possible": [[0, 2], [1, 3]], "may_fail": False, "mode": "nvidia"}
    assert _answer(available=[3, 0, 1]) == {
        "possible": [[1, 3]],
        "may_fail": False,
        "mode": "nvidia",
    }


def test_a_nil_device_is_a_failure_to_come() -> None:
    """A lone pair that is left over may win with a nil device."""
    lone = _flat(5, 3)
    lone["nvlink"][2][3] = lone["nvlink"][3][2] = 12
    answer = report(json.dumps(lone).encode())
    assert answer is not None
    assert answer["may_fail"] is True
    assert answer["possible"] == [[0, 2, 3], [1, 2, 3], [2, 3, 4]]
    assert "nil device" in render(answer)


def test_beyond_the_bound_the_answer_is_unknown() -> None:
    """Nulls and the mode say that any set may come."""
    answer = report(json.dumps(_flat(16, 4)).encode())
    assert answer == {"possible": None, "may_fail": None, "mode": "unknown"}
    assert render(answer).startswith("unknown")


def test_more_than_there_are_have_no_set() -> None:
    """A fair question with an empty answer."""
    answer = _answer(size=5)
    assert answer == {"possible": [], "may_fail": False, "mode": "nvidia"}
    assert render(answer).startswith("no set")


def test_people_are_told_what_the_sets_are() -> None:
    """A heading with their number, then a set a line."""
    answer = _answer(size=2)
    assert answer is not None
    first, *sets = render(answer).splitlines()
    assert first == f"{len(sets)} sets of GPUs, one of which may be handed out:"
    assert len(sets) > 1
    assert sets == [f"  {' '.join(map(str, each))}" for each in answer["possible"]]
    whole = _answer(size=4)
    assert whole is not None
    assert render(whole).splitlines() == ["one set of GPUs may be handed out:", "  0 1 2 3"]


def test_the_old_word_for_sys_is_read() -> None:
    """Old drivers print SOC."""
    assert report(json.dumps(PAIRS).replace("SYS", "SOC").encode()) == _answer()


def test_the_diagonal_is_not_looked_at() -> None:
    """A GPU has no link to itself, whatever stands there."""
    odd = [[7 if i == j else cell for j, cell in enumerate(r)] for i, r in enumerate(PAIRS["pci"])]
    assert _answer(pci=odd) == _answer()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"size": 0}, "size: not a number"),
        ({"size": True}, "size: not a number"),
        ({"size": 2.0}, "size: not a number"),
        ({"size": None}, "size: not a number"),
        ({"available": None}, "available: not a list"),
        ({"available": [0, 4]}, "available: positions must be 0 to 3"),
        ({"available": [-1]}, "available: positions must be 0 to 3"),
        ({"available": [1, 1]}, "available: a position is listed twice"),
        ({"pci": []}, "pci: not a matrix"),
        ({"pci": PAIRS["pci"][:3]}, "pci[0]: not a row of 3"),
        ({"pci": [["X"]]}, "pci has 1 GPUs, nvlink 4"),
        ({"pci": [["X", "NV4"], ["NV4", "X"]]}, "pci[0][1]: not understood: NV4"),
        ({"pci": [["X", []], ["SYS", "X"]]}, "pci[0][1]: not understood: []"),
        ({"pci": [["X", "SYS"], ["PIX", "X"]]}, "pci: the two directions of GPUs 0 and 1 differ"),
        ({"nvlink": [[0, -1], [-1, 0]]}, "nvlink[0][1]: not understood: -1"),
        ({"nvlink": [[0, 4], [3, 0]]}, "nvlink: the two directions of GPUs 0 and 1 differ"),
        ({"nvlink": "none"}, "nvlink: not a matrix"),
        (_flat(73, 1), "pci: not a matrix of 1 to 72 GPUs"),
    ],
)
def test_what_is_no_question_is_refused_with_a_reason(
    changes: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No answer, and one sentence that says where and why."""
    assert _answer(**changes) is None
    assert why in caplog.messages[0]


@pytest.mark.parametrize("data", [b"", b"GPU0 GPU1", b"[]", b"\xff\xfe\x00", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    """Whatever comes, there is no traceback."""
    assert report(data) is None


def test_the_command_answers_in_json() -> None:
    """From standard input, exit code 0; nothing usable is 3."""
    asked = CliRunner().invoke(command, ["allocation", "-", "--json"], input=json.dumps(PAIRS))
    assert (asked.exit_code, json.loads(asked.output)["possible"]) == (0, [[0, 2], [1, 3]])
    assert CliRunner().invoke(command, ["allocation", "-"], input="{}").exit_code == 3
