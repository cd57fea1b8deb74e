"""The optimizer's step of a transformer: kernels and communication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate.timing.collectives import all_to_all_seconds
from capacity_tui.engine.estimate.timing.host import host_link_bandwidth, optimizer_bandwidth
from capacity_tui.engine.estimate.timing.newton_schulz import WIDTH, iterations
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Collective, Operator
from capacity_tui.engine.models.transformer import Matrix, layer_matrices
from capacity_tui.engine.numeric import Number, any_true, where

WHOLE_MATRICES = (
    "Newton-Schulz iterations on whole matrices, shared out among the ranks that split a weight; embedding, head and "
    "norms by AdamW"
)


@dataclass(frozen=True, slots=True)
class Shared:
    """Matrices of one stage that a group of ranks shares out.

    Attributes:
        matrices: the matrices of the mean layer.
        ranks: ranks that split each of them, and work on whole ones in turn.
    """

    matrices: tuple[Matrix, ...]
    ranks: Number

    def share(self, layers: Number) -> Number:
        """Share of the matrices of so many layers that the busiest rank works on: one at least."""
        number: Number = sum((matrix.number * layers for matrix in self.matrices), start=0.0)
        return np.maximum(1.0 / self.ranks, 1.0 / np.maximum(number, 1.0))

    def weights(self, layers: Number) -> Number:
        """Weights of the matrices of so many layers."""
        each = (matrix.number * matrix.rows * matrix.columns for matrix in self.matrices)
        return layers * sum(each, start=0.0)


def optimizer_operators(run: TransformerRun) -> Iterator[Operator]:
    """Read gradients and states, write parameters and states, once a step; Muon multiplies matrices before."""
    device = run.cluster.device
    shard = where(run.zero >= 1, run.shard, 1.0)
    expert_shard = where(run.zero >= 1, np.minimum(run.shard, run.expert_ranks), 1.0)
    dense = run.layers_per_stage * run.stacked_parameters_per_layer / run.tp
    experts = run.layers_per_stage * run.expert_parameters_per_layer / (run.ep * run.etp)
    inner = (dense / shard + experts / expert_shard) * run.trained_share
    outer = run.outer_parameters / run.tp / np.minimum(run.pp, 2.0) / shard * run.trained_ends
    offloaded = np.asarray(run.offload_optimizer) > 0
    # The processor that updates offloaded states is bound by its memory.
    arithmetic = where(offloaded, np.inf, device.peak("fp32"))
    bandwidth = optimizer_bandwidth(run.cluster, run.offload_optimizer)
    yield Operator("optimizer", "optimizer", "step", "step", (inner + outer) * run.optimizer_flops,
                   inner * run.optimizer_traffic + outer * run.outer_traffic, arithmetic, bandwidth)  # fmt: skip
    if any_true(offloaded):
        # Gradients go down and parameters come up once a step, before and after the update.
        crossing = where(offloaded, (inner + outer) * (run.gradient_bytes + run.element_bytes), 0.0)
        yield Operator("gradients to the host and parameters back", "optimizer", "step", "step", 0.0, crossing, 1.0,
                       host_link_bandwidth(device))  # fmt: skip
    for shared in _shared(run):
        share = shared.share(run.layers_per_stage)
        for matrix in shared.matrices:
            if any_true(matrix.number * matrix.columns > 0):
                runs = run.newton_schulz_steps * matrix.number * run.layers_per_stage * share
                yield from iterations(matrix.name, matrix.rows, matrix.columns, runs, device)


def optimizer_collectives(run: TransformerRun) -> Iterator[Collective]:
    """Slices of matrices travel to the rank that works on the whole, and slices of the update back."""
    for shared in _shared(run):
        if any_true(shared.ranks > 1):
            payload = WIDTH * shared.weights(run.layers_per_stage) / shared.ranks
            seconds = all_to_all_seconds(payload, shared.ranks, 1.0, run.cluster)
            trips = where(run.newton_schulz_steps > 0, 2.0, 0.0)
            yield Collective("matrices made whole for Newton-Schulz", "data_parallel", seconds, trips, per_step=True,
                             bytes=payload, group=shared.ranks)  # fmt: skip


def _shared(run: TransformerRun) -> Iterator[Shared]:
    """Yield the matrices that are orthogonalized; those of adapters are too narrow to take time."""
    if not any_true(run.newton_schulz_steps > 0) or any_true(run.frozen_bytes > 0):
        return
    sharded = run.zero >= 1
    matrices = layer_matrices(run.shape)
    dense, experts = (tuple(matrix for matrix in matrices if matrix.routed is routed) for routed in (False, True))
    yield Shared(dense, run.tp * where(sharded, run.shard, 1.0))
    if any_true(run.shape.experts > 0):
        group = where(sharded, np.minimum(run.shard, run.expert_ranks), 1.0)
        yield Shared(experts, run.ep * run.etp * group)
