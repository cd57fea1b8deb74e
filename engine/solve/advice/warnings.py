"""What to know before relying on a plan, with the figures that say so."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog, Row
from capacity_tui.engine.cluster import hardware_facts
from capacity_tui.engine.estimate import (
    BEST_SIZE,
    BEST_TOKENS,
    LEAST_LOSS,
    LOSS,
    NETWORK,
    OVERTRAINING,
    Estimate,
    Note,
    ResolvedPlan,
    job_seconds,
)
from capacity_tui.engine.estimate.serving import why_not_read
from capacity_tui.engine.estimate.timing import attention_in_place_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import generates
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan, field_context, ineffective_fields, plan_layout, remarked
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.changes import unit_seconds
from capacity_tui.engine.units import (
    format_bandwidth,
    format_count,
    format_flops,
    format_money,
    format_number,
    format_percent,
    format_power,
    format_seconds,
)

FAR = 5.0  # How far from the tokens a parameter that learn most from the work of a training is worth a word
MATTERS = 0.05  # An assumption matters from this share of the step on, when the assumed network is half as fast
# Hardly any published training took longer than this; one that does is more often a slip in a plan.
LONG_SECONDS = 100 * 86400.0


def cautions(case: EstimatedPlan) -> tuple[Note, ...]:
    """Return what to know about a plan beyond whether it fits, the gravest first."""
    notes: list[Note] = []
    if case.resolved.family.kind in ("transformer", "network"):
        notes += _precision(case)
    if case.resolved.shape is not None:
        notes += [*_context(case), *_layout(case), *_unread(case)]
    if case.resolved.shape is not None and not case.plan.is_inference:
        notes += [*_batch(case), *_tokens(case)]
    if case.plan.is_fit and case.plan.scalability.enabled:
        notes.append(Note("no_scaling", "A fit runs on one device", "There is nothing to vary for scalability."))
    elif case.resolved.shape is None and case.plan.scalability.enabled and case.plan.scalability.model_parallel:
        detail = "scalability.model_parallel compares nothing here: this model runs whole on each device."
        notes.append(Note("no_model_parallel", "Only transformers are split over devices", detail))
    return (
        *notes,
        *_long(case),
        *_mixed(case),
        *_spot(case),
        *_ignored(case),
        *_power(case),
        *_supply(case),
        *_unverified(case),
        *_assumed(case),
    )


def _supply(case: EstimatedPlan) -> Iterator[Note]:
    if case.plan.watch.supply_watts is not None:
        from capacity_tui.engine.solve.advice.machine_notes import supply_note  # noqa: PLC0415 - it loads sensors

        yield from supply_note(case)


def ignored(resolved: ResolvedPlan, wanted: Plan, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield each field that a plan sets in vain, and why."""
    cluster, task = resolved.cluster, resolved.plan.task or "train"
    return ineffective_fields(field_context(wanted, resolved.family.kind, task, catalog, hardware_facts(cluster)))


def _long(case: EstimatedPlan) -> Iterator[Note]:
    """Say when a job takes so long that its hardware, its tokens or an efficiency may be meant otherwise."""
    computation, hardware = case.estimate.computation, case.plan.hardware
    if computation.steps is None:
        return
    seconds = largest(job_seconds(computation.steps, computation.step_seconds.value))
    if case.plan.is_inference or seconds < LONG_SECONDS:
        return
    reached = "" if computation.mfu is None else f", at {format_percent(largest(computation.mfu))} of the peak"
    detail = (
        f"{format_seconds(seconds)} on {case.resolved.cluster.words}{reached}. Check "
        f"hardware.name{'' if hardware.efficiency is None else ', hardware.efficiency'} and the length of the job; "
        "`need PLAN --solve hardware.devices --limit time<=30d` says how many devices end it in a month."
    )
    yield Note("very_long", "This takes very long", detail)


def _mixed(case: EstimatedPlan) -> Iterator[Note]:
    """Say which of several unlike devices are used, and why."""
    cluster = case.resolved.cluster
    if cluster.mix_reason:
        title = "Mixed devices run at the pace of the slowest" if cluster.mix else "Only some of the devices are used"
        yield Note("mixed_devices", title, f"{cluster.words}: {cluster.mix_reason}; hardware.mixed says otherwise.")


def _spot(case: EstimatedPlan) -> Iterator[Note]:
    """Say why a plan on spot capacity has no price, and where spot capacity costs more than on demand."""
    yield from dear_spot(case.estimate)
    if case.resolved.cluster.price.is_spot and (why := case.estimate.cost.why_no_spot):
        detail = f"{why[0].upper()}{why[1:]}: no price is known. Fewer nodes are interrupted less often."
        yield Note("hopeless_on_spot", "Spot capacity is interrupted too often for this job", detail)


def dear_spot(estimate: Estimate) -> Iterator[Note]:
    """Say where spot capacity, interruptions included, costs a job more than on demand."""
    cost = estimate.cost
    if cost.usd is None or cost.usd_spot is None:
        return
    demand, spot = largest(cost.usd), largest(cost.usd_spot)
    if spot > demand:
        detail = f"{format_money(spot)} with its interruptions, {format_money(demand)} on demand: stay on demand."
        yield Note("spot_is_dearer", "Spot capacity would cost more", detail)


def _ignored(case: EstimatedPlan) -> Iterator[Note]:
    for path, reason in ignored(case.resolved, case.wanted, case.catalog):
        detail = (_passes(case) if path == Key.TRAINING_SAMPLES else "") or f"It {reason}."
        yield Note("ignored", f"{path} changes nothing here", detail)


def _passes(case: EstimatedPlan) -> str:
    """Say how often a training whose length is given by its steps or tokens passes over its samples; else nothing."""
    training, steps = case.plan.training, case.estimate.computation.steps
    if steps is None or training.samples is None:
        return ""
    length, batch = largest(steps), float(training.global_batch or 1)
    seen = f"{format_number(length)} steps of {format_number(batch)}"
    passes = f"{length * batch / float(training.samples):.3g} passes over the {format_number(training.samples)} samples"
    given = "steps" if training.steps is not None else "tokens"
    return f"The {given} say how long this trains: {seen} are {passes}. With epochs in their place the samples would."


def _context(case: EstimatedPlan) -> Iterator[Note]:
    shape, plan = case.resolved.shape, case.plan
    if shape is None or not largest(shape.max_context):
        return
    length = float(plan.training.seq_len)
    if shape.source_positions:
        length = float(plan.training.predicted_tokens or 0)
    if plan.is_inference:
        # What listens reads its sound beside the context of its answer.
        prompt = 0 if shape.source_positions else plan.inference.prompt_tokens
        length = float(prompt + (plan.inference.output_tokens if generates(shape) else 0))
    if length > largest(shape.max_context):
        detail = f"{format_number(length)} tokens, trained on up to {format_number(largest(shape.max_context))}."
        yield Note("beyond_context", "Sequences are longer than the model's context", detail)


def _layout(case: EstimatedPlan) -> Iterator[Note]:
    if case.resolved.shape is not None:
        layout = plan_layout(case.plan, case.resolved.shape, case.catalog)
        for rule in remarked(layout):
            yield Note(f"layout_{rule.id}", rule.broken, rule.figures(layout))
    tensor, cluster = int(case.plan.parallelism.tp or 1), case.resolved.cluster
    inside = int(cluster.direct_devices)
    if tensor <= inside and inside % tensor == 0:
        return
    if tensor > 1 and int(cluster.devices) > inside:
        share = largest(case.estimate.computation.parts.get("tensor_parallel", 0.0)) / largest(
            case.estimate.computation.step_seconds.value
        )
        between, within = largest(cluster.node_bandwidth), largest(cluster.device.link_bandwidth)
        detail = (
            f"Groups of {tensor} do not stay inside nodes of {inside}: {format_bandwidth(between)} between nodes, "
            f"{format_bandwidth(within)} inside; {format_percent(share)} of the step waits for it."
        )
        yield Note("tensor_parallel_across_nodes", "Tensor parallelism crosses nodes", detail)


def _batch(case: EstimatedPlan) -> Iterator[Note]:
    training, replicas = case.plan.training, int(case.plan.parallelism.dp or 1)
    at_once = int(training.micro_batch) * replicas
    batch = int(training.global_batch or at_once)
    rest = batch % at_once
    if rest:
        near = " or ".join(format_number(size) for size in (batch - rest, batch - rest + at_once) if size)
        passes = -(-batch // at_once)
        detail = (
            f"{format_number(batch)} sequences over {replicas} replicas in micro-batches of {training.micro_batch}: "
            f"{passes} passes for the work of {batch / at_once:.2f}. {near} would divide."
        )
        yield Note("global_batch_not_divisible", "The global batch does not divide", detail)


def _precision(case: EstimatedPlan) -> Iterator[Note]:
    device, plan = case.resolved.cluster.device, case.plan
    wanted = str(plan.training.precision)
    if plan.is_inference:
        wanted = case.catalog.quantizations.find(plan.inference.weights_format).compute
    runs = device.native(wanted)
    if runs != wanted:
        peak = format_flops(device.peak(wanted), per_second=True)
        detail = f"It runs as {runs}, with a peak of {peak}."
        if device.conversion_share(wanted) < 1.0 and not plan.is_inference:
            share = format_percent(device.conversion_share(wanted))
            detail = f"Products convert each operand and run at about {share} of the rate of {runs}, which is faster."
        yield Note("precision_not_native", f"{device.name} has no {wanted} units", detail)


def _unread(case: EstimatedPlan) -> Iterator[Note]:
    """Say which kernels the device or the engine lacks."""
    device, plan, catalog = case.resolved.cluster.device, case.plan, case.catalog
    if plan.is_inference:
        weights = catalog.quantizations.find(plan.inference.weights_format)
        why = why_not_read(weights, plan.inference.engine, device, catalog)
        if why:
            yield Note("no_kernels", f"{weights.name} cannot be read as planned", why)
        return
    instead = attention_in_place_of(plan.training.attention, device, catalog)
    if instead is not None:
        yield Note("attention_kernel", f"Attention runs as {instead.value} on {device.name}", instead.reason)


def _tokens(case: EstimatedPlan) -> Iterator[Note]:
    """Say when the work of a training would teach a model of another size more."""
    learned, model = case.estimate.details, case.estimate.model
    if OVERTRAINING not in learned or 1.0 / FAR <= largest(learned[OVERTRAINING]) <= FAR:
        return
    shape = case.resolved.shape
    if shape is not None and largest(learned[LOSS]) > math.log(max(largest(shape.vocab), 2.0)):
        return  # worse than guessing: a trial of some steps, of which the law says nothing
    best, on = largest(learned[BEST_SIZE]), largest(learned[BEST_TOKENS])
    size, law = largest(model.parameters), next(iter(case.catalog.scaling_laws.values()))
    is_small = best > size
    ratio = best * on / size**2
    detail = (
        f"{ratio:.{0 if ratio > FAR else 2}f} tokens a parameter, expected loss {largest(learned[LOSS]):.3g}. The same "
        f"work brings {format_count(best)} parameters on {format_count(on)} tokens to "
        f"{largest(learned[LEAST_LOSS]):.3g} ({law.name})."
    )
    title = (
        "Trained past the compute-optimal point, as is usual for models that are served a lot"
        if is_small
        else "Trained short of the compute-optimal point"
    )
    yield Note("tokens_per_parameter", title, detail)


def _power(case: EstimatedPlan) -> Iterator[Note]:
    """Say when devices draw as much as only the boldest mode lets them."""
    cluster, watts = case.resolved.cluster, case.estimate.energy.watts_average
    boldest = case.catalog.modes["extreme"]
    limit, share, alarm = cluster.device.tdp_watts, boldest.power_share_range[0], boldest.watch.temperature_c
    known = cluster.device.known.get("tdp_watts")
    if watts is None or limit is None or share is None or (known is not None and known.origin == "assumed"):
        return
    device_watts = largest(watts / cluster.devices)
    if device_watts >= share * largest(limit):
        count = int(largest(cluster.devices))
        what = "processor" if cluster.device.is_processor else "device"
        whole = "" if count == 1 else f" a {what}, {format_power(largest(watts))} in all"
        detail = (
            f"{format_power(device_watts)} of {format_power(largest(limit))}{whole}: supply and cooling must carry it "
            f"for the whole run and keep the {what}{'' if count == 1 else 's'} below {alarm:g} C."
        )
        subject = f"The {what} runs near its" if count == 1 else f"All {what}s run near their"
        yield Note("power", f"{subject} power limit", detail)


def _unverified(case: EstimatedPlan) -> Iterator[Note]:
    catalog, plan = case.catalog, case.plan
    rows: list[Row | None] = []
    for table, name in (
        (catalog.accelerators, case.resolved.cluster.device.id),
        (catalog.processors, case.resolved.cluster.device.id),
        (catalog.instances, plan.hardware.name),
        (catalog.architectures, plan.model.name or ""),
    ):
        rows.append(table.known(name))
    for row in filter(None, rows):
        if not row.verified:
            detail = f"{row.source}, as of {row.checked}: its figures have no source; check them first."
            yield Note("unverified", f"{row.name} is not verified", detail)


def _assumed(case: EstimatedPlan) -> Iterator[Note]:
    """Say how much an assumed network between nodes matters, by halving it."""
    cluster, parts = case.resolved.cluster, case.estimate.computation.parts
    network = cluster.networks[0]
    waits = sum(largest(parts.get(part, 0.0)) for part in NETWORK)
    crosses = largest(cluster.devices) > largest(cluster.direct_devices)
    if (
        not crosses
        or network.known.origin != "assumed"
        or waits < MATTERS / 2 * largest(case.estimate.computation.step_seconds.value)
    ):
        return
    ports = largest(network.bandwidth) / 1e9
    slower = case.pinned.evaluate({Key.HARDWARE_SPEC: {**case.plan.hardware.spec, "node_gbs": ports / 2.0}})
    if slower.filled is None:
        return
    change = unit_seconds(slower.estimate) / unit_seconds(case.estimate) - 1.0
    if change >= MATTERS:
        detail = (
            f"{network.link}, {format_bandwidth(largest(network.bandwidth))} a device. With half of it a step takes "
            f"{format_percent(change)} longer; give hardware.interconnect."
        )
        yield Note("assumed", "The time rests on an assumed network", detail)
