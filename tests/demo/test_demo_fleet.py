"""The machines of the demo."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.demo.fleet import PRODUCTS, Machine, fleet, machine
from extender.demo.readings import healthy
from scoring import topology
from scoring.rings import islands, mask_of, ring
from scoring.signals.catalogue import Signal

H100, A100, V100, L40S = (machine(product, 0) for product in PRODUCTS)


@given(st.integers(1, 300))
def test_a_fleet_has_the_size_that_was_asked_for_and_unique_names(nodes: int) -> None:
    """Shares are rounded, never lost, and no node or GPU occurs twice."""
    machines = fleet(nodes)
    assert len({each.name for each in machines}) == nodes
    uuids = Counter(uuid for each in machines for uuid in each.uuids)
    assert set(uuids.values()) == {1}


@given(st.integers(1, 200))
def test_a_larger_fleet_has_no_fewer_of_any_product_but_for_rounding(nodes: int) -> None:
    """Each product has its share within one node."""
    counts = Counter(each.product.key for each in fleet(nodes))
    for product in PRODUCTS:
        assert abs(counts[product.key] - nodes * product.share / 12) < 1


def test_the_default_fleet_is_mixed() -> None:
    """48 nodes hold all four products."""
    counts = Counter(each.product.key for each in fleet(48))
    assert counts == {"h100": 20, "a100": 12, "v100": 8, "l40s": 8}


@pytest.mark.parametrize(
    ("wired", "gbps"), [(H100, 370.8), (A100, 240.0), (V100, 40.0), (L40S, 10.0)]
)
def test_the_ring_through_a_whole_node_has_the_speed_of_the_product(
    wired: Machine, gbps: float
) -> None:
    """NVSwitch, cube mesh and PCIe differ by what a ring through all GPUs waits for."""
    everything = mask_of(range(wired.product.gpus))
    assert ring(wired.links(), everything).gbps == pytest.approx(gbps)


def test_a_gpu_whose_links_are_cut_is_an_island_of_its_own() -> None:
    """What is left to it is PCIe."""
    assert islands(H100.links(frozenset({3}))) == (0b11110111, 0b1000)


def test_a_healthy_gpu_reports_the_links_that_its_model_is_expected_to_have() -> None:
    """Else a machine as delivered would have links down."""
    for wired in (H100, A100, V100):
        reported = {healthy(wired, gpu)[Signal.NVLINKS_ACTIVE] for gpu in range(8)}
        assert reported == {wired.product.nvlinks}


def test_nodes_of_a_rack_share_it_and_a_clique_where_nvlink_goes_on() -> None:
    """Four nodes are a rack; only H100 racks are one NVLink domain."""
    racks = [each.labels["topology.gke.io/rack"] for each in fleet(48)]
    assert max(Counter(racks).values()) == 4
    assert all(one <= other or one[:4] != other[:4] for one, other in pairwise(racks))
    label = topology.CLIQUE_LABEL
    assert H100.labels[label] == machine(PRODUCTS[0], 3).labels[label]
    assert H100.labels[label] != machine(PRODUCTS[0], 4).labels[label]
    assert label not in A100.labels
