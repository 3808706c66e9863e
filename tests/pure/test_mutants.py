"""The mutations of a source: all operators, no words."""

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
def mutants_of_source():
    return mutations(SOURCE)


def test_each_is_another_program(mutants_of_source):
    changed = [mutation.apply(SOURCE) for mutation in mutants_of_source]
    assert len({SOURCE, *changed}) == len(mutants_of_source) + 1
    for source in changed:
        compile(source, "changed", "exec")


def test_each_is_shown_with_the_lines_of_its_statement(mutants_of_source):
    shown = {
        m.shown: (m.first_line, m.last_line, m.is_in_function)
        for m in mutants_of_source
    }
    assert shown["4 -> 5"] == (2, 2, False)
    assert shown["x < 3 -> x <= 3"] == (8, 8, True)
    assert shown["x < 3 and not rows -> x < 3 or not rows"] == (8, 8, True)
    assert shown["x += 1 -> pass"] == (9, 9, True)
    assert shown["max -> min"] == (10, 10, True)
    assert shown['raise ValueError(f"{x} > 5") -> pass'] == (11, 11, True)


def test_words_and_types_are_left_alone(mutants_of_source):
    assert not [m for m in mutants_of_source if m.first_line in (1, 5, 6, 7)]
    assert not [m for m in mutants_of_source if "words" in m.shown or "int" in m.shown]
