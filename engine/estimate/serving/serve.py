"""Serving a transformer: from a settled run to an estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.estimate.bottleneck import balance, bottleneck, kernel_seconds, model_flops_utilization
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.money import cost, energy
from capacity_tui.engine.estimate.non_allocator_memory import context_bytes, reserve_bytes
from capacity_tui.engine.estimate.result import (
    Basis,
    ComputationEstimate,
    Estimate,
    InferenceSpeed,
    MemoryEstimate,
    ModelFacts,
    Note,
)
from capacity_tui.engine.estimate.serving.memory import claimed_bytes, serving_memory
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import PARTS, PhaseTime, decode, prefill
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models.operations import decode_flops_per_token, forward_flops_per_token, prompt_flops
from capacity_tui.engine.numeric import Number, any_true
from capacity_tui.engine.plan.plan import PricingSection
from capacity_tui.engine.uncertainty.intervals import DECODE, PREFILL, SERVED_MEMORY, STEP, interval, memory_interval

METHOD = "operator roofline of prefill and decode, memory term by term"
# A time is the inverse of its rate.
DECODE_SECONDS = (1.0 / DECODE[1], 1.0 / DECODE[0])


def memory_estimate(run: ServingRun) -> MemoryEstimate:
    """Return the memory of the fullest device with what lies outside the engine's allocator."""
    memory = serving_memory(run)
    allocated: Number = sum(memory.parts.values(), start=0.0)
    groups = (run.tp > 1) * 1.0 + (run.pp > 1) * 1.0 + (run.ep > 1) * 1.0
    reach = run.cluster.device.efficiency
    outside = context_bytes(reach.context_bytes, reach.communicator_bytes, groups)
    reserve = reserve_bytes(allocated, run.runtime.fragmentation)
    parts = {**memory.parts, "context": outside, "reserve": reserve}
    return MemoryEstimate(
        per_device_bytes=memory_interval(memory.parts, SERVED_MEMORY),
        reserved_bytes=memory_interval(parts, SERVED_MEMORY),
        parts=parts,
        capacity_bytes=run.cluster.device.memory_bytes,
        host_bytes=memory.host,
        places={"when every sequence has reached its full length": allocated},
        host_capacity_bytes=run.cluster.host_memory_bytes,
    )


def claim(run: ServingRun, memory: MemoryEstimate) -> tuple[dict[str, Number], tuple[Note, ...]]:
    """Return what an engine takes beyond its need, how many sequences fit into that, and a warning if too few do."""
    share, capacity = run.runtime.claim, memory.capacity_bytes
    if capacity is None or not any_true(share > 0):
        return {}, ()
    cache = memory.parts["kv_cache"]
    needed = memory.reserved_bytes.value - cache
    taken = claimed_bytes(capacity, share, needed, run.runtime.claims_free)
    sequences = np.floor(np.maximum(taken - needed, 0.0) / np.maximum(cache / run.batch, 1.0))
    details = {"inference.claimed_bytes": taken, "inference.sequences_in_cache": sequences}
    if np.all(sequences >= run.batch):
        return details, ()
    held, wanted = float(np.min(sequences)), float(np.max(run.batch))
    detail = f"it holds {held:,.0f} sequences of this length, the batch has {wanted:,.0f}"
    return details, (Note("cache_too_small", "the engine's share of memory is too small for the batch", detail),)


@equation(
    "rate = batch · prompt / seconds",
    unit="tokens/s",
    source="forward passes over the prompts of one batch, on one replica",
    part="computation.infer.prefill_tokens_per_second",
)
def prefill_rate(batch: Number, prompt: Number, seconds: Number) -> Number:
    """Prompt tokens a second.

    Args:
        batch: sequences of the batch.
        prompt: tokens of a prompt.
        seconds: seconds until all prompts are read.
    """
    return batch * prompt / seconds


@equation(
    "rate = batch / seconds",
    unit="tokens/s",
    source="one forward pass for the next token of every sequence, at the mean context, on one replica",
    part="computation.infer.decode_tokens_per_second",
)
def decode_rate(batch: Number, seconds: Number) -> Number:
    """Output tokens a second.

    Args:
        batch: sequences of the batch.
        seconds: seconds of one step of decode.
    """
    return batch / seconds


@equation(
    "time = seconds",
    unit="s",
    source="one decode step gives every sequence of the batch its next token",
    part="computation.infer.time_per_output_token_seconds",
)
def output_token_seconds(seconds: Number) -> Number:
    """Seconds between two output tokens of a sequence.

    Args:
        seconds: seconds of one step of decode.
    """
    return seconds


@equation(
    "rate = replicas · batch / seconds",
    unit="requests/s",
    source="every replica answers one batch after another",
    part="computation.infer.requests_per_second",
)
def request_rate(replicas: Number, batch: Number, seconds: Number) -> Number:
    """Requests answered a second.

    Args:
        replicas: copies of the model that serve side by side.
        batch: sequences of a batch.
        seconds: seconds from a batch's prompts to its last token.
    """
    return replicas * batch / seconds


def inference_speed(run: ServingRun, first: PhaseTime, each: PhaseTime, seconds: Number) -> InferenceSpeed:
    """Return the speeds of serving; ``seconds`` is the time of a whole batch."""
    prompt = interval(prefill_rate(run.batch, run.prompt, first.seconds), PREFILL)
    output = between = None
    if any_true(run.output > 0):
        output = interval(decode_rate(run.batch, each.seconds), DECODE)
        between = interval(output_token_seconds(each.seconds), DECODE_SECONDS)
    return InferenceSpeed(
        prefill_tokens_per_second=prompt,
        decode_tokens_per_second=output,
        time_to_first_token_seconds=interval(first.seconds, PREFILL),
        time_per_output_token_seconds=between,
        requests_per_second=interval(request_rate(run.dp, run.batch, seconds), STEP),
    )


def serving_estimate(run: ServingRun, pricing: PricingSection) -> Estimate:
    """Return the estimate of one batch: prefill, then one decode step a token."""
    first, each = prefill(run), decode(run)
    steps = run.decode_steps
    parts = {name: first.parts.get(name, 0.0) + steps * each.parts.get(name, 0.0) for name in PARTS}
    seconds = first.seconds + steps * each.seconds
    units = run.dp * run.batch * run.length
    causal = run.shape.kind == "decoder"
    forward = forward_flops_per_token(run.shape, run.prompt, causal)
    prompt = prompt_flops(run.shape, run.prompt, run.prompt_logits)
    flops = run.dp * run.batch * (prompt + steps * decode_flops_per_token(run.shape, run.decode_context))
    facts = ModelFacts(run.counts.total, run.counts.active, forward, "token",
                       "O(layers · (seq² · hidden + seq · hidden²))")  # fmt: skip
    computation = ComputationEstimate(
        step_seconds=interval(seconds, STEP),
        parts=parts,
        units_per_step=units,
        steps=None,
        devices=run.cluster.devices,
        model_flops_per_step=flops,
        mfu=model_flops_utilization(flops, seconds, run.peak, run.cluster.devices),
        infer=inference_speed(run, first, each, seconds),
        units_per_sample=run.length,
        iteration="batch",
    )
    operators = (*first.operators, *(_times(operator, steps) for operator in each.operators))
    totals = balance(operators)
    computing, moving = kernel_seconds(totals, parts)
    device = run.cluster.device
    memory = memory_estimate(run)
    details, warnings = claim(run, memory)
    return Estimate(
        model=facts,
        memory=memory,
        computation=computation,
        bottleneck=bottleneck(totals, parts, run.cluster, run.peak, memory.held),
        cost=cost(run.cluster, None, seconds / units, keeps_state=False),
        energy=energy(run.cluster, None, computing / seconds, moving / seconds, pricing.usd_per_kwh),
        basis=Basis(
            METHOD,
            run.calibration,
            device.checked,
            run.assumed,
            run.cluster.figures(),
            run.cluster.words,
            levels=run.cluster.levels,
        ),
        warnings=warnings,
        details=details,
    )


def _times(operator: Operator, passes: Number) -> Operator:
    return replace(operator, count=operator.count * np.asarray(passes))
