"""The optimizer's step of a transformer: kernels and communication."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.estimate.run import WIDTH, matrix_operators, update_operators
from capacity_tui.engine.estimate.timing.collectives import all_to_all_seconds
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Collective, Operator
from capacity_tui.engine.models.transformer import Matrix, layer_matrices
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.record import dataclass

WHOLE_MATRICES = (
    "Newton-Schulz iterations on whole matrices, shared out among the ranks that split a weight; embedding, head and "
    "norms by AdamW"
)


@dataclass(frozen=True, slots=True)
class Shared:
    """Matrices of one stage that a group of ranks shares out."""

    matrices: tuple[Matrix, ...]  # the matrices of the mean layer
    ranks: Number  # ranks that split each of them, and work on whole ones in turn

    def share(self, layers: Number) -> Number:
        """Share of the matrices of so many layers that the busiest rank works on: one at least."""
        number: Number = sum((matrix.number * layers for matrix in self.matrices), start=0.0)
        return np.maximum(1.0 / self.ranks, 1.0 / np.maximum(number, 1.0))

    def weights(self, layers: Number) -> Number:
        """Weights of the matrices of so many layers."""
        sizes = (matrix.number * matrix.rows * matrix.columns for matrix in self.matrices)
        return layers * sum(sizes, start=0.0)


def optimizer_operators(run: TransformerRun) -> Iterator[Operator]:
    """Yield the kernels of the optimizer's step: element by element, and on whole matrices."""
    layout = run.layout
    shard = where(layout.zero >= 1, layout.shard, 1.0)
    expert_shard = where(layout.zero >= 1, np.minimum(layout.shard, run.expert_ranks), 1.0)
    dense = run.layers_per_stage * run.stacked_parameters_per_layer / layout.tp
    experts = run.layers_per_stage * run.expert_parameters_per_layer / (layout.ep * layout.etp)
    inner = (dense / shard + experts / expert_shard) * run.trained_share
    outer = run.outer_parameters / layout.tp / np.minimum(layout.pp, 2.0) / shard * run.trained_ends
    yield from update_operators(run.numerics, inner, outer, run.cluster, layout.offload_optimizer)
    for shared in _shared(run):
        times = run.layers_per_stage * shared.share(run.layers_per_stage)
        yield from matrix_operators(run.numerics.optimizer, shared.matrices, times, run.cluster.device)


def optimizer_collectives(run: TransformerRun) -> Iterator[Collective]:
    """Slices of matrices travel to the rank that works on the whole, and slices of the update back."""
    for shared in _shared(run):
        if any_true(shared.ranks > 1):
            payload = WIDTH * shared.weights(run.layers_per_stage) / shared.ranks
            seconds = all_to_all_seconds(payload, shared.ranks, 1.0, run.cluster)
            trips = where(run.numerics.optimizer.multiplies_matrices, 2.0, 0.0)
            yield Collective(
                "matrices made whole for Newton-Schulz",
                "data_parallel",
                seconds,
                trips,
                per_step=True,
                bytes=payload,
                group=shared.ranks,
            )


def _shared(run: TransformerRun) -> Iterator[Shared]:
    """Yield the matrices that are orthogonalized; those of adapters are too narrow to take time."""
    layout = run.layout
    if not any_true(run.numerics.optimizer.multiplies_matrices) or any_true(run.adapter.frozen_bytes > 0):
        return
    sharded = layout.zero >= 1
    matrices = layer_matrices(run.shape)
    dense, experts = (tuple(matrix for matrix in matrices if matrix.routed is routed) for routed in (False, True))
    yield Shared(dense, layout.tp * where(sharded, layout.shard, 1.0))
    if any_true(run.shape.experts > 0):
        group = where(sharded, np.minimum(layout.shard, run.expert_ranks), 1.0)
        yield Shared(experts, layout.ep * layout.etp * group)
