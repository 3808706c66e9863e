"""The names of a lab's namespaces, devices and addresses, and rates as text.

The names of all namespaces contain the lab's name, so labs are known by name alone. All
else is inside the namespaces, where no name or address can clash with another lab's.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network

#: every lab has this network to itself; a host's address is its number and one
SUBNET = IPv4Network("10.77.0.0/16")
BRIDGE_DEVICE = "bridge0"
PORT_PREFIX = "port"
#: a bridge has no more ports than this
MAX_HOSTS = 1000

LAB_NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
LAB_NAMESPACE = re.compile(rf"isthmus-({LAB_NAME.pattern})-(switch|\d+)")
RATE_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmg])bit\s*", re.IGNORECASE)
BITS_PER_UNIT = {"k": 10**3, "m": 10**6, "g": 10**9}
MIN_BITS_PER_SECOND = 64_000


def check_name(name: str) -> str:
    """The name of a lab, or an error if the name is not allowed."""
    if not LAB_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a lab: lower-case letters and digits")
    return name


def switch(name: str) -> str:
    """The namespace of a lab's bridge and of mpiexec."""
    return f"isthmus-{name}-switch"


def host(name: str, number: int) -> str:
    """The namespace of a host."""
    return f"isthmus-{name}-{number}"


def owner(namespace: str) -> tuple[str, int | None] | None:
    """The lab and the host's number of a namespace; None outside of labs."""
    match = LAB_NAMESPACE.fullmatch(namespace)
    if match is None:
        return None
    return match[1], None if match[2] == "switch" else int(match[2])


def address(number: int) -> str:
    """The address of a host."""
    return str(SUBNET[number + 1])


def bridge_address() -> str:
    """The address of the switch, where mpiexec runs."""
    return str(SUBNET[-2])


def hardware(address: str) -> str:
    """The hardware address that belongs to an address."""
    return "02:00:" + ":".join(f"{int(x):02x}" for x in address.split("."))


def read_rate(text: str) -> int:
    """The bits a second of 50mbit, 1.5gbit, 800kbit."""
    match = RATE_PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate; write 50mbit, 1gbit or 800kbit")
    rate = round(float(match[1]) * BITS_PER_UNIT[match[2].lower()])
    if rate < MIN_BITS_PER_SECOND:
        raise ValueError(
            f"{text}: a link has at least {show_rate(MIN_BITS_PER_SECOND)}"
        )
    return rate


def show_rate(rate: float) -> str:
    """A rate as users write rates."""
    letter, factor = next(
        ((x, f) for x, f in reversed(BITS_PER_UNIT.items()) if rate >= f), ("k", 10**3)
    )
    return f"{rate / factor:g}{letter}bit"
