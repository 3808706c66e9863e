"""Hosts and links: what a lab is made of, and the commands that make it.

Each host is a network namespace with one link to a bridge, shaped in both directions.
The bridge is in a namespace of its own too: the machine's network stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from . import names
from .names import BRIDGE, PORT, SUBNET
from .tools import batch, run

Progress = Callable[[int], object]
#: bytes that a link lets through at once after a pause
BURST = 64 << 10


@dataclass(frozen=True)
class Link:
    """The state of a host's link; rate in bits a second."""

    rate: int
    joined: bool


def shape(device: str, rate: int, verb: str = "add") -> str:
    """The tc command that limits what goes into a device."""
    bucket = f"tbf rate {rate}bit burst {BURST >> 10}kb limit 4mb"
    return f"qdisc {verb} dev {device} root {bucket}"


def switch_commands() -> list[str]:
    """The ip commands that make the bridge."""
    return [
        f"link add name {BRIDGE} type bridge",
        f"addr add {names.bridge_address()}/{SUBNET.prefixlen} dev {BRIDGE}",
        "link set lo up",
        f"link set {BRIDGE} addrgenmode none up",
    ]


def port_commands(name: str, number: int) -> list[str]:
    """The ip commands that make a host's link, inside the switch."""
    port, peer = f"{PORT}{number}", names.host(name, number)
    return [
        f"link add name {port} type veth peer name eth0 netns {peer}",
        f"link set {port} master {BRIDGE} addrgenmode none up",
    ]


def host_commands(number: int) -> list[str]:
    """The ip commands that give a host its address, inside the host."""
    return [
        "link set lo up",
        f"addr add {names.address(number)}/{SUBNET.prefixlen} dev eth0",
        "link set eth0 addrgenmode none up",
    ]


def build(name: str, rates: list[int], progress: Progress = lambda done: None) -> None:
    """Make a lab: a host for each rate."""
    everyone = [names.switch(name), *(names.host(name, i) for i in range(len(rates)))]
    batch("ip", [f"netns add {namespace}" for namespace in everyone])
    batch("ip", switch_commands(), everyone[0])
    for i, rate in enumerate(rates):
        batch("ip", port_commands(name, i), everyone[0])
        batch("ip", host_commands(i), names.host(name, i))
        batch("tc", [shape("eth0", rate)], names.host(name, i))
        progress(i + 1)
    ports = [shape(f"{PORT}{i}", rate) for i, rate in enumerate(rates)]
    batch("tc", ports, everyone[0])


def links(name: str) -> dict[int, Link]:
    """The link of each host, as the kernel has it."""
    space = names.switch(name)
    shaped = run(["tc", "-n", space, "-j", "qdisc", "show"])
    rates = {
        entry["dev"]: 8 * entry["options"]["rate"]
        for entry in json.loads(shaped)
        if entry["kind"] == "tbf"
    }
    shown = json.loads(run(["ip", "-n", space, "-j", "link", "show", "type", "veth"]))
    return {
        int(entry["ifname"].removeprefix(PORT)): Link(
            rates[entry["ifname"]], "UP" in entry["flags"]
        )
        for entry in shown
        if entry["ifname"] in rates
    }


def set_rate(name: str, number: int, rate: int) -> None:
    """Give a host's link another rate, in both directions."""
    batch("tc", [shape("eth0", rate, "replace")], names.host(name, number))
    batch("tc", [shape(f"{PORT}{number}", rate, "replace")], names.switch(name))


def set_joined(name: str, number: int, joined: bool) -> None:
    """Pull a host's cable, or put it back."""
    state = "up" if joined else "down"
    batch("ip", [f"link set {PORT}{number} {state}"], names.switch(name))
