"""All pending gangs, planned in their order on one picture of the cluster.

Each gang takes its nodes from what those before it leave. What runs is never moved; what is nominated
is kept where it still fits, unless a gang of strictly higher priority has no other room, or the gang
itself no other way to become whole. A gang that does not fit holds nothing, so that smaller ones behind
it may start; once it has waited for `starvation.after` it holds what it could use of its best domain
against all behind it.

Nothing here reads a clock or draws a number: the same picture, site and gangs give the same plans, in
whatever order they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from scoring.picture import Picture
from scoring.planning import attempt, quorum, shortfalls, spread
from scoring.planning.attempt import Seating
from scoring.planning.faults import blaming
from scoring.planning.ground import Ground
from scoring.planning.nominations import Nominations, kept
from scoring.planning.order import ordered
from scoring.planning.outcome import Outcome, Plan
from scoring.planning.seats import in_order
from scoring.planning.values import Exclusion, Member, PendingGang, Site
from scoring.planning.view import Views
from scoring.topology import Domain, domains_of_unknown

Hosts: TypeAlias = Mapping[Member, int]


def plan(picture: Picture, site: Site, gangs: Iterable[PendingGang]) -> tuple[Outcome, ...]:
    """A plan or a shortfall for each gang, in the order in which they were planned.

    Raises:
        GangError: it failed on one of them.
    """
    ground = Ground(picture, site)
    waiting = ordered(gangs)
    views, nominations = Views(ground), Nominations(ground, waiting)
    found = []
    for gang in waiting:
        with blaming(gang.key):
            found.append(_Turn(picture, site, views, nominations, gang).outcome())
    return tuple(found)


class _Turn:
    """One gang's turn."""

    def __init__(
        self,
        picture: Picture,
        site: Site,
        views: Views,
        nominations: Nominations,
        gang: PendingGang,
    ) -> None:
        self._views = views
        self._ground = ground = views.ground
        self._nominations = nominations
        self._gang = gang
        self._starved = picture.fleet.now_s - gang.since_s >= picture.policy.starvation.after_s
        self._banned = {
            ground.position[each.node]
            for each in site.exclusions
            if each.owner == gang.key and each.node in ground.position and _stands(picture, each)
        }
        self._bound = {
            member: ground.position[member.bound]
            for member in in_order(gang.members)
            if member.bound is not None and member.bound in ground.position
        }

    def outcome(self) -> Outcome:
        """The plan, whose room is taken now, or the shortfall, with what it holds."""
        own = self._nominations.released(self._gang)
        early = shortfalls.before_planning(self._gang)
        if early is not None:
            return early
        everyone = in_order(self._gang.members)
        least = quorum.quorum(self._gang)
        found = self._planned(everyone, own)
        if found is None and len(least) < len(everyone):
            found = self._planned(least, own, [each for each in everyone if each not in least])
        return found or shortfalls.shortfall(
            self._views, self._gang, least, self._bound, self._banned, hold=self._starved
        )

    def _planned(
        self, members: Sequence[Member], own: Hosts, others: Sequence[Member] = ()
    ) -> Plan | None:
        """A plan for `members`: with their nominations kept if possible, and in room that members of
        lower priority are nominated for only if there is no other. As many of `others` join as fit.
        """
        lower = self._nominations.below(self._gang.priority)
        for lifted in ([], lower) if lower else ([],):
            self._nominations.lift(lifted)
            for nominated in (own, {}) if own else ({},):
                stays = kept(self._ground, nominated, self._banned)
                seating = self._seated(members, stays, others)
                found = None if seating is None else self._plan(seating)
                self._shift(stays, -1)
                if seating is not None:
                    self._shift({**stays, **seating.new}, 1)
                    self._nominations.restore(lifted)
                    return found
            self._nominations.restore(lifted)
        return None

    def _seated(
        self, members: Sequence[Member], stays: Hosts, others: Sequence[Member]
    ) -> Seating | None:
        """Places for `members` and some others. The ground is as before."""
        pinned = {**self._bound, **stays}
        seating = attempt.attempt(
            self._views, self._gang, _homeless(members, pinned), pinned, self._banned
        )
        if seating is None or not others:
            return seating
        self._shift(seating.new, 1)
        joined = attempt.more(
            self._views, self._gang, _homeless(others, pinned), seating, self._banned
        )
        self._shift(seating.new, -1)
        return joined

    def _shift(self, places: Hosts, count: int) -> None:
        for member, position in places.items():
            self._ground.take(position, member.shape, count)

    def _plan(self, seating: Seating) -> Plan:
        ground = self._ground
        places = {each.uid: each.bound for each in self._gang.members if each.bound is not None}
        places |= {
            member.uid: ground.hosts[position].name for member, position in seating.places.items()
        }
        known = {ground.paths[position] for position in seating.places.values()}
        strangers = set(places.values()) - ground.position.keys()
        paths = sorted(known | {domains_of_unknown(name) for name in strangers})
        return Plan(
            gang=self._gang.key,
            uid=self._gang.uid,
            places=MappingProxyType(dict(sorted(places.items()))),
            kept=frozenset(places) - {member.uid for member in seating.new},
            waiting=tuple(
                each.uid for each in in_order(self._gang.members) if each.uid not in places
            ),
            domain=_narrowest(paths),
            objective=spread.objective(paths, attempt.cost(ground, seating.new)),
        )


def _homeless(members: Sequence[Member], pinned: Hosts) -> list[Member]:
    return [each for each in members if each.bound is None and each not in pinned]


def _stands(picture: Picture, exclusion: Exclusion) -> bool:
    """Whether the node has not reported anew since it failed the gang."""
    node = picture.fleet.nodes.get(exclusion.node)
    return node is None or (node.epoch, node.seq) <= (exclusion.epoch, exclusion.seq)


def _narrowest(paths: Sequence[Sequence[Domain]]) -> Domain | None:
    """The narrowest domain that all of these paths (widest first) share."""
    found = None
    for shared in zip(*paths, strict=True):
        if len(set(shared)) > 1:
            break
        found = shared[0]
    return found
