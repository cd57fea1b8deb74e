"""What fine-tuning runs beside the products of a frozen base: its weights unpacked in every pass, and its adapters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.timing.roofline import gemm_rate, reached_bandwidth, unpacking_bytes
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Direction, Operator
from capacity_tui.engine.numeric import Number, any_true, where

INPUTS_FORWARD, INPUTS_BACKWARD = counted("adapter-input-passes-forward"), counted("adapter-input-passes-backward")
OUTPUTS_FORWARD, OUTPUTS_BACKWARD = counted("adapter-output-passes-forward"), counted("adapter-output-passes-backward")
DROPOUT_PASSES = counted("adapter-dropout-passes")


@equation(
    "bytes = tokens · element_bytes · ((passes_in + dropped) · inputs + passes_out · outputs)",
    unit="B",
    source="operations of an adapter (Hu et al. 2021), each reading and writing its operands once",
    units={"element_bytes": "B"},
    origins={"passes_in": ("counts.adapter-input-passes-forward", "counts.adapter-input-passes-backward")},
)
def adapter_bytes(
    tokens: Number,
    element_bytes: Number,
    passes_in: Number,
    dropped: Number,
    inputs: Number,
    passes_out: Number,
    outputs: Number,
) -> Number:
    """Bytes that the adapters of a layer move in one pass.

    Args:
        tokens: tokens of a micro-batch on the device.
        element_bytes: bytes of an element.
        passes_in: passes over the inputs of adapted matrices.
        dropped: further passes over them for dropout.
        inputs: elements of all their inputs for a token.
        passes_out: passes over their outputs.
        outputs: elements of all their outputs for a token.
    """
    return tokens * element_bytes * ((passes_in + dropped) * inputs + passes_out * outputs)


def frozen_base_operators(run: TransformerRun) -> Iterator[Operator]:
    """Yield the kernels that unpack a quantized base, and those of adapters: forward, backward and recomputed."""
    if any_true(run.adapter.unpacking.bytes > 0):
        yield from _unpacking(run)
    if any_true(run.adapter.adapted.matrices > 0):
        yield from _adapters(run)


def _unpacking(run: TransformerRun) -> Iterator[Operator]:
    layout = run.layout
    device = run.cluster.device
    weights = run.stacked_parameters_per_layer / layout.tp + run.expert_parameters_per_layer / (layout.ep * layout.etp)
    moved = unpacking_bytes(weights, run.adapter.frozen_bytes, run.adapter.unpacking.bytes)
    bandwidth = reached_bandwidth(device.bandwidth, device.efficiency.stream)
    layers = run.layers_per_stage
    # Operations on single elements, outside the matrix units.
    rate = device.peaks.get("fp32", run.kernels.attention_peak)
    passes: tuple[tuple[str, Direction, Number], ...] = (
        ("", "forward", layers),
        (", backward", "backward", layers),
        (", recomputed", "recompute", layers * run.recompute.full_layers),
    )
    for label, phase, runs in passes:
        yield Operator(
            f"unpacking of the frozen base{label}",
            "compute",
            phase,
            "layer",
            weights * run.adapter.unpacking.flops,
            moved,
            rate,
            bandwidth,
            runs,
            0.0,
        )


def _adapters(run: TransformerRun) -> Iterator[Operator]:
    layout = run.layout
    device, adapted = run.cluster.device, run.adapter.adapted
    reach = device.efficiency
    bandwidth = reached_bandwidth(device.bandwidth, reach.stream)
    share = run.kernels.attention_reach * reach.sustained * device.clock
    rate = gemm_rate(
        run.tokens,
        adapted.rank,
        run.shape.hidden,
        run.kernels.attention_peak,
        share,
        device.units,
        reach.wave_fill,
        reach.ramp_length,
    )
    flops = 2.0 * run.tokens * adapted.rank * (adapted.inputs + adapted.outputs) / layout.tp
    dropped = DROPOUT_PASSES * adapted.dropout
    # Under automatic mixed precision adapters have their parameters' wide type, and cast what passes them to it.
    width = where(run.autocast > 0, run.numerics.weight_bytes, run.numerics.element_bytes)

    def moved(inputs: float, outputs: float) -> Number:
        fused = run.software.fused_kernels
        # A fused adapter adds its second product to the output as it is made, and reads and writes it once more.
        passes_out = np.minimum(outputs, outputs * (1.0 - fused) + 2.0 * fused)
        return adapter_bytes(
            run.tokens, width, inputs, dropped, adapted.inputs / layout.tp, passes_out, adapted.outputs / layout.tp
        )

    forward, layers = moved(INPUTS_FORWARD, OUTPUTS_FORWARD), run.layers_per_stage
    yield Operator("adapters", "compute", "forward", "layer", flops, forward, rate, bandwidth, layers, 0.0)
    yield Operator(
        "adapters, backward",
        "compute",
        "backward",
        "layer",
        2.0 * flops,
        moved(INPUTS_BACKWARD, OUTPUTS_BACKWARD),
        rate,
        bandwidth,
        layers,
        0.0,
    )
    yield Operator(
        "adapters, recomputed",
        "compute",
        "recompute",
        "layer",
        flops,
        forward,
        rate,
        bandwidth,
        layers * run.recompute.full_layers,
        0.0,
    )
