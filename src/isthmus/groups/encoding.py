"""Canonical encodings: colours and keys as bytes in the order of the values.

Two values have equal bytes if and only if Python calls them equal: `1`, `1.0` and
`True` are one colour, `"1"` is another. Where Python gives no order, kinds come as
None, numbers, str, bytes, tuples, then registered types by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .compare import Code, Compare, Compared, has_comparison

_NONE_TAG = b"\x01"
_STR_TAG = b"\x20"
_BYTES_TAG = b"\x30"
_TUPLE_TAG = b"\x40"
_OTHER_TAG = b"\x50"
_MINUS_INFINITY = b"\x10"
_NEGATIVE_TAG = b"\x11"
_ZERO_TAG = b"\x12"
_POSITIVE_TAG = b"\x13"
_INFINITY = b"\x14"
#: below every kind, so a tuple comes before its continuations
_END_OF_TUPLE = b"\x00"
#: a zero byte is written as two bytes, so that nothing in a string reads as its end
_ESCAPED_ZERO, _END_OF_STRING = b"\x00\xff", b"\x00\x01"
_EXPONENT_BIAS, _EXPONENT_BYTES = 1 << 31, 4
_COMPLEMENT = bytes(range(255, -1, -1))

_encodings: dict[type, Callable[[Any], Any]] = {}


def register_encoding(kind: type, form: Callable[[Any], Any]) -> None:
    """Let values of a type be colours and keys: `form` returns the value to encode.

    The value returned by `form` has an encoding of its own, which defines equality and
    order. Every process must register the same function.
    """
    if not isinstance(kind, type) or kind.__module__ == "builtins":
        raise TypeError(f"{kind!r} is not a class of your own")
    _encodings[kind] = form


def canonical(value: Any, role: str = "", compare: Compare | None = None) -> Code:
    """A colour or key in the form to be sent, compared and hashed."""
    if compare is not None and value is not None:
        return Compared.of(value, role, compare)
    return Compared.of(value) if has_comparison(type(value)) else encode(value)


def encode(value: Any) -> bytes:
    """The canonical bytes of a value; TypeError or ValueError if it has none."""
    for kind in type(value).__mro__:
        if kind in _encodings:
            form = encode(_encodings[kind](value))
            return _OTHER_TAG + _string(_name(kind).encode()) + form
    if value is None:
        return _NONE_TAG
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, str):
        return _STR_TAG + _string(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, (bytes, bytearray)):
        return _BYTES_TAG + _string(bytes(value))
    if isinstance(value, tuple):
        return _TUPLE_TAG + b"".join(map(encode, value)) + _END_OF_TUPLE
    if isinstance(value, np.generic) and isinstance(
        value.item(), (int, float, str, bytes)
    ):
        return encode(value.item())
    raise TypeError(
        f"{value!r} of type {_name(type(value))} has no canonical form: "
        "use int, float, str, bytes, None or tuples of them, or register its type"
    )


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _string(data: bytes) -> bytes:
    """The bytes of a string, with an end that no string contains."""
    return data.replace(b"\x00", _ESCAPED_ZERO) + _END_OF_STRING


def _number(value: int | float) -> bytes:
    """A number as sign, exponent and the bits behind, whatever its type."""
    if value != value:
        raise ValueError("nan has no canonical form: it is not equal to itself")
    if value in (math.inf, -math.inf):
        return _INFINITY if value > 0 else _MINUS_INFINITY
    top, bottom = value.as_integer_ratio()  # bottom is a power of two
    if top == 0:
        return _ZERO_TAG
    bits = abs(top).bit_length()
    exponent = bits - (bottom.bit_length() - 1)
    if exponent >= _EXPONENT_BIAS:
        raise ValueError("an integer of more than 2**31 bits has no canonical form")
    whole = abs(top) << -bits % 8
    digits = whole.to_bytes(-(-bits // 8), "big").rstrip(b"\x00")
    body = (exponent + _EXPONENT_BIAS).to_bytes(_EXPONENT_BYTES, "big") + _string(
        digits
    )
    return (
        _POSITIVE_TAG + body if top > 0 else _NEGATIVE_TAG + body.translate(_COMPLEMENT)
    )


def integer(code: Code) -> int:
    """The integer of a code; ValueError if the code is of another value."""
    if isinstance(code, bytes):
        if code == _ZERO_TAG:
            return 0
        if code[:1] in (_POSITIVE_TAG, _NEGATIVE_TAG):
            return _integer(code)
    raise ValueError("not an integer")


def _integer(code: bytes) -> int:
    """The integer of a code of a nonzero number."""
    sign, body = (
        (1, code[1:])
        if code[:1] == _POSITIVE_TAG
        else (-1, code[1:].translate(_COMPLEMENT))
    )
    exponent = int.from_bytes(body[:_EXPONENT_BYTES], "big") - _EXPONENT_BIAS
    digits = body[_EXPONENT_BYTES : -len(_END_OF_STRING)].replace(
        _ESCAPED_ZERO, b"\x00"
    )
    shift = exponent - 8 * len(digits)
    whole = int.from_bytes(digits, "big")
    if shift < 0 and whole & ((1 << -shift) - 1):
        raise ValueError("not an integer")
    return sign * (whole << shift if shift >= 0 else whole >> -shift)
