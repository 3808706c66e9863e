"""Arrays of torch, CuPy and JAX on a real GPU: see tests/gpu.py."""

from __future__ import annotations

import numpy as np
import pytest

from groups import pair
from isthmus import Intracomm, Layout, Redistribution
from standin import REAL

pytestmark = [
    pytest.mark.mpi(3),
    pytest.mark.skipif(not REAL, reason="needs a GPU: python tests/gpu.py"),
]


def _torch(module, x):
    return module.from_numpy(x.copy()).cuda()


def _cupy(module, x):
    return module.asarray(x)


def _jax(module, x):
    return module.numpy.asarray(x)


LIBRARIES = {"torch": _torch, "cupy": _cupy, "jax": _jax}


class Arrays:
    """A library's arrays on the GPU."""

    def __init__(self, name):
        self._name, self._module = name, pytest.importorskip(name)

    def put(self, x):
        """An array with these values; JAX has none of 64 bits."""
        return LIBRARIES[self._name](self._module, np.asarray(x, "f4"))

    def to_write(self, shape):
        """An array of zeros that can be received into; those of JAX cannot."""
        zeros = np.zeros(shape, "f4")
        return zeros if self._name == "jax" else self.put(zeros)


@pytest.fixture(params=LIBRARIES)
def gpu(request):
    """Each library that is there."""
    return Arrays(request.param)


def on_host(x):
    """The values of an array, wherever it is."""
    if hasattr(x, "get"):
        return x.get()
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


@pytest.mark.parametrize("n", [3, 100_000])
def test_collectives(comm, gpu, n):
    """Sums right after a kernel wrote what they send: the streams are waited for."""
    groups = pair(comm, 1)
    inter, here = groups.ours, comm.rank
    mine = gpu.put(np.full(n, 1.0 + here))
    for _ in range(5):
        mine = mine + 1  # a kernel that may still run when the call begins
    sums = sum(6.0 + r for r in groups.there)
    got = gpu.to_write(n)
    inter.Allreduce(mine, got)
    assert np.all(on_host(got) == sums)
    got = gpu.to_write(n * len(groups.there))
    inter.Allgather(mine, got)
    assert np.array_equal(on_host(got), np.repeat([6.0 + r for r in groups.there], n))
    request = inter.Ialltoall(
        gpu.put(np.full(len(groups.there), float(here))),
        recv := np.zeros(len(groups.there), "f4"),
    )
    request.Wait()
    assert np.array_equal(recv, list(groups.there))
    groups.free()


def test_inside_a_group(comm, gpu):
    ours = Intracomm(comm)
    got = gpu.to_write(7 * comm.size)
    ours.Allgather(gpu.put(np.full(7, 1.0 + comm.rank)), got)
    assert np.array_equal(on_host(got), np.repeat(1.0 + np.arange(comm.size), 7))


def test_redistribution(comm, gpu):
    """Rows to columns."""
    ours, shape = Intracomm(comm), (6, 9)
    rows = Layout.blocks(shape, grid=(comm.size, 1))
    columns = Layout.blocks(shape, grid=(1, comm.size))
    whole = np.arange(54, dtype="f4").reshape(shape)
    mine = gpu.put(whole[rows.local(comm.rank)])
    got = gpu.to_write(columns.local_shape(comm.rank))
    move = Redistribution(ours, source=rows, target=columns)
    move(mine, got)
    assert np.array_equal(on_host(got), whole[columns.local(comm.rank)])


def test_nobody_crashes(comm, gpu, monkeypatch):
    """A refusal is an error on every rank."""
    monkeypatch.setenv("ISTHMUS_DEVICE", "refuse")
    groups = pair(comm, 1)
    with pytest.raises(ValueError, match="device"):
        groups.ours.Allreduce(gpu.put(np.ones(3)), np.zeros(3, "f4"))
    groups.free()


def test_a_type_that_numpy_does_not_have(comm):
    torch = pytest.importorskip("torch")
    ours, n = Intracomm(comm), 6 * comm.size
    layout = Layout.blocks((n,), grid=(comm.size,))
    first = 6 * (comm.size - 1 - comm.rank)
    back = Layout.slices((n,), np.s_[first : first + 6])
    mine = torch.arange(6 * comm.rank, 6 * comm.rank + 6, device="cuda").bfloat16()
    got = torch.zeros(6, dtype=torch.bfloat16, device="cuda")
    Redistribution(ours, source=layout, target=back)(mine, got)
    assert got.float().cpu().tolist() == [float(x) for x in range(first, first + 6)]
