"""The equations behind the parts of training memory, one function an equation."""

from __future__ import annotations

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import BITS_PER_BYTE

ZERO = "Rajbhandari et al. 2020"
ACTIVATIONS = "Korthikanti et al. 2022, with fused attention"
CAPTURED_INPUT = counted("captured-input-bytes")
GRADIENTS, OPTIMIZER = Figure.MEMORY_GRADIENTS, Figure.MEMORY_OPTIMIZER


@equation(
    "bytes = each · (dense / shard + experts / expert_shard)",
    unit="B",
    source=ZERO,
    origins={"each": "stored_weight_bytes"},
)
def sharded_bytes(each: Number, dense: Number, experts: Number, shard: Number, expert_shard: Number) -> Number:
    """Bytes of something kept for each parameter and split over sharding groups.

    Args:
        each: what is kept for a parameter, in bytes.
        dense: parameters on the device outside routed experts, unsharded.
        experts: parameters of its routed experts, unsharded.
        shard: ranks that share the dense ones.
        expert_shard: ranks that share the experts.
    """
    return each * (dense / shard + experts / expert_shard)


@equation(
    "each = bits / 8", unit="B per weight", source="bits a weight of the format, scales included: quantizations.yaml"
)
def stored_weight_bytes(bits: Number) -> Number:
    """Bytes of a weight in the layers of a quantized base.

    Args:
        bits: bits of a weight of the layers' matrices, with its share of the block's constants.
    """
    return bits / BITS_PER_BYTE


@equation(
    "states = layers + each · ends / shard",
    unit="B",
    source=ZERO + "; embedding and head may have another optimizer than the layers' matrices",
    part=OPTIMIZER,
    units={"layers": "B", "each": "B"},
    origins={"layers": "sharded_bytes"},
)
def state_bytes(layers: Number, each: Number, ends: Number, shard: Number) -> Number:
    """Bytes of the optimizer's states and its copy of the weights.

    Args:
        layers: bytes of those of the layers on the device.
        each: bytes for a parameter outside the layers.
        ends: parameters of embedding, head and outer norms on the device, unsharded.
        shard: ranks that share them.
    """
    return layers + each * ends / shard


@equation(
    "weights = layers + each · ends / shard + adapters",
    unit="B",
    source=ZERO + "; embedding and head lie outside the layers, where quantization stops",
    part=Figure.MEMORY_WEIGHTS,
    units={"layers": "B", "each": "B", "adapters": "B"},
    origins={"layers": "sharded_bytes"},
)
def weight_bytes(layers: Number, each: Number, ends: Number, shard: Number, adapters: Number) -> Number:
    """Bytes of weights between uses.

    Args:
        layers: bytes of the layers on the device.
        each: bytes of a parameter outside the layers.
        ends: parameters of embedding, head and outer norms on the device, unsharded.
        shard: ranks that share them.
        adapters: bytes of adapters beside a frozen base.
    """
    return layers + each * ends / shard + adapters


@equation(
    "activations = kept · (1 - offloaded) + outputs + working",
    unit="B",
    source="what the forward pass left for the backward pass, and the layer at work",
    part=Figure.MEMORY_ACTIVATIONS,
    units={"kept": "B", "outputs": "B", "working": "B"},
    origins={"kept": "activation_bytes", "working": "working_bytes"},
)
def alive_activations(kept: Number, offloaded: Number, outputs: Number, working: Number) -> Number:
    """Bytes of activations in one phase of a step.

    Args:
        kept: bytes that wait for the backward pass.
        offloaded: share of them that lies in host memory.
        outputs: bytes of outputs a pipeline stage keeps for the next one.
        working: bytes of the layer at work.
    """
    return kept * (1.0 - offloaded) + outputs + working


@equation(
    "buffers = gathered + ends + casts + buckets",
    unit="B",
    source="parameters gathered for use, gradients in fp32 for the optimizer, communication buckets",
    part=Figure.MEMORY_BUFFERS,
    units={"gathered": "B", "ends": "B", "casts": "B", "buckets": "B"},
    origins={"gathered": ("whole_bytes.idle", "whole_bytes.busy"), "ends": "whole_bytes.ends"},
)
def buffer_bytes(gathered: Number, ends: Number, casts: Number, buckets: Number) -> Number:
    """Bytes of buffers in one phase of a step.

    Args:
        gathered: bytes of sharded layers that are whole while they are used.
        ends: bytes of embedding and head, gathered around the loss, with the head's gradient.
        casts: bytes of gradients in the optimizer's type, and of what its operations write aside.
        buckets: bytes of the framework's communication buckets.
    """
    return gathered + ends + casts + buckets


@equation(
    "bytes = captured · 16 · tokens",
    unit="B",
    source="captured kernels read their inputs where they lay when they were captured: PyTorch, CUDA graphs",
)
def captured_input_bytes(captured: Number, tokens: Number) -> Number:
    """Bytes of inputs that stay in place because the kernels of a step are captured.

    Args:
        captured: 1 where they are.
        tokens: tokens of a micro-batch on the device.
    """
    return captured * CAPTURED_INPUT * tokens


@equation(
    "host = optimizer + weights + activations",
    unit="B",
    source="what the plan offloads",
    part=Figure.MEMORY_HOST_BYTES,
    units={"optimizer": "B", "weights": "B", "activations": "B"},
)
def host_bytes(optimizer: Number, weights: Number, activations: Number) -> Number:
    """Bytes in host memory for one device.

    Args:
        optimizer: bytes of offloaded optimizer states, and of the gradients that wait there for the update.
        weights: bytes of offloaded weights.
        activations: bytes of offloaded activations.
    """
    return optimizer + weights + activations


@equation(
    "kept = tokens · layers_in_flight · ((1 - full) · layer + full · layer_input)",
    unit="B",
    source=ACTIVATIONS + "; pipeline depth after Narayanan et al. 2021",
    units={"layer": "B", "layer_input": "B"},
    origins={"layer": "layer_activation", "layer_input": "input_bytes"},
)
def activation_bytes(
    tokens: Number, layers_in_flight: Number, full: Number, layer: Number, layer_input: Number
) -> Number:
    """Bytes of activations alive when the backward pass starts.

    Args:
        tokens: tokens of a micro-batch on the device.
        layers_in_flight: layers times micro-batches whose activations wait for their backward pass.
        full: share of the layers of which only the input is kept.
        layer: bytes a token keeps in one other layer.
        layer_input: bytes a token keeps in a fully checkpointed layer.
    """
    return tokens * layers_in_flight * ((1.0 - full) * layer + full * layer_input)
