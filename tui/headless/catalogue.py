"""``models``, ``hardware`` and ``instances``: what the catalogues know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless import known_models as known
from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import (
    Columns,
    contains,
    fields,
    listing_options,
    named_or_matching,
    tell_nothing,
    write_data,
    write_details,
    write_listing,
    write_table,
)
from capacity_tui.tui.headless.output import as_text, format_of, tell_problems, write

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.catalog import Accelerator as AcceleratorRow
    from capacity_tui.engine.catalog import Architecture as ArchitectureRow
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.catalog import Instance as InstanceRow
    from capacity_tui.engine.catalog import Processor as ProcessorRow
    from capacity_tui.engine.catalog import Workload as WorkloadRow


@click.command()
@listing_options
@click.option("--details", metavar="ID", shell_complete=completion.models, help="All that is known about one.")
def models(listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None) -> None:
    """List the models a plan can name."""
    del listing
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.models import known_models, plugin_problems

    catalog = load_catalog()
    tell_problems((*catalog.architectures.problems, *catalog.networks.problems, *plugin_problems(catalog)))
    form = wanted or format_of(output)
    if details is not None:
        _write_model(details, catalog, form, output)
        return
    own = [model for model in known_models(catalog) if contains(" ".join(known.cells(model)) + model.kind, text)]
    # Networks whose layers are known stand among those.
    rows = [row for row in named_or_matching(catalog.architectures, text) if row.id not in catalog.networks]
    if form in ("json", "yaml"):
        write_data([*map(fields, rows), *map(known.listed, own)], form, output)
        return
    from capacity_tui.tui.headless.tables.layout import Listing, table

    heads = ("id", "name", "kind", "parameters", "active", "context")
    cells = [_model_cells(row) for row in rows]
    tables: list[RenderableType] = (
        [Listing(heads, cells, frozenset((3, 4, 5)), frozenset((0, 3)), is_list=True)] if rows else []
    )
    tables += [table(known.HEADS, [known.cells(model) for model in own])] if own else []
    write(as_text(tables, output is not None), output)
    if not tables:
        tell_nothing(catalog.architectures.nearest(text))


def _write_model(name: str, catalog: Catalog, form: str | None, output: Path | None) -> None:
    from capacity_tui.engine.models import family_of, find_known_model

    model = find_known_model(name, catalog)
    if model is None:
        write_details(catalog.architectures[family_of(name, catalog).id], form, output)
    elif form in ("json", "yaml"):
        write_data(known.details(model, catalog), form, output)
    else:
        write(as_text(known.detail_parts(model, catalog), output is not None), output)


@click.command()
@listing_options
@click.option("--details", metavar="ID", shell_complete=completion.devices, help="All that is known about one.")
def hardware(listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None) -> None:
    """List the accelerators and processors a plan can name."""
    del listing
    from capacity_tui.engine.catalog import load_catalog

    catalog = load_catalog()
    tell_problems((*catalog.accelerators.problems, *catalog.processors.problems))
    form = wanted or format_of(output)
    if details is not None:
        write_details(catalog.find_hardware(details), form, output)
        return
    accelerators = named_or_matching(catalog.accelerators, text)
    processors = named_or_matching(catalog.processors, text)
    if form in ("json", "yaml"):
        write_data([fields(row) for row in (*accelerators, *processors)], form, output)
        return
    rows = [_accelerator_cells(row) for row in accelerators] + [_processor_cells(row) for row in processors]
    heads = ("id", "memory", "16-bit peak", "bandwidth", "power", "link", "name")
    near = (*catalog.accelerators.nearest(text)[:2], *catalog.processors.nearest(text)[:1])
    write_table(heads, rows, range(1, 6), {0, 1}, output, near)


@click.command()
@listing_options
@click.option("--details", metavar="ID", help="All that is known about one.")
def instances(listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None) -> None:
    """List the cloud instances a plan can name, with prices."""
    del listing
    from capacity_tui.engine.catalog import load_catalog

    heads = ("id", "memory", "on demand/h", "spot/h", "devices", "network", "region", "spot region", "price of")
    columns = Columns(heads, _instance_cells, (1, 2, 3, 5), (0, 1, 2))
    write_listing(load_catalog().instances, columns, details, text, wanted or format_of(output), output)


@click.command()
@listing_options
@click.option("--details", metavar="ID", help="All that is known about one.")
@config_option
def workloads(
    listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None, config: Path | None
) -> None:
    """List the workloads that `fleet run` can compare instances for."""
    del listing
    from capacity_tui.engine.catalog import load_catalog

    heads = ("id", "instance", "GPUs", "task", "model", "precision", "hours", "spot", "expected", "tags")
    columns = Columns(heads, _workload_cells, (2, 6), (0, 1, 2, 3, 4))
    rows = load_catalog(fleet_files=config).workloads
    write_listing(rows, columns, details, text, wanted or format_of(output), output)


def _workload_cells(row: WorkloadRow) -> Sequence[str]:
    scenario = row.scenario
    return (
        row.id,
        scenario.current_instance,
        f"{scenario.current_gpu_count}",
        scenario.workload_type,
        scenario.model_size,
        scenario.precision,
        f"{scenario.monthly_hours:g}",
        "yes" if scenario.use_spot else "no",
        row.expected_outcome or "",
        ", ".join(row.tags),
    )


def _model_cells(row: ArchitectureRow) -> Sequence[str]:
    from capacity_tui.engine.units import format_count, format_number

    active = row.params_active if row.params_active != row.params_total else None
    return (
        row.id,
        row.name,
        row.kind,
        format_count(row.params_total, decimals=2),
        format_count(active, decimals=2) if active else "",
        format_number(row.max_context) if row.max_context else "",
    )


def _accelerator_cells(row: AcceleratorRow) -> Sequence[str]:
    from capacity_tui.engine.units import format_bandwidth, format_bytes, format_flops, format_power

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


def _processor_cells(row: ProcessorRow) -> Sequence[str]:
    from capacity_tui.engine.units import format_bandwidth, format_flops, format_power

    peak = row.fp32_gflops_base
    return (
        row.id,
        f"{row.cores + row.efficiency_cores} cores",
        f"{format_flops(peak and peak * 1e9, per_second=True)} fp32",
        format_bandwidth(row.bandwidth_gbs and row.bandwidth_gbs * 1e9),
        format_power(row.tdp_w),
        "",
        row.name,
    )


def _instance_cells(row: InstanceRow) -> Sequence[str]:
    from capacity_tui.engine.catalog import marked_day

    memory, network = row.accelerator_memory_gb, row.rdma_gbit or row.network_gbit
    return (
        row.id,
        f"{memory * row.device_share:g} GB" if memory else "",
        _price(row.on_demand_usd_per_hour, row.price_date),
        _price(row.spot_usd_per_hour, row.spot_price_date or row.price_date),
        row.devices_words,
        f"{network:g} Gbit/s" if network else "",
        f"{row.provider} {row.region or ''}".rstrip(),
        row.spot_region or "",
        marked_day(row.price_date),
    )


def _price(usd: float | None, day: str | None) -> str:
    """Return a price, with a star behind one that is old."""
    from capacity_tui.engine.catalog import price_age
    from capacity_tui.engine.units import format_money

    return format_money(usd) + ("*" if usd is not None and price_age(day).is_old else "")
