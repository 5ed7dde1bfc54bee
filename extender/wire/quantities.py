"""Resource quantities of Kubernetes: `units` of resources that come whole, `amount` of all others.

The grammar is that of k8s.io/apimachinery, pkg/api/resource: a decimal number with a binary suffix
(`Ki`), a decimal suffix (`k`, `m`) or a decimal exponent (`e3`). An extended resource has to come
out whole and not negative (Kubernetes' ValidateResourceQuantityValue), so `2k` and `1000m` are
legal and `1.5` is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

Quantity: TypeAlias = str | int | float | None
"""A quantity as JSON or YAML may hold it; what Kubernetes itself writes is a string."""

MAX_UNITS: Final = 2**31 - 1
"""More devices than any cluster has; it keeps every sum within 64 bits."""
MAX_AMOUNT: Final = 2**63 - 1
"""Where Kubernetes stops counting."""

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)
_LONGEST: Final = 64
"""Characters of a quantity; the exponent is bounded apart, so that 10 ** exponent stays small."""
_MAX_EXPONENT: Final = 2 * _LONGEST

_DECIMAL: Final[Mapping[str, int]] = {
    "": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final[Mapping[str, int]] = {
    "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60,
}  # fmt: skip


class QuantityError(ValueError):
    """A quantity that the resource cannot have; the message says why."""


def units(quantity: Quantity) -> int:
    """`quantity` as a whole number, 0 to `MAX_UNITS`; raises `QuantityError`."""
    text, mantissa, exponent = _read(quantity, MAX_UNITS)
    value, rest = _scaled(mantissa, exponent)
    if rest:
        raise QuantityError(f"{text!r} is not a whole number")
    if value > MAX_UNITS:
        raise QuantityError(f"{text!r} is more than {MAX_UNITS}")
    return value


@lru_cache(maxsize=4096, typed=True)
def amount(quantity: Quantity, *, thousandths: bool = False) -> int:
    """`quantity`, or its thousandths, rounded up as Kubernetes does (Quantity.Value, MilliValue),
    `MAX_AMOUNT` at most; raises `QuantityError`.
    """
    _, mantissa, exponent = _read(quantity, MAX_AMOUNT)
    value, rest = _scaled(mantissa, exponent + (3 if thousandths else 0))
    return min(value + bool(rest), MAX_AMOUNT)


def _read(quantity: Quantity, largest: int) -> tuple[str, int, int]:
    """The text of a quantity that is not negative, and it as mantissa and decimal exponent."""
    if quantity is None or isinstance(quantity, bool):
        raise QuantityError(
            f"a quantity is expected, got {'null' if quantity is None else 'a bool'}"
        )
    if isinstance(quantity, int) and abs(quantity) > largest:  # before it is made into text
        raise QuantityError(f"a number beyond {largest}")
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > _LONGEST:
        raise QuantityError(f"a quantity has at most {_LONGEST} characters, got {len(text)}")
    match = _GRAMMAR.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"{text!r} is no quantity")
    part, suffix = match["part"] or "", match["suffix"] or ""
    mantissa = int(f"{match['whole']}{part}") << _BINARY.get(suffix, 0)
    if mantissa and match["sign"] == "-":
        raise QuantityError(f"{text!r} is negative")
    exponent = int(match["exponent"] or 0) + _DECIMAL.get(suffix, 0) - len(part)
    return text, mantissa, max(-_MAX_EXPONENT, min(exponent, _MAX_EXPONENT))


def _scaled(mantissa: int, exponent: int) -> tuple[int, int]:
    """The whole part, and something that is 0 where there is no rest."""
    if exponent >= 0:
        return mantissa * int(10**exponent), 0
    return divmod(mantissa, int(10**-exponent))
