"""Which thresholds a sample trips, and which causes it speaks for."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from scoring.health.causes import CATALOGUE
from scoring.model import Health, Scope
from scoring.signals.catalogue import Signal
from scoring.signals.sampling import Sample
from scoring.signals.thresholds import THRESHOLDS, Comparison, Entry, Threshold

Levels = Mapping[Signal, float]
_Trips = Callable[[float, Levels], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One cause for which a sample gives reason."""

    cause: str
    state: Health
    scope: Scope
    entry: Entry
    evidence: str


def _trips(threshold: Threshold, ratio: float = 1.0) -> _Trips:
    """The threshold as a predicate of (value, all levels); `ratio` scales the trip level.

    A threshold that another signal holds is not tripped while that signal is not measured.
    """
    test, trip = threshold.test, threshold.trip
    if isinstance(trip, frozenset):
        return lambda value, _: _field(threshold, value) in trip
    if test is Comparison.ANY_BIT and not isinstance(trip, Signal):
        bits = int(trip)
        return lambda value, _: bool(int(value) & bits)
    compare = _COMPARE[test]
    if isinstance(trip, Signal):
        return lambda value, levels: trip in levels and compare(value, levels[trip] * ratio)
    constant = trip * ratio
    return lambda value, _: compare(value, constant)


_COMPARE: Final[Mapping[Comparison, Callable[[float, float], bool]]] = {
    Comparison.AT_LEAST: operator.ge,
    Comparison.ABOVE: operator.gt,
    Comparison.BELOW: operator.lt,
}


def _field(threshold: Threshold, value: float) -> int:
    shifted = int(value) >> threshold.shift
    return shifted if threshold.mask is None else shifted & threshold.mask


_Table = Mapping[Signal, tuple[tuple[_Trips, Threshold], ...]]


def _by_signal(thresholds: Iterable[Threshold]) -> _Table:
    table: defaultdict[Signal, tuple[tuple[_Trips, Threshold], ...]] = defaultdict(tuple)
    for threshold in thresholds:
        table[threshold.signal] += ((_trips(threshold), threshold),)
    return dict(table)


def _by_cause() -> Mapping[str, tuple[Threshold, ...]]:
    table: defaultdict[str, tuple[Threshold, ...]] = defaultdict(tuple)
    for threshold in THRESHOLDS:
        table[threshold.cause] += (threshold,)
    return dict(table)


_OF_LEVELS: Final = _by_signal(t for t in THRESHOLDS if t.entry is not Entry.RATE)
_OF_RATES: Final = _by_signal(t for t in THRESHOLDS if t.entry is Entry.RATE)
_OF_CAUSE: Final = _by_cause()
_NOTHING: Final[tuple[tuple[_Trips, Threshold], ...]] = ()


def breaches(sample: Sample) -> tuple[Breach, ...]:
    """What the sample gives reason for: one breach for each cause, its worst, by cause."""
    levels = sample.levels
    tripped = [
        (threshold, value)
        for table, values in ((_OF_LEVELS, levels), (_OF_RATES, sample.rates))
        for signal, value in values.items()
        for trips, threshold in table.get(signal, _NOTHING)
        if trips(value, levels)
    ]
    if not tripped:
        return ()
    found: dict[str, Breach] = {}
    for threshold, value in tripped:
        breach = _breach(threshold, value, levels)
        known = found.get(breach.cause)
        if known is None or _rank(breach) > _rank(known):
            found[breach.cause] = breach
    return tuple(found[cause] for cause in sorted(found))


def _rank(breach: Breach) -> tuple[Health, bool, bool, str]:
    """The worse, the wider (GPU before its links) and the more urgent breach ranks higher."""
    return (
        breach.state,
        not breach.scope.needs_peers,
        breach.entry is Entry.FLAG,
        breach.evidence,
    )


def _breach(threshold: Threshold, value: float, levels: Levels) -> Breach:
    spec = CATALOGUE[threshold.cause]
    unit = "/s" if threshold.entry is Entry.RATE else ""
    text = f"{threshold.signal} {value:.6g}{unit}"
    if isinstance(threshold.trip, Signal):
        text += f", limit {levels[threshold.trip]:.6g}{unit}"
    return Breach(
        cause=spec.id,
        state=spec.state if threshold.state is None else threshold.state,
        scope=threshold.scope or spec.scope,
        entry=threshold.entry,
        evidence=text,
    )


def calm(sample: Sample, cause: str, rate_ratio: float = 1.0) -> bool | None:
    """Whether the sample says that nothing of the cause is left; None: it does not speak of it.

    A rate must be below `rate_ratio` of its trip level (hysteresis); one that trips above 0 must be
    0.
    """
    spoken = False
    for threshold in _OF_CAUSE.get(cause, ()):
        is_rate = threshold.entry is Entry.RATE
        value = (sample.rates if is_rate else sample.levels).get(threshold.signal)
        limit = threshold.trip
        if value is None or (isinstance(limit, Signal) and limit not in sample.levels):
            continue
        spoken = True
        if _trips(threshold, rate_ratio if is_rate else 1.0)(value, sample.levels):
            return False
    return True if spoken else None
