"""GPUs that lost NVLink, fabrics that are not usable, and the domains of a node."""

from __future__ import annotations

from dataclasses import replace

import pytest
import strategies as own
from hypothesis import given
from hypothesis import strategies as st
from machines import (
    CUBE_MESH,
    a100_pcie_pairs,
    b200_with_gpu_off_fabric,
    dgx1v,
    dgx_h100,
    hgx_a100,
    machine,
    nvl72_tray,
    pcie_l40s4,
)

from scoring.links import Links, links_of
from scoring.model import Fabric, Health, Node, NodeName, Scope
from scoring.rings import full_mask
from scoring.topology import (
    CLIQUE_LABEL,
    Level,
    clique,
    domains,
    domains_of_unknown,
    fabric_problems,
    missing_links,
    step_ratio,
)

# --- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "node", [dgx_h100(), hgx_a100(), dgx1v(), pcie_l40s4(), a100_pcie_pairs(), nvl72_tray()]
)
def test_healthy_wiring_has_no_missing_links(node: Node) -> None:
    """Switch, cube mesh, bridges and no NVLink at all are regular."""
    assert missing_links(node.links) == {}


def _ids(links: Links, models: tuple[str | None, ...] = ()) -> dict[int, str]:
    return {at: cause.id for at, causes in missing_links(links, models).items() for cause in causes}


def test_a_gpu_off_the_fabric_is_told() -> None:
    """One of eight without NVLink: that one, and no other, with a cause that only peers mind."""
    found = missing_links(b200_with_gpu_off_fabric(off=5).links)
    assert set(found) == {5}
    (cause,) = found[5]
    assert (cause.id, cause.state, cause.scope) == ("nvlink.missing", Health.DEGRADED, Scope.LINK)


def test_a_weak_bridge_is_told_on_both_ends() -> None:
    """NV3 where the other pairs have NV4: either card may be at fault."""
    links = machine("RTX A6000", 8, lambda i, j: _bridge(i, j, weak=2, count=3)).links
    assert _ids(links) == {4: "nvlink.fewer", 5: "nvlink.fewer"}


def test_a_lost_bridge_is_told_where_most_have_one() -> None:
    """Three of four pairs bridged is a fault; one of two may be all there is."""
    lost = machine("RTX A6000", 8, lambda i, j: _bridge(i, j, weak=2, count=0)).links
    assert _ids(lost) == {4: "nvlink.missing", 5: "nvlink.missing"}
    half = machine("RTX A6000", 4, lambda i, j: _bridge(i, j, weak=1, count=0)).links
    assert _ids(half) == {}


def _bridge(i: int, j: int, *, weak: int, count: int) -> str:
    """Cards bridged in pairs, of which pair number `weak` has `count` links."""
    if i // 2 != j // 2:
        return "SYS"
    links = count if i // 2 == weak else 4
    return f"NV{links}" if links else "NODE"


def test_fewer_links_through_a_switch_are_told_on_one_end() -> None:
    """A GPU with 16 of 18 links shows NV16 to all: the others lack links only to it."""
    links = machine("H200", 8, lambda i, j: "NV16" if 3 in (i, j) else "NV18").links
    assert _ids(links) == {3: "nvlink.fewer"}


def test_a_dead_gpu_of_a_cube_mesh_takes_the_blame_alone() -> None:
    """Its neighbours lack links too, but only those to it."""
    links = machine(
        "V100",
        8,
        lambda i, j: f"NV{CUBE_MESH[i, j]}" if (i, j) in CUBE_MESH and 3 not in (i, j) else "SYS",
    ).links
    assert _ids(links) == {3: "nvlink.missing"}


def test_other_models_are_not_peers() -> None:
    """A display card beside meshed GPUs lacks nothing."""
    links = machine("A100", 5, lambda _i, j: "SYS" if j == 4 else "NV4").links
    assert _ids(links) == {4: "nvlink.missing"}
    assert _ids(links, ("A100", "A100", "A100", "A100", "T400")) == {}


@given(st.integers(2, 6), st.data())
def test_missing_links_do_not_depend_on_numbering(count: int, data: st.DataObject) -> None:
    """The same GPUs are told, whatever their positions."""
    links = data.draw(own.links(count))
    order = data.draw(st.permutations(range(count)))
    other = links_of(
        range(count),
        {
            (i, j): links.words[order[i]][order[j]]
            for i in range(count)
            for j in range(i + 1, count)
        },
        "H100",
    )
    assert {order[at]: what for at, what in _ids(other).items()} == _ids(links)


# --- fabric --------------------------------------------------------------------------------------

FINE = Fabric(
    state="completed",
    status="success",
    clique_id=3,
    cluster_uuid="0b4f7f0e-1a7b-4b9e-8f55-5d7f1f5d2a01",
    health_mask=0b0001_10_10_10_10,
    health_summary="healthy",
)


def _problems(**changes: object) -> dict[str, Health]:
    found = fabric_problems(replace(FINE, **changes))  # type: ignore[arg-type]
    assert all(cause.scope is Scope.FABRIC and cause.evidence for cause in found)
    return {cause.id: cause.state for cause in found}


def test_a_fine_fabric_has_no_problems() -> None:
    """Nor has one whose mask is not 0 because all is well, nor has none."""
    assert _problems() == {}
    assert _problems(health_mask=0) == {}
    assert _problems(health_mask=None, health_summary=None) == {}
    assert _problems(state="not_supported", health_summary="unhealthy") == {}
    assert _problems(state="Completed", status="Success", health_summary="N/A") == {}
    assert fabric_problems(None) == ()
    assert fabric_problems(Fabric()) == ()


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0b0001_10_10_10_01, {"fabric.degraded_bw": Health.DEGRADED}),
        (0b0001_10_10_01_10, {"fabric.route_recovery": Health.SUSPECT}),
        (0b0001_10_01_10_10, {"fabric.route_unhealthy": Health.DEGRADED}),
        (0b0001_01_10_10_10, {"fabric.access_timeout_recovery": Health.SUSPECT}),
        (0b0101_10_10_10_10, {"fabric.incorrect_configuration": Health.DEGRADED}),
        (0b1111_10_10_10_10, {"fabric.incorrect_configuration": Health.DEGRADED}),
        (0b0000_00_00_00_11, {"fabric.degraded_bw": Health.SUSPECT}),
    ],
)
def test_each_field_of_the_mask_has_its_cause(mask: int, expected: dict[str, Health]) -> None:
    """1 is a fault, 2 is none, 0 is not supported; of the four bits of configuration 1 is fine."""
    assert _problems(health_mask=mask) == expected


@pytest.mark.parametrize("state", ["in_progress", "not_started", "In Progress", "lost"])
def test_a_fabric_that_is_not_completed_is_degraded(state: str) -> None:
    """Not yet and no are both no for a gang; what else was read is not valid then."""
    assert _problems(state=state, status="insufficient_resources") == {
        "fabric.state": Health.DEGRADED
    }


def test_links_up_do_not_make_a_fabric_usable() -> None:
    """Completed, yet an error status or an unhealthy or limited summary: DEGRADED."""
    assert _problems(status="insufficient_resources") == {"fabric.status": Health.DEGRADED}
    for summary in ("unhealthy", "limited"):
        assert _problems(health_summary=summary) == {"fabric.summary": Health.DEGRADED}


# --- domains -------------------------------------------------------------------------------------

UUID = "6f1e3c52-0c1d-4b57-9a55-2f4a0d8e7b10"
ZEROS = "00000000-0000-0000-0000-000000000000"


def _labelled(name: str, labels: dict[str, str]) -> Node:
    return _node(name, None, **labels)


def _node(name: str = "a", /, fabric: Fabric | None = None, **labels: str) -> Node:
    names = {
        "clique": CLIQUE_LABEL,
        "domain": "accelerator.topograph.run/domain",
        "rack": "fabric.topograph.run/tier-0",
        "leaf": "network.topology.nvidia.com/leaf",
        "block": "fabric.topograph.run/tier-1",
        "zone": "topology.kubernetes.io/zone",
    }
    return dgx_h100(
        name=name, fabric=fabric, labels={names[key]: value for key, value in labels.items()}
    )


def test_the_clique_is_the_label_or_the_fabric() -> None:
    """The label wins; without it the fabric's ids make the same name."""
    assert clique(nvl72_tray()) == f"{UUID}.1"
    assert clique(_node(clique=f"{UUID}.7", fabric=nvl72_tray().fabric)) == f"{UUID}.7"
    assert clique(_node()) is None


def shared_level(one: Node, two: Node) -> Level | None:
    """The narrowest level that two nodes share; None: not even a zone."""
    common = set(domains(two))
    return next((domain.level for domain in domains(one) if domain in common), None)


def test_an_all_zero_uuid_is_no_clique() -> None:
    """Machines without a domain report zeros: they share nothing."""
    assert clique(_node(clique=f"{ZEROS}.0")) is None
    assert clique(_node(fabric=Fabric(cluster_uuid=ZEROS, clique_id=0))) is None
    one, two = _node("a", clique=f"{ZEROS}.0"), _node("b", clique=f"{ZEROS}.0")
    assert shared_level(one, two) is None


@pytest.mark.parametrize(
    ("one", "two", "level"),
    [
        ({"clique": "c.1", "zone": "z"}, {"clique": "c.1", "zone": "z"}, Level.CLIQUE),
        ({"domain": "d", "zone": "z"}, {"domain": "d", "zone": "z"}, Level.CLIQUE),
        ({"clique": "c.1", "rack": "r"}, {"clique": "c.2", "rack": "r"}, Level.RACK),
        ({"leaf": "r"}, {"leaf": "r"}, Level.RACK),
        ({"rack": "r"}, {"leaf": "r"}, None),
        ({"rack": "1", "block": "x"}, {"rack": "1", "block": "y"}, None),
        ({"rack": "1", "block": "x"}, {"rack": "2", "block": "x"}, Level.BLOCK),
        ({"rack": "1", "zone": "y"}, {"rack": "1", "zone": "z"}, None),
        ({"zone": "z"}, {"zone": "z"}, Level.ZONE),
        ({}, {}, None),
    ],
)
def test_two_nodes_share_the_narrowest_level(
    one: dict[str, str], two: dict[str, str], level: Level | None
) -> None:
    """Labels of every source count; names that repeat in another zone or block do not."""
    assert shared_level(_labelled("a", one), _labelled("b", two)) is level


LABELS = st.fixed_dictionaries(
    {},
    optional={key: st.sampled_from("12") for key in ("domain", "rack", "block", "zone")},
)


@given(LABELS)
def test_who_shares_a_level_shares_all_wider_ones(labels: dict[str, str]) -> None:
    """Two nodes with the same labels share from their narrowest level up to the zone."""
    a, b = domains(_labelled("a", labels)), domains(_labelled("b", labels))
    shared = [domain.level for domain in a if domain in b]
    assert shared == [domain.level for domain in a][len(a) - len(shared) :]
    assert bool(shared) is bool(labels)


def test_closeness_adds_up_to_one() -> None:
    """A node shares every level with itself; each wider level alone is worth less."""
    mine = domains(_node(clique="c.1", rack="r", block="b", zone="z"))
    assert [domain.level for domain in mine] == list(Level)[1:]
    assert sum(map(step_ratio, mine)) == pytest.approx(1.0)
    assert sum(map(step_ratio, domains_of_unknown(NodeName("gone")))) == pytest.approx(1.0)


def test_a_node_without_labels_shares_with_itself_alone() -> None:
    """The domains of a node known by name only are those of the node itself without labels."""
    node = replace(_node("x"), labels={})
    assert set(domains(node)) == set(domains_of_unknown(node.name))
    assert full_mask(node.links) == 0xFF
