"""Options as people write them."""

from __future__ import annotations


def integers(text: str, option: str) -> list[int]:
    """Whole numbers between commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} {text}: must be numbers as in 3,0,5") from None


def groups(text: str) -> tuple[int, int]:
    """The sizes of two groups."""
    found = integers(text, "--groups")
    if len(found) != 2 or min(found) < 1:
        raise ValueError(f"--groups {text}: must be the sizes of two groups, as in 4,4")
    return found[0], found[1]


def one_or_two_groups(text: str) -> tuple[int, ...]:
    """The sizes of one or two groups."""
    found = integers(text, "--groups")
    if len(found) > 2 or min(found) < 1:
        raise ValueError(
            f"--groups {text}: must be the sizes of one or two groups, as in 8 or 4,4"
        )
    return tuple(found)
