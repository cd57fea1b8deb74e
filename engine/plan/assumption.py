"""A value of a plan that nobody gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that nobody gave.

    Attributes:
        key: field of the plan.
        value: what was taken; None where nothing can be.
        why: why this, and how to say another where that is not plain.
        moves: result keys of the figures that it moves most.
    """

    key: str
    value: object
    why: str
    moves: tuple[str, ...] = ()
