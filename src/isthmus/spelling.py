"""Messages about unknown names, with the nearest known name or with all of them."""

from __future__ import annotations

from collections.abc import Iterable


def unknown(noun: str, name: str, known: Iterable[str], where: str = "") -> str:
    """The message for a name: "no set 'kang209'; did you mean kang2019?"."""
    from difflib import get_close_matches

    names = list(known)
    message = " ".join(filter(None, (f"no {noun} {name!r}", where)))
    by_casefold = {known_name.casefold(): known_name for known_name in names}
    close = get_close_matches(name.casefold(), by_casefold, 1)
    if close:
        return f"{message}; did you mean {by_casefold[close[0]]}?"
    return f"{message}; known: {', '.join(names)}"
