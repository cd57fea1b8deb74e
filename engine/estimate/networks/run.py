"""A network's run reduced to numbers: what memory and time formulas read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Framework
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.numerics import Numerics, training_numerics
from capacity_tui.engine.estimate.timing.attention import AttentionRates, attention_rates, fastest_kernel
from capacity_tui.engine.estimate.transformer.launches import launch_seconds
from capacity_tui.engine.estimate.transformer.resolve import framework_row
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import Checkpointing, checkpointing
from capacity_tui.engine.models.networks import Layer, LayerList
from capacity_tui.engine.models.transformer import Matrix
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import BITS_PER_BYTE, FP16_BITS, FP32_BYTES, GIGA, MICRO


@dataclass(frozen=True, slots=True)
class Shares:
    """What kernels of networks reach; see profiles/coefficients.yaml.

    Attributes:
        full: of the peak that a convolution would reach whose operands are always there.
        half_columns: output channels at which a convolution reaches half its rate.
        fewer_products: gain of convolutions of 3x3 windows outside the matrix units.
        depthwise_stream: bandwidth of depthwise convolutions over that of large copies.
        unit_elements: elements a second that a processor works through in norms, activations and sums.
    """

    full: Number
    half_columns: Number
    fewer_products: Number
    depthwise_stream: Number
    unit_elements: Number


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
        reach_given: the same where the plan gives it.
        vector_peak: the dense peak outside the matrix units.
        reach: share of it that large matrix products sustain.
        attention: what fused attention reaches.
        shares: what kernels reach.
        launch_seconds: host time of a launch.
        reordered: share of the convolutions' images that are brought into another order and back.
        mixed: whether norms are computed in 4 bytes though activations have fewer.
        compiled: whether a graph compiler writes the kernels.
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
    reach_given: float | None
    vector_peak: float
    attention: AttentionRates
    shares: Shares
    reordered: Number
    mixed: bool
    compiled: bool
    launch_seconds: Number
    offload_optimizer: float

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Weight matrices of the products; convolutions as they are unfolded."""
        return tuple(
            Matrix(layer.name, float(layer.depth), float(layer.columns), float(layer.groups))
            for layer in self.network.layers
            if layer.kind == "product" and not layer.frozen
        )

    def element_bytes(self, layer: Layer) -> float:
        """Bytes of the numbers that a layer bound by memory moves."""
        return FP32_BYTES if layer.wide and self.mixed else self.numerics.element_bytes

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


def network_run(plan: Plan, network: LayerList, cluster: Cluster, catalog: Catalog, at_once: int = 1) -> NetworkRun:
    """Return the run of a plan whose fields are all settled.

    Args:
        plan: settled.
        network: its layers.
        cluster: what it runs on.
        catalog: facts.
        at_once: passes that a served sample makes of each pass of the network.

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
        place = Place(field=Key.TRAINING_CHECKPOINTING)
        raise PlanError("not for this kind of model", training.checkpointing, "allowed: none, full", place)
    row = framework_row(plan, catalog)
    numerics, precision = training_numerics(training, row, catalog), str(training.precision)
    if not trains:
        stored = catalog.quantizations.find(plan.inference.weights_format)
        precision = stored.compute
        wide = catalog.precisions.find(catalog.precisions.find(precision).wide)
        weight_bytes = (stored.bits_per_weight or FP16_BITS) / BITS_PER_BYTE
        numerics = replace(numerics, weight_bytes=weight_bytes, element_bytes=wide.activation_bytes)
    device = cluster.device
    compiled_launches = catalog.coefficients["compiled-launches"].value if training.compile else 1.0
    batch = float(training.micro_batch if trains else plan.inference.batch * at_once)
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
        peak=device.peak(precision),
        reach=plan.hardware.efficiency or device.gemm_reach(precision),
        reach_given=plan.hardware.efficiency,
        vector_peak=device.peak("fp32"),
        attention=attention_rates(fastest_kernel(device, catalog), device, catalog),
        shares=_shares(catalog),
        reordered=_reordered(plan, precision, device, catalog),
        mixed=trains and bool(row.fp32_parameters) and not training.compile,
        compiled=training.compile,
        launch_seconds=launch_seconds(row.launch_us * MICRO, compiled_launches, 1.0),
        offload_optimizer=float(parallel.offload in {"optimizer", "parameters"}) * device.has_own_memory,
    )


def _shares(catalog: Catalog) -> Shares:
    held = catalog.coefficients
    return Shares(
        full=held["convolution-full-share"].value,
        half_columns=held["convolution-half-columns"].value,
        fewer_products=held["convolution-fewer-products"].value,
        depthwise_stream=held["depthwise-stream"].value,
        unit_elements=held["network-unit-elements"].value * GIGA,
    )


def _reordered(plan: Plan, precision: str, device: Device, catalog: Catalog) -> Number:
    """Return the share of images that convolutions bring into another order; none where no matrix units want one."""
    if device.peak(precision) <= device.peak("fp32"):
        return 0.0
    row = f"reordered-{plan.training.memory_format or 'unsaid'}".replace("_", "-")
    return catalog.coefficients[row].value
