"""What is asked of a store of patterns: how much text, how it is cut, and what is taken for granted of it."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Assumption
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage.zipf import MOST_KINDS, kinds_of_corpus

MOST_LEVELS = 20
HOLDS = ("chunks", "paragraphs", "chapters", "books")
_LARGEST = 1e18
_EXPONENTS = (0.05, 5.0)


@dataclass(frozen=True, slots=True)
class PatternQuestion:
    """A corpus, how it is cut into patterns, and what is known of them; what is not given the catalogue assumes.

    Where several values are for several levels, the last holds for all further ones; of deduplication the rule of
    decay goes on from the last.

    Attributes:
        samples: texts; an array for several sizes of a corpus at once.
        tokens: of a sample.
        chunk: tokens of a pattern of the first level.
        levels: how many there are.
        fan_in: patterns of a level in one of the next; None for as many as a chunk has tokens.
        alpha: exponent of the law, by level.
        deduplication: share of the patterns that repeat an earlier one, by level.
        decay: share by which that falls with each further level.
        overhead: what the store adds to the documents, as a share of them.
        pattern_bytes: bytes of a pattern, by level.
        kinds: how many different patterns there could be, by level; by default as many as leave the rarest one
            occurrence.
    """

    samples: Number
    tokens: Number
    chunk: Number = 15
    levels: int = 4
    fan_in: Number | None = None
    alpha: tuple[float, ...] = ()
    deduplication: tuple[float, ...] = ()
    decay: float | None = None
    overhead: float | None = None
    pattern_bytes: tuple[float, ...] = ()
    kinds: tuple[float, ...] = ()

    def check(self) -> None:
        """Refuse what makes no sense; raises PlanError if a number is out of its range."""
        if not 1 <= self.levels <= MOST_LEVELS:
            raise PlanError("not a number of levels", str(self.levels), f"from 1 to {MOST_LEVELS}")
        ranges: dict[str, tuple[float, float]] = {
            "samples": (1, _LARGEST),
            "tokens": (1, _LARGEST),
            "chunk": (1, _LARGEST),
            "fan_in": (2, _LARGEST),
            "alpha": _EXPONENTS,
            "deduplication": (0, 1),
            "decay": (0, 1),
            "overhead": (0, 100),
            "pattern_bytes": (1, _LARGEST),
            "kinds": (1, MOST_KINDS),
        }
        for entry in fields(self):
            low, high = ranges.get(entry.name, (0, np.inf))
            value = getattr(self, entry.name)
            if value is None or not np.size(value):
                continue
            array = np.asarray(value, dtype=float)
            if not np.all((array >= low) & (array <= high)):
                raise PlanError(f"{entry.name.replace('_', ' ')} out of range", f"{value}", f"from {low:g} to {high:g}")


@dataclass(frozen=True)
class Known:
    """What holds for a question, given or assumed, each with the least and the most it may be."""

    question: PatternQuestion  # what is given
    catalog: Catalog  # what is assumed

    def assumed(self, key: str) -> Assumption:
        """Return an assumption by its id."""
        return self.catalog.pattern_storage[key]

    def range_of(self, key: str) -> tuple[float, float]:
        """Return the least and the most of an assumption; twice its value where it has no range."""
        row = self.assumed(key)
        return row.low or row.value, row.high or row.value

    def alpha(self, level: int) -> float:
        """Return the exponent of a level."""
        given = self.question.alpha
        return given[min(level, len(given) - 1)] if given else self.assumed("alpha").value

    def alpha_range(self, level: int) -> tuple[float, float]:
        """Return the least and the largest exponent of a level."""
        return (self.alpha(level),) * 2 if self.question.alpha else self.range_of("alpha")

    def kinds(self, level: int, occurrences: Number, alpha: float) -> Number:
        """Return how many different patterns there could be at a level."""
        given = self.question.kinds
        if given:
            return np.full(np.shape(occurrences), given[min(level, len(given) - 1)])
        return kinds_of_corpus(occurrences, alpha)

    @cached_property
    def first_deduplication(self) -> float:
        """The share of the first level's patterns that repeat an earlier one."""
        given = self.question.deduplication
        return given[0] if given else self.assumed("deduplication").value

    @cached_property
    def decay(self) -> float:
        """The share by which deduplication falls with each level."""
        given = self.question.decay
        return self.assumed("deduplication-decay").value if given is None else given

    @cached_property
    def overhead_parts(self) -> dict[str, float]:
        """What indexes, padding and the store itself take, as shares of the documents; a given sum is split alike."""
        parts = {part: self.assumed(f"{part}-overhead").value for part in ("index", "padding", "internal")}
        given, usual = self.question.overhead, sum(parts.values())
        return parts if given is None else {part: given * share / usual for part, share in parts.items()}

    @cached_property
    def overhead(self) -> float:
        """What the store adds to the documents, as a share of them."""
        given = self.question.overhead
        return sum(self.overhead_parts.values()) if given is None else given

    @cached_property
    def overhead_range(self) -> tuple[float, float]:
        """The least and the most of it."""
        if self.question.overhead is not None:
            return self.overhead, self.overhead
        low, high = (sum(self.range_of(f"{part}-overhead")[end] for part in self.overhead_parts) for end in (0, 1))
        return low, high
