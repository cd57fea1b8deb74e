"""Devices in the fields of the ML Capacity Planner: peaks in FLOP/s, sizes in GB, a price, and what kind they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TERA = 1e-12
_GIGA = 1e-9
_MIB_OF_GIB = 1024
_OWN_VENDOR = "own"
_EVERY = {"bandwidth_gbps": ("bandwidth_gbs", 1.0), "cost_per_hour": ("usd_per_hour", 1.0)}
_OF_ACCELERATORS = {
    **_EVERY,
    "peak_flops": ("fp32_tflops", _TERA),
    "peak_flops_fp16": ("fp16_tflops", _TERA),
    "vram_gb": ("memory_mib", _MIB_OF_GIB),
    "mem_gb": ("host_memory_gib", 1.0),
}
_OF_PROCESSORS = {**_EVERY, "peak_flops": ("fp32_flops_per_cycle", _GIGA), "mem_gb": ("memory_gib", 1.0)}


def accelerator_fields(fields: Any) -> Any:
    """Return the fields of an accelerator by the catalogue's names; without memory of its own it shares the host's."""
    if not isinstance(fields, dict) or not _says_any(fields, _OF_ACCELERATORS):
        return fields
    given = dict(fields)
    if "mem_gb" in given and not given.get("vram_gb", "memory_mib" in given):
        given |= {"vram_gb": given.pop("mem_gb"), "unified_memory": True}
    named = _named(given, _OF_ACCELERATORS)
    if isinstance(named.get("memory_mib"), float):
        named["memory_mib"] = round(named["memory_mib"])
    if "type" in named:
        named["kind"] = named.pop("type")
    return {"vendor": _OWN_VENDOR, **named}


def processor_fields(fields: Any) -> Any:
    """Return the fields of a processor by the catalogue's names; its peak is shared out over cores and clock."""
    if not isinstance(fields, dict) or not _says_any(fields, _OF_PROCESSORS):
        return fields
    named = {"vendor": _OWN_VENDOR, "base_ghz": 1.0, **_named(fields, _OF_PROCESSORS)}
    named.pop("type", None)
    peak = named.get("fp32_flops_per_cycle")
    if "peak_flops" in fields and isinstance(peak, float):
        cores, clock = _number(named.get("cores", 1)), _number(named["base_ghz"])
        if isinstance(cores, float) and isinstance(clock, float) and cores > 0 and clock > 0:
            named["fp32_flops_per_cycle"] = peak / (cores * clock)
    return named


def _says_any(fields: Mapping[str, object], names: Mapping[str, object]) -> bool:
    return "type" in fields or not names.keys().isdisjoint(fields)


def _named(fields: Mapping[str, Any], names: Mapping[str, tuple[str, float]]) -> dict[str, Any]:
    """Return fields by their own names and in their own units; what is no number stays, to be refused by its name."""
    values: dict[str, Any] = {}
    for name, value in fields.items():
        field, unit = names.get(name, (name, None))
        number = _number(value)
        values[field] = number * unit if unit is not None and isinstance(number, float) else value
    return values


def _number(value: object) -> object:
    """Return a number as such, also one that YAML takes for a word, as in 50e12."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return float(value)
    except ValueError:
        return value
