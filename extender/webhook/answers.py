"""From a request to an answer: which nodes, what scores, which victims, and a record of why.

Nothing here changes anything or does I/O (invariants 1 and 9): kube-scheduler asks
speculatively and never says what it rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from typing import Final, TypeAlias

from extender.config.model import FailurePolicy, Mode, UnknownNodes, WebhookConfig
from extender.webhook.board import Board, View
from extender.wire.scheduler import NodesRequest, PreemptionRequest, Victims
from scoring import rank, standing
from scoring.candidate import candidate
from scoring.gangs.rules import GangRules
from scoring.gangs.sitting import FREE, Sitting, sitting
from scoring.model import Ask, Fleet, NodeName, PodUid, ResourceKind
from scoring.ranking import Ranking
from scoring.reasons import Reason
from scoring.verdict import judge

Worth: TypeAlias = Callable[[Ranking, NodeName], float]
"""What a node that fits is worth to one pod, 0..1."""


class Outcome(StrEnum):
    """What became of a request."""

    PASS = "pass"
    """Some node, candidate or score stands."""
    VETO = "veto"
    """Nothing passed."""
    BYPASS = "bypass"
    """Not ours: another scheduler's pod, or one that asks for no GPU."""
    OPEN = "open"
    """No usable snapshot, and `failurePolicy: open`."""
    CLOSED = "closed"
    """No usable snapshot, and `failurePolicy: closed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided, before the mode says whether it counts."""

    outcome: Outcome
    passed: Collection[NodeName] = ()
    """In the order of preference where it was narrowed, else as they came."""
    narrowed: bool = False
    vetoes: Sequence[Reason] = ()
    """Why each of the offered nodes is refused, in their order. Empty where some node passed:
    kube-scheduler reads no reasons then.
    """
    tally: Counter[Reason] = field(default_factory=Counter)
    """How many nodes are refused for each reason, where that was counted: nothing passed, or all is
    up to a plan."""
    ranking: Ranking | None = None
    unreported: Reason | None = None
    """The reason for nodes without a document."""
    known: frozenset[NodeName] = frozenset()
    """The nodes that the snapshot can say something of."""
    snapshot: tuple[int, float] | None = None
    """Generation and time of the snapshot that was judged by; None: of none."""

    @property
    def main_reason(self) -> Reason | None:
        """The reason of most nodes; None unless nothing passed."""
        if self.outcome not in (Outcome.VETO, Outcome.CLOSED) or not self.tally:
            return None
        return self.tally.most_common(1)[0][0]


def unreported_reason(policy: UnknownNodes, ask: Ask) -> Reason | None:
    """Why a node without a document is refused for `ask`; None: it passes."""
    return None if ask.need.work in policy.admits else Reason.NODE_UNREPORTED


def _torn(fleet: Fleet, victims: Mapping[NodeName, Victims]) -> frozenset[NodeName]:
    """The candidates with a victim that is known to hold GPUs of another node.

    kube-scheduler looks for the victims of our answer on the candidate's own node, and one that it
    does not find there fails the whole attempt (1.37, extender.go convertToVictims).
    """
    foreign = {
        name: frozenset(each.uids).difference(held.uid for held in fleet.allocations.get(name, ()))
        for name, each in victims.items()
    }
    sought = frozenset[PodUid]().union(*foreign.values())
    if not sought:
        return frozenset()
    found = {each.uid for held in fleet.allocations.values() for each in held if each.uid in sought}
    return frozenset(name for name, uids in foreign.items() if uids & found)


def _veto(found: Ranking, name: NodeName, unreported: Reason | None) -> Reason | None:
    """Why one node is refused; None: it passes."""
    return None if name in found.ranks else found.vetoes.get(name, unreported)


def _by_plan(
    view: View,
    found: Ranking,
    request: NodesRequest,
    unreported: Reason | None,
    place: Sitting,
    elsewhere: Reason,
) -> Decision:
    """The node that its plan leaves to a pod, or why it may not go there, and to no other. A pod that
    could starve by a narrow answer is no exception: on another node it would split its gang.
    """
    reasons = {
        name: _veto(found, name, unreported) for name in place.nodes if name in request.offered
    }
    passed = [name for name, reason in reasons.items() if reason is None][:1]
    tally = Counter(reason for reason in reasons.values() if reason)
    tally[elsewhere] += len(request.names) - len(reasons)
    return Decision(
        outcome=Outcome.PASS if passed else Outcome.VETO,
        passed=passed,
        narrowed=bool(passed),
        vetoes=() if passed else [reasons.get(name) or elsewhere for name in request.names],
        tally=+tally,
        ranking=found,
        snapshot=view.at,
    )


def _planned(place: Sitting, worth: Worth) -> Worth:
    """`worth` as a plan changes it."""
    return lambda found, name: place.worth(name, worth(found, name))


class Judge:
    """Answers requests for one configuration."""

    def __init__(self, config: WebhookConfig, board: Board, gangs: GangRules) -> None:
        self._config = config
        self._board = board
        self._gangs = gangs
        self._schedulers: Final = frozenset(config.scheduler_names)

    @property
    def observes(self) -> bool:
        """Whether the answers are to change nothing."""
        return self._config.mode is Mode.OBSERVE

    def filter(self, request: NodesRequest, ask: Ask) -> Decision:
        """Which of the offered nodes are fit."""
        view = self._view_for(ask, request.names)
        if isinstance(view, Decision):
            return view
        found = self._board.ranking(view, ask.need)
        unreported = self.unreported(ask)
        place = self._place(view, ask)
        if place.refusal is not None:
            return _by_plan(view, found, request, unreported, place, place.refusal)
        narrow = self._config.narrow if ask.narrowable else 0
        if narrow:
            passed = self._best(view, found, request, ask, narrow)
            if place.seat in request.offered and _veto(found, place.seat, unreported) is None:
                others = (name for name in passed if name != place.seat)
                passed = [place.seat, *others][:narrow]
        else:
            passed = self._fitting(view, found, request, ask)
        if passed:
            return Decision(
                outcome=Outcome.PASS,
                passed=passed,
                narrowed=narrow > 0,
                ranking=found,
                unreported=unreported,
                known=view.picture.names,
                snapshot=view.at,
            )
        missing = unreported or Reason.NODE_UNREPORTED
        reasons = list(map(found.vetoes.get, request.names, repeat(missing)))
        return Decision(
            outcome=Outcome.VETO,
            vetoes=reasons,
            tally=Counter(reasons),
            ranking=found,
            snapshot=view.at,
        )

    def _fitting(
        self, view: View, found: Ranking, request: NodesRequest, ask: Ask
    ) -> list[NodeName]:
        """All nodes that fit, as they came."""
        known, ranks = view.picture.candidates, found.ranks
        strangers_pass = self.unreported(ask) is None
        return [
            name
            for name in request.names
            if name in ranks or (strangers_pass and name not in known)
        ]

    def _best(
        self, view: View, found: Ranking, request: NodesRequest, ask: Ask, narrow: int
    ) -> list[NodeName]:
        """The best `narrow` nodes that fit; those that nobody reports come last, if at all."""
        passed = standing.standing(view.picture, ask).best(found, request.offered, narrow)
        if len(passed) < narrow and self.unreported(ask) is None:
            strangers = sorted(request.offered.difference(view.picture.candidates))
            passed += strangers[: narrow - len(passed)]
        return passed

    def prioritize(
        self, request: NodesRequest, ask: Ask
    ) -> tuple[Decision, list[tuple[NodeName, int]]]:
        """A score of 0..10 for each node; 0 for one that /filter would refuse."""
        view = self._view_for(ask, request.names)
        if isinstance(view, Decision):
            return view, [(name, 0) for name in request.names]
        found = self._board.ranking(view, ask.need)
        worth: Worth = standing.standing(view.picture, ask).worth
        place = self._place(view, ask)
        if place is not FREE:
            worth = _planned(place, worth)
        scores = [
            (name, rank.points(worth(found, name)) if name in found.ranks else 0)
            for name in request.names
        ]
        decision = Decision(
            outcome=Outcome.PASS, passed=request.names, ranking=found, snapshot=view.at
        )
        return decision, scores

    def preempt(
        self, request: PreemptionRequest, ask: Ask
    ) -> tuple[Decision, dict[NodeName, Victims]]:
        """The candidates that /filter would accept once their victims are gone."""
        view = self._view_for(ask, request.victims)
        if isinstance(view, Decision):
            return view, {} if view.outcome is Outcome.CLOSED else dict(request.victims)
        unreported = self.unreported(ask)
        place = self._place(view, ask)
        torn = _torn(view.picture.fleet, request.victims)
        kept, struck = {}, Counter[Reason]()
        for name, victims in request.victims.items():
            if name in torn:
                struck[Reason.VICTIM_ELSEWHERE] += 1
                continue
            reason = place.spares(name) or self._once_gone(view, ask, name, victims, unreported)
            if reason is None:
                kept[name] = victims
            else:
                struck[reason] += 1
        outcome = Outcome.PASS if kept else Outcome.VETO
        decision = Decision(outcome=outcome, passed=tuple(kept), tally=struck, snapshot=view.at)
        return decision, kept

    def _once_gone(
        self, view: View, ask: Ask, name: NodeName, victims: Victims, unreported: Reason | None
    ) -> Reason | None:
        """Why the pod could not go to `name` even with the victims gone; None: it could."""
        picture = view.picture
        node = picture.fleet.nodes.get(name)
        if node is None:
            broken = picture.candidates.get(name)
            return judge(broken, ask.need, picture.policy).reason if broken else unreported
        ready = candidate(picture.fleet, node, picture.policy, gone=victims.uids)
        return judge(ready, ask.need, picture.policy).reason

    def _place(self, view: View, ask: Ask) -> Sitting:
        """What the plan of its gang leaves of the nodes."""
        return sitting(view.picture.fleet, ask, self._gangs, view.picture.policy)

    def unreported(self, ask: Ask) -> Reason | None:
        """The reason for a node without a document; None: it passes."""
        return unreported_reason(self._config.unknown_nodes, ask)

    def _view_for(self, ask: Ask, names: Collection[NodeName]) -> View | Decision:
        """The view to judge by, or the decision that needs none."""
        foreign = bool(self._schedulers) and ask.scheduler not in self._schedulers
        if foreign or ask.need.kind is ResourceKind.NONE:
            return Decision(outcome=Outcome.BYPASS, passed=names)
        view = self._board.view()
        if view is not None:
            return view
        if self._config.failure_policy is FailurePolicy.OPEN:
            return Decision(outcome=Outcome.OPEN, passed=names)
        return Decision(
            outcome=Outcome.CLOSED,
            vetoes=[Reason.NO_SNAPSHOT] * len(names),
            tally=Counter({Reason.NO_SNAPSHOT: len(names)}),
        )
