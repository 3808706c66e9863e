"""The registry: algorithms by collective and name, imported at the first lookup.

A call on thousands of processes runs a single algorithm, but importing the files of all
algorithms took nine tenths of the first call. So a lookup imports only the file named
after the algorithm; lists import all files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib import import_module
from inspect import Parameter, signature
from math import inf
from pkgutil import iter_modules
from typing import Any

from ..settings import plugins
from ..spelling import unknown
from .ir import Program
from .layout import Blocks
from .names import described
from .plugins import load

#: An intragroup allgather: what rank r of n does so that all have all blocks.
Stage = Callable[[int, Any, Blocks], Program]
Register = Callable[[Callable[..., Program]], Callable[..., Program]]


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function with a default, and the defaults.

    What a partial function sets is a default too. Its signature is not asked for, since
    that takes longer than all else that a call does to know its algorithm.
    """
    if isinstance(function, partial):
        return {**_defaults(function.func), **function.keywords}
    return _own_defaults(function)


@cache
def _own_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = signature(function).parameters.values()
    return {x.name: x.default for x in parameters if x.default is not Parameter.empty}


def unclaimed(*sizes_and_machine: object) -> float:
    """The cost of an algorithm without a closed form, which no choice by cost takes."""
    return inf


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of a collective: the program of a rank, the cost, the conditions.

    Conditions are fields, so that no caller tests for the names of algorithms: the
    choice leaves out algorithms that do not fit, and the runtime asks other ranks only
    for sizes that an algorithm must know.
    """

    name: str
    program: Callable[..., Program]
    paper: str
    #: time of the regular problem in the alpha-beta model: (p, k, alpha, beta) inside a
    #: group of p with blocks, or vectors, of size k, and of a root and the p - 1 leaves
    #: of another group; between groups of p and q (p, q, sizes …, alpha, beta),
    #: and for an allgather the cost of its stage. beta is the time of one unit of the
    #: sizes, an element or a byte. Algorithms that share memory claim none: their time
    #: also depends on the memory, and they are light enough to be simulated
    cost: Callable[..., float] = unclaimed
    #: whether the algorithm works for a group of a size; asked inside one group only
    needs: Callable[[int], bool] = lambda n: True
    #: the last stage is an intragroup allgather that the caller may choose
    staged: bool = False
    #: a rank must know the counts of its whole group, not only its own: of blocks
    #: contributed, or received from a root
    own_counts: bool = False
    #: a rank must know the counts of the remote group's result as well
    other_counts: bool = False
    #: combines contributions in any order: for commutative operators only
    commutative: bool = False
    #: the ranks of a node share memory: the program takes the placement as `nodes`, and
    #: rounds are built rank by rank
    node_memory: bool = False

    @property
    def idea(self) -> str:
        """The first line of the docstring of the program."""
        program = getattr(self.program, "func", self.program)
        return (program.__doc__ or "").strip().partition("\n")[0]

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options that a name may set, as in "circulant(n=4)", and the defaults."""
        return _defaults(self.program)

    def given(self, **options: Any) -> Algorithm:
        """The algorithm with options set, in the program and in the cost.

        Unknown options are ignored, so that a caller can offer all properties of a
        machine to every algorithm.
        """
        known = {k: v for k, v in options.items() if k in self.options}
        of_cost = {k: v for k, v in known.items() if k in _defaults(self.cost)}
        cost = partial(self.cost, **of_cost) if of_cost else self.cost
        return replace(self, program=partial(self.program, **known), cost=cost)

    def default(self, **options: Any) -> Algorithm:
        """The algorithm with options set, except for options set by its name."""
        named = getattr(self.program, "keywords", {})
        return self.given(**{k: v for k, v in options.items() if k not in named})

    def in_units(self, unit: int) -> Algorithm:
        """The algorithm with the option `size` in units, where it was in bytes."""
        size = self.options.get("size")
        return self.given(size=max(size // unit, 1)) if size else self


_PACKAGE = "isthmus.algorithms"
_algorithms: dict[tuple[str, str], Algorithm] = {}
#: the place of each algorithm in lists: by file and line, the algorithms of MPI
#: libraries last; by order of import, two programs would have different lists
_places: dict[tuple[str, str], tuple[bool, str, int]] = {}


@cache
def _files() -> frozenset[str]:
    """The files of `algorithms` and of `baselines`, as names below the package."""
    folders = {"": _PACKAGE, "baselines.": f"{_PACKAGE}.baselines"}
    return frozenset(
        prefix + file.name
        for prefix, folder in folders.items()
        for file in iter_modules(import_module(folder).__path__)
    )


@cache
def _load_plugins() -> None:
    load(plugins())


@cache
def _load_all() -> None:
    """Import every file of algorithms, and the files named by users."""
    for file in sorted(_files()):
        import_module(f"{_PACKAGE}.{file}")
    _load_plugins()


def _all_algorithms() -> dict[tuple[str, str], Algorithm]:
    """Every algorithm by collective and name; imports all files."""
    _load_all()
    return _algorithms


@cache
def _load_one(collective: str, name: str) -> None:
    """Import the file named after an algorithm or its collective, else all files."""
    _load_plugins()
    base = collective.removesuffix("_block")
    own = f"{base}_{name}", name, base, f"{base}v"
    for file in (*own, f"baselines.{base}", f"baselines.{base}v"):
        if (collective, name) in _algorithms:
            return
        if file in _files():
            import_module(f"{_PACKAGE}.{file}")
    if (collective, name) not in _algorithms:
        _load_all()


def algorithm(
    *collectives: str,
    paper: str,
    cost: Callable[..., float] = unclaimed,
    name: str = "",
    **conditions: Any,
) -> Register:
    """Register the decorated function as an algorithm of collectives.

    The algorithm has the name of the function, or `name`; `conditions` are further
    fields of `Algorithm`.
    """

    def register(program: Callable[..., Program]) -> Callable[..., Program]:
        entry = Algorithm(name or program.__name__, program, paper, cost, **conditions)
        module = getattr(program, "func", program).__module__
        for collective in collectives:
            key = collective, entry.name
            _algorithms[key] = entry
            _places[key] = ".baselines." in module, module, len(_places)
        return program

    return register


def algorithms(collective: str) -> Iterator[Algorithm]:
    """The algorithms of a collective, in the order of lists."""
    registered = _all_algorithms()
    keys = (key for key in registered if key[0] == collective)
    return (registered[key] for key in sorted(keys, key=_places.__getitem__))


def collectives() -> list[str]:
    """The names of all collectives with an algorithm."""
    return sorted({collective for collective, _ in _all_algorithms()})


def find(collective: str, name: str) -> Algorithm:
    """The algorithm of a name; an unknown name raises an error with the known names."""
    entry = _algorithms.get((collective, name))
    if entry is None:
        _load_one(collective, name)
        entry = _algorithms.get((collective, name))
    if entry is None:
        known = sorted(a.name for a in algorithms(collective))
        where = f"for {described(collective)}"
        raise ValueError(unknown("algorithm", name, known, where))
    return entry


_CALL = re.compile(r"(\w*)(?:\((.*)\))?")


def _option(entry: Algorithm, text: str) -> tuple[str, Any]:
    """The name and the value of an option such as "n=4", of the default's type."""
    name, _, value = (x.strip() for x in text.partition("="))
    if name not in entry.options:
        known = ", ".join(entry.options) or "none"
        raise ValueError(f"{entry.name!r} has no option {text!r}; it has: {known}")
    kind = type(entry.options[name])
    if kind not in (int, float, str):
        raise ValueError(
            f"{entry.name!r}: {name} cannot be written in a name; pass it as {name}="
        )
    try:
        return name, kind(value)
    except ValueError:
        raise ValueError(
            f"{entry.name!r}: {name} = {value!r}: must be of type {kind.__name__}"
        ) from None


def named(collective: str, text: str) -> Algorithm:
    """The algorithm of a name with or without options, as in "circulant(n=4)"."""
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(f"{text!r} is not the name of an algorithm")
    entry = find(collective, call[1])
    if not call[2]:
        return entry
    return entry.given(**dict(_option(entry, x) for x in call[2].split(",")))


def fitting(collective: str, name: str, n: int) -> Algorithm:
    """The algorithm of a name; an error if groups of n ranks cannot run the algorithm.

    Some algorithms need a power of two or an even number of ranks.
    """
    entry, _ = resolve(collective, name)
    if not entry.needs(n):
        raise ValueError(f"{name!r} does not work for a group of {n}")
    return entry


def stage(name: str) -> Stage:
    """The intragroup allgather of a name, as the last stage of other algorithms."""
    if named("allgatherv", name).node_memory:
        raise ValueError(f"{name!r} shares the memory of nodes: it is no stage")

    def program(n: int, r: Any, blocks: Blocks) -> Program:
        return fitting("allgatherv", name, n).program(n, r, blocks)

    return program


def resolve(collective: str, full: str) -> tuple[Algorithm, Stage | None]:
    """The algorithm of a full name, and the intragroup stage named after a "+"."""
    name, plus, tail = full.partition("+")
    entry = named(collective, name)
    if plus and not entry.staged:
        raise ValueError(f"{name!r} has no intragroup stage to choose")
    return entry, stage(tail) if plus else None


def with_startup(collective: str, name: str, startup_bytes: float) -> str:
    """The name of an algorithm with the bytes that pass in the time of a start-up, if
    the algorithm reckons with them and the name does not say more."""
    if "(" in name or "+" in name or "startup" not in find(collective, name).options:
        return name
    return f"{name}(startup={max(startup_bytes, 1.0)})"
