"""A network's run reduced to numbers: what memory and time formulas read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Framework
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.run import KernelRates, Numerics, RunData, RunLayout, run_layout, training_numerics
from capacity_tui.engine.estimate.timing.roofline import attention_rates, fastest_kernel
from capacity_tui.engine.estimate.transformer.auxiliary_kernels import launch_seconds
from capacity_tui.engine.estimate.transformer.finetuning import Unpacking, base_format, frozen_bytes, unpacking_of
from capacity_tui.engine.estimate.transformer.resolve import framework_row
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import Checkpointing, checkpointing
from capacity_tui.engine.models.networks import Layer, LayerList, Surroundings, adapter_parameters
from capacity_tui.engine.models.transformer import Matrix
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import FULL, UNQUANTIZED, Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import BITS_PER_BYTE, FP16_BITS, FP32_BYTES, GIGA, MICRO

_METHOD, _ADAPTERS = Place(field=Key.TRAINING_METHOD), ("lora", "qlora")


@dataclass(frozen=True, slots=True)
class Shares:
    """What kernels of networks reach; see profiles/coefficients.yaml."""

    full: Number  # of the peak that a convolution would reach whose operands are always there
    half_columns: Number  # output channels at which a convolution reaches half its rate
    fewer_products: Number  # gain of convolutions of 3x3 windows outside the matrix units
    depthwise_stream: Number  # bandwidth of depthwise convolutions over that of large copies
    unit_elements: Number  # elements a second that a processor works through in norms, activations and sums


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """One step of training, or one batch of inference."""

    network: LayerList  # the layers
    cluster: Cluster
    software: Framework  # what the framework does
    # bytes of its numbers and what the optimizer does with them; states as the mean of all parameters
    numerics: Numerics
    layout: RunLayout  # how it is spread over the devices; data-parallel only
    data: RunData  # samples of a step
    kernels: KernelRates  # what the device's kernels reach
    shares: Shares  # what kernels of networks reach
    trains: bool  # whether there is a backward pass
    adapters: float  # parameters of adapters, which alone are trained; 0 where the network itself is
    frozen_bytes: Number  # bytes of a parameter below adapters
    kept: float  # share of the activations that are alive at the peak
    recomputed: bool  # whether the forward pass runs again in the backward pass
    reach_given: float | None  # share of the peak that large products sustain, where the plan gives it
    reordered: Number  # share of the convolutions' images that are brought into another order and back
    mixed: bool  # whether norms are computed in 4 bytes though activations have fewer
    compiled: bool  # whether a graph compiler writes the kernels
    launch_seconds: Number  # host time of a launch
    unpacking: Unpacking  # what unpacking quantized weights takes in each pass
    aside: tuple[NetworkRun, ...] = ()  # runs of networks around this one, once a batch of answers
    waits_on_host: bool = False  # whether of all of them only the one at work is on the device

    @property
    def weight_bytes(self) -> Number:
        """Bytes of a parameter of the network on the device; a frozen one has the type of activations or its own."""
        return self.frozen_bytes if self.adapters else self.numerics.weight_bytes

    @property
    def stored_bytes(self) -> Number:
        """Bytes of the weights of the network and of those around it."""
        return float(self.network.parameters) * self.weight_bytes + sum(part.stored_bytes for part in self.aside)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Weight matrices of the products."""
        return product_matrices(self.network)

    @property
    def trained_parameters(self) -> float:
        """Parameters of which there are gradients."""
        return self.adapters or float(self.network.trained_parameters)

    def element_bytes(self, layer: Layer) -> float:
        """Bytes of the numbers that a layer bound by memory moves."""
        return FP32_BYTES if layer.wide and self.mixed else self.numerics.element_bytes

    @property
    def micro_batches(self) -> Number:
        """Micro-batches one device runs for a step."""
        return np.maximum(1.0, np.ceil(self.data.global_batch / (self.data.micro_batch * self.layout.dp)))


def _adapters(plan: Plan, network: LayerList) -> int:
    """Return the parameters of a plan's adapters; 0 where all of the network is trained."""
    training = plan.training
    if training.method in (None, FULL):
        return 0
    adapter = training.adapter if training.method in _ADAPTERS else None
    adapters = 0 if adapter is None else adapter_parameters(network, adapter.rank)
    if not adapters:
        hint = "lora and qlora are, on the attention of networks that have some; full trains all weights"
        raise PlanError("adapters are not modelled for this kind of model", training.method, hint, _METHOD)
    return adapters


def product_matrices(network: LayerList) -> tuple[Matrix, ...]:
    """Return the weight matrices of a network's products that are trained; convolutions as they are unfolded."""
    return tuple(
        Matrix(layer.name, float(layer.depth), float(layer.columns), float(layer.groups))
        for layer in network.layers
        if layer.kind == "product" and not layer.frozen
    )


checkpointed_share = formula()  # Share of the activations alive when every segment is computed again


def network_run(
    plan: Plan,
    network: LayerList,
    cluster: Cluster,
    catalog: Catalog,
    at_once: int = 1,
    around: Surroundings | None = None,
) -> NetworkRun:
    """Return the run of a plan whose fields are all settled.

    Args:
        plan: settled.
        at_once: passes that a served sample makes of each pass of the network.
        around: what runs once for a served sample.

    Raises:
        PlanError: a layout or a checkpointing that networks of layers do not have.
    """
    training, parallel = plan.training, plan.parallelism
    for name in ("tp", "pp", "cp", "ep"):
        if int(getattr(parallel, name)) > 1:
            place = Place(field=f"parallelism.{name}")
            raise PlanError("this kind of model runs data-parallel only", hint="leave it at 1", place=place)
    trains = not plan.is_inference
    adapters = _adapters(plan, network) if trains else 0
    recomputed = checkpointing(training.checkpointing, catalog)
    recomputes = trains and recomputed == Checkpointing(full_layers=1.0)
    if trains and not recomputes and recomputed != Checkpointing():
        place = Place(field=Key.TRAINING_CHECKPOINTING)
        raise PlanError("not for this kind of model", training.checkpointing, "allowed: none, full", place)
    row = framework_row(plan, catalog)
    on_processor = cluster.device.is_processor
    numerics = training_numerics(training, row, catalog, on_processor=on_processor)
    precision, base = str(training.precision), base_format(training) if trains else plan.inference.weights_format
    if not trains:
        numerics, precision = _served(numerics, base or UNQUANTIZED, catalog)
    else:
        matrices = () if adapters else product_matrices(network)
        numerics = numerics.averaged(matrices, float(adapters or network.trained_parameters))
    device, element_bytes = cluster.device, numerics.element_bytes
    frozen = frozen_bytes(base, element_bytes, catalog)
    unpacked = base if trains or catalog.precisions.find(precision).wide == precision else None
    compiled_launches = catalog.coefficients["compiled-launches"].value if training.compile else 1.0
    batch = float(training.micro_batch if trains else plan.inference.batch * at_once)
    layout = run_layout(parallel, device)
    run = NetworkRun(
        network=network,
        cluster=cluster,
        software=row,
        numerics=numerics,
        layout=layout,
        data=RunData(batch, float(training.global_batch or 1) if trains else batch * layout.dp),
        kernels=_kernels(plan, precision, device, catalog),
        shares=_shares(catalog),
        trains=trains,
        adapters=float(adapters),
        frozen_bytes=frozen,
        kept=float(checkpointed_share(len(network.layers))) if recomputes else float(trains),
        recomputed=recomputes,
        reach_given=plan.hardware.efficiency,
        reordered=_reordered(plan, precision, device, catalog),
        mixed=trains and bool(row.fp32_parameters) and not training.compile,
        compiled=training.compile,
        launch_seconds=launch_seconds(row.launch_us * MICRO, compiled_launches, 1.0),
        unpacking=unpacking_of(unpacked, frozen, element_bytes, catalog),
    )
    return run if trains or around is None else _surrounded(plan, run, around, at_once, catalog)


def _served(numerics: Numerics, name: str, catalog: Catalog) -> tuple[Numerics, str]:
    """Return the bytes of a network that is served in a format, and the type in which it multiplies."""
    stored = catalog.quantizations.find(name)
    wide = catalog.precisions.find(stored.compute).wide
    # What is not multiplied in a type of its own is unpacked to 16 bits.
    precision = stored.compute if stored.own_type else wide
    weight_bytes = (stored.body_bits or stored.bits_per_weight or FP16_BITS) / BITS_PER_BYTE
    element_bytes = catalog.precisions.find(wide).activation_bytes
    return replace(numerics, weight_bytes=weight_bytes, element_bytes=element_bytes), precision


def _surrounded(plan: Plan, run: NetworkRun, around: Surroundings, at_once: int, catalog: Catalog) -> NetworkRun:
    """Return a served run with those of its readers, for each text of a guided pass in 16 bits, and of its decoder."""

    def plain(network: LayerList, name: str, data: RunData) -> NetworkRun:
        numerics, precision = _served(run.numerics, name, catalog)
        kernels = _kernels(plan, precision, run.cluster.device, catalog)
        return replace(run, network=network, numerics=numerics, kernels=kernels, data=data, unpacking=Unpacking())

    answers = replace(run.data, micro_batch=run.data.micro_batch / at_once)
    readers = (plain(network, UNQUANTIZED, run.data) for network in around.readers)
    decoder = (plain(network, around.decoder_precision, answers) for network in around.decoder)
    waits = around.waits_on_host and run.cluster.device.has_own_memory
    return replace(run, aside=(*readers, *decoder), waits_on_host=waits)


def _kernels(plan: Plan, precision: str, device: Device, catalog: Catalog) -> KernelRates:
    converted = 1.0 if plan.is_inference else device.conversion_share(precision)
    reach = plan.hardware.efficiency or device.gemm_reach(precision) * converted
    return KernelRates(
        peak=device.peak(precision),
        gemm_reach=reach,
        attention_peak=device.peak(precision),
        attention_reach=reach,
        vector_peak=device.peak("fp32"),
        attention=attention_rates(fastest_kernel(device, catalog), device, catalog),
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
