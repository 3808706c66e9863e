"""`isthmus lab`: a shaped network of many hosts inside this machine."""

from __future__ import annotations

import json
import os
import shlex
import sys
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress
from rich.table import Table

from ..lab import Lab, LabError, Network, OutOfTime, find, lab as life, missing
from ..lab.names import show_rate
from ..lab.spaces import everything, inside
from ..lab.tools import rootless, run as try_command
from ..spelling import unknown
from ..units import show_time
from .options import DEFAULT_LAB_RATE, Json, Rate
from .terminal import ended_in_order

#: the exit status after a time limit, as of timeout(1)
OUT_OF_TIME = 124

Name = Annotated[str, typer.Option(metavar="NAME", help="name of the lab")]
Host = Annotated[int, typer.Argument(metavar="HOST", help="its number, from 0")]


def _slow(options: list[str]) -> dict[int, str]:
    """The rates of single hosts, as in 3:10mbit."""
    rates = {}
    for text in options:
        host, colon, rate = text.partition(":")
        if not (host.isdigit() and colon):
            raise ValueError(
                f"--slow {text}: must be a host and a rate, as in 3:10mbit"
            )
        rates[int(host)] = rate
    return rates


def _check_abilities() -> None:
    """Refuse to go on where the system lacks something that a lab needs."""
    if lack := missing():
        raise LabError(lack)


def up(
    hosts: Annotated[int, typer.Option(metavar="N", min=1, help="number of hosts")] = 8,
    rate: Rate = DEFAULT_LAB_RATE,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:RATE",
            help="another rate for one host, as in 3:10mbit; may be repeated",
        ),
    ] = None,
    name: Name = "lab",
) -> None:
    """Put up a lab: hosts with shaped links."""
    console, start = Console(), perf_counter()
    columns = (BarColumn(), MofNCompleteColumn())
    is_quiet = not console.is_terminal
    with Progress(
        "hosts", *columns, console=console, transient=True, disable=is_quiet
    ) as progress:
        task = progress.add_task("hosts", total=hosts)
        lab = Lab(
            hosts,
            rate,
            slow=_slow(slow or []),
            name=name,
            progress=lambda done: progress.update(task, completed=done),
        )
        with lab:
            lab.keep()
    took = show_time(perf_counter() - start)
    console.print(f"lab {name}: {hosts} hosts at {rate}, up in {took}", highlight=False)


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="PROGRAM…", help="what to run, after --")
    ],
    n: Annotated[
        int | None,
        typer.Option("-n", metavar="N", help="processes [default: one per host]"),
    ] = None,
    per_host: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="ranks per host, filled in order [default: spread evenly]"
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="when the program is ended"),
    ] = None,
    name: Name = "lab",
) -> None:
    """Run an MPI program on the hosts; its exit status is that of mpiexec.

    When the time limit has passed, the exit status is 124.
    """
    _check_abilities()
    net = find(name)
    try:
        with ended_in_order():
            status = net.run(command, n, per_host=per_host, timeout=timeout).returncode
    except OutOfTime as error:
        print(f"isthmus: {shlex.join(command)}: {error}", file=sys.stderr)
        status = OUT_OF_TIME
    raise typer.Exit(status if status >= 0 else 128 - status)


def _row(name: str) -> tuple[str, ...]:
    """The row of a lab in the table of running labs."""
    state, processes = life.state(name), str(len(inside(name)))
    if state == "dead":
        return name, state, "", "", "isthmus lab down removes it", processes
    links = find(name).links()
    rates = [link.rate for link in links.values()]
    usual_rate = max(rates, key=rates.count, default=0)
    exceptions = [
        f"{host}: {show_rate(link.rate) if link.joined else 'cut off'}"
        for host, link in sorted(links.items())
        if link.rate != usual_rate or not link.joined
    ]
    return (
        name,
        state,
        str(len(links)),
        show_rate(usual_rate),
        ", ".join(exceptions),
        processes,
    )


def _facts(name: str) -> dict[str, Any]:
    """A lab for programs; rates are in bits a second."""
    state = life.state(name)
    links = find(name).links() if state != "dead" else {}
    hosts = [
        {"host": host, "rate": link.rate, "joined": link.joined}
        for host, link in sorted(links.items())
    ]
    return {
        "lab": name,
        "state": state,
        "processes": len(inside(name)),
        "hosts": hosts,
    }


def _limits(net: Network) -> str:
    """The rate and the latency that TCP reaches on a lab."""
    if net.hosts < 2:
        return f"{net.name}: one host has nobody to send to"
    tcp, rate = net.measure(), min(net.links()[host].rate for host in (0, 1))
    return (
        f"{net.name}: {tcp.rate / 1e6:.4g} MB/s from host 0 to host 1, "
        f"{8 * tcp.rate / rate:.3f} of the rate; alpha {show_time(tcp.alpha)}"
    )


def status(
    measure: Annotated[
        bool,
        typer.Option("--measure", help="measure what TCP gets between hosts 0 and 1"),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the running labs."""
    _check_abilities()
    console, names = Console(), list(everything())
    if as_json:
        print(json.dumps([_facts(name) for name in names], indent=2))
        return
    if not names:
        console.print("no lab is running")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("lab", "", "hosts", "rate", "other hosts", "processes"):
        table.add_column(column, no_wrap=True)
    for name in names:
        table.add_row(*_row(name))
    console.print(table, highlight=False)
    for name in names if measure else ():
        if life.state(name) != "dead":
            console.print(_limits(find(name)), highlight=False)


def set_(host: Host, rate: Rate, name: Name = "lab") -> None:
    """Give the link of one host another rate."""
    _check_abilities()
    find(name).set_rate(host, rate)


def cut(host: Host, name: Name = "lab") -> None:
    """Cut a host off from all others."""
    _check_abilities()
    find(name).cut(host)


def join(host: Host, name: Name = "lab") -> None:
    """Join a host again that was cut off."""
    _check_abilities()
    find(name).join(host)


def down(name: Name = "lab") -> None:
    """Take a lab down and end what runs on it; remove dead labs."""
    _check_abilities()
    removed = [*life.sweep(), *([name] if life.down(name) else [])]
    if not removed:
        running = list(everything())
        raise LabError(
            unknown("lab", name, running) if running else "no lab is running"
        )
    print("taken down: " + ", ".join(removed))


def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM…",
            help="what to run [default: a shell]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Start a shell in which labs need no root.

    The shell has no other network. Labs inside end with the shell.
    """
    try:
        try_command(rootless(["true"]))
    except LabError as error:
        raise LabError(f"users may not have namespaces here ({error})") from None
    line = rootless(command or [os.environ.get("SHELL", "sh")])
    os.execvp(line[0], line)
