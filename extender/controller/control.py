"""A controller: reflectors that fill the wanted state and the leader's view, an elector, a publisher,
the planning loop with what carries its plans out, the signs to the outside, and its pages.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extender.config.model import Mode, UnknownNodes
from extender.controller.cluster import groups
from extender.controller.cluster.handlers import GroupHandler, NodeHandler, PodHandler
from extender.controller.cluster.view import ClusterView
from extender.controller.figures import GangFigures
from extender.controller.leading import LeadersWriter
from extender.controller.metrics import Metrics, MirrorFigures
from extender.controller.mirrors import NodeMirror, PodMirror
from extender.controller.pages import Check, Pages
from extender.controller.planning.acting import Actor
from extender.controller.planning.ledger import Ledger
from extender.controller.planning.loop import Planning
from extender.controller.planning.scene import Scene
from extender.controller.planning.witness import Witness
from extender.controller.publisher import Publisher
from extender.controller.pulse import Pulse
from extender.controller.sight import Sight
from extender.controller.signs.breakers import RuledBreakers
from extender.controller.signs.events import Target
from extender.controller.signs.metrics import SignFigures
from extender.controller.signs.signs import Signs
from extender.controller.source import Source
from extender.controller.wanted import Wanted
from extender.kube.client import Client
from extender.kube.discovery import Discovered
from extender.kube.election import Elector
from extender.kube.fence import Fence
from extender.kube.lease import LeaseSettings
from extender.kube.reflector import Handler, Reflector
from extender.kube.settings import KubeSettings
from extender.kube.status import Timing
from extender.store.connect import StoreSettings
from extender.store.picture import Changed
from extender.store.reader import Reader
from extender.store.writer import Writer
from scoring.gangs.rules import GangRules, Hold
from scoring.model import Fleet, GangKey
from scoring.policy import DEFAULT, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """What a controller is told."""

    kube: KubeSettings
    store: StoreSettings
    bind: tuple[str, int]
    version: str
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    policy: Policy = DEFAULT
    rules: GangRules = field(default_factory=GangRules)
    mode: Mode = Mode.ENFORCE
    unknown_nodes: UnknownNodes = UnknownNodes.SINGLE
    """As the webhook has it."""
    taint: bool = False
    max_snapshot_age_s: float = 300.0
    """How long plans may rest on the last health that was heard of."""
    timing: Timing | None = None


class Controller:
    """Keeps one cache of one cluster, and plans its gangs while it leads. `start` it once, `close` it
    at the end.

    One that stands by sees all that the leader sees, and writes nothing.
    """

    def __init__(self, settings: ControlSettings) -> None:
        """Listen, and do nothing else yet.

        Raises:
            BindError: the address cannot be had.
            KubeError: nothing says where the API server is.
        """
        self._settings: Final = settings
        self._wanted: Final = Wanted()
        self._writer: Final = Writer(settings.store)
        self.view: Final = ClusterView(settings.policy, settings.rules)
        self._mirrors = self._reflected()
        self._groups = self._grouped()
        self._sight = Sight(
            [source.reflector for source in self._mirrors],
            self._groups,
            patience_s=(settings.timing or Timing()).patience_s,
        )
        self._elector = Elector(
            settings.kube, settings.lease, changed=self._turned, able=self._sight.whole
        )
        self._leads = LeadersWriter(settings.kube, self._fence)
        self._publisher = Publisher(
            self._writer,
            self._wanted,
            self._mirrors,
            term=self._term,
            outranked=self._elector.raise_to,
        )
        self._scene = Scene(settings.policy)
        self._reader = Reader(settings.store, self._hear)
        self._signs = Signs(
            view=self.view,
            kube=self._leads,
            cache=self._writer,
            sink=RuledBreakers(self._wanted),
            home=_home(settings.lease),
            mode=settings.mode,
            unknown_nodes=settings.unknown_nodes,
            taint=settings.taint,
            planned=self._planned,
            told=self._told,
        )
        self._actor = Actor(self._leads, self.view.fold)
        self._planning = Planning(
            scene=self._scene,
            view=self.view,
            ledger=Ledger(self._wanted),
            actor=self._actor,
            witness=Witness(self._signs, lambda: [gang.key for gang in self.view.gangs()]),
            rules=settings.rules,
            fence=self._fence,
            ready=self._sees,
            unread=self._sight.unread,
            acts=settings.mode is Mode.ENFORCE,
        )
        self._pulse = Pulse(self._signs, self._writer, self._binding_term, self._elector.raise_to)
        self.metrics: Final = Metrics(
            MirrorFigures(
                settings.version,
                self._mirrors,
                tuple(self._groups.values()),
                self._wanted,
                self._publisher,
            ),
            GangFigures(self.view, self._planning, self._actor, self._elector),
            SignFigures(self._signs),
        )
        self._pages = Pages(
            *settings.bind, lives=self._lives, ready=self._ready, metrics=self.metrics.page
        )

    @property
    def address(self) -> str:
        """Where its pages are."""
        return self._pages.address

    @property
    def sources(self) -> Sequence[Source]:
        """Pods and nodes."""
        return self._mirrors

    @property
    def leads(self) -> bool:
        """Whether it leads now."""
        return self._elector.leads

    def start(self) -> None:
        """Start everything."""
        self._pages.start()
        self._publisher.start()
        self._reader.start()
        for reflector in self._reflectors():
            reflector.start()
        self._signs.start()
        self._planning.start()
        self._pulse.start()
        self._elector.start()

    def close(self) -> None:
        """Stop everything; the Lease is given back when nothing is written any more."""
        self._planning.close()
        self._pulse.close()
        self._signs.close()
        self._publisher.close()
        self._leads.close()
        self._elector.close()
        self._reader.close()
        for reflector in self._reflectors():
            reflector.close()
        self._pages.close()

    # --- parts -----------------------------------------------------------------------------------

    def _reflected(self) -> tuple[Source, ...]:
        pods, nodes = (
            PodMirror(self._wanted, self._writer.ids),
            NodeMirror(self._wanted, self._writer.ids),
        )
        return (
            Source(self._reflector("/api/v1/pods", PodHandler(pods, self.view)), pods),
            Source(self._reflector("/api/v1/nodes", NodeHandler(nodes, self.view)), nodes),
        )

    def _grouped(self) -> Mapping[groups.Source, Reflector[Any]]:
        """The kinds that say how large planned gangs are."""
        return {
            source: self._reflector(
                Discovered(source.group, source.resource, frozenset(source.versions)),
                GroupHandler(source, self.view),
            )
            for source in groups.needed(self._settings.rules)
        }

    def _reflector(self, place: str | Discovered, handler: Handler[Any]) -> Reflector[Any]:
        settings = self._settings
        return Reflector(Client(settings.kube), place, handler, timing=settings.timing)

    def _reflectors(self) -> Iterator[Reflector[Any]]:
        yield from (source.reflector for source in self._mirrors)
        yield from self._groups.values()

    # --- what happens ----------------------------------------------------------------------------

    def _fence(self) -> Fence | None:
        """What writes ask. A leader that does not know the cluster yet writes nothing."""
        return self._elector.fence if self._sight.whole() else None

    def _term(self) -> int | None:
        fence = self._fence()
        return fence.term if fence else None

    def _binding_term(self) -> int | None:
        """That of a leader whose word binds. A sign of life of one that only observes would have every
        replica refuse members for want of a plan.
        """
        return self._term() if self._settings.mode is Mode.ENFORCE else None

    def _sees(self) -> bool:
        """Whether enough is known to plan: all of the cluster, and the health of its nodes of late."""
        silence_s = self._reader.status.silence_s(time.monotonic())
        heard = silence_s is not None and silence_s <= self._settings.max_snapshot_age_s
        return heard and self._sight.whole()

    def _planned(self) -> Collection[GangKey]:
        """Those whose members nobody else wakes."""
        return self._named(Hold.REQUIRE)

    def _told(self) -> Collection[GangKey]:
        """Those of which the planning loop tells."""
        return self._named(Hold.REQUIRE, Hold.PREFER)

    def _named(self, *holds: Hold) -> Collection[GangKey]:
        """The gangs of these holds, as pods name them."""
        return {gang.pods[0].gang.key for gang in self.view.gangs() if gang.hold in holds}

    def _turned(self) -> None:
        self.view.changes.note(pods=True)

    def _hear(self, fleet: Fleet, changed: Changed) -> None:
        self._scene.hear(fleet, changed)
        if changed is None or changed:
            self.view.changes.note(nodes=changed or (), pods=changed is None)

    # --- pages -----------------------------------------------------------------------------------

    def _lives(self) -> Iterator[Check]:
        for name, alive in (
            ("publisher", self._publisher.alive),
            ("planning", self._planning.alive),
            ("pulse", self._pulse.alive),
            ("signs", self._signs.alive),
            ("elector", self._elector.alive),
            *((reflector.name, reflector.alive) for reflector in self._reflectors()),
        ):
            yield Check(name=name, good=alive, told="runs" if alive else "has ended")

    def _ready(self) -> Iterator[Check]:
        now_s = time.monotonic()
        given_up = {each.kind for each in self._sight.unread()}
        for reflector in self._reflectors():
            status = reflector.status
            silence_s = status.silence_s(now_s)
            heard = "never heard" if silence_s is None else f"heard {silence_s:.0f}s ago"
            told = f"{'synced' if status.synced else 'not synced yet'}, {heard}"
            problem = status.barred or status.problem
            told += f": {problem}" if problem else ""
            told += "; gangs that need it wait" if reflector.name in given_up else ""
            yield Check(name=reflector.name, good=status.synced, told=told)
        status_of_cache = self._publisher.status
        good = status_of_cache.connected
        yield Check(
            name="cache",
            good=good,
            told="takes writes" if good else status_of_cache.problem or "not asked yet",
        )
        term, holder = self._term(), self._elector.status.holder
        yield Check(
            name="leader",
            good=True,
            told=f"leads in term {term}"
            if term is not None
            else f"stands by for {holder or 'nobody'}",
        )
        settled = self._wanted.settled() if term is not None else self._wanted.complete()
        told = (
            f"{self._publisher.lag_s():.1f}s"
            if settled
            else "not all of the first lists is written yet"
        )
        yield Check(name="lag", good=settled, told=told)


def _home(lease: LeaseSettings) -> Target:
    """What stands for Surefoot itself: its Lease."""
    return Target(
        api_version="coordination.k8s.io/v1",
        kind="Lease",
        namespace=lease.place,
        name=lease.name,
    )
