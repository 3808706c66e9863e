"""The mutations of a source: all of its operators, none of its words."""

from __future__ import annotations

import pytest

from mutants.mutations import mutations

SOURCE = b'''"""A module < with words."""
MOST_BYTES = 4


def function(x: int | None, rows: list[int]) -> bool:
    """A function + with words."""
    assert x is not None
    while x < 3 and not rows:
        x += 1
    rows[x] = max(x, 1) if x else 2
    raise ValueError(f"{x} > 5")
'''


@pytest.fixture(scope="module")
def found():
    return mutations(SOURCE)


def test_each_is_another_program(found):
    changed = [mutation.apply(SOURCE) for mutation in found]
    assert len({SOURCE, *changed}) == len(found) + 1
    for source in changed:
        compile(source, "changed", "exec")


def test_each_is_shown_with_the_lines_of_its_statement(found):
    shown = {m.shown: (m.first_line, m.last_line, m.is_in_function) for m in found}
    assert shown["4 -> 5"] == (2, 2, False)
    assert shown["x < 3 -> x <= 3"] == (8, 8, True)
    assert shown["x < 3 and not rows -> x < 3 or not rows"] == (8, 8, True)
    assert shown["x += 1 -> pass"] == (9, 9, True)
    assert shown["max -> min"] == (10, 10, True)
    assert shown['raise ValueError(f"{x} > 5") -> pass'] == (11, 11, True)


def test_words_and_types_are_left_alone(found):
    assert not [m for m in found if m.first_line in (1, 5, 6, 7)]
    assert not [m for m in found if "words" in m.shown or "int" in m.shown]
