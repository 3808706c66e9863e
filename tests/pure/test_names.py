"""Names say what a thing is, and no two things have the same one.

A variable called `found` could be any value of the program, and a reader has to look up
a class that is defined in four files four times. The package is free of both.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import isthmus

ROOT = Path(isthmus.__file__).parent
#: words that say how a value came about, or how much of it there is, but not what it is
GRAMMAR = {"found", "made", "some", "more", "every"}
GRAMMAR |= {"given", "kept", "told", "heard"}
#: names that stay, each with its reason
GRAMMAR_ALLOWED = {
    ("schedules/registry.py", "given"): "public: Algorithm.given(n=4)",
}


@cache
def parsed() -> dict[str, ast.Module]:
    """The syntax tree of each source file, by the path below the package."""
    files = sorted(ROOT.rglob("*.py"))
    return {f.relative_to(ROOT).as_posix(): ast.parse(f.read_text()) for f in files}


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the name of each function, class, parameter, variable, attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name


def grammar_names() -> Iterator[tuple[str, int, str]]:
    """The file, the line and the text of each name with such a word."""
    for path, tree in parsed().items():
        for line, name in bound_names(tree):
            if GRAMMAR & set(name.lower().split("_")):
                yield path, line, name


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The name and the value of each constant of a module, as written."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            for name in names:
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id, ast.unparse(value)


def test_no_name_says_only_how_a_value_came_about():
    wrong = [
        f"{path}:{line}: {name}"
        for path, line, name in grammar_names()
        if (path, name) not in GRAMMAR_ALLOWED
    ]
    assert not wrong


def test_a_class_has_one_name_in_the_project():
    files = defaultdict(list)
    for path, tree in parsed().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path)
    wrong = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert not wrong


def test_a_constant_has_one_meaning_in_the_project():
    values, files = defaultdict(set), defaultdict(set)
    for path, tree in parsed().items():
        for name, value in constants(tree):
            values[name].add(value)
            files[name].add(path)
    wrong = {name: files[name] for name in values if len(values[name]) > 1}
    assert not wrong


def test_a_docstring_names_its_subject():
    """None begins with "The same", which sends the reader to another docstring."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    wrong = [
        (path, docstring.partition("\n")[0])
        for path, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
        and (docstring := ast.get_docstring(node) or "").startswith("The same")
    ]
    assert not wrong


def words_of(page: str, heading: str) -> list[str]:
    """The first column of the table below a heading of a page."""
    text = (ROOT.parents[1] / "docs" / page).read_text("utf-8")
    section = text.partition(f"{heading}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| ([^|]+?) \|", section, re.MULTILINE)
    return [row for row in rows if row != "word"]


def test_the_glossary_is_short_and_defines_no_word_twice():
    """Users' words and those of the code together; the latter name files that exist."""
    users, others = (
        words_of("words.md", "# Words"),
        words_of("design.md", "## Glossary"),
    )
    assert users and others and len(users + others) <= 40
    assert len({*users, *others}) == len(users + others)
    text = (ROOT.parents[1] / "docs" / "design.md").read_text("utf-8")
    section = text.partition("## Glossary")[2].partition("\n## ")[0]
    paths = re.findall(r"`([a-z_/]+(?:/|\.py))`", section)
    assert len(paths) >= len(others)
    assert not [path for path in paths if not (ROOT / path).exists()]
