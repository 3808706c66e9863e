"""Layouts of further packages' arrays, tested with the packages themselves."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus import Layout, Replicate, Shard, adapters


@pytest.fixture(scope="module")
def process_group():
    """A rank of a torch group of four absent processes: enough for a mesh."""
    torch = pytest.importorskip("torch")
    store = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    torch.distributed.init_process_group(
        "fake", rank=0, world_size=4, store=store.FakeStore()
    )
    yield torch
    torch.distributed.destroy_process_group()


def test_a_dtensor_becomes_a_layout_and_comes_back(process_group):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import (
        Partial,
        Replicate as TorchReplicate,
        Shard as TorchShard,
        zeros,
    )

    mesh = init_device_mesh("cpu", (2, 2))
    for there, here in (
        ([TorchShard(0), TorchReplicate()], [Shard(0), Replicate()]),
        ([TorchShard(1), TorchShard(0)], [Shard(1), Shard(0)]),
        ([TorchShard(1), TorchShard(1)], [Shard(1), Shard(1)]),
    ):
        tensor = zeros(5, 7, device_mesh=mesh, placements=there)
        layout = adapters.layout_of_dtensor(tensor)
        assert layout == Layout.sharded((5, 7), (2, 2), here)
        assert layout.local_shape(0) == tuple(tensor.to_local().shape)
        assert adapters.placements_of(layout) == ((2, 2), there)
    partial = zeros(5, 7, device_mesh=mesh, placements=[TorchShard(0), Partial()])
    with pytest.raises(ValueError, match="has no layout"):
        adapters.layout_of_dtensor(partial)


def test_equal_blocks_are_shards_and_others_are_not(process_group):
    from torch.distributed.tensor import Shard as TorchShard

    blocks = Layout.blocks((6, 4), (3, 2))
    assert adapters.placements_of(blocks) == ((3, 2), [TorchShard(0), TorchShard(1)])
    for layout in (
        Layout.blocks((7, 4), (3, 2)),
        Layout.cyclic((6, 4), (3, 2), (1, 1)),
        Layout.indices(6, [1, 2]),
    ):
        with pytest.raises(ValueError, match="cannot be said in placements"):
            adapters.placements_of(layout)


@pytest.mark.parametrize("ranks", [1, 2, 6, 8])
def test_chunks_of_dask_are_dealt_out(ranks):
    dask = pytest.importorskip("dask.array")
    whole = np.arange(70.0).reshape(7, 10)
    array = dask.from_array(whole, chunks=(3, 5))
    blocks = [b.compute() for b in array.blocks.ravel()]
    for rank in range(ranks):
        layout = adapters.layout_of_chunks(array.chunks, rank, ranks)
        mine = [*blocks[rank::ranks]] or [np.empty(0)]
        wanted = np.concatenate([x.ravel() for x in mine])
        assert (whole[layout.local()].ravel() == wanted).all()


def test_a_part_of_a_data_array_keeps_dimensions_and_coordinates():
    xarray = pytest.importorskip("xarray")
    coords = {"lat": np.linspace(-90, 90, 6), "lon": np.arange(4) * 90.0}
    whole = xarray.DataArray(np.arange(24.0).reshape(6, 4), coords, ("lat", "lon"))
    for layout in (
        Layout.blocks((6, 4), (2, 2)),
        Layout.cyclic((6, 4), (2, 2), (1, 1)),
    ):
        for rank in range(4):
            part = adapters.local_part(whole, layout, rank)
            assert (part.values == whole.values[layout.local(rank)]).all()
            empty = adapters.local_array(("lat", "lon"), coords, layout, rank)
            empty.values[...] = part.values
            assert empty.identical(part) and empty.values.flags.writeable
    points = Layout.indices((6, 4), [3, 5])
    with pytest.raises(ValueError, match="no axes of coordinates"):
        adapters.local_part(whole, points, 0)


def test_nothing_is_imported_that_was_not_passed():
    import subprocess
    import sys

    code = (
        "import sys, isthmus.adapters; "
        "assert not {'torch', 'dask', 'xarray'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
