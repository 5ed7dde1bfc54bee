"""The laws that every verdict and every rank keep, over random fleets."""

from __future__ import annotations

from dataclasses import replace

import strategies as own
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100
from verdicts import holding, rank_of

from scoring import picture, rank, ranking
from scoring.candidate import candidate
from scoring.health.staleness import Freshness
from scoring.model import AllocationMode, Cause, Fleet, Health, Need, Node, NodeName, WorkClass
from scoring.policy import DEFAULT
from scoring.verdict import judge


def _verdict(fleet: Fleet, node: Node, need: Need) -> tuple[bool, float]:
    """Whether the pod may go there, and the rank (-1 where it may not)."""
    ready = candidate(fleet, node, DEFAULT)
    judged = judge(ready, need, DEFAULT)
    if not judged.fits:
        return False, -1.0
    return True, rank.rank(rank.parts(ready, need, judged, DEFAULT), DEFAULT)


def _with_cause(node: Node, position: int, cause: Cause) -> Node:
    gpu = node.gpus[position]
    worse = replace(gpu, causes=(*gpu.causes, cause))
    return replace(node, gpus=(*node.gpus[:position], worse, *node.gpus[position + 1 :]))


@given(fleet=own.fleets(), need=own.needs(), seed=st.randoms(use_true_random=False))
def test_the_order_of_names_never_matters(fleet: Fleet, need: Need, seed: st.DataObject) -> None:
    """The best nodes and every verdict are the same in whatever order nodes are given."""
    names = list(fleet.nodes)
    shuffled = list(names)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    other = replace(fleet, nodes={name: fleet.nodes[name] for name in shuffled})
    one = picture.ranking_of(picture.picture(fleet, DEFAULT), need)
    two = picture.ranking_of(picture.picture(other, DEFAULT), need)
    assert one.order == two.order
    assert one.vetoes == two.vetoes
    assert one.first(set(names), 2) == two.first(set(shuffled), 2)


@given(fleet=own.fleets(most_nodes=1), need=own.needs(), cause=own.CAUSES, at=st.integers(0, 5))
def test_adding_a_cause_never_improves_a_verdict(
    fleet: Fleet, need: Need, cause: Cause, at: int
) -> None:
    """A node that refuses a pod still refuses it with one more cause open."""
    (node,) = fleet.nodes.values()
    worse = _with_cause(node, at % len(node.gpus), cause)
    fits, _ = _verdict(fleet, node, need)
    fits_then, _ = _verdict(fleet, worse, need)
    assert fits or not fits_then


@given(fleet=own.fleets(most_nodes=1), need=own.needs(), cause=own.CAUSES, at=st.integers(0, 5))
def test_worsening_a_gpu_of_the_set_never_raises_a_rank(
    fleet: Fleet, need: Need, cause: Cause, at: int
) -> None:
    """A further cause on a GPU that may be handed out never lifts the node."""
    (node,) = fleet.nodes.values()
    ready = candidate(fleet, node, DEFAULT)
    position = at % len(node.gpus)
    if not judge(ready, need, DEFAULT).reach >> position & 1:
        return
    _, before = _verdict(fleet, node, need)
    _, after = _verdict(fleet, _with_cause(node, position, cause), need)
    assert after <= before + 1e-12


@given(fleet=own.fleets(most_nodes=1), need=own.needs(), age_s=st.floats(0, 10_000))
def test_growing_older_never_improves_a_verdict_or_a_rank(
    fleet: Fleet, need: Need, age_s: float
) -> None:
    """Silence never makes a node fit, and never lifts it."""
    (node,) = fleet.nodes.values()
    fits, before = _verdict(fleet, node, need)
    fits_then, after = _verdict(replace(fleet, now_s=fleet.now_s + age_s), node, need)
    assert fits or not fits_then
    assert after <= before + 1e-12


@given(fleet=own.fleets(), need=own.needs())
def test_a_gang_is_never_given_what_a_single_pod_is_refused(fleet: Fleet, need: Need) -> None:
    """Without the user's own word, the policy for gangs is the stricter one, GPU by GPU."""
    gang = replace(need, work=WorkClass.GANG, allow=frozenset(), deny=frozenset())
    single = replace(gang, work=WorkClass.SINGLE)
    for node in fleet.nodes.values():
        if _verdict(fleet, node, gang)[0]:
            assert _verdict(fleet, node, single)[0]


@given(node=own.nodes(), need=own.needs())
def test_no_sample_is_never_health(node: Node, need: Need) -> None:
    """A node that was never seen takes no gang, and ranks below what it would if it were seen."""
    unseen = own.fleet(node, seen_s={})
    fits, after = _verdict(unseen, node, need)
    if need.work is WorkClass.GANG:
        assert not fits
    assert after <= _verdict(own.fleet(node), node, need)[1] + 1e-12


@given(fleet=own.fleets(), need=own.needs(), data=st.data())
def test_a_ranking_changed_in_steps_equals_one_made_anew(
    fleet: Fleet, need: Need, data: st.DataObject
) -> None:
    """Following changes node by node ends where a fresh look would."""
    old = picture.picture(fleet, DEFAULT)
    kept = picture.ranking_of(old, need)
    name = data.draw(st.sampled_from(sorted(fleet.nodes)))
    nodes = dict(fleet.nodes)
    if data.draw(st.booleans()):
        nodes[name] = data.draw(own.nodes(name))
    else:
        del nodes[name]
    nodes[NodeName("node-new")] = data.draw(own.nodes("node-new"))
    now = replace(fleet, nodes=nodes, generation=2)
    names = {name, NodeName("node-new")}
    fresh = picture.advanced(old, now, names)
    kept = ranking.changed(kept, fresh.candidates, names, DEFAULT)
    anew = picture.ranking_of(picture.picture(now, DEFAULT), need)
    assert (kept.order, kept.ranks, kept.vetoes) == (anew.order, anew.ranks, anew.vetoes)
    assert fresh == picture.picture(now, DEFAULT)


@given(fleet=own.fleets(), later_s=st.floats(0, 1_000), data=st.data())
def test_what_time_changes_is_found_without_a_look_at_every_node(
    fleet: Fleet, later_s: float, data: st.DataObject
) -> None:
    """Nodes whose telemetry grew too old, or that were silent and are heard again."""
    old = picture.picture(fleet, DEFAULT)
    heard = data.draw(st.sets(st.sampled_from(sorted(fleet.nodes))))
    now_s = fleet.now_s + later_s
    seen_s = {**fleet.seen_s, **dict.fromkeys(heard, now_s)}
    later = replace(fleet, now_s=now_s, seen_s=seen_s)
    assert picture.due(old, later) == {
        name
        for name, each in old.candidates.items()
        if each.changes_at_s <= now_s or (each.freshness is not Freshness.FRESH and name in heard)
    }


@given(fleet=own.fleets(), need=own.needs())
def test_a_rank_is_between_zero_and_one(fleet: Fleet, need: Need) -> None:
    """Whatever the node, the rank is a ratio."""
    found = picture.ranking_of(picture.picture(fleet, DEFAULT), need)
    assert all(-1e-12 <= value <= 1 + 1e-12 for value in found.ranks.values())
    assert found.ranks.keys().isdisjoint(found.vetoes)
    assert found.ranks.keys() | found.vetoes.keys() == fleet.nodes.keys()


@given(count=st.integers(1, 8), held=st.sets(st.integers(0, 7)), named=st.booleans())
def test_free_gpus_come_before_those_of_others(count: int, held: set[int], named: bool) -> None:
    """A native gang that preempts is offered every node as if its victims were gone: those that
    have room come first, whatever it breaks of them.
    """
    node, need = dgx_h100(), Need(work=WorkClass.GANG, count=count)
    full = rank_of(node, need, holding(node, *range(8), named=named))
    value = rank_of(node, need, holding(node, *held, named=named))
    assert value > full if count <= 8 - len(held) else value == full


@given(node=own.nodes(), need=own.needs(), state=st.sampled_from(list(Health)))
def test_a_state_is_allowed_only_if_every_open_cause_is(
    node: Node, need: Need, state: Health
) -> None:
    """In mode `unknown` a node fits only if each state of each GPU that may come is accepted."""
    node = replace(node, mode=AllocationMode.UNKNOWN)
    node = _with_cause(node, 0, Cause(id="made.up", state=state))
    fleet = own.fleet(node)
    ready = candidate(fleet, node, DEFAULT)
    judged = judge(ready, need, DEFAULT)
    if judged.fits and judged.reach & 1:
        alone = _with_cause(
            replace(node, gpus=(replace(node.gpus[0], causes=()),)),
            0,
            Cause(id="made.up", state=state),
        )
        alone = replace(alone, links=type(node.links)((("X",),), ((0.0,),)))
        one = replace(need, count=1)
        assert _verdict(own.fleet(alone), alone, one)[0]
