"""What `make bench-cluster` compares: kube-schedulers that differ in nothing but these lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from asking import Json
from e2e.schedulers import configuration, extender

SCHEDULER: Final = "default-scheduler"
CLIENT: Final[Json] = {"qps": 2000, "burst": 4000}
"""As in deploy/scheduler-config: with kube-scheduler's default of 50 that would be the limit."""
SAMPLED: Final[Json] = {"profiles": [{"schedulerName": SCHEDULER}]}
"""kube-scheduler looks at fewer nodes the more there are: at 5,000 at one in ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to schedule the pods."""

    name: str
    extender: Json | None = None
    """What differs from Surefoot's lines in the configuration; None: there is no extender."""
    profiles: Json | None = None
    """Instead of a profile that looks at every node."""
    nominated: bool = False
    """Whether each pod has its node in `status.nominatedNodeName` before its gate is lifted."""

    @property
    def judged(self) -> bool:
        """Whether Surefoot has a say."""
        return self.extender == {}

    def config(self, url: str) -> Json:
        """The KubeSchedulerConfiguration, with the extender at `url`."""
        extenders = [] if self.extender is None else [extender(url, **self.extender)]
        made = configuration(*extenders, names=(SCHEDULER,))
        return {**made, "clientConnection": CLIENT, **(self.profiles or {})}


NONE_ALL: Final = Variant(name="none_all")
NONE_SAMPLED: Final = Variant(name="none_sampled", profiles=SAMPLED)
SUREFOOT: Final = Variant(name="surefoot", extender={})

VARIANTS: Final = (
    NONE_ALL,
    NONE_SAMPLED,
    Variant(
        name="echo",
        extender={"filterVerb": "echo", "prioritizeVerb": "echo-scores", "preemptVerb": None},
    ),
    SUREFOOT,
    Variant(name="nominated", extender={}, nominated=True),
)
GANG_VARIANTS: Final = (SUREFOOT, NONE_ALL, NONE_SAMPLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How much faster one variant is to be than another one."""

    variant: str
    other: str
    ratio: float


GOALS: Final = (
    Goal(variant="surefoot", other="none_all", ratio=1.0),
    Goal(variant="surefoot", other="echo", ratio=2.0),
    Goal(variant="nominated", other="none_all", ratio=5.0),
)
