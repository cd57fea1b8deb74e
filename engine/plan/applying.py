"""Which fields of a plan change nothing in it, and why: declared once for screen, warnings and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict, Unpack

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.models.families import Kind
from capacity_tui.engine.plan.names import UNNAMED
from capacity_tui.engine.plan.plan import AUTO, Plan

TREES = ("decision_tree", "random_forest", "xgboost_like")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides whether a field has an effect.

    Attributes:
        plan: the plan; what is ``auto`` or not given may still become anything.
        kind: kind of its model.
        task: what is done with it.
        devices: devices of its hardware; None where that is unknown.
        per_node: devices of one node, likewise.
        has_experts: whether the model is a mixture of experts, likewise.
        zero: what replicas share, as given or as the framework does; None while it is open.
        claims_memory: whether the engine takes a share of memory for itself.
        on_processor: whether it runs on processors alone, likewise.
        has_spot_price: whether a spot price is known for its hardware, likewise.
    """

    plan: Plan
    kind: Kind
    task: str
    devices: int | None = None
    per_node: int | None = None
    has_experts: bool | None = None
    zero: int | None = None
    claims_memory: bool = False
    on_processor: bool | None = None
    has_spot_price: bool | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """A condition without which a field changes nothing.

    Attributes:
        reason: what is missing, in words.
        lacks: whether it is missing for certain.
    """

    reason: str
    lacks: Callable[[Circumstances], bool]


def _is_one(path: str) -> Callable[[Circumstances], bool]:
    """A size of one for certain: left out it is one too, but in serving the least that fits."""
    return lambda here: here.plan.value(path) == 1 or (here.plan.value(path) is None and here.task != "infer")


def _lacks_nodes(here: Circumstances) -> bool:
    if here.devices is None:
        return False
    return here.devices <= (here.per_node or here.devices)


ADAPTER = Need("needs an adapter: method lora, qlora or dora", lambda here: here.plan.training.adapter is None)
NODES = Need("needs more than one node", _lacks_nodes)
DEVICES = Need("needs more than one device", lambda here: here.devices == 1)
EXPERTS = Need("needs a mixture of experts", lambda here: here.has_experts is False)
STAGES = Need("needs more than one pipeline stage", _is_one("parallelism.pp"))
SPLIT_LAYERS = Need("needs layers split over devices: TP above 1", _is_one("parallelism.tp"))
REPLICAS = Need("needs more than one replica", lambda here: here.devices == 1 or here.plan.parallelism.dp == 1)
SHARING = Need("needs ZeRO 1 or higher", lambda here: here.zero == 0)
EPOCHS = Need("needs epochs", lambda here: here.plan.training.epochs is None)
SAMPLES = Need("needs samples: without them the job has no length", lambda here: here.plan.training.samples is None)
SHORT_NUMBERS = Need(
    "needs a precision of 16 bits or fewer", lambda here: here.plan.training.precision in ("fp32", "tf32")
)
FILES_ALONE = Need("changes no figure; it is written to framework files", lambda here: here.task != "fit")
CLAIM = Need("needs an engine that claims memory: vllm or sglang", lambda here: not here.claims_memory)
ACCELERATOR = Need("needs an accelerator", lambda here: here.on_processor is True)
SERVED_ALONE = Need("a network of layers runs in plain PyTorch", lambda here: here.kind == "network")
ONE_DEVICE_MODELS = Need("this kind of model runs on one device", lambda here: here.kind in ("classical", "plugin"))
SPLIT_MODEL = Need(
    "needs a served model that is split over devices: TP or PP above 1",
    lambda here: here.task == "infer" and here.plan.parallelism.tp == here.plan.parallelism.pp == 1,
)
ENERGY = Need("the energy of serving is not estimated", lambda here: here.task == "infer")
SPOT_PRICE = Need("no spot price of this hardware is known", lambda here: here.has_spot_price is False)
PROCESSORS = Need("needs processors: this runs on an accelerator", lambda here: here.on_processor is False)
MATRICES = Need("trees multiply no matrices", lambda here: here.plan.model.name in TREES)

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "training.quantization": (ADAPTER,),
    "training.learning_rate": (FILES_ALONE,),
    "training.samples": (EPOCHS,),
    "training.master_weights": (SHORT_NUMBERS,),
    "model.spec.n_jobs": (PROCESSORS,),
    "hardware.interconnect": (NODES, ONE_DEVICE_MODELS, SPLIT_MODEL),
    "hardware.ports_per_node": (NODES, ONE_DEVICE_MODELS, SPLIT_MODEL),
    "hardware.per_node": (DEVICES, ONE_DEVICE_MODELS),
    "hardware.efficiency": (MATRICES,),
    "pricing.usd_per_kwh": (ENERGY,),
    "pricing.spot": (SPOT_PRICE,),
    "parallelism.tp": (DEVICES,),
    "parallelism.pp": (DEVICES,),
    "parallelism.cp": (DEVICES,),
    "parallelism.dp": (DEVICES,),
    "parallelism.ep": (EXPERTS, DEVICES),
    "parallelism.etp": (EXPERTS, DEVICES),
    "parallelism.interleave": (STAGES,),
    "parallelism.zero": (REPLICAS,),
    "parallelism.shard": (REPLICAS, SHARING),
    "parallelism.sequence_parallel": (SPLIT_LAYERS,),
    "inference.gpu_memory_utilization": (CLAIM,),
    "inference.gpu_layers": (ACCELERATOR,),
    "inference.engine": (SERVED_ALONE,),
}


WISHES = (
    "training.quantization",
    "training.samples",
    "training.master_weights",
    "hardware.interconnect",
    "hardware.ports_per_node",
    "parallelism.ep",
    "parallelism.interleave",
    "parallelism.sequence_parallel",
    "inference.gpu_memory_utilization",
    "inference.gpu_layers",
)
"""Fields that nobody sets without wanting something of them; sizes that follow from others are none of these."""


def idle_reason(path: str, here: Circumstances) -> str:
    """Return why a field changes nothing in a plan; empty where it may change something."""
    return next((need.reason for need in NEEDS.get(path, ()) if need.lacks(here)), "")


class Counts(TypedDict, total=False):
    """What is known of a plan's hardware: see ``Circumstances``."""

    devices: int
    per_node: int
    on_processor: bool
    has_spot_price: bool


def circumstances(plan: Plan, kind: Kind, task: str, catalog: Catalog, **counts: Unpack[Counts]) -> Circumstances:
    """Return what decides whether fields have an effect.

    Args:
        plan: the plan.
        kind: kind of its model.
        task: what is done with it.
        catalog: facts.
        counts: what is known of its hardware.
    """
    engines = [row for row in catalog.engines.values() if row.engine == plan.inference.engine]
    return Circumstances(
        plan,
        kind,
        task,
        counts.get("devices", plan.hardware.devices),
        counts.get("per_node", plan.hardware.per_node),
        _has_experts(plan, kind, catalog),
        _zero(plan, catalog),
        any(row.memory_policy != "needed" for row in engines),
        counts.get("on_processor"),
        counts.get("has_spot_price"),
    )


def given_in_vain(here: Circumstances) -> Iterator[tuple[str, str]]:
    """Yield each field that the plan sets to something of its own though it changes nothing, and why."""
    if _is_read("training", here.task) and here.plan.training.epochs is not None and SAMPLES.lacks(here):
        yield "training.epochs", SAMPLES.reason
    for path in WISHES:
        section, _, name = path.partition(".")
        holder = getattr(here.plan, section)
        default = type(holder).model_fields[name].get_default()
        value = getattr(holder, name)
        if not _is_read(section, here.task) or value in (default, AUTO, None, 1, False):
            continue
        if reason := idle_reason(path, here):
            yield path, reason


def _is_read(section: str, task: str) -> bool:
    """Whether a task reads a section at all."""
    return not ((section == "training" and task in ("infer", "fit")) or (section == "inference" and task != "infer"))


def _zero(plan: Plan, catalog: Catalog) -> int | None:
    if plan.parallelism.zero is not None:
        return None if plan.parallelism.zero == AUTO else int(plan.parallelism.zero)
    return catalog.frameworks[catalog.frameworks.find_id(plan.training.framework or UNNAMED) or UNNAMED].zero


def _has_experts(plan: Plan, kind: Kind, catalog: Catalog) -> bool | None:
    """Return whether a plan's model is a mixture of experts; None where only its file knows."""
    if kind != "transformer" or plan.model.spec.get("experts"):
        return kind == "transformer"
    if plan.model.config is not None or plan.model.name in (None, AUTO):
        return None
    row = catalog.architectures.find_id(plan.model.name or "")
    return bool(row and catalog.architectures[row].experts)
