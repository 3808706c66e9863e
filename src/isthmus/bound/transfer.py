"""The least transfer time: start-ups are free, and data can be cut at will.

The order of messages then does not matter, since a pipeline of short pieces hides the
order, and only the loads of ports remain. Data of a source may take any ways and be
copied anywhere: every target has a flow from the source, and a message serves the flows
to all targets at once. So the least time is a linear program, and a lower bound for all
algorithms.
"""

from __future__ import annotations

from itertools import permutations

from .demands import Problem
from .solver import LinearProgram


def transfer(problem: Problem, ports: int = 1, seconds: float = 30.0) -> float | None:
    """The least transfer time in elements; None if the program takes too long.

    Each process has a number of ports, which lead to different processes.
    """
    if not problem.demands:
        return 0.0
    links = list(permutations(range(problem.n), 2))
    program = LinearProgram()
    time = program.variable(cost=1.0)
    loads: dict[tuple[int, int], list[int]] = {link: [] for link in links}
    for demand in problem.demands:
        # links back to the source are useless
        useful = [link for link in links if link[1] != demand.source]
        sent = {link: program.variable() for link in useful}
        for link, variable in sent.items():
            loads[link].append(variable)
        for target in demand.targets:
            flow = {link: program.variable() for link in useful if link[0] != target}
            for link, variable in flow.items():
                program.require([(variable, 1.0), (sent[link], -1.0)], -demand.size, 0)
            for rank in range(problem.n):
                into = [(x, 1.0) for link, x in flow.items() if link[1] == rank]
                out = [(x, -1.0) for link, x in flow.items() if link[0] == rank]
                gain = demand.size * ((rank == target) - (rank == demand.source))
                program.require([*into, *out], gain, gain)
    # a process sends and receives at most as much as its ports pass in the time
    for end in (0, 1):
        for rank in range(problem.n):
            terms = [
                (x, 1.0) for link, xs in loads.items() if link[end] == rank for x in xs
            ]
            program.require([*terms, (time, -float(ports))], -float("inf"), 0)
    if ports > 1:
        for variables in loads.values():
            terms = [(x, 1.0) for x in variables]
            program.require([*terms, (time, -1.0)], -float("inf"), 0)
    _, solution = program.solve(seconds)
    return None if solution is None else float(solution[time])
