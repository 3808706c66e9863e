"""Who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import isthmus

ROOT = Path(isthmus.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FORM = {"ir", "layout", "program"}
NAMED = {"ir", "layout", "registry", "schedules", "sizes"}
#: what a person starts or imports: it may know everything
TOP = {"__init__", "__main__", "bench", "cli"}
ALLOWED = {
    "ir": set(),
    "layout": {"ir"},
    "distributions": set(),
    "tables": set(),
    "settings": set(),
    "program": {"ir"},
    "schedules": FORM
    | {"contracts", "verify", "cost", "draw", "explore"},  # at need only
    "cost": FORM | {"errors", "schedules", "cost", "tables"},
    "export": FORM | {"schedules", "cost", "export"},
    "errors": set(),
    "marks": {"errors"},
    "machine": FORM | {"errors", "marks"},
    "contracts": {"marks"},
    "contracts_between": {"marks", "contracts"},
    "contracts_rooted": {"marks", "contracts"},
    "verify": FORM | {"errors", "marks", "machine", "contracts"},
    "plugins": set(),
    "registry": FORM | {"plugins", "settings"},
    "ahead": FORM,
    "estimate": {"algorithms"},
    "fit": {"estimate"},
    "tuning": {"cost", "estimate", "registry", "schedules", "settings", "tables"},
    "choose": FORM | {"registry", "estimate"},
    "choose_between": {"algorithms", "choose", "estimate", "registry"},
    "sizes": {"layout"},
    "collectives_between": NAMED | {"contracts", "contracts_between"},
    "collectives_rooted": NAMED | {"contracts_rooted"},
    "collectives": NAMED
    | {"algorithms", "choose", "contracts", "contracts_between"}
    | {"collectives_between", "collectives_rooted"},
    "recipe": FORM | {"choose", "collectives", "estimate", "registry"},
    "recipe_between": FORM | {"algorithms", "recipe", "registry"},
    "sweep_nodes": set(),
    "sweep_sizes": set(),
    "sweep": {"collectives", "errors", "registry", "sweep_nodes", "sweep_sizes"}
    | {"verify"},
    "predict_case": {"collectives", "distributions", "layout", "schedules"},
    "predict_times": FORM
    | {"algorithms", "choose", "contracts", "cost"}
    | {"predict_case", "registry", "schedules"},
    "predict": FORM
    | {"choose", "estimate", "predict_case", "predict_times", "registry"}
    | {"schedules", "tuning"},
    "mpiexec": set(),
    "lab": {"lab", "mpiexec"},
    "mpi": FORM
    | {"ahead", "choose", "choose_between", "cost", "distributions", "estimate"}
    | {"fit", "groups", "mpi", "recipe", "recipe_between", "redistribution"}
    | {"registry", "settings", "tuning"},
    "redistribution": FORM
    | {"algorithms", "choose", "contracts", "draw", "marks"}
    | {"redistribution", "schedules"},
    "reproduce": {"algorithms", "collectives", "cost", "distributions", "draw"}
    | {"groups", "registry", "reproduce", "schedules"},
    "groups": {"errors", "groups"},
    "algorithms": FORM | {"registry", "algorithms"},
    "explore": FORM
    | {"contracts", "cost", "draw", "explore", "marks", "predict_times", "registry"}
    | {"schedules"},
    "draw": FORM
    | {"errors", "marks", "contracts", "schedules", "cost", "groups", "draw"},
}

#: the folders of mpi/, each of which knows those before it; the last two, all of these
ENGINE = ["memory", "context", "operations", "engine", "comm"]
ABOVE = {"groups", "measure", "redistribution"}


def layer(path: Path) -> str:
    """The first folder or file below the package."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The layers of isthmus and the other packages a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            package = path.parents[node.level - 1]
            names = [node.module] if node.module else [a.name for a in node.names]
            found |= {layer(package / n.replace(".", "/")) for n in names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_layer_knows_only_those_below(path):
    known = {layer(f) for f in FILES}
    seen = imports(path)
    if layer(path) not in TOP:
        assert seen & known <= ALLOWED[layer(path)]
    if layer(path) != "mpi":
        assert "mpi4py" not in seen


@pytest.mark.parametrize("folder", [*ENGINE, *sorted(ABOVE)])
def test_a_folder_of_the_engine_knows_only_those_before(folder):
    known = ENGINE if folder in ABOVE else ENGINE[: ENGINE.index(folder)]
    known = [*known, "redistribution"] if folder == "measure" else known
    for path in (ROOT / "mpi" / folder).glob("*.py"):
        seen = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                names = [node.module] if node.module else [a.name for a in node.names]
                seen |= {name.split(".")[0] for name in names}
        assert seen & {*ENGINE, *ABOVE} <= set(known), path.name


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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = isthmus.Nothing
