"""Arrays of other packages as layouts: torch's DTensor, dask, xarray.

None of these packages is imported here: what is passed brings it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np

from .redistribution.layouts import Layout, Replicate, Shard

# -- torch


def layout_of_dtensor(tensor: Any) -> Layout:
    """How a DTensor lies on its device mesh, whose ranks must be those of the
    communicator, row by row."""
    mesh = tensor.device_mesh
    numbers = mesh.mesh.flatten().tolist()
    if numbers != [*range(len(numbers))]:
        raise ValueError(f"the ranks of the device mesh are {numbers}, not 0, 1, 2, …")
    placements: list[Shard | Replicate] = []
    for x in tensor.placements:
        if x.is_shard():
            placements.append(Shard(x.dim))
        elif x.is_replicate():
            placements.append(Replicate())
        else:
            raise ValueError(
                f"{x} has no layout: redistribute the DTensor to shards and replicas, "
                "or add its parts by combine=MPI.SUM"
            )
    return Layout.sharded(tuple(tensor.shape), tuple(mesh.shape), placements)


def placements_of(layout: Layout) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of a device mesh and torch's placements for a layout by `sharded`, or
    by `blocks` that are all equal."""
    torch = import_module("torch.distributed.tensor")
    is_even = all(n % k == 0 for n, k in zip(layout.shape, layout.mesh, strict=False))
    is_block = bool(layout.splits) and not any(x.block for x in layout.splits)
    is_chunk = is_block and all(x.chunks for x in layout.splits)
    if not (is_chunk or (is_block and is_even)):
        raise ValueError(f"{layout} cannot be said in placements: chunks only can")
    placed = {k: axis for axis, ks in enumerate(layout.cut_by) for k in ks}
    axes = range(len(layout.mesh))
    return layout.mesh, [
        torch.Shard(placed[k]) if k in placed else torch.Replicate() for k in axes
    ]


# -- dask


def layout_of_chunks(chunks: Sequence[Sequence[int]], rank: int, ranks: int) -> Layout:
    """How a dask array of such `chunks` lies on ranks that have one chunk after the
    other in turn; of several chunks the local array is flat."""
    ends = [[0, *accumulate(int(n) for n in axis)] for axis in chunks]
    axes = [[slice(a, b) for a, b in pairwise(x)] for x in ends]
    mine = [*product(*axes)][rank::ranks]
    shape = tuple(x[-1] for x in ends)
    if not mine:
        return Layout.slices(shape, tuple(slice(0, 0) for _ in shape))
    return Layout.slices(shape, mine[0] if len(mine) == 1 else mine)


# -- xarray


def local_part(array: Any, layout: Layout, rank: int) -> Any:
    """What a rank has of a whole DataArray, with its dimensions and coordinates."""
    index = layout.local(rank if layout.is_regular else None)
    _check_axes(index)
    axes = (x if isinstance(x, slice) else np.ravel(x) for x in index)
    return array.isel(dict(zip(array.dims, axes, strict=True)))


def local_array(
    dims: Sequence[str],
    coords: Mapping[str, Any],
    layout: Layout,
    rank: int,
    dtype: Any = np.float64,
) -> Any:
    """An empty DataArray for what a rank gets: the dimensions of the whole, and of its
    coordinates the rank's part. Move into its `values`."""
    index = layout.local(rank if layout.is_regular else None)
    _check_axes(index)
    axes = {
        name: x if isinstance(x, slice) else np.ravel(x)
        for name, x in zip(dims, index, strict=True)
    }
    own = {name: np.asarray(x)[axes[name]] for name, x in coords.items()}
    shape = layout.local_shape(rank if layout.is_regular else None)
    xarray = import_module("xarray")
    return xarray.DataArray(np.empty(shape, dtype), own, tuple(dims))


def _check_axes(index: tuple[Any, ...]) -> None:
    """Refuse points, of which no axis is left to have coordinates."""
    if len(index) > 1 and any(
        np.ndim(x) == 1 for x in index if not isinstance(x, slice)
    ):
        raise ValueError("a layout of scattered points has no axes of coordinates")
