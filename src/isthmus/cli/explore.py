"""`isthmus explore`: a page to step through schedules in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..explore.page import USUAL, write
from ..export import chrome
from . import simulate as sim
from .files import check_file


def explore(
    collective: sim.Collective,
    algorithms: Annotated[
        list[str], typer.Argument(help="such as segmented+ring; several to compare")
    ],
    p: sim.P = None,
    q: sim.Q = None,
    ka: sim.Ka = None,
    kb: sim.Kb = None,
    a: sim.A = None,
    b: sim.B = None,
    counts: sim.Counts = None,
    ab: sim.Ab = None,
    ba: sim.Ba = None,
    table: sim.Table = None,
    m: sim.M = None,
    k: sim.K = None,
    root: sim.Root = None,
    nodes: sim.Nodes = None,
    per_node: sim.PerNode = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            help="a name, a TOML file, or tuned; several to choose from; without it, "
            "2 µs and 12 GB/s"
        ),
    ] = None,
    recorded: Annotated[
        list[Path] | None,
        typer.Option(help="a .json file of isthmus record, to be shown beside it"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="an .html file")
    ] = None,
) -> None:
    """Write a page to step through a schedule: one file, which needs no network.

    It shows who sends what to whom, what every buffer holds and where each block came
    from, beside the timeline of a machine. An element is a byte. Up to 64 ranks are
    shown with their buffers, up to 1024 as a matrix.

    \b
    isthmus explore inter_allgather segmented --p 6 --q 2
    isthmus explore inter_allgather segmented root_gathering --p 6 --q 2
    isthmus explore allreduce node_aware --p 8 --per-node 4 --machine hdr-infiniband
    isthmus record segmented+ring --groups 6,2 -o run.json
    isthmus explore inter_allgather segmented+ring --ka 262144 --kb 262144 \\
        --recorded run.json
    """
    given = {"p": p, "q": q, "ka": ka, "kb": kb, "a": a, "b": b, "counts": counts}
    given |= {"ab": ab, "ba": ba, "table": table, "m": m, "k": k, "root": root}
    first = algorithms[0].replace("+", "-")
    path = output or Path(f"{collective}-{first}.html")
    check_file(path)
    made = [
        sim.made(collective, name, given, sim.LARGER, nodes, per_node)
        for name in algorithms
    ]
    machines = {name: sim.machine(name) for name in machine or ()}
    runs = {file.stem: chrome.read(file) for file in recorded or ()}
    print(write(path, made, machines or {USUAL: sim.machine(None)}, runs))
