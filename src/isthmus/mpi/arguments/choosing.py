"""The algorithm of a call between two groups: named by the user, or chosen."""

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
    choose_flat: Callable[[], Choice],
    commutative: bool = True,
    *,
    may_be_native: bool = True,
) -> tuple[str, bool]:
    """The algorithm of a call between groups, and whether it is the library's own.

    `choose_flat` chooses among the algorithms without node memory. The library's own
    nonblocking calls between groups are no candidate, because after a call with a root,
    where some ranks have no part, the next call hangs (MPICH 5.0.2, Open MPI 5.0.11).
    """
    if algorithm != "auto":
        check(collective, algorithm, commutative)
        return algorithm, False
    record = COLLECTIVES[collective]
    choice, times = choose_flat(), context.times.get(record.tried_as)
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
            choice = untried(choice, context.per_byte(collective))
        log_choice(collective, choice)
        return choice.name, choice.name == LIBRARY_CALL
    candidates = [FLAT, WITH_NODE_MEMORY] if commutative else [FLAT]
    # copies from and to devices run beside rounds, not beside the library's call
    is_staged = context.devices and nbytes > context.cut
    if may_be_native and not is_staged:
        candidates.append(LIBRARY_CALL)
    choice = times.best(nbytes, choice, candidates)
    log_choice(collective, choice)
    return choice.name, choice.name == LIBRARY_CALL


def log_choice(operation: str, choice: Choice) -> None:
    """Log the algorithm chosen for an operation, and the reason."""
    _log.debug("%s: %s", operation, choice)
