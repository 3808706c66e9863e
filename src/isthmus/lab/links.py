"""The hosts and links of a lab, and the commands that make them.

Each host is a network namespace with one link to a bridge, shaped in both directions.
The bridge is in a namespace of its own too, so that the machine's network stays
untouched.

A host knows only the bridge and sends all packets to the bridge. All namespaces share
the kernel's only table of neighbours, of 1024 by default: were 32 hosts to look for
each other, the table would overflow, and the kernel drop packets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from . import names
from .names import BRIDGE_DEVICE, PORT_PREFIX, SUBNET
from .tools import inside, run, run_lines

Progress = Callable[[int], object]
#: bytes that a link lets through at once after a pause
BURST_BYTES = 64 << 10
# The bridge forwards packets between hosts, and does not redirect a host to the other.
FORWARD_ON_BRIDGE = f"""
cd /proc/sys/net/ipv4 && echo 1 >ip_forward &&
echo 0 >conf/all/send_redirects && echo 0 >conf/{BRIDGE_DEVICE}/send_redirects
"""


@dataclass(frozen=True)
class Link:
    """The state of a host's link; rate in bits a second."""

    rate: int
    joined: bool


def shape(device: str, rate: int, verb: str = "add") -> str:
    """The tc command that limits the rate into a device."""
    bucket = f"tbf rate {rate}bit burst {BURST_BYTES >> 10}kb limit 4mb"
    return f"qdisc {verb} dev {device} root {bucket}"


def _neighbour(address: str, device: str) -> str:
    """The ip command for a permanent neighbour, for whom no host need ask."""
    at = names.hardware(address)
    return f"neigh add {address} lladdr {at} dev {device} nud permanent"


def switch_commands() -> list[str]:
    """The ip commands that make the bridge."""
    own = names.bridge_address()
    return [
        f"link add name {BRIDGE_DEVICE} address {names.hardware(own)} type bridge",
        f"addr add {own}/{SUBNET.prefixlen} dev {BRIDGE_DEVICE}",
        "link set lo up",
        f"link set {BRIDGE_DEVICE} addrgenmode none up",
    ]


def port_commands(name: str, number: int) -> list[str]:
    """The ip commands that make a host's link, inside the switch."""
    port, host = f"{PORT_PREFIX}{number}", names.address(number)
    peer = f"eth0 address {names.hardware(host)} netns {names.host(name, number)}"
    return [
        f"link add name {port} type veth peer name {peer}",
        f"link set {port} master {BRIDGE_DEVICE} addrgenmode none up",
        _neighbour(host, BRIDGE_DEVICE),
    ]


def host_commands(number: int) -> list[str]:
    """The ip commands for the address and the route of a host, run inside the host."""
    bridge = names.bridge_address()
    return [
        "link set lo up",
        f"addr add {names.address(number)}/32 dev eth0",
        "link set eth0 addrgenmode none up",
        _neighbour(bridge, "eth0"),
        f"route add {bridge} dev eth0",
        f"route add {SUBNET} via {bridge}",
    ]


def build(name: str, rates: list[int], progress: Progress = lambda done: None) -> None:
    """Make a lab: a host for each rate."""
    everyone = [names.switch(name), *(names.host(name, i) for i in range(len(rates)))]
    run_lines("ip", [f"netns add {namespace}" for namespace in everyone])
    run_lines("ip", switch_commands(), everyone[0])
    run(inside(everyone[0], ["sh", "-c", FORWARD_ON_BRIDGE]))
    for i, rate in enumerate(rates):
        run_lines("ip", port_commands(name, i), everyone[0])
        run_lines("ip", host_commands(i), names.host(name, i))
        run_lines("tc", [shape("eth0", rate)], names.host(name, i))
        progress(i + 1)
    ports = [shape(f"{PORT_PREFIX}{i}", rate) for i, rate in enumerate(rates)]
    run_lines("tc", ports, everyone[0])


def links(name: str) -> dict[int, Link]:
    """The link of each host, as the kernel has it."""
    space = names.switch(name)
    queues = run(["tc", "-n", space, "-j", "qdisc", "show"])
    rates = {
        entry["dev"]: 8 * entry["options"]["rate"]
        for entry in json.loads(queues)
        if entry["kind"] == "tbf"
    }
    devices = json.loads(run(["ip", "-n", space, "-j", "link", "show", "type", "veth"]))
    return {
        int(entry["ifname"].removeprefix(PORT_PREFIX)): Link(
            rates[entry["ifname"]], "UP" in entry["flags"]
        )
        for entry in devices
        if entry["ifname"] in rates
    }


def set_rate(name: str, number: int, rate: int) -> None:
    """Give a host's link another rate, in both directions."""
    run_lines("tc", [shape("eth0", rate, "replace")], names.host(name, number))
    run_lines(
        "tc", [shape(f"{PORT_PREFIX}{number}", rate, "replace")], names.switch(name)
    )


def set_joined(name: str, number: int, joined: bool) -> None:
    """Pull a host's cable, or put the cable back."""
    state = "up" if joined else "down"
    run_lines("ip", [f"link set {PORT_PREFIX}{number} {state}"], names.switch(name))
