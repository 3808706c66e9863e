"""`isthmus bench`: the user's machine, the user's sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..bench import job as jobs, sets
from ..bench.formats import osu
from ..bench.job import BenchCase, BenchJob
from ..bench.operations import BY_HAND, REDISTRIBUTION
from ..bench.place import place
from ..collectives.records import record_of
from ..cost.placement import MACHINE
from ..launch.mpiexec import own_rank
from ..redistribution.cases import REDISTRIBUTION_KINDS
from ..schedules.registry import named
from ..spelling import unknown
from .files import check_file, check_picture, save
from .measured import Shown
from .options import (
    RATE,
    Hosts,
    Launches,
    Named,
    Rate,
    Seconds,
    check_memory,
    check_processes,
    one_or_two_groups,
)
from .sizes import GROUPS, read_each
from .terminal import ended_in_order

FORMATS = ("table", "osu")
#: in the place of a file: the standard output
PRINTED = Path("-")
DEFAULTS = {"--groups": "4,4", "--bytes": "8,4KiB,64KiB,1MiB", "--op": "allgather"}


def _try(name: str, case: BenchCase) -> None:
    """Refuse an algorithm that does not work for groups of these sizes."""
    if case.b and not case.op.startswith("allgather"):
        named(record_of(case.op, 2).name, name)
        return
    made = jobs.planned(case, name, MACHINE)
    for group in made.groups:
        made.rank(group[0])


def _try_by_hand(name: str) -> None:
    """Refuse what is no way to redistribute."""
    known = "auto", "native", "copy", *BY_HAND
    if name not in known:
        raise ValueError(unknown("contender", name, known))


def _check(job: BenchJob) -> BenchJob:
    """The job, once it is clear that each algorithm works for its groups."""
    op = job.cases[0].op
    for contender in job.contenders:
        name = contender.algorithm
        if op == REDISTRIBUTION:
            _try_by_hand(name)
        elif name not in ("auto", "native", "copy"):
            _try(name, job.cases[0])
        if contender.persistent and name.endswith("+library"):
            raise ValueError(f"{name!r} has no persistent form")
    return job


def _own(
    given: dict[str, str | None], distribution: str | None, how: BenchJob
) -> BenchJob:
    """What the options ask for."""
    groups, bytes_, op = (text or DEFAULTS[name] for name, text in given.items())
    sizes = one_or_two_groups(groups)
    check_processes(sum(sizes))
    kinds = distribution.split(",") if distribution else [None]
    cases = tuple(
        jobs.of_groups(op, sizes, read_each(n, len(sizes)), kind)
        for kind in kinds
        for n in bytes_.split(",")
    )
    for case in cases:
        check_memory(case)
    contenders = how.contenders
    if op == "redistribution" and jobs.Contender("isend") not in contenders:
        contenders = (*contenders, jobs.Contender("isend"))
    return replace(how, groups=sizes, cases=cases, contenders=contenders)


def _todo(
    name: str | None,
    given: dict[str, str | None],
    distribution: str | None,
    scale: float | None,
    how: BenchJob,
) -> list[BenchJob]:
    """The jobs of a set, or the one that the options ask for."""
    if name is None:
        if scale is not None:
            raise ValueError("--scale goes with --set; else give other --bytes")
        return [_check(_own(given, distribution, how))]
    options = [*given.items(), ("--distribution", distribution)]
    for option, value in options:
        if value is not None:
            raise ValueError(f"{option} does not go with --set, which brings its own")
    return [
        _check(job) for job in sets.named(name, how, 1.0 if scale is None else scale)
    ]


def _write(
    shown: Shown, csv: Path | None, json: Path | None, plot: Path | None
) -> None:
    """The files that were asked for."""
    if own_rank():
        return
    for path, make in ((csv, shown.csv), (json, shown.json)):
        if path == PRINTED:
            print(make().rstrip())
        elif path is not None:
            path.write_text(make(), encoding="utf-8")
    if plot is not None:
        save(shown.figure(shown.heading()), plot)


def bench(
    groups: Annotated[
        str | None,
        typer.Option(metavar="N,N", help=f"{GROUPS} [default: 4,4]"),
    ] = None,
    bytes_: Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="SIZE,SIZE",
            help="bytes of each rank's block or vector, one after the other; one for "
            "each group, as in 4KiB:1KiB [default: 8,4KiB,64KiB,1MiB]",
        ),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            metavar="COLLECTIVE",
            help="as in MPI, or redistribution [default: allgather]",
        ),
    ] = None,
    distribution: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="how block sizes differ, as in spike,half; of a redistribution: "
            + ", ".join(REDISTRIBUTION_KINDS),
        ),
    ] = None,
    set_: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="NAME", help=f"named cases: {', '.join(sets.SETS)}"
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(metavar="X", help="multiply the sizes of a set by this"),
    ] = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="algorithms to compare, as in isthmus list [default: auto; with "
            "--set, also those of its paper]",
        ),
    ] = None,
    persistent: Annotated[
        bool, typer.Option("--persistent", help="measure the persistent form too")
    ] = False,
    seconds: Seconds = 2.0,
    launches: Launches = 3,
    single: Annotated[
        bool, typer.Option("--single", help="time every call by itself")
    ] = False,
    same_arrays: Annotated[
        bool,
        typer.Option("--same-arrays", help="pass the same array objects at every call"),
    ] = False,
    seed: Annotated[
        int, typer.Option(metavar="N", help="seed of the order of repetitions")
    ] = 0,
    lab: Hosts = None,
    rate: Rate = RATE,
    lab_name: Named = None,
    per_host: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="ranks per host of a lab, filled in order"
        ),
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="table, or osu: the layout of the OSU benchmarks",
        ),
    ] = "table",
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="write a row for each result to this file; -: print it"
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="write every time and the environment; -: print them"
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write a picture: .png, .svg or .pdf"),
    ] = None,
) -> None:
    """Compare isthmus with the MPI library's own collectives.

    The contenders take turns in random order. A time is the median over repetitions of
    the time of the slowest rank, with its 95 % interval; every byte received is
    checked. Every call gets another view of the same memory, as in programs that pass
    slices. Blocks of allgatherv grow with the rank, or follow a distribution; --bytes
    is their average. A redistribution is of a matrix; its contenders are Alltoallw
    (native), isend (a message to each in rank order) and gather_bcast. With one group,
    as in --groups 8, the collective inside it is measured.

    It starts the processes itself, here or on a lab, or runs in those that your own
    mpiexec started.
    """
    if format_ not in FORMATS:
        raise ValueError(unknown("--format", format_, FORMATS))
    on_lab = lab is not None or lab_name is not None
    asked = sets.algorithms(set_) if set_ else ("auto",)
    names = [name.strip() for name in algorithms.split(",")] if algorithms else asked
    contenders = jobs.contenders(names, persistent, copy=not on_lab)
    how = BenchJob((), (), contenders, seconds, seed, "random", single, same_arrays)
    given = {"--groups": groups, "--bytes": bytes_, "--op": op}
    todo = _todo(set_, given, distribution, scale, how)
    for path, kind in ((csv, ".csv"), (json, ".json")):
        check_file(path if path != PRINTED else None, (kind,))
    check_picture(plot)
    table = format_ == "table" and PRINTED not in (csv, json)
    title = set_ or todo[0].cases[0].op.capitalize()
    with ended_in_order(), place(lab, rate, lab_name, per_host) as where:
        shown = Shown(where, title, table)
        shown.run(todo, launches)
    if not shown.outcomes:
        return
    if set_ is not None:
        shown.arrange(sets.kinds(set_))
    if format_ == "osu":
        print(osu(shown.lines, shown.head()), end="")
    _write(shown, csv, json, plot)
