"""Junk at every edge: one clear error or an answer, within a second, never anything else.

`make test` takes a short look; `make fuzz` goes on for a minute with new seeds.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from mutations import damaged

from extender.inspect import kmsg, metrics, pod, topology
from extender.store import documents
from extender.store.errors import DocumentError
from extender.wire import asks, scheduler
from extender.wire.errors import WireError
from scoring.policy import DEFAULT

SLOWEST_MS = 1000
within_a_second = settings(
    deadline=SLOWEST_MS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

POD = {
    "metadata": {
        "name": "trainer-0", "namespace": "ml", "uid": "u-1",
        "labels": {"scheduling.x-k8s.io/pod-group": "trainer", "surefoot.dev/gang": "t"},
        "annotations": {"surefoot.dev/allow": "SUSPECT, nonsense", "pod-group-name": "x"},
    },
    "spec": {
        "priority": 5,
        "schedulerName": "surefoot",
        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "4"}}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"nvidia.com/gpu": 1}}}],
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}],
    },
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
}  # fmt: skip
NAMES = [f"gpu-{i}" for i in range(12)]
VICTIMS = {"Pods": [{"UID": "u-9"}], "NumPDBViolations": 1}
BODIES = [
    json.dumps(body).encode()
    for body in (
        {"Pod": POD, "NodeNames": NAMES, "Nodes": None},
        {"pod": POD, "nodenames": NAMES},
        {"Pod": POD, "Nodes": {"items": [{"metadata": {"name": name}} for name in NAMES]}},
        {"Pod": POD, "NodeNameToMetaVictims": dict.fromkeys(NAMES, VICTIMS)},
        {"Pod": POD, "NodeNameToVictims": {"gpu-1": {"Pods": [{"metadata": {"uid": "u-9"}}]}}},
    )
]
NODE = """
apiVersion: surefoot.dev/v1
kind: Node
metadata: {name: gpu-17, labels: {nvidia.com/gpu.product: H100}}
epoch: 4
seq: 118
expected: 2
fabric: {state: completed, status: success, healthMask: 0}
links: {GPU0-GPU1: NV18}
gpus:
- {uuid: GPU-a, index: 0, pci: "0000:1b:00.0", model: H100, numa: 0, sampledAgo: 3s,
   causes: [{id: xid.79, state: REBOOT_REQUIRED, scope: gpu, firstSeen: 2026-11-29T10:00:00Z, count: 2}]}
- {uuid: GPU-b, index: 1}
---
{apiVersion: surefoot.dev/v1, kind: Override, target: gpu/GPU-a, verdict: deny, who: a, why: b, until: 2027-01-01T00:00:00Z}
---
{apiVersion: surefoot.dev/v1, kind: Allocation, node: gpu-17, pod: p, uid: u, namespace: n, resource: nvidia.com/gpu, count: 1}
"""
TEXTS = {
    "topology": [
        (b"\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        b"GPU0\t X \tNV18\tPIX\t0-47\t0\t\tN/A\nGPU1\tNV18\t X \tSYS\t48-95\t1\t\tN/A\n"
        b"NIC0\tPIX\tSYS\t X \n\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing NVLinks\n"),
    ],
    "kmsg": [
        (b"[ 12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python, GPU has fallen off the bus.\n"
        b"kern  :warn  : [ 13.1] NVRM: Xid (PCI:0000:3b:00.0): 74, NVLink: fatal error (0x10000 0x0 0x0 0x0 0x0 0x0 0x0)\n"
        b"Nov 29 10:00:00 n1 kernel: NVRM: Xid (PCI:0019:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 03 (0x000004c6 0x00000000 0x1 0x2 0x3 0x4 0x5)\n"
        b"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
        b"NVRM: Xid (PCI:0000:0f:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"),
    ],
    "metrics": [
        (b"# HELP DCGM_FI_DEV_GPU_TEMP t\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
        b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n"} 41\n'
        b'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",err_code="79"} 79\n'
        b'DCGM_FI_DEV_ROW_REMAP_PENDING{gpu="1",UUID="GPU-b"} 1 1700000000000\n'),
    ],
    "pod": [json.dumps({"apiVersion": "v1", "kind": "Pod", **POD}).encode()],
}  # fmt: skip
READERS = {"topology": topology, "kmsg": kmsg, "metrics": metrics, "pod": pod}


def _check_is_one_sentence(text: str) -> None:
    assert text
    assert "\n" not in text
    assert len(text) < 2_000


@within_a_second
@given(body=damaged(BODIES))
def test_a_damaged_request_is_read_or_refused_in_one_sentence(body: bytes) -> None:
    """Whatever comes over the wire, only `WireError` comes out of the decoders."""
    for decode in (scheduler.decode_nodes, scheduler.decode_explain, scheduler.decode_preemption):
        try:
            request = decode(body)
            asks.ask_of(request.pod, DEFAULT)
        except WireError as error:
            _check_is_one_sentence(str(error))


@within_a_second
@given(text=damaged([NODE.encode()]))
def test_a_damaged_document_is_read_or_refused_in_one_sentence(text: bytes) -> None:
    """Whatever is put, only `DocumentError` comes out."""
    try:
        documents.parse(text, "junk")
    except DocumentError as error:
        _check_is_one_sentence(str(error))


@pytest.mark.parametrize("kind", list(TEXTS))
def test_a_damaged_text_is_understood_or_called_unusable(kind: str) -> None:
    """Whatever is inspected, the answer is a report that JSON can hold, or None."""
    reader = READERS[kind]

    @within_a_second
    @given(text=damaged(TEXTS[kind]))
    def holds(text: bytes) -> None:
        report = reader.report(text)
        if report is not None:
            json.dumps(report, allow_nan=False)
            assert isinstance(reader.render(report), str)

    holds()
