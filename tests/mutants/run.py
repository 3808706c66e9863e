"""The sample, its tests and its log."""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from launcher.mpirun import OWN_GROUP

from .lines import LINES, RANKS, SOURCES
from .mutations import Mutation, mutations

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "mpi"
RUNTIME = Path("isthmus/mpi")
#: where plans, counting and staging are
FOLDERS = ("plan", "arguments", "buffers", "requests", "context")
#: what runs only where there is a GPU, and takes its place elsewhere in few tests
LEFT_OUT = ("devices/cuda.py", "devices/libraries.py", "dlpack.py")
#: tests that look at other things than results: they would not notice, or always
NO_TESTS = ("test_way_of_a_call.py", "test_bench.py", "test_examples.py")
#: what a mutant gets first, and what it gets if it survives that
QUICK_TESTS, QUICK_SECONDS, FEW_RANKS = 14, 5.0, 3
MORE = 60, 20.0
#: what those get that are tried again: all, within reason
ALL_TESTS, ALL_SECONDS = 1000, 150.0
#: seconds for the tests of one file, when the lines are looked for
TRACED_SECONDS = 280.0
#: seconds for a run of pytest beyond its tests
START_SECONDS = 60.0
#: seconds for a run of pytest to end its ranks
ENDING_SECONDS = 15.0
COLUMNS = ("file", "line", "mutation", "place", "outcome", "by", "tests", "seconds")


@dataclass(frozen=True)
class Mutant:
    """A mutation of one file."""

    file: str
    mutation: Mutation

    @property
    def name(self) -> tuple[str, str, str]:
        """What it is known by in the log."""
        m = self.mutation
        return self.file, f"{m.start}-{m.stop}", m.shown


@dataclass(frozen=True)
class Test:
    """What a test of the unchanged sources took, and what it executed."""

    name: str
    ranks: int
    seconds: float
    lines: dict[str, frozenset[int]]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]

    def executes(self, mutant: Mutant) -> bool:
        """Whether it comes to the changed line; a line outside of functions is executed
        by all that comes to the file."""
        lines = self.lines.get(mutant.file, frozenset())
        if not mutant.mutation.is_in_function:
            return bool(lines)
        first, last = mutant.mutation.first_line, mutant.mutation.last_line
        return any(first <= line <= last for line in lines)


class Log:
    """The table of outcomes: rows are appended, the last one of a mutant counts."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self.rows: dict[tuple[str, str, str], dict[str, str]] = {}
        if path.exists():
            with open(path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    self.rows[row["file"], row["place"], row["mutation"]] = row
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")

    def add(self, mutant: Mutant, outcome: str, by: str, tests: int, s: float) -> None:
        """Append what became of a mutant."""
        file, place, shown = mutant.name
        row = {
            "file": file,
            "line": str(mutant.mutation.first_line),
            "mutation": shown,
            "place": place,
            "outcome": outcome,
            "by": by,
            "tests": str(tests),
            "seconds": f"{s:.1f}",
        }
        with self._lock:
            self.rows[mutant.name] = row
            with open(self.path, "a", newline="", encoding="utf-8") as file_:
                csv.DictWriter(file_, COLUMNS).writerow(row)

    def outcome(self, mutant: Mutant) -> str:
        """What became of a mutant; "" if nothing did."""
        return self.rows.get(mutant.name, {}).get("outcome", "")


class Sources:
    """A copy of the sources, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "src", folder)  # the compiled files too

    def write(self, mutant: Mutant) -> None:
        path = self.folder / mutant.file
        path.write_bytes(mutant.mutation.apply(_original(mutant.file)))

    def restore(self, mutant: Mutant) -> None:
        shutil.copy2(ROOT / "src" / mutant.file, self.folder / mutant.file)


@dataclass(frozen=True)
class Outcome:
    """What a run of pytest says."""

    status: int | None
    output: str

    @property
    def killer(self) -> str:
        """The first test that failed."""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", self.output, re.M)
        return failed[1].rpartition("/")[2] if failed else f"status {self.status}"

    @property
    def is_overdue(self) -> bool:
        """Whether it was ended for its time."""
        return self.status is None or "within its time limit" in self.output


def run_pytest(
    sources: Path, arguments: Sequence[str], seconds: float, **variables: str
) -> Outcome:
    """Run pytest on a copy of the sources."""
    paths = [str(sources), str(TESTS.parent)]
    env = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(paths)}
    env["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"  # MPICH: launches share the cores
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*argv, *arguments],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **OWN_GROUP,
        )
        status: int | None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            process.send_signal(signal.SIGINT)  # it ends its launches
            try:
                process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        output.seek(0)
        return Outcome(status, output.read())


# -- the lines


def tests_with_lines(
    asked: argparse.Namespace, is_over: Callable[[], bool]
) -> list[Test]:
    """All tests on so many ranks that pass, with the lines that they execute."""
    names = asked.tests or [path.name for path in TESTS.glob("test_*.py")]
    names = [name for name in names if "mark.mpi" in (TESTS / name).read_text("utf-8")]
    names = [name for name in names if name not in NO_TESTS]
    names.sort(key=lambda name: -(TESTS / name).stat().st_size)
    folder = Path(asked.work, "lines").absolute()
    sources = " ".join(map(_stamp, sorted((ROOT / "src" / RUNTIME).rglob("*.py"))))

    def lines(name: str) -> list[Test]:
        stamp = hash_of(f"{asked.ranks} {_stamp(TESTS / name)} {sources}".encode())
        kept = folder / f"{name}-{stamp}.json"
        if not kept.exists() and not is_over():
            rows = _traced(name, folder / stamp / name, asked.ranks)
            kept.write_text(json.dumps(rows), encoding="utf-8")
        elif not kept.exists():
            return []
        return [_test(row) for row in json.loads(kept.read_text(encoding="utf-8"))]

    with ThreadPoolExecutor(asked.jobs) as pool:
        return [test for tests in pool.map(lines, names) for test in tests]


def _traced(name: str, folder: Path, ranks: str) -> list[dict[str, Any]]:
    """Run the tests of a file; those that pass, with what their ranks wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    outcome = run_pytest(
        ROOT / "src",
        ["-rA", "--mpi-timeout-factor=3", str(TESTS / name)],
        TRACED_SECONDS,
        PYTEST_PLUGINS="mutants.lines",
        **{LINES: str(folder), SOURCES: str(ROOT / "src"), RANKS: ranks},
    )
    tests: dict[str, dict[str, Any]] = {}
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            _join(tests, json.loads(line))
    shutil.rmtree(folder)
    passed = re.findall(r"^PASSED (\S.*)$", outcome.output, re.M)
    return [tests[test] for test in passed if test in tests]


def _join(tests: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """Add what one rank executed to what the others did."""
    whole = tests.setdefault(row["test"], {**row, "lines": {}})
    whole["seconds"] = max(whole["seconds"], row["seconds"])
    for name, lines in row["lines"].items():
        whole["lines"][name] = sorted({*whole["lines"].get(name, ()), *lines})


def _test(row: dict[str, Any]) -> Test:
    lines = {name: frozenset(lines) for name, lines in row["lines"].items()}
    size = re.search(r"n=(\d+)", row["test"])
    assert size is not None, row["test"]
    return Test(row["test"], int(size[1]), row["seconds"], lines)


def _stamp(path: Path) -> str:
    return f"{path.relative_to(ROOT)} {hash_of(path.read_bytes())}"


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# -- the sample


def all_mutants(folders: Iterable[str]) -> list[Mutant]:
    """All mutants of the files in some folders of the runtime, or of some files."""
    mutants = []
    for folder in folders:
        place = ROOT / "src" / RUNTIME / folder
        paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
        for path in paths:
            name = path.relative_to(ROOT / "src").as_posix()
            if not name.endswith(LEFT_OUT):
                mutants += [Mutant(name, m) for m in mutations(path.read_bytes())]
    return mutants


def sample(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """So many of them in a random order, of which the first are the same for any size;
    no two of the same statement before each statement has one."""
    order = list(mutants)
    random.Random(seed).shuffle(order)
    turns: Counter[tuple[str, int]] = Counter()
    ranked = []
    for k, mutant in enumerate(order):
        statement = mutant.file, mutant.mutation.first_line
        ranked.append((turns[statement], k, mutant))
        turns[statement] += 1
    ranked.sort(key=lambda item: item[:2])
    return [mutant for _, _, mutant in ranked[:size]]


def listed(mutants: list[Mutant], table: Path) -> list[Mutant]:
    """Those that have survived in the table of another run, though lines may have moved
    since."""
    found = []
    with open(table, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            same = [
                mutant
                for mutant in mutants
                if (mutant.file, mutant.mutation.shown)
                == (row["file"], row["mutation"])
            ]
            line = int(row["line"])
            same.sort(key=lambda mutant: abs(mutant.mutation.first_line - line))
            found += same[: row["outcome"] in ("survived", "not executed")]
    return found


def chosen(tests: Sequence[Test], most: int, seconds: float) -> list[Test]:
    """Quick tests of as many files as may be, those on few ranks first."""
    files: dict[str, list[Test]] = {}
    for test in sorted(tests, key=lambda test: (test.ranks, test.seconds)):
        files.setdefault(test.file, []).append(test)
    taken: list[Test] = []
    while files and len(taken) < most:
        # the files take turns; a file whose next test is too long is left out
        for name in sorted(files, key=lambda name: files[name][0].seconds):
            test = files[name].pop(0)
            if sum(t.seconds for t in taken) + test.seconds <= seconds or not taken:
                taken.append(test)
            if not files[name]:
                del files[name]
    return taken[:most]


# -- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants of a sample, some at a time."""
    asked = _parse(arguments)
    begin = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - begin > 60 * asked.minutes

    log = Log(Path(asked.log))
    tests = tests_with_lines(asked, is_over)
    print(f"{len(tests)} tests, {time.monotonic() - begin:.0f} s", flush=True)
    mutants = all_mutants(asked.of)
    if asked.again:
        mutants, more = listed(mutants, Path(asked.again)), (ALL_TESTS, ALL_SECONDS)
    else:
        mutants, more = sample(mutants, asked.sample, asked.seed), MORE
    copies: SimpleQueue[Sources] = SimpleQueue()
    with tempfile.TemporaryDirectory() as name:
        for k in range(asked.jobs):
            copies.put(Sources(Path(name, str(k))))

        def attempt(mutant: Mutant) -> None:
            if is_over() or log.outcome(mutant):
                return
            copy = copies.get()
            try:
                _try(mutant, tests, copy, log, asked.factor, more)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(asked.jobs) as pool:
            list(pool.map(attempt, mutants))
    counts = Counter(log.outcome(mutant) or "not tried" for mutant in mutants)
    print(f"{len(mutants)} mutants: {dict(counts)}, {time.monotonic() - begin:.0f} s")
    return 0


def _try(
    mutant: Mutant,
    tests: list[Test],
    copy: Sources,
    log: Log,
    factor: float,
    more: tuple[int, float],
) -> None:
    """Run tests that come to a mutant's line, up to the first that fails: some quick
    ones, and then so many more."""
    that_execute = [test for test in tests if test.executes(mutant)]
    on_few = [test for test in that_execute if test.ranks <= FEW_RANKS]
    quick = chosen(on_few or that_execute, QUICK_TESTS, QUICK_SECONDS)
    others = [test for test in that_execute if test not in quick]
    begin, count = time.monotonic(), 0
    said, by = "survived" if quick else "not executed", ""
    copy.write(mutant)
    for part in (quick, chosen(others, *more)):
        if not part or said != "survived":
            continue
        count += len(part)
        limit = START_SECONDS + 5 * sum(test.seconds for test in part)
        arguments = ["-x", f"--mpi-timeout-factor={factor}"]
        outcome = run_pytest(copy.folder, [*arguments, *(t.name for t in part)], limit)
        if outcome.status != 0:
            said = "timed out" if outcome.is_overdue else "killed"
            by = outcome.killer
    copy.restore(mutant)
    log.add(mutant, said, by, count, time.monotonic() - begin)


def _original(name: str) -> bytes:
    return (ROOT / "src" / name).read_bytes()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="small faults in the runtime")
    parser.add_argument("--sample", type=int, default=300, help="mutants")
    parser.add_argument("--again", help="table of a run, whose survivors get all tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 3))
    parser.add_argument("--minutes", type=float, default=60.0, help="in all")
    parser.add_argument("--ranks", default="2,3", help="of the tests, as 2,3,5")
    parser.add_argument("--of", nargs="*", default=FOLDERS, help="folders, files")
    parser.add_argument("--tests", nargs="*", default=[], help="files in tests/mpi")
    parser.add_argument("--log", default="build/mutants.csv")
    parser.add_argument(
        "--work", default="build/mutants", help="folder of what is kept"
    )
    parser.add_argument("--factor", type=float, default=0.2, help="of limits of time")
    return parser.parse_args(arguments)
