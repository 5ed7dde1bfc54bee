"""docs/reasons.md: every reason for which a node is refused."""

from __future__ import annotations

from typing import Final

from extender.reference.markdown import HEAD, table
from scoring.reasons import Reason

_INTRODUCTION: Final = """\
# Reasons

Why a node is refused. kube-scheduler prints the text in the pod's event and counts equal texts, so a
text names no node, no GPU and no number; `surefoot explain` has the evidence.

*Evicting cures it* says how kube-scheduler is told: `yes` in `FailedNodes`, so that preemption may
try the node; `no` in `FailedAndUnresolvableNodes`, so that no pod is evicted in vain.

The name in the first column is what metrics, decision records and explanations carry.
"""


def page() -> str:
    """The page of every reason."""
    rows = (
        (f"`{each.value}`", each.text, "no" if each.unresolvable else "yes", each.advice)
        for each in Reason
    )
    heads = ("Reason", "Text in the event", "Evicting cures it", "What to do")
    return f"{HEAD}{_INTRODUCTION}\n{table(heads, rows)}"
