"""Code, outputs and tables that pages quote from files: `python docs/quoting.py`.

A directive that fetches a file when the site is built leaves the page empty wherever it
is read as plain Markdown, as on a repository's web page. So the text stands in the
page, under a mark that says where it is from, and a test compares the two:

    <!-- quote examples/several.py -->                      the whole file
    <!-- quote examples/several.py: world = … Free() -->    from one line to another
    <!-- quote examples/several.py: world = … -->           from one line to the end
    <!-- quote examples/pairwise.py: def pairwise -->       one function
    <!-- quote ../src/isthmus -->                           the tree of a package
    <!-- quote ../src/isthmus: folders -->                  its folders alone
    <!-- quote ../tests: depth 1 -->                        what lies directly in it

A line is named by any part of it; the first one that has it counts. A tree has the
first sentence of each file, cut to one line, so that pages and files agree. Below
the mark is a fenced block, or, for tables of Markdown, text up to `<!-- end of quote
-->`. Paths are those from `docs`. Run as a program, it writes what files have now into
all pages.

What an example prints stands below `<!-- output of examples/several.py -->`, after the
command that starts it. Tests run that command. A line `…` stands for lines that a page
leaves out, and times may be others.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent, shorten

DOCS = Path(__file__).parent
QUOTATION = re.compile(
    r"^(?P<margin> *)<!-- quote (?P<path>[^\s:]+)(?:: (?P<part>.+?))? -->\n"
    r"(?:(?P<fence> *```\w*\n)(?P<code>.*?)^ *```$"
    r"|(?P<table>.*?)^ *<!-- end of quote -->$)",
    re.MULTILINE | re.DOTALL,
)
OUTPUT = re.compile(
    r"^<!-- output of (?P<path>\S+) -->\n```text\n"
    r"\$ (?P<command>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: columns of a tree: where the sentences begin, and where lines end
TREE_COLUMNS = 30, 98
TIME = re.compile(r"\d+(\.\d+)?(?= (?:µs|ms|s)\b)")


@dataclass(frozen=True)
class Output:
    """What a page says that an example prints."""

    path: str
    command: str
    text: str

    def allows(self, printed: str) -> bool:
        """Whether an example that printed this did what the page says."""
        lines = (re.escape(TIME.sub("0", x)) for x in self.text.splitlines())
        pattern = "".join(r"(.*\n)+" if x == "…" else rf"{x}\n" for x in lines)
        return re.fullmatch(pattern, TIME.sub("0", printed)) is not None


def outputs(page: str) -> list[Output]:
    """All outputs that a page shows."""
    return [Output(**match.groupdict()) for match in OUTPUT.finditer(page)]


@dataclass(frozen=True)
class Quotation:
    """A text in a page, and the file that it is from."""

    path: str
    #: which lines of the file; None for all
    part: str | None
    #: as it stands in the page, without the margin of the block
    text: str
    #: where in the page the text begins and ends
    place: tuple[int, int]
    margin: str

    def source(self) -> str:
        """The text as the file has it now."""
        path = (DOCS / self.path).resolve()
        if path.is_dir():
            return _tree(path, self.part or "")
        whole = path.read_text(encoding="utf-8")
        return whole if self.part is None else dedent(_lines(whole, self.part))


def _lines(whole: str, part: str) -> str:
    """The lines of a file that a mark names."""
    if part.startswith("def ") and "…" not in part:
        return _function(whole, part.removeprefix("def "))
    first, _, last = (x.strip() for x in part.partition("…"))
    lines = whole.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if first in line), None)
    if begin is None:
        raise ValueError(f"no line has {first!r}")
    if not last:
        return "".join(lines[begin:])
    for end in range(begin, len(lines)):
        if last in lines[end]:
            return "".join(lines[begin : end + 1])
    raise ValueError(f"no line from that with {first!r} on has {last!r}")


def _function(whole: str, name: str) -> str:
    """A function with its decorators."""
    for node in ast.walk(ast.parse(whole)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            begin = min([node.lineno, *(x.lineno for x in node.decorator_list)])
            lines = whole.splitlines(keepends=True)
            return "".join(lines[begin - 1 : node.end_lineno])
    raise ValueError(f"no function is called {name}")


def _tree(folder: Path, part: str, level: int = 0) -> str:
    """The folder and what lies in it, a line each, as deep as a mark says."""
    tree = _entry(folder / "__init__.py", f"{folder.name}/", level)
    if part == f"depth {level}":
        return tree
    for path in sorted(folder.glob("*.py")):
        if part != "folders" and path.name != "__init__.py":
            tree += _entry(path, path.name, level + 1)
    for path in sorted(folder.iterdir()):
        if (path / "__init__.py").exists():
            tree += _tree(path, part, level + 1)
    return tree


def _entry(path: Path, name: str, level: int) -> str:
    """The name of a file or folder, and the first sentence of its docstring."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    sentence = re.split(r"(?<=[.?!])(?<!al\.)\s", " ".join(docstring.split()))[0]
    column, end = TREE_COLUMNS
    left = ("  " * level + name).ljust(column - 1) + " "
    text = shorten(sentence.removesuffix("."), end - len(left), placeholder=" …")
    return f"{left}{text}".rstrip() + "\n"


def quotations(page: str) -> Iterator[Quotation]:
    """All that a page quotes, in its order."""
    for match in QUOTATION.finditer(page):
        group = "code" if match["code"] is not None else "table"
        yield Quotation(
            path=match["path"],
            part=match["part"],
            text=dedent(match[group]),
            place=match.span(group),
            margin=match["margin"],
        )


def renewed(page: str) -> str:
    """A page with what its files have now."""
    for quotation in reversed(list(quotations(page))):
        begin, end = quotation.place
        page = page[:begin] + indent(quotation.source(), quotation.margin) + page[end:]
    return page


def pages() -> Iterator[tuple[Path, str]]:
    """Every page of the documentation, and those beside it."""
    for path in [*sorted(DOCS.rglob("*.md")), *sorted(DOCS.parent.glob("*.md"))]:
        if "_build" not in path.parts:
            yield path, path.read_text(encoding="utf-8")


if __name__ == "__main__":
    for path, old in pages():
        new = renewed(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
