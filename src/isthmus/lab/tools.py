"""Running ip and tc, and finding tools and kernel features that a lab lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from ..launch.mpiexec import LaunchError

#: commands, and the packages that bring them
PACKAGE_OF_TOOL = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "hostname": "hostname",
}
SBIN_FOLDERS = "/usr/local/sbin", "/usr/sbin", "/sbin"
#: features of the kernel, and a command of unshare to try each, which leaves nothing
KERNEL_FEATURES = {
    "network namespaces": "--net true",
    "host names of their own": "--uts true",
    "links between namespaces (veth)": "--net ip link add name x type veth",
    "bridges": "--net ip link add name x type bridge",
    "shaped links (sch_tbf)": "--net tc qdisc add dev lo root "
    "tbf rate 1mbit burst 64kb limit 4mb",
}


class LabError(LaunchError):
    """A lab could not be made, found or changed."""


def run(command: Sequence[str], text: str = "") -> str:
    """The output of a command, or an error with the message of the command."""
    try:
        completed = subprocess.run(command, input=text, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError(f"there is no command {command[0]}") from None
    if completed.returncode:
        message = " ".join((completed.stderr or completed.stdout).split())
        raise LabError(f"{' '.join(command)}: {message or completed.returncode}")
    return completed.stdout


def inside(namespace: str, command: Sequence[str]) -> list[str]:
    """A command line that runs another command line inside a namespace."""
    return ["ip", "netns", "exec", namespace, *command]


def run_lines(tool: str, lines: Sequence[str], namespace: str | None = None) -> None:
    """Many commands of ip or tc at once, inside a namespace."""
    namespace_option = ["-n", namespace] if namespace else []
    run(
        [tool, *namespace_option, "-batch", "-"], "".join(f"{line}\n" for line in lines)
    )


def rootless(command: Sequence[str]) -> list[str]:
    """A command line that runs another command line as root of a network of its own.

    Everyone may do so where the kernel lets users have namespaces of their own. All
    namespaces made inside end with the command.
    """
    own = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    ready = 'mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"'
    return [*own, "sh", "-c", ready, "sh", *command]


def _look_in_sbin() -> None:
    """Add the folders of ip and tc to PATH, since a user who becomes root may lack
    both."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys([*folders, *SBIN_FOLDERS]))


def missing() -> str | None:
    """The first requirement of a lab that the machine lacks, as a line, or None."""
    if not sys.platform.startswith("linux"):
        return "a lab needs Linux"
    _look_in_sbin()
    for tool, package in PACKAGE_OF_TOOL.items():
        if shutil.which(tool) is None:
            return f"a lab needs the command {tool} (package {package})"
    if os.geteuid():
        return "a lab needs root; without it: isthmus lab shell"
    return _lacking_feature()


def _lacking_feature() -> str | None:
    """The first missing kernel feature, as a line, or None."""
    for feature, command in KERNEL_FEATURES.items():
        try:
            run(["unshare", *command.split()])
        except LabError as error:
            return f"a lab needs {feature}, which cannot be had here ({error})"
    return None
