"""The fields of a redistribution that lie on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import on_devices
from . import staged
from .libraries import library
from .staged import Copies

if TYPE_CHECKING:
    from ...context.context import Context


def located(
    make: Callable[..., Any],
    context: Context,
    fields: list[Any],
    n: int,
    *,
    may_pack: bool,
) -> Any:
    """The call on fields, of which the first n are sent and the others are received.

    Where the MPI library takes device memory and all fields are on one device, their
    own library packs them there, if nothing else is done with them; else they are
    copied to the host and back.
    """
    if context.device == "refuse":
        on_devices.refuse()
    places = on_devices.among(tuple(fields))
    if context.device == "direct" and may_pack:
        packer = library(fields) if len(places) == len(fields) else None
        if packer is not None:
            known = [packer.described(x, i >= n) for i, x in enumerate(fields)]
            return make(known[:n], known[n:], packer=packer)
    stands = [staged.standing(fields[i], i >= n) for i in places]
    for i, x in zip(places, stands, strict=True):
        fields[i] = x.host
    written = [i >= n for i in places]
    copies = Copies(
        stands,
        written=written,
        read=[not x for x in written],
        arrays={place: k for k, place in enumerate(places)},
    )
    return make(fields[:n], fields[n:], copies=copies)
