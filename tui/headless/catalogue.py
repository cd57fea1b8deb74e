"""``models``, ``hardware`` and ``instances``: what the catalogues know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless import known_models as known
from capacity_tui.tui.headless.output import (
    as_text,
    format_of,
    format_option,
    output_option,
    tell,
    tell_problems,
    write,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.api import (
        AcceleratorRow,
        ArchitectureRow,
        Catalog,
        CatalogRow,
        CatalogTable,
        InstanceRow,
        ProcessorRow,
    )

RowT = TypeVar("RowT", bound="CatalogRow")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def _listing_options(command: CommandT) -> CommandT:
    """Add the options that every catalogue has."""
    for option in (
        click.option("--filter", "text", metavar="TEXT", default="", help="Only rows that contain every word of it."),
        click.option("--list", "listing", is_flag=True, help="List the rows (the default)."),
        format_option("table", "json", "yaml"),
        output_option,
    ):
        command = option(command)
    return command


@click.command()
@_listing_options
@click.option("--details", metavar="ID", shell_complete=completion.models, help="All that is known about one.")
def models(listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None) -> None:
    """List the models a plan can name."""
    del listing
    from capacity_tui.engine.api import known_models, load_catalog, plugin_problems

    catalog = load_catalog()
    tell_problems((*catalog.architectures.problems, *catalog.networks.problems, *plugin_problems(catalog)))
    form = wanted or format_of(output)
    if details is not None:
        _write_model(details, catalog, form, output)
        return
    own = [model for model in known_models(catalog) if _contains(" ".join(known.cells(model)) + model.kind, text)]
    # Networks whose layers are known stand among those.
    rows = [row for row in _named_or_matching(catalog.architectures, text) if row.id not in catalog.networks]
    if form in ("json", "yaml"):
        _write_data([*map(_fields, rows), *map(known.listed, own)], form, output)
        return
    from capacity_tui.tui.headless.tables.layout import Listing, table

    heads = ("id", "name", "kind", "parameters", "active", "context")
    cells = [_model_cells(row) for row in rows]
    tables: list[RenderableType] = [Listing(heads, cells, frozenset((3, 4, 5)), frozenset((0, 3)))] if rows else []
    tables += [table(known.HEADS, [known.cells(model) for model in own])] if own else []
    write(as_text(tables, output is not None), output)
    if not tables:
        _tell_nothing(catalog.architectures.nearest(text))


def _write_model(name: str, catalog: Catalog, form: str | None, output: Path | None) -> None:
    from capacity_tui.engine.api import family_of, find_known_model

    model = find_known_model(name, catalog)
    if model is None:
        _write_details(catalog.architectures[family_of(name, catalog).id], form, output)
    elif form in ("json", "yaml"):
        _write_data(known.details(model, catalog), form, output)
    else:
        write(as_text(known.detail_parts(model, catalog), output is not None), output)


@click.command()
@_listing_options
@click.option("--details", metavar="ID", shell_complete=completion.devices, help="All that is known about one.")
def hardware(listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None) -> None:
    """List the accelerators and processors a plan can name."""
    del listing
    from capacity_tui.engine.api import load_catalog

    catalog = load_catalog()
    tell_problems((*catalog.accelerators.problems, *catalog.processors.problems))
    form = wanted or format_of(output)
    if details is not None:
        _write_details(catalog.find_hardware(details), form, output)
        return
    accelerators = _named_or_matching(catalog.accelerators, text)
    processors = _named_or_matching(catalog.processors, text)
    if form in ("json", "yaml"):
        _write_data([_fields(row) for row in (*accelerators, *processors)], form, output)
        return
    rows = [_accelerator_cells(row) for row in accelerators] + [_processor_cells(row) for row in processors]
    heads = ("id", "memory", "16-bit peak", "bandwidth", "power", "link", "name")
    near = (*catalog.accelerators.nearest(text)[:2], *catalog.processors.nearest(text)[:1])
    _write_table(heads, rows, range(1, 6), {0, 1}, output, near)


@click.command()
@_listing_options
@click.option("--details", metavar="ID", help="All that is known about one.")
def instances(listing: bool, details: str | None, text: str, wanted: str | None, output: Path | None) -> None:
    """List the cloud instances a plan can name, with prices."""
    del listing
    from capacity_tui.engine.api import load_catalog

    catalog = load_catalog()
    tell_problems(catalog.instances.problems)
    form = wanted or format_of(output)
    if details is not None:
        _write_details(catalog.instances.find(details), form, output)
        return
    found = _named_or_matching(catalog.instances, text)
    if form in ("json", "yaml"):
        _write_data([_fields(row) for row in found], form, output)
        return
    heads = ("id", "memory", "on demand/h", "spot/h", "devices", "network", "region", "spot region", "price of")
    cells = [_instance_cells(row) for row in found]
    _write_table(heads, cells, (1, 2, 3, 5), {0, 1, 2}, output, catalog.instances.nearest(text))


def _model_cells(row: ArchitectureRow) -> Sequence[str]:
    from capacity_tui.engine.api import format_count, format_number

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
    from capacity_tui.engine.api import format_bandwidth, format_bytes, format_flops, format_power

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
    from capacity_tui.engine.api import format_bandwidth, format_flops, format_power

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
    from capacity_tui.engine.api import format_money

    memory, network = row.accelerator_memory_gb, row.rdma_gbit or row.network_gbit
    return (
        row.id,
        f"{memory * min(1.0, row.accelerator_count):g} GB" if memory else "",
        format_money(row.on_demand_usd_per_hour),
        format_money(row.spot_usd_per_hour),
        f"{row.accelerator_count:g} x {row.accelerator}",
        f"{network:g} Gbit/s" if network else "",
        f"{row.provider} {row.region or ''}".rstrip(),
        row.spot_region or "",
        row.price_date or "",
    )


def _named_or_matching(rows: CatalogTable[RowT], text: str) -> list[RowT]:
    """Return the rows whose fields, but for remarks and sources, contain every word; else the one of that name."""
    found = [row for row in rows.values() if _contains(" ".join(map(str, _searched(row))), text)]
    named = None if found else rows.find_id(text)
    return found if named is None else [rows[named]]


def _searched(row: CatalogRow) -> Iterable[object]:
    return (value for name, value in row if not name.endswith(("notes", "source", "used_by")))


def _contains(row: str, text: str) -> bool:
    folded = row.casefold()
    return all(word in folded for word in text.casefold().split())


def _fields(row: CatalogRow) -> Mapping[str, object]:
    return row.model_dump(mode="json", exclude_none=True)


def _write_details(row: CatalogRow, form: str | None, output: Path | None) -> None:
    if form in ("json", "yaml"):
        _write_data(_fields(row), form, output)
        return
    from capacity_tui.tui.headless.tables.layout import pairs

    entries = [(key.replace("_", " "), _cell(value)) for key, value in _fields(row).items() if value != []]
    write(as_text([pairs(entries)], output is not None), output)


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _write_data(data: object, form: str, output: Path | None) -> None:
    from capacity_tui.engine.api import to_json, to_yaml

    write(to_json(data) if form == "json" else to_yaml(data), output)


def _write_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Iterable[int],
    kept: Iterable[int],
    output: Path | None,
    near: Sequence[str],
) -> None:
    from capacity_tui.tui.headless.tables.layout import Listing

    write(as_text([Listing(heads, rows, frozenset(right), frozenset(kept))], output is not None), output)
    if not rows:
        _tell_nothing(near)


def _tell_nothing(near: Sequence[str]) -> None:
    """Say that no row matches, and which names are near to what was typed."""
    close = f"; nearest: {', '.join(near)}" if near else ""
    tell(f"nothing matches{close}; leave --filter out to see everything")
