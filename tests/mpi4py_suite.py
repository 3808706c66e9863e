"""mpi4py's own test suite, run on the communicators of isthmus.

    python tests/mpi4py_suite.py --ranks 1,2,3,5
    python tests/mpi4py_suite.py --ranks 3 cco_buf comm_inter

A view of isthmus promises to be what it is a view of: same methods, same arguments,
same errors. mpi4py's suite says what that means in 2,100 tests that nobody here wrote.
It takes its communicators from the module `mpi4py.MPI` when it runs, so ours are put
there before: the world, a process's own communicator, and both classes.

What fails on ours runs once more on mpi4py's own. Only what passes there and fails here
is a fault. What cannot pass is in `EXCEPTIONS`, with the reason. A test that hangs or
ends the launch is a fault as well, and the files after it run in a launch of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, library_of

#: tests that are not run on our communicators: a pattern of names as the suite takes
#: them, and why they cannot pass
EXCEPTIONS = {
    "test_spawn.*": "the children run mpi4py's own collectives, and both groups of an "
    "intercommunicator must call one library's",
    "test_util_pool.*": "its workers are such children",
    "test_comm.*.testGetParent": "it asks mpi4py's own class for the parent",
    "test_util_pkl5.TestMPI*.test*erInter": "a root that does not exist is a "
    "ValueError that names the ranks there are, where mpi4py has MPI.Exception",
    "test_comm_inter.*.testHandle": "it makes its communicator by mpi4py's own class",
    "test_objmodel.TestObjModel.testCAPI": "mpi4py's C functions know its own classes",
    "test_objmodel.TestObjModel.testSafeFree*": "it frees MPI.COMM_WORLD, which is a "
    "view here: it would be null in all tests after it",
}

#: test files that are left out: of windows, files, types and MPI's own interfaces,
#: which call nothing of a communicator that is ours, and take most of the suite's time
WITHOUT_COMMUNICATORS = (
    "address buffer cffi ctypes datatype doc environ errorcode file grequest group "
    "info io mpiabi mpiapi mpimem op pack package rma rma_nb session status toplevel "
    "util_dtlib win"
)

#: seconds that the suite may take on a rank, where ranks share cores
SECONDS_PER_RANK = 300
#: launches of one run: more than so many tests that hang are not told apart
LAUNCHES = 6
#: name of the variable that tells a rank where to write, and its two values
RESULTS, OURS, NATIVE = "ISTHMUS_SUITE_RESULTS", "ours", "native"
#: name of the variable that has every so-manieth element type used only
TYPE_STRIDE = "ISTHMUS_SUITE_EVERY"


class NoSourcesError(Exception):
    """mpi4py's source package cannot be had here."""


@dataclass
class Outcome:
    """What became of the tests of a launch, or of several, on all ranks together."""

    #: tests that ran to their end on every rank
    passed: set[str] = field(default_factory=set)
    #: by name, the last line of what was wrong on some rank
    failed: dict[str, str] = field(default_factory=dict)
    #: how often each method of ours was called, on all ranks
    calls: dict[str, int] = field(default_factory=dict)

    def add(self, other: Outcome) -> None:
        """Add what became of other tests."""
        self.passed |= other.passed
        self.failed |= other.failed
        for name, n in other.calls.items():
            self.calls[name] = self.calls.get(name, 0) + n


def sources(store: Path) -> Path:
    """The folder of the suite of the installed mpi4py, fetched if needed."""
    release = version("mpi4py")
    suite = store / f"mpi4py-{release}" / "test"
    if not suite.exists():
        _fetch(release, suite)
    if '"-x"' not in (suite / "main.py").read_text():  # before mpi4py 4.1
        raise NoSourcesError(f"the suite of mpi4py {release} cannot leave tests out")
    return suite


def _fetch(release: str, suite: Path) -> None:
    """Fetch the source of a release of mpi4py, and unpack it around the suite."""
    store = suite.parents[1]
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store) as place:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        fetch = [*pip, "--no-binary", "mpi4py", "-d", place, f"mpi4py=={release}"]
        fetched = subprocess.run(fetch, capture_output=True, text=True, timeout=300)
        if fetched.returncode:
            reason = fetched.stderr.strip().splitlines()[-1:]
            raise NoSourcesError(f"mpi4py's source cannot be fetched: {reason}")
        with tarfile.open(next(Path(place).glob("*.tar.gz"))) as archive:
            archive.extractall(place, filter="data")
        Path(place, suite.parent.name).rename(suite.parent)


def faults(
    suite: Path,
    size: int,
    modules: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], Outcome]:
    """What fails on our communicators and passes on mpi4py's, and all that ran.

    Only what failed runs on mpi4py's own: the suite takes minutes.
    """
    outcome = _all_of_it(suite, size, OURS, modules, variables or {})
    wrong = outcome.failed
    if wrong:
        files = sorted({name.partition(".")[0] for name in wrong})
        patterns = [f"^{file}\\.py$" for file in files]
        native = _all_of_it(suite, size, NATIVE, patterns, variables or {})
        wrong = {x: y for x, y in wrong.items() if x not in native.failed}
    return wrong, outcome


# -- launches


def _all_of_it(
    suite: Path,
    size: int,
    kind: str,
    modules: Sequence[str],
    variables: Mapping[str, str],
) -> Outcome:
    """Every test, in as many launches as it takes to get past those that hang."""
    total = Outcome()
    arguments = [x for module in modules for x in ("-i", module)]
    for name in WITHOUT_COMMUNICATORS.split():
        arguments += ["-e", rf"^test_{name}\.py$"]
    for pattern in EXCEPTIONS:
        arguments += ["-x", pattern]
    for _ in range(LAUNCHES):
        with tempfile.TemporaryDirectory() as folder:
            run = partial(_launch, suite, size, kind, Path(folder))
            ended, part, stuck = run(arguments, variables)
        total.add(part)
        if ended:
            break
        total.failed[stuck] = "it hangs, or it ended the launch"
        module = stuck.partition(".")[0]
        over = {test.partition(".")[0] for test in part.passed} - {module}
        arguments += ["-x", stuck]
        arguments += [x for file in sorted(over) for x in ("-e", f"^{file}\\.py$")]
    return total


def _launch(
    suite: Path,
    size: int,
    kind: str,
    folder: Path,
    arguments: Sequence[str],
    variables: Mapping[str, str],
) -> tuple[bool, Outcome, str]:
    """One launch: whether it came to its end, the outcome, and where it stood."""
    script = [__file__, kind, str(suite / "main.py"), "-q", *arguments]
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, **ENVIRONMENT, **variables, RESULTS: str(folder)}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    launch = Launch(command(str(find_mpiexec()), size, *script), env, suite, folder)
    try:
        launch.wait(SECONDS_PER_RANK * max(1, size - 1))
    finally:
        launch.close()
    ranks = [_read(folder / f"rank-{rank}") for rank in range(size)]
    outcome = Outcome()
    ran = [{x["test"]: x["why"] for x in lines if "why" in x} for lines in ranks]
    for tests in ran:
        outcome.failed |= {test: why for test, why in tests.items() if why}
    for test in set.intersection(*map(set, ran)) - {*outcome.failed}:
        outcome.passed.add(test)
    for lines in ranks:
        outcome.add(Outcome(calls=lines[-1].get("calls", {}) if lines else {}))
    is_over = all(lines and "calls" in lines[-1] for lines in ranks)
    begun = [x["begin"] for lines in ranks for x in lines if "begin" in x]
    over = set.intersection(*map(set, ran))
    stuck = next((test for test in begun if test not in over), "before.the.first")
    return is_over, outcome, stuck


def _read(path: Path) -> list[dict[str, Any]]:
    """The lines of a rank; the last may be torn where the rank was killed."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


# -- on a rank


class _Recorder(unittest.TextTestResult):
    """A result that writes every test's begin and end to a file, as they come: what a
    launch that is killed has done is known then."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from mpi4py import MPI

        super().__init__(*args, **kwargs)
        rank = MPI.COMM_WORLD.Get_rank()
        self._file = open(f"{os.environ[RESULTS]}/rank-{rank}", "w")  # noqa: SIM115
        self._why = ""

    def write(self, **line: Any) -> None:
        """Write one line, at once."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        self._why = ""
        self.write(begin=test.id())
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.write(test=test.id(), why=self._why)

    def _note(self, err: Any) -> None:
        self._why = self._why or f"{err[0].__name__}: {str(err[1])[:300]}"

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._note(err)
        super().addError(test, err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._note(err)
        super().addFailure(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(err)
        super().addSubTest(test, subtest, err)

    def stopTestRun(self) -> None:
        super().stopTestRun()
        self.write(calls=_calls)


#: calls of this process, by method
_calls: dict[str, int] = {}


def _counting(cls: type, name: str) -> None:
    """Count the calls of a method."""
    method = getattr(cls, name)

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        _calls[name] = _calls.get(name, 0) + 1
        return method(self, *args, **kwargs)

    counted.__name__, counted.__doc__ = name, method.__doc__
    counted.__text_signature__ = "(self)"  # type: ignore[attr-defined]
    setattr(cls, name, counted)


def put_ours_in_place() -> None:
    """Our communicators and classes where mpi4py's own are.

    What the suite takes for arrays on a device lies in memory of the host, which no
    driver knows: a device of that kind stands in, so that these calls are staged too.
    """
    from mpi4py import MPI

    import isthmus
    import standin
    from isthmus.mpi.buffers.devices import staged
    from isthmus.mpi.comm.collective import load
    from isthmus.mpi.comm.family import as_isthmus

    load()  # what extends mpi4py's classes needs them in their places
    as_isthmus(MPI.COMM_SELF)
    for cls in (isthmus.Intracomm, isthmus.Intercomm):
        for name in dir(cls):
            if re.fullmatch("I?(all|reduce|b)[a-z_]+", name, re.I) and name[0] != "_":
                _counting(cls, name)
    staged.KINDS[standin.KIND] = standin.Open
    world, own = isthmus.Intracomm(MPI.COMM_WORLD), isthmus.Intracomm(MPI.COMM_SELF)
    module: Any = MPI
    module.COMM_WORLD, module.COMM_SELF = world, own
    module.Intracomm, module.Intercomm = isthmus.Intracomm, isthmus.Intercomm


def sample_element_types(stride: int) -> None:
    """Some element types for each kind of array, others for the next kind."""
    import arrayimpl  # type: ignore[import-not-found]  # of the suite

    for turn, backend in enumerate(arrayimpl.ArrayBackends):
        types = list(backend.TypeMap.items())
        backend.TypeMap = dict(types[turn % min(stride, len(types)) :: stride])


def _on_a_rank() -> None:
    """Run the suite's own main program, on our communicators or on mpi4py's."""
    kind, script = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path.insert(0, str(Path(script).parent))
    if kind == OURS:
        put_ours_in_place()
    if TYPE_STRIDE in os.environ:
        sample_element_types(int(os.environ[TYPE_STRIDE]))
    unittest.TextTestRunner.resultclass = _Recorder
    sys.dont_write_bytecode = True
    main = runpy.run_path(script)["main"]
    try:
        main(module=None)
    except SystemExit:
        return  # what failed is in the file; a status would end the other ranks


# -- the command


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the suite on some numbers of ranks, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", default="1,2,3,5", help="numbers of ranks")
    parser.add_argument("--store", default="build/mpi4py", help="where the sources go")
    parser.add_argument("modules", nargs="*", help="parts of names of test files")
    options = parser.parse_args(arguments)
    # a launch is ended in a `finally`, which a plain end by this signal would skip
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    suite, bad = sources(Path(options.store).resolve()), 0
    library = library_of(find_mpiexec() or "")
    for size in map(int, options.ranks.split(",")):
        wrong, outcome = faults(suite, size, options.modules)
        for test, why in sorted(wrong.items()):
            print(f"  {test}: {why}")
        called = sum(outcome.calls.values())
        print(
            f"{library}, {size} ranks: {len(outcome.passed)} tests pass, {len(wrong)} "
            f"fail on our communicators alone; {called} calls of ours",
            flush=True,
        )
        bad += len(wrong)
    return int(bad > 0)


if __name__ == "__main__":
    if RESULTS in os.environ:
        _on_a_rank()
    else:
        sys.exit(main())
