"""A batch of requests as neutral work: prefill, then one decode step a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.estimate.serving.memory import (
    SEQUENCES,
    claim,
    largest_wave,
    outside_bytes,
    room_in_cache,
    serving_memory,
)
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import decode, guessed, prefill
from capacity_tui.engine.estimate.serving.steady_load import steady_state
from capacity_tui.engine.estimate.work import Loaded, ModelFacts, Note, Phase, Served, Work
from capacity_tui.engine.models.transformer import decode_flops_per_token, forward_flops_per_token, prompt_flops
from capacity_tui.engine.numeric import Number, added, any_true, where
from capacity_tui.engine.units import format_number

METHOD = "operator roofline of prefill and decode, memory term by term"
_PEAK, _MEAN = "when every sequence has reached its full length", "with the requests that run at once"


def serving_work(run: ServingRun) -> Work:
    """Return the memory of one batch at its longest, and the kernels and communication of prefill and decode.

    Of a batch beyond the cache it is the memory of what runs at once; of a load that of the requests that run at once,
    and the passes in which as many are answered.
    """
    layout = run.layout
    loaded: Loaded | None = None
    phases: tuple[Phase, ...] = ()
    if run.traffic.comes_singly:
        run, phases, loaded = steady_state(run)
    memory = serving_memory(run)
    details = claim(run, memory)
    warnings = _too_small(run, details) if loaded is None else _overloaded(run, loaded)
    batch: Number = run.batch
    waves: Number = np.ones_like(batch)
    if loaded is None:
        if warnings:
            # A cache that holds not even one sequence is too small; else those that it does not hold follow.
            one = room_in_cache(run) >= 1.0
            run = replace(run, batch=largest_wave(run))
            waves = batch / run.batch
            at_once = replace(run, batch=where(one, run.batch, batch))
            memory = serving_memory(at_once)
            details = claim(at_once, memory)
            # Beside the buffers of a smaller wave the cache may hold one more than a wave can have.
            held = np.minimum(details[SEQUENCES], run.batch)
            details = {**details, SEQUENCES: where(waves > 1.0, held, details[SEQUENCES])}
        phases = (prefill(run), *((decode(run), *guessed(run)) if any_true(run.output > 0) else ()))
        phases = tuple(replace(phase, runs=phase.runs * waves) for phase in phases) if warnings else phases
    shape = run.shape
    prompt = prompt_flops(shape, run.prompt, run.prompt_logits)
    known = run.prompt - run.fresh
    if any_true(known > 0):
        prompt = prompt - where(known > 0, prompt_flops(shape, np.maximum(known, 1.0), 0.0), 0.0)
    output = np.maximum(run.output - 1.0, 0.0) * decode_flops_per_token(shape, run.decode_context)
    return Work(
        facts=ModelFacts(
            run.counts.total,
            run.counts.active,
            forward_flops_per_token(shape, run.prompt, shape.is_decoder),
            "token",
            "O(layers · (seq² · hidden + seq · hidden²))",
        ),
        memory=memory.parts,
        host_bytes=memory.host,
        host_holds=" and ".join(
            name for name, share in (("layers", run.host.share), ("experts", run.host.experts)) if any_true(share > 0)
        ),
        places={_PEAK if loaded is None else _MEAN: added(memory.parts.values())},
        fragmentation=run.runtime.fragmentation,
        context_bytes=outside_bytes(run),
        phases=phases,
        units_per_step=layout.dp * batch * run.length,
        units_per_sample=run.length,
        steps=None,
        model_flops_per_step=layout.dp * batch * (prompt + output),
        peak_flops=run.kernels.peak,
        share_on_host=run.share_on_host,
        method=METHOD,
        calibration=run.calibration,
        assumed=run.assumed,
        warnings=warnings,
        served=Served(
            run.batch,
            run.prompt,
            run.replicas,
            run.output,
            run.running,
            run.accepted,
            run.guessing.drafts,
            waves,
            loaded,
            run.traffic.beyond,
            run.runtime.request_seconds,
            run.traffic.requests,
        ),
        details=details,
    )


def _too_small(run: ServingRun, details: Mapping[str, Number]) -> tuple[Note, ...]:
    """Warn where the engine's share of memory holds fewer sequences than the batch has."""
    sequences = details.get(SEQUENCES, np.inf)
    if np.all(sequences >= run.batch):
        return ()
    held, wanted = float(np.min(sequences)), float(np.max(run.batch))
    counts = f"{format_number(held)} sequences of this length, the batch has {format_number(wanted)}"
    detail = f"it holds {counts}: the others wait"
    return (Note("cache_too_small", "the engine's share of memory is too small for the batch", detail),)


def _overloaded(run: ServingRun, loaded: Loaded) -> tuple[Note, ...]:
    """Warn where more requests come than can be answered, or more are sent at once than the cache holds."""
    answered, arriving = float(np.min(loaded.largest_rate)), float(np.max(run.traffic.rate))
    ends = np.all(np.isfinite(run.traffic.requests))
    if not ends and arriving > 0 and np.any(run.traffic.rate >= loaded.largest_rate):
        detail = f"{arriving:,.3g} requests/s arrive, {answered:,.3g} are served: the queue grows without bound"
        return (Note("saturated", "more requests arrive than can be answered", detail),)
    if not ends and arriving == 0 and np.any(run.layout.dp * (run.users - run.batch) >= 1.0):
        held, sent = float(np.min(run.layout.dp * run.batch)), float(np.max(run.layout.dp * run.users))
        detail = f"{format_number(held)} of {format_number(sent)} requests run: the others wait for their turn"
        return (Note("requests_wait", "fewer requests run than are sent at once", detail),)
    return ()
