"""``models``, ``hardware`` and ``instances``: what the catalogues know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import cluster as clusters
from capacity_tui.engine import machine as machines
from capacity_tui.engine import models as model_shapes
from capacity_tui.engine import plan as plans
from capacity_tui.engine import present, schema, solve
from capacity_tui.engine.estimate import classical
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.units import (
    count_in_words,
    format_bandwidth,
    format_bytes,
    format_count,
    format_flops,
    format_money,
    format_number,
    format_power,
    format_seconds,
)
from capacity_tui.tui.cli.options import (
    contains,
    fields,
    listing_options,
    named_or_matching,
    options,
    tell_nothing,
    write_details,
    write_listing,
    write_table,
)
from capacity_tui.tui.cli.output import Output, interrupted, progress, tell, tell_problems
from capacity_tui.tui.cli.plan_sources import machine_for

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command()
@listing_options
@options("models")
def models(details: str | None, hardware: str | None, text: str, output: Output) -> None:
    """List the models a plan can name, or the largest that some hardware tunes and runs."""
    if hardware is not None:
        _write_ladder(hardware, output)
        return
    catalog = catalogs.load_catalog()
    tell_problems((*catalog.architectures.problems, *catalog.networks.problems, *model_shapes.plugin_problems(catalog)))
    if details is not None:
        _write_model(details, catalog, output)
        return
    known = [
        model
        for model in model_shapes.known_models(catalog)
        if contains(" ".join(known_cells(model)) + model.kind, text)
    ]
    # Networks whose layers are known stand among those.
    rows = [row for row in named_or_matching(catalog.architectures, text) if row.id not in catalog.networks]
    if output.is_data:
        output.data([*map(fields, rows), *map(known_entry, known)])
        return
    tables = [present.columns_part(_ARCHITECTURES, rows, is_list=True)] if rows else []
    tables += [present.table_part(KNOWN_HEADS, map(known_cells, known))] if known else []
    output.parts(tables)
    if not tables:
        tell_nothing(catalog.architectures.nearest(text))


_LADDER_HEADS = ("way", "fits", "model", "memory", "speed")


def _write_ladder(hardware: str, output: Output) -> None:
    catalog = catalogs.load_catalog()
    plan = solve.changed_by_line(
        solve.open_plan(), plan_lines.line_of_flags(plan_lines.PlanFlags(gpu=hardware), catalog=catalog), catalog
    )
    rungs: list[solve.Rung] = []
    with interrupted() as stopped, progress(f"trying models on {hardware}") as shown:
        for rung in solve.ladder(plan, machine_for(plan), catalog):
            rungs.append(rung)
            shown.show(lambda: f"{rungs[-1].way}: {rungs[-1].model}; ctrl-c stops")
            if stopped():
                tell("stopped: other ways were not tried")
                break
    rows = [(one.way, one.room, one.model, one.share, one.speed) for one in rungs]
    if output.is_data:
        output.data([dict(zip(_LADDER_HEADS, row, strict=True)) for row in rows])
    else:
        output.parts([present.table_part(_LADDER_HEADS, rows, (3, 4), range(5))])


def _write_model(name: str, catalog: catalogs.Catalog, output: Output) -> None:
    model = model_shapes.find_known_model(name, catalog)
    if model is None:
        write_details(catalog.architectures[model_shapes.family_of(name, catalog).id], output)
    elif output.is_data:
        output.data(known_details(model, catalog))
    else:
        output.show(known_parts(model, catalog))


@click.command()
@listing_options
@options("hardware")
def hardware(details: str | None, text: str, output: Output) -> None:
    """List the accelerators and processors a plan can name."""
    catalog = catalogs.load_catalog()
    tell_problems((*catalog.accelerators.problems, *catalog.processors.problems))
    if details is not None:
        row = catalog.find_hardware(details)
        write_details(row, output, _cheapest(row.id, catalog))
        return
    accelerators = named_or_matching(catalog.accelerators, text)
    processors = named_or_matching(catalog.processors, text)
    if output.is_data:
        output.data([fields(row) for row in (*accelerators, *processors)])
        return
    rows = [_accelerator_cells(row) for row in accelerators] + [_processor_cells(row) for row in processors]
    heads = ("id", "memory", "16-bit peak", "bandwidth", "power", "link", "name")
    near = (*catalog.accelerators.nearest(text)[:2], *catalog.processors.nearest(text)[:1])
    write_table(replace(present.table_part(heads, rows, range(1, 6), (0, 1)), is_list=True), output, near)


def _cheapest(device: str, catalog: catalogs.Catalog) -> Iterator[tuple[str, str]]:
    """Yield what an hour of a device costs where it is rented."""
    price = clusters.device_price(device, 1, 1, plans.PricingSection(), catalog)
    for usd, source in ((price.usd_per_hour, price.source), (price.spot_usd_per_hour, price.spot_source)):
        if usd is not None:
            yield "an hour", f"{format_money(usd)} ({source})"


@click.command()
@listing_options
@options("instances")
def instances(details: str | None, text: str, output: Output) -> None:
    """List the cloud instances a plan can name, with prices."""
    write_listing(catalogs.load_catalog().instances, _INSTANCES, details, text, output)


@click.command()
@listing_options
@options("workloads")
def workloads(details: str | None, text: str, output: Output, config: Path | None) -> None:
    """List the workloads that `fleet run` can compare instances for."""
    write_listing(catalogs.load_catalog(fleet_files=config).workloads, _WORKLOADS, details, text, output)


_WORKLOADS: Sequence[present.Column[catalogs.Workload]] = (
    present.Column("id", lambda row: row.id, is_kept=True),
    present.Column("instance", lambda row: row.scenario.current_instance, is_kept=True),
    present.Column("GPUs", lambda row: f"{row.scenario.current_gpu_count}", is_right=True, is_kept=True),
    present.Column("task", lambda row: row.scenario.workload_type, is_kept=True),
    present.Column("model", lambda row: row.scenario.model_size, is_kept=True),
    present.Column("precision", lambda row: row.scenario.precision),
    present.Column("hours", lambda row: f"{row.scenario.monthly_hours:g}", is_right=True),
    present.Column("spot", lambda row: "yes" if row.scenario.use_spot else "no"),
    present.Column("expected", lambda row: row.expected_outcome or ""),
    present.Column("tags", lambda row: ", ".join(row.tags)),
)


def _active(row: catalogs.Architecture) -> str:
    is_part = row.params_active and row.params_active != row.params_total
    return format_count(row.params_active, decimals=2) if is_part else ""


_ARCHITECTURES: Sequence[present.Column[catalogs.Architecture]] = (
    present.Column("id", lambda row: row.id, is_kept=True),
    present.Column("name", lambda row: row.name),
    present.Column("kind", lambda row: row.kind),
    present.Column("parameters", lambda row: format_count(row.params_total, decimals=2), is_right=True, is_kept=True),
    present.Column("active", _active, is_right=True),
    present.Column("context", lambda row: format_number(row.max_context) if row.max_context else "", is_right=True),
)


def _accelerator_cells(row: catalogs.Accelerator) -> Sequence[str]:
    peak = row.bf16_tflops or row.fp16_tflops or row.fp32_tflops
    return (
        row.id,
        format_bytes(row.memory_bytes),
        format_flops(peak and peak * 1e12, per_second=True),
        format_bandwidth(row.bandwidth_gbs and row.bandwidth_gbs * 1e9),
        format_power(row.tdp_w),
        format_bandwidth(row.link_gbs * 1e9) if row.link_gbs else "",
        row.name,
    )


def _processor_cells(row: catalogs.Processor) -> Sequence[str]:
    peak = row.fp32_gflops_base
    return (
        row.id,
        count_in_words(row.cores + row.efficiency_cores, "core"),
        f"{format_flops(peak and peak * 1e9, per_second=True)} fp32",
        format_bandwidth(row.bandwidth_gbs and row.bandwidth_gbs * 1e9),
        format_power(row.tdp_w),
        "",
        row.name,
    )


def _price(usd: float | None, day: str | None) -> str:
    """Return a price, with a star behind one that is old."""
    return format_money(usd) + ("*" if usd is not None and catalogs.price_age(day).is_old else "")


def _amount(number: float | None, unit: str) -> str:
    return f"{number:g} {unit}" if number else ""


_INSTANCES: Sequence[present.Column[catalogs.Instance]] = (
    present.Column("id", lambda row: row.id, is_kept=True),
    present.Column(
        "memory", lambda row: _amount((row.accelerator_memory_gb or 0) * row.device_share, "GB"), True, True
    ),
    present.Column("on demand/h", lambda row: _price(row.on_demand_usd_per_hour, row.price_date), True, True),
    present.Column("spot/h", lambda row: _price(row.spot_usd_per_hour, row.spot_price_date or row.price_date), True),
    present.Column("devices", lambda row: row.devices_words),
    present.Column("network", lambda row: _amount(row.rdma_gbit or row.network_gbit, "Gbit/s"), is_right=True),
    present.Column("region", lambda row: f"{row.provider} {row.region or ''}".rstrip()),
    present.Column("spot region", lambda row: row.spot_region or ""),
    present.Column("price of", lambda row: catalogs.marked_day(row.price_date)),
)


KNOWN_HEADS = ("id", "what it is", "complexity", "best use")
_PARAMETER_HEADS = ("parameter", "default", "unit", "range", "meaning")
_FIELD_HEADS = ("parameter", "field of the plan", "default", "meaning")
_FIELD_KEYS = ("name", "field", "default", "meaning")
_LARGEST_IN_FULL = 1e7
_ANY_NUMBER = "no limit: time grows in proportion to the samples, memory with the batch"


def known_cells(model: model_shapes.KnownModel) -> Sequence[str]:
    return (model.id, model.title, model.complexity, model.best_use)


def known_entry(model: model_shapes.KnownModel) -> dict[str, object]:
    return {
        "id": model.id,
        "name": model.title,
        "kind": model.kind,
        "complexity": model.complexity,
        "best_use": model.best_use,
    }


def known_details(model: model_shapes.KnownModel, catalog: catalogs.Catalog) -> dict[str, object]:
    return {
        **known_entry(model),
        **_limit(model, catalog),
        "parameters": [_parameter(name, knob, default) for name, knob, default in model.parameters()],
        "taken_for_fields": [dict(zip(_FIELD_KEYS, cells, strict=True)) for cells in _fields(model)],
        "example": starting_plan(model),
    }


def known_parts(model: model_shapes.KnownModel, catalog: catalogs.Catalog) -> Iterator[RenderableType]:
    """Yield the same for people: what it is, its parameters, a plan to begin with."""
    from capacity_tui.tui.cli.rich_tables import pairs, rich_parts

    entries = {**known_entry(model), **_limit(model, catalog)}
    yield pairs((key.replace("_", " "), str(value) or "n/a (nobody says)") for key, value in entries.items())
    yield from rich_parts(_known_parts(model))


def _known_parts(model: model_shapes.KnownModel) -> Iterator[present.Part]:
    yield present.TextPart("\nparameters of model.spec", "strong")
    yield present.table_part(
        _PARAMETER_HEADS,
        [
            (name, present.plan_value_text(default), knob.unit, _range(knob), knob.help or knob.label.lower())
            for name, knob, default in model.parameters()
        ],
    )
    if fields := tuple(_fields(model)):
        yield present.TextPart("\nalso taken in model.spec, for fields of the plan", "strong")
        yield present.table_part(_FIELD_HEADS, fields)
    yield present.TextPart("\na plan to begin with", "strong")
    yield present.CodePart(present.to_yaml(starting_plan(model)).rstrip())


def starting_plan(model: model_shapes.KnownModel) -> dict[str, object]:
    """Return a small plan of the model on this machine, as data."""
    return {"model": {"name": model.id, "spec": model.example()}, "hardware": {"name": "detected"}}


def _fields(model: model_shapes.KnownModel) -> Iterator[Sequence[str]]:
    """Yield what ``model.spec`` takes for fields of the plan: its name, the field, its default, what it is."""
    parameters = {name for name, _, _ in model.parameters()}
    for name, path in plan_files.SPEC_NAMES.items() if model.kind in ("network", "transformer") else ():
        entry = plans.all_fields()[path]
        if name not in parameters and (not entry.knob.families or model.kind in entry.knob.families):
            yield name, path, present.plan_value_text(entry.default), plans.field_text(path).help


def _limit(model: model_shapes.KnownModel, catalog: catalogs.Catalog) -> Mapping[str, object]:
    """Say up to how many samples the model is reasonable on this machine, and what to use beyond."""
    if model.kind == "plugin":
        return {"reasonable_up_to": "n/a (its package does not say)"}
    if model.kind != "classical":
        return {"reasonable_up_to": _ANY_NUMBER}
    device = clusters.resolve_cluster(
        plans.HardwareSection(), plans.PricingSection(), catalog, machines.detect()
    ).device
    rows = format_count(float(classical.reasonable_rows(model.id, device, catalog)), decimals=0)
    time = format_seconds(catalog.algorithms[model.id].reasonable_seconds)
    limit = f"about {rows} rows with the defaults below, in {time} and the memory of this machine"
    return {"reasonable_up_to": limit, "beyond": model.beyond}


def _parameter(name: str, knob: schema.Knob, default: object) -> dict[str, object]:
    return {
        "name": name,
        "label": knob.label,
        "default": list(default) if isinstance(default, tuple) else default,
        "unit": knob.unit or None,
        "minimum": knob.minimum,
        "maximum": knob.maximum,
        "choices": list(knob.choices) or None,
        "automatic": knob.automatic,
        "meaning": knob.help or knob.label.lower(),
    }


def _range(knob: schema.Knob) -> str:
    if knob.kind == "switch":
        return "on, off"
    if knob.choices:
        return ", ".join(knob.choices)
    if knob.minimum is None or knob.maximum is None:
        return ""
    return " to ".join(
        format_number(end) if float(end).is_integer() and end < _LARGEST_IN_FULL else f"{end:g}"
        for end in (knob.minimum, knob.maximum)
    )
