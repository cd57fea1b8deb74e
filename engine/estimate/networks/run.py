"""A network's run reduced to numbers: what memory and time formulas read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.software import Framework
from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.numerics import Numerics, training_numerics
from capacity_tui.engine.estimate.transformer.resolve import framework_row
from capacity_tui.engine.models.checkpointing import Checkpointing, checkpointing
from capacity_tui.engine.models.networks.layers import LayerList
from capacity_tui.engine.models.transformer.matrices import Matrix
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.units import BITS_PER_BYTE, FP16_BITS


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """One step of training, or one batch of inference.

    Attributes:
        network: the layers.
        cluster: what it runs on.
        framework: what the framework does.
        numerics: bytes of its numbers.
        trains: whether there is a backward pass.
        micro_batch: samples a device works on at once.
        global_batch: samples of a step over all devices.
        dp: devices that share the samples.
        zero: sharding stage 0 to 3.
        shard: devices in one sharding group.
        kept: share of the activations that are alive at the peak.
        recomputed: whether the forward pass runs again in the backward pass.
        peak: dense peak of the type used, FLOP/s.
        reach: share of it that large matrix products sustain.
        compiled: 1 with a graph compiler.
        offload_optimizer: 1 where the optimizer's states are kept in host memory.
    """

    network: LayerList
    cluster: Cluster
    framework: Framework
    numerics: Numerics
    trains: bool
    micro_batch: float
    global_batch: float
    dp: float
    zero: float
    shard: float
    kept: float
    recomputed: bool
    peak: float
    reach: float
    compiled: float
    offload_optimizer: float

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Weight matrices of the products; convolutions as they are unfolded."""
        return tuple(
            Matrix(layer.name, float(layer.depth), float(layer.columns), float(layer.groups))
            for layer in self.network.layers
            if layer.kind == "product"
        )

    @property
    def micro_batches(self) -> float:
        """Micro-batches one device runs for a step."""
        return max(1.0, -(-self.global_batch // (self.micro_batch * self.dp)))


@equation(
    "kept = min(1, 2 / sqrt(layers))",
    unit="share",
    source="Chen et al. 2016: the borders of as many segments as a segment has layers, and one segment",
)
def checkpointed_share(layers: Number) -> Number:
    """Share of the activations alive when every segment is computed again.

    Args:
        layers: layers of the network.
    """
    return np.minimum(1.0, 2.0 / np.sqrt(layers))


def network_run(plan: Plan, network: LayerList, cluster: Cluster, catalog: Catalog) -> NetworkRun:
    """Return the run of a plan whose fields are all settled.

    Raises:
        PlanError: a layout or a checkpointing that networks of layers do not have.
    """
    training, parallel = plan.training, plan.parallelism
    for name in ("tp", "pp", "cp", "ep"):
        if int(getattr(parallel, name)) > 1:
            place = Place(field=f"parallelism.{name}")
            raise PlanError("this kind of model runs data-parallel only", hint="leave it at 1", place=place)
    trains = plan.task != "infer"
    recomputed = checkpointing(training.checkpointing, catalog)
    recomputes = trains and recomputed == Checkpointing(full_layers=1.0)
    if trains and not recomputes and recomputed != Checkpointing():
        place = Place(field="training.checkpointing")
        raise PlanError("not for this kind of model", training.checkpointing, "allowed: none, full", place)
    row = framework_row(plan, catalog)
    numerics, precision = training_numerics(training, row, catalog), str(training.precision)
    if not trains:
        stored = catalog.quantizations.find(plan.inference.weights)
        precision = stored.compute
        wide = catalog.precisions.find(catalog.precisions.find(precision).wide)
        weight_bytes = (stored.bits_per_weight or FP16_BITS) / BITS_PER_BYTE
        numerics = replace(numerics, weight_bytes=weight_bytes, element_bytes=wide.activation_bytes)
    batch = float(training.micro_batch if trains else plan.inference.batch)
    dp = float(parallel.dp or 1)
    return NetworkRun(
        network=network,
        cluster=cluster,
        framework=row,
        numerics=numerics,
        trains=trains,
        micro_batch=batch,
        global_batch=float(training.global_batch or 1) if trains else batch * dp,
        dp=dp,
        zero=float(parallel.zero or 0),
        shard=float(parallel.shard or 1),
        kept=float(checkpointed_share(len(network.layers))) if recomputes else float(trains),
        recomputed=recomputes,
        peak=cluster.device.peak(precision),
        reach=plan.hardware.efficiency or cluster.device.gemm_reach(precision),
        compiled=float(training.compile),
        offload_optimizer=float(parallel.offload in {"optimizer", "parameters"}),
    )
