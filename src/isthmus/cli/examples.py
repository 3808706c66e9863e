"""What to type: lines for the help of every command."""

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
        "isthmus bound inter_allgatherv --a 4,0,0 --b 1,1,1",
        "isthmus bound inter_reduce_scatter --a 6,0,0 --b 2,2,2 --seconds 5",
        "isthmus bound inter_bcast --q 5 --m 4 --ports 2 --show",
    ),
    "list": (
        "isthmus list",
        "isthmus list allgatherv ring",
        "isthmus list Träff --json",
    ),
    "draw": (
        "isthmus draw inter_allgather segmented --p 6 --q 2 --ka 6 --kb 6",
        "isthmus draw inter_allgatherv balanced --a 3,0,5 --b 4,4 -o x.svg",
        "isthmus draw inter_allgather segmented+ring --gantt --machine cori-like",
        "isthmus draw allreduce node_aware --p 6 --per-node 3",
        "isthmus draw bcast circulant --p 9 --circle 6",
        "isthmus draw redistribution --source blocks:4x2 --target cyclic:3x2:2x2",
    ),
    "explore": (
        "isthmus explore inter_allgather segmented --p 6 --q 2",
        "isthmus explore inter_allgather segmented root_gathering --p 6 --q 2",
        "isthmus explore allreduce node_aware --p 8 --per-node 4",
        "isthmus explore redistribution --source blocks:4x2 --target blocks:3x3",
        "isthmus explore inter_allgather segmented+ring --ka 262144 --kb 262144 "
        "--recorded run.json",
    ),
    "predict": (
        "isthmus predict allgatherv --groups 512,128 --bytes 4MiB",
        "isthmus predict allgather --groups 64 --machine hdr-infiniband",
        "isthmus predict allreduce --groups 64,64 --per-node 32 --machine cori-like",
        "isthmus predict bcast --groups 8,8 --json",
    ),
    "trace": (
        "isthmus trace inter_allgather segmented --p 6 --q 2",
        "isthmus trace allgatherv node_aware --per-node 2 --machine hdr-infiniband",
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
    """The lines of a command, as its help shows them."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[command])
