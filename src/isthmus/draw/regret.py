"""The regret of choices: a field for each operation and size, darker the worse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..units import show_bytes
from .bench import sheet, titles, units_of
from .palette import EMPTY, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: from this regret on a field is as dark as any
DARKEST_REGRET = 2.0
#: a share of the darkness, from which numbers are white
WHITE_NUMBERS = 0.6
FIELD_INCHES = 0.52, 0.3


def figure(title: str, subtitle: str, cells: Mapping[tuple[str, int], float]) -> Figure:
    """A row for each operation, a column for each size; `cells` are regrets."""
    operations = list(dict.fromkeys(op for op, _ in cells))
    sizes = sorted({nbytes for _, nbytes in cells})
    values = np.array(
        [[cells.get((op, n), np.nan) for n in sizes] for op in operations]
    )
    width, height = (
        inches * n for inches, n in zip(FIELD_INCHES, values.shape[::-1], strict=True)
    )
    picture, ((axes,),) = sheet(max(width + 1.6, 5.0), height + 0.4, 1, 1)
    darkness = np.log(values) / np.log(DARKEST_REGRET)
    axes.imshow(darkness, cmap="Reds", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            is_dark = darkness[row, column] > WHITE_NUMBERS
            style: dict[str, Any] = {"color": "white" if is_dark else INK, "size": 7}
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", **style)
    axes.set_xticks(range(len(sizes)), [show_bytes(n, units_of(sizes)) for n in sizes])
    axes.set_yticks(range(len(operations)), operations)
    axes.set(facecolor=EMPTY)
    axes.tick_params(labelsize=7, colors=INK, length=0)
    axes.spines[:].set_visible(False)
    titles(picture, title, subtitle, 0.12 / picture.get_figwidth())
    result: Figure = picture
    return result
