"""The algorithm of a call between two groups: named by the user, or chosen."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...choose.choice import Choice, check, choice
from ...choose.tried import FLAT, LIBRARY_CALL, WITH_NODE_MEMORY, untried
from ...collectives.collective import VECTOR, Sizes
from ...collectives.records import COLLECTIVES
from ...schedules.hosts import Hosts
from .readers import BLOCKING

if TYPE_CHECKING:
    from ..context.inter import InterContext

#: the longest vector from or to a root for which the library's own call is faster than
#: every algorithm. Algorithms ask the remote group whether they may begin: a Bcast of
#: 4 KiB takes 24 and 22 µs by the best of them, 9 and 12 by the library; a Reduce of
#: 8 B 29 and 32 against 10 and 9, of 8 KiB 37 and 29 against 26 and 22 (8 + 8 ranks on
#: 16 cores, MPICH 5.0.2 and Open MPI 5.0.11).
#: A constant and no trial, as ranks without a part in such a call cannot try. Open
#: MPI's Gather has no such limit: it truncates data silently where a rank sends too
#: much.
SHORT_ROOTED_BYTES = 1 << 13
_log = logging.getLogger("isthmus")


def resolve_algorithm(
    context: InterContext,
    collective: str,
    algorithm: str,
    form: str,
    nbytes: int,
    sizes: Sizes,
    commutative: bool = True,
    *,
    may_be_native: bool = True,
    hosts: Hosts | None = None,
) -> tuple[str, bool]:
    """The algorithm of a call between groups, and whether it is the library's own.

    `nbytes` is the size that the trial goes by, and `hosts` those of a call with a
    root, if unequal. The library's own nonblocking calls between groups are no
    candidate, because after a call with a root, where some ranks have no part, the next
    call hangs (MPICH 5.0.2, Open MPI 5.0.11).
    """
    if algorithm != "auto":
        check(collective, algorithm, commutative)
        return algorithm, False
    record = COLLECTIVES[collective]
    is_ordered, times = not commutative, context.times.get(record.tried_as)
    flat = choice(record, sizes, context.machine, is_ordered=is_ordered, hosts=hosts)
    may_be_native &= form == BLOCKING
    if times is None:
        is_vector = record.is_rooted and record.gives == VECTOR
        if is_vector and nbytes <= SHORT_ROOTED_BYTES and form == BLOCKING:
            log_choice(
                collective, Choice(LIBRARY_CALL, f"for {nbytes} bytes of a root")
            )
            return LIBRARY_CALL, True
        # two ranks have one message; in irregular calls ranks would have to ask
        may_gain = context.size > 2 and not record.is_irregular
        if context.one_node:
            may_gain &= nbytes <= record.node_memory_bytes
        if commutative and context.node_memory and may_gain:
            flat = untried(flat, context.per_byte(collective))
        log_choice(collective, flat)
        return flat.name, flat.name == LIBRARY_CALL
    candidates = [FLAT, WITH_NODE_MEMORY] if commutative else [FLAT]
    # copies from and to devices run beside rounds, not beside the library's call
    is_staged = context.devices and nbytes > context.cut
    if may_be_native and not is_staged:
        candidates.append(LIBRARY_CALL)
    best = times.best(nbytes, flat, candidates)
    log_choice(collective, best)
    return best.name, best.name == LIBRARY_CALL


def log_choice(operation: str, choice: Choice) -> None:
    """Log the algorithm chosen for an operation, and the reason."""
    _log.debug("%s: %s", operation, choice)
