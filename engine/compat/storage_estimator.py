"""The storage estimator of hierarchical learning, by the names of its guide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.compat.alias import Alias, Amount
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.storage import PatternLevel, PatternQuestion, PatternStorage, pattern_storage
from capacity_tui.engine.units import GIGA, MEGA

TOKENS = 500
"""Tokens of a sample, where nobody says."""


@dataclass(frozen=True, slots=True)
class LevelEstimate:
    """What one level of patterns takes; a megabyte is a million bytes, and repeated patterns are counted each time.

    Attributes:
        level: all that is known of it.
    """

    level: PatternLevel

    node_name = Alias[str]("level.name")
    total_patterns = Amount("level.samples")
    unique_patterns = Amount("level.unique.value")
    deduplication_rate = Amount("level.deduplication")
    storage_bytes = Amount("level.bytes.value")
    storage_mb = Amount("level.bytes.value", MEGA)
    storage_gb = Amount("level.bytes.value", GIGA)

    def frequency(self, rank: float) -> float:
        """Return how often the pattern of a rank occurs, by Zipf's law."""
        return float(self.level.frequency(rank))


@dataclass(frozen=True, slots=True)
class StorageBreakdown:
    """What all levels take, with ``raw_storage_bytes`` before what the store adds.

    Attributes:
        storage: the whole answer, with ranges and with what the law expects.
        level_estimates: by level.
    """

    storage: PatternStorage
    level_estimates: tuple[LevelEstimate, ...]

    total_storage_bytes = Amount("storage.total_bytes.value")
    total_storage_mb = Amount("storage.total_bytes.value", MEGA)
    total_storage_gb = Amount("storage.total_bytes.value", GIGA)
    total_unique_patterns = Amount("storage.unique")
    raw_storage_bytes = Amount("storage.raw_bytes")


class StorageEstimator:
    """Estimates what patterns of a corpus take to keep.

    Args:
        num_nodes: levels of the hierarchy.
        chunk_size: tokens of a pattern of the first level.
        zipf_alpha: exponent of the law of frequencies.
        overhead: what the store adds, as a share of the patterns; by default what stores usually add.
        deduplication: share of repeated patterns by level; by default the rule of hierarchical learning.
    """

    def __init__(
        self,
        num_nodes: int = 4,
        chunk_size: int = 15,
        zipf_alpha: float = 1.0,
        overhead: float | None = None,
        deduplication: Sequence[float] = (),
    ) -> None:
        self._question = PatternQuestion(
            samples=1.0,
            tokens=float(TOKENS),
            chunk=chunk_size,
            levels=num_nodes,
            alpha=(zipf_alpha,),
            deduplication=tuple(deduplication),
            overhead=overhead,
        )
        self._question.check()

    def estimate_storage(self, num_samples: float, avg_tokens_per_sample: float = TOKENS) -> StorageBreakdown:
        """Return what a corpus takes.

        Raises:
            PlanError: a number is out of its range.
        """
        asked = replace(self._question, samples=float(num_samples), tokens=float(avg_tokens_per_sample))
        storage = pattern_storage(asked, load_catalog())
        return StorageBreakdown(storage, tuple(LevelEstimate(level) for level in storage.levels))

    def calibrate(
        self,
        num_samples: float,
        unique_patterns: Sequence[float],
        storage_bytes: float | None = None,
        avg_tokens_per_sample: float = TOKENS,
    ) -> StorageEstimator:
        """Return an estimator that gives what a run came to, and larger corpora likewise.

        Args:
            num_samples: that were learnt.
            unique_patterns: different ones that were stored, by level from the first on.
            storage_bytes: what they take on disk; None where that is not known.
            avg_tokens_per_sample: tokens of a sample of the run.

        Raises:
            PlanError: more patterns were stored than there are, or a number is out of its range.
        """
        ran = self.estimate_storage(num_samples, avg_tokens_per_sample)
        for level, stored in zip(ran.level_estimates, unique_patterns, strict=False):
            if not 0 < stored <= level.total_patterns:
                detail = f"{level.node_name}: {stored:g} of {level.total_patterns:g}"
                raise PlanError("cannot have stored so many patterns", detail, "give different patterns by level")
        learnt = zip(ran.level_estimates, unique_patterns, strict=False)
        deduplication = tuple(1 - stored / level.total_patterns for level, stored in learnt)
        shared = replace(self._question, deduplication=deduplication or self._question.deduplication)
        calibrated = StorageEstimator._of(shared)
        if storage_bytes is None:
            return calibrated
        raw = calibrated.estimate_storage(num_samples, avg_tokens_per_sample).raw_storage_bytes
        return StorageEstimator._of(replace(shared, overhead=max(0.0, storage_bytes / raw - 1)))

    @classmethod
    def _of(cls, question: PatternQuestion) -> StorageEstimator:
        estimator = cls()
        estimator._question = question
        return estimator
