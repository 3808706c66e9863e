"""What is asked for: a collective, its groups, the sizes of its blocks.

Every command takes the same words: the MPI name of the collective, `--groups 6,2` for
the ranks of each group, `--bytes 4KiB` for the block of each rank, `--counts 3,0;4,1`
where blocks differ. A schedule takes other ones, by the form of the collective: p, q,
ka, kb, m, k, a, b, counts. They are made of the first here, and may still be given as
options, which then say what they are called now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from math import lcm
from typing import Annotated, Any

import typer

from ..collectives.collective import BETWEEN, NOTHING, VECTOR, shares
from ..collectives.records import COLLECTIVES, groups_of, record_of
from ..schedules.names import WHERE, mpi_name, number_of_groups
from ..schedules.registry import algorithms
from ..spelling import unknown
from ..units import read_bytes, show_bytes
from .options import integers, note

#: what was given of sizes, by the names of their options
Given = dict[str, Any]
#: bytes of a block where a schedule's example has different ones
USUAL_BLOCK = 4


def _int(words: str, metavar: str = "N") -> Any:
    return Annotated[int | None, typer.Option(help=words, metavar=metavar)]


def _text(words: str, metavar: str) -> Any:
    return Annotated[str | None, typer.Option(help=words, metavar=metavar)]


def _old_int() -> Any:
    return Annotated[int | None, typer.Option(hidden=True, help="an older name")]


def _old_text() -> Any:
    return Annotated[str | None, typer.Option(hidden=True, help="an older name")]


GROUPS = "ranks of each group, as in 6,2; one number is inside one group"
PerNode = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="ranks per node, filled in order")
]
SIZES = {
    "groups": _text(GROUPS, "N,N"),
    "p": _int("ranks of the first group, or of the one group"),
    "q": _int("ranks of the second group"),
    "bytes": Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="bytes of each rank's block or vector, as in 4KiB; one for each "
            "group, as in 4KiB:1KiB",
        ),
    ],
    "counts": _text(
        "bytes of each rank's own block, as in 3,0,5; of two groups, 3,0,5;4,4", "N,N"
    ),
    "table": _text("bytes from each rank to each, as in 3,0;1,2", "ROWS"),
    "ab": _text("bytes from each rank of the first group to the second", "ROWS"),
    "ba": _text("bytes from each rank of the second group to the first", "ROWS"),
    "root": _int("rank of the root", "RANK"),
    "nodes": _text("the node of each rank, as in 0,0,1,1", "N,N"),
    "per_node": PerNode,
    **{name: _old_int() for name in ("ka", "kb", "k", "m")},
    **{name: _old_text() for name in ("a", "b", "sizes")},
}
PLACES = ("nodes", "per_node")


def sized(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each size, in the place of its `given`."""

    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in SIZES}
        command(given=given, **values)

    taken: list[Parameter] = []
    for x in signature(command, eval_str=True).parameters.values():
        options = (
            x.replace(name=name, annotation=option, default=None)
            for name, option in SIZES.items()
        )
        taken += options if x.name == "given" else [x]
    run.__doc__ = command.__doc__
    run.__annotations__ = {x.name: x.annotation for x in taken}
    run.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    return run


def resolve(
    collective: str, names: Sequence[str], given: Given, times: int
) -> tuple[str, dict[str, Any]]:
    """The form of a collective and its sizes, for algorithms of these names; default
    sizes are so many times as large as fits on a picture of steps."""
    options = {name: x for name, x in given.items() if x is not None}
    if ";" in options.get("groups", ""):
        note(f"--groups {options['groups']} is now --counts {options['groups']}")
        options["counts"] = options.pop("groups")
    if "sizes" in options:
        note(f"--sizes {options['sizes']} is now --groups {options['sizes']}")
        options["groups"] = options.pop("sizes")
    found = _form(collective, names, options)
    return found, _sizes(found, options, times)


def _form(collective: str, names: Sequence[str], options: Given) -> str:
    """The form of a collective that the options and the algorithms ask for."""
    number = _groups_asked(options)
    if collective in COLLECTIVES and not groups_of(collective):
        own = number_of_groups(collective)
        if number not in (None, own):
            raise ValueError(f"{collective} is {WHERE[own]}: --groups has {number}")
        sizes = COLLECTIVES[collective].example
        ranks = ",".join(map(str, COLLECTIVES[collective].ranks(sizes)))
        note(f"{collective} is now {mpi_name(collective)}, with --groups as in {ranks}")
        return collective
    if number is not None:
        asked = record_of(collective, number).name
        _check_algorithms(collective, asked, names)
        return asked
    forms = {n: record_of(collective, n).name for n in groups_of(collective)}
    if not forms:
        return record_of(collective, 1).name  # says what there is
    for form in forms.values():
        if all(_has(form, name) for name in names):
            return form
    every = [entry.name for form in forms.values() for entry in algorithms(form)]
    for name in names:
        if _base(name) not in every:
            words = unknown("algorithm", name, sorted({*every}), f"for {collective}")
            raise ValueError(words)
    where = {
        name: next(WHERE[n] for n, form in forms.items() if _has(form, name))
        for name in names
    }
    words = ", ".join(f"{name} is {place}" for name, place in where.items())
    raise ValueError(f"{words}: a page has one collective")


def _groups_asked(options: Mapping[str, str]) -> int | None:
    """The number of groups, as far as the options tell it: 3 for several."""
    if "groups" in options:
        return min(len(integers(options["groups"], "--groups")), 3)
    if ";" in options.get("counts", ""):
        return min(options["counts"].count(";") + 1, 3)
    if any(name in options for name in ("q", "ka", "kb", "a", "b", "ab", "ba")):
        return 2
    return 2 if ":" in options.get("bytes", "") else None


def _base(algorithm: str) -> str:
    """The name of an algorithm without its stage and its options."""
    return algorithm.partition("+")[0].partition("(")[0]


def _has(of: str, algorithm: str) -> bool:
    return any(entry.name == _base(algorithm) for entry in algorithms(of))


def _check_algorithms(collective: str, asked: str, names: Sequence[str]) -> None:
    """Refuse an algorithm that is for another number of groups, and say which."""
    for name in names:
        others = [
            n
            for n in groups_of(collective)
            if _has(record_of(collective, n).name, name)
        ]
        if others and number_of_groups(asked) not in others:
            example = {1: "8", 2: "6,2", 3: "3,2,2"}[others[0]]
            raise ValueError(
                f"{name} is an {collective} {WHERE[others[0]]}: --groups {example}"
            )


def read_each(text: str, groups: int) -> tuple[int, ...]:
    """The bytes of a block in each group: of all, as in 4KiB, or one after the other,
    as in 4KiB:1KiB."""
    each = [read_bytes(part) for part in text.split(":")]
    if len(each) not in (1, groups):
        words = "one size" if groups == 1 else f"one size, or {groups}, as in 4KiB:1KiB"
        raise ValueError(f"--bytes {text}: must be {words}")
    return tuple(each * groups if len(each) == 1 else each)


def in_groups(text: str, groups: int) -> tuple[int, ...]:
    """The same, where sizes of groups were between commas once."""
    if text.count(",") == 1 and groups == 2:
        now = text.replace(",", ":")
        note(f"--bytes {text} is now --bytes {now}")
        text = now
    return read_each(text, groups)


def _sizes(found: str, options: Given, times: int) -> dict[str, Any]:
    """The sizes of a form."""
    example = COLLECTIVES[found].example
    sizes = {name: _larger(name, size, times) for name, size in example.items()}
    ranks = _ranks(found, options)
    if "bytes" in options and COLLECTIVES[found].gives == NOTHING:
        raise ValueError(f"--bytes {options['bytes']}: a barrier moves nothing")
    derived = {"groups", "bytes", "counts"} & options.keys()
    if derived or ranks != COLLECTIVES[found].ranks(example):
        sizes |= _derived(found, ranks, options, times)
    old = {
        name: counts_in(name, x) if isinstance(x, str) else x
        for name, x in options.items()
        if name not in ("groups", "bytes", "counts", "p", "q", *PLACES)
    }
    odd = [f"--{name}" for name in old if name not in example]
    if odd:
        takes = ["--groups", "--bytes"] + ["--counts"] * _takes_counts(found)
        takes += [f"--{x}" for x in ("table", "ab", "ba", "root") if x in example]
        known = ", ".join(takes)
        raise ValueError(f"{mpi_name(found)} takes {known}; not {', '.join(odd)}")
    _note_old(found, old, sizes)
    return sizes | old


def has_one_root(found: str) -> bool:
    """Whether the first group is a root alone, as others of it have no part."""
    record = COLLECTIVES[found]
    return record.is_rooted and record.groups == BETWEEN


def _takes_counts(found: str) -> bool:
    return bool({"counts", "a", "groups"} & COLLECTIVES[found].example.keys())


def _ranks(found: str, options: Given) -> tuple[int, ...]:
    """The ranks of each group: as given, else those of the example."""
    record = COLLECTIVES[found]
    ranks, rooted = list(record.ranks(record.example)), has_one_root(found)
    if "groups" in options:
        ranks = integers(options["groups"], "--groups")
    elif "p" in options and not rooted:
        ranks[0] = options["p"]
    if "q" in options and "groups" not in options:
        if number_of_groups(found) != 2:
            raise ValueError(f"{found} is {WHERE[number_of_groups(found)]}; not --q")
        ranks[1] = options["q"]
    names = ("--p", "--q") if "groups" not in options else ("--groups",) * len(ranks)
    for name, n in zip(names, ranks, strict=False):
        if n < 1:
            raise ValueError(f"{name.strip('-')} = {n}: must be at least 1")
    return (1, *ranks[1:]) if rooted else tuple(ranks)


def _each(
    found: str, ranks: tuple[int, ...], options: Given, times: int
) -> tuple[int, ...]:
    """The bytes of a block, or of a vector, in each group."""
    rooted, vector = has_one_root(found), COLLECTIVES[found].gives == VECTOR
    if "bytes" in options:
        each = read_each(options["bytes"], len(ranks))
        if vector and len(set(each)) > 1:
            raise ValueError(f"--bytes {options['bytes']}: all vectors have one size")
        return (each[-1],) * len(ranks) if rooted else each
    example = COLLECTIVES[found].example
    if "ka" in example and not vector:
        return example["ka"] * times, example["kb"] * times
    if not {"m", "k"} & example.keys() and vector:  # each gets two elements of the sum
        return (2 * lcm(*ranks) * times,) * len(ranks)
    one = next((example[name] for name in ("m", "k") if name in example), USUAL_BLOCK)
    return (one * times,) * len(ranks)


def _derived(
    found: str, ranks: tuple[int, ...], options: Given, times: int
) -> dict[str, Any]:
    """The sizes of a form of so many ranks, with blocks of so many bytes, or counts."""
    each = _each(found, ranks, options, times)
    counts = _counts(found, ranks, each, options)
    (p, q), (ka, kb) = (*ranks, 0)[:2], (*each, 0)[:2]
    if COLLECTIVES[found].gives == VECTOR and "ka" in COLLECTIVES[found].example:
        if each[0] % lcm(p, q):
            raise ValueError(
                f"--bytes {show_bytes(each[0])}: the vector is cut into {p} and into "
                f"{q} equal parts: must be a multiple of {lcm(p, q)}"
            )
        ka, kb = each[0] // p, each[0] // q
    every = {
        "p": p,
        "q": q,
        "ka": ka,
        "kb": kb,
        "m": each[-1],
        "k": each[-1],
        "a": counts[0],
        "b": counts[-1],
        "counts": counts[-1],
        "groups": counts,
        "sizes": list(ranks),
        "table": _table(ranks, each),
        "ab": [[ka] * q for _ in range(p)],
        "ba": [[kb] * p for _ in range(q)],
    }
    return {name: every[name] for name in COLLECTIVES[found].example if name in every}


def _counts(
    found: str, ranks: tuple[int, ...], each: tuple[int, ...], options: Given
) -> list[list[int]]:
    """The blocks of the ranks of each group."""
    text = options.get("counts")
    if text is None:
        is_cut = COLLECTIVES[found].gives == VECTOR
        cut = shares if is_cut else lambda k, n: [k] * n
        return [cut(k, n) for n, k in zip(ranks, each, strict=True)]
    if not _takes_counts(found):
        raise ValueError(f"{mpi_name(found)} has blocks of one size: --bytes")
    rows = [integers(row, "--counts") for row in text.split(";")]
    if len(rows) == 1 and number_of_groups(found) == 2 and "a" not in _example(found):
        rows = [[0], *rows]  # of the ranks of the other group
    if len(rows) != len(ranks):
        words = "3,0,5" if len(ranks) == 1 else ";".join(["3,0"] * len(ranks))
        raise ValueError(f"--counts {text}: must be as in {words}")
    asked = {"groups", "p", "q"} & options.keys()
    if asked and tuple(map(len, rows)) != ranks:
        each_has = " and ".join(str(len(row)) for row in rows)
        raise ValueError(f"--counts {text} are of {each_has} ranks, not {list(ranks)}")
    return rows


def _example(found: str) -> dict[str, Any]:
    return COLLECTIVES[found].example


def _table(ranks: tuple[int, ...], each: tuple[int, ...]) -> list[list[int]]:
    """A row for each rank: what it sends to each; of several groups, nothing inside."""
    groups = [i for i, n in enumerate(ranks) for _ in range(n)]
    inside = len(ranks) == 1
    return [[each[i] * (inside or i != j) for j in groups] for i in groups]


def _note_old(found: str, old: dict[str, Any], sizes: dict[str, Any]) -> None:
    """Say what older options are called now."""
    blocks = {x: old[x] for x in ("ka", "kb", "k", "m") if x in old}
    lists = {x: old[x] for x in ("a", "b") if x in old}
    if blocks:
        words = " ".join(f"--{name} {size}" for name, size in blocks.items())
        ka, kb = (blocks.get(x, sizes.get(x, 0)) for x in ("ka", "kb"))
        pair = str(ka) if ka == kb else f"{ka}:{kb}"
        between = "ka" in blocks or "kb" in blocks
        now = pair if between else str(next(iter(blocks.values())))
        if COLLECTIVES[found].gives == VECTOR and between:  # the whole vector
            now = str(sizes["p"] * ka)
        note(f"{words} is now --bytes {now}")
    if lists:
        words = " ".join(f"--{x} {_joined(row)}" for x, row in lists.items())
        rows = (lists.get(x, sizes.get(x, [])) for x in ("a", "b"))
        note(f"{words} is now --counts '{';'.join(map(_joined, rows))}'")


def _joined(row: Sequence[int]) -> str:
    return ",".join(map(str, row))


def counts_in(name: str, text: str) -> list[int] | list[list[int]]:
    """Counts between commas; rows of a table between semicolons."""
    if name in ("ab", "ba", "table"):
        rows = [integers(row, f"--{name}") for row in text.split(";")]
        if len({len(row) for row in rows}) > 1:
            raise ValueError(
                f"--{name} {text}: rows must be of one length, as in 3,0;1,2"
            )
        return rows
    return integers(text, f"--{name}")


def _larger(name: str, size: Any, times: int) -> Any:
    """A default size, but for the ranks, so many times as large."""
    if name in ("p", "q", "root", "sizes"):
        return size
    if isinstance(size, list):
        return [_larger(name, n, times) for n in size]
    return times * size
