"""The lab without a network: names, rates, command lines."""

from __future__ import annotations

import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from isthmus.lab import LabError, job, links, names, spaces, tools
from isthmus.lab.job import placed
from isthmus.lab.keeper import hold
from isthmus.lab.lab import Lab


@pytest.mark.parametrize(
    "text, bits",
    [("50mbit", 50_000_000), ("1.5Gbit", 1_500_000_000), (" 800 kbit ", 800_000)],
)
def test_rates_are_read_as_tc_writes_them(text, bits):
    assert names.read_rate(text) == bits
    assert names.read_rate(names.show_rate(bits)) == bits


@pytest.mark.parametrize("text", ["", "50", "50mb", "-1mbit", "1kbit", "0mbit", "fast"])
def test_what_is_no_rate_is_said_so(text):
    with pytest.raises(ValueError, match=r"rate|at least"):
        names.read_rate(text)


@pytest.mark.parametrize("name", ["", "Lab", "my-lab", "1lab", "a/b", "..", "l" * 30])
def test_a_name_must_be_plain(name):
    with pytest.raises(ValueError, match="no name of a lab"):
        names.check_name(name)
    assert names.owner(names.switch(name)) is None


@given(st.text("az09", max_size=19), st.integers(0, names.MAX_HOSTS - 1))
def test_namespaces_say_whose_they_are(rest, number):
    name = f"a{rest}"
    assert names.owner(names.switch(name)) == (name, None)
    assert names.owner(names.host(name, number)) == (name, number)


@pytest.mark.parametrize(
    "other", ["isthmus", "isthmus-lab", "isthmus-lab-", "xisthmus-lab-1", "lab-1"]
)
def test_what_is_not_ours_is_nobodys(other):
    assert names.owner(other) is None


def test_every_host_has_an_address_of_its_own():
    addresses = [names.address(i) for i in range(names.MAX_HOSTS)]
    addresses.append(names.bridge_address())
    assert len(set(addresses)) == len(addresses)
    assert all(ip_address(x) in names.SUBNET for x in addresses)
    assert len({names.hardware(x) for x in addresses}) == len(addresses)


@pytest.mark.parametrize(
    "n, hosts, per_host, ranks",
    [
        (4, 4, None, [1, 1, 1, 1]),
        (3, 4, None, [1, 1, 1]),
        (8, 4, None, [2, 2, 2, 2]),
        (5, 4, None, [2, 2, 1]),
        (5, 4, 4, [4, 1]),
    ],
)
def test_ranks_fill_one_host_after_the_other(n, hosts, per_host, ranks):
    assert placed(n, hosts, per_host) == ranks


@pytest.mark.parametrize("n, hosts, per_host", [(0, 4, None), (9, 4, 2), (1, 4, 0)])
def test_ranks_without_room_are_refused(n, hosts, per_host):
    with pytest.raises(ValueError, match=r"no room|at least"):
        placed(n, hosts, per_host)


def test_mpich_command():
    assert " ".join(job.mpich_command("/e/bin/mpiexec", "/t/ssh", [2, 1])) == (
        "/e/bin/mpiexec -launcher ssh -launcher-exec /t/ssh -iface bridge0 "
        "-hosts 10.77.0.1:2,10.77.0.2:1 -n 3"
    )


def test_open_mpi_command():
    assert " ".join(job.open_mpi_command("/e/bin/mpiexec", [2, 1])) == (
        "/e/bin/mpiexec --host 10.77.0.1:2,10.77.0.2:1 -n 3 "
        "--map-by slot --bind-to none"
    )


@pytest.mark.parametrize("open_mpi", [False, True])
def test_the_users_environment_comes_first_but_for_the_path(open_mpi):
    user_variables = {
        "PATH": "/bin",
        "FI_PROVIDER": "mine",
        "OMPI_MCA_btl": "mine",
        "A": "b",
    }
    variables = job.environment(open_mpi, user_variables)
    assert variables["PATH"].split(os.pathsep) == [
        os.path.dirname(sys.executable),
        "/bin",
    ]
    assert variables["A"] == "b"
    assert variables["FI_PROVIDER"] == variables["OMPI_MCA_btl"] == "mine"


def test_the_stand_in_for_ssh_finds_the_host(tmp_path):
    ssh, ip = tmp_path / "ssh", tmp_path / "ip"
    ssh.write_text(job.SSH_SCRIPT.replace("LAB", "lab"))
    ip.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    ip.chmod(0o700)
    for number in (0, 254, 255, 999):
        said = subprocess.run(
            [
                "sh",
                ssh,
                "-x",
                "-q",
                names.address(number),
                "prog",
                "-x",
                "$A",
                "'b  c'",
            ],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        start = f"netns|exec|isthmus-lab-{number}|unshare|--uts|sh|-c|"
        assert said.startswith(start)
        assert f"hostname lab-{number}\n" in said
        assert said.endswith("prog -x $A 'b  c'|")


def test_links_are_shaped_both_ways():
    assert links.shape("eth0", 50_000_000) == (
        "qdisc add dev eth0 root tbf rate 50000000bit burst 64kb limit 4mb"
    )


@pytest.mark.parametrize("hosts", [0, -1, names.MAX_HOSTS + 1])
def test_a_lab_has_some_hosts_but_not_too_many(hosts):
    with pytest.raises(ValueError, match="hosts"):
        Lab(hosts)


def test_a_slow_host_must_be_one_of_them():
    assert Lab(3, "2mbit", slow={2: "1mbit"}).rates == [2_000_000] * 2 + [1_000_000]
    with pytest.raises(ValueError, match="no host 3: they are 0 to 2"):
        Lab(3, slow={3: "1mbit"})


def test_labs_have_different_names():
    assert Lab(1).name != Lab(1).name


@pytest.mark.skipif(sys.platform != "linux", reason="the lock is Linux's")
def test_a_name_is_held_by_one_at_a_time():
    with (
        hold("testheld"),
        pytest.raises(LabError, match="belongs to a process that runs"),
    ):
        hold("testheld")
    hold("testheld").close()


def test_a_missing_tool_is_named(monkeypatch):
    monkeypatch.setattr(tools.sys, "platform", "linux")
    monkeypatch.setattr(tools.shutil, "which", lambda tool: tool != "tc" or None)
    assert tools.missing() == "a lab needs the command tc (package iproute2)"


def test_a_missing_right_is_named(monkeypatch):
    monkeypatch.setattr(tools.sys, "platform", "linux")
    monkeypatch.setattr(tools.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(tools.os, "geteuid", lambda: 1000)
    assert tools.missing() == "a lab needs root; without it: isthmus lab shell"


def test_a_missing_feature_is_named(monkeypatch):
    def refuse(command, text=""):
        if "bridge" in command:
            raise LabError("Unknown device type")
        return ""

    monkeypatch.setattr(tools.sys, "platform", "linux")
    monkeypatch.setattr(tools.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(tools.os, "geteuid", lambda: 0)
    monkeypatch.setattr(tools, "run", refuse)
    said = "a lab needs bridges, which cannot be had here (Unknown device type)"
    assert tools.missing() == said


def test_what_a_tool_said_is_the_error():
    with pytest.raises(LabError, match=r"^sh -c echo no >&2; exit 3: no$"):
        tools.run(["sh", "-c", "echo no >&2; exit 3"])
    with pytest.raises(LabError, match="no command"):
        tools.run(["isthmus-no-such-tool"])


def test_a_process_that_ends_is_gone_when_it_shows_no_environment():
    """A process with much memory ends slowly, and is on its host meanwhile."""
    program = "much = b'x' * 10**8; print(flush=True); input()"
    command = [sys.executable, "-c", program]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipe) as process:
        process.stdout.readline()
        assert spaces.environment(process.pid) != []
        process.kill()
        while spaces.environment(process.pid):
            pass
        assert not Path(f"/proc/{process.pid}/ns/net").exists()
