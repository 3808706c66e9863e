"""The algorithm of a call: the one that is asked for, or the one that is chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...choose.between import FLAT, LIBRARY_CALL, WITH_NODE_MEMORY, check, untried
from ...choose.choose import Choice
from ...collectives.collective import VECTOR
from ...collectives.records import COLLECTIVES
from .readers import BLOCKING

if TYPE_CHECKING:
    from ..context.inter import InterContext

#: up to so many bytes the library's own Bcast takes less than any of ours, which ask
#: the other group whether they may begin: 9 and 12 µs against 24 and 22 for 4 KiB. For
#: 16 KiB it is 28 and 16 against 21 (8 + 8 ranks on 16 cores, MPICH 5.0.2 and Open MPI
#: 5.0.11).
#: Nobody tries it, as ranks without a part in such a call cannot. Open MPI's Gather is
#: not left to it: it cuts data without a word where a rank sends too much.
SHORT_BCAST_BYTES = 1 << 13
_log = logging.getLogger("isthmus")


def chosen(
    c: InterContext,
    collective: str,
    name: str,
    form: str,
    nbytes: int,
    flat: Callable[[], Choice],
    commutative: bool = True,
    *,
    may_be_native: bool = True,
) -> tuple[str, bool]:
    """The algorithm of a call between groups, and whether it is the library's own.

    The library's own nonblocking calls between groups are not a candidate: after one
    with a root, in which some ranks have no part, the next one hangs (MPICH 5.0.2, Open
    MPI 5.0.11).
    """
    if name != "auto":
        check(collective, name, commutative)
        return name, False
    record = COLLECTIVES[collective]
    choice, times = flat(), c.times.get(record.tried_as)
    may_be_native &= form == BLOCKING
    if times is None:
        is_bcast = record.is_rooted and record.gives == VECTOR and not record.combines
        is_short = is_bcast and nbytes <= SHORT_BCAST_BYTES
        if is_short and form == BLOCKING:
            log_choice(
                collective, Choice(LIBRARY_CALL, f"for {nbytes} bytes of a root")
            )
            return LIBRARY_CALL, True
        # two have one message; of irregular calls, some ranks would have to ask
        has_many = c.size > 2 and not record.is_irregular
        if commutative and c.node_memory and has_many:
            choice = untried(choice, c.per_byte(collective))
        log_choice(collective, choice)
        return choice.name, choice.name == LIBRARY_CALL
    candidates = [FLAT, WITH_NODE_MEMORY] if commutative else [FLAT]
    # copies from and to devices run beside our rounds, not beside the library's call
    is_staged = c.devices and nbytes > c.cut
    if may_be_native and not is_staged:
        candidates.append(LIBRARY_CALL)
    choice = times.best(nbytes, choice, candidates)
    log_choice(collective, choice)
    return choice.name, choice.name == LIBRARY_CALL


def log_choice(what: str, choice: Choice) -> None:
    """Say what was chosen, and why."""
    _log.debug("%s: %s", what, choice)
