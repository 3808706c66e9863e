"""The fewest steps: an integer program over time, whose solution is a schedule.

In a step, every process sends and receives a message for each of its ports. If messages
have any length, steps are start-ups. If a message is a single element, steps are the
transfer time of whole elements: a message of m elements takes an algorithm m steps. A
mixed-integer program decides whether a number of steps is enough; the least number with
a solution is the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from math import ceil, inf, log
from time import monotonic

import numpy as np

from .demands import Demand, Problem
from .solver import LinearProgram


@dataclass(frozen=True)
class ElementMove:
    """The move of an element or a block from one process to another in a step."""

    step: int
    source: int
    target: int
    demand: int


@dataclass(frozen=True)
class LeastSteps:
    """The least number of steps, and a schedule of so many steps if the search had one.

    If not `exact`, the search ran out of time, and more steps may be necessary.
    """

    steps: int
    exact: bool
    #: the elements or blocks that `ElementMove.demand` numbers
    demands: tuple[Demand, ...] = ()
    moves: tuple[ElementMove, ...] | None = None


def hearing(problem: Problem, ports: int = 1) -> int:
    """A lower bound of the steps, from the number of sources or targets of a process.

    A step multiplies the number of processes whose data a process has, or that have the
    data of the process, by at most ports + 1.
    """
    sources: list[set[int]] = [set() for _ in range(problem.n)]
    most_peers = 0
    for x in problem.demands:
        most_peers = max(most_peers, len(x.targets))
        for target in x.targets:
            sources[target].add(x.source)
    most_peers = max(most_peers, *map(len, sources), 0)
    return ceil(log(most_peers + 1, ports + 1) - 1e-9)


def single(problem: Problem) -> Problem:
    """The problem with a demand for each element."""
    unit_demands = [replace(x, size=1) for x in problem.demands for _ in range(x.size)]
    return replace(problem, demands=tuple(unit_demands))


def startups(
    problem: Problem, ports: int, seconds: float, known: float = inf
) -> LeastSteps:
    """The fewest start-ups of messages of any length; `known` are enough."""
    least = hearing(problem, ports) if problem.demands else 0
    return _fewest(problem, least, True, ports, seconds, known)


def whole(
    problem: Problem,
    least: float,
    ports: int,
    seconds: float,
    known: float = inf,
) -> LeastSteps:
    """The fewest steps of an element each: at least `least`, and `known` are enough."""
    steps = max(ceil(least - 1e-6), hearing(problem, ports) if problem.demands else 0)
    return _fewest(single(problem), steps, False, ports, seconds, known)


def _fewest(
    problem: Problem,
    steps: int,
    any_length: bool,
    ports: int,
    seconds: float,
    known: float,
) -> LeastSteps:
    end = monotonic() + seconds
    while True:
        if steps >= known or not problem.demands:
            return LeastSteps(steps, True, problem.demands)
        left = end - monotonic()
        if left <= 0:
            return LeastSteps(steps, False, problem.demands)
        enough, moves = _try(problem, steps, any_length, ports, left)
        if enough is None:
            return LeastSteps(steps, False, problem.demands)
        if enough:
            return LeastSteps(steps, True, problem.demands, moves)
        steps += 1


def _try(
    problem: Problem, steps: int, any_length: bool, ports: int, seconds: float
) -> tuple[bool | None, tuple[ElementMove, ...] | None]:
    """Whether a number of steps is enough, and a schedule of so many steps."""
    program, links = LinearProgram(), list(permutations(range(problem.n), 2))
    variables: dict[ElementMove, int] = {}
    for demand_number, demand in enumerate(problem.demands):
        for source, target in links:
            if target == demand.source:
                continue
            # only the source has data in the first step, and data that arrive in the
            # last step must be at a target: fewer variables make a faster search
            first = 0 if source == demand.source else 1
            last = steps if target in demand.targets else steps - 1
            for step in range(first, last):
                move = ElementMove(step, source, target, demand_number)
                variables[move] = program.variable(upper=1, whole=1)
    arrivals: dict[tuple[int, ...], list[int]] = {}

    def among(*key: int) -> list[tuple[int, float]]:
        return [(x, 1.0) for x in arrivals.get(key, ())]

    for move, x in variables.items():
        demand_number = move.demand
        arrivals.setdefault((0, demand_number, move.target), []).append(x)
        arrivals.setdefault((1, demand_number, move.target, move.step), []).append(x)
    for demand_number, demand in enumerate(problem.demands):
        for rank in range(problem.n):
            if rank != demand.source:
                low = 1 if rank in demand.targets else 0
                program.require(among(0, demand_number, rank), low, 1)
    # data are passed on only after their arrival
    for move, x in variables.items():
        demand = problem.demands[move.demand]
        if move.source != demand.source:
            before = [
                (y, -1.0)
                for step in range(move.step)
                for y, _ in among(1, move.demand, move.source, step)
            ]
            program.require([(x, 1.0), *before], -inf, 0)
    _ports(program, variables, problem.n, any_length, ports)
    _in_order(program, variables, problem)
    enough, solution = program.solve(seconds)
    if solution is None:
        return enough, None
    chosen_moves = [move for move, x in variables.items() if solution[x] > 0.5]
    return True, tuple(sorted(chosen_moves, key=lambda m: (m.step, m.source, m.demand)))


def _ports(
    program: LinearProgram,
    moves: dict[ElementMove, int],
    n: int,
    any_length: bool,
    ports: int,
) -> None:
    """Require that in a step each process has at most a message for each port."""
    moves_of_link: dict[tuple[int, int, int], list[int]] = {}
    for move, x in moves.items():
        moves_of_link.setdefault((move.step, move.source, move.target), []).append(x)
    messages: dict[tuple[int, int, int], list[int]] = moves_of_link
    if any_length:
        messages = {key: [program.variable(upper=1, whole=1)] for key in moves_of_link}
        for key, link_moves in moves_of_link.items():
            for x in link_moves:
                program.require([(x, 1.0), (messages[key][0], -1.0)], -inf, 0)
    elif ports > 1:
        for link_moves in moves_of_link.values():
            program.require([(x, 1.0) for x in link_moves], 0, 1)
    for side in (1, 2):
        port: dict[tuple[int, int], list[int]] = {}
        for key, xs in messages.items():
            port.setdefault((key[0], key[side]), []).extend(xs)
        for xs in port.values():
            program.require([(x, 1.0) for x in xs], 0, ports)


def _in_order(
    program: LinearProgram, moves: dict[ElementMove, int], problem: Problem
) -> None:
    """Require equal elements of a process to leave in order.

    Every schedule can be renamed to meet the requirement, so that the search has fewer
    schedules to try.
    """
    departures: dict[tuple[int, int], list[int]] = {}
    for move, x in moves.items():
        if move.source == problem.demands[move.demand].source:
            departures.setdefault((move.demand, move.step), []).append(x)
    for c in range(1, len(problem.demands)):
        if problem.demands[c - 1] != problem.demands[c]:
            continue
        earlier: list[tuple[int, float]] = []
        for step in sorted(step for d, step in departures if d == c):
            earlier += [(x, -1.0) for x in departures.get((c - 1, step), ())]
            for x in departures[c, step]:
                program.require([(x, 1.0), *earlier], -inf, 0)


def schedule_lines(solution: LeastSteps, names: Callable[[int], str]) -> list[str]:
    """The schedule as text, a line for each step."""
    lines = []
    for step in range(solution.steps):
        moves_of_step = [m for m in solution.moves or () if m.step == step]
        messages: dict[tuple[int, int], list[str]] = {}
        for m in moves_of_step:
            source = solution.demands[m.demand].source
            number = np.count_nonzero(
                [x.source == source for x in solution.demands[: m.demand]]
            )
            is_numbered = sum(x.source == source for x in solution.demands) > 1
            label = names(source) + (f".{number}" if is_numbered else "")
            messages.setdefault((m.source, m.target), []).append(label)
        words = (
            f"{names(source)} → {names(target)}: {' '.join(labels)}"
            for (source, target), labels in sorted(messages.items())
        )
        lines.append(f"{step + 1}.  " + "; ".join(words))
    return lines
