"""One pod of the API server as what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping

from extender.controller import projection
from extender.controller.cluster import places, refusals, shapes, sizes
from extender.controller.cluster.selections import selection
from extender.controller.cluster.sharing import Sharing
from extender.controller.cluster.values import GatedPod, Kept, Load, RefusedPod
from extender.controller.objects import FINISHED
from extender.controller.projection import ProjectionError
from extender.kube import paths
from extender.wire import asks
from scoring.gangs import denials
from scoring.gangs.rules import GATE, ON_SHORTFALL, WAKE, GangRules, Hold, OnShortfall
from scoring.gangs.values import GangPod, Owner
from scoring.model import Ask, NodeName, ResourceKind
from scoring.planning.values import Claim, Member, Shape
from scoring.policy import Policy

_NO_SPEC, _NO_STATUS = shapes.Spec(), shapes.Status()
_NO_NODE = "Unschedulable"
"""The reason of `PodScheduled` where no node was found; after an error, as of an extender that does not
answer, it is another."""
_SHORTFALLS = {each.value: each for each in OnShortfall}


class PodReader:
    """Reads pods as the leader's policy and rules see them. Safe for many threads."""

    def __init__(self, policy: Policy, rules: GangRules) -> None:
        self._policy = policy
        self._rules = rules
        self._share = Sharing()

    def read(self, pod: shapes.ClusterPod) -> Kept | None:
        """What is kept of a pod; None: nothing.

        Raises:
            ProjectionError: it has no uid, or something that cannot be read.
            extender.wire.errors.WireError: a quantity of GPUs is none.
        """
        metadata, spec = pod.metadata, pod.spec or _NO_SPEC
        if metadata is None or not metadata.uid:
            raise ProjectionError("metadata.uid: missing")
        ask, status = asks.ask_of(pod, self._policy), pod.status or _NO_STATUS
        member = self._member(pod, metadata, ask)
        if status.phase in FINISHED:
            kept = Kept(uid=ask.uid, member=member, failed=refusals.failed(pod, ask))
        elif spec.node_name:
            gpus = projection.allocations(pod)
            kept = Kept(uid=ask.uid, member=member, load=self._load(spec), gpus=gpus)
        elif metadata.deletion_timestamp is not None:
            kept = Kept(uid=ask.uid, member=member)
        else:
            kept = Kept(
                uid=ask.uid,
                member=member,
                claim=self._claim(spec, status, ask),
                refused=self._refused(spec, status, metadata, ask),
                gated=_gated(spec, metadata, ask) if member is None else None,
            )
        return None if kept == Kept(uid=ask.uid) else kept

    def _load(self, spec: shapes.Spec) -> Load:
        share = self._share
        return share(
            Load(
                node=share(NodeName(spec.node_name or "")),
                amounts=share(sizes.asked(spec)),
                ports=share(sizes.host_ports(spec)),
                priority=spec.priority or 0,
            )
        )

    def _member(
        self, pod: shapes.ClusterPod, metadata: shapes.Metadata, ask: Ask
    ) -> GangPod | None:
        gang = ask.gang
        if gang is None or self._rules.hold(gang.convention) is Hold.OFF:
            return None
        share, facts = self._share, asks.facts_of(pod)
        spec, status = pod.spec or _NO_SPEC, pod.status or _NO_STATUS
        nominated = status.nominated_node_name
        return GangPod(
            namespace=share(ask.namespace),
            version=metadata.resource_version or "",
            gang=share(gang),
            member=Member(
                uid=ask.uid,
                name=ask.name,
                shape=self._shape(spec, ask),
                index=places.index_of(facts),
                bound=share(NodeName(spec.node_name)) if spec.node_name else None,
                nominated=share(NodeName(nominated)) if nominated else None,
            ),
            priority=spec.priority or 0,
            created_s=_created_s(metadata),
            owner=share(_owner(metadata)),
            topology=share(places.topology_of(facts)),
            on_shortfall=self._on_shortfall(spec, facts.annotations),
            gates=share(frozenset(gate.name for gate in spec.scheduling_gates or ())),
            finished=status.phase in FINISHED,
            succeeded=status.phase == "Succeeded",
            leaving=metadata.deletion_timestamp is not None,
            refused=_found_no_node(status),
            untold=denials.is_untold(_message(status)),
            woken_s=paths.unix_s((metadata.annotations or {}).get(WAKE) or ""),
        )

    def _on_shortfall(
        self, spec: shapes.Spec, annotations: Mapping[str, str]
    ) -> OnShortfall | None:
        """What the pod chooses; None: the site's rule. For one that never preempts kube-scheduler
        would evict nobody, so it waits instead.
        """
        chosen = _SHORTFALLS.get(annotations.get(ON_SHORTFALL, ""))
        evicts = (chosen or self._rules.on_shortfall) is OnShortfall.PREEMPT
        return OnShortfall.WAIT if evicts and spec.preemption_policy == "Never" else chosen

    def _shape(self, spec: shapes.Spec, ask: Ask) -> Shape:
        return self._share(
            Shape(
                need=ask.need,
                amounts=sizes.asked(spec),
                ports=sizes.host_ports(spec),
                selection=self._share(selection(spec)),
            )
        )

    def _claim(self, spec: shapes.Spec, status: shapes.Status, ask: Ask) -> Claim | None:
        if not status.nominated_node_name:
            return None
        node = self._share(NodeName(status.nominated_node_name))
        return Claim(uid=ask.uid, node=node, shape=self._shape(spec, ask))

    def _refused(
        self, spec: shapes.Spec, status: shapes.Status, metadata: shapes.Metadata, ask: Ask
    ) -> RefusedPod | None:
        said = asks.refusal(status)
        if said is None or ask.need.kind is ResourceKind.NONE:
            return None
        return RefusedPod(
            namespace=self._share(ask.namespace),
            name=ask.name,
            uid=ask.uid,
            version=metadata.resource_version or "",
            need=self._share(ask.need),
            selection=self._share(selection(spec)),
            message=self._share(_message(status)),
            gang=ask.gang.key if ask.gang else None,
            owner=self._share(_owner(metadata)),
            priority=spec.priority or 0,
            created_s=_created_s(metadata),
            woken_at=(metadata.annotations or {}).get(WAKE) or "",
        )


def _gated(spec: shapes.Spec, metadata: shapes.Metadata, ask: Ask) -> GatedPod | None:
    if all(gate.name != GATE for gate in spec.scheduling_gates or ()):
        return None
    return GatedPod(
        namespace=ask.namespace,
        name=ask.name,
        uid=ask.uid,
        version=metadata.resource_version or "",
    )


def _owner(metadata: shapes.Metadata) -> Owner | None:
    """The controller of the pod."""
    return next(
        (
            Owner(kind=each.kind or "", name=each.name or "", uid=each.uid)
            for each in metadata.owner_references or ()
            if each.controller and each.uid
        ),
        None,
    )


def _message(status: shapes.Status) -> str:
    """What kube-scheduler says of a pod that it refused; empty: it did not, or nothing."""
    said = asks.refusal(status)
    return (said.message or "") if isinstance(said, shapes.Condition) else ""


def _found_no_node(status: shapes.Status) -> bool:
    """Whether the last cycle ended with that, and not with an error: then it is tried again anyway."""
    said = asks.refusal(status)
    return said is not None and said.reason == _NO_NODE


def _created_s(metadata: shapes.Metadata) -> float:
    created = metadata.creation_timestamp
    return created.timestamp() if created else 0.0
