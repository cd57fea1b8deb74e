"""Settle every open field of a plan, so that it says all an estimate rests on, and name what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog, named_release, parse_shipped
from capacity_tui.engine.cluster import Cluster, Device, resolve_cluster
from capacity_tui.engine.errors import Place, PlanError, stop_if_unwanted
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.estimate.serving.resolve import engine_row, served_weights
from capacity_tui.engine.estimate.transformer.finetuning import base_format, towers_of
from capacity_tui.engine.estimate.transformer.resolve import (
    TRANSCRIPT_TOKENS,
    framework_row,
    resolve_parallelism,
    stores_scores,
)
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import Machine, MeasuredRun
from capacity_tui.engine.models import Family, Spec, family_of, plugin_of, read_spec, refuse_training
from capacity_tui.engine.models.transformer import (
    TransformerShape,
    count_parameters,
    generates,
    shape_from_spec,
    shape_of,
)
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import (
    BATCH_FOR_ALL,
    FULL,
    UNNAMED,
    Assumption,
    Layout,
    Plan,
    TrainingSection,
    all_fields,
    plan_layout,
    refuse_impossible,
    refuse_unknown_names,
    require,
    software_id,
)
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, TRAINED
from capacity_tui.engine.uncertainty import ALIKE_WORDS, KIND, RunFeatures, Similarity, UserRuns

_LOADS = (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_CONCURRENCY)
_USUAL = "the default"
_TRANSCRIPT = f"{TRANSCRIPT_TOKENS:.0f} tokens of a transcript for each piece of sound (or training.predicted_tokens=)"
_MEMORY = f"{Key.HARDWARE_SPEC}.memory_mib"
_IMAGE = f"{Key.MODEL_SPEC}.image_size"
_NO_LENGTH = "the length of the job is not given: it has no time and no cost (give 50M, or training.tokens=)"
MIXTURE = "mixture"
# What is known of runs of the user's own besides how alike another word leaves them.
_OF_LIKENESS = ("doubling", "shared", "scatter", "patience", "context")
_WAYS = ("tp", "pp", "cp", "ep", "zero")


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """A plan with nothing open, and what its names stand for."""

    plan: Plan  # every default filled in
    family: Family  # kind of model
    cluster: Cluster  # hardware as formulas read it
    shape: TransformerShape | None  # sizes of a transformer; None for other kinds
    spec: Spec | None = None  # parameters of another kind of model; None for transformers
    # why weights that are served have the format that they have; empty where the plan gives it
    weights_assumed: str = ""


def resolve_plan(
    plan: Plan,
    catalog: Catalog,
    machine: Machine | None = None,
    like: ResolvedPlan | None = None,
    cluster: Cluster | None = None,
) -> ResolvedPlan:
    """Return the plan with every default filled in.

    Args:
        like: a settled plan of the same model, hardware and prices, whose looked-up facts serve this one too.
        cluster: what the hardware stands for, where that was looked up for plans of several models.

    Raises:
        PlanError: a field is still ``auto``, or values contradict each other.
        CatalogError: a name nobody knows.
        NoLongerWantedError: nobody waits for it any more.
    """
    stop_if_unwanted()
    family = like.family if like else family_of(plan.model.name, catalog)
    refuse_unknown_names(plan, catalog)
    if like is not None:
        cluster = like.cluster
    elif cluster is None:
        cluster = resolve_cluster(plan.hardware, plan.pricing, catalog, machine)
    task = plan.task or ("finetune" if plan.training.method else family.task)
    if task != "infer":
        refuse_training(plan.model.name, catalog)
    hardware = plan.hardware.model_copy(update={"devices": int(cluster.devices), "per_node": int(cluster.per_node)})
    plan = plan.model_copy(update={Key.TASK: task, "hardware": hardware})
    if family.kind == "classical":
        from capacity_tui.engine.estimate.classical.work import of_one_machine, settle_classical  # noqa: PLC0415 - each kind of model loads its own

        cluster = of_one_machine(cluster)
        spec = settle_classical(plan, family.id, cluster.device)
        plan = _with_spec(plan, spec)
        like_runs = run_like(plan, family, None, cluster.device, catalog)
        return ResolvedPlan(plan, family, with_user_runs(cluster, like_runs, catalog), None, spec)
    if family.kind == "plugin":
        given = read_spec(plugin_of(family.id).spec_type, plan.model.spec)
        return ResolvedPlan(_with_spec(plan, given), family, cluster, None, given)
    shape, network = None, None
    if family.is_network:
        from capacity_tui.engine.models.networks import network_spec_type  # noqa: PLC0415 - of its kind alone

        network = read_spec(network_spec_type(family.id), plan.model.spec)
        plan = _with_spec(plan, network)
    else:
        shape = like.shape if like and like.shape else _shape(plan, family, catalog)
        plan = _with_fixed_lengths(plan, shape)
    _refuse_open(plan)
    weights, why = served_weights(plan, cluster.device, catalog) if plan.is_inference else (plan.inference.weights, "")
    cluster = _with_notes(cluster, plan, family, why, catalog)
    plan = plan.model_copy(update={"inference": plan.inference.model_copy(update={"weights": weights})})
    zero = 0 if plan.is_inference else framework_row(plan, catalog).zero
    parallel = resolve_parallelism(plan.parallelism, int(cluster.devices), zero)
    training = plan.training
    replicas = int(parallel.dp or 1)
    per_update = int(training.micro_batch) * replicas
    global_batch = training.global_batch or per_update
    if not plan.is_inference:
        require(BATCH_FOR_ALL, Layout(float(cluster.devices), dp=float(replicas), global_batch=float(global_batch)))
    method = training.method or (FULL if plan.is_finetuning else None)
    towers = towers_of(training, shape)
    training = training.model_copy(update={"global_batch": global_batch, "method": method, "towers": towers})
    resolved = plan.model_copy(update={"parallelism": parallel, "training": training})
    if shape is not None:
        refuse_impossible(plan_layout(resolved, shape, catalog))
    cluster = with_user_runs(cluster, run_like(resolved, family, shape, cluster.device, catalog), catalog)
    return ResolvedPlan(resolved, family, cluster, shape, network, why)


def job_steps(plan: Plan) -> float | None:
    """Return the optimizer steps of a settled plan; None where it gives no length."""
    steps = steps_of(plan.training, float(plan.training.global_batch or 1), float(plan.training.seq_len))
    return None if steps is None else float(steps)


def steps_of(training: TrainingSection, batch: Number, seq_len: Number) -> Number | None:
    """Return the optimizer steps of a job; None where the plan gives no length.

    Args:
        batch: sequences or samples of a step, over arrays of runs too.
        seq_len: tokens of a sequence.
    """
    if training.steps is not None:
        return float(training.steps)
    if training.tokens is not None:
        return np.maximum(1.0, np.ceil(float(training.tokens) / (batch * seq_len)))
    if training.epochs is not None and training.samples is not None:
        return np.maximum(1.0, np.ceil(training.epochs * training.samples / batch))
    return None


def _with_notes(cluster: Cluster, plan: Plan, family: Family, weights: str, catalog: Catalog) -> Cluster:
    """Return the cluster, saying how names of the plan were understood that no row has."""
    name, rows, notes = plan.model.name, catalog.architectures, []
    if name is not None and family.id in rows and (rows.is_variant(name) or rows.names_another(name)):
        notes.append(f"{printable(name)} has the shape of {family.id}")
    if not plan.is_inference and plan.training.framework is not None:
        notes += _counted_as(plan.training.framework, catalog)
    if weights:
        notes.append(weights)
    return replace(cluster, assumed=(*cluster.assumed, *(note for note in notes if note not in cluster.assumed)))


def _counted_as(framework: str, catalog: Catalog) -> Iterator[str]:
    """Say what named software counts as, unless it has a row of its own."""
    row = catalog.frameworks[software_id(framework, catalog)]
    if row.id == UNNAMED:
        yield f"{printable(framework)} counts as training software without a name"
    elif key_of(named_release(framework)[0]) not in {key_of(row.id), key_of(row.name)}:
        yield f"{printable(framework)} counts as {row.name}, which it is or is built on"


def _with_spec(plan: Plan, spec: Spec) -> Plan:
    return plan.model_copy(update={"model": plan.model.model_copy(update={"spec": spec.model_dump(mode="json")})})


def _shape(plan: Plan, family: Family, catalog: Catalog) -> TransformerShape:
    if plan.model.config is not None:
        from capacity_tui.engine.models import shape_from_huggingface  # noqa: PLC0415 - few plans have such a file

        return shape_from_huggingface(plan.model.config)
    bare = family.id in ("transformer_decoder", "transformer_encoder")
    row = None if bare else catalog.architectures[family.id]
    if row is not None and not plan.model.spec:
        return shape_of(row)
    return shape_from_spec(row, plan.model.spec, family.id if bare else "transformer_decoder")


def _with_fixed_lengths(plan: Plan, shape: TransformerShape) -> Plan:
    """Return the plan with the sequence that the model always reads, where it does."""
    tokens = shape.fixed_length
    if not tokens:
        return plan
    training = plan.training.model_copy(update={"seq_len": tokens})
    inference = plan.inference.model_copy(update={"prompt_tokens": tokens})
    return plan.model_copy(update={"training": training, "inference": inference})


def _refuse_open(plan: Plan) -> None:
    for section_name in ("training", "inference", "parallelism"):
        section = getattr(plan, section_name)
        for name, value in section:
            if value == AUTO:
                field = Place(field=f"{section_name}.{name}")
                raise PlanError("still auto", hint="choose a mode, or give a value", place=field)


def unsaid(resolved: ResolvedPlan, reasons: Mapping[str, str]) -> tuple[Assumption, ...]:
    """Return what a settled plan has that nobody wrote, the most important first, with reasons by path."""
    return ordered(resolved.plan, _unsaid(resolved, reasons))


def with_assumed(estimate: Estimate, plan: Plan, earlier: Iterable[Assumption]) -> Estimate:
    """Return an estimate of a settled plan that tells also what was assumed before its plan was made."""
    there = (Assumption(entry.key, _value(plan, entry.key), entry.why, entry.moves) for entry in earlier)
    return replace(estimate, assumed=ordered(plan, (*there, *estimate.assumed)))


def ordered(plan: Plan, assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return assumptions in the order of their importance, one for each field; the first of a field counts."""
    known = _fields(plan.task or "train")
    by_key: dict[str, Assumption] = {}
    for entry in assumptions:
        by_key.setdefault(entry.key, replace(entry, moves=entry.moves or known.get(entry.key, ())))
    rank = {path: index for index, path in enumerate((_MEMORY, *known))}
    return tuple(sorted(by_key.values(), key=lambda entry: rank.get(entry.key, len(rank))))


def _unsaid(resolved: ResolvedPlan, reasons: Mapping[str, str]) -> Iterator[Assumption]:
    plan = resolved.plan
    device = resolved.cluster.device
    if device.memory_bytes is None:
        why = f"the memory of {device.name} is not known (give 16GiB ram, or {_MEMORY}=16384)"
        yield Assumption(_MEMORY, None, why, (Figure.MEMORY_UTILIZATION_PERCENT,))
    if plan.task in TRAINED and resolved.family.kind != "classical" and job_steps(plan) is None:
        yield Assumption(Key.TRAINING_TOKENS, None, _NO_LENGTH)
    for path in _fields(plan.task or "train"):
        value = _value(plan, path)
        if path in reasons:
            yield Assumption(path, value, reasons[path])
        elif path == Key.INFERENCE_WEIGHTS:
            if why := resolved.weights_assumed:
                yield Assumption(path, value, why)
        elif path == Key.TRAINING_PREDICTED_TOKENS:
            if value is None and resolved.shape is not None and resolved.shape.source_positions:
                yield Assumption(path, int(TRANSCRIPT_TOKENS), _TRANSCRIPT)
        elif path == _IMAGE:
            if (side := _usual_image(resolved)) and value in (None, side):
                yield Assumption(path, side, _USUAL)
        elif value is not None and not _is_written(resolved, path) and _applies(resolved, path):
            yield Assumption(path, value, _USUAL)


def _applies(resolved: ResolvedPlan, path: str) -> bool:
    """Whether a field is one of the kind of model, and no other says the same."""
    families = all_fields()[path].knob.families if path in all_fields() else ()
    is_unwritten = path == Key.INFERENCE_OUTPUT_TOKENS and resolved.shape is not None and not generates(resolved.shape)
    if is_unwritten or (families and resolved.family.kind not in families):
        return False
    return path != Key.INFERENCE_BATCH or all(resolved.plan.value(load) is None for load in _LOADS)


def _usual_image(resolved: ResolvedPlan) -> int:
    """Return the side of the image that a model reads where its plan says no other; 0 where it reads none."""
    given, row = resolved.plan.model.spec or {}, load_catalog().networks.get(resolved.family.id)
    if resolved.shape is not None and resolved.shape.vision is not None:
        return 0 if "image_size" in given else int(resolved.shape.vision.image)
    is_open = "image_size" in given and given.get("image_h") is None and given.get("image_w") is None
    return row.image_size if row is not None and is_open else 0


def _value(plan: Plan, path: str) -> object:
    return plan.task if path == Key.TASK else plan.value(path)


def _is_written(resolved: ResolvedPlan, path: str) -> bool:
    section, _, name = path.rpartition(".")
    if section == Key.MODEL_SPEC:
        known = None if resolved.spec is None else type(resolved.spec).model_fields.get(name)
        return known is None or known.default != resolved.plan.value(path)
    return not section or name in getattr(resolved.plan, section).model_fields_set


@cache
def _fields(task: str) -> Mapping[str, tuple[str, ...]]:
    rows: dict[str, dict[str, Any]] = parse_shipped("unsaid.yaml")
    return {path: tuple(figures) for path, figures in rows[task].items()}


def kind_of_run(plan: Plan, shape: TransformerShape | None) -> str:
    """Return which kind of figures a transformer or a network has."""
    if shape is None:
        return "network-inference" if plan.is_inference else "network-training"
    return "serving" if plan.is_inference else "training"


def run_like(
    plan: Plan, family: Family, shape: TransformerShape | None, device: Device, catalog: Catalog
) -> RunFeatures:
    """Return what a settled plan is like, with its kind: by words, and by numbers."""
    if family.kind in ("classical", "plugin"):
        spec = plan.model.spec or {}
        words = {KIND: family.kind, "family": family.id, "precision": str(spec.get("precision"))}
        sizes = {"length": spec.get("n"), "parameters": spec.get("p")}
        return RunFeatures(words, numbers={name: float(str(size)) for name, size in sizes.items() if size is not None})
    name = family.id if shape is None else MIXTURE if float(shape.experts) > 0 else shape.kind
    kind = {KIND: kind_of_run(plan, shape), "family": name}
    words = {**kind, **_software(plan, shape, device, catalog), "layout": ", ".join(_layout(plan))}
    return RunFeatures(words, numbers=_numbers(plan, shape))


def _software(plan: Plan, shape: TransformerShape | None, device: Device, catalog: Catalog) -> dict[str, str]:
    if plan.is_inference and shape is not None:
        weights = catalog.quantizations.find(plan.inference.weights_format)
        return {"software": engine_row(plan.inference.engine, device, catalog).id, "precision": weights.id}
    training = plan.training
    adapter = training.adapter.kind if training.adapter is not None else FULL
    base = base_format(training)
    words = {
        "software": framework_row(plan, catalog).id,
        "precision": str(training.precision),
        "method": f"{adapter}, {base}" if base else adapter,
        "optimizer": training.optimizer,
    }
    stores = shape is not None and stores_scores(plan, shape, device, catalog)
    return {**words, "attention": "stored"} if stores else words


def _layout(plan: Plan) -> Iterator[str]:
    """Yield in which ways the devices share the work, and what is done to save memory."""
    for way in _WAYS:
        if (size := int(getattr(plan.parallelism, way) or 0)) > (0 if way == "zero" else 1):
            yield f"{way} {size}"
    if plan.parallelism.offload != "none":
        yield f"offload {plan.parallelism.offload}"
    if not plan.is_inference and plan.training.checkpointing != "none":
        yield f"checkpointing {plan.training.checkpointing}"


def _numbers(plan: Plan, shape: TransformerShape | None) -> dict[str, Number]:
    inference, training = plan.inference, plan.training
    serves = plan.is_inference
    numbers: dict[str, Number] = {
        "devices": float(plan.hardware.devices or 1),
        "batch": float(inference.batch if serves else training.micro_batch),
    }
    if shape is None:
        return numbers
    length = inference.prompt_tokens + inference.output_tokens if serves else training.seq_len
    return {**numbers, "length": float(length), "parameters": count_parameters(shape).total}


def user_runs_of(runs: Sequence[MeasuredRun], catalog: Catalog) -> UserRuns:
    """Return runs of the user's own on one device with how alike they are."""
    value = {name: catalog.coefficients[f"own-run-{name}"].value for name in (*ALIKE_WORDS, *_OF_LIKENESS)}
    words = {name: value[name] for name in ALIKE_WORDS}
    return UserRuns(runs, Similarity(words, **{name: value[name] for name in _OF_LIKENESS}))


def with_user_runs(cluster: Cluster, like: RunFeatures, catalog: Catalog) -> Cluster:
    """Return a cluster as fast as runs of the user's own on its device show it for a plan that is like this."""
    if not cluster.device.efficiency.runs:
        return cluster
    runs, device = user_runs_of(cluster.device.efficiency.runs, catalog), cluster.device.with_speed(1.0)
    outside = runs.context_bytes(like.words, like.numbers, float(device.efficiency.context_bytes))
    return replace(cluster, device=device.with_speed(runs.speed(like.words, like.numbers), outside))
