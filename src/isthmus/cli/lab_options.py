"""What commands that may measure on a lab are told of it."""

from __future__ import annotations

from typing import Annotated

import typer

#: of a link, where nothing else is asked for
RATE = "50mbit"

Hosts = Annotated[
    int | None,
    typer.Option("--lab", help="on a lab of so many hosts, made for this"),
]
Named = Annotated[
    str | None, typer.Option("--lab-name", help="on this lab, which is up")
]
Rate = Annotated[
    str, typer.Option(help="of a lab's link, each way: 50mbit, 1gbit, 800kbit")
]
