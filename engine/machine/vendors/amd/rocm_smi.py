"""AMD's own tools, for what sysfs lacks: names through amdsmi where it is installed, else through rocm-smi."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

from capacity_tui.engine.machine.device_names import match_accelerator
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host
from capacity_tui.engine.machine.machine import Accelerator, unknown_accelerator
from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.tool_tables import first_value, number

ROCM_SMI = (
    "rocm-smi",
    "--showproductname",
    "--showbus",
    "--showmeminfo",
    "vram",
    "--showpower",
    "--showtemp",
    "--json",
)
FOLDER = "/opt/rocm/bin"
NAMES = ("Card Series", "Card series", "Device Name")


def library_names() -> Mapping[str, str]:
    """Return product names by PCI address from the amdsmi library; empty where it is not installed."""
    try:
        library = import_module("amdsmi")
        library.amdsmi_init()
    except Exception:
        return {}
    names: dict[str, str] = {}
    with suppress(Exception):
        for handle in library.amdsmi_get_processor_handles():
            address = str(library.amdsmi_get_gpu_device_bdf(handle)).lower()
            names[address] = str(library.amdsmi_get_gpu_asic_info(handle)["market_name"])
    with suppress(Exception):
        library.amdsmi_shut_down()
    return names


def rocm_smi(host: Host) -> Fact[tuple[dict[str, str], ...]]:
    """Return the cards as rocm-smi lists them, one row of text a card."""
    report = host.command(*ROCM_SMI, folder=FOLDER)
    if report.value is None:
        return missing(report.source, report.reason)
    try:
        return detected(json_cards(report.value), report.source)
    except ValueError:
        return missing(report.source, "an answer that is no table of cards")


def listed_accelerators(host: Host, vendor: str) -> tuple[Accelerator, ...]:
    """Return the cards of rocm-smi where the kernel's files are hidden, as in some containers.

    Raises:
        NotPresentError: it is not installed, or lists none.
    """
    rows = rocm_smi(host)
    if not rows.value:
        raise NotPresentError(rows.reason or "rocm-smi lists no card")
    return tuple(_accelerator(index, vendor, row, rows.source) for index, row in enumerate(rows.value))


def _accelerator(index: int, vendor: str, row: Mapping[str, str], source: str) -> Accelerator:
    bare = unknown_accelerator(index, vendor, source, "rocm-smi does not tell")

    def real(*columns: str) -> Fact[float]:
        value = number(row, *columns)
        return missing(source, "rocm-smi does not tell") if value is None else detected(value, source)

    name, target = first_value(row, *NAMES), first_value(row, "GFX Version")
    total, used = real("VRAM Total Memory (B)").map(round), real("VRAM Total Used Memory (B)").map(round)
    power = real("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)")
    return replace(
        bare,
        name=detected(name, source) if name else bare.name,
        catalogue_id=match_accelerator(name, total.value) if name else bare.catalogue_id,
        memory_total_bytes=total,
        memory_used_bytes=used,
        memory_free_bytes=total.map(lambda size: size - (used.value or 0)) if used.value is not None else used,
        compute_capability=detected(target, source) if target else bare.compute_capability,
        power_watts=power,
        power_limit_watts=real("Max Graphics Package Power (W)"),
        temperature_celsius=real("Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"),
        visible=detected(True, source),
    )


def json_cards(text: str) -> tuple[dict[str, str], ...]:
    """Return the cards of ``rocm-smi --json``, in the order of their numbers; warnings before it are skipped.

    Raises:
        ValueError: this is no such table.
    """
    start = text.find("{")
    loaded = json.loads(text[start:]) if start >= 0 else None
    if not isinstance(loaded, dict):
        raise ValueError("no table of cards")
    cards = ((int(name[4:]), row) for name, row in loaded.items() if re.fullmatch(r"card\d+", name))
    return tuple({str(key): str(value) for key, value in row.items()} for _, row in sorted(cards, key=lambda p: p[0]))
