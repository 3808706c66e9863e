"""What commands that may measure on a lab are told of it."""

from __future__ import annotations

from typing import Annotated

import typer

#: of a link, where nothing else is asked for
RATE = "50mbit"

Hosts = Annotated[
    int | None,
    typer.Option("--lab", help="measure on a lab of N hosts, made for this"),
]
Named = Annotated[
    str | None, typer.Option("--lab-name", help="measure on this running lab")
]
Rate = Annotated[
    str,
    typer.Option(help="rate of a link of the lab, each way: 50mbit, 1gbit, 800kbit"),
]
