"""Examples of every command, for the end of its help."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": (
        "isthmus demo",
        "isthmus demo --groups 6,2",
        "mpiexec -n 8 python -m isthmus.bench.demo",
    ),
    "bench": (
        "isthmus bench",
        "isthmus bench --op bcast --groups 8,8 --bytes 64KiB,1MiB",
        "isthmus bench --algorithms auto,segmented,direct --persistent",
        "isthmus bench --groups 8 --op allgatherv --distribution spike,half",
        "isthmus bench --groups 6,2 --bytes 1MiB:3MiB",
        "isthmus bench --regret --groups 8,8 --plot regret.png",
        "isthmus bench --lab 16 --groups 8,8 --bytes 100KiB --csv out.csv",
        "mpiexec -n 64 python -m isthmus.bench --groups 32,32 --json -",
    ),
    "check": (
        "isthmus check",
        "isthmus check --max 4 --placements 2",
        "isthmus --import my_algorithms.py check --jobs 4",
        "isthmus check --max 4 --json",
    ),
    "bound": (
        "isthmus bound allgatherv --counts '4,0,0;1,1,1'",
        "isthmus bound reduce_scatter --counts '6,0,0;2,2,2' --seconds 5",
        "isthmus bound bcast --groups 1,5 --bytes 4 --ports 2 --show",
    ),
    "list": (
        "isthmus list",
        "isthmus list allgatherv ring",
        "isthmus list Träff --json",
    ),
    "draw": (
        "isthmus draw allgather segmented --groups 6,2 --bytes 6",
        "isthmus draw allgatherv balanced --counts '3,0,5;4,4' -o x.svg",
        "isthmus draw allgather segmented+ring --gantt --machine cori-like",
        "isthmus draw allreduce node_aware --groups 6 --per-node 3",
        "isthmus draw bcast circulant --groups 9 --circle 6",
        "isthmus draw redistribution --source blocks:4x2 --target cyclic:3x2:2x2",
    ),
    "explore": (
        "isthmus explore allgather segmented --groups 6,2",
        "isthmus explore allgather segmented root_gathering --groups 6,2",
        "isthmus explore allreduce node_aware --groups 8 --per-node 4",
        "isthmus explore redistribution --source blocks:4x2 --target blocks:3x3",
        "isthmus explore allgather segmented+ring --bytes 256KiB --recorded run.json",
    ),
    "predict": (
        "isthmus predict allgatherv --groups 512,128 --bytes 4MiB",
        "isthmus predict allgather --groups 64 --machine hdr-infiniband",
        "isthmus predict allreduce --groups 64,64 --per-node 32 --machine cori-like",
        "isthmus predict bcast --groups 8,8 --json",
    ),
    "trace": (
        "isthmus trace allgather segmented --groups 6,2",
        "isthmus trace allgatherv node_aware --per-node 2 --machine hdr-infiniband",
    ),
    "export": (
        "isthmus export allgather segmented --groups 6,2 --goal x.goal",
        "isthmus export bcast circulant --groups 9 --bytes 1MiB --simgrid x",
    ),
    "record": (
        "isthmus record segmented+ring --groups 6,2",
        "isthmus record ring --groups 8 --machine shared-memory",
        "isthmus record segmented+ring --groups 6,2 -o run.html",
        "mpiexec -n 8 python -m isthmus record segmented+ring --groups 6,2",
    ),
    "tune": (
        "isthmus tune -n 8",
        "isthmus tune --show",
        "mpiexec -n 64 isthmus tune -o cluster.toml",
    ),
    "reproduce": (
        "isthmus reproduce kang2019",
        "isthmus reproduce moody2011 -o report",
    ),
    "lab up": (
        "isthmus lab up --hosts 8 --rate 50mbit",
        "isthmus lab up --hosts 32 --rate 1gbit --slow 3:10mbit --name slow",
    ),
    "lab run": (
        "isthmus lab run -- python my_program.py",
        "isthmus lab run -n 32 --per-host 4 --timeout 60 -- python my_program.py",
    ),
    "lab status": ("isthmus lab status --measure", "isthmus lab status --json"),
    "lab set": ("isthmus lab set 3 --rate 10mbit",),
    "lab cut": ("isthmus lab cut 3",),
    "lab join": ("isthmus lab join 3",),
    "lab down": ("isthmus lab down", "isthmus lab down --name slow"),
    "lab shell": ("isthmus lab shell", "isthmus lab shell isthmus lab up"),
    "lab report": ("isthmus lab report -o results --launches 1",),
}


def epilog(command: str) -> str:
    """The examples of a command, laid out for its help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[command])
