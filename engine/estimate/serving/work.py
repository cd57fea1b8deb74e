"""A batch of requests as neutral work: prefill, then one decode step a token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.estimate.non_allocator_memory import context_bytes
from capacity_tui.engine.estimate.note import Note
from capacity_tui.engine.estimate.serving.memory import claimed_bytes, serving_memory
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import decode, prefill
from capacity_tui.engine.estimate.work import ModelFacts, Served, Work
from capacity_tui.engine.models.transformer.operations import (
    decode_flops_per_token,
    forward_flops_per_token,
    prompt_flops,
)
from capacity_tui.engine.numeric import Number, added, any_true
from capacity_tui.engine.uncertainty.intervals import SERVED

METHOD = "operator roofline of prefill and decode, memory term by term"
# Result keys of what an engine takes beyond its need.
CLAIMED, SEQUENCES = "inference.claimed_bytes", "inference.sequences_in_cache"


def serving_work(run: ServingRun) -> Work:
    """Return the memory of one batch at its longest, and the kernels and communication of prefill and decode."""
    memory = serving_memory(run)
    allocated = added(memory.parts.values())
    groups = (run.tp > 1) * 1.0 + (run.pp > 1) * 1.0 + (run.ep > 1) * 1.0
    efficiency, shape = run.cluster.device.efficiency, run.shape
    context = context_bytes(efficiency.context_bytes, efficiency.communicator_bytes, groups)
    details = _claim(run, allocated * (1.0 + run.runtime.fragmentation) + context, memory.parts["kv_cache"])
    prompt = prompt_flops(shape, run.prompt, run.prompt_logits)
    output = run.decode_steps * decode_flops_per_token(shape, run.decode_context)
    return Work(
        facts=ModelFacts(
            run.counts.total,
            run.counts.active,
            forward_flops_per_token(shape, run.prompt, shape.kind == "decoder"),
            "token",
            "O(layers · (seq² · hidden + seq · hidden²))",
        ),
        memory=memory.parts,
        host_bytes=memory.host,
        places={"when every sequence has reached its full length": allocated},
        fragmentation=run.runtime.fragmentation,
        context_bytes=context,
        phases=(prefill(run), *((decode(run),) if any_true(run.output > 0) else ())),
        units_per_step=run.dp * run.batch * run.length,
        units_per_sample=run.length,
        steps=None,
        model_flops_per_step=run.dp * run.batch * (prompt + output),
        peak_flops=run.peak,
        method=METHOD,
        calibration=run.calibration,
        assumed=run.assumed,
        ranges=SERVED,
        warnings=_too_small(run, details),
        served=Served(run.batch, run.prompt, run.dp),
        details=details,
    )


def _claim(run: ServingRun, reserved: Number, cache: Number) -> dict[str, Number]:
    """Return what an engine takes beyond its need, and how many sequences fit into that; empty where it takes none.

    Args:
        run: the run.
        reserved: bytes the driver would show, were there only the batch.
        cache: bytes of its keys and values.
    """
    share, capacity = run.runtime.claim, run.cluster.device.memory_bytes
    if capacity is None or not any_true(share > 0):
        return {}
    needed = reserved - cache
    taken = claimed_bytes(capacity, share, needed, run.runtime.claims_free)
    sequences = np.floor(np.maximum(taken - needed, 0.0) / np.maximum(cache / run.batch, 1.0))
    return {CLAIMED: taken, SEQUENCES: sequences}


def _too_small(run: ServingRun, details: Mapping[str, Number]) -> tuple[Note, ...]:
    """Warn where the engine's share of memory holds fewer sequences than the batch has."""
    sequences = details.get(SEQUENCES, np.inf)
    if np.all(sequences >= run.batch):
        return ()
    held, wanted = float(np.min(sequences)), float(np.max(run.batch))
    detail = f"it holds {held:,.0f} sequences of this length, the batch has {wanted:,.0f}"
    return (Note("cache_too_small", "the engine's share of memory is too small for the batch", detail),)
