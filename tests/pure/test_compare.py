"""Measuring with a simulated clock and simulated ranks; launching without MPI."""

from __future__ import annotations

import os
import pickle
import sys
import time
from base64 import b64encode
from dataclasses import replace
from types import SimpleNamespace

import pytest

from isthmus.bench import compare, demo, field, launch, worker
from isthmus.bench.environment import Software
from isthmus.bench.job import (
    AUTO,
    NATIVE,
    BenchJob,
    Contender,
    candidates,
    case,
    contenders,
    uneven,
)
from isthmus.bench.outcome import Outcome, Result, merge
from isthmus.launch import local, mpiexec as mpiexec_module
from isthmus.launch.environment import on_one_host
from isthmus.launch.mpiexec import LaunchError
from isthmus.units import read_bytes, show_bytes, show_time


class Trial:
    def __init__(self, stand, contender, seconds, right=True):
        self.stand, self.contender, self.seconds = stand, contender, seconds
        self.good, self.freed, self.wiped, self.calls = right, False, False, 0

    def run(self):
        self.stand.log.append(self.contender.algorithm)
        self.stand.now += self.seconds * (self.stand.drag if self.calls > 6 else 1)
        self.calls += 1
        # A slip long after the start must be seen as well.
        if self.calls != self.stand.slips:
            self.wiped = False

    def taken(self):
        return self.contender.algorithm

    def wipe(self):
        self.wiped = True
        self.stand.now += 1e-3  # no part of what is timed

    def right(self):
        self.stand.now += 1e-3
        return self.good and not self.wiped

    def free(self):
        self.freed = True


class Stand:
    """A rank with a clock of its own; the slowest rank takes twice as long."""

    def __init__(self, seconds, wrong=(), slips=None):
        self.seconds, self.wrong, self.now, self.log = seconds, wrong, 0.0, []
        self.slips, self.drag = slips, 1
        self.trials = []

    def prepare(self, case, contender):
        name = contender.algorithm
        trial = Trial(self, contender, self.seconds[name], name not in self.wrong)
        self.trials.append(trial)
        return trial

    def barrier(self):
        self.log.append("|")

    def worst(self, values):
        return [2 * value for value in values]


@pytest.fixture
def measured(monkeypatch):
    def measure(seconds, wrong=(), slips=None):
        stand = Stand(seconds, wrong, slips)
        monkeypatch.setattr(compare, "perf_counter", lambda: stand.now)
        names = tuple(Contender(name) for name in seconds)
        cases = (case("allgather", (2, 2), 8),)
        job = BenchJob((2, 2), cases, names, seconds=0.5)
        return stand, lambda: compare.compare(stand, cases[0], job)

    return measure


def test_a_time_is_that_of_the_slowest_rank(measured):
    stand, run = measured({"native": 0.004, "auto": 0.001})
    comparison = run()
    assert comparison.seconds(NATIVE) == pytest.approx(0.008)
    assert comparison.ratio(AUTO) == pytest.approx(4)
    assert all(trial.freed for trial in stand.trials)


def test_contenders_take_turns_in_random_order(measured):
    stand, run = measured({"native": 0.02, "auto": 0.02, "direct": 0.02})
    comparison = run()
    n = len(comparison.results[0].times[0])
    turns = "".join(name[0] for name in stand.log if name != "|")
    turns = turns.removeprefix("nad" * compare.ESTIMATE_CALLS)
    rounds = [turns[i : i + 3] for i in range(0, len(turns), 3)]
    assert len(rounds) == n and {"".join(sorted(r)) for r in rounds} == {"adn"}
    assert len(set(rounds)) > 1


def test_a_candidate_that_is_much_slower_leaves_the_race(monkeypatch):
    one = case("allgather", (2, 2), 8)
    names = [contender.name for contender in candidates(one)]
    seconds = dict.fromkeys(names, 0.0061) | {"direct": 0.002, "balanced": 0.0059}
    seconds |= {"native": 0.05, "auto": 0.01}  # a first call of native is long
    seconds |= {"native by name": 0.051}
    stand = Stand(seconds)
    monkeypatch.setattr(compare, "perf_counter", lambda: stand.now)
    job = BenchJob((2, 2), (one,), (NATIVE, AUTO), 0.5, all_candidates=True)
    outcome = compare.compare(stand, one, job)
    left = ["native", "auto", "native by name", "direct", "balanced"]
    assert [result.contender.name for result in outcome.results] == left
    assert outcome.fastest.name == "direct" and outcome.regret(AUTO) == pytest.approx(5)
    assert stand.log.count("segmented") == compare.ESTIMATE_CALLS
    assert stand.log.count("native") == 1 + len(outcome.results[0].times[0])
    assert all(trial.freed for trial in stand.trials) and len(names) > 5


def test_of_long_calls_twice_the_fastest_is_too_slow():
    contenders = [NATIVE, AUTO, *map(Contender, ("ring", "bruck", "linear"))]
    seconds = [0.1, 0.9, 0.06, 0.11, 0.13]
    assert compare._near_fastest(contenders, seconds) == [0, 1, 2, 3]
    shorter = [t / 10 for t in seconds]
    assert compare._near_fastest(contenders, shorter) == [0, 1, 2, 3, 4]


def test_every_repetition_begins_with_a_barrier(measured):
    stand, run = measured({"native": 0.02})
    run()
    assert stand.log[::2] == ["|"] * (len(stand.log) // 2)


def test_tiny_calls_are_repeated_and_long_ones_are_not():
    calls, repetitions = compare.plan([1e-5, 1e-4], 1.0, single=False)
    assert calls == 100 and repetitions == int(1.0 / (calls * 11e-5))
    assert compare.plan([1e-5, 2e-3], 1.0, single=False)[0] == 1
    assert compare.plan([1e-5, 1e-4], 1.0, single=True) == (1, 501)


def test_with_many_contenders_fewer_calls_are_made_in_a_row():
    calls, repetitions = compare.plan([1e-5] * 10, 0.3, single=False)
    assert calls < 1000 and repetitions >= compare.MANY_REPETITIONS - 1


def test_slow_cases_keep_to_their_seconds_but_for_three_repetitions():
    assert compare.plan([0.25, 1.0], 10.0, single=False) == (1, 8)
    assert compare.plan([0.5, 20.0], 2.0, single=False) == (1, 3)


def test_contenders_that_become_slower_keep_to_their_seconds_too(measured):
    stand, run = measured({"native": 0.002})
    foreseen = len(run().results[0].times[0])
    stand, run = measured({"native": 0.002})
    stand.drag = 20
    assert 3 <= len(run().results[0].times[0]) < foreseen / 2
    assert stand.now < 1.0


def test_a_long_first_call_is_not_repeated_to_estimate(measured):
    stand, run = measured({"native": 0.2})
    assert len(run().results[0].times[0]) == 3
    assert stand.log.count("native") == 1 + 3


def test_wrong_data_is_an_error(measured):
    _, run = measured({"native": 0.1, "auto": 0.1}, wrong=("auto",))
    with pytest.raises(compare.WrongData, match=r"from auto \(allgather, 8 B\)"):
        run()


def test_one_wrong_repetition_of_many_is_an_error(measured):
    _, run = measured({"native": 0.02, "auto": 0.02}, slips=7)
    with pytest.raises(compare.WrongData, match="from native; auto"):
        run()


def test_a_barrier_copies_nothing():
    job = BenchJob((2, 2), (), contenders(["auto"], True))
    names = [
        [c.name for c in job.contenders_of(case(op, (2, 2), 8))]
        for op in ("alltoallw", "barrier")
    ]
    ours = ["native", "auto", "auto, persistent"]
    assert names == [[*ours, "copy"], ours]


def outcome(label, calls, *times):
    labelled = replace(case("allgather", (1, 1), 8, None), label=label)
    return Outcome(labelled, (calls,), (Result(NATIVE, (times,)),))


def test_launches_are_merged_by_case():
    class Seen(worker.Display):
        def __init__(self):
            self.progress_calls, self.outcomes, self.libraries = [], [], []

        def about(self, software):
            self.libraries.append(software.library)

        def progress(self, label, part):
            self.progress_calls.append((label, part))

        def outcome(self, merged):
            self.outcomes.append(merged)

    seen = Seen()
    job = BenchJob((1, 1), (case("allgather", (1, 1), 8),) * 2, (NATIVE,))
    collected = worker.LaunchMerger(job, seen, 2)
    for k in range(2):
        collected.about(Software("An MPI"))
        collected.outcome(outcome("one", 5, 1.0 + k))
        collected.progress("two", 0.5)
        collected.outcome(outcome("two", 1, 3.0 + k))
    assert seen.libraries == ["An MPI"]
    assert seen.progress_calls == [
        ("launch 1 of 2: two", 0.375),
        ("launch 2 of 2: two", 0.875),
    ]
    assert [x.case.label for x in seen.outcomes] == ["one", "two"]
    assert [x.results[0].times for x in seen.outcomes] == [
        ((1.0,), (2.0,)),
        ((3.0,), (4.0,)),
    ]
    assert seen.outcomes[0].calls == (5, 5)
    assert seen.outcomes[1] == merge([outcome("two", 1, 3.0), outcome("two", 1, 4.0)])


def test_contenders_that_left_in_a_launch_are_not_merged():
    one = case("allgather", (1, 1), 8)
    results = [Result(c, ((k + 1.0,),)) for k, c in enumerate((NATIVE, AUTO))]
    launches = Outcome(one, (1,), tuple(results)), Outcome(one, (1,), (results[0],))
    (merged,) = merge(launches).results
    assert merged.contender == NATIVE and merged.times == ((1.0,), (1.0,))


def test_contenders_begin_with_native_once():
    names = [c.name for c in contenders(["auto", "native"], True)]
    assert names == ["native", "auto", "auto, persistent", "copy"]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_uneven_contributions_have_the_average_asked_for(n):
    assert sum(uneven(4096, n)) == pytest.approx(4096 * n, rel=0.01)
    assert all(k % 8 == 0 for k in uneven(4096, n))


def test_sizes_and_times_in_words():
    texts = ["8", "8 B", "4KiB", "64k", "1.5 MiB", "2gib", "0", "100KB", "2 MB"]
    sizes = [8, 8, 4096, 65536, 3 << 19, 2 << 30, 0, 100_000, 2_000_000]
    assert [read_bytes(t) for t in texts] == sizes
    assert [show_bytes(n) for n in (8, 4096, 3 << 19, 1 << 30, 1023)] == [
        "8 B",
        "4 KiB",
        "1.5 MiB",
        "1 GiB",
        "1023 B",
    ]
    assert [show_time(t) for t in (2, 0.0123, 4.5e-5)] == ["2 s", "12.3 ms", "45 µs"]
    for text in ("", "-1", "x", "1e3", "4 PiB", "nan"):
        with pytest.raises(ValueError):
            read_bytes(text)


@pytest.mark.parametrize("groups", [(4, 4), (7, 1), (5, 3)])
def test_strips_make_up_the_field(groups):
    for make in (field.even, field.uneven):
        bench_case = make(24, groups, "x")
        for side, sizes in enumerate((bench_case.a, bench_case.b)):
            assert len(sizes) == groups[side]
            assert field.content(sizes, side).nbytes == sum(sizes)
    assert len(set(field.even(24, groups, "x").a)) == 1


def test_a_process_knows_whether_mpiexec_started_it():
    assert mpiexec_module.own_rank({}) is None
    assert mpiexec_module.own_rank({"PMI_RANK": "3"}) == 3
    assert mpiexec_module.own_rank({"OMPI_COMM_WORLD_RANK": "0"}) == 0


def test_without_mpiexec_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(mpiexec_module.shutil, "which", lambda *args, **options: None)
    with pytest.raises(LaunchError, match=r'pip install "isthmus\[mpich\]"'):
        mpiexec_module.find_mpiexec()


@pytest.fixture
def mpiexec(tmp_path, monkeypatch):
    """A function that writes a script in place of mpiexec; the last argument is the
    results' file."""

    def write(body):
        path = tmp_path / "mpiexec"
        version = '[ "$1" = --version ] && echo "mpiexec (Open MPI) 5.0" && exit\n'
        last = "for results; do :; done\n"
        path.write_text(f"#!/bin/sh\n{version}{last}{body}\n")
        path.chmod(0o755)
        monkeypatch.setattr(local, "find_mpiexec", lambda: str(path))
        return str(path)

    return write


def echo_message(message):
    """The shell command with which a script sends a message to the launching
    process."""
    return f"echo {b64encode(pickle.dumps(message)).decode()} >> $results"


def test_the_user_environment_wins():
    variables = on_one_host(True, {"OMPI_MCA_pml": "ucx", "HOME": "h"})
    assert variables["OMPI_MCA_pml"] == "ucx" and variables["HOME"] == "h"
    assert variables["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    assert "OMPI_MCA_pml" not in on_one_host(False, {})


def test_lines_come_as_they_are_written(mpiexec):
    mpiexec(f"{echo_message('one')}; sleep 0.1; {echo_message('two')}")
    assert list(launch.launch(worker.measure, None, 2, 5)) == ["one", "two"]


def test_a_launch_that_fails_says_how(mpiexec):
    mpiexec(f"{echo_message('one')}; echo no such thing; exit 3")
    lines = launch.launch(worker.measure, None, 2, 5)
    assert next(lines) == "one"
    with pytest.raises(LaunchError, match="returned 3\nno such thing"):
        next(lines)


def test_a_launch_that_tells_something_may_go_on(mpiexec):
    mpiexec(f"for i in 1 2 3 4; do {echo_message('word')}; sleep 0.7; done")
    assert list(launch.launch(worker.measure, None, 2, 2.5)) == ["word"] * 4


def test_a_launch_that_is_silent_is_ended(mpiexec, tmp_path):
    mpiexec(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    began = time.monotonic()
    with pytest.raises(LaunchError, match=r"nothing heard .* for 1 s"):
        list(launch.launch(worker.measure, None, 2, 1))
    assert time.monotonic() - began < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_the_ranks_tell_reaches_the_display(mpiexec):
    single_outcome = Outcome(
        case("allgather", (1, 1), 8), (1,), (Result(NATIVE, ((0.5,),)),)
    )
    said = Software("An MPI"), single_outcome, compare.WrongData("wrong data")
    mpiexec("\n".join(map(echo_message, said)))

    class LastOutcome(worker.Display):
        library, last = "", None

        def about(self, software):
            self.library = software.library

        def outcome(self, outcome):
            self.last = outcome

    display = LastOutcome()
    with pytest.raises(LaunchError, match="wrong data"):
        worker.run(BenchJob((1, 1), (single_outcome.case,), (NATIVE,)), display)
    assert display.library == "An MPI" and display.last == single_outcome


@pytest.mark.parametrize("rank", [0, 1])
def test_under_the_users_mpiexec_rank_0_tells(rank, monkeypatch):
    ended, sent = [], []
    here = SimpleNamespace(world_size=lambda: 2, abort=ended.append)
    monkeypatch.setitem(sys.modules, "isthmus.bench.stand", here)
    monkeypatch.setattr(launch, "own_rank", lambda: rank)

    def work(error, tell):
        tell("word")
        raise error

    with pytest.raises(ValueError, match="3 processes are needed; there are 2"):
        launch.run(work, None, 3, sent.append)
    assert not sent
    with pytest.raises(compare.WrongData):  # on all ranks alike
        launch.run(work, compare.WrongData("x"), 2, sent.append)
    assert not ended
    launch.run(work, KeyError("one rank's own"), 2, sent.append)
    assert len(ended) == 1 and sent == ["word"] * 2 * (rank == 0)


def test_the_demo_draws_algorithms_and_not_calls_of_the_library():
    for name in ("segmented+ring", "node_aware", "direct", "pipelined(parts=3)"):
        assert demo.drawable(name)
    for name in ("native", "", "native or node_aware"):
        assert not demo.drawable(name)
