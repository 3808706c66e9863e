"""Files of weights, read in parts, since a file may not fit the memory of a rank.

ESMF and xESMF write the variables `row`, `col` and `S`; SCRIP and CDO write
`dst_address`, `src_address` and `remap_matrix`. Indices count from 1. The first column
of a `remap_matrix` has the weights of values, further columns those of gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: the names of rows, columns and values in the files of each family of programs
ENTRY_VARIABLES = (("row", "col", "S"), ("dst_address", "src_address", "remap_matrix"))
#: the names of the dimensions of the target's grid and of the source's
GRID_DIMENSIONS = (("n_b", "n_a"), ("dst_grid_size", "src_grid_size"))


def read_part(
    path: str, shape: tuple[int, int], part: int, parts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows, columns and values of a part of a file, for a matrix of a shape."""
    try:
        from netCDF4 import Dataset
    except ImportError as error:
        raise ImportError(
            "to read weights from a file needs netCDF4: pip install isthmus[remap]"
        ) from error
    with Dataset(path) as file:
        file.set_auto_mask(False)
        variables: dict[str, Any] = file.variables
        names = next(
            (x for x in ENTRY_VARIABLES if all(k in variables for k in x)), None
        )
        if names is None:
            wanted = " or ".join(", ".join(x) for x in ENTRY_VARIABLES)
            raise ValueError(f"{path} has no weights: it must have {wanted}")
        _check_sizes(path, file.dimensions, shape)
        row, column, value = (variables[k] for k in names)
        counts = {len(x) for x in (row, column, value)}
        if len(counts) > 1:
            raise ValueError(f"{path}: {', '.join(names)} have different lengths")
        (n,) = counts
        low, high = (n * k // parts for k in (part, part + 1))
        values = value[low:high]
        if values.ndim == 2:
            if values.shape[1] > 1 and values[:, 1:].any():
                raise ValueError(
                    f"{path} has {values.shape[1]} weights a link, of second order: "
                    "only weights of values can be used, not those of gradients"
                )
            values = values[:, 0]
        first_index = 1  # as in Fortran
        return (
            row[low:high].astype(np.int64) - first_index,
            column[low:high].astype(np.int64) - first_index,
            np.ascontiguousarray(values, np.float64),
        )


def _check_sizes(path: str, dimensions: Any, shape: tuple[int, int]) -> None:
    """Refuse a file whose grids differ from the layouts."""
    for names in GRID_DIMENSIONS:
        if all(name in dimensions for name in names):
            sizes = tuple(len(dimensions[name]) for name in names)
            if sizes != shape:
                raise ValueError(
                    f"{path} is for {sizes[1]} points of a source and {sizes[0]} of a "
                    f"target, but the layouts have {shape[1]} and {shape[0]}"
                )
