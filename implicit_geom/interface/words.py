"""How a user's values and names are shown in an error: escaped, short, in one line."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any

LONGEST_LINE = 500  # characters of an error; what is cut is its middle, since the fix is told at the end
LONGEST_VALUE = 80  # characters of one value in it
LONGEST_LIST = 40  # names listed as those that are known
DIGITS = 40  # of a whole number that is written out

_repr = reprlib.Repr()
_repr.maxlevel, _repr.maxdict, _repr.maxlist, _repr.maxtuple, _repr.maxset = 3, 4, 6, 6, 6
_repr.maxstring = _repr.maxother = LONGEST_VALUE
_repr.maxlong = DIGITS


def one_line(text: str) -> str:
    """The text in one line of bounded length, every character that is not printable escaped."""
    # cut first: a text of many megabytes is not worth escaping; twice, since escapes are longer
    text = " ".join(_cut(text, 4 * LONGEST_LINE).split())
    return _cut("".join(c if c.isprintable() else _escape(c) for c in text), LONGEST_LINE)


def shown(value: Any) -> str:
    """A value as it was given, for an error: `repr`, but short, in one line, and it never fails."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 3 * DIGITS:
        # Python refuses to write out integers of more than 4300 digits
        return f"{'-' if value < 0 else ''}(an integer of about {round(value.bit_length() * 0.30103)} digits)"
    try:
        text = _repr.repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split()) if not isinstance(value, str) else text
    return _cut("".join(c if c.isprintable() else _escape(c) for c in text), LONGEST_VALUE)


def hint(value: Any, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest known name, or all of them."""
    known = list(known)
    near = nearest(value, known)
    if near:
        return f"; did you mean {shown(near)}?"
    more = ", ..." if len(known) > LONGEST_LIST else ""
    return f"; known: {', '.join(known[:LONGEST_LIST]) or 'none'}{more}"


def nearest(value: Any, known: list[str]) -> str:
    """The known name that was probably meant, or an empty text."""
    if not isinstance(value, str) or not value or len(value) > LONGEST_VALUE:
        return ""
    close = difflib.get_close_matches(value, known, n=1)
    # an abbreviation (tol), a longer word (radius for r), one letter of two (nu for mu)
    close = close or [name for name in known if name.startswith(value) or value.startswith(name)]
    close = close or difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    return close[0] if close else ""


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 5]} ... {text[-tail:]}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
