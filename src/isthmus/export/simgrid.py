"""SimGrid: a schedule as a time-independent trace for `smpirun -replay`, and a machine.

On the platform below, with `SMPIRUN_OPTIONS`, SimGrid computes the single-port
alpha-beta model as long as a rank has a single message in each direction at a time.
Several messages share a link in SimGrid, but queue at a port in isthmus: `turns=True`
writes messages in sequence, so that the two models agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from ..cost.machine import Machine
from ..schedules.ir import Comm, Recv, Reduce, Round, Send
from ..schedules.schedule import Schedule

#: bytes that SMPI adds to every message
ENVELOPE_BYTES = 16
#: a flow model without correction factors, and no buffering of short messages
SMPIRUN_OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1",
    "--cfg=network/weight-S:0",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/crosstraffic:no",
    "--cfg=smpi/async-small-thresh:0",
    "--cfg=smpi/send-is-detached-thresh:0",
    "--cfg=maxmin/precision:1e-9",
)


def _line(c: Comm, unit: int) -> str:
    """A message as an action; tag 0, since messages of a pair match in order."""
    if isinstance(c, Send):
        return f"isend {c.to} 0 {unit * sum(s.size for s in c.data)}"
    if isinstance(c, Recv):
        return f"irecv {c.frm} 0 {unit * sum(s.size for s in c.data)}"
    raise ValueError("the stage 'library' has no trace: nobody knows what it does")


def _turns(comm: tuple[Comm, ...]) -> Iterator[tuple[Comm, ...]]:
    """The k-th receive together with the k-th send, for every k."""
    recvs = [c for c in comm if isinstance(c, Recv)]
    sends = [c for c in comm if not isinstance(c, Recv)]
    for pair in zip_longest(recvs, sends):
        yield tuple(c for c in pair if c is not None)


def _round(r: Round, unit: int, turns: bool) -> Iterator[str]:
    """The actions of a rank in a round, receives before sends."""
    for comm in _turns(r.comm) if turns else (r.comm,):
        recvs_first = sorted(comm, key=lambda c: not isinstance(c, Recv))
        yield from (_line(c, unit) for c in recvs_first)
        if comm:
            yield "waitall"
    reduced = sum(s.dst.size for s in r.then if isinstance(s, Reduce))
    if reduced:
        yield f"compute {unit * reduced}"


def trace(schedule: Schedule, unit: int = 1, turns: bool = False) -> str:
    """All ranks' actions as a time-independent trace; an element has `unit` bytes.

    With `turns`, a rank's k-th receive and send of a round end before the next begin.
    """
    lines: list[str] = []
    for rank, rounds in enumerate(schedule.all_ranks()):
        actions = (line for r in rounds for line in _round(r, unit, turns))
        lines += (f"{rank} {line}" for line in ("init", *actions, "finalize"))
    return "\n".join(lines) + "\n"


def platform(model: Machine, n: int) -> str:
    """The XML text of n hosts with full-duplex links, as fast as a machine.

    A message crosses two links and carries an envelope, so that alpha is twice the
    latency plus the time of the envelope. Reducing a byte is a flop.
    """
    latency = (model.alpha - ENVELOPE_BYTES * model.beta) / 2
    if n < 1 or latency < 0 or model.beta <= 0:
        raise ValueError(
            f"SimGrid needs n >= 1, beta > 0 and alpha >= {ENVELOPE_BYTES} beta, "
            f"not n = {n}, beta = {model.beta}, alpha = {model.alpha}"
        )
    speed = 1 / model.gamma if model.gamma else 1e30
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1">\n'
        f'  <cluster id="isthmus" prefix="rank" suffix="" radical="0-{n - 1}"\n'
        f'           speed="{speed!r}f" bw="{1 / model.beta!r}Bps"\n'
        f'           lat="{latency!r}s" sharing_policy="SPLITDUPLEX"/>\n'
        "</platform>\n"
    )


def hosts(n: int) -> str:
    """The text of the host file for `smpirun -hostfile`: rank r on the r-th host."""
    return "".join(f"rank{r}\n" for r in range(n))
