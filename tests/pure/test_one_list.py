"""The collectives are listed in their records, and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import isthmus
from isthmus.collectives.records import COLLECTIVES

ROOT = Path(isthmus.__file__).parent
#: names of operations and of collectives, in MPI's capitals or not
NAMES = {
    *COLLECTIVES,
    *(x for record in COLLECTIVES.values() for x in record.operations),
    *(x.lower() for record in COLLECTIVES.values() for x in record.operations),
}
#: so many names together are a list
MOST = 3
ALLOWED = {
    # each algorithm says which collectives it is for
    "algorithms": "registration",
    "collectives": "the records",
    # what is left of mpi4py's own methods, and what these write: facts about MPI
    "mpi/comm/intracomm.py": "methods of mpi4py that get copies",
    "mpi/buffers/devices/staged.py": "methods of mpi4py that fill a buffer",
    # figures of papers and settings of measurements
    "reproduce": "what a paper measured",
    "bench/sets.py": "what a paper measured",
}


def lists(path: Path) -> list[tuple[int, set[str]]]:
    """The displays of a file that name several collectives: the line and the names."""
    result = []
    for node in ast.walk(ast.parse(path.read_text())):
        items: list[ast.expr] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            items = node.elts
        elif isinstance(node, ast.Dict):
            items = [x for x in (*node.keys, *node.values) if x is not None]
        elif isinstance(node, ast.Call):
            items = node.args
        texts = {x.value for x in items if isinstance(x, ast.Constant)}
        names = {x for x in texts if isinstance(x, str)} & NAMES
        if len(names) > MOST:
            result.append((node.lineno, names))
    return result


@pytest.mark.parametrize(
    "path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_no_file_lists_the_collectives_again(path):
    name = str(path.relative_to(ROOT))
    if not any(name.startswith(x) for x in ALLOWED):
        assert not lists(path)


def test_what_may_list_them_does():
    """A file without lists needs no exception."""
    for name in ALLOWED:
        path = ROOT / name
        files = [path] if path.is_file() else path.rglob("*.py")
        assert any(NAMES & _texts(x) for x in files), name


def _texts(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {x.value for x in nodes if isinstance(x, ast.Constant) if str(x.value)}
