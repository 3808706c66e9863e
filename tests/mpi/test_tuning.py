"""A tuning file on a communicator, and measuring for one."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from groups import expected, pair, same, values
from isthmus.bench import crossovers, tune
from isthmus.choose.choose import NETWORK
from isthmus.choose.estimate import CHANGING_PARTNERS_RATIO
from isthmus.choose.tuning import MessageCosts, Origin, Tuning, place, written
from isthmus.mpi.buffers import on_devices
from isthmus.mpi.context import context, inter as context_inter, intra as context_intra
from isthmus.mpi.context.context import context_of
from isthmus.mpi.context.inter import InterContext
from isthmus.mpi.context.intra import IntraContext
from isthmus.mpi.costs import links
from isthmus.mpi.costs.tuning import library_and_host, using
from support import agree, forms

pytestmark = pytest.mark.mpi(3)

MACHINE = MessageCosts(3e-6, 2e-9, 1e-9, small=16, ring=1 << 12)


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
    recv = np.empty(3 * 5000, "u1")
    ours.Allgather(np.full(5000, comm.rank, "u1"), recv)
    found = context_of(ours, IntraContext)
    agree(comm, found.machine == MACHINE and found.small == 16)
    agree(comm, bool((recv == np.repeat(np.arange(3), 5000)).all()))
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
        file.write_text(file.read_text().replace("alpha = ", "alpha = -"))
    ours = isthmus.Intracomm(comm.Dup())
    said = ""
    for _ in range(2):
        try:
            ours.allgather(comm.rank)
        except ValueError as error:
            said = str(error)
    agree(comm, said.endswith("inside: alpha: -3e-06 is negative"), said)
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
    shared = partial(replace, sharing=2, changing=CHANGING_PARTNERS_RATIO)
    agree(comm, found.machine == shared(NETWORK))
    list(found.measure())
    agree(comm, found.machine == shared(MACHINE))
    agree(comm, (found.cut > 0) == (MPI.get_vendor()[0] == "Open MPI"))
    groups.free()


def test_on_a_network_a_giant_block_enters_where_others_send(comm, monkeypatch):
    """Ranks first ask for a summary of their group, and for its sizes only then."""
    monkeypatch.setattr(context, "node_ranks", lambda comm, per_node: [comm.rank])
    groups, origin = pair(comm, 2), Origin("", "", "", "", 3)
    with using(Tuning(origin, between=MACHINE)):
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
    monkeypatch.setattr(crossovers, "MAX_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(links, "SAMPLED_BYTES", (1, 1 << 14))
    told = []
    tune.measure(0.001, told.append)
    *steps, result = told
    if comm.rank == 0:
        machine = result.tuning.inside
        assert result.tuning.between is None
        assert 1e-8 < machine.alpha < 10 and 0 < machine.beta < 1e-3
        assert machine.gamma >= machine.beta / 3
        assert 0 <= machine.message <= machine.alpha
        assert 3 * 64 <= machine.small <= 3 * 2048 and 64 <= machine.ring <= 2048
        assert len(result.outcomes) == 9
        parts = [part for _, part in steps]
        assert parts == sorted(parts) and len(parts) == 10
