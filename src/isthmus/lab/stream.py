"""Plain sockets between two hosts; `limits.py` runs this file inside namespaces.

`stream.py receive SKIP` prints its port, then alpha and the bytes a second after the
first SKIP; `stream.py send ADDRESS PORT BYTES` is the sending side.
"""

from __future__ import annotations

import socket
import sys
import time
from statistics import median

ROUND_TRIPS = 101
STREAM_CHUNK_BYTES = 1 << 18
SOCKET_TIMEOUT_SECONDS = 20.0


def receive(skip: int) -> None:
    """Time a byte to the sender and back, often; then receive the stream."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        server.settimeout(SOCKET_TIMEOUT_SECONDS)
        print(server.getsockname()[1], flush=True)
        peer, _ = server.accept()
    with peer:
        peer.settimeout(SOCKET_TIMEOUT_SECONDS)
        alpha = median(trip(peer) for _ in range(ROUND_TRIPS)) / 2
        print(alpha, rate(peer, skip))


def trip(peer: socket.socket) -> float:
    """The time of a byte to the peer and back."""
    start = time.perf_counter()
    peer.sendall(b"?")
    peer.recv(1)
    return time.perf_counter() - start


def rate(peer: socket.socket, skip: int) -> float:
    """The bytes a second of a stream after its first `skip` bytes.

    The first bytes are left out, since TCP begins slowly and the link lets a burst
    through.
    """
    total = skipped = 0
    first = last = 0.0
    while piece := peer.recv(STREAM_CHUNK_BYTES):
        total, last = total + len(piece), time.perf_counter()
        if not first and total >= skip:
            skipped, first = total, last
    return (total - skipped) / (last - first)


def send(address: str, port: int, size: int) -> None:
    """Return every byte, then send a stream."""
    with socket.create_connection((address, port), SOCKET_TIMEOUT_SECONDS) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(ROUND_TRIPS):
            peer.sendall(peer.recv(1))
        piece = bytes(STREAM_CHUNK_BYTES)
        for _ in range(0, size, STREAM_CHUNK_BYTES):
            peer.sendall(piece)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], *map(int, sys.argv[3:]))
