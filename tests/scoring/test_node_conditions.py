"""What the condition of a node says of its GPUs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100
from pools import fleet_of, of_state, seen
from strategies import NOW_S, fleets

from scoring.candidate import quarantine
from scoring.conditions import LONGEST, NodeCondition, Status, condition
from scoring.model import (
    Cause,
    Fleet,
    Health,
    NodeName,
    Override,
    OverrideVerdict,
    Rejection,
    Scope,
)
from scoring.picture import picture
from scoring.policy import DEFAULT

N0 = NodeName("n0")
XID_48 = Cause(id="xid.48", state=Health.RESET_REQUIRED, evidence="DBE at 0x1f")
MEMORY = Cause(id="remap.pending", state=Health.DEGRADED)


def said(fleet: Fleet) -> NodeCondition | None:
    """The condition of the first node."""
    return condition(seen(fleet), N0)


def word(verdict: OverrideVerdict) -> dict[str, Override]:
    """An operator's, on the node."""
    return {"node/n0": Override(target="node/n0", verdict=verdict, who="ann", why="tests")}


class TestStatus:
    """True, False or Unknown."""

    def test_a_sound_node_is_said_to_be_so(self) -> None:
        """False, with how many GPUs that is about."""
        found = said(fleet_of(of_state("n0")))
        assert found == NodeCondition(
            status=Status.FALSE, reason="GpusHealthy", message="all 8 GPUs are healthy"
        )

    def test_the_worst_cause_gives_the_reason_and_all_are_told(self) -> None:
        """With the GPU, the state and the evidence, the worst first."""
        found = said(fleet_of(dgx_h100(name="n0", causes={2: (MEMORY,), 5: (XID_48,)})))
        assert found is not None
        assert (found.status, found.reason) == (Status.TRUE, "Xid48")
        assert found.message == (
            "GPU 5: RESET_REQUIRED by xid.48 (DBE at 0x1f); GPU 2: DEGRADED by remap.pending"
        )

    @pytest.mark.parametrize(
        ("age_s", "reason"), [(90.0, "TelemetryStale"), (900.0, "TelemetrySilent")]
    )
    def test_silence_is_unknown(self, age_s: float, reason: str) -> None:
        """No data is not health, and no trouble either."""
        for states in ((), (Health.DEGRADED,)):
            found = said(fleet_of(of_state("n0", *states), ages_s={N0: age_s}))
            assert found is not None
            assert (found.status, found.reason) == (Status.UNKNOWN, reason)

    def test_silence_hides_nothing_that_is_worse(self) -> None:
        """A GPU that needs a reset needs it still when its agent is gone."""
        found = said(fleet_of(of_state("n0", Health.RESET_REQUIRED), ages_s={N0: 900.0}))
        assert found is not None
        assert found.status is Status.TRUE

    @pytest.mark.parametrize("state", [Health.NEW, Health.UNMONITORED, Health.UNKNOWN])
    def test_too_little_known_is_unknown(self, state: Health) -> None:
        """A GPU of which nothing is known is no problem yet, and hides none."""
        found = said(fleet_of(of_state("n0", state)))
        assert found is not None
        assert found.status is Status.UNKNOWN
        found = said(fleet_of(of_state("n0", state, Health.SUSPECT)))
        assert found is not None
        assert found.status is Status.TRUE

    def test_a_node_without_a_document_has_none(self) -> None:
        """Nothing is said of nodes that Surefoot does not know, whatever an operator says."""
        assert said(fleet_of()) is None
        assert said(replace(fleet_of(), overrides=word(OverrideVerdict.DENY))) is None

    def test_a_broken_document_is_told(self) -> None:
        """It may say the worst."""
        found = said(replace(fleet_of(), quarantined={quarantine(N0): "gpus: missing"}))
        assert found is not None
        assert (found.status, found.reason) == (Status.UNKNOWN, "DocumentUnreadable")
        assert "gpus: missing" in found.message

    def test_an_operators_word_counts(self) -> None:
        """What is allowed is well, what is denied is not."""
        allowed = replace(
            fleet_of(of_state("n0", Health.FAILED)), overrides=word(OverrideVerdict.ALLOW)
        )
        denied = replace(fleet_of(of_state("n0")), overrides=word(OverrideVerdict.DENY))
        statuses = [found and found.status for found in (said(allowed), said(denied))]
        assert statuses == [Status.FALSE, Status.TRUE]

    def test_a_cause_of_the_node_is_told_once(self) -> None:
        """Not once for each GPU; pods that it rejected are such a cause."""
        rejected = tuple(
            Rejection(node=N0, owner=f"lab/{at % 2}", reason="OutOf", at_s=NOW_S - at)
            for at in range(4)
        )
        fleet = replace(fleet_of(of_state("n0")), rejections={N0: rejected})
        found = said(fleet)
        assert found is not None
        assert found.reason == "PodsRejected"
        assert found.message.startswith("node: SUSPECT by pods.rejected (4 pods of 2 workloads")
        assert ";" not in found.message
        broken = Cause(id="driver", state=Health.REBOOT_REQUIRED, scope=Scope.NODE)
        bare = replace(of_state("n0"), gpus=(), causes=(broken,), expected=None)
        found = said(fleet_of(bare))
        assert found is not None
        assert found.reason == "Driver"


@given(fleet=fleets(), cause=st.text(max_size=40), evidence=st.text(max_size=900))
def test_every_word_is_bounded_and_well_formed(fleet: Fleet, cause: str, evidence: str) -> None:
    """Whatever agents report, reasons are CamelCase and messages short."""
    odd = Cause(id=cause, state=Health.FAILED, evidence=evidence)
    name, node = next(iter(fleet.nodes.items()))
    broken = replace(node, gpus=(replace(node.gpus[0], causes=(odd,)), *node.gpus[1:]))
    fleet = replace(fleet, nodes={**fleet.nodes, name: broken})
    found = picture(fleet, DEFAULT)
    for each in found.names:
        told = condition(found, each)
        assert told is not None
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", told.reason)
        assert len(told.message) <= LONGEST
