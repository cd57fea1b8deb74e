"""Random plans of all tasks, each from a seed: what a person may write, changed field by field as a key press does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import Kind
from capacity_tui.engine.plan import Plan, PlanField, all_fields, edited, plan_fields
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.schema import AUTO

Document: TypeAlias = dict[str, object]
# Kinds of plans with their shares.
KINDS = {"train": 5, "finetune": 5, "infer": 7, "network": 3, "classical": 2}
DEVICES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 12, 16, 32, 64, 256)
LAYOUTS = ("parallelism.tp", "parallelism.pp", "parallelism.dp", "parallelism.cp", "parallelism.ep")
# Fields that are drawn with the plan, or say nothing of an estimate.
LEFT = ("task", "model.name", "hardware.name", "hardware.devices", "pricing.region")
LEFT_ROLES = ("running", "output")
# Decades around its value in which a number is drawn, and the largest number where nothing says more.
DECADES, LARGEST = 1.0, 65_536.0
# Share of the fields that modes may choose which are left to them, and the most fields that are changed.
OPEN, MOST_CHANGES = 0.15, 8


def random_plan(seed: int, catalog: Catalog) -> Plan:
    """Return the plan of a seed; changes that a plan refuses are left out."""
    draw = Random(seed)
    kind = draw.choices(tuple(KINDS), tuple(KINDS.values()))[0]
    plan = plan_from_data(_base(draw, kind, catalog))
    family: Kind = "transformer" if kind in ("train", "finetune", "infer") else "network"
    family = "classical" if kind == "classical" else family
    for _ in range(draw.randint(0, MOST_CHANGES)):
        fields = [field for field in plan_fields(plan, family, catalog=catalog) if _varies(field)]
        field = draw.choice(fields)
        value = _value(draw, field, int(plan.hardware.devices or 1))
        if value is None:
            continue
        try:
            plan = edited(plan, {field.path: value}, catalog).plan
        except CapacityError:
            continue
    return plan


def plans(seeds: range, catalog: Catalog) -> Iterator[tuple[int, Plan]]:
    """Yield the plans of some seeds."""
    return ((seed, random_plan(seed, catalog)) for seed in seeds)


def _base(draw: Random, kind: str, catalog: Catalog) -> Document:
    tasks = {"network": draw.choice(("train", "train", "finetune", "infer")), "classical": "fit"}
    task = tasks.get(kind, kind)
    models = {
        "network": tuple(catalog.networks),
        "classical": tuple(name for name in catalog.algorithms if name != "common"),
    }.get(kind, tuple(catalog.architectures))
    document: Document = {
        "task": task,
        "model": {"name": draw.choice(models)},
        "hardware": {"name": _hardware(draw, kind, catalog), "devices": draw.choice(DEVICES)},
    }
    if kind == "infer":
        document["inference"] = dict(_load(draw, catalog))
    if kind == "finetune":
        document["training"] = {"method": draw.choice(all_fields()["training.method"].knob.choices)}
    return document


def _hardware(draw: Random, kind: str, catalog: Catalog) -> str:
    if draw.random() < (0.5 if kind == "classical" else 0.05):
        return draw.choice(tuple(catalog.processors))
    return draw.choice(tuple(catalog.accelerators))


def _load(draw: Random, catalog: Catalog) -> Iterator[tuple[str, object]]:
    """Yield how a model is served: by any engine, as a batch, at a rate, with users, or with both."""
    yield "engine", draw.choice(tuple(dict.fromkeys(row.engine for row in catalog.engines.values())))
    yield "prompt_tokens", draw.choice((1, 16, 128, 512, 2048, 4096, 16_384))
    yield "output_tokens", draw.choice((1, 2, 16, 128, 512, 2048))
    load = draw.choice(("batch", "batch", "rate", "rate", "users", "users", "both"))
    if load == "batch":
        yield "batch", draw.choice((1, 2, 8, 32, 100, 512, AUTO))
    if load in ("rate", "both"):
        yield "request_rate", round(10.0 ** draw.uniform(-2, 2), 3)
    if load in ("users", "both"):
        yield "concurrency", draw.choice((1, 2, 5, 16, 64, 256, 2000))


def _varies(field: PlanField) -> bool:
    knob = field.knob
    numbers = knob.kind in ("integer", "power-of-two", "number") and knob.maximum is not None
    return (
        not field.idle
        and field.path not in LEFT
        and knob.role not in LEFT_ROLES
        and (numbers or knob.kind == "switch" or (knob.kind == "choice" and bool(knob.choices)))
    )


def _value(draw: Random, field: PlanField, devices: int) -> object:
    """Return a value for a field; None where it keeps its own."""
    knob = field.knob
    if knob.automatic and draw.random() < OPEN:
        return AUTO
    if knob.kind == "choice":
        return draw.choice(knob.choices)
    if knob.kind == "switch":
        return draw.choice(("true", "false"))
    if field.path in LAYOUTS:
        return draw.choice([size for size in range(1, devices + 1) if devices % size == 0])
    low, high = float(knob.minimum or 0.0), float(knob.maximum or 0.0)
    given = float(field.value) if isinstance(field.value, int | float) and field.value else 0.0
    middle = given or math.sqrt(max(low, 1.0) * min(high, LARGEST))
    drawn = min(max(middle * 10.0 ** draw.uniform(-DECADES, DECADES), low), high)
    if knob.kind == "number":
        return float(f"{drawn:.3g}")
    return max(round(drawn), int(low))


def settings_of(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of a plan's document by dotted path."""
    for key, value in document.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, Mapping):
            yield from settings_of(value, path)
        else:
            yield path, value
