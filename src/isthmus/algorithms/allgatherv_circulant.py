"""Allgatherv by broadcasts from all ranks at once, on a circulant graph, in place."""

from __future__ import annotations

from math import isqrt

from ..ir import Index, Program, Recv, Round, Send, Span, Spans
from ..layout import Blocks, cut
from ..registry import algorithm
from .circulant import phase, receives, skips
from .patterns import STARTUP, log2


def _cuts(p: int, total: int, startup: float = STARTUP) -> int:
    """The number of parts for which n - 1 + q rounds of total / n are fastest."""
    return max(1, isqrt(int((log2(p) - 1) * total / startup))) if p > 1 else 1


def _circulant_cost(p: int, k: float, alpha: float, beta: float) -> float:
    rounds = _cuts(p, int(p * k)) - 1 + log2(p)
    return rounds * alpha + (p - 1) * k * beta


@algorithm("allgatherv", paper="Träff 2025, circulant graphs", cost=_circulant_cost)
def circulant(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP
) -> Program:
    """Every block in n parts; in each round all roots' broadcasts advance together.

    n - 1 + ceil(log2 p) rounds, whatever the distribution; every part arrives once.
    """
    n = n or _cuts(p, blocks.total, startup)
    skip = skips(p)
    q = len(skip) - 1
    tables = [receives(p, v) for v in range(p)]
    last: dict[int, int] = {}
    for i in range(n - 1 + q if p > 1 else 0):
        k, shift = phase(p, n, i)
        parts = _parts(tables, last, n, i, k, shift)
        source, target = (r - skip[k]) % p, (r + skip[k]) % p
        yield Round(
            (
                Recv(source, _gathered(blocks, r, parts, n)),
                Send(target, _gathered(blocks, target, parts, n)),
            )
        )


def _parts(
    tables: list[tuple[int, ...]],
    last: dict[int, int],
    n: int,
    i: int,
    k: int,
    shift: int,
) -> list[tuple[int, int]]:
    """Of the root at each distance, the part that arrives in this round; the last part
    only in the first of the rounds that bring it."""
    found = []
    for v in range(1, len(tables)):
        part = min(tables[v][k] + shift, n - 1)
        if part < 0 or (part == n - 1 and last.setdefault(v, i) != i):
            continue
        found.append((v, part))
    return found


def _gathered(blocks: Blocks, r: Index, parts: list[tuple[int, int]], n: int) -> Spans:
    """Where the parts lie that arrive at r."""
    spans = []
    for v, part in parts:
        root = (r - v) % blocks.n
        m, at = blocks.size(root), blocks.offset(root)
        start = cut(m, n, part)
        spans.append(Span(blocks.buf, at + start, cut(m, n, part + 1) - start))
    return tuple(spans)
