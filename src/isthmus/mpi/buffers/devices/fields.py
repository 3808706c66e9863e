"""Fields of a redistribution on a device: packed there, or copied to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .. import on_devices
from . import staged
from .libraries import library
from .staged import Copies

if TYPE_CHECKING:
    from ...context.context import Context


LocatedCall = TypeVar("LocatedCall")


def located(
    make: Callable[..., LocatedCall],
    context: Context,
    fields: list[Any],
    n: int,
    *,
    may_pack: bool,
) -> LocatedCall:
    """The call on fields, of which the first n are sent and the rest are received.

    If the MPI library takes device memory, `may_pack` allows packing, and all fields
    are on a single device, the library of the fields packs on the device. Otherwise
    fields are copied to the host and back.
    """
    if context.device == "refuse":
        on_devices.refuse()
    places = on_devices.among(tuple(fields))
    if context.device == "direct" and may_pack:
        packer = library(fields) if len(places) == len(fields) else None
        if packer is not None:
            described = [packer.described(x, i >= n) for i, x in enumerate(fields)]
            return make(described[:n], described[n:], packer=packer)
    stand_ins = [staged.standing(fields[i], i >= n) for i in places]
    for i, stand_in in zip(places, stand_ins, strict=True):
        fields[i] = stand_in.host
    written = [i >= n for i in places]
    copies = Copies(
        stand_ins,
        written=written,
        read=[not is_written for is_written in written],
        arrays={place: k for k, place in enumerate(places)},
    )
    return make(fields[:n], fields[n:], copies=copies)
