"""A tuning file on a communicator, and measuring for one."""

from __future__ import annotations

import os

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import expected, pair, same, values
from isthmus.bench import predictions, tune
from isthmus.choose.tuning import NETWORK, Origin, Tuning, place, written
from isthmus.cost.placement import on_nodes
from isthmus.mpi.buffers import on_devices
from isthmus.mpi.context import context, inter as context_inter, intra as context_intra
from isthmus.mpi.context.context import context_of
from isthmus.mpi.context.inter import InterContext
from isthmus.mpi.context.intra import IntraContext
from isthmus.mpi.costs import links
from isthmus.mpi.costs.tuning import library_and_host, using
from measured import measured
from support import agree, forms

pytestmark = pytest.mark.mpi(3)

MACHINE = measured(3e-6, 2e-9, together=1e-9)


@pytest.fixture
def file(comm, tmp_path, monkeypatch):
    """The user's own file; only rank 0 knows where it is."""
    monkeypatch.delenv("ISTHMUS_TUNING")
    other = tmp_path / str(comm.rank)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(other))
    path = place(*library_and_host())
    if comm.rank == 0:
        path.parent.mkdir(parents=True)
        origin = Origin(library_and_host()[0], library_and_host()[1], "", "", 3)
        path.write_text(written(Tuning(origin, MACHINE)))
    comm.Barrier()
    return path


def refuse(comm):
    raise AssertionError("measured although there is a file")


def test_all_ranks_take_what_rank_0_reads(comm, file, monkeypatch):
    monkeypatch.setattr(context_intra, "probe", refuse)
    ours = isthmus.Intracomm(comm.Dup())
    recv = np.empty(3 << 16, "u1")
    ours.Allgather(np.full(1 << 16, comm.rank, "u1"), recv)
    found = context_of(ours, IntraContext)
    agree(comm, found.machine == MACHINE)
    agree(comm, bool((recv == np.repeat(np.arange(3), 1 << 16)).all()))
    ours.Free()


def test_both_groups_take_the_same(comm, file):
    groups = pair(comm, 2)
    recv = np.empty(len(groups.there), "i8")
    groups.ours.Allgather(np.array([comm.rank]), recv)
    agree(comm, context_of(groups.ours, InterContext).machine == MACHINE)
    agree(comm, recv.tolist() == list(groups.there))
    groups.free()


def test_a_broken_file_is_an_error_on_every_rank(comm, file):
    if comm.rank == 0:
        file.write_text(file.read_text().replace('"3 us"', '"-3 us"'))
    ours = isthmus.Intracomm(comm.Dup())
    said = ""
    for _ in range(2):
        try:
            ours.allgather(comm.rank)
        except ValueError as error:
            said = str(error)
    agree(comm, said.endswith("level 1: latency: '-3 us' is negative"), said)
    agree(comm, said == comm.bcast(said))
    if comm.rank == 0:
        file.unlink()
    comm.Barrier()
    agree(comm, ours.allgather(comm.rank) == [0, 1, 2])
    ours.Free()


def test_without_a_file_messages_are_measured(comm, monkeypatch):
    assert os.environ["ISTHMUS_TUNING"] == "none"
    monkeypatch.setattr(context_intra, "probe", lambda comm, nodes: MACHINE)
    ours = isthmus.Intracomm(comm.Dup())
    agree(comm, context_of(ours, IntraContext).tuned is None)
    agree(comm, context_of(ours, IntraContext).machine == MACHINE)
    ours.Free()


def test_several_nodes_are_known_to_all_that_asks(comm, monkeypatch):
    here = [1, 2] if comm.rank else [0]
    monkeypatch.setattr(context, "node_ranks", lambda comm, per_node: here)

    def probing(comm, nodes):
        yield
        return MACHINE

    monkeypatch.setattr(context_inter, "probe_in_steps", probing)
    monkeypatch.setattr(on_devices, "present", lambda: False)
    groups = pair(comm, 2)
    found = context_of(groups.ours, InterContext)
    agree(comm, found.machine == on_nodes(NETWORK, found.nodes))
    agree(comm, found.machine.sharing == 2 and found.machine.changing > 1)
    list(found.measure())
    agree(comm, found.machine == MACHINE)
    agree(comm, (found.cut > 0) == (MPI.get_vendor()[0] == "Open MPI"))
    groups.free()


def test_on_a_network_a_giant_block_enters_where_others_send(comm, monkeypatch):
    """Ranks first ask for a summary of their group, and for its sizes only then."""
    monkeypatch.setattr(context, "node_ranks", lambda comm, per_node: [comm.rank])
    groups, origin = pair(comm, 2), Origin("", "", "", "", 3, 3)
    with using(Tuning(origin, measured(3e-6, 2e-9, changing=NETWORK.changing))):
        for n, is_giant in ((1 << 17, True), (16, False)):
            counts = [n, 0, n]
            remote = [counts[r] for r in groups.there]
            own, received = values(comm.rank, counts[comm.rank]), np.zeros(sum(remote))
            arguments = own, [received, remote]
            for form in forms(groups.ours, "Allgatherv", arguments, "auto"):
                right = same(received, expected(groups, counts))
                agree(comm, right, form)
                is_taken = groups.ours._last_algorithm() == "moving_entry"
                agree(comm, is_taken == is_giant, form)
                received[:] = 0
    groups.free()


def test_measuring_gives_a_tuning(comm, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(links, "TUNE_MESSAGE_BYTES", 1 << 14)
    told = []
    tune.measure(0.001, told.append)
    *steps, result = told
    if comm.rank == 0:
        machine = result.tuning.machine
        (level,) = machine.levels
        assert 1e-8 < level.alpha < 10 and 0 < level.beta < 1e-3
        assert level.together >= level.beta / 3 * (1 - 1e-9)
        assert 0 <= level.gap <= level.alpha
        assert machine.library.slowdown > 0
        assert len(result.outcomes) == 9
        parts = [part for _, part in steps]
        assert parts == sorted(parts) and len(parts) == 10
