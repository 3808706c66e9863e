"""The steps of a remapping: fields become columns, and columns become fields.

The rounds between are rounds of a redistribution, from the fields of the source to
columns in scratch. Values of a different type are converted before the rounds. A row is
multiplied as soon as the last column of the row arrives, so that products overlap with
further messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...redistribution.runs import Runs, spread
from ...remapping.matrix import (
    Piece,
    multiply,
    multiply_present,
    pieces,
    rows_without_weights,
)
from ...schedules.ir import Round
from ..plan.steps import TMP, ArrayAt, Compute, Step, Unpack
from ..redistribution.compile import Arrival, FieldsCompiler
from ..redistribution.fields import Field
from .setup import Parcel, RemappingOptions, RemappingSetup


def compiled(
    rounds: Sequence[Round],
    source: Sequence[Field],
    target: Sequence[Field],
    setup: RemappingSetup,
    options: RemappingOptions,
    *,
    cut: int,
) -> FieldsCompiler:
    """The steps of the rounds, with conversions before and products between them."""
    dtype = options.dtype
    compiler = FieldsCompiler(source, [], cut=cut, is_typed=True)
    is_gathered = bool(setup.parcels)
    sent_fields = [*_converted(compiler, source, dtype, is_gathered)]
    if is_gathered:
        sent_fields = [_gathered(compiler, x, setup, options) for x in sent_fields]
    compiler.replace("send", sent_fields)
    products = None
    if setup.local_rows is not None:
        count = setup.local_rows.shape[1]
        columns = [compiler.room_for((count,), dtype) for _ in target]
        compiler.replace("recv", columns)
        products = Products(compiler, setup, options, columns, target)
        compiler.steps += products.of_rows_without_weights()
    for r in rounds:
        compiler.add(r, products)
    return compiler


def _converted(
    compiler: FieldsCompiler,
    source: Sequence[Field],
    dtype: np.dtype[Any],
    must_be_dense: bool,
) -> Iterator[Field]:
    """The fields in the type of messages, and without gaps if `must_be_dense`."""
    for field in source:
        if field.dtype == dtype and not (must_be_dense and field.inner[0]):
            yield field
            continue
        dense = compiler.room_for(field.shape, dtype)
        if field.nbytes:
            compiler.steps.append(Compute(_convert, (field.place,), (dense.place,)))
        yield dense


def _gathered(
    compiler: FieldsCompiler,
    field: Field,
    setup: RemappingSetup,
    options: RemappingOptions,
) -> Field:
    """The values of a field for all receivers, side by side in scratch."""
    item = field.dtype.itemsize
    values = compiler.room_for((sum(part.size for part in setup.parcels),), field.dtype)
    for part in setup.parcels:
        function = partial(_gather, part, options.missing is not None)
        first = values.first + part.start * item
        out = ArrayAt(values.buffer, first, (part.size,), (item,), field.dtype)
        if field.nbytes:
            compiler.steps.append(Compute(function, (field.place,), (out,)))
    return values


def _gather(
    part: Parcel, leaves_missing_out: bool, x: np.ndarray, out: np.ndarray
) -> None:
    """Compute the products of a parcel, then copy the columns without a product."""
    flat, rows = x.reshape(-1), len(part.sums)
    if rows and leaves_missing_out:
        multiply_present(part.matrix, part.sums, flat, out[:rows])
    elif rows:
        multiply(part.matrix, flat, out[:rows])
    np.take(flat, part.places, out=out[rows:], mode="clip")


def _convert(values: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, values, casting="same_kind")


@dataclass(frozen=True, slots=True)
class Products:
    """A consumer of arrivals, which multiplies the rows with all columns present."""

    compiler: FieldsCompiler
    setup: RemappingSetup
    options: RemappingOptions
    columns: Sequence[Field]
    target: Sequence[Field]

    def __call__(self, arrivals: Sequence[Arrival]) -> list[list[Step]]:
        """The products of each field after each arrival.

        All fields arrive in a message together, or each field in equal parts in order.
        """
        result: list[list[Step]] = [[] for _ in arrivals]
        pieces_by_arrival = self._pieces(
            [arrival for arrival in arrivals if 0 in arrival.fields]
        )
        ends = zip(self.columns, self.target, strict=True)
        for k, (columns, target) in enumerate(ends):
            own_arrivals = (
                i for i, arrival in enumerate(arrivals) if k in arrival.fields
            )
            for i, group in zip(own_arrivals, pieces_by_arrival, strict=True):
                for piece in group:
                    result[i] += self._product(piece, columns, target)
        return result

    def _pieces(self, arrivals: Sequence[Arrival]) -> list[list[Piece]]:
        """The pieces to multiply after each arrival."""
        matrix = self.setup.local_rows
        arrival_of_column = np.zeros(matrix.shape[1], np.int64)
        for i, arrival in enumerate(arrivals):
            arrival_of_column[spread(arrival.start, arrival.size)] = i
        return pieces(matrix, arrival_of_column, len(arrivals))

    def _product(self, piece: Piece, columns: Field, target: Field) -> list[Step]:
        """The steps from columns to the rows of a piece in a field."""
        function: Callable[..., None]
        if self.options.missing is None:
            function = partial(multiply, piece.matrix)
        else:
            assert self.setup.local_sums is not None
            sums = self.setup.local_sums[piece.runs.indices]
            function = partial(multiply_present, piece.matrix, sums)
        return self._written(piece.runs, function, (columns.place,), target)

    def _written(
        self,
        runs: Runs,
        function: Callable[..., None],
        read: tuple[ArrayAt, ...],
        target: Field,
    ) -> list[Step]:
        """The steps of a function that writes rows of a field.

        A single run of bytes is written directly, to avoid a copy from scratch.
        """
        rows = target.select(runs.start, runs.size)
        n, item = runs.total, target.dtype.itemsize
        if len(rows.lengths) == 1:
            first = int(rows.offsets[0])
            place = ArrayAt(target.buffer, first, (n,), (item,), target.dtype)
            return [Compute(function, read, (place,))]
        values = self.compiler.room_for((n,), target.dtype)
        return [
            Compute(function, read, (values.place,)),
            Unpack(TMP, values.start, target.buffer, rows),
        ]

    def of_rows_without_weights(self) -> list[Step]:
        """The steps that fill the target's points without weights."""
        rows = rows_without_weights(self.setup.local_rows)
        if self.options.unmapped is None or not len(rows):
            return []
        fill = partial(_fill, self.options.unmapped)
        return [
            step
            for target in self.target
            for step in self._written(rows, fill, (), target)
        ]


def _fill(value: float, out: np.ndarray) -> None:
    out[...] = value
