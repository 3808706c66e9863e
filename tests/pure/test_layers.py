"""Imports of modules, and their time. The rules between layers are in `pyproject.toml`,
where `make lint` reads them."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import isthmus

ROOT = Path(isthmus.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
parse = cache(lambda path: ast.parse(path.read_text()))


@cache
def _imported(path: Path) -> set[Path]:
    """The files of isthmus that a file imports, in functions too, not for types
    alone."""
    files: set[Path] = set()
    pending: list[ast.AST] = [parse(path)]
    while pending:
        node = pending.pop()
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node)
        pending += [] if is_for_types else ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1] / (node.module or "").replace(".", "/")
            inside = [place / alias.name for alias in node.names]
            files |= {x.with_suffix(".py") for x in (place, *inside)}
    return files & {*FILES}


def test_files_do_not_import_each_other_in_a_circle():
    """No circles in functions either, so that a reader of a file has read all files
    below."""
    order = graphlib.TopologicalSorter({f: _imported(f) for f in FILES})
    order.prepare()


def _imported_first(path: Path) -> set[Path]:
    """The files and folders that a file imports at its own import."""
    modules = set()
    for node in parse(path).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1] / (node.module or "").replace(".", "/")
            modules |= {place, *(place / name.name for name in node.names)}
    return modules


def test_what_has_to_do_with_devices_is_imported_at_need_alone():
    devices = ROOT / "mpi" / "buffers" / "devices"
    others = [x for x in FILES if not x.is_relative_to(devices)]
    for path in others:
        ours = [x for x in _imported_first(path) if x.is_relative_to(devices)]
        assert not ours, path


def test_importing_isthmus_starts_no_mpi():
    code = "import isthmus, sys; assert not any('mpi4py' in m for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_the_classes_can_be_imported_before_mpi_is_started():
    pytest.importorskip("mpi4py")
    code = (
        "import mpi4py; mpi4py.rc.initialize = False; import isthmus; "
        "isthmus.Intercomm; from mpi4py import MPI; assert not MPI.Is_initialized()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_the_classes_are_light_to_import():
    """The engine, algorithms, models and pictures are not imported."""
    pytest.importorskip("mpi4py")
    code = (
        "import isthmus, sys; isthmus.Intercomm, isthmus.Intracomm; "
        "print(*(m for m in sys.modules if m.partition('.')[0] == 'isthmus'))"
    )
    argv = [sys.executable, "-c", code]
    process = subprocess.run(argv, check=True, timeout=600, stdout=-1, text=True)
    names = process.stdout.split()
    folders = {name.split(".")[1] for name in names if "." in name}
    assert "isthmus.mpi.comm.intercomm" in names and len(names) <= 21
    assert folders == {"mpi", "settings"}


def test_a_choice_needs_no_simulator():
    """A program that only communicates imports no simulator and no pictures."""
    code = (
        "import isthmus.choose.tried, isthmus.collectives.records, sys; "
        "print(*(m for m in sys.modules if m.partition('.')[0] == 'isthmus'))"
    )
    argv = [sys.executable, "-c", code]
    process = subprocess.run(argv, check=True, timeout=600, stdout=-1, text=True)
    names = process.stdout.split()
    folders = {name.split(".")[1] for name in names if "." in name}
    assert "choose" in folders
    assert not folders & {"draw", "explore", "bench"}
    of_costs = {name for name in names if name.startswith("isthmus.cost.")}
    assert of_costs <= {"isthmus.cost.machine"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = isthmus.Nothing


@pytest.mark.parametrize(
    ("collective", "name", "file", "most"),
    [
        ("inter_allreduce", "bruck", "inter_allreduce", 5),
        ("inter_gather", "linear", "inter_gatherv", 3),
        ("inter_reduce_scatter_block", "node_aware", "node_aware", 6),
        ("allgatherv", "blocked_ring", "allgatherv_blocked_ring", 2),
    ],
)
def test_an_algorithm_is_imported_without_the_others(collective, name, file, most):
    code = (
        "import sys; from isthmus.schedules.registry import find; "
        f"find({collective!r}, {name!r}); "
        "print(*(m for m in sys.modules if m.startswith('isthmus.algorithms.')))"
    )
    argv = [sys.executable, "-c", code]
    said = subprocess.run(argv, check=True, timeout=600, stdout=-1, text=True).stdout
    names = {m.removeprefix("isthmus.algorithms.") for m in said.split()}
    registering = {m for m in names if "." not in m} - {"parts", "baselines"}
    assert file in registering
    assert len(registering) <= most, registering  # with those that it is made of
