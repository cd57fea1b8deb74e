"""Memory of a network on one device."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.networks.run import NetworkRun
from capacity_tui.engine.estimate.transformer.memory_terms import GRADIENTS, OPTIMIZER, host_bytes, sharded_bytes
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number

TRANSFORMED_TILE = counted("transformed-tile")


@equation(
    "activations = batch · (kept · (elements · element_bytes + further) + working · element_bytes)",
    unit="B",
    source="tensors the backward pass of each layer reads; those that two layers share once",
    part=Figure.MEMORY_ACTIVATIONS,
    units={"further": "B", "element_bytes": "B"},
    origins={"layer": "layer_activation", "layer_input": "input_bytes"},
)
def activation_bytes(
    batch: Number, kept: Number, elements: Number, further: Number, working: Number, element_bytes: Number
) -> Number:
    """Bytes of activations at their peak.

    Args:
        batch: samples on the device.
        kept: share of them that is not computed again.
        elements: elements of one sample that the backward pass reads.
        further: bytes of indices and masks of one sample.
        working: elements of one sample in the layer at work.
        element_bytes: bytes of an element.
    """
    return batch * (kept * (elements * element_bytes + further) + working * element_bytes)


@equation(
    "workspace = batch · elements · element_bytes · 36 / 16 · plain",
    unit="B",
    source="Lavin and Gray 2016: for tiles of 4x4 a 3x3 convolution transforms windows of 6x6 into memory of its own",
    units={"element_bytes": "B"},
)
def workspace_bytes(batch: Number, elements: Number, element_bytes: Number, plain: Number) -> Number:
    """Bytes in which a convolution outside the matrix units keeps its transformed input and output.

    Args:
        batch: samples on the device.
        elements: elements of one sample that the largest such convolution reads and writes.
        element_bytes: bytes of an element.
        plain: 1 where products do not run on matrix units, which multiply as they are.
    """
    return batch * elements * element_bytes * TRANSFORMED_TILE * plain


@equation(
    "buffers = element_bytes · parameters · reduced",
    unit="B",
    source="gradients are copied into buckets before they are reduced",
    part=Figure.MEMORY_BUFFERS,
    units={"element_bytes": "B"},
)
def bucket_bytes(element_bytes: Number, parameters: Number, reduced: Number) -> Number:
    """Bytes of communication buckets.

    Args:
        element_bytes: bytes of an element.
        parameters: parameters of the network.
        reduced: 1 where several devices reduce gradients.
    """
    return element_bytes * parameters * reduced


def network_memory(run: NetworkRun) -> tuple[Mapping[str, Number], Number]:
    """Return bytes inside the allocator by part, and bytes in host memory."""
    layout = run.layout
    numerics, network = run.numerics, run.network
    parameters, trained = float(network.parameters), float(network.trained_parameters)
    shards = [layout.shard if layout.zero >= stage else 1.0 for stage in (1, 2, 3)]
    trains = float(run.trains)
    each = numerics.optimizer.state_bytes + numerics.master_bytes
    states = sharded_bytes.for_part(OPTIMIZER)(each, trained, 0.0, shards[0], 1.0) * trains
    parts = {
        "weights": sharded_bytes.for_part(Figure.MEMORY_WEIGHTS)(
            numerics.weight_bytes, parameters, 0.0, shards[2], 1.0
        ),
        "gradients": sharded_bytes.for_part(GRADIENTS)(numerics.gradient_bytes, trained, 0.0, shards[1], 1.0) * trains,
        "optimizer": states * (1.0 - layout.offload_optimizer),
        "activations": activation_bytes(
            run.data.micro_batch,
            run.kept,
            float(network.kept_elements),
            float(network.kept_bytes),
            float(network.largest),
            numerics.element_bytes,
        )
        + workspace_bytes(
            run.data.micro_batch,
            float(network.transformed),
            numerics.element_bytes,
            float(run.kernels.peak <= run.kernels.vector_peak),
        ),
        "buffers": bucket_bytes(numerics.element_bytes, trained, trains * float(layout.dp > 1)),
    }
    return parts, host_bytes(states * layout.offload_optimizer, 0.0, 0.0)
