"""What things of a lab are called, and rates as people write them.

A lab's name is in the name of each of its namespaces, so what is ours is known by name
alone. All else is inside of them, where no name or address can clash with another's.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network

#: every lab has this network to itself; a host's address is its number and one
SUBNET = IPv4Network("10.77.0.0/16")
BRIDGE = "bridge0"
PORT = "port"
#: a bridge has no more ports than this
MOST_HOSTS = 1000

NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
NAMESPACE = re.compile(rf"isthmus-({NAME.pattern})-(switch|\d+)")
RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmg])bit\s*", re.IGNORECASE)
FACTORS = {"k": 10**3, "m": 10**6, "g": 10**9}
SLOWEST = 64_000


def check_name(name: str) -> str:
    """The name of a lab, if it can be one."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a lab: lower-case letters and digits")
    return name


def switch(name: str) -> str:
    """The namespace that holds a lab's bridge, and where mpiexec runs."""
    return f"isthmus-{name}-switch"


def host(name: str, number: int) -> str:
    """The namespace of a host."""
    return f"isthmus-{name}-{number}"


def owner(namespace: str) -> tuple[str, int | None] | None:
    """The lab and the host's number of a namespace; None if it is not ours."""
    found = NAMESPACE.fullmatch(namespace)
    if found is None:
        return None
    return found[1], None if found[2] == "switch" else int(found[2])


def address(number: int) -> str:
    """The address of a host."""
    return str(SUBNET[number + 1])


def bridge_address() -> str:
    """Where hosts find mpiexec."""
    return str(SUBNET[-2])


def hardware(address: str) -> str:
    """The hardware address that goes with an address."""
    return "02:00:" + ":".join(f"{int(x):02x}" for x in address.split("."))


def read_rate(text: str) -> int:
    """The bits a second of 50mbit, 1.5gbit, 800kbit."""
    found = RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a rate; write 50mbit, 1gbit or 800kbit")
    rate = round(float(found[1]) * FACTORS[found[2].lower()])
    if rate < SLOWEST:
        raise ValueError(f"{text}: a link has at least {show_rate(SLOWEST)}")
    return rate


def show_rate(rate: float) -> str:
    """A rate as it is written."""
    letter, factor = next(
        ((x, f) for x, f in reversed(FACTORS.items()) if rate >= f), ("k", 10**3)
    )
    return f"{rate / factor:g}{letter}bit"
