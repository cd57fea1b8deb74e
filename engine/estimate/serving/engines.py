"""What an inference engine does on a device, from its row and what the plan sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import MIB, InferenceEngine
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.run import numbers_of
from capacity_tui.engine.estimate.serving.run import Runtime
from capacity_tui.engine.estimate.timing.roofline import TILE_ROWS
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, largest
from capacity_tui.engine.plan import InferenceSection

# Where neither the engine nor the memory of a device sets an end.
MOST_SEQUENCES = counted("most-sequences")

# What one core of the host spends its time on.
HOST_TIMES = ("host_seconds", "eager_seconds", "step_seconds", "sequence_seconds", "stream_seconds", "request_seconds")


def passes_of_prompts(
    inference: InferenceSection, engine: InferenceEngine, shape: TransformerShape, device: Device
) -> dict[str, float]:
    """Return the most tokens of a pass, and whether those that read prompts give answers too: as set, or by default."""
    tokens, mixes = engine.chunk_tokens, engine.mixes_prefill
    is_large = device.memory_bytes is None or device.memory_bytes >= (engine.large_mib or 0.0) * MIB
    if inference.is_load and not (is_large and not any(word in device.id for word in engine.small_devices)):
        tokens = engine.server_chunk_tokens or tokens
    is_long = (largest(shape.max_context) or 0.0) > (engine.mixing_context or np.inf)
    wanted = mixes or is_long if inference.chunked_prefill is None else inference.chunked_prefill
    if wanted and not mixes:
        tokens = engine.mixing_tokens or tokens
    return {"chunk_tokens": float(inference.max_num_batched_tokens or tokens or 0), "mixes_prefill": float(wanted)}


def runtime(engine: InferenceEngine, catalog: Catalog, claim: float) -> Runtime:
    """Return an engine's row in seconds and bytes.

    Args:
        engine: the row.
        claim: share of device memory that engines take which take a share.
    """
    return numbers_of(
        Runtime,
        engine,
        chunk_tokens=float(engine.chunk_tokens or 0),
        expert_tile=float(engine.expert_tile or TILE_ROWS),
        expert_spread=catalog.coefficients["expert-spread"].value,
        replicas_apart=catalog.coefficients["replicas-apart"].value,
        claim=0.0 if engine.memory_policy == "needed" else claim,
        claims_free=float(engine.memory_policy == "free"),
        slots=float(engine.slots or MOST_SEQUENCES),
        captured_context=float(engine.captured_context or np.inf),
    )


def on_host(runtime: Runtime, speed: Number) -> Runtime:
    """Return what an engine does where a core of the host has a speed, relative to that of a server of 2024."""
    return replace(runtime, **{name: getattr(runtime, name) / speed for name in HOST_TIMES})
