"""The options for a collective, its groups, and the sizes of its blocks.

Every command takes the words of users: the MPI name of the collective, `--groups 6,2`
for the ranks of each group, `--bytes 4KiB` for the block of each rank, `--counts
3,0;4,1` for unequal blocks. A schedule takes the words of its form: p, q, ka, kb, m, k,
a, b, counts, derived here from the words of users. Users may still write most of the
second as options, and then read in a note how to write them now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from math import lcm
from typing import Annotated, Any

import typer

from ..collectives.collective import (
    BETWEEN,
    INSIDE,
    NOTHING,
    SEVERAL,
    VECTOR,
    Collective,
    shares,
)
from ..collectives.records import COLLECTIVES, groups_of, record_of
from ..schedules.names import WHERE, mpi_name
from ..schedules.registry import algorithms
from ..spelling import unknown
from ..units import read_bytes, show_bytes
from .options import integers, note

#: sizes as users wrote them, by the names of the options
SizeOptions = dict[str, Any]
#: bytes of a block where a schedule's example has unequal blocks
DEFAULT_BLOCK_BYTES = 4


def _int_option(words: str, metavar: str = "N") -> Any:
    return Annotated[int | None, typer.Option(help=words, metavar=metavar)]


def _text_option(words: str, metavar: str) -> Any:
    return Annotated[str | None, typer.Option(help=words, metavar=metavar)]


def _older_int_option() -> Any:
    return Annotated[int | None, typer.Option(hidden=True, help="an older name")]


def _older_text_option() -> Any:
    return Annotated[str | None, typer.Option(hidden=True, help="an older name")]


GROUPS_HELP = "ranks of each group, as in 6,2; one number is inside one group"
PerNode = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="ranks per node, filled in order")
]
SIZE_OPTIONS = {
    "groups": _text_option(GROUPS_HELP, "N,N"),
    "p": _int_option("ranks of the first group, or of the one group"),
    "q": _int_option("ranks of the second group"),
    "bytes": Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="bytes of each rank's block or vector, as in 4KiB; one for each "
            "group, as in 4KiB:1KiB",
        ),
    ],
    "counts": _text_option(
        "bytes of each rank's own block, as in 3,0,5; of two groups, 3,0,5;4,4", "N,N"
    ),
    "table": _text_option("bytes from each rank to each, as in 3,0;1,2", "ROWS"),
    "ab": _text_option("bytes from each rank of the first group to the second", "ROWS"),
    "ba": _text_option("bytes from each rank of the second group to the first", "ROWS"),
    "root": _int_option("rank of the root", "RANK"),
    "nodes": _text_option("the node of each rank, as in 0,0,1,1", "N,N"),
    "per_node": PerNode,
    **{name: _older_int_option() for name in ("ka", "kb", "k", "m")},
    **{name: _older_text_option() for name in ("a", "b", "sizes")},
}
NODE_OPTIONS = ("nodes", "per_node")


def sized(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `size_options` of a command by an option for each size, so
    that all commands spell sizes alike."""

    def run(**values: Any) -> None:
        size_options = {name: values.pop(name) for name in SIZE_OPTIONS}
        command(size_options=size_options, **values)

    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        options = (
            parameter.replace(name=name, annotation=option, default=None)
            for name, option in SIZE_OPTIONS.items()
        )
        parameters += options if parameter.name == "size_options" else [parameter]
    run.__doc__ = command.__doc__
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def resolve(
    collective: str, names: Sequence[str], size_options: SizeOptions, factor: int
) -> tuple[str, dict[str, Any]]:
    """The name of a collective's record and the sizes, for all of several algorithms.

    Default sizes fit on a picture of steps, and are multiplied by a factor for other
    uses.
    """
    options = {name: x for name, x in size_options.items() if x is not None}
    if ";" in options.get("groups", ""):
        note(f"--groups {options['groups']} is now --counts {options['groups']}")
        options["counts"] = options.pop("groups")
    if "sizes" in options:
        note(f"--sizes {options['sizes']} is now --groups {options['sizes']}")
        options["groups"] = options.pop("sizes")
    record = _record(collective, names, options)
    return record.name, _sizes(record, options, factor)


def _record(collective: str, names: Sequence[str], options: SizeOptions) -> Collective:
    """The record of a collective for the groups of options and algorithms."""
    groups = _asked_groups(options)
    if collective in COLLECTIVES and not groups_of(collective):
        record = COLLECTIVES[collective]
        if groups not in (None, record.groups):
            raise ValueError(
                f"{collective} is {WHERE[record.groups]}: --groups has {groups}"
            )
        ranks = ",".join(map(str, record.ranks(record.example)))
        note(f"{collective} is now {mpi_name(collective)}, with --groups as in {ranks}")
        return record
    if groups is not None:
        record = record_of(collective, groups)
        _check_algorithms(collective, record, names)
        return record
    records = [record_of(collective, n) for n in groups_of(collective)]
    if not records:
        return record_of(collective, 1)  # an error with the known names
    for record in records:
        if all(_has_algorithm(record, name) for name in names):
            return record
    known_names = {entry.name for x in records for entry in algorithms(x.name)}
    for name in names:
        if _base(name) not in known_names:
            raise ValueError(
                unknown("algorithm", name, sorted(known_names), f"for {collective}")
            )
    places = {
        name: next(WHERE[x.groups] for x in records if _has_algorithm(x, name))
        for name in names
    }
    words = ", ".join(f"{name} is {place}" for name, place in places.items())
    raise ValueError(f"{words}: a page has one collective")


def _asked_groups(options: Mapping[str, str]) -> int | None:
    """The number of groups, as far as options tell: 3 for several."""
    if "groups" in options:
        return min(len(integers(options["groups"], "--groups")), SEVERAL)
    if ";" in options.get("counts", ""):
        return min(options["counts"].count(";") + 1, SEVERAL)
    if any(name in options for name in ("q", "ka", "kb", "a", "b", "ab", "ba")):
        return BETWEEN
    return BETWEEN if ":" in options.get("bytes", "") else None


def _base(algorithm: str) -> str:
    """The name of an algorithm without stage and options."""
    return algorithm.partition("+")[0].partition("(")[0]


def _has_algorithm(record: Collective, algorithm: str) -> bool:
    return any(entry.name == _base(algorithm) for entry in algorithms(record.name))


def _check_algorithms(
    collective: str, record: Collective, names: Sequence[str]
) -> None:
    """Refuse an algorithm for another number of groups, and name that number."""
    for name in names:
        known_groups = [
            groups
            for groups in groups_of(collective)
            if _has_algorithm(record_of(collective, groups), name)
        ]
        if known_groups and record.groups not in known_groups:
            groups = known_groups[0]
            example = {INSIDE: "8", BETWEEN: "6,2", SEVERAL: "3,2,2"}[groups]
            raise ValueError(
                f"{name} is an {collective} {WHERE[groups]}: --groups {example}"
            )


def bytes_of_groups(text: str, groups: int) -> tuple[int, ...]:
    """The bytes of a block in each group, from a size for all, as in 4KiB, or a size
    for each, as in 4KiB:1KiB."""
    block_bytes = [read_bytes(part) for part in text.split(":")]
    if len(block_bytes) not in (1, groups):
        words = "one size" if groups == 1 else f"one size, or {groups}, as in 4KiB:1KiB"
        raise ValueError(f"--bytes {text}: must be {words}")
    return tuple(block_bytes * groups if len(block_bytes) == 1 else block_bytes)


def bytes_of_groups_with_commas(text: str, groups: int) -> tuple[int, ...]:
    """The bytes of a block in each group, also from the older spelling with a comma."""
    if text.count(",") == 1 and groups == 2:
        new_text = text.replace(",", ":")
        note(f"--bytes {text} is now --bytes {new_text}")
        text = new_text
    return bytes_of_groups(text, groups)


def _sizes(record: Collective, options: SizeOptions, factor: int) -> dict[str, Any]:
    """The sizes of a collective, by the names of the schedule's parameters."""
    example = record.example
    sizes = {name: _scaled(name, size, factor) for name, size in example.items()}
    ranks = _ranks(record, options)
    if "bytes" in options and record.gives == NOTHING:
        raise ValueError(f"--bytes {options['bytes']}: a barrier moves nothing")
    has_sizes_of_users = bool({"groups", "bytes", "counts"} & options.keys())
    if has_sizes_of_users or ranks != record.ranks(example):
        sizes |= _derived(record, ranks, options, factor)
    schedule_sizes = {
        name: counts_in(name, x) if isinstance(x, str) else x
        for name, x in options.items()
        if name not in ("groups", "bytes", "counts", "p", "q", *NODE_OPTIONS)
    }
    refused = [f"--{name}" for name in schedule_sizes if name not in example]
    if refused:
        accepted = ["--groups", "--bytes"] + ["--counts"] * _accepts_counts(record)
        accepted += [f"--{x}" for x in ("table", "ab", "ba", "root") if x in example]
        raise ValueError(
            f"{mpi_name(record.name)} takes {', '.join(accepted)}; "
            f"not {', '.join(refused)}"
        )
    _note_older_options(record, schedule_sizes, sizes)
    return sizes | schedule_sizes


def has_one_root(record: Collective) -> bool:
    """Whether the first group is a root alone, as no other rank has a part."""
    return record.is_rooted and record.groups == BETWEEN


def _accepts_counts(record: Collective) -> bool:
    return bool({"counts", "a", "groups"} & record.example.keys())


def _ranks(record: Collective, options: SizeOptions) -> tuple[int, ...]:
    """The ranks of each group: from the options, else from the record's example."""
    ranks, is_root_alone = list(record.ranks(record.example)), has_one_root(record)
    if "groups" in options:
        ranks = integers(options["groups"], "--groups")
    elif "p" in options and not is_root_alone:
        ranks[0] = options["p"]
    if "q" in options and "groups" not in options:
        if record.groups != BETWEEN:
            raise ValueError(f"{record.name} is {WHERE[record.groups]}; not --q")
        ranks[1] = options["q"]
    names = ("--p", "--q") if "groups" not in options else ("--groups",) * len(ranks)
    for name, n in zip(names, ranks, strict=False):
        if n < 1:
            raise ValueError(f"{name.strip('-')} = {n}: must be at least 1")
    return (1, *ranks[1:]) if is_root_alone else tuple(ranks)


def _block_bytes(
    record: Collective, ranks: tuple[int, ...], options: SizeOptions, factor: int
) -> tuple[int, ...]:
    """The bytes of a block, or of a vector, in each group."""
    example, is_vector = record.example, record.gives == VECTOR
    if "bytes" in options:
        block_bytes = bytes_of_groups(options["bytes"], len(ranks))
        if is_vector and len(set(block_bytes)) > 1:
            raise ValueError(f"--bytes {options['bytes']}: all vectors have one size")
        if has_one_root(record):
            return (block_bytes[-1],) * len(ranks)
        return block_bytes
    if "ka" in example and not is_vector:
        return example["ka"] * factor, example["kb"] * factor
    block = example.get("m", example.get("k"))
    if block is None and is_vector:  # two elements of the sum for each rank
        block = 2 * lcm(*ranks)
    return ((block or DEFAULT_BLOCK_BYTES) * factor,) * len(ranks)


def _derived(
    record: Collective, ranks: tuple[int, ...], options: SizeOptions, factor: int
) -> dict[str, Any]:
    """The sizes of a collective, derived from ranks and from bytes or counts."""
    block_bytes = _block_bytes(record, ranks, options, factor)
    counts = _counts(record, ranks, block_bytes, options)
    (p, q), (ka, kb) = (*ranks, 0)[:2], (*block_bytes, 0)[:2]
    if record.gives == VECTOR and "ka" in record.example:
        if block_bytes[0] % lcm(p, q):
            raise ValueError(
                f"--bytes {show_bytes(block_bytes[0])}: the vector is cut into {p} and "
                f"into {q} equal parts: must be a multiple of {lcm(p, q)}"
            )
        ka, kb = block_bytes[0] // p, block_bytes[0] // q
    sizes = {
        "p": p,
        "q": q,
        "ka": ka,
        "kb": kb,
        "m": block_bytes[-1],
        "k": block_bytes[-1],
        "a": counts[0],
        "b": counts[-1],
        "counts": counts[-1],
        "groups": counts,
        "sizes": list(ranks),
        "table": _table(ranks, block_bytes),
        "ab": [[ka] * q for _ in range(p)],
        "ba": [[kb] * p for _ in range(q)],
    }
    return {name: sizes[name] for name in record.example if name in sizes}


def _counts(
    record: Collective,
    ranks: tuple[int, ...],
    block_bytes: tuple[int, ...],
    options: SizeOptions,
) -> list[list[int]]:
    """The blocks of the ranks of each group."""
    text = options.get("counts")
    if text is None:
        cut = shares if record.gives == VECTOR else lambda k, n: [k] * n
        return [cut(k, n) for n, k in zip(ranks, block_bytes, strict=True)]
    if not _accepts_counts(record):
        raise ValueError(f"{mpi_name(record.name)} has blocks of one size: --bytes")
    rows = [integers(row, "--counts") for row in text.split(";")]
    if len(rows) == 1 and record.groups == BETWEEN and "a" not in record.example:
        rows = [[0], *rows]  # the counts are of the ranks of the second group
    if len(rows) != len(ranks):
        words = "3,0,5" if len(ranks) == 1 else ";".join(["3,0"] * len(ranks))
        raise ValueError(f"--counts {text}: must be as in {words}")
    names_ranks = bool({"groups", "p", "q"} & options.keys())
    if names_ranks and tuple(map(len, rows)) != ranks:
        lengths = " and ".join(str(len(row)) for row in rows)
        raise ValueError(f"--counts {text} are of {lengths} ranks, not {list(ranks)}")
    return rows


def _table(ranks: tuple[int, ...], block_bytes: tuple[int, ...]) -> list[list[int]]:
    """A row for each rank with its bytes to each; of several groups, nothing inside."""
    groups = [i for i, n in enumerate(ranks) for _ in range(n)]
    is_one_group = len(ranks) == 1
    return [[block_bytes[i] * (is_one_group or i != j) for j in groups] for i in groups]


def _note_older_options(
    record: Collective, older_options: dict[str, Any], sizes: dict[str, Any]
) -> None:
    """Note the new spelling of older options."""
    blocks = {x: older_options[x] for x in ("ka", "kb", "k", "m") if x in older_options}
    lists = {x: older_options[x] for x in ("a", "b") if x in older_options}
    if blocks:
        words = " ".join(f"--{name} {size}" for name, size in blocks.items())
        ka, kb = (blocks.get(x, sizes.get(x, 0)) for x in ("ka", "kb"))
        both_sizes = str(ka) if ka == kb else f"{ka}:{kb}"
        is_between = "ka" in blocks or "kb" in blocks
        new_size = both_sizes if is_between else str(next(iter(blocks.values())))
        if record.gives == VECTOR and is_between:  # the whole vector
            new_size = str(sizes["p"] * ka)
        note(f"{words} is now --bytes {new_size}")
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


def _scaled(name: str, size: Any, factor: int) -> Any:
    """A default size times a factor; counts of ranks stay."""
    if name in ("p", "q", "root", "sizes"):
        return size
    if isinstance(size, list):
        return [_scaled(name, n, factor) for n in size]
    return factor * size
