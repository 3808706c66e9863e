"""The steps of a remapping: fields become columns, and columns become fields.

The rounds between are those of a redistribution, from the fields of the source to
columns in scratch. What has another type is converted before they begin. A row is
multiplied as soon as the last of its columns has come, while others are on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...redistribution.runs import spread
from ...remapping.matrix import Piece, multiply, multiply_present, pieces
from ...schedules.ir import Round
from ..plan.steps import TMP, ArrayAt, Compute, Step, Unpack
from ..redistribution.compile import Arrival, FieldsCompiler
from ..redistribution.fields import Field
from .setup import Parcel, Setup, Wishes


def compiled(
    rounds: Sequence[Round],
    source: Sequence[Field],
    target: Sequence[Field],
    setup: Setup,
    wishes: Wishes,
    *,
    cut: int,
) -> FieldsCompiler:
    """The steps of the rounds, with conversions before and products between them."""
    kind = wishes.dtype
    compiler = FieldsCompiler(source, [], cut=cut, is_typed=True)
    is_gathered = bool(setup.parcels)
    sent = [*_converted(compiler, source, kind, is_gathered)]
    if is_gathered:
        sent = [_gathered(compiler, x, setup, wishes) for x in sent]
    compiler.replace("send", sent)
    products = None
    if setup.rows_here is not None:
        count = setup.rows_here.shape[1]
        columns = [compiler.room_for((count,), kind) for _ in target]
        compiler.replace("recv", columns)
        products = Products(compiler, setup, wishes, columns, target)
        compiler.steps += products.of_rows_without_weights()
    for r in rounds:
        compiler.add(r, products)
    return compiler


def _converted(
    compiler: FieldsCompiler,
    source: Sequence[Field],
    kind: np.dtype[Any],
    must_be_dense: bool,
) -> Iterator[Field]:
    """The fields as they travel; those of another type are converted before, and those
    with gaps, where that is asked."""
    for x in source:
        if x.dtype == kind and not (must_be_dense and x.inner[0]):
            yield x
            continue
        y = compiler.room_for(x.shape, kind)
        if x.nbytes:
            compiler.steps.append(Compute(_convert, (x.place,), (y.place,)))
        yield y


def _gathered(
    compiler: FieldsCompiler, x: Field, setup: Setup, wishes: Wishes
) -> Field:
    """What is sent of a field to each other rank, side by side."""
    item = x.dtype.itemsize
    y = compiler.room_for((sum(part.size for part in setup.parcels),), x.dtype)
    for part in setup.parcels:
        function = partial(_gather, part, wishes.missing is not None)
        first = y.first + part.start * item
        out = ArrayAt(y.buffer, first, (part.size,), (item,), x.dtype)
        if x.nbytes:
            compiler.steps.append(Compute(function, (x.place,), (out,)))
    return y


def _gather(
    part: Parcel, leaves_missing_out: bool, x: np.ndarray, out: np.ndarray
) -> None:
    """Products of rows, then columns as they are."""
    flat, rows = x.reshape(-1), len(part.sums)
    if rows and leaves_missing_out:
        multiply_present(part.matrix, part.sums, flat, out[:rows])
    elif rows:
        multiply(part.matrix, flat, out[:rows])
    np.take(flat, part.places, out=out[rows:], mode="clip")


def _convert(x: np.ndarray, y: np.ndarray) -> None:
    np.copyto(y, x, casting="same_kind")


@dataclass(frozen=True, slots=True)
class Products:
    """Works on columns that have come: a consumer of arrivals."""

    compiler: FieldsCompiler
    setup: Setup
    wishes: Wishes
    columns: Sequence[Field]
    target: Sequence[Field]

    def __call__(self, arrivals: Sequence[Arrival]) -> list[list[Step]]:
        """The products of each field after each arrival.

        Fields come together, or each in the same parts in the same order.
        """
        result: list[list[Step]] = [[] for _ in arrivals]
        each = self._pieces([x for x in arrivals if 0 in x.fields])[1:]
        ends = zip(self.columns, self.target, strict=True)
        for k, (columns, target) in enumerate(ends):
            mine = (i for i, x in enumerate(arrivals) if k in x.fields)
            for i, group in zip(mine, each, strict=True):
                for piece in group:
                    result[i] += self._product(piece, columns, target)
        return result

    def _pieces(self, arrivals: Sequence[Arrival]) -> list[list[Piece]]:
        """The rows that can be multiplied after each arrival."""
        matrix = self.setup.rows_here
        when = np.zeros(matrix.shape[1], np.int64)
        for i, x in enumerate(arrivals):
            when[spread(x.start, x.size)] = i
        return pieces(matrix, when, len(arrivals))

    def _product(self, piece: Piece, columns: Field, target: Field) -> list[Step]:
        """The steps from columns to some rows of a field."""
        function: Callable[..., None]
        if self.wishes.missing is None:
            function = partial(multiply, piece.matrix)
        else:
            assert self.setup.sums_here is not None
            sums = self.setup.sums_here[piece.runs.indices]
            function = partial(multiply_present, piece.matrix, sums)
        return self._written(piece, function, (columns.place,), target)

    def _written(
        self,
        piece: Piece,
        function: Callable[..., None],
        read: tuple[ArrayAt, ...],
        target: Field,
    ) -> list[Step]:
        """A function's work on some rows of a field: straight into it where these are
        one run of bytes, else by scratch."""
        rows = target.select(piece.runs.start, piece.runs.size)
        n, item = piece.runs.total, target.dtype.itemsize
        if len(rows.lengths) == 1:
            first = int(rows.offsets[0])
            at = ArrayAt(target.buffer, first, (n,), (item,), target.dtype)
            return [Compute(function, read, (at,))]
        y = self.compiler.room_for((n,), target.dtype)
        return [
            Compute(function, read, (y.place,)),
            Unpack(TMP, y.start, target.buffer, rows),
        ]

    def of_rows_without_weights(self) -> list[Step]:
        """What becomes of points of the target that have none."""
        if self.wishes.unmapped is None:
            return []
        # all columns have come before the first of no arrivals
        when = np.zeros(self.setup.rows_here.shape[1], np.int64)
        fill = partial(_fill, self.wishes.unmapped)
        return [
            step
            for piece in pieces(self.setup.rows_here, when, 1)[0]
            for target in self.target
            for step in self._written(piece, fill, (), target)
        ]


def _fill(value: float, out: np.ndarray) -> None:
    out[...] = value
