"""The case of the comparison: a stencil of 3 × 3 points with weights of its own, from
strips of rows to strips of columns, so that every rank needs something of every other.

`python grids.py SIDE scrip FILE` writes the weights for OASIS3-MCT, `… yac FILE` those
for YAC.
"""

import sys

import numpy as np
from scipy.io import netcdf_file
from scipy.sparse import csr_matrix


def entries(side, points):
    """The columns of some rows, ascending, and their weights: nine of each."""
    i, j = np.divmod(points, side)
    step = np.array([-1, 0, 1])
    columns = (i[:, None, None] + step[:, None]) % side * side
    columns = (columns + (j[:, None, None] + step) % side).reshape(-1, 9)
    columns.sort(axis=1)
    weights = np.cos(points[:, None] * 0.37 + columns * 0.11) + 1.5
    return columns, weights / weights.sum(axis=1, keepdims=True)


def field(points):
    return np.sin(points * 0.001) + points * 1e-6


def strip(side, rank, ranks, of_columns):
    """The points of a rank, row by row."""
    mine = np.arange(side * rank // ranks, side * (rank + 1) // ranks)
    whole = np.arange(side)
    rows, columns = (whole, mine) if of_columns else (mine, whole)
    return (rows[:, None] * side + columns).ravel()


def expected(side):
    """The remapped field, by scipy in one process."""
    points = np.arange(side * side)
    columns, weights = entries(side, points)
    offsets = np.arange(0, columns.size + 1, 9)
    matrix = csr_matrix((weights.ravel(), columns.ravel(), offsets), (side**2, side**2))
    return matrix @ field(points)


def write(side, kind, path):
    """The weights as a file of SCRIP, or of YAC."""
    columns, weights = entries(side, np.arange(side * side))
    row = np.repeat(np.arange(side * side), 9)
    with netcdf_file(path, "w", version=2) as file:
        sizes = {"num_links": columns.size, "num_wgts": 1}
        if kind == "scrip":
            sizes |= {"src_grid_size": side**2, "dst_grid_size": side**2}
        else:
            sizes |= {"num_src_fields": 1, "max_loc_str_len": 10}
        for name, size in sizes.items():
            file.createDimension(name, size)
        for name, x in (("src_address", columns.ravel()), ("dst_address", row)):
            file.createVariable(name, "i4", ("num_links",))[:] = x + 1
        links = "num_links", "num_wgts"
        file.createVariable("remap_matrix", "f8", links)[:, 0] = weights.ravel()
        if kind == "yac":
            file.version = "yac weight file 1.0"
            file.src_grid_name, file.dst_grid_name = "sourcegrid", "targetgrid"
            file.contains_links, file.contains_fixed_dst = "TRUE", "FALSE"
            one = ("num_src_fields",)
            file.createVariable("num_links_per_src_field", "i4", one)[:] = columns.size
            word = np.array([*"CORNER".ljust(10, "\0")], "S1")
            length = "max_loc_str_len"
            file.createVariable("src_locations", "S1", (*one, length))[0] = word
            file.createVariable("dst_location", "S1", (length,))[:] = word


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2], sys.argv[3])
