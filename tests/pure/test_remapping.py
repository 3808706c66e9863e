"""Weights of users, files of weights, and the pieces in which rows are multiplied."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix, random as random_matrix

from isthmus.redistribution.runs import spread
from isthmus.remapping import matrix as matrices
from isthmus.remapping.conservation import Integrals
from isthmus.remapping.matrix import (
    divided,
    multiply,
    multiply_present,
    pieces,
    repeated,
    row_sums,
    rows_of,
    rows_without_weights,
    without_columns,
)
from isthmus.remapping.sides import split, unpacked as unpacked_order
from isthmus.remapping.weights import Entries, ordered, read, unpacked

SHAPE = 3, 4
ROWS, COLUMNS = np.array([0, 2, 2]), np.array([1, 0, 3])
VALUES = np.array([0.5, 0.25, 0.75])


def triple(entries: Entries) -> list[tuple[int, int, float]]:
    lists = entries.row.tolist(), entries.column.tolist(), entries.value.tolist()
    return [*zip(*lists, strict=True)]


EXPECTED = [(0, 1, 0.5), (2, 0, 0.25), (2, 3, 0.75)]


@pytest.mark.parametrize(
    "weights",
    [
        (ROWS, COLUMNS, VALUES),
        [ROWS.tolist(), COLUMNS.tolist(), VALUES.tolist()],
        (ROWS.astype("u2"), COLUMNS.astype("i4"), VALUES.astype("f4")),
        csr_matrix((VALUES, (ROWS, COLUMNS)), SHAPE),
        csr_matrix((VALUES, (ROWS, COLUMNS)), SHAPE).tocsc(),
        # scipy adds entries that are there twice, so they are one
        coo_matrix(
            ([0.25, 0.5, 0.25, 0.25], ([2, 2, 0, 0], [0, 3, 1, 1])), SHAPE
        ).tocsr()
        + csr_matrix(([0.25], ([2], [3])), SHAPE),
    ],
    ids=["arrays", "lists", "short types", "csr", "csc", "sums"],
)
def test_weights_can_be_given_in_many_ways(weights):
    entries = ordered(read(weights, SHAPE, 0, 1), SHAPE[1])
    assert triple(entries) == EXPECTED


def test_a_rank_may_give_no_weights():
    assert len(read(None, SHAPE, 0, 1)) == 0
    assert len(read(([], [], []), SHAPE, 0, 1)) == 0
    assert len(ordered(unpacked([]), 4)) == 0


@pytest.mark.parametrize(
    "weights, error, words",
    [
        (([3], [0], [1.0]), ValueError, "row 3, but the target has points 0 to 2"),
        (([-1], [0], [1.0]), ValueError, "entry 0 .* row -1"),
        (([0], [4], [1.0]), ValueError, "column 4, but the source has points 0 to 3"),
        (([0], [0], [np.nan]), ValueError, "row 0, column 0 is nan"),
        (([0], [0], [np.inf]), ValueError, "row 0, column 0 is inf"),
        (([0], [0], [1j]), TypeError, "real numbers, not complex"),
        (([0.5], [0], [1.0]), TypeError, "rows of weights must be integers"),
        (([0], [0, 1], [1.0]), TypeError, r"not 3 of shapes \(1,\), \(2,\), \(1,\)"),
        (([0], [0]), TypeError, "not 2 of shapes"),
        (7, TypeError, "not int"),
        (csr_matrix((4, 3)), ValueError, "4 × 3, but the target has 3 points"),
    ],
)
def test_bad_weights_are_refused(weights, error, words):
    with pytest.raises(error, match=words):
        read(weights, SHAPE, 0, 1)


@pytest.mark.parametrize("columns", [4, 1 << 61], ids=["short keys", "long keys"])
def test_an_entry_that_is_there_twice_is_refused(columns):
    entries = Entries(np.array([2, 0, 2]), np.array([3, 1, 3]), np.ones(3))
    with pytest.raises(ValueError, match="row 2, column 3 was given twice"):
        ordered(entries, columns)
    once = entries.take(np.array([1, 2]))
    assert triple(ordered(once, columns)) == [(0, 1, 1.0), (2, 3, 1.0)]


def test_entries_travel_with_all_their_bits():
    value = np.array([-0.0, 5e-324, 1 / 3])
    entries = Entries(ROWS, COLUMNS, value)
    parts = entries.take(np.array([0])), entries.take(np.array([1, 2]))
    again = unpacked([x.packed() for x in parts])
    assert again.value.tobytes() == value.tobytes()
    assert triple(again) == triple(entries)


# -- files


def write_esmf(path, links, sizes=SHAPE):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, size in zip(("n_b", "n_a", "n_s"), (*sizes, len(links)), strict=True):
            file.createDimension(name, size)
        for name, kind, x in zip(
            ("row", "col", "S"),
            ("i4", "i4", "f8"),
            zip(*links, strict=True),
            strict=True,
        ):
            file.createVariable(name, kind, ("n_s",))[:] = np.array(x) + (kind == "i4")


def write_scrip(path, links, weights=1):
    netcdf = pytest.importorskip("netCDF4")
    row, column, value = (np.array(x) for x in zip(*links, strict=True))
    with netcdf.Dataset(path, "w") as file:
        sizes = {"dst_grid_size": 3, "src_grid_size": 4, "num_links": len(links)}
        for name, size in {**sizes, "num_wgts": weights}.items():
            file.createDimension(name, size)
        file.createVariable("dst_address", "i4", ("num_links",))[:] = row + 1
        file.createVariable("src_address", "i4", ("num_links",))[:] = column + 1
        matrix = file.createVariable("remap_matrix", "f8", ("num_links", "num_wgts"))
        matrix[:] = np.stack([value] + [np.zeros_like(value)] * (weights - 1), 1)
    return path


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("kind", ["esmf", "scrip", "scrip of three"])
def test_files_are_read_in_parts(tmp_path, kind, parts):
    path = tmp_path / "weights.nc"
    if kind == "esmf":
        write_esmf(path, EXPECTED)
    else:
        write_scrip(path, EXPECTED, 3 if "three" in kind else 1)
    parts_read = [read(path, SHAPE, k, parts) for k in range(parts)]
    assert [x for part in parts_read for x in triple(part)] == EXPECTED


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "weights.nc"
    write_esmf(path, EXPECTED, (7, 8))
    with pytest.raises(ValueError, match="for 8 points of a source and 7 of a target"):
        read(path, SHAPE, 0, 1)
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w"):
        pass
    with pytest.raises(ValueError, match=r"it must have row, col, S or dst_address"):
        read(path, SHAPE, 0, 1)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing.nc", SHAPE, 0, 1)
    write_scrip(path, EXPECTED, 3)
    with netcdf.Dataset(path, "a") as file:
        file["remap_matrix"][1, 2] = 0.5
    with pytest.raises(ValueError, match="of second order"):
        read(path, SHAPE, 0, 1)


# -- the rows of a rank


def test_rows_are_scipys():
    whole = random_matrix(30, 50, 0.2, random_state=1, format="csr")
    mine = np.array([4, 17, 5, 29, 0])
    entries = whole[np.sort(mine)].tocoo()
    row = np.sort(mine)[entries.row]
    places = np.array([int(np.flatnonzero(mine == r)[0]) for r in row])
    known = Entries(row, entries.col.astype(np.int64), entries.data)
    matrix, needed = rows_of(known, places, len(mine), 50)
    x = np.random.default_rng(1).random(50)
    assert (matrix @ x[needed] == (whole @ x)[mine]).all()
    assert needed.tolist() == np.unique(whole[mine].indices).tolist()
    sparse, again = rows_of(known, places, len(mine), 1 << 40)
    assert (sparse != matrix).nnz == 0 and (again == needed).all()


def test_few_columns_of_a_large_grid_are_numbered_by_sorting():
    column = np.array([1 << 40, 3, 1 << 40])
    known = Entries(
        np.zeros(3, np.int64), column[[1, 0]].repeat([1, 2])[:3], np.ones(3)
    )
    known = Entries(known.row[:2], np.array([3, 1 << 40]), known.value[:2])
    matrix, needed = rows_of(known, np.zeros(2, np.int64), 1, 1 << 41)
    assert needed.tolist() == [3, 1 << 40] and matrix.shape == (1, 2)


def test_points_that_are_there_twice_have_the_same_row():
    whole = random_matrix(3, 5, 0.5, random_state=1, format="csr")
    matrix = repeated(whole, np.array([0, 2]), np.array([1, 1]))
    assert (matrix[1] != whole[2]).nnz == 0
    assert repeated(whole, *np.empty((2, 0), int)) is whole


@pytest.mark.parametrize("entries", [10, 1 << 18], ids=["short", "long"])
@pytest.mark.parametrize("run", [5, 1 << 14], ids=["views", "copies"])
def test_pieces_are_all_rows_once_when_their_columns_are_there(
    monkeypatch, entries, run
):
    monkeypatch.setattr(matrices, "PIECE_ENTRIES", entries)
    monkeypatch.setattr(matrices, "LEAST_RUN_ENTRIES", run)
    numbers = np.random.default_rng(2)
    whole = random_matrix(200, 60, 0.05, random_state=2, format="csr")
    arrival = numbers.integers(0, 4, 60)
    x, y = numbers.random(60), np.full(200, np.nan)
    groups = pieces(whole, arrival, 4)
    assert len(groups) == 4
    empty = rows_without_weights(whole).indices
    y[empty] = 0
    assert len(empty)
    for k, group in enumerate(groups):
        there = np.where(arrival <= k, x, np.nan)
        for piece in group:
            out = np.empty(piece.runs.total)
            multiply(piece.matrix, there, out)
            assert np.isnan(y[piece.runs.indices]).all()
            y[piece.runs.indices] = out
    assert (y == whole @ x).all()


def test_what_is_missing_is_made_up_for():
    matrix = csr_matrix(np.array([[0.5, 0.5, 0], [0.2, 0, 0.8], [0, 1, 0], [0, 0, 0]]))
    columns, out = np.array([3.0, np.nan, 5.0]), np.empty(4)
    multiply_present(matrix, row_sums(matrix), columns, out)
    assert out[:2].tolist() == [3.0, 0.2 * 3 + 0.8 * 5]
    assert np.isnan(out[2]) and out[3] == 0


def test_masked_columns_leave_their_rows():
    matrix = csr_matrix(np.arange(12.0).reshape(3, 4))
    left = without_columns(matrix, np.array([False, True, False, True]))
    assert (left.toarray() == matrix.toarray() * [1, 0, 1, 0]).all()
    assert row_sums(divided(left, np.array([2.0, 10, 18]))).tolist() == [1, 1, 1]


def test_a_product_becomes_the_type_of_its_field():
    matrix = csr_matrix(np.array([[1 / 3, 1 / 3]]))
    out = np.empty(1, np.float32)
    multiply(matrix, np.ones(2), out)
    assert out[0] == np.float32(2 / 3)


def test_integrals_say_how_far_they_are_apart():
    assert str(Integrals(4.0, 5.0)) == "source 4, target 5, relative difference 2.5e-01"
    assert Integrals(0.0, 0.0).error == 0


# -- rows that sources multiply


def test_rows_are_multiplied_where_all_their_columns_lie():
    """A target asks three sources, and is itself one of the three."""
    numbers = np.random.default_rng(9)
    blocks = np.repeat(np.arange(12), 10)  # ten fine points in each coarse one
    whole = csr_matrix((numbers.random(120), (blocks, np.arange(120))), (13, 120))
    whole = csr_matrix(whole + csr_matrix(([0.5], ([5], [3])), (13, 120)))
    x = numbers.random(120)
    owner = np.arange(120) // 40
    part = split(whole, row_sums(whole), np.arange(120), owner, 2, 120)
    assert sorted(part.orders) == [0, 1]
    came = np.full(part.matrix.shape[1], np.nan)
    crossing = 0
    for peer, (start, size) in part.places.items():
        places = spread(start, size)
        if peer in part.orders:
            order = unpacked_order(part.orders[peer].packed(), 120)
            assert order.columns.tolist() == part.orders[peer].columns.tolist()
            values = np.concatenate((order.matrix @ x, x[order.columns]))
        else:
            values = x[owner == peer]
        came[places] = values
        crossing += len(values) * (peer != 2)
    assert crossing == (4 + 1) + (3 + 10) and not np.isnan(came).any()
    assert (part.matrix @ came == whole @ x).all()
    wanted = [1.0] * 8 + row_sums(whole)[8:].tolist()
    wanted[5] = row_sums(whole)[5]
    assert part.sums.tolist() == wanted


def test_columns_that_many_rows_share_are_sent_as_they_are():
    whole = csr_matrix(np.ones((40, 4)))
    part = split(whole, row_sums(whole), np.arange(4), np.zeros(4, int), 1, 4)
    assert part is None
    nothing = csr_matrix((3, 0))
    part = split(nothing, np.zeros(3), np.empty(0, int), np.empty(0, int), 0, 9)
    assert part is None
