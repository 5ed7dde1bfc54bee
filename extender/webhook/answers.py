"""From a request to an answer: which nodes, what scores, which victims, and a record of why.

Nothing here changes anything or does I/O (invariants 1 and 9): kube-scheduler asks
speculatively and never says what it rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from extender.config.model import FailurePolicy, Mode, UnknownNodes, WebhookConfig
from extender.webhook.board import Board, View
from extender.wire.scheduler import NodesRequest, PreemptionRequest, Victims
from scoring import closeness, rank, ranking
from scoring.candidate import candidate
from scoring.model import Ask, NodeName, ResourceKind, WorkClass
from scoring.ranking import Pull, Ranking
from scoring.reasons import Reason
from scoring.verdict import judge


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
    vetoes: Mapping[NodeName, Reason] = field(default_factory=dict)
    """Filled only where nothing passed: kube-scheduler reads reasons only then."""
    ranking: Ranking | None = None
    unreported: Reason | None = None
    """The reason for nodes without a document."""

    @property
    def main_reason(self) -> Reason | None:
        """The reason of most nodes; None unless nothing passed."""
        if self.outcome not in (Outcome.VETO, Outcome.CLOSED):
            return None
        most = Counter(self.vetoes.values()).most_common(1)
        return most[0][0] if most else None

    def counts(self, names: frozenset[NodeName]) -> Counter[Reason]:
        """How many of `names` each reason refuses."""
        if self.ranking is None or self.vetoes:
            return Counter(self.vetoes.values())
        return ranking.reasons(self.ranking, names, self.unreported)


def unreported_reason(policy: UnknownNodes, ask: Ask) -> Reason | None:
    """Why a node without a document is refused for `ask`; None: it passes."""
    passes = policy is UnknownNodes.PASS or (
        policy is UnknownNodes.SINGLE and ask.need.work is WorkClass.SINGLE
    )
    return None if passes else Reason.NODE_UNREPORTED


class Judge:
    """Answers requests for one configuration."""

    def __init__(self, config: WebhookConfig, board: Board) -> None:
        self._config = config
        self._board = board
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
        passed = self._passed(view, found, request, ask, unreported)
        if passed:
            return Decision(
                outcome=Outcome.PASS, passed=passed, ranking=found, unreported=unreported
            )
        missing = unreported or Reason.NODE_UNREPORTED
        vetoes = found.vetoes
        return Decision(
            outcome=Outcome.VETO,
            vetoes={name: vetoes.get(name, missing) for name in request.names},
            ranking=found,
            unreported=unreported,
        )

    def _passed(
        self,
        view: View,
        found: Ranking,
        request: NodesRequest,
        ask: Ask,
        unreported: Reason | None,
    ) -> list[NodeName]:
        """The nodes to answer with: the best few where that is safe, else all that fit as they
        came. Nodes that nobody reports come last, where they may come at all.
        """
        narrow = self._config.narrow if ask.narrowable else 0
        known, ranks = view.picture.candidates, found.ranks
        if not narrow:
            return [
                name
                for name in request.names
                if name in ranks or (unreported is None and name not in known)
            ]
        passed = found.first(request.offered, narrow, _pull(view, found, ask))
        if len(passed) < narrow and unreported is None:
            unknown = sorted(name for name in request.names if name not in known)
            passed += unknown[: narrow - len(passed)]
        return passed

    def prioritize(
        self, request: NodesRequest, ask: Ask
    ) -> tuple[Decision, list[tuple[NodeName, int]]]:
        """A score of 0..10 for each node; 0 for one that /filter would refuse."""
        view = self._view_for(ask, request.names)
        if isinstance(view, Decision):
            return view, [(name, 0) for name in request.names]
        found = self._board.ranking(view, ask.need)
        near = closeness.to_members(view.picture, ask)
        policy = view.picture.policy
        scores = []
        for name in request.names:
            value = found.ranks.get(name)
            if value is None:
                scores.append((name, 0))
                continue
            if near is not None:
                value -= rank.domain_penalty(near(name), policy)
            scores.append((name, rank.points(value)))
        return Decision(outcome=Outcome.PASS, passed=request.names, ranking=found), scores

    def preempt(
        self, request: PreemptionRequest, ask: Ask
    ) -> tuple[Decision, dict[NodeName, Victims]]:
        """The candidates that /filter would accept once their victims are gone."""
        view = self._view_for(ask, request.victims)
        if isinstance(view, Decision):
            return view, {} if view.outcome is Outcome.CLOSED else dict(request.victims)
        unreported = self.unreported(ask)
        kept, struck = {}, {}
        for name, victims in request.victims.items():
            reason = self._once_gone(view, ask, name, victims, unreported)
            if reason is None:
                kept[name] = victims
            else:
                struck[name] = reason
        outcome = Outcome.PASS if kept else Outcome.VETO
        return Decision(outcome=outcome, passed=tuple(kept), vetoes=struck), kept

    def _once_gone(
        self, view: View, ask: Ask, name: NodeName, victims: Victims, unreported: Reason | None
    ) -> Reason | None:
        """Why the pod could not go to `name` even with the victims gone; None: it could."""
        picture = view.picture
        node = picture.fleet.nodes.get(name)
        if node is None:
            return unreported
        ready = candidate(picture.fleet, node, picture.policy, gone=victims.uids)
        return judge(ready, ask.need, picture.policy).reason

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
        return Decision(outcome=Outcome.CLOSED, vetoes=dict.fromkeys(names, Reason.NO_SNAPSHOT))


def _pull(view: View, found: Ranking, ask: Ask) -> Pull | None:
    """What draws the pod to where its gang's members are bound."""
    near = closeness.to_members(view.picture, ask)
    if near is None:
        return None
    return [
        (names, rank.domain_penalty(ratio, view.picture.policy))
        for names, ratio in (*near.groups, (found.ranks, 0.0))
    ]
