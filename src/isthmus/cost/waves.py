"""Messages that share no port with those of other ranks: in waves.

Every message that is next at both its ports moves, all of a wave at once. Sends take
the port of their rank in the order of its round, and so do receives. If these orders
wait for each other, the first sender's next message goes first: MPI takes what comes.
"""

from __future__ import annotations

import numpy as np

from .messages import Messages


def _heads(who: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each rank's messages begin and end in a list sorted by rank."""
    edges = np.searchsorted(who, np.arange(n + 1))
    return edges[:-1].copy(), edges[1:]


def waves(
    m: Messages,
    held: tuple[np.ndarray, np.ndarray],
    free: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """When each message starts; they take the send and the receive ports as long as
    `held` says, which are free from `free` on."""
    (out, into), n = held, len(free[0])
    sends, recvs = free[0].copy(), free[1].copy()
    start = np.zeros(len(m))
    by_target = m.arrival.copy()
    next_send, last_send = _heads(m.source, n)
    next_recv, last_recv = _heads(m.target[by_target], n)
    left = len(m)
    while left:
        senders = np.flatnonzero(next_send < last_send)
        heads = next_send[senders]
        targets = m.target[heads]
        ready = by_target[np.minimum(next_recv[targets], len(m) - 1)] == heads
        ready &= next_recv[targets] < last_recv[targets]
        moved = heads[ready]
        if not len(moved):
            first, at = int(heads[0]), int(next_recv[targets[0]])
            place = at + int(np.argmax(by_target[at:] == first))
            by_target[at : place + 1] = np.roll(by_target[at : place + 1], 1)
            continue
        source, target = m.source[moved], m.target[moved]
        begin = np.maximum(sends[source], recvs[target])
        start[moved] = begin
        sends[source], recvs[target] = begin + out[moved], begin + into[moved]
        next_send[source] += 1
        next_recv[target] += 1
        left -= len(moved)
    return start
