"""The starts of messages without shared ports, in waves.

A wave is all messages that are next at both ports. The messages of a wave move at once,
so that a wave takes a few numpy calls. Sends and receives of a rank take its two ports
in the order of the round. If the orders of two ranks wait for each other, the first
sender's next message goes first, since MPI receives in any order.
"""

from __future__ import annotations

import numpy as np

from .messages import Messages


def waves(
    messages: Messages,
    port_times: tuple[np.ndarray, np.ndarray],
    ranks_free: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """When each message starts.

    A message occupies the send port and the receive port for `port_times`; the ports of
    ranks are free from `ranks_free` on.
    """
    (send_times, recv_times), n = port_times, len(ranks_free[0])
    send_free, recv_free = ranks_free[0].copy(), ranks_free[1].copy()
    start = np.zeros(len(messages))
    by_target = messages.arrival.copy()
    next_send, last_send = _edges(messages.source, n)
    next_recv, last_recv = _edges(messages.target[by_target], n)
    left = len(messages)
    while left:
        senders = np.flatnonzero(next_send < last_send)
        heads = next_send[senders]
        targets = messages.target[heads]
        ready = by_target[np.minimum(next_recv[targets], len(messages) - 1)] == heads
        ready &= next_recv[targets] < last_recv[targets]
        wave = heads[ready]
        if not len(wave):
            first, front = int(heads[0]), int(next_recv[targets[0]])
            place = front + int(np.argmax(by_target[front:] == first))
            by_target[front : place + 1] = np.roll(by_target[front : place + 1], 1)
            continue
        source, target = messages.source[wave], messages.target[wave]
        begin = np.maximum(send_free[source], recv_free[target])
        start[wave] = begin
        send_free[source] = begin + send_times[wave]
        recv_free[target] = begin + recv_times[wave]
        next_send[source] += 1
        next_recv[target] += 1
        left -= len(wave)
    return start


def _edges(ranks: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The begin and the end of each rank's messages in a list sorted by rank."""
    edges = np.searchsorted(ranks, np.arange(n + 1))
    return edges[:-1].copy(), edges[1:]
