"""The command line: answers, and a clear line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner

import isthmus
from isthmus.bench import launch
from isthmus.check import sweep
from isthmus.cli import main
from isthmus.cli.app import app
from isthmus.schedules.names import described
from isthmus.schedules.registry import algorithms, collectives
from isthmus.settings import IMPORT
from isthmus.verify.errors import Deadlock
from sampling import LONG, some

#: what `isthmus check` is asked for, if not for more
FEW = "--max 2 --placements 1"


@pytest.fixture
def cli(capsys, monkeypatch):
    """A function that runs the command line: status, output and error output."""
    monkeypatch.setenv("COLUMNS", "100")
    # Input that is not refused must not start a measurement.
    monkeypatch.setattr(launch, "launch", None)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        return end.value.code, *capsys.readouterr()

    return run


def fewer(cases):
    """A sample of the cases of each algorithm."""
    cases_of_key = {}
    for case in cases:
        cases_of_key.setdefault((case.collective, case.algorithm), []).append(case)
    return [
        case
        for cases_of_one in cases_of_key.values()
        for case in some(cases_of_one, 16, 1)
    ]


def test_check_verifies_every_algorithm(monkeypatch):
    monkeypatch.setattr(sweep, "cases", lambda *x, cases=sweep.cases: fewer(cases(*x)))
    few = ["check", *("--max 3 --placements 2" if LONG else FEW).split()]
    answer = CliRunner().invoke(app, few, env={"COLUMNS": "100"})
    assert answer.exit_code == 0, answer.output
    assert "all right" in answer.output and "wrong" not in answer.output
    assert "placements on nodes" in answer.output
    for collective in collectives():
        for entry in algorithms(collective):
            assert entry.name in answer.output


def test_check_shows_the_first_failure_of_each_algorithm(cli, monkeypatch):
    def verify(programs, contract, nodes):
        if len(programs) == 4:
            raise Deadlock("rank 2 waits")

    monkeypatch.setattr(sweep, "verify", verify)
    monkeypatch.setattr(sweep, "CASES_PER_CHUNK", 10**9)  # in this process
    if not LONG:
        two = ["inter_allgather", "allgatherv"]
        monkeypatch.setattr(sweep, "collectives", lambda: two)
    few, groups = ("--max 3 --placements 1", "p=1, q=3") if LONG else (FEW, "p=2, q=2")
    status, out, err = cli("check", *few.split())
    assert status == 1, err
    words = f"segmented: {groups}, ka=4, kb=4: Deadlock: rank 2"
    assert f"allgather between two groups, {words}" in out
    assert "allgatherv" in out and "wrong" in out


def test_a_sweep_has_all_kinds_of_counts():
    all_cases = list(sweep.cases(3, seed=0))
    lists = [case.sizes["a"] for case in all_cases if "a" in case.sizes]
    assert any(0 in a and max(a) > 0 for a in lists)
    assert any(max(a) == 60 for a in lists) and any(not any(a) for a in lists)
    assert {(c.sizes["p"], c.sizes["q"]) for c in all_cases if "ka" in c.sizes} == {
        (p, q) for p in range(1, 4) for q in range(1, 4)
    }
    assert all_cases == list(sweep.cases(3, seed=0)) != list(sweep.cases(3, seed=1))


def test_only_a_named_stage_may_decline(monkeypatch):
    def decline(*args, **sizes):
        raise ValueError("does not work")

    monkeypatch.setattr(sweep, "schedule", decline)
    staged = sweep.SweepCase("inter_allgather", "segmented+ring", {})
    assert sweep.examine([staged]).declined.total() == 1
    with pytest.raises(ValueError):
        sweep.examine([sweep.SweepCase("inter_allgather", "segmented", {})])


def test_list_names_papers_and_ideas(cli):
    status, out, _ = cli("list")
    assert status == 0
    assert all(described(c) in out for c in collectives())
    assert "segmented+…" in out and "Bruck et al. 1997" in out


def test_list_shows_rows_that_have_all_words(cli):
    status, out, _ = cli("list", "allgatherv", "träff")
    assert status == 0 and "circulant" in out and "bruck" not in out.split()
    all_rows = json.loads(cli("list", "--json")[1])
    said = {f"{row['collective']} {row['groups']}" for row in all_rows}
    assert said == {described(c) for c in collectives()}
    chosen_rows = json.loads(
        cli("list", "--json", "bcast", "between", "down the chain")[1]
    )
    assert [row["algorithm"] for row in chosen_rows] == ["chain"]
    assert json.loads(cli("list", "--json", "nothing at all")[1]) == []
    status, out, err = cli("list", "nothing at all")
    assert status == 2 and err.count("\n") == 1 and "'nothing at all'" in err


OWN = """
from isthmus.schedules.ir import Recv, Round, Send
from isthmus.schedules.names import described
from isthmus.schedules.registry import algorithm


def cost(p, q, ka, kb, alpha, beta, stage):
    return max(p, q) * (alpha + max(ka, kb) * beta)


@algorithm("inter_allgather", "inter_allgatherv", paper="a test", cost=cost)
def swapping(r, here, there, stage):
    'Everyone swaps blocks with everyone, one after the other.'
    n = max(here.n, there.n)
    for t in range(n):
        j = (t - r) % n
        to, known = there.base + j, j < there.n
        yield Round((Recv(to, there.blocks[j], known), Send(to, here.own(r), known)))
"""


#: at the end of such a file: `isthmus check` verifies its collective alone
ONLY = """
from isthmus.check import sweep

sweep.collectives = lambda: ["inter_allgather"]
"""


def test_algorithms_of_ones_own_can_be_imported(tmp_path):
    """Imports work in every command, and in processes started by commands."""
    path = tmp_path / "my_algorithms.py"
    path.write_text(OWN + ONLY * (not LONG))

    def run(*words):
        argv = [sys.executable, "-m", "isthmus", "--import", str(path), *words]
        return subprocess.run(argv, capture_output=True, text=True)

    done = run("list", "swapping")
    assert done.returncode == 0 and "allgatherv between two groups" in done.stdout
    done = run("check", "--jobs", "2", "--max", "1", "--placements", "1")
    rows = [x.split() for x in done.stdout.splitlines() if "swapping" in x]
    assert done.returncode == 0 and {row[-1] for row in rows} == {"right"}
    path = tmp_path / "numpy.py"
    path.write_text("")
    done = run("list")
    assert done.returncode == 2 and "there is another module 'numpy'" in done.stderr
    path = tmp_path / "missing.py"
    done = run("list")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    argv, env = [sys.executable, "-m", "isthmus", "list"], {IMPORT: str(path)}
    done = subprocess.run(argv, capture_output=True, text=True, env=os.environ | env)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_version_and_module(cli):
    assert cli("--version") == (0, f"isthmus {isthmus.__version__}\n", "")
    run = [sys.executable, "-m", "isthmus", "--version"]
    assert subprocess.check_output(run, text=True).split() == [
        "isthmus",
        isthmus.__version__,
    ]


def test_draw_writes_a_picture(cli, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "x.svg"
    sizes = ("--counts", "3,0,5;4,4")
    status, out, _ = cli("draw", "allgatherv", "balanced", *sizes, "-o", str(path))
    assert status == 0 and path.stat().st_size > 1000
    assert out.replace("\n", "") == str(path)


def test_draw_knows_roots_and_circles(cli, tmp_path):
    pytest.importorskip("matplotlib")
    for line in ("reduce binomial --root 2", "bcast circulant(n=2) --circle 2"):
        path = tmp_path / f"{line[:3]}.svg"
        status, _, _ = cli("draw", *line.split(), "--p", "6", "-o", str(path))
        assert status == 0 and path.stat().st_size > 1000


def test_draw_and_trace_take_nodes(cli, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "x.svg"
    line = "draw allgatherv node_aware --nodes 0,1,0,1,1 -o"
    status, _, _ = cli(*line.split(), str(path))
    assert status == 0 and "node 1" in path.read_text()
    path = tmp_path / "y.svg"
    for machine in ("", "--machine hdr-infiniband"):
        line = f"draw allreduce node_aware --per-node 4 --gantt {machine} -o"
        status, _, _ = cli(*line.split(), str(path))
        assert status == 0 and "waits for its node" in path.read_text()
    path = tmp_path / "z.json"
    line = "trace allgather node_aware --p 4 --q 4 --per-node 3 -o"
    status, _, _ = cli(*line.split(), str(path))
    assert status == 0 and "rank 7 (node 2) works" in path.read_text()


def test_draw_shows_redistributions(cli, tmp_path):
    pytest.importorskip("matplotlib")
    for line in (
        "--source cyclic:2x3:2x2 --target sharded:2x2:S1,R",
        "--source blocks:4 --target blocks:3 --shape 10 --inside",
        "--gantt --machine gigabit-ethernet",
    ):
        path = tmp_path / "x.svg"
        status, _, _ = cli("draw", "redistribution", *line.split(), "-o", str(path))
        assert status == 0 and path.stat().st_size > 1000
        if "--gantt" in line:
            assert "redistribution between two groups" in path.read_text()
        path.unlink()


BAD = [
    # refused for the algorithm too: nothing starts, should the first check be lost
    ("bench --groups 100000,2 --algorithms nonsense", "100002 processes"),
    ("record nonsense --groups 100000", "100000 processes"),
    ("draw bcast binomial --p 25", "25 ranks: a picture shows up to 24; --gantt"),
    ("draw bcast binomial --p 1025 --gantt", "1025 ranks: a picture shows up to 1024"),
    ("explore redistribution --source blocks:4x2", "give --target too"),
    ("draw redistribution --target blocks:4x2", "give --source too"),
    ("draw redistribution --source blocks", "--source blocks"),
    ("draw redistribution --source sharded:2:X", "no placement"),
    ("draw redistribution --source blocks:2x2 --shape 4", "must have 1 entries"),
    ("draw redistribution --machine tuned", "--gantt"),
    ("draw bcast binomial --inside", "of a redistribution"),
    ("bench --op redistribution --algorithms ring", "no contender"),
    ("bench --op redistribution --distribution spike", "no redistribution"),
    ("draw bcast binomial --root 9", "root = 9"),
    ("draw bcast binomial --circle 2 --gantt", "--circle"),
    ("draw reduce binomial --circle 2", "--circle"),
    ("check --max 0", "--max"),
    ("check --max x", "--max"),
    ("check --placements 0", "--placements"),
    ("frobnicate", "frobnicate"),
    ("draw allgather", "which algorithm"),
    ("draw allgatherv node_aware --nodes 0,1", "the nodes of 5 ranks"),
    ("draw allgatherv node_aware --nodes 0,x", "--nodes 0,x"),
    ("draw bcast node_aware --nodes 0,0,0,1,1 --per-node 2", "--per-node"),
    ("draw bcast node_aware --per-node 0", "--per-node"),
    ("draw nowhere direct", "no collective 'nowhere'"),
    ("draw allgather fast", "no algorithm 'fast'"),
    ("draw allgather direct+ring", "no intragroup stage"),
    ("draw allgather direct --p 0", "p = 0"),
    ("draw allgather direct --a 3", "takes --groups"),
    ("draw allgatherv direct --a 3,x", "--a 3,x"),
    ("draw allgatherv direct --a=-1", "at least 0"),
    ("draw allgather direct -o x.nonsense", "nonsense"),
    ("bench --groups 4,4,4", "--groups 4,4,4"),
    ("bench --groups 4 --op allgatherv --distribution flat", "no distribution 'flat'"),
    ("bench --groups 3 --algorithms recursive_doubling", "group of 3"),
    ("bench --groups 0,4", "--groups 0,4"),
    ("bench --bytes 4KiB,much", "'much' is not a size"),
    ("bench --op scan", "no operation 'scan'"),
    ("bench --set kang2020", "no set 'kang2020'"),
    ("bench --set kang2019 --groups 4,4", "--groups does not go with --set"),
    ("bench --set kang2019 --scale 0", "--scale 0"),
    ("bench --scale 2", "--scale goes with --set"),
    ("bench --format xml", "no --format 'xml'"),
    ("bench --launches 0", "--launches"),
    ("bench --lab 2 --lab-name x", "--lab-name"),
    ("bench --groups 4 --op bcast --algorithms fast", "no algorithm 'fast'"),
    ("bench --algorithms auto,fast", "no algorithm 'fast'"),
    ("bench --groups 4,3 --algorithms segmented+recursive_doubling", "group of 3"),
    ("bench --persistent --algorithms segmented+library", "no persistent form"),
    ("bench --regret --algorithms auto", "--algorithms does not go with --regret"),
    ("bench --regret --set one_node", "--set does not go with --regret"),
    ("bench --regret --op bcast,redistribution", "no operation 'redistribution'"),
    ("bench --regret --bytes 8,much", "'much' is not a size"),
    ("demo --ranks 1", "at least 2"),
    ("demo --ranks 6 --groups 4,4", "not 6"),
]


@pytest.mark.parametrize("line, part", BAD, ids=[line for line, _ in BAD])
def test_bad_input_gives_one_line_and_status_2(cli, line, part):
    status, out, err = cli(*line.split())
    assert (status, out) == (2, "")
    assert part in err and err.startswith("isthmus: ")
    assert err.count("\n") == 1


def test_without_the_extra_it_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("isthmus.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    status, out, err = cli("list")
    assert (status, out) == (2, "")
    assert 'pip install "isthmus[cli]"' in err and err.count("\n") == 1


def test_without_arguments_it_shows_help(cli):
    status, out, err = cli()
    assert status == 0 and "bench" in out and not err


#: commands in the words of before and of now, and what they say of it
RENAMED = [
    (
        "draw inter_allgather segmented --p 6 --q 2 --ka 6 --kb 6",
        "draw allgather segmented --groups 6,2 --bytes 6",
        ["inter_allgather is now allgather", "--bytes 6\n"],
    ),
    (
        "draw inter_allgatherv balanced --a 3,0,5 --b 4,4",
        "draw allgatherv balanced --counts 3,0,5;4,4",
        ["inter_allgatherv is now allgatherv", "--counts '3,0,5;4,4'"],
    ),
    (
        "draw inter_bcast chain --q 5 --m 6",
        "draw bcast chain --groups 1,5 --bytes 6",
        ["inter_bcast is now bcast", "--m 6 is now --bytes 6"],
    ),
    (
        "draw multi_allgatherv direct --groups 3,0;4,1;2",
        "draw allgatherv direct --counts 3,0;4,1;2",
        ["multi_allgatherv is now allgatherv", "--counts 3,0;4,1;2"],
    ),
    (
        "draw alltoall rotated --p 4 --k 2",
        "draw alltoall rotated --groups 4 --bytes 2",
        ["--k 2 is now --bytes 2"],
    ),
    (
        "draw inter_reduce_scatter_block direct --p 4 --q 2 --ka 2 --kb 4",
        "draw reduce_scatter_block direct --groups 4,2 --bytes 8",
        ["inter_reduce_scatter_block is now", "--bytes 8\n"],
    ),
]


@pytest.mark.parametrize("old, new, notes", RENAMED, ids=[x for x, _, _ in RENAMED])
def test_old_names_still_work_and_say_what_is_new(cli, monkeypatch, old, new, notes):
    pytest.importorskip("matplotlib")
    from isthmus.cli import draw

    drawn = []
    monkeypatch.setattr(draw, "figure", drawn.append)
    monkeypatch.setattr(draw, "save", lambda *x: None)
    status, _, err = cli(*old.split())
    assert status == 0 and all(words in err for words in notes), err
    assert all(line.startswith("isthmus: note: ") for line in err.splitlines())
    status, _, err = cli(*new.split())
    assert (status, err) == (0, "")
    before, now = drawn
    assert (before.collective, before.sizes) == (now.collective, now.sizes)


SAME = [
    # where options alone say how many groups there are
    ("allgather segmented", "inter_allgather", {"p": 6, "q": 2}),
    ("allgather segmented --p 3", "inter_allgather", {"p": 3, "q": 2}),
    ("allgather ring", "allgatherv", {"counts": [3, 0, 4, 4, 9]}),
    ("allgatherv ring --p 6 --bytes 2", "allgatherv", {"counts": [2] * 6}),
    ("allgatherv ring --groups 3", "allgatherv", {"counts": [4] * 3}),
    ("bcast chain --q 3", "inter_bcast", {"q": 3, "m": 6}),
    ("bcast circulant --groups 9", "bcast", {"p": 9, "m": 6, "root": 0}),
    ("gatherv binomial --counts 3,4 --q 2", "inter_gatherv", {"counts": [3, 4]}),
    ("alltoallv rotated --groups 2", "alltoallv", {"table": [[4, 4], [4, 4]]}),
    ("alltoallv rotated --groups 2,1", "inter_alltoallv", {"ab": [[4], [4]]}),
    ("allgather segmented --bytes 2:3", "inter_allgather", {"ka": 2, "kb": 3}),
    (
        "reduce_scatter pairwise --groups 4 --bytes 6",
        "reduce_scatter",
        {"counts": [2, 2, 1, 1]},
    ),
    ("alltoall rotated --groups 1,1,2", "multi_alltoallv", {"sizes": [1, 1, 2]}),
]


@pytest.mark.parametrize("line, form, sizes", SAME, ids=[x for x, _, _ in SAME])
def test_groups_and_bytes_mean_the_same_everywhere(cli, monkeypatch, line, form, sizes):
    pytest.importorskip("matplotlib")
    from isthmus.cli import draw

    drawn = []
    monkeypatch.setattr(draw, "figure", drawn.append)
    monkeypatch.setattr(draw, "save", lambda *x: None)
    status, _, err = cli("draw", *line.split())
    assert (status, err) == (0, "")
    (schedule,) = drawn
    assert schedule.collective == form and schedule.sizes.items() >= sizes.items()


HINTS = [
    ("benhc", "did you mean bench?"),
    ("lab dwon", "did you mean down?"),
    ("draw allgahter segmented", "did you mean allgather?"),
    ("draw allgather segmentd", "did you mean segmented?"),
    ("draw allgather segmented --groups 8", "between two groups: --groups 6,2"),
    ("draw allgather direct --gantt --machine corilike", "did you mean cori-like?"),
    ("explore allgather segmented ring", "ring is inside one group"),
    ("predict allgahter", "did you mean allgather?"),
    ("bench --op allgahter", "did you mean allgather?"),
    ("bench --set kang209", "did you mean kang2019?"),
    ("bench --op allgatherv --distribution spiek", "did you mean spike?"),
    ("bench --format oso", "did you mean osu?"),
    ("reproduce kang2018", "did you mean kang2019?"),
    ("list segmentd", "did you mean segmented?"),
    ("bench --grups 4,4", "--groups"),
]


@pytest.mark.parametrize("line, hint", HINTS, ids=[line for line, _ in HINTS])
def test_a_slip_of_the_pen_gets_the_right_name(cli, line, hint):
    status, out, err = cli(*line.split())
    assert (status, out) == (2, "") and hint in err and err.count("\n") == 1, err


def test_a_tebibyte_is_a_size_but_no_buffer(cli):
    # of the algorithms that cut their data, hundreds of thousands of messages
    words = "predict allgather --groups 4,2 --bytes 1TiB --most 5000"
    assert cli(*words.split())[0] == 0
    status, out, err = cli("bench", "--bytes", "1TiB")
    assert (status, out) == (2, "") and "this machine has" in err
