"""Verdicts where an operator, time, a breaker or a missing document has the word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machines import dgx_h100
from strategies import NOW_S, fleet
from verdicts import GANG_8, SINGLE_1, cause_of, reason_of, sick

from scoring import explain, picture
from scoring.candidate import candidate
from scoring.gangs.rules import GangRules
from scoring.links import links_of
from scoring.model import (
    Ask,
    Breaker,
    BreakerState,
    Fleet,
    Health,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    PodUid,
    Scope,
)
from scoring.policy import (
    DEFAULT,
    BreakerPolicy,
    GangsUnderOpenBreaker,
    Policy,
)
from scoring.reasons import Reason
from scoring.verdict import judge


class TestOverrides:
    """An operator's word beats telemetry until it runs out."""

    def _with(self, node: Node, *words: Override) -> Fleet:
        return replace(fleet(node), overrides={word.target: word for word in words})

    def _word(
        self, target: str, verdict: OverrideVerdict, until_s: float | None = None
    ) -> Override:
        return Override(target=target, verdict=verdict, who="ada", why="test", until_s=until_s)

    def test_deny_refuses_a_healthy_gpu_and_a_healthy_node(self) -> None:
        """Both targets, every work class."""
        node = dgx_h100()
        for target in (f"gpu/{node.gpus[0].uuid}", f"node/{node.name}"):
            found = self._with(node, self._word(target, OverrideVerdict.DENY))
            assert reason_of(node, SINGLE_1, of=found) is Reason.OVERRIDE_DENIED

    def test_allow_admits_whatever_telemetry_says(self) -> None:
        """Even a lost GPU on a silent node."""
        node = sick(
            dgx_h100(), 0, cause_of(Health.FAILED), cause_of(Health.REBOOT_REQUIRED, name="xid.79")
        )
        found = replace(
            self._with(node, self._word(f"node/{node.name}", OverrideVerdict.ALLOW)), seen_s={}
        )
        assert reason_of(node, GANG_8, of=found) is None

    def test_a_word_on_a_gpu_beats_one_on_its_node(self) -> None:
        """The nearer word counts."""
        node = dgx_h100()
        found = self._with(
            node,
            self._word(f"node/{node.name}", OverrideVerdict.ALLOW),
            self._word(f"gpu/{node.gpus[0].uuid}", OverrideVerdict.DENY),
        )
        assert reason_of(node, GANG_8, of=found) is Reason.OVERRIDE_DENIED

    def test_a_word_that_ran_out_is_silent(self) -> None:
        """`until` is honoured to the second, and the candidate says when it changes."""
        node = dgx_h100()
        word = self._word(f"node/{node.name}", OverrideVerdict.DENY, until_s=NOW_S + 5)
        found = self._with(node, word)
        ready = candidate(found, node, DEFAULT)
        assert judge(ready, SINGLE_1, DEFAULT).reason is Reason.OVERRIDE_DENIED
        assert ready.changes_at_s == NOW_S + 5
        later = replace(found, now_s=NOW_S + 5)
        assert judge(candidate(later, node, DEFAULT), SINGLE_1, DEFAULT).reason is None


class TestStaleness:
    """Invariant 2: no data is not health."""

    def _aged(self, node: Node, age_s: float | None) -> Fleet:
        return fleet(node, seen_s={} if age_s is None else {node.name: NOW_S - age_s})

    @pytest.mark.parametrize(
        ("age_s", "gang", "single_fits"),
        [
            (59.0, None, True),
            (60.0, Reason.NODE_STALE, True),
            (599.0, Reason.NODE_STALE, True),
            (600.0, Reason.NODE_SILENT, True),
            (None, Reason.NODE_SILENT, True),
        ],
    )
    def test_invariant_2_an_old_sample_takes_no_gang(
        self, age_s: float | None, gang: Reason | None, single_fits: bool
    ) -> None:
        """Stale from 60 s, UNKNOWN from 10 minutes; single pods may come, last."""
        node = dgx_h100()
        assert reason_of(node, GANG_8, of=self._aged(node, age_s)) is gang
        assert (reason_of(node, SINGLE_1, of=self._aged(node, age_s)) is None) is single_fits

    def test_invariant_2_unknown_never_improves_a_worse_verdict(self) -> None:
        """FAILED, then silence, stays FAILED."""
        node = sick(dgx_h100(), 0, cause_of(Health.FAILED))
        assert reason_of(node, SINGLE_1, of=self._aged(node, 5_000.0)) is Reason.GPU_FAILED

    def test_a_single_pod_that_denies_unknown_gets_no_stale_node(self) -> None:
        """`deny: UNKNOWN` covers what has no current data."""
        node = dgx_h100()
        wary = replace(SINGLE_1, deny=frozenset({Health.UNKNOWN}))
        assert reason_of(node, wary, of=self._aged(node, 90.0)) is Reason.NODE_STALE


class TestBreakers:
    """A pool's breaker, as it stands in the cache."""

    def _pool(self, node: Node, state: BreakerState, until_s: float | None = None) -> Node:
        del state, until_s
        return replace(node, labels={DEFAULT.pool_label: "H100"})

    def _with(
        self, node: Node, state: BreakerState, until_s: float | None, age_s: float = 1.0
    ) -> Fleet:
        found = fleet(node, seen_s={node.name: NOW_S - age_s})
        return replace(found, breakers={"H100": Breaker(pool="H100", state=state, until_s=until_s)})

    def test_an_open_breaker_lets_single_pods_use_softly_excluded_gpus(self) -> None:
        """NEW and PROBATION are admitted, what does not work is not, and gangs never are."""
        node = replace(
            sick(dgx_h100(), 0, cause_of(Health.NEW)), labels={DEFAULT.pool_label: "H100"}
        )
        found = self._with(node, BreakerState.OPEN, None)
        assert reason_of(node, SINGLE_1, of=found) is None
        assert reason_of(node, GANG_8, of=found) is Reason.GPU_NEW
        dead = sick(node, 0, cause_of(Health.FAILED))
        assert (
            reason_of(dead, SINGLE_1, of=self._with(dead, BreakerState.OPEN, None))
            is Reason.GPU_FAILED
        )

    def test_a_site_may_admit_gangs_under_an_open_breaker(self) -> None:
        """Policy `breaker.gangs: admit`."""
        node = replace(
            sick(dgx_h100(), 0, cause_of(Health.DEGRADED)), labels={DEFAULT.pool_label: "H100"}
        )
        admit = Policy(breaker=BreakerPolicy(gangs=GangsUnderOpenBreaker.ADMIT))
        assert (
            reason_of(node, GANG_8, of=self._with(node, BreakerState.OPEN, None), policy=admit)
            is None
        )

    def test_a_frozen_pool_stays_fresh_until_the_freeze_ends(self) -> None:
        """A silence of the telemetry does not drain the pool, and then it counts."""
        node = replace(dgx_h100(), labels={DEFAULT.pool_label: "H100"})
        found = self._with(node, BreakerState.FROZEN, NOW_S + 300, age_s=320)
        assert reason_of(node, GANG_8, of=found) is None
        ended = replace(found, now_s=NOW_S + 300)
        assert reason_of(node, GANG_8, of=ended) is Reason.NODE_SILENT

    def test_a_freeze_does_not_revive_a_node_that_was_silent_before(self) -> None:
        """Only what was fresh when the freeze began is kept."""
        node = replace(dgx_h100(), labels={DEFAULT.pool_label: "H100"})
        found = self._with(node, BreakerState.FROZEN, NOW_S + 300, age_s=3_000)
        assert reason_of(node, GANG_8, of=found) is Reason.NODE_SILENT


class TestUnreadable:
    """A document that cannot be read may say the worst."""

    def test_invariant_2_a_quarantined_node_takes_no_pod_at_all(self) -> None:
        """Not even where nodes without a document would pass: nobody knows what it says."""
        name = NodeName("broken")
        seen = picture.picture(
            replace(fleet(dgx_h100()), quarantined={f"Node/{name}": "gpus: missing"}), DEFAULT
        )
        for need in (GANG_8, SINGLE_1):
            assert picture.ranking_of(seen, need).vetoes[name] is Reason.NODE_UNREADABLE
        ask = Ask(namespace="d", name="p", uid=PodUid("u"), need=SINGLE_1)
        (told,) = explain.account(seen, ask, [name], None, 1, GangRules()).nodes
        assert told.reason is Reason.NODE_UNREADABLE
        assert told.evidence[0].value == "gpus: missing"

    def test_a_repaired_document_is_judged_again(self) -> None:
        """The next good document ends the quarantine."""
        node = dgx_h100(name="broken")
        broken = replace(fleet(), quarantined={"Node/broken": "junk"})
        old = picture.picture(broken, DEFAULT)
        new = picture.advanced(old, fleet(node), {node.name})
        assert picture.ranking_of(new, GANG_8).vetoes == {}


class TestWithoutGpus:
    """Nodes that show no GPU, or no document, of which something is known all the same."""

    def _seen(self, *words: Override, node: Node | None = None) -> picture.Picture:
        found = fleet(*((node,) if node else ()))
        return picture.picture(
            replace(found, overrides={word.target: word for word in words}), DEFAULT
        )

    def _word(self, verdict: OverrideVerdict, until_s: float | None = None) -> Override:
        return Override(target="node/bare", verdict=verdict, who="a", why="b", until_s=until_s)

    def test_a_denied_node_is_refused_even_without_a_document(self) -> None:
        """An operator's word needs no telemetry, and ends when it says."""
        seen = self._seen(self._word(OverrideVerdict.DENY, NOW_S + 5))
        bare = NodeName("bare")
        assert picture.ranking_of(seen, SINGLE_1).vetoes == {bare: Reason.OVERRIDE_DENIED}
        later = replace(seen.fleet, now_s=NOW_S + 6)
        assert picture.due(seen, later) == {bare}
        assert picture.advanced(seen, later, {bare}).candidates == {}

    def test_a_node_with_no_gpu_is_judged_by_its_own_causes(self) -> None:
        """A failed node that lists no GPU any more is no better for that."""
        bare = replace(
            dgx_h100(name="bare", node_causes=(cause_of(Health.FAILED, Scope.NODE),)),
            gpus=(),
            links=links_of((), {}),
        )
        assert reason_of(bare, SINGLE_1) is Reason.GPU_FAILED
        denied = self._seen(self._word(OverrideVerdict.DENY), node=replace(bare, causes=()))
        assert picture.ranking_of(denied, SINGLE_1).vetoes[bare.name] is Reason.OVERRIDE_DENIED
        assert reason_of(replace(bare, causes=()), GANG_8) is Reason.FEWER_GPUS


def test_a_stamp_that_is_taken_back_is_noticed() -> None:
    """A node whose last sample turns out older, or is gone, is judged again at once."""
    nodes = [dgx_h100(name=name) for name in ("older", "gone", "same")]
    seen = picture.picture(fleet(*nodes), DEFAULT)
    stamps = {NodeName("older"): NOW_S - 300, NodeName("same"): NOW_S - 1}
    assert picture.due(seen, replace(seen.fleet, seen_s=stamps)) == {"older", "gone"}
