"""All small faults that can be put into a source file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
#: calls whose arguments and presence no caller depends on
UNTESTED_CALLS = ("_log",)


@dataclass(frozen=True)
class Mutation:
    """One change of a source: bytes from a place to a place, and what stands there
    instead."""

    start: int
    stop: int
    text: str
    #: the statement, or the condition of one, in which it is: lines from 1
    first_line: int
    last_line: int
    #: whether it is executed when a function is called, not when the file is imported
    is_in_function: bool
    #: how a person reads it
    shown: str

    def apply(self, source: bytes) -> bytes:
        """The changed source."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutations(source: bytes) -> list[Mutation]:
    """All mutations of a source, in the order of their places."""
    changes = set(_Finder(source).changes(ast.parse(source)))
    return sorted(changes, key=lambda m: (m.start, m.stop, m.text))


class _Finder:
    """The mutations of one source."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._depth = 0  # of functions
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def changes(self, tree: ast.Module) -> Iterator[Mutation]:
        """Those of all statements but types and texts."""
        yield from self._body(tree.body)

    def _body(self, statements: list[ast.stmt]) -> Iterator[Mutation]:
        for statement in statements:
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[Mutation]:
        if isinstance(node, ast.ClassDef):
            if not _is_protocol(node):
                yield from self._body(node.body)
            return
        if isinstance(node, ast.FunctionDef):
            self._depth += 1
            yield from self._body(node.body)
            self._depth -= 1
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if _is_untested(node):
            return
        parts = _expressions(node)
        first = node.lineno
        last = max((p.end_lineno or first for p in parts), default=first)
        if not isinstance(node, _COMPOUND):
            last = node.end_lineno or last
        yield from self._removed(node, first, last)
        for part in parts:
            for inner in _walk(part):
                yield from self._expression(inner, first, last)
        if isinstance(node, ast.If | ast.While):
            yield self._at(node.test, "not ({})", first, last)
        for name in ("body", "orelse", "finalbody"):
            yield from self._body(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from self._body(handler.body)

    def _removed(self, node: ast.stmt, first: int, last: int) -> Iterator[Mutation]:
        """The statement left out."""
        if isinstance(node, _LEFT_OUT):
            yield self._at(node, "pass", first, last)
        elif isinstance(node, ast.Assign):
            if isinstance(node.targets[0], ast.Attribute | ast.Subscript):
                yield self._at(node, "pass", first, last)
        elif isinstance(node, ast.Return):
            is_none = isinstance(node.value, ast.Constant) and node.value.value is None
            if node.value is not None and not is_none:
                yield self._at(node, "return None", first, last)
        if isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
            old, new = OPERATORS[type(node.op)]
            yield self._between(
                node.target, node.value, f"{old}=", f"{new}=", first, last
            )

    def _expression(self, node: ast.AST, first: int, last: int) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare):
            left = node.left
            for op, right in zip(node.ops, node.comparators, strict=True):
                old, new = COMPARISONS[type(op)]
                yield self._between(left, right, old, new, first, last)
                left = right
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if not any(map(_is_text_or_type, (node.left, node.right))):
                old, new = OPERATORS[type(node.op)]
                yield self._between(node.left, node.right, old, new, first, last)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield self._between(left, right, old, new, first, last)
            for value in node.values:
                neutral = "True" if old == "and" else "False"
                yield self._at(value, neutral, first, last)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            operand = self._text(node.operand)
            yield self._at(node, f"({operand})", first, last)
        elif isinstance(node, ast.IfExp):
            yield self._at(node.test, "not ({})", first, last)
        elif isinstance(node, ast.Constant):
            yield from self._constant(node, first, last)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in FUNCTIONS:
                yield self._at(node.func, FUNCTIONS[node.func.id], first, last)
        elif isinstance(node, ast.Slice):
            for bound in (node.lower, node.upper):
                if bound is not None and not isinstance(bound, ast.Constant):
                    yield self._at(bound, "None", first, last)

    def _constant(
        self, node: ast.Constant, first: int, last: int
    ) -> Iterator[Mutation]:
        value = node.value
        if isinstance(value, bool):
            yield self._at(node, str(not value), first, last)
        elif isinstance(value, int):
            yield self._at(node, str(value + 1), first, last)
            if value > 1:
                yield self._at(node, str(value - 1), first, last)

    # -- places

    def _place(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._place(node.lineno, node.col_offset)
        return start, self._place(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, stop = self._span(node)
        return self.source[start:stop].decode()

    def _at(
        self, node: ast.expr | ast.stmt, text: str, first: int, last: int
    ) -> Mutation:
        """A node, replaced by a text in which {} is the node."""
        start, stop = self._span(node)
        old = self._text(node)
        new = text.replace("{}", old)
        in_function = self._depth > 0
        return Mutation(start, stop, new, first, last, in_function, _shown(old, new))

    def _between(
        self,
        left: ast.expr,
        right: ast.expr,
        old: str,
        new: str,
        first: int,
        last: int,
    ) -> Mutation:
        """The operator between two operands, by another one."""
        (begin, left_end), (right_start, end) = self._span(left), self._span(right)
        between = self.source[left_end:right_start].decode()
        at = left_end + len(between[: between.index(old)].encode())
        stop = at + len(old.encode())
        before, after = self.source[begin:at].decode(), self.source[stop:end].decode()
        shown = _shown(before + old + after, before + new + after)
        return Mutation(at, stop, new, first, last, self._depth > 0, shown)


_LEFT_OUT = (ast.Expr, ast.AugAssign, ast.Raise, ast.Delete, ast.Break, ast.Continue)
_COMPOUND = (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Match)


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement itself, without types and nested statements."""
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value else []
    if isinstance(node, ast.Raise):
        return []  # what an error says is for people
    if isinstance(node, ast.With):
        return [item.context_expr for item in node.items]
    return [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it, but for texts."""
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _is_text_or_type(node: ast.expr) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    is_type = (
        isinstance(node, ast.Name) and node.id[:1].isupper() and not (node.id.isupper())
    )
    return is_text or is_type or isinstance(node, ast.JoinedStr)


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).startswith("Protocol") for base in node.bases)


def _is_untested(node: ast.stmt) -> bool:
    """Whether a statement is for people and tools: docstrings, assertions for the type
    checker, lines of a log, names of a module."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return True
        return ast.unparse(node.value).startswith(UNTESTED_CALLS)
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(ast.unparse(t) in ("__slots__", "__all__") for t in targets)


def _shown(old: str, new: str) -> str:
    return f"{' '.join(old.split())} -> {' '.join(new.split())}"
