"""The catalogues as lists to pick from."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Architecture as ArchitectureRow
from capacity_tui.engine.catalog import Catalog, price_age
from capacity_tui.engine.catalog import Instance as InstanceRow
from capacity_tui.engine.catalog.rows import Region as RegionRow
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import known_models
from capacity_tui.engine.plan.files import example_names, example_title, list_plans
from capacity_tui.engine.plan.line import line_examples, offered_accelerators
from capacity_tui.engine.units import format_bytes, format_count, format_flops, format_money
from capacity_tui.tui.shown.fields import Choice

_MIB = 2**20


def choices(name: str, catalog: Catalog, machine: Machine | None) -> tuple[Choice, ...]:
    """Return what can be picked from a catalogue: model, accelerator, interconnect, region, profile or line."""
    readers = {
        "model": lambda: _models(catalog),
        "accelerator": lambda: _hardware(catalog, machine),
        "interconnect": lambda: (Choice(row.id, row.name, row.notes or "") for row in catalog.links.values()),
        "region": lambda: _regions(catalog),
        "profile": _plans,
        "line": _lines,
    }
    return tuple(readers[name]())


def _models(catalog: Catalog) -> Iterator[Choice]:
    """What has parameters of its own last: networks whose layers are known stand there, and only there."""
    for row in catalog.architectures.values():
        if row.id not in catalog.networks:
            yield Choice(row.id, row.id, _size(row), row.family)
    for model in known_models(catalog):
        yield Choice(model.id, model.id, f"{model.title} · {model.best_use}".rstrip(" ·"), model.kind)


def _size(row: ArchitectureRow) -> str:
    size = format_count(row.params_total) if row.params_total else ""
    active = f"{format_count(row.params_active)} active" if row.params_active else ""
    context = f"{format_count(row.max_context, decimals=0)} tokens" if row.max_context else ""
    parts = [size, active if row.experts else "", context]
    return " · ".join(part for part in parts if part)


def _hardware(catalog: Catalog, machine: Machine | None) -> Iterator[Choice]:
    gpus = machine.accelerators if machine else ()
    here = ", ".join(gpu.name.value or gpu.vendor for gpu in gpus) or "no GPU: the processors"
    yield Choice("detected", "detected", f"this machine: {here}")
    for row in offered_accelerators(catalog):
        peak = row.bf16_tflops or row.fp16_tflops or row.fp32_tflops
        speed = format_flops(peak and peak * 1e12, per_second=True)
        yield Choice(row.id, row.id, f"{row.name} · {format_bytes(row.memory_mib * _MIB)} · {speed}")
    for processor in catalog.processors.values():
        yield Choice(processor.id, processor.id, processor.name)
    for instance in catalog.instances.values():
        usd = instance.on_demand_usd_per_hour or instance.spot_usd_per_hour
        yield Choice(instance.id, instance.id, _offer(instance), price=f"{format_money(usd)}/h" if usd else "")


def _offer(row: InstanceRow) -> str:
    """Return where an instance is, what it has, and who offers it."""
    is_spot = row.on_demand_usd_per_hour is None and row.spot_usd_per_hour is not None
    parts = (row.region, row.devices_words, f"{row.provider} {row.name}", "spot capacity" if is_spot else "", _age(row))
    return " · ".join(part for part in parts if part)


def _age(row: InstanceRow) -> str:
    mark = price_age(row.price_date).words
    return f"price {mark}" if mark else ""


def _regions(catalog: Catalog) -> Iterator[Choice]:
    """What can be asked for: what an offer says of itself, such as any host of a marketplace, cannot."""
    rows = (row for row in catalog.regions.values() if row.provider or len(row.areas) == 1)
    return (Choice(row.id, row.id, _place(row)) for row in rows)


def _place(row: RegionRow) -> str:
    """Return whose region it is and where, or that it is a part of the world."""
    parts = (row.provider, row.name, ", ".join(row.areas)) if row.provider else ("part of the world", row.name)
    return " · ".join(filter(None, parts))


def _plans() -> Iterator[Choice]:
    for saved in list_plans():
        yield Choice(str(saved.path), saved.name, f"yours, changed {saved.changed:%Y-%m-%d}")
    for name in example_names():
        yield Choice(name, name, example_title(name))


def _lines() -> Iterator[Choice]:
    for line, words in line_examples().items():
        yield Choice(line, line, words)
