"""Arrays of other packages as layouts: torch's DTensor, dask, xarray.

Each package is imported only when an array of the package is passed, so that isthmus
needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np

from .redistribution.layouts import Layout, Replicate, Shard

# -- torch


def layout_of_dtensor(tensor: Any) -> Layout:
    """The layout of a DTensor on its device mesh.

    The ranks of the mesh must be the ranks of the communicator, row by row.
    """
    mesh = tensor.device_mesh
    mesh_ranks = mesh.mesh.flatten().tolist()
    if mesh_ranks != [*range(len(mesh_ranks))]:
        raise ValueError(
            f"the ranks of the device mesh are {mesh_ranks}, not 0, 1, 2, …"
        )
    placements: list[Shard | Replicate] = []
    for placement in tensor.placements:
        if placement.is_shard():
            placements.append(Shard(placement.dim))
        elif placement.is_replicate():
            placements.append(Replicate())
        else:
            raise ValueError(
                f"{placement} has no layout: redistribute the DTensor to shards and "
                "replicas, "
                "or add its parts by combine=MPI.SUM"
            )
    return Layout.sharded(tuple(tensor.shape), tuple(mesh.shape), placements)


def placements_of(layout: Layout) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of a device mesh and torch's placements for a layout by `sharded`, or
    by equal `blocks`."""
    torch = import_module("torch.distributed.tensor")
    is_even = all(n % k == 0 for n, k in zip(layout.shape, layout.mesh, strict=False))
    is_block = bool(layout.splits) and not any(split.block for split in layout.splits)
    is_chunk = is_block and all(split.chunks for split in layout.splits)
    if not (is_chunk or (is_block and is_even)):
        raise ValueError(f"{layout} cannot be said in placements: chunks only can")
    cut_axis = {k: axis for axis, ks in enumerate(layout.cut_by) for k in ks}
    mesh_axes = range(len(layout.mesh))
    return layout.mesh, [
        torch.Shard(cut_axis[k]) if k in cut_axis else torch.Replicate()
        for k in mesh_axes
    ]


# -- dask


def layout_of_chunks(chunks: Sequence[Sequence[int]], rank: int, ranks: int) -> Layout:
    """The layout of a dask array whose chunks are dealt to the ranks in turn.

    The local array of a rank with several chunks is flat.
    """
    edges = [[0, *accumulate(int(n) for n in axis)] for axis in chunks]
    axes = [[slice(a, b) for a, b in pairwise(ends)] for ends in edges]
    own_chunks = [*product(*axes)][rank::ranks]
    shape = tuple(ends[-1] for ends in edges)
    if not own_chunks:
        return Layout.slices(shape, tuple(slice(0, 0) for _ in shape))
    return Layout.slices(shape, own_chunks[0] if len(own_chunks) == 1 else own_chunks)


# -- xarray


def local_part(array: Any, layout: Layout, rank: int) -> Any:
    """The part of a DataArray that a rank holds, with dimensions and coordinates."""
    indexers = _indexers(layout, rank)
    return array.isel(dict(zip(array.dims, indexers, strict=True)))


def local_array(
    dims: Sequence[str],
    coords: Mapping[str, Any],
    layout: Layout,
    rank: int,
    dtype: Any = np.float64,
) -> Any:
    """An empty DataArray for the part that a rank receives, with all dimensions of the
    array and the rank's part of the coordinates.

    Redistribute into its `values`.
    """
    indexers = dict(zip(dims, _indexers(layout, rank), strict=True))
    own_coords = {
        name: np.asarray(values)[indexers[name]] for name, values in coords.items()
    }
    shape = layout.local_shape(rank if layout.is_regular else None)
    xarray = import_module("xarray")
    return xarray.DataArray(np.empty(shape, dtype), own_coords, tuple(dims))


def _indexers(layout: Layout, rank: int) -> Iterator[Any]:
    """The indices of a rank's part, axis by axis, as xarray takes indices.

    Scattered points are refused, since no axis would be left for coordinates.
    """
    index = layout.local(rank if layout.is_regular else None)
    lists = [axis for axis in index if not isinstance(axis, slice)]
    if len(index) > 1 and any(np.ndim(points) == 1 for points in lists):
        raise ValueError("a layout of scattered points has no axes of coordinates")
    return (axis if isinstance(axis, slice) else np.ravel(axis) for axis in index)
