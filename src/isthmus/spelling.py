"""What to say of a name that is unknown: the nearest one, or all there are."""

from __future__ import annotations

from collections.abc import Iterable


def unknown(noun: str, name: str, known: Iterable[str], where: str = "") -> str:
    """The words for a name that is none: "no set 'kang209'; did you mean kang2019?"."""
    from difflib import get_close_matches

    names, said = list(known), " ".join(filter(None, (f"no {noun} {name!r}", where)))
    folded = {other.casefold(): other for other in names}
    close = get_close_matches(name.casefold(), folded, 1)
    if close:
        return f"{said}; did you mean {folded[close[0]]}?"
    return f"{said}; known: {', '.join(names)}"
