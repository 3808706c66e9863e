"""`isthmus.Remapping`: the move of fields between grids, by a matrix of weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...redistribution.layouts import Layout
from ...remapping.conservation import Integrals
from ...remapping.weights import Weights
from ..comm.intercomm import Intercomm
from ..comm.intracomm import Intracomm
from ..plan.plan import Plan
from ..plan.steps import FURTHER
from ..redistribution.fields import Field, levels_of
from ..redistribution.mover import (
    Fields,
    FieldsCall,
    Mover,
    check_disjoint_fields,
    check_field,
    fields_call,
    listed,
)
from ..redistribution.redistribution import Redistribution
from ..waiting.bounded import bounded
from .compile import compiled
from .setup import RemappingOptions, RemappingSetup, set_up

if TYPE_CHECKING:
    from ..context.context import Context

#: the name of the class in errors, after "isthmus."
_REMAPPING = "Remapping"


class Remapping:
    """Moves fields from a grid to another, between two groups or inside a group.

    target = weights · source. All ranks of the communicator create a remapping
    together. Between groups, the ranks of a group give the layout of the source or of
    the target; inside a group each rank gives both. Each entry of the weights is given
    by a single rank, by any; a rank without entries gives None.

    A value has the bits of scipy's product in a single process, on any number of ranks
    and in any layouts, because a single rank multiplies a row in the order of columns.
    """

    def __init__(
        self,
        comm: MPI.Intercomm | MPI.Intracomm,
        weights: Weights = None,
        source: Layout | None = None,
        target: Layout | None = None,
        *,
        dtype: Any = np.float64,
        norm: str | None = None,
        missing: str | None = None,
        mask: np.ndarray | None = None,
        unmapped: float | None = 0.0,
    ) -> None:
        """`weights`: rows, columns and values in three arrays, a scipy sparse matrix,
        or the path of a netCDF file of ESMF or SCRIP. Values travel as `dtype`.

        `norm="fracarea"` divides each row by the sum of the row. `mask` is True for
        missing points of this rank's source. With `missing="renormalise"`, points that
        are NaN in a call are missing too, and the weights of present points are scaled
        up. `unmapped` is the value of target points without weights; None leaves the
        points unchanged.
        """
        ours = Intercomm(comm) if comm.Is_inter() else Intracomm(comm)  # type: ignore[arg-type]
        self.context: Context = ours._context()
        self.source, self.target = source, target
        masked = None if mask is None else np.asarray(mask)
        self._options = RemappingOptions(
            np.dtype(dtype), norm, missing, unmapped, masked
        )
        with self.context.uninterrupted():
            args = comm, self.context, weights, source, target, self._options
            self._setup: RemappingSetup = bounded(
                partial(set_up, *args), self.context.limit
            )
        self._local = {
            name: x.local_shape(self.context.index if x.is_regular else None)
            for name, x in (("source", source), ("target", target))
            if x is not None
        }
        self._mover = Mover(
            self.context,
            _REMAPPING,
            read=self._read,
            signature=self._signature,
            words=_count_in_words,
            compiled=self._compiled,
        )

    # -- moving

    def __call__(self, field: Fields, into: Fields | None = None) -> None:
        """Send or receive fields.

        With a source and a target, `field` is sent and `into` receives.
        """
        self._mover.move(field, into)

    def start(self, field: Fields, into: Fields | None = None) -> MPI.Request:
        """Start to remap fields, and return an MPI request."""
        return self._mover.start(field, into)

    def init(self, field: Fields, into: Fields | None = None) -> MPI.Prequest:
        """A persistent MPI request whose starts remap the fields."""
        return self._mover.init(field, into)

    def Free(self) -> None:
        """Release the plans of the remapping."""
        self._mover.forget()
        self.columns.Free()

    # -- weights and columns

    @property
    def columns(self) -> Redistribution:
        """The movement of values without the product, as a `Redistribution`.

        Each rank of the target receives the values of its columns, in the order of
        `needed`.
        """
        return self._setup.columns

    @property
    def needed(self) -> np.ndarray | None:
        """The source's points for this rank's rows, as ascending flat indices.

        None on a rank without a target.
        """
        return self._setup.needed

    @property
    def matrix(self) -> Any:
        """The rows of this rank, as a scipy sparse matrix with the columns `needed`.

        None on a rank without a target.
        """
        return self._setup.matrix

    @property
    def fractions(self) -> np.ndarray | None:
        """The sum of the weights of each point of this rank, before the norm.

        With ESMF's conservative weights of norm `dstarea`, the sum is the share of the
        cell that the source covers, ESMF's `frac_b`.
        """
        sums = self._setup.fractions
        return None if sums is None else sums.reshape(self._local["target"])

    def integrals(
        self,
        field: np.ndarray,
        area: np.ndarray,
        into: np.ndarray | None = None,
        into_area: np.ndarray | None = None,
    ) -> Integrals:
        """The integrals of fields over the areas of cells on both sides; collective.

        Points that are NaN do not count. Inside a group `field` and `area` are the
        source's, `into` and `into_area` the target's.
        """
        ends = [(field, area)] if into is None else [(field, area), (into, into_area)]
        own_integrals = [_integral(*end) for end in ends]
        has_source = self.source is not None
        row = (*own_integrals, 0.0) if has_source else (0.0, *own_integrals)
        with self.context.uninterrupted(_REMAPPING):
            gather = partial(self.context.comm.allgather, row[:2])
            rows = bounded(gather, self.context.limit)
        source, target = (fsum(x) for x in zip(*rows, strict=True))
        return Integrals(source, target)

    # -- fields

    def _read(self, field: Fields, into: Fields | None) -> FieldsCall:
        """The checked fields of a call."""
        if (into is not None) != (self.source is not None and self.target is not None):
            expected = (
                "what is sent and what is received" if into is None else "one field"
            )
            raise TypeError(f"expecting {expected}")
        first, second = listed(field), [] if into is None else listed(into)
        ends = (first, second) if self.source is not None else ([], first)
        call = fields_call(self.context, _REMAPPING, *ends, may_pack=False)
        for name, fields in (("source", call.source), ("target", call.target)):
            for k, x in enumerate(fields):
                self._check(f"{name} field {k}", x, name)
        if self.source is not None and self.target is not None:
            counts = [
                self._count(fields, name) for fields, name in _fields_by_side(call)
            ]
            if counts[0] != counts[1]:
                raise ValueError(
                    f"what is sent is {_count_in_words(counts[0])}, what is received "
                    f"{_count_in_words(counts[1])}"
                )
        check_disjoint_fields(call.source, call.target)
        return call

    def _check(self, name: str, x: Any, side: str) -> None:
        """Refuse a field that the remapping cannot read or write."""
        is_target = side == "target"
        check_field(name, x, is_written=is_target)
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(
                f"{name} is a masked array: pass x.filled(numpy.nan), and make the "
                'remapping with missing="renormalise"'
            )
        shape, axes = self._local[side], len(self._local[side])
        if x.shape[len(x.shape) - axes :] != shape or len(x.shape) < axes:
            raise ValueError(
                f"{name} has shape {x.shape}, its layout {shape}: only axes before "
                "these may be added, for levels"
            )
        sent, result = self._options.dtype, np.result_type(self._options.dtype, float)
        before, after = (result, x.dtype) if is_target else (x.dtype, sent)
        if not np.can_cast(before, after, "same_kind"):
            raise ValueError(f"{name} is {x.dtype}: {before} cannot become {after}")

    def _count(self, fields: Any, name: str) -> int:
        """The number of fields, with each level counted."""
        return sum(len(levels_of(x, 0, len(self._local[name]))) for x in fields)

    def _signature(self, call: FieldsCall) -> int:
        """The number of fields of a call, with each level counted."""
        fields, name = (
            next(_fields_by_side(call)) if call.source else (call.target, "target")
        )
        return self._count(fields, name)

    def _compiled(self, values: tuple[Any, ...], call: FieldsCall) -> Plan:
        """The plan for the fields of a call."""
        buffer = FURTHER
        levels: dict[str, list[Field]] = {"source": [], "target": []}
        for fields, name in _fields_by_side(call):
            for x in fields:
                levels[name] += levels_of(x, buffer, len(self._local[name]))
                buffer += 1
        count = len(levels["source"] or levels["target"])
        assert self._setup.moving is not None
        rounds = self._setup.moving.transfer_rounds(
            count * self._options.dtype.itemsize
        )
        ends = levels["source"], levels["target"]
        compiler = compiled(
            rounds, *ends, self._setup, self._options, cut=self.context.cut
        )
        steps, slots = tuple(compiler.steps), compiler.slots
        return call.with_copies(
            Plan(values, "remapping", steps, slots, compiler.scratch)
        )


def _fields_by_side(call: FieldsCall) -> Iterator[tuple[Sequence[np.ndarray], str]]:
    return iter(((call.source, "source"), (call.target, "target")))


def _count_in_words(count: int) -> str:
    return f"{count} field{'s' * (count != 1)}, each level counted"


def _integral(field: np.ndarray, area: np.ndarray | None) -> float:
    """The sum of a field times the areas, rounded once."""
    if area is None or np.shape(area) != np.shape(field):
        raise ValueError(
            f"an area for each point is wanted: of {np.shape(field)}, not "
            f"{None if area is None else np.shape(area)}"
        )
    products = np.asarray(field, np.float64) * area
    return fsum(products[~np.isnan(products)].tolist())
