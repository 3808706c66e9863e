"""The verification of a schedule: a run on marks, compared with the contract."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from ..schedules.ir import Library, Round, Span
from ..schedules.program import buffer_size, writes
from .contracts import Contract
from .errors import ScheduleError
from .marks import Memory, blank
from .reference_machine import run


class WrongResult(ScheduleError):
    """A schedule ends with data that its contract does not allow."""


def _describe(mark: np.void) -> str:
    if mark["lo"] < 0:
        return "nothing"
    index, lo, hi = (int(mark[name]) for name in ("index", "lo", "hi"))
    if "who" in (mark.dtype.names or ()):
        bit_words = mark["who"].tolist()
        ranks = [r for r in range(lo, hi) if bit_words[r // 64] >> r % 64 & 1]
        return f"element {index} of ranks {', '.join(map(str, ranks))}"
    who = f"rank {lo}" if hi == lo + 1 else f"ranks {lo} to {hi - 1}"
    return f"element {index} of {who}"


def _contains(span: Span, buf: str, index: int) -> bool:
    return span.buf == buf and span.start <= index < span.start + span.size


def _last_writer(rounds: Sequence[Round], buf: str, index: int) -> str:
    """The last round that wrote an element, in words."""
    for k in reversed(range(len(rounds))):
        r = rounds[k]
        library = any(isinstance(c, Library) for c in r.comm) and buf == "recv"
        spans = [*writes(r), *(s.dst for s in r.then)]
        if library or any(_contains(s, buf, index) for s in spans):
            return f"round {k} wrote it"
    return "no round wrote it"


def memories(
    programs: Sequence[Sequence[Round]], contract: Contract, nodes: Sequence[Hashable]
) -> list[Memory]:
    """The memory of each rank at the start; ranks of a node share the buffer "node".

    Buffers are copies, since the arrays of a contract serve for several runs.
    """
    node_of_rank = nodes or range(len(programs))
    sizes: dict[Hashable, int] = {}
    for node, rounds in zip(node_of_rank, programs, strict=True):
        sizes[node] = max(sizes.get(node, 0), buffer_size(rounds, "node"))
    shared = {node: blank(n, contract.mark) for node, n in sizes.items()}
    memory = []
    for r, (node, rounds) in enumerate(zip(node_of_rank, programs, strict=True)):
        start = {name: buf.copy() for name, buf in contract.before(r).items()}
        scratch = blank(buffer_size(rounds, "tmp"), contract.mark)
        memory.append({**start, "tmp": scratch, "node": shared[node]})
    return memory


def verify(
    programs: Sequence[Sequence[Round]],
    contract: Contract,
    nodes: Sequence[Hashable] = (),
) -> None:
    """Raise a `ScheduleError` unless all ranks keep the contract.

    `nodes` has the node of each rank; without it, each rank is on a node alone.
    """
    memory = memories(programs, contract, nodes)
    for r, known_begun in enumerate(run(programs, memory, nodes)):
        unknown = [
            peer for peer in contract.waits_for(r) if not known_begun >> peer & 1
        ]
        if unknown:
            raise WrongResult(f"rank {r} may end before rank {unknown[0]} has begun")
    for r, rounds in enumerate(programs):
        for buf, wanted in contract.after(r).items():
            wrong = np.flatnonzero(memory[r][buf] != wanted)
            if len(wrong):
                i = int(wrong[0])
                raise WrongResult(
                    f"rank {r}: {buf}[{i}] holds {_describe(memory[r][buf][i])}, must "
                    f"hold {_describe(wanted[i])} ({_last_writer(rounds, buf, i)}; "
                    f"{len(wrong)} of {len(wanted)} elements are wrong)"
                )
