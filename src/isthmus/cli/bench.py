"""`isthmus bench`: the user's machine, the user's sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..bench import job as jobs, regret as regrets, sets
from ..bench.formats import osu
from ..bench.job import BenchCase, BenchJob
from ..bench.operations import BY_HAND, REDISTRIBUTION, mpi_operations
from ..bench.place import place
from ..collectives.records import record_of
from ..cost.placement import MACHINE
from ..launch.mpiexec import own_rank
from ..redistribution.cases import REDISTRIBUTION_KINDS
from ..schedules.registry import named
from ..spelling import unknown
from ..units import read_bytes
from .files import check_file, check_picture, save
from .measured import LiveRecord
from .options import (
    DEFAULT_LAB_RATE,
    Hosts,
    Named,
    Rate,
    check_memory,
    check_processes,
    one_or_two_groups,
)
from .sizes import GROUPS_HELP, bytes_of_groups
from .terminal import ended_in_order

BENCH_FORMATS = ("table", "osu")
#: the standard output, in place of a file
STANDARD_OUTPUT = Path("-")
#: seconds of a case and launch, and launches, but for --regret
DEFAULT_SECONDS, DEFAULT_LAUNCHES = 2.0, 3
DEFAULT_OPTIONS = {
    "--groups": "4,4",
    "--bytes": "8,4KiB,64KiB,1MiB",
    "--op": "allgather",
}


def _check_algorithm(name: str, case: BenchCase) -> None:
    """Refuse an algorithm that cannot run between groups of these sizes."""
    if case.b and not case.op.startswith("allgather"):
        named(record_of(case.op, 2).name, name)
        return
    schedule = jobs.planned(case, name, MACHINE)
    for group in schedule.groups:
        schedule.rank(group[0])


def _check_redistribution_contender(name: str) -> None:
    """Refuse a name that is no way to redistribute."""
    known = "auto", "native", "copy", *BY_HAND
    if name not in known:
        raise ValueError(unknown("contender", name, known))


def _checked(job: BenchJob) -> BenchJob:
    """The job, if each algorithm can run between its groups."""
    op = job.cases[0].op
    for contender in job.contenders:
        name = contender.algorithm
        if op == REDISTRIBUTION:
            _check_redistribution_contender(name)
        elif name not in ("auto", "native", "copy"):
            _check_algorithm(name, job.cases[0])
        if contender.persistent and name.endswith("+library"):
            raise ValueError(f"{name!r} has no persistent form")
    return job


def _job_of_options(
    options: dict[str, str | None], distribution: str | None, base_job: BenchJob
) -> BenchJob:
    """The job of the options that are no set."""
    groups, bytes_, op = (
        text or DEFAULT_OPTIONS[name] for name, text in options.items()
    )
    sizes = one_or_two_groups(groups)
    check_processes(sum(sizes))
    kinds = distribution.split(",") if distribution else [None]
    cases = tuple(
        jobs.of_groups(op, sizes, bytes_of_groups(n, len(sizes)), kind)
        for kind in kinds
        for n in bytes_.split(",")
    )
    for case in cases:
        check_memory(case)
    contenders = base_job.contenders
    if op == "redistribution" and jobs.Contender("isend") not in contenders:
        contenders = (*contenders, jobs.Contender("isend"))
    return replace(base_job, groups=sizes, cases=cases, contenders=contenders)


def _regret_job(options: dict[str, str | None], base_job: BenchJob) -> BenchJob:
    """The job of all candidates, by default of every operation and size."""
    groups = one_or_two_groups(options["--groups"] or DEFAULT_OPTIONS["--groups"])
    check_processes(sum(groups))
    bytes_, op = options["--bytes"], options["--op"]
    sizes = [read_bytes(n) for n in bytes_.split(",")] if bytes_ else None
    names = op.lower().split(",") if op else mpi_operations(len(groups))
    job = regrets.regret_job(groups, names, sizes or regrets.REGRET_BYTES, base_job)
    for case in job.cases:
        check_memory(case)
    return job


def _check_regret(**options: object) -> None:
    """Refuse options that choose contenders or cases in another way."""
    for name, value in options.items():
        if value:
            raise ValueError(f"--{name.rstrip('_')} does not go with --regret")


def _jobs(
    name: str | None,
    options: dict[str, str | None],
    distribution: str | None,
    scale: float | None,
    base_job: BenchJob,
) -> list[BenchJob]:
    """The jobs of a set, or a single job of the options."""
    if name is None:
        if scale is not None:
            raise ValueError("--scale goes with --set; else give other --bytes")
        return [_checked(_job_of_options(options, distribution, base_job))]
    exclusive_options = [*options.items(), ("--distribution", distribution)]
    for option, value in exclusive_options:
        if value is not None:
            raise ValueError(f"{option} does not go with --set, which brings its own")
    return [
        _checked(job)
        for job in sets.named(name, base_job, 1.0 if scale is None else scale)
    ]


def _write(
    record: LiveRecord, csv: Path | None, json: Path | None, plot: Path | None
) -> None:
    """Write the files of a record, on the rank that has the results."""
    if own_rank():
        return
    for path, text_of in ((csv, record.csv), (json, record.json)):
        if path == STANDARD_OUTPUT:
            print(text_of().rstrip())
        elif path is not None:
            path.write_text(text_of(), encoding="utf-8")
    if plot is not None:
        save(record.figure(record.heading()), plot)


def bench(
    groups: Annotated[
        str | None,
        typer.Option(metavar="N,N", help=f"{GROUPS_HELP} [default: 4,4]"),
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
            help="as in MPI, or redistribution [default: allgather; with --regret, "
            "all, or several as in bcast,reduce]",
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
    regret: Annotated[
        bool,
        typer.Option(
            "--regret",
            help="compare auto with the best of all algorithms, for every collective "
            "and twelve sizes",
        ),
    ] = False,
    persistent: Annotated[
        bool, typer.Option("--persistent", help="measure the persistent form too")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="about how long per case and launch [default: 2; with --regret 0.3]",
            min=0.01,
        ),
    ] = None,
    launches: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="times to relaunch all processes [default: 3; with --regret 1]",
            min=1,
        ),
    ] = None,
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
    rate: Rate = DEFAULT_LAB_RATE,
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
    checked. Every call gets a new view of its memory, as in programs that pass slices.
    Blocks of allgatherv grow with the rank, or follow a distribution; --bytes is their
    average. A redistribution is of a matrix; its contenders are Alltoallw (native),
    isend (a message to each in rank order) and gather_bcast. With one group, as in
    --groups 8, the collective inside the group is measured.

    With --regret the table has, for each collective and size, the time of auto divided
    by that of the fastest of all algorithms and the MPI library's own call; then the
    mean, and the worst cases with the algorithm that was best.

    The command starts the processes, here or on a lab, or runs under your own mpiexec.
    """
    if format_ not in BENCH_FORMATS:
        raise ValueError(unknown("--format", format_, BENCH_FORMATS))
    if regret:
        _check_regret(
            set_=set_,
            scale=scale,
            algorithms=algorithms,
            distribution=distribution,
            persistent=persistent,
        )
    if seconds is None:
        seconds = regrets.REGRET_SECONDS if regret else DEFAULT_SECONDS
    if launches is None:
        launches = regrets.REGRET_LAUNCHES if regret else DEFAULT_LAUNCHES
    on_lab = lab is not None or lab_name is not None
    default_names = sets.algorithms(set_) if set_ else ("auto",)
    names = (
        [name.strip() for name in algorithms.split(",")]
        if algorithms
        else default_names
    )
    contenders = jobs.contenders(names, persistent, copy=not on_lab)
    base_job = BenchJob(
        groups=(),
        cases=(),
        contenders=contenders,
        seconds=seconds,
        seed=seed,
        single=single,
        same_arrays=same_arrays,
    )
    options = {"--groups": groups, "--bytes": bytes_, "--op": op}
    if regret:
        bench_jobs = [_regret_job(options, base_job)]
    else:
        bench_jobs = _jobs(set_, options, distribution, scale, base_job)
    for path, kind in ((csv, ".csv"), (json, ".json")):
        check_file(path if path != STANDARD_OUTPUT else None, (kind,))
    check_picture(plot)
    prints_table = format_ == "table" and STANDARD_OUTPUT not in (csv, json)
    title = set_ or bench_jobs[0].cases[0].op.capitalize()
    if regret:
        title = "Regret of auto"
    with ended_in_order(), place(lab, rate, lab_name, per_host) as bench_place:
        record = LiveRecord(bench_place, title, prints_table)
        record.run(bench_jobs, launches)
    if not record.outcomes:
        return
    if set_ is not None:
        record.arrange(sets.kinds(set_))
    if format_ == "osu":
        print(osu(record.lines, record.head()), end="")
    _write(record, csv, json, plot)
