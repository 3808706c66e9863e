"""Remappings on real processes, against scipy's product in one."""

from __future__ import annotations

from math import prod
from random import Random
from traceback import format_exc

import numpy as np
import pytest
from mpi4py import MPI
from scipy.sparse import csr_matrix, random as random_matrix

import isthmus
import standin
from groups import pair
from isthmus import Layout, Remapping, Replicate
from redistributions import field, moved, part
from remappings import Case, case, dealt, expected, same_bits
from sampling import LONG, some
from support import FORMS, TURN, agree, raised_alike

#: random remappings on each number of ranks
EXAMPLES = 400 if LONG else 40


def local(layout: Layout, rank: int, flat: np.ndarray) -> np.ndarray:
    """What a rank has of flat global arrays, one or a stack of several."""
    axes = flat.shape[:-1]
    each = [
        part(layout, rank, x.reshape(layout.shape))
        for x in flat.reshape(prod(axes), flat.shape[-1])
    ]
    return np.array(each).reshape(*axes, *each[0].shape)


def check(world, groups, c: Case, seed: int, form: str) -> bool:
    """One random remapping; whether this rank got what it must."""
    own = Random(1000 * seed + world.rank)
    is_source = groups.inside or groups.is_a
    is_target = groups.inside or not groups.is_a
    source = c.sources[groups.rank] if is_source else None
    target = c.targets[groups.rank] if is_target else None
    options = dict(c.options)
    if is_source and c.mask.any():
        options["mask"] = local(source, groups.rank, c.mask)
    weights = dealt(c.matrix, seed, world.size)[world.rank]
    remap = Remapping(groups.comm, weights, source, target, **options)
    out, into, wanted = [], [], []
    for k, levels in enumerate(c.levels):
        count = int(np.prod(levels))
        stack = c.values[np.arange(count) + k].reshape(*levels, -1)
        if source is not None:
            out.append(field(own, local(source, groups.rank, stack)))
        if target is not None:
            before = np.full((*levels, c.matrix.shape[0]), 7.5, c.target_type)
            rows = zip(stack.reshape(count, -1), before.reshape(count, -1), strict=True)
            whole = np.array([expected(c, *row) for row in rows]).reshape(before.shape)
            wanted.append(local(target, groups.rank, whole))
            into.append(field(own, local(target, groups.rank, before)))
    args = [x if len(x) > 1 else x[0] for x in (out, into) if x]
    moved(remap, form, *args)
    remap.Free()
    return all(same_bits(x, y) for x, y in zip(into, wanted, strict=True))


class Groups:
    """Two groups of the ranks of a launch, or all in one."""

    def __init__(self, world: MPI.Intracomm, p: int) -> None:
        self.inside = p == world.size
        self.groups = None if self.inside else pair(world, p)
        self.comm = world if self.groups is None else self.groups.native
        self.p, self.q = p, p if self.inside else world.size - p
        self.is_a = world.rank < p
        self.rank = world.rank if self.is_a else world.rank - p

    def free(self) -> None:
        if self.groups is not None:
            self.groups.free()


@pytest.mark.mpi(*some((1, 2, 3, 5), 2, TURN), timeout=120)
def test_every_value_has_the_bits_of_scipys_product(comm):
    every = {p: Groups(comm, p) for p in range(1, comm.size + 1)}
    rng = Random(comm.size)  # the same on all ranks
    for _ in range(EXAMPLES):
        seed, p, form = (
            rng.getrandbits(30),
            rng.randint(1, comm.size),
            rng.choice(FORMS),
        )
        remapping = case(seed, every[p].p, every[p].q)
        try:
            right = check(comm, every[p], remapping, seed, form)
            why = "" if right else "wrong bits"
        except Exception:  # the others must hear of it, or they wait for ever
            why = format_exc()
        agree(comm, not why, f"{seed=} {p=} {form=}: {why}")
    for groups in every.values():
        groups.free()


def stencil(side: int):
    """The nine neighbours of each point of a grid, of different weights."""
    i, j = np.divmod(np.arange(side * side), side)
    step = np.array([-1, 0, 1])
    columns = (i[:, None, None] + step[:, None]) % side * side
    columns = (columns + (j[:, None, None] + step) % side).reshape(-1, 9)
    values = np.cos(np.arange(columns.size)) + 1.5
    offsets = np.arange(0, columns.size + 1, 9)
    matrix = csr_matrix((values, columns.ravel(), offsets), (side**2, side**2))
    matrix.sort_indices()
    return matrix


@pytest.mark.mpi(3, 5)
def test_long_fields_are_multiplied_while_others_come(comm):
    """With messages of several parts, and pieces of all kinds."""
    groups, side = Groups(comm, 2), 300
    matrix = stencil(side)
    x = np.random.default_rng(3).random((3, side * side))
    wanted = np.array([matrix @ y for y in x])
    here = Layout.blocks((side, side), (2, 1))
    theirs = Layout.blocks((side, side), (1, comm.size - 2))
    there = Layout.cyclic((side, side), (comm.size - 2, 1), (7, side))
    for target in (theirs, there):
        role = {"source": here} if groups.is_a else {"target": target}
        weights = matrix if comm.rank == 1 else None
        remap = Remapping(groups.comm, weights, **role)
        for form in FORMS:
            if groups.is_a:
                moved(remap, form, local(here, groups.rank, x))
                agree(comm, True)
                continue
            into = np.zeros((3, *target.local_shape(groups.rank)))
            moved(remap, form, into)
            right = local(target, groups.rank, wanted)
            agree(comm, same_bits(into, right), form)
        remap.Free()
    groups.free()


@pytest.mark.mpi(5)
def test_what_is_wrong_all_ranks_say_alike(comm, tmp_path):
    groups = Groups(comm, 2)
    a, rank, inter = groups.is_a, groups.rank, groups.comm
    source, target = Layout.blocks((2, 3), (2, 1)), Layout.blocks(4, (3,))
    role = {"source": source} if a else {"target": target}

    def make(weights, owner=4, **more):
        given = weights if comm.rank == owner else None
        return lambda: Remapping(inter, given, **{**role, **more})

    entry = ([3], [5], [0.5])
    is_b = not a
    mask = np.zeros((1, 3), bool)
    bad = {
        "group B rank 2: ValueError: entry 0 of the weights has row 4, but the target "
        "has points 0 to 3": make(([4], [0], [1.0])),
        "column 6, but the source has points 0 to 5": make(([0], [6], [1.0])),
        "row 3, column 5 is nan": make(([3], [5], [np.nan])),
        "row 3, column 5 was given twice": lambda: Remapping(
            inter, entry if comm.rank in (0, 4) else None, **role
        ),
        "4 × 4, but the target has 4 points and the source 6": make(csr_matrix((4, 4))),
        "no rank gives weights": make(entry, owner=-1),
        "must be a Layout": make(entry, source=7) if a else make(entry),
        "a rank gives a source or a target": make(entry, source=source, target=target),
        "one group gives a source and the other a target, but none a target": lambda: (
            Remapping(inter, entry if a else None, source=source)
        ),
        "but group A rank 0 gives": make(
            entry, **({"source": Layout.blocks((3, 2), (1, 1))} if rank and a else {})
        ),
        "group A gives dtype <f4, group B <f8": make(entry, dtype="f4" if a else "f8"),
        "dtype must be floating-point, not int64": make(entry, dtype=int),
        'norm must be None or "fracarea"': make(entry, norm="x"),
        'missing must be None or "renormalise"': make(entry, missing="x"),
        "this rank has none": make(entry, mask=mask if is_b else None),
        "mask must be booleans of shape (1, 3), not int64 of (1, 3)": make(
            entry, **({"mask": mask.astype(int)} if a else {})
        ),
        "no mask": make(entry, **({"mask": mask} if a and rank == 0 else {})),
        "no source has element (1, 2), which group B rank 2 wants": make(
            entry,
            **({"source": Layout.slices((2, 3), np.s_[0 : 1 - rank])} if a else {}),
        ),
    }
    for words, call in bad.items():
        text = raised_alike(comm, call)
        agree(comm, words in text and "isthmus.Re" in text, f"{words!r}: {text}")

    remap = make(entry)()
    good = np.ones((1, 3)) if a else np.zeros(target.local_shape(rank))
    fields = {
        "has shape (7,), its layout (1, 3)": np.ones(7) if a and rank else good,
        "2 fields, each level counted, but group A rank 0 1 field": good
        if a
        else [good, good.copy()],
        "complex128 cannot become float64": good if is_b else good.astype(complex),
        "float64 cannot become int64": good if a else good.astype(int),
        "is a masked array": np.ma.array(good) if a else good,
        "must be a numpy array": good if a else good.tolist(),
        "target field 0 is read-only": good if a else np.broadcast_to(0.0, good.shape),
    }
    for words, array in fields.items():
        text = raised_alike(comm, lambda: remap(array))
        agree(comm, words in text, f"{words!r}: {text}")
    remap(good)
    agree(comm, a or good.tolist() == [[0, 0], [0], [0.5]][rank], str(good))
    groups.free()


@pytest.mark.mpi(3)
def test_a_file_is_shared_by_the_ranks_that_name_it(comm, tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    path = comm.bcast(str(tmp_path / "weights.nc"))
    matrix = random_matrix(50, 40, 0.2, random_state=4, format="coo")
    if comm.rank == 0:
        with netcdf.Dataset(path, "w") as file:
            for name, size in (("n_b", 50), ("n_a", 40), ("n_s", matrix.nnz)):
                file.createDimension(name, size)
            file.createVariable("row", "i4", ("n_s",))[:] = matrix.row + 1
            file.createVariable("col", "i4", ("n_s",))[:] = matrix.col + 1
            file.createVariable("S", "f8", ("n_s",))[:] = matrix.data
    comm.Barrier()
    source, target = Layout.blocks(40, (3,)), Layout.blocks(50, (3,))
    missing = str(tmp_path / "no.nc") if comm.rank == 1 else None
    text = raised_alike(comm, lambda: Remapping(comm, missing, source, target))
    agree(comm, "rank 1: FileNotFoundError" in text, text)
    x, into = (
        np.random.default_rng(4).random(40),
        np.zeros(target.local_shape(comm.rank)),
    )
    for weights in (path, path if comm.rank else None):
        remap = Remapping(comm, weights, source, target)
        remap(x[source.local(comm.rank)], into)
        wanted = (matrix.tocsr() @ x)[target.local(comm.rank)]
        agree(comm, same_bits(into, wanted), str(into))


@pytest.mark.mpi(3)
def test_the_columns_can_be_had_without_the_product(comm):
    groups = Groups(comm, 1)
    matrix = random_matrix(20, 30, 0.1, random_state=5, format="csr")
    x = np.random.default_rng(5).random(30)
    source, target = Layout.blocks(30, (1,)), Layout.blocks(20, (2,))
    role = {"source": source} if groups.is_a else {"target": target}
    remap = Remapping(groups.comm, matrix if groups.is_a else None, **role)
    if groups.is_a:
        remap.columns(x)
        agree(comm, remap.needed is None and remap.matrix is None)
    else:
        mine = target.local(groups.rank)
        columns = np.empty(len(remap.needed))
        remap.columns(columns)
        right = same_bits(columns, x[remap.needed])
        agree(comm, right and same_bits(remap.matrix @ columns, (matrix @ x)[mine]))
    if groups.is_a:
        agree(comm, remap.fractions is None)
    else:
        sums = (matrix @ np.ones(30))[mine]
        agree(comm, same_bits(remap.fractions, sums))
    groups.free()


@pytest.mark.mpi(3)
def test_integrals_of_both_sides_are_compared(comm):
    """Twelve cells of area 1 become four of area 3, each the mean of three."""
    groups = Groups(comm, 2)
    weights = np.arange(12) // 3, np.arange(12), np.full(12, 1 / 3)
    source, target = Layout.blocks(12, (2,)), Layout.blocks(4, (1,))
    role = {"source": source} if groups.is_a else {"target": target}
    remap = Remapping(
        groups.comm, weights if groups.is_a and not groups.rank else None, **role
    )
    x = np.arange(12.0)[source.local(groups.rank)] if groups.is_a else np.zeros(4)
    remap(x)
    integrals = remap.integrals(x, np.full(x.shape, 1.0 if groups.is_a else 3.0))
    right = integrals.source == 66 and integrals.error < 1e-15
    agree(comm, right and "source 66, target 66," in str(integrals), str(integrals))
    groups.free()
    layout = Layout.blocks(12, (3,))
    identity = (np.arange(12), np.arange(12), np.ones(12)) if comm.rank == 2 else None
    inside = Remapping(comm, identity, layout, layout)
    y, z = np.full(4, comm.rank + 1.0), np.zeros(4)
    inside(y, z)
    one = np.ones(4)
    agree(comm, inside.integrals(y, one, z, one).target == 24)


@pytest.mark.mpi(3)
def test_fields_on_a_device_are_copied_beside_the_messages(comm, monkeypatch):
    on = standin.direct(monkeypatch)
    groups = Groups(comm, 1)
    matrix = random_matrix(400, 300, 0.1, random_state=6, format="csr")
    x = np.random.default_rng(6).random((2, 300))
    source, target = Layout.blocks(300, (1,)), Layout.blocks(400, (2,))
    role = {"source": source} if groups.is_a else {"target": target}
    remap = Remapping(groups.comm, matrix if comm.rank == 2 else None, **role)
    wanted = np.array([matrix @ y for y in x])
    own, begun = Random(comm.rank), on.begun
    for form in FORMS:
        data = x if groups.is_a else np.zeros((2, *target.local_shape(groups.rank)))
        array = standin.field(own, data, standin.Plain, standin.LibraryArray)
        moved(remap, form, array)
        if not groups.is_a:
            right = local(target, groups.rank, wanted)
            agree(comm, same_bits(np.ascontiguousarray(array.get()), right), form)
        else:
            agree(comm, True)
    agree(comm, on.begun > begun)
    groups.free()


@pytest.mark.mpi(3)
def test_groups_that_were_coupled_remap_among_each_other(comm):
    """An atmosphere, an ocean and a land, each pair its own remapping, all at once."""
    name = ("air", "sea", "land")[comm.rank]
    _, others = isthmus.couple(comm, name)
    layout = Layout.blocks(6, (1,))
    x, got, requests = np.arange(6.0) + 10 * comm.rank, {}, []
    turned = np.arange(6), np.arange(6)[::-1].copy(), np.full(6, 2.0)
    for other in sorted(others):
        first = name < other
        for sends in (first, not first):
            role = {"source": layout} if sends else {"target": layout}
            remap = Remapping(others[other], turned if sends else None, **role)
            if not sends:
                got[other] = np.zeros(6)
            requests.append(remap.start(x if sends else got[other]))
    MPI.Request.Waitall(requests)
    numbers = {"air": 0, "sea": 1, "land": 2}
    right = [
        (got[k] == 2 * (np.arange(6.0)[::-1] + 10 * numbers[k])).all() for k in others
    ]
    agree(comm, all(right) and len(right) == 2, str(got))


@pytest.mark.mpi(2)
def test_a_wait_for_the_other_group_has_a_limit(comm):
    groups = Groups(comm, 1)
    inter = isthmus.Intercomm(groups.comm)
    layout = Layout.blocks(8, (1,))
    role = {"source": layout} if groups.is_a else {"target": layout}
    entries = np.arange(8), np.arange(8), np.ones(8)
    remap = Remapping(inter, entries if groups.is_a else None, **role)
    remap(x := np.ones(8))
    inter.timeout = 1
    words = ""
    if not groups.is_a:
        try:
            remap(x)
        except isthmus.Stalled as error:
            words = str(error)
    comm.Barrier()
    is_said = "Remapping" in words and "group A rank 0" in words
    agree(comm, groups.is_a or is_said, words)


@pytest.mark.mpi(2)
def test_the_checked_mode_compares_every_call(comm, monkeypatch):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    groups = Groups(comm, 1)
    layout = Layout.blocks(8, (1,))
    role = {"source": layout} if groups.is_a else {"target": layout}
    entries = np.arange(8), np.arange(8), np.ones(8)
    remap = Remapping(groups.comm, entries if groups.is_a else None, **role)
    remap(x := np.ones(8))
    text = raised_alike(comm, lambda: remap([x, x.copy()] if groups.is_a else x))
    agree(comm, "2 fields" in text, text)
    groups.free()


@pytest.mark.mpi(5)
def test_values_have_the_same_bits_in_every_layout(comm):
    """On one rank as on five, in strips as dealt out one by one."""
    matrix = random_matrix(300, 200, 0.3, random_state=7, format="csr")
    x = np.random.default_rng(7).standard_normal(200)
    shuffled = np.random.default_rng(8).permutation(300)
    for n in range(1, comm.size + 1):
        for target in (
            Layout.blocks(300, (n,)),
            Layout.cyclic(300, (n,), (1,)),
            Layout.indices(300, shuffled[comm.rank :: comm.size]),
            Layout.sharded(300, (n,), [Replicate()]),
        ):
            source = Layout.cyclic(200, (comm.size + 1 - n,), (3,))
            remap = Remapping(comm, matrix if comm.rank == 0 else None, source, target)
            rank = comm.rank if target.is_regular else None
            into = np.zeros(target.local_shape(rank))
            remap(x[source.local(comm.rank)], into)
            right = same_bits(into, (matrix @ x)[target.local(rank)])
            agree(comm, right, f"{n} ranks, {target}")
            remap.Free()


@pytest.mark.mpi(3, 5)
def test_rows_are_multiplied_where_fewer_values_travel_then(comm):
    """From a fine grid to a coarse one: the means of 8 by 8 points, and other types of
    values, which must have all their bits."""
    groups, fine, coarse = Groups(comm, 2), (64, 48), (8, 6)
    numbers = np.arange(64 * 48).reshape(8, 8, 6, 8).swapaxes(1, 2).reshape(48, 64)
    random = np.random.default_rng(11)
    entries = np.repeat(np.arange(48), 64), numbers.ravel(), random.random(64 * 48)
    matrix = csr_matrix((entries[2], (entries[0], entries[1])), (48, 64 * 48))
    x = random.standard_normal((2, 64 * 48))
    x[1, random.random(64 * 48) < 0.1] = np.nan
    source = Layout.cyclic(fine, (2, 1), (12, 1))
    target = Layout.blocks(coarse, (1, comm.size - 2))
    role = {"source": source} if groups.is_a else {"target": target}
    given = entries if comm.rank == 2 else None
    for missing in (None, "renormalise"):
        for dtype in ("f8", "f4"):
            remap = Remapping(groups.comm, given, **role, missing=missing, dtype=dtype)
            setup = remap._setup
            fewer = sum(m.total for m in setup.moving.exchange.sends)
            all_columns = sum(m.total for m in remap.columns.exchange.sends)
            # dealt out by 12 rows: every third row of 8 lies on two ranks
            is_less = fewer < all_columns if dtype == "f8" else fewer == all_columns
            agree(comm, is_less or not groups.is_a, f"{fewer} of {all_columns}")
            options = {"dtype": dtype, "norm": None, "missing": missing, "unmapped": 0}
            c = Case(matrix, [], [], x, options, np.zeros(64 * 48, bool), [], "f8")
            wanted = np.array([expected(c, y, np.zeros(48)) for y in x])
            for form in FORMS:
                if groups.is_a:
                    moved(remap, form, local(source, groups.rank, x)[:, :, ::1])
                    agree(comm, True)
                    continue
                into = np.zeros((2, *target.local_shape(groups.rank)))
                moved(remap, form, into)
                right = same_bits(into, local(target, groups.rank, wanted))
                agree(comm, right, f"{missing}, {dtype}, {form}")
            remap.Free()
    groups.free()
