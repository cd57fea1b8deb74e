"""Names people type: the same whatever their case, spaces, hyphens and underscores."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[\s_\-]+")
_BRANDS = re.compile(
    r"\b(nvidia|geforce|tesla|quadro|amd|radeon|instinct|intel|apple|google|aws|graphics)\b", re.IGNORECASE
)
_SIMILARITY = 0.5


def key_of(name: str) -> str:
    """Return the form in which two spellings of one name are equal: ``RTX 4090`` and ``rtx-4090``."""
    return _SEPARATORS.sub("", name.casefold())


def brandless_key_of(name: str) -> str:
    """Return the key of a name without its maker's brands: ``NVIDIA GeForce RTX 4090`` is ``rtx4090``."""
    return key_of(_BRANDS.sub("", name))


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return up to ``most`` known names closest to a misspelt one, the closest first."""
    by_key: dict[str, str] = {}
    for candidate in known:
        by_key.setdefault(key_of(candidate), candidate)
    matches = difflib.get_close_matches(key_of(name)[:80], by_key, most, _SIMILARITY)
    return tuple(by_key[match] for match in matches)
