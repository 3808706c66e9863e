"""The documentation: links, pages, programs, and a build without MPI."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import drawing
import isthmus
import quoting
import sampling

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(x for x in DOCS.glob("*/*.md"))]
)
PAGES = [x for x in PAGES if "_build" not in x.parts]
FENCED = re.compile(r"^( *)(```+)(.*?)\n(.*?)^ *\2 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
DIRECTIVE = re.compile(
    r"^ *(?:```+|:::+)\s*\{[\w-]+\}"  # ```{draw}
    r"|\{[\w:-]+\}`"  # {py:class}`…`
    r"|^\([\w-]+\)=$"  # (target)=
    r"|^: ",  # a definition below its term
    re.MULTILINE,
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page):
    """A page without the text between fences."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page):
    """The anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", x) for x in headings)
    return {re.sub(r"[^\w\- ]", "", x.lower()).replace(" ", "-") for x in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    wrong = []
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def test_every_page_is_in_a_toctree():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = [body for _, _, kind, body in FENCED.findall(index) if "toctree" in kind]
    listed = {x for tree in trees for x in tree.splitlines() if x and x[0] != ":"}
    top = {x.stem for x in DOCS.glob("*.md")} - {"index"}
    assert top <= listed
    assert all((DOCS / f"{name}.md").exists() for name in listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_python_of_the_pages_is_python(page):
    for _, _, kind, body in FENCED.findall(page.read_text(encoding="utf-8")):
        # two groups side by side are no program
        if kind.strip() == "python" and "# in the group that sends" not in body:
            lines = body.splitlines()
            deep = min(
                (len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0
            )
            ast.parse("\n".join(x[deep:] for x in lines))


@pytest.mark.parametrize("page", PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_pages_quote_what_their_files_have(page):
    text = page.read_text(encoding="utf-8")
    quotations = list(quoting.quotations(text))
    marks = re.findall(r"^ *<!-- quote ", text, re.MULTILINE)
    assert len(quotations) == len(marks), "a mark without its block"
    stale = [(x.path, x.part) for x in quotations if x.text != x.source()]
    assert not stale, "python docs/quoting.py writes what the files have"


def test_a_quotation_that_differs_is_seen_and_mended():
    page = (
        "<!-- quote examples/costs.py: SHAPES = … SHAPES = -->\n```python\nold\n```\n"
    )
    (old,) = quoting.quotations(page)
    assert old.text == "old\n" != old.source()
    (new,) = quoting.quotations(quoting.renewed(page))
    assert new.text == new.source() == old.source()
    assert new.text.startswith("SHAPES = [") and new.text.count("\n") == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_pages_are_whole_without_the_site(page):
    """On a repository's page directives are plain text, and fetched parts are
    missing."""
    text = page.read_text(encoding="utf-8")
    fetched = re.findall(r"\{(?:literal)?include\} *(\S*)", text)
    assert not [x for x in fetched if x != "../CHANGELOG.md"]
    assert not DIRECTIVE.findall(COMMENT.sub("", text))


def test_the_site_opens_what_pages_keep_for_it():
    pytest.importorskip("sphinx")
    import for_site

    page = """<!-- explorer step=2 height=640 -->
```text
isthmus explore bcast binomial --groups 4
```
<!-- site
```{toctree}
guide
```
-->
"""
    expected = """```{explorer} bcast binomial --groups 4
:step: 2
:height: 640
```
```{toctree}
guide
```

"""
    assert for_site.opened(page, DOCS) == expected
    shown = [x.read_text(encoding="utf-8") for x in DOCS.rglob("*.md")]
    for mark, pattern in (
        ("<!-- explorer", for_site.EXPLORER),
        ("<!-- site", for_site.SITE_ONLY),
    ):
        marks = sum(x.count(mark) for x in shown)
        assert marks and marks == sum(len(pattern.findall(x)) for x in shown)


def structure(svg):
    """The elements and colours of a drawing, without numbers."""
    return re.findall(r"<(\w+)", svg), re.findall(r"#[0-9a-f]{6}", svg)


def test_pictures_are_what_their_commands_draw(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    drawn = list(drawing.commands())
    assert len({path for path, _ in drawn}) == len(drawn) > 20
    assert {path for path, _ in drawn} == set((DOCS / "pictures" / "drawn").iterdir())
    for path, words in sampling.some(drawn, 4):
        old = path.read_text(encoding="utf-8")
        if f"Matplotlib v{matplotlib.__version__}," not in old:
            continue  # versions draw differently
        drawing.draw(words, new := tmp_path / "new.svg")
        assert structure(old) == structure(new.read_text(encoding="utf-8")), (
            f"isthmus draw {' '.join(words)} draws another picture: "
            "python docs/drawing.py"
        )


PUBLIC = """
import inspect, json, sys

sys.path.insert(0, sys.argv[1])
import without_mpi

assert without_mpi.install(always=True)
import isthmus

public = {}
for name in isthmus.__all__:
    getattr(isthmus, name)
for cls in (
    *(isthmus.Intercomm, isthmus.Intracomm, isthmus.Coupling),
    *(isthmus.Chain, isthmus.Group, isthmus.Redistribution, isthmus.Remapping),
):
    own = [x for x in cls.__mro__ if x.__module__.startswith("isthmus.")]
    for name in {name for x in own for name in vars(x) if name[0] != "_"}:
        method = getattr(cls, name)
        if not callable(method):
            continue
        arguments = list(inspect.signature(method).parameters)
        if arguments:  # without any: a method of mpi4py, whose results become ours
            path = f"isthmus.{cls.__name__}.{name}"
            public[path] = [x for x in arguments if x != "self"]
print(json.dumps(public))
"""
#: the pages of classes that have more methods than a table of their own shows
CLASSES = {
    "Intercomm": "intercomm",
    "Intracomm": "intracomm",
    "Coupling": "coupling",
    "Chain": "chain",
    "Redistribution": "redistribution",
    "Remapping": "remapping",
}


@cache
def public_methods():
    """The arguments of every public method, read without MPI."""
    line = [sys.executable, "-c", PUBLIC, str(DOCS)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def test_the_reference_names_everything_public():
    pages = [DOCS / "api.md", *(DOCS / "reference").glob("*.md")]
    text = "".join(COMMENT.sub("", x.read_text(encoding="utf-8")) for x in pages)
    names = [f"isthmus.{x}" for x in isthmus.__all__]
    assert not [x for x in names if not re.search(rf"{re.escape(x)}\b", text)]


@pytest.mark.parametrize("name", CLASSES)
def test_the_page_of_a_class_has_all_its_methods_first(name):
    page = (DOCS / "reference" / f"{CLASSES[name]}.md").read_text(encoding="utf-8")
    first = COMMENT.sub("", page).partition("\n## ")[0]
    tables = [x for x in first.splitlines() if x.startswith("|")]
    shown = dict(re.findall(r"`(?:\w+\.)?(\w+)(?:\((.*?)\))?`", "\n".join(tables)))
    methods = {
        path.rpartition(".")[2]: arguments
        for path, arguments in public_methods().items()
        if path.startswith(f"isthmus.{name}.")
    }
    assert len(methods) >= 4 and not methods.keys() - shown.keys()
    for method, arguments in methods.items():
        if shown[method]:
            there = [x for x in arguments if x not in ("algorithm", "info")]
            assert shown[method] == ", ".join(there), method
        # what is there only where the site is built is documented there too
        full = f"isthmus.{name}.{method}"
        assert full in page or ":members:" in page, full


OUTPUTS = [x for _, page in quoting.pages() for x in quoting.outputs(page)]
WITHOUT_MPI = [x for x in OUTPUTS if x.command.startswith("python ")]


def test_every_example_has_its_output_in_a_page():
    marks = sum(page.count("<!-- output of ") for _, page in quoting.pages())
    assert marks == len(OUTPUTS), "a mark without its block"
    examples = {f"examples/{x.name}" for x in (DOCS / "examples").glob("*.py")}
    # what a lab prints depends on its hosts
    assert {x.path for x in OUTPUTS} == examples - {"examples/swap.py"}
    for output in OUTPUTS:
        assert Path(output.path).name in output.command.split()


@pytest.mark.parametrize("output", WITHOUT_MPI, ids=lambda x: Path(x.path).stem)
def test_examples_without_mpi_print_what_their_page_shows(output):
    assert output.command == f"python {Path(output.path).name}"
    program = [sys.executable, DOCS / output.path]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert output.allows(done.stdout), done.stdout


def test_outputs_allow_other_times_and_what_is_left_out():
    output = quoting.Output("x.py", "python x.py", "a 1.5 ms\n…\nb 2\n")
    assert output.allows("a 20 ms\nmore\nand more\nb 2\n")
    assert not output.allows("a 20 ms\nb 2\n")
    assert not output.allows("a 20 ms\nmore\nb 3\n")
    assert not output.allows("a 20 s\nmore\nb 2\n")
