"""The sequences of an optimizer step where a plan leaves them open: a property of the job, not of its layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import ResolvedPlan
from capacity_tui.engine.models.transformer import TransformerShape, count_parameters
from capacity_tui.engine.numeric import Flags, Number
from capacity_tui.engine.plan import AUTO, Plan


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """Sequences of a step that a layout takes where the plan gives none.

    Attributes:
        usual: sequences of a step, whatever the layout.
        most: more than these nobody is known to use for a model of this size.
    """

    usual: float
    most: float

    def of(self, replicas: Number, micro_batch: Number) -> Number:
        """Return the sequences of a step: the usual ones, or one micro-batch for each replica where that is more."""
        return np.maximum(self.usual, replicas * micro_batch)

    def holds(self, replicas: Number, micro_batch: Number) -> Flags:
        """Return where a step is a whole number of micro-batches for each replica, and no larger than people use."""
        together = np.asarray(replicas * micro_batch)
        return np.asarray((np.mod(self.of(replicas, micro_batch), together) == 0) & (together <= self.most))

    def at_least(self, sequences: float) -> OpenBatch:
        """Return the same with room for so many sequences, where a plan's own sizes leave no fewer."""
        return self if sequences <= self.most else OpenBatch(max(self.usual, sequences), sequences)

    def multiple_of(self, sequences: float) -> OpenBatch:
        """Return the same with as many whole steps of so many sequences as its usual ones hold."""
        return OpenBatch(sequences * max(1.0, self.usual // sequences), self.most)


def open_batch(
    shape: TransformerShape, devices: float, seq_len: float, replica_batch: float, catalog: Catalog
) -> OpenBatch:
    """Return the sequences of a step for a job: some for each device, up to what runs of that size use.

    They are a multiple of the devices, of half of them, of a quarter ..., so that layouts divide them.

    Args:
        replica_batch: sequences for each device.
    """
    most = max(1.0, published_tokens(shape, catalog) // seq_len)
    unit = devices
    while unit > most and unit % 2 == 0:
        unit /= 2
    usual = min(replica_batch * devices, max(unit, most // unit * unit))
    return OpenBatch(usual, max(usual, most))


def expected_batch(plan: Plan, resolved: ResolvedPlan, replica_batch: float, catalog: Catalog) -> float | None:
    """Return the sequences of a step as far as they are known before a layout is.

    Args:
        replica_batch: sequences for each device, where the plan leaves the batch open.
    """
    given, shape = plan.training.global_batch, resolved.shape
    if given != AUTO or shape is None:
        return float(given) if isinstance(given, int) else None
    devices, length = float(np.max(np.asarray(resolved.cluster.devices))), float(resolved.plan.training.seq_len)
    return open_batch(shape, devices, length, replica_batch, catalog).usual


def published_tokens(shape: TransformerShape, catalog: Catalog) -> float:
    """Return the largest batch, in tokens, of published runs of models as large as this or smaller.

    For a model that is smaller than all of them it is the batch of the smallest.
    """
    size, mixture = float(count_parameters(shape).total), bool(shape.experts)
    rows = [row for row in catalog.training_batches.values() if row.mixture == mixture]
    smallest = min(rows, key=lambda row: row.parameters)
    return max((row.tokens_per_step for row in rows if row.parameters <= size), default=smallest.tokens_per_step)
