"""Why a node is refused: one enum, with the text that kube-scheduler prints and counts.

kube-scheduler groups equal texts ("3 a GPU needs a reset, 2 ..."), so a text names no node, no GPU
and no number; `explain` has the evidence. It is at most 60 characters long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from scoring.model import Health


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    text: str
    advice: str
    unresolvable: bool = True


class Reason(StrEnum):
    """A stable identifier, used in metrics, decision records and explanations."""

    OVERRIDE_DENIED = "OverrideDenied"
    GPU_LOST = "GpuLost"
    GPU_FAILED = "GpuFailed"
    REBOOT_REQUIRED = "RebootRequired"
    RESET_REQUIRED = "ResetRequired"
    GPU_UNKNOWN = "GpuUnknown"
    GPU_DEGRADED = "GpuDegraded"
    GPU_UNMONITORED = "GpuUnmonitored"
    GPU_PROBATION = "GpuProbation"
    GPU_SUSPECT = "GpuSuspect"
    GPU_NEW = "GpuNew"
    LINKS_IMPAIRED = "LinksImpaired"
    NODE_SILENT = "NodeSilent"
    NODE_STALE = "NodeStale"
    NODE_UNREPORTED = "NodeUnreported"
    NODE_UNREADABLE = "NodeUnreadable"
    FEWER_GPUS = "FewerGpus"
    HEALTHY_GPUS_HELD = "HealthyGpusHeld"
    PLUGIN_MAY_FAIL = "PluginMayFail"
    VICTIM_ELSEWHERE = "VictimElsewhere"
    PLANNED_ELSEWHERE = "PlannedElsewhere"
    MEMBER_UNPLANNED = "MemberUnplanned"
    GANG_UNPLANNED = "GangUnplanned"
    GANG_INCOMPLETE = "GangIncomplete"
    GANG_SHORT = "GangDoesNotFit"
    NO_SNAPSHOT = "NoSnapshot"

    @property
    def text(self) -> str:
        """What the pod's event says."""
        return _ROWS[self].text

    @property
    def advice(self) -> str:
        """What a person can do about it."""
        return _ROWS[self].advice

    @property
    def unresolvable(self) -> bool:
        """Whether evicting pods cannot cure it (`FailedAndUnresolvableNodes`)."""
        return _ROWS[self].unresolvable


_ROWS: Final[Mapping[Reason, _Row]] = MappingProxyType(
    {
        Reason.OVERRIDE_DENIED: _Row(
            text="an operator denied the node or one of its GPUs",
            advice="See who and why with `surefoot get gpus`; put an Override that allows it, or wait until it ends.",
        ),
        Reason.GPU_LOST: _Row(
            text="a GPU fell off the bus and blocks the node's GPU pods",
            advice="Reboot the node: the stock device plugin fails every GPU pod there (k8s-device-plugin #2038).",
        ),
        Reason.GPU_FAILED: _Row(
            text="a GPU that the pod may get has failed",
            advice="Replace the GPU, or take the node out of service.",
        ),
        Reason.REBOOT_REQUIRED: _Row(
            text="a GPU that the pod may get needs a reboot",
            advice="Drain and reboot the node.",
        ),
        Reason.RESET_REQUIRED: _Row(
            text="a GPU that the pod may get needs a reset",
            advice="Drain the GPU and reset it (`nvidia-smi --gpu-reset`), or reboot the node.",
        ),
        Reason.GPU_UNKNOWN: _Row(
            text="a GPU that the pod may get has no current health data",
            advice="Look at the agent and the driver on that node.",
        ),
        Reason.GPU_DEGRADED: _Row(
            text="a GPU that the pod may get is degraded",
            advice="Reset it when convenient; single pods may still use it, last.",
        ),
        Reason.GPU_UNMONITORED: _Row(
            text="a GPU that the pod may get is not monitored",
            advice="Look at the agent on that node: its monitor says that it cannot watch the GPU.",
        ),
        Reason.GPU_PROBATION: _Row(
            text="a GPU that the pod may get is on probation",
            advice="Wait until the probation ends, or put an Override after a test of the GPU.",
        ),
        Reason.GPU_SUSPECT: _Row(
            text="a GPU that the pod may get is suspect",
            advice="See why with `surefoot explain`: it may be the node, where pods keep failing. Allow it for all gangs (policy gang.suspect) or for one (annotation surefoot.dev/allow: SUSPECT).",
        ),
        Reason.GPU_NEW: _Row(
            text="a GPU that the pod may get is new and not yet measured",
            advice="Wait for its first full sample.",
        ),
        Reason.LINKS_IMPAIRED: _Row(
            text="NVLink between GPUs that the pod may get is impaired",
            advice="Look at the fabric manager and `nvidia-smi nvlink -s`; one-GPU pods may still use the node.",
        ),
        Reason.NODE_SILENT: _Row(
            text="the node's GPU health data is too old to be used",
            advice="Look at the agent on that node.",
        ),
        Reason.NODE_STALE: _Row(
            text="the node's GPU health data is stale",
            advice="Wait for the agent's next poll, or look at the agent on that node.",
        ),
        Reason.NODE_UNREPORTED: _Row(
            text="the node reports no GPU health",
            advice="Run the agent there, `surefoot put` its document, or set webhook.unknownNodes.",
        ),
        Reason.NODE_UNREADABLE: _Row(
            text="the node's GPU health document cannot be read",
            advice="See what is wrong with `surefoot get nodes`; it may be of a newer version than this Surefoot.",
        ),
        Reason.FEWER_GPUS: _Row(
            text="the node shows fewer GPUs than the pod would get",
            advice="A GPU is missing from the driver's list: compare `nvidia-smi -L` with the product.",
        ),
        Reason.HEALTHY_GPUS_HELD: _Row(
            text="enough healthy GPUs, but other pods hold them",
            advice="Wait until they are free; a pod of higher priority may preempt.",
            unresolvable=False,
        ),
        Reason.PLUGIN_MAY_FAIL: _Row(
            text="the device plugin may fail a request for so many GPUs here",
            advice="Ask for another number of GPUs, or wait until others are free: the stock plugin may answer with a device that is none (go-gpuallocator PR 80).",
            unresolvable=False,
        ),
        Reason.VICTIM_ELSEWHERE: _Row(
            text="a pod on another node would be evicted with the victims",
            advice="Said by /preempt only, of a PodGroup that is evicted whole (`disruptionMode: all`). kube-scheduler cannot do that for a single pod beside an extender; another PodGroup can preempt it.",
        ),
        Reason.PLANNED_ELSEWHERE: _Row(
            text="the pod's gang has a plan, with another node for it",
            advice="See which one with `surefoot explain --gang NAMESPACE/NAME`. Where that node refuses the pod, the controller plans the gang again.",
        ),
        Reason.MEMBER_UNPLANNED: _Row(
            text="the pod's gang has a plan, with no node for it",
            advice="Wait: a new member is planned in a moment, one beyond the gang's minimum when there is room for it.",
        ),
        Reason.GANG_UNPLANNED: _Row(
            text="the pod's gang has no plan yet",
            advice="Wait a moment. If it stays, look at the controller's log and /readyz; `surefoot explain --gang NAMESPACE/NAME` has its last word.",
        ),
        Reason.GANG_INCOMPLETE: _Row(
            text="the pod's gang waits for its members, or for its size",
            advice="See with `surefoot explain --gang NAMESPACE/NAME` which pods are missing, or where the number of members must be said.",
        ),
        Reason.GANG_SHORT: _Row(
            text="the pod's gang does not fit as a whole",
            advice="See with `surefoot explain --gang NAMESPACE/NAME` what came nearest and what would unblock it. No member takes a node before all can.",
        ),
        Reason.NO_SNAPSHOT: _Row(
            text="Surefoot has no usable picture of GPU health",
            advice="Look at Surefoot's /readyz and at Redis; webhook.failurePolicy decides what happens meanwhile.",
        ),
    }
)

OF_STATE: Final[Mapping[Health, Reason]] = MappingProxyType(
    {
        Health.FAILED: Reason.GPU_FAILED,
        Health.REBOOT_REQUIRED: Reason.REBOOT_REQUIRED,
        Health.RESET_REQUIRED: Reason.RESET_REQUIRED,
        Health.UNKNOWN: Reason.GPU_UNKNOWN,
        Health.DEGRADED: Reason.GPU_DEGRADED,
        Health.UNMONITORED: Reason.GPU_UNMONITORED,
        Health.PROBATION: Reason.GPU_PROBATION,
        Health.SUSPECT: Reason.GPU_SUSPECT,
        Health.NEW: Reason.GPU_NEW,
    }
)
"""The reason that a GPU in this state gives."""
