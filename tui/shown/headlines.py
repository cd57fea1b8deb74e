"""What the answer strip says of a plan, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory of the fullest device.

    Attributes:
        text: what is used of what there is, such as ``56.0/79.6 GiB``.
        share: the same as a number, None where it is not known how much there is.
    """

    text: str
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of the answer strip, which is always in sight.

    Attributes:
        text: the figure with the words it needs, such as ``$82`` or ``first token 56 ms``.
        interval: its range with units, or empty.
        rank: 0 where it is never left out for want of room; of the others the highest goes first.
    """

    text: str
    interval: str = ""
    rank: int = 0
