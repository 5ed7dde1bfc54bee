"""Resource quantities of Kubernetes, for resources that come in whole units.

The grammar is that of k8s.io/apimachinery, pkg/api/resource: a decimal number with a binary suffix
(`Ki`), a decimal suffix (`k`, `m`) or a decimal exponent (`e3`). An extended resource has to come
out whole and not negative (Kubernetes' ValidateResourceQuantityValue), so `2k` and `1000m` are
legal and `1.5` is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

Quantity: TypeAlias = str | int | float | None
"""A quantity as JSON or YAML may hold it; what Kubernetes itself writes is a string."""

MAX_UNITS: Final = 2**31 - 1
"""More devices than any cluster has; it keeps every sum within 64 bits."""

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
    """A quantity that no extended resource can have; the message says why."""


def units(quantity: Quantity) -> int:
    """`quantity` as a whole number, 0 to `MAX_UNITS`; raises `QuantityError`."""
    if quantity is None or isinstance(quantity, bool):
        raise QuantityError(
            f"a quantity is expected, got {'null' if quantity is None else 'a bool'}"
        )
    if isinstance(quantity, int) and abs(quantity) > MAX_UNITS:  # before it is made into text
        raise QuantityError(f"a number beyond {MAX_UNITS}")
    text = quantity if isinstance(quantity, str) else repr(quantity)
    if len(text) > _LONGEST:
        raise QuantityError(f"a quantity has at most {_LONGEST} characters, got {len(text)}")
    match = _GRAMMAR.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"{text!r} is no quantity")
    value = _scaled(text, match)
    if value > MAX_UNITS:
        raise QuantityError(f"{text!r} is more than {MAX_UNITS}")
    if value and match["sign"] == "-":
        raise QuantityError(f"{text!r} is negative")
    return value


def _scaled(text: str, match: re.Match[str]) -> int:
    part, suffix = match["part"] or "", match["suffix"] or ""
    mantissa = int(f"{match['whole']}{part}")
    if mantissa == 0:
        return 0
    exponent = int(match["exponent"] or 0) + _DECIMAL.get(suffix, 0) - len(part)
    exponent = max(-_MAX_EXPONENT, min(exponent, _MAX_EXPONENT))
    mantissa <<= _BINARY.get(suffix, 0)
    if exponent >= 0:
        return mantissa * int(10**exponent)
    value, rest = divmod(mantissa, int(10**-exponent))
    if rest:
        raise QuantityError(f"{text!r} is not a whole number")
    return value
