"""Traces for SimGrid, and SimGrid's times against the alpha-beta model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import isthmus
from isthmus.cost.machine import AlphaBeta
from isthmus.export import simgrid
from isthmus.schedules.ir import Recv, Reduce, Round, Send, Span
from isthmus.schedules.schedule import Schedule
from isthmus.verify.contracts import Contract

FILE = Path(__file__).parent / "golden" / "simgrid.json"
GOLDEN = json.loads(FILE.read_text())
CASES = GOLDEN["cases"]


def chain(n, m):
    """A value goes from rank to rank, and every rank adds its own."""
    data = (Span("tmp", 0, m),)
    reduce = (Reduce(Span("tmp", 0, m), Span("recv", 0, m)),)

    def rounds(r):
        for k in range(n - 1):
            if k == r - 1:
                yield Round((Recv(r - 1, data),), reduce)
            else:
                yield Round((Send(r + 1, data),) if k == r else ())

    each = tuple(range(r, r + 1) for r in range(n))
    nothing = Contract(lambda r: {}, lambda r: {})
    return Schedule("chain", "", lambda: nothing, rounds, each)


def make(case):
    """The schedule and the model of a case."""
    model = AlphaBeta(case["alpha"], case["beta"], case.get("gamma", 0.0), case["unit"])
    if case["collective"] == "chain":
        return chain(**case["sizes"]), model
    names = case["collective"], case["algorithm"]
    return isthmus.schedule(*names, **case["sizes"]), model


def label(case):
    return f"{case['algorithm'] or case['collective']}-{case['time']}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_alpha_beta_is_what_simgrid_says(case):
    """Equal to the last digit printed by SimGrid.

    Messages at once in a direction share the link in SimGrid and queue at the port in
    isthmus: start-ups, all but the time of the envelope, then pass at once.
    """
    example, model = make(case)
    saved = case["start_ups_at_once"] * (
        model.alpha - simgrid.ENVELOPE_BYTES * model.beta
    )
    assert f"{example.simulate(model).time - saved:.6f}" == case["time"]


def simgrid_says(case, folder):
    """The time printed by SimGrid."""
    example, model = make(case)
    for name, text in {
        "trace": simgrid.trace(example, model.unit, case["turns"]),
        "list": "trace\n",
        "platform.xml": simgrid.platform(model, example.n),
        "hosts": simgrid.hosts(example.n),
    }.items():
        (folder / name).write_text(text)
    command = GOLDEN["command"].format(n=example.n).split()
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60
    )
    match = re.search(r"Simulation time ([\d.]+)", done.stdout + done.stderr)
    return match[1] if match else done.stderr


@pytest.mark.skipif(not shutil.which("smpirun"), reason="SimGrid is not installed")
@pytest.mark.parametrize("case", CASES, ids=label)
def test_simgrid_still_says_so(case, tmp_path):
    assert simgrid_says(case, tmp_path) == case["time"]


def test_the_command_has_the_options_that_the_export_tells():
    assert " ".join(simgrid.SMPIRUN_OPTIONS) in GOLDEN["command"]


def test_a_trace_is_a_round_after_the_other():
    schedule = isthmus.schedule("allgatherv", "ring", counts=[3, 0, 5])
    text = simgrid.trace(schedule, unit=8)
    assert [x for x in text.splitlines() if x.startswith("0 ")] == [
        "0 init",
        "0 irecv 2 0 40",
        "0 isend 1 0 24",
        "0 waitall",
        "0 isend 1 0 40",
        "0 waitall",
        "0 finalize",
    ]


def test_turns_write_one_message_per_port_at_a_time():
    sizes = {"p": 4, "q": 2, "ka": 2, "kb": 4}
    schedule = isthmus.schedule("inter_allgather", "segmented+ring", **sizes)
    at_once, turned = simgrid.trace(schedule), simgrid.trace(schedule, turns=True)
    assert sorted(x for x in at_once.splitlines() if "wait" not in x) == sorted(
        x for x in turned.splitlines() if "wait" not in x
    )
    assert turned.count("waitall") > at_once.count("waitall")
    since = 0
    for line in turned.splitlines():
        since = since + 1 if "irecv" in line else 0 if "waitall" in line else since
        assert since <= 1


def test_a_reduction_is_a_computation():
    lines = simgrid.trace(chain(3, 10), unit=4).splitlines()
    assert [x for x in lines if "compute" in x] == ["1 compute 40", "2 compute 40"]


def test_the_platform_is_well_formed():
    text = simgrid.platform(AlphaBeta(1e-6, 1e-9, gamma=1e-10), 12)
    (cluster,) = ElementTree.fromstring(text)
    assert cluster.get("radical") == "0-11"
    assert float(cluster.get("bw").removesuffix("Bps")) == pytest.approx(1e9)
    assert float(cluster.get("speed").removesuffix("f")) == pytest.approx(1e10)
    latency = float(cluster.get("lat").removesuffix("s"))
    assert 2 * latency + 16e-9 == pytest.approx(1e-6)
    assert simgrid.hosts(2) == "rank0\nrank1\n"


@pytest.mark.parametrize(
    "alpha, beta, n", [(1e-9, 1e-9, 2), (1.0, 0.0, 2), (1.0, 0.01, 0)]
)
def test_a_machine_that_simgrid_cannot_be_is_refused(alpha, beta, n):
    with pytest.raises(ValueError, match="SimGrid needs"):
        simgrid.platform(AlphaBeta(alpha, beta), n)


def test_the_library_stage_has_no_trace():
    schedule = isthmus.schedule("allgatherv", "library", counts=[1, 2])
    with pytest.raises(ValueError, match="nobody knows"):
        simgrid.trace(schedule)


def remake():
    """Ask SimGrid again for all times, after an algorithm has changed."""
    with tempfile.TemporaryDirectory() as folder:
        cases = [x | {"time": simgrid_says(x, Path(folder))} for x in CASES]
    head = [
        f"  {json.dumps(k)}: {json.dumps(GOLDEN[k])}" for k in ("simgrid", "command")
    ]
    rows = ",\n".join(f"    {json.dumps(x)}" for x in cases)
    body = ",\n".join([*head, f'  "cases": [\n{rows}\n  ]'])
    FILE.write_text(f"{{\n{body}\n}}\n")


if __name__ == "__main__":
    remake()
