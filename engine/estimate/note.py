"""A sentence of advice or warning beside an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A recommendation or warning; ``saves`` is computed by estimating again.

    Attributes:
        code: stable name for scripts.
        title: what to do or to know.
        detail: why, with the figures.
        saves: what changes, by result key: new value minus old.
        change: plan fields that bring it about, with their new values.
    """

    code: str
    title: str
    detail: str
    saves: Mapping[str, float] | None = None
    change: Mapping[str, object] | None = None
