"""Quantities: Kubernetes' grammar, whole units of extended resources, amounts of all others."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.wire.quantities import (
    MAX_AMOUNT,
    MAX_UNITS,
    Quantity,
    QuantityError,
    amount,
    units,
)


@pytest.mark.parametrize(
    ("quantity", "count"),
    [
        ("8", 8), (8, 8), (8.0, 8), ("+4", 4), ("008", 8), ("8.", 8), ("8.000", 8), ("0", 0),
        ("-0", 0), ("0.0m", 0), (".5k", 500), ("2k", 2000), ("1Ki", 1024), ("0.5Ki", 512),
        ("8000m", 8), ("8000000u", 8), ("8000000000n", 8), ("8e0", 8), ("80e-1", 8), ("8E0", 8),
        ("1e3", 1000), ("0e999999999", 0), ("0E", 0), ("1M", 1_000_000), (str(MAX_UNITS), MAX_UNITS),
    ],
)  # fmt: skip
def test_whole_quantities_are_exact(quantity: Quantity, count: int) -> None:
    """Every way to write a whole number of units is read exactly."""
    assert units(quantity) == count


@pytest.mark.parametrize(
    ("quantity", "problem"),
    [
        (None, "got null"),
        (True, "got a bool"),
        ("", "is no quantity"),
        (".", "is no quantity"),
        ("eight", "is no quantity"),
        ("8 ", "is no quantity"),
        ("8Gb", "is no quantity"),
        ("1e3k", "is no quantity"),
        ("0x8", "is no quantity"),
        ("٨", "is no quantity"),
        ("1_000", "is no quantity"),
        ("8\n", "is no quantity"),
        (math.nan, "is no quantity"),
        (math.inf, "is no quantity"),
        ("-2", "is negative"),
        (-2, "is negative"),
        ("1.5", "is not a whole number"),
        (1.5, "is not a whole number"),
        ("1500m", "is not a whole number"),
        ("1e-999999999", "is not a whole number"),
        ("1e308", "is more than"),
        (1e308, "is more than"),
        ("1E", "is more than"),
        ("9e999999999", "is more than"),
        (str(MAX_UNITS + 1), "is more than"),
        pytest.param(10**5000, "a number beyond", id="5001 digits"),
        ("1" * 65, "at most 64 characters"),
    ],
)
def test_what_no_device_can_be_asked_for_is_refused_with_a_sentence(
    quantity: Quantity, problem: str
) -> None:
    """Negative, fractional, null, huge and nonsense quantities raise a named error."""
    with pytest.raises(QuantityError, match=problem):
        units(quantity)


@given(st.integers(0, MAX_UNITS))
def test_any_spelling_of_a_count_is_that_count(count: int) -> None:
    """Integer, text, milli-units and exponent all say the same."""
    spellings = (count, str(count), f"+{count}", f"{count}000m", f"{count}.0", f"{count}0e-1")
    assert {units(spelling) for spelling in spellings} == {count}


@given(st.text(max_size=80) | st.text("0123456789.eE+-kKMimun", max_size=70) | st.floats())
def test_any_input_is_a_count_or_a_quantity_error(quantity: str | float) -> None:
    """Nothing but a count in range or `QuantityError` comes out."""
    try:
        count = units(quantity)
    except QuantityError as error:
        assert str(error)  # noqa: PT017  # a refusal is as good as a count
    else:
        assert 0 <= count <= MAX_UNITS


@pytest.mark.parametrize(
    ("quantity", "value", "thousandths"),
    [
        ("2", 2, 2000),
        ("1.5", 2, 1500),
        ("100m", 1, 100),
        ("1u", 1, 1),
        ("0", 0, 0),
        ("-0", 0, 0),
        ("1e-999999999", 1, 1),
        ("1Gi", 1 << 30, 1000 << 30),
        ("1e3", 1000, 1_000_000),
        (3, 3, 3000),
        ("8Ei", MAX_AMOUNT, MAX_AMOUNT),
    ],
)
def test_amounts_are_rounded_up(quantity: Quantity, value: int, thousandths: int) -> None:
    """As Kubernetes' Value and MilliValue do, which stop where 64 bits do."""
    assert (amount(quantity), amount(quantity, thousandths=True)) == (value, thousandths)


@pytest.mark.parametrize("quantity", [None, True, "", "lots", "-1", "1" * 65, 2**70])
def test_what_is_no_amount_is_an_error(quantity: Quantity) -> None:
    """As for whole units."""
    with pytest.raises(QuantityError):
        amount(quantity)
