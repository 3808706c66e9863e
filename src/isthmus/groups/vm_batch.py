"""The virtual machine for a batch: one dialogue for all ranks, as array operations.

Rounds, messages, bytes and times are counted as in `vm`. Element i of an array is of
rank i. All ranks take a step together, so both ends of a message must be in one step.
Where ranks share the port of a node, the messages of a node pass the port one after the
other, in the order of steps, and in a step in the order in which their ranks begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..verify.errors import BadMessage
from . import vm
from .batch import PerProcess, ProcessRow, Received, Shared, pick, size_of, take
from .chain import ChainLink
from .dialogue import AllgatherStep, Dialogue, ExchangeStep, PostStep, Step
from .run_result import RankTally
from .scans import Gathered


def _count(mask: np.ndarray) -> int:
    return int(np.count_nonzero(mask))


@dataclass(frozen=True)
class NodePorts:
    """Nodes with one port for all messages of their ranks with other nodes.

    `alpha` and `beta` are the costs of messages inside a node.
    """

    #: the node of each rank
    node: np.ndarray
    alpha: float
    beta: float


def _pass_port(
    ready: np.ndarray, wire: np.ndarray, node: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The times at which the messages of ranks have passed the ports of their nodes.

    A message is `ready` at a time and takes `wire` seconds; a port is free from `free`
    on, which is updated. Ranks without a message have passed when they are ready.
    """
    passed = ready.copy()
    ranks = np.flatnonzero(wire)
    if not len(ranks):
        return passed
    ranks = ranks[np.lexsort((ready[ranks], node[ranks]))]
    port, seconds = node[ranks], wire[ranks]
    work = np.cumsum(seconds)
    # the idle time of a port before a message, with the work of all messages before it;
    # an offset for each port keeps the running maxima of ports apart
    start = np.maximum(ready[ranks], free[port]) - (work - seconds)
    offset = (start.max() - start.min()) * np.unique(port, return_inverse=True)[1]
    end = np.maximum.accumulate(start + offset) - offset + work
    passed[ranks] = end
    free[port] = end  # of equal ports the last message counts
    return passed


@dataclass
class BatchRun:
    """The result and the tallies of a run: arrays with an element for each rank.

    A column of start-up times gives as many rows of times.
    """

    n: int
    alpha: Any
    beta: float
    nodes: NodePorts | None = None

    def __post_init__(self) -> None:
        self.result: Any = None
        self.rounds = np.zeros(self.n, np.int64)
        self.messages = np.zeros(self.n, np.int64)
        self.bytes = np.zeros(self.n, np.int64)
        self.time = np.zeros((*np.shape(self.alpha)[:-1], self.n))
        #: for each row of times, when ports of nodes are free to send and to receive
        self._free = [np.zeros((2, self.n)) for _ in np.atleast_2d(self.time)]

    def perform(self, step: Step | PerProcess) -> list[Any]:
        """The values received by all ranks in one step."""
        if isinstance(step, ExchangeStep):
            return self.exchange(step)
        if isinstance(step, PerProcess):
            return self.per_process(step)
        return self.post(step) if isinstance(step, PostStep) else self.allgather(step)

    def exchange(self, step: ExchangeStep) -> list[Any]:
        """Match sends and receives; a peer below 0 is none."""
        ranks = np.arange(self.n)
        sizes = [np.broadcast_to(size_of(x), self.n) for _, x in step.sends]
        outgoing = [
            (target, target >= 0, sent)
            for (target, _), sent in zip(step.sends, sizes, strict=True)
        ]
        received, incoming = [], []
        for source in step.recvs:
            is_receiver = source >= 0
            value = None
            size = np.zeros(self.n, np.int64)
            unmatched = _count(is_receiver)
            for (target, x), sent in zip(step.sends, sizes, strict=True):
                is_matched = is_receiver & (target.take(source) == ranks)
                count = _count(is_matched)
                if not count:
                    continue
                arrived = Received(x, source)
                value = (
                    arrived if value is None else pick(is_matched, arrived[:], value[:])
                )
                size += is_matched * sent.take(source)
                unmatched -= count
                if not unmatched:
                    break
            if unmatched:
                raise BadMessage(
                    f"{unmatched} ranks receive nothing from the rank they wait for"
                )
            received.append(value)
            incoming.append((source, is_receiver, size))
        if sum(_count(x[1]) for x in incoming) != sum(_count(x[1]) for x in outgoing):
            raise BadMessage("a message is sent to a rank that does not wait for it")
        self.count(outgoing, incoming)
        return received

    def count(self, outgoing: list[Any], incoming: list[Any]) -> None:
        """Count messages: (peers of all ranks, mask of ranks with a peer, bytes)."""
        active = np.zeros(self.n, bool)
        latest, begin = self.rounds.copy(), self.time.copy()
        port_times, counted_peers = [], set()
        for messages in (outgoing, incoming):
            port_time = np.zeros_like(self.time)
            for peers, has_peer, size in messages:
                port_time += has_peer * self.message_time(peers, size)
                if id(peers) in counted_peers:  # of both directions
                    continue
                counted_peers.add(id(peers))
                active |= has_peer
                peers_or_self = np.where(has_peer, peers, np.arange(self.n))
                np.maximum(latest, self.rounds.take(peers_or_self), out=latest)
                np.maximum(begin, self.time.take(peers_or_self, -1), out=begin)
            port_times.append(port_time)
        for _, has_peer, size in outgoing:
            self.messages += has_peer
            self.bytes += has_peer * size
        self.rounds = np.where(active, latest + 1, self.rounds)
        end = begin + np.maximum(*port_times)
        if self.nodes is not None:
            end = self.through_ports(self.nodes, begin, end, outgoing, incoming)
        self.time = np.where(active, end, self.time)

    def message_time(self, peers: np.ndarray, size: np.ndarray) -> np.ndarray:
        """The time of a message of each rank with a peer."""
        far: np.ndarray = self.alpha + self.beta * size
        if self.nodes is None:
            return far
        near = self.nodes.alpha + self.nodes.beta * size
        return np.where(self.nodes.node[peers] == self.nodes.node, near, far)

    def through_ports(
        self,
        nodes: NodePorts,
        begin: np.ndarray,
        end: np.ndarray,
        outgoing: list[Any],
        incoming: list[Any],
    ) -> np.ndarray:
        """The ends of messages that take until `end` where no other rank uses the port.

        A message is started, then passes the port of its sender's node, then that of
        its receiver's, where it arrives as early as its bytes can follow each other.
        """
        sent, received = (
            sum(
                has_peer * (nodes.node[peers] != nodes.node) * self.beta * size
                for peers, has_peer, size in messages
            )
            + np.zeros(self.n)
            for messages in (outgoing, incoming)
        )
        rows = []
        alphas = np.ravel(self.alpha)
        for alpha, row_begin, row_end, free in zip(
            alphas, np.atleast_2d(begin), np.atleast_2d(end), self._free, strict=True
        ):
            left = _pass_port(row_begin + alpha, sent, nodes.node, free[0])
            ready = row_begin + alpha
            for peers, has_peer, _ in incoming:
                arrival = np.where(has_peer, left.take(peers) - received, ready)
                np.maximum(ready, arrival, out=ready)
            come = _pass_port(ready, received, nodes.node, free[1])
            row_end = np.where(sent > 0, np.maximum(row_end, left), row_end)
            rows.append(np.where(received > 0, np.maximum(row_end, come), row_end))
        return np.array(rows).reshape(end.shape)

    def post(self, step: PostStep) -> list[Any]:
        """A value from every posting rank, to a rank that expects a value."""
        ((target, value),) = step.sends
        senders = np.flatnonzero(target >= 0)
        targets = target[senders]
        if not np.array_equal(np.sort(targets), np.flatnonzero(step.expect)):
            raise BadMessage("what is posted is not what is expected")
        source = np.full(self.n, -1)
        source[targets] = senders
        size = np.broadcast_to(size_of(value), self.n)
        own = target == np.arange(self.n)
        away = (target >= 0) & ~own, (source >= 0) & ~own
        self.count([(target, away[0], size)], [(source, away[1], size.take(source))])
        self.rounds += own
        return [take(value, source)]

    def allgather(self, step: AllgatherStep) -> list[Any]:
        """The library's allgather, counted as in `vm`."""
        sizes = np.broadcast_to(size_of(step.value), self.n)
        rounds, received = (self.n - 1).bit_length(), sizes.sum() - sizes
        self.rounds = np.full(self.n, self.rounds.max() + rounds)
        self.messages += rounds
        self.bytes += received
        begin = self.time.max(axis=-1, keepdims=True)
        if self.nodes is not None:  # all that the ranks of a node lack passes its port
            node, ranks = self.nodes.node, np.bincount(self.nodes.node)
            lacking = sizes.sum() - np.bincount(node, sizes)
            received = (ranks * lacking).max()
        self.time = begin + rounds * self.alpha + self.beta * received
        return [Gathered(np.zeros(self.n, np.int64), sizes, Shared(step.value))]

    def per_process(self, step: PerProcess) -> list[Any]:
        """Run dialogues in turn in `vm`, from the ranks' rounds and times so far."""
        names = step.link.__dataclass_fields__
        columns = [getattr(step.link, name).tolist() for name in names]
        items = zip(step.item.number.tolist(), step.item.nbytes.tolist(), strict=True)
        starts = []
        for values, item in zip(zip(*columns, strict=True), items, strict=True):
            link = ChainLink(*(None if x < 0 else x for x in values))
            starts.append((link, ProcessRow(*item)))
        counts = self.rounds, self.messages, self.bytes, self.messages * 0
        alphas, runs = np.ravel(self.alpha), []
        for alpha, time in zip(alphas, np.atleast_2d(self.time), strict=True):
            dialogues = [step.dialogue(*x) if x[0].size else None for x in starts]
            rows = zip(*(x.tolist() for x in (*counts, time)), strict=True)
            tallies = [RankTally(*row) for row in rows]
            runs.append(
                vm.run(dialogues, alpha=float(alpha), beta=self.beta, tallies=tallies)
            )
        # of all start-up times the results and the counts are equal
        for name in ("rounds", "messages", "bytes"):
            counted = np.array([getattr(tally, name) for tally in runs[-1].ranks])
            setattr(self, name, counted)
        times = [[tally.time for tally in run.ranks] for run in runs]
        self.time = np.array(times).reshape(self.time.shape)
        return [np.array([-1 if x is None else int(x) for x in runs[-1].results])]


def run(
    dialogue: Dialogue[Any],
    n: int,
    *,
    alpha: Any = 1.0,
    beta: float = 0.0,
    nodes: NodePorts | None = None,
) -> BatchRun:
    """Run a dialogue of n ranks at once, for one start-up time or a column of them."""
    batch_run, received = BatchRun(n, alpha, beta, nodes), None
    while True:
        try:
            step = dialogue.send(received)  # type: ignore[arg-type]
        except StopIteration as end:
            batch_run.result = end.value
            return batch_run
        received = batch_run.perform(step)
