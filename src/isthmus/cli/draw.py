"""`isthmus draw`: a schedule as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import schedule
from ..draw.schedule import figure
from .parse import integers

#: sizes for what is not given
DEFAULTS: dict[str, dict[str, Any]] = {
    "inter_allgather": {"p": 6, "q": 2, "ka": 6, "kb": 6},
    "inter_allgatherv": {"a": [5, 0, 9, 2, 1, 7], "b": [10, 3]},
    "allgatherv": {"counts": [3, 0, 4, 4, 9]},
}


def save(picture: Any, path: Path) -> Path:
    """Write a figure; the kind of file follows from its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=140)
    return path


def draw(
    collective: Annotated[str, typer.Argument(help="as isthmus list names it")],
    algorithm: Annotated[str, typer.Argument(help="such as segmented+ring")],
    p: Annotated[int | None, typer.Option(help="ranks of group A")] = None,
    q: Annotated[int | None, typer.Option(help="ranks of group B")] = None,
    ka: Annotated[int | None, typer.Option(help="elements of each of A")] = None,
    kb: Annotated[int | None, typer.Option(help="elements of each of B")] = None,
    a: Annotated[str | None, typer.Option(help="counts of A, as in 3,0,5")] = None,
    b: Annotated[str | None, typer.Option(help="counts of B")] = None,
    counts: Annotated[str | None, typer.Option(help="counts of one group")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="a .png, .svg or .pdf file")
    ] = None,
) -> None:
    """Draw what every rank holds after every step of a schedule."""
    given: dict[str, Any] = {"p": p, "q": q, "ka": ka, "kb": kb}
    for name, text in (("a", a), ("b", b), ("counts", counts)):
        given[name] = None if text is None else integers(text, f"--{name}")
    sizes = {name: value for name, value in given.items() if value is not None}
    known = DEFAULTS.get(collective, {})
    odd = [f"--{name}" for name in sizes if known and name not in known]
    if odd:
        takes = ", ".join(f"--{name}" for name in known)
        raise ValueError(f"{collective} takes {takes}; not {', '.join(odd)}")
    made = schedule(collective, algorithm, **{**known, **sizes})
    path = output or Path(f"{collective}-{algorithm.replace('+', '-')}.png")
    print(save(figure(made), path))
