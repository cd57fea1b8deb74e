"""Results that show themselves in notebooks: what writes them as HTML stands floors above, and is named here."""

from __future__ import annotations

from collections.abc import Callable

_writers: list[Callable[[object], str]] = []


class ShownInNotebooks:
    """A result that a notebook shows as a table in place of its representation."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return the result as HTML, as notebooks ask for it; None where nothing writes it."""
        return _writers[-1](self) if _writers else None


def show_with(writer: Callable[[object], str]) -> None:
    """Have results shown by a function that returns one as HTML."""
    _writers.append(writer)
