"""Values of nested plain data by their dotted paths."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping


def leaves(data: Mapping[str, object], whole: Collection[str] = (), under: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of nested sections by their paths, those of some sections together.

    Args:
        data: the sections.
        whole: paths of the sections that are one value.
        under: what the paths begin with.
    """
    for name, value in data.items():
        path = f"{under}{name}"
        if isinstance(value, Mapping) and value and path not in whole:
            yield from leaves(value, whole, f"{path}.")
        else:
            yield path, value
