"""Canonical forms: equal where Python says equal, in Python's order."""

from __future__ import annotations

import enum
import functools
import math
import uuid
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chains import in_order
from isthmus.groups import compare, encoding
from isthmus.groups.compare import Compared, register_comparison
from isthmus.groups.encoding import canonical, encode, integer, register_encoding

NUMBERS = st.integers() | st.floats(allow_nan=False) | st.booleans()
TEXT = st.text(st.characters(), max_size=6)  # lone surrogates too
SIMPLE = st.none() | NUMBERS | TEXT | st.binary(max_size=6)
VALUES = st.recursive(
    SIMPLE, lambda x: st.lists(x, max_size=3).map(tuple), max_leaves=6
)


@given(VALUES, VALUES)
def test_order_and_equality_are_pythons(x, y):
    assert (encode(x) == encode(y)) == (x == y)
    assert (encode(x) < encode(y)) == (in_order(x) < in_order(y))


@given(NUMBERS, NUMBERS)
def test_numbers_of_all_types_are_in_one_order(x, y):
    assert (encode(x) < encode(y)) == (x < y)
    assert (encode((x, 1)) < encode((y, 1))) == (x < y)


@given(st.integers())
def test_an_integer_comes_back(x):
    assert integer(encode(x)) == x
    assert integer(encode(x * 256**3)) == x * 256**3


@pytest.mark.parametrize("x", [0.5, -2.25, 1e-300, "1", b"1", None, (1,), math.inf])
def test_what_is_no_integer_does_not(x):
    with pytest.raises(ValueError, match="not an integer"):
        integer(encode(x))


def test_one_colour_and_another():
    assert encode(1) == encode(1.0) == encode(True) == encode(np.int8(1))
    assert len({encode(x) for x in (1, "1", b"1", (1,), None)}) == 5
    assert encode(0.0) == encode(-0.0) == encode(False) == encode(0)
    assert encode("a") != encode("a\0") and encode(b"") != encode(b"\0")
    assert encode(2**53) != encode(2**53 + 1)  # a float could not tell them
    assert encode(float(2**53)) == encode(2**53)


def test_kinds_are_in_order():
    values = [None, -math.inf, -1, 0.5, math.inf, "", "a", b"", b"a", (), (None,), (1,)]
    assert sorted(values, key=encode) == values


@pytest.mark.parametrize(
    "value",
    [np.float32(0.1), np.str_("x"), np.bytes_(b"x"), np.bool_(True), np.uint64(2**63)],
)
def test_numpys_scalars_are_what_they_hold(value):
    assert encode(value) == encode(value.item())


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {1: 2},
        {1},
        object(),
        1j,
        Fraction(1, 2),
        np.zeros(1),
        np.datetime64("2020-01-01"),
        (1, [2]),
        len,
    ],
)
def test_what_has_no_canonical_form(value):
    with pytest.raises(TypeError, match="has no canonical form"):
        canonical(value)


@pytest.mark.parametrize("value", [math.nan, (1, math.nan), np.float64("nan")])
def test_not_a_number_is_refused(value):
    with pytest.raises(ValueError, match="nan has no canonical form"):
        canonical(value)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_subclasses_of_numbers_are_numbers():
    assert encode(Level.HIGH) == encode(2)


@pytest.fixture
def registries(monkeypatch):
    monkeypatch.setattr(encoding, "_encodings", {})
    monkeypatch.setattr(compare, "_comparisons", {})


def test_a_registered_encoding(registries):
    register_encoding(uuid.UUID, lambda u: u.bytes)
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    assert encode(first) == encode(uuid.UUID(int=1))
    assert encode(first) < encode(second) and encode((first, 1)) < encode((second, 0))
    assert encode(first) != encode(first.bytes)


class Version:
    """Compared by number only; the note does not matter."""

    def __init__(self, number, note=""):
        self.number, self.note = number, note


def backwards(x, y):
    return y.number - x.number


def test_a_registered_comparison(registries):
    register_comparison(Version, backwards)
    values = [Version(1, "a"), Version(3), Version(1, "b"), Version(2)]
    codes = [canonical(v) for v in values]
    assert isinstance(codes[0], Compared) and codes[0] == codes[2]
    assert [c.value.number for c in sorted(codes)] == [3, 2, 1, 1]
    assert encode((9,)) < codes[0] and codes[0] > encode("z")
    assert codes[0] != encode("z") and codes[0].nbytes > 0


def test_what_cannot_be_registered(registries):
    for register in (register_encoding, register_comparison):
        for kind in (int, tuple, "Version"):
            with pytest.raises(TypeError, match="not a class of your own"):
                register(kind, functools.partial(int))


def test_a_comparison_needs_what_can_be_sent(registries):
    register_comparison(Version, backwards)
    with pytest.raises(Exception, match="pickle"):
        canonical(Version(1, lambda: 0))
    with pytest.raises(TypeError, match="has no canonical form"):
        canonical((Version(1), 2))  # only whole colours and keys are compared
