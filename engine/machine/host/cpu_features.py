"""What a CPU's feature flags say: instruction sets, vector width, microarchitecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.engine.machine.device_names import device_names
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.host_files import Host

if TYPE_CHECKING:
    from archspec.cpu import Microarchitecture

CPUINFO = "/proc/cpuinfo"
IMPLIED = frozenset({"sse3"})  # the kernel calls it pni; every x86-64 CPU since 2004 has it
SVE_LENGTH = "/proc/sys/abi/sve_default_vector_length"
FAMILIES = {"arm64": "aarch64", "AMD64": "x86_64"}  # uname's names where archspec has another


def feature_flags(pairs: dict[str, str]) -> frozenset[str]:
    """Return the flags of x86, or the features of ARM, from the pairs of /proc/cpuinfo."""
    return frozenset((pairs.get("flags") or pairs.get("Features") or "").split())


def simd_names(flags: frozenset[str]) -> Fact[tuple[str, ...]]:
    """Return the usual names of the instruction sets that matter for machine learning."""
    if not flags:
        return missing(CPUINFO, "no feature flags listed")
    return detected(tuple(entry.name for entry in device_names().simd if entry.flag in flags), CPUINFO)


def simd_bits(host: Host, flags: frozenset[str]) -> Fact[int]:
    """Return the width of the widest vectors in bits; SVE's length is the kernel's."""
    if "sve" in flags:
        length = host.integer(SVE_LENGTH).map(lambda count: count * 8)
        if length.value is not None:
            return length
    widths = [entry.bits for entry in device_names().simd if entry.flag in flags and entry.bits]
    return detected(max(widths), CPUINFO) if widths else missing(CPUINFO, "no vector instructions listed")


def microarchitecture(host: Host, pairs: dict[str, str]) -> Fact[str]:
    """Return the microarchitecture by the processor's numbers; else the newest all of whose features are here."""
    numbers = [pairs.get(key, "") for key in ("cpu family", "model", "stepping")]
    if all(number.isdigit() for number in numbers):
        family, model, stepping = map(int, numbers)
        rows = device_names().x86_models
        known = next((row for row in rows if row.fits(pairs.get("vendor_id", ""), family, model, stepping)), None)
        if known is not None:
            return detected(known.name, "family, model and stepping in /proc/cpuinfo")
    return _by_features(host, pairs)


def _by_features(host: Host, pairs: dict[str, str]) -> Fact[str]:
    from archspec.cpu import TARGETS  # noqa: PLC0415 - 20 ms, in a probe's own thread
    from archspec.cpu.schema import TARGETS_JSON  # noqa: PLC0415

    root = FAMILIES.get(host.architecture, host.architecture)
    implementer = pairs.get("CPU implementer", "")
    vendor = TARGETS_JSON["conversions"]["arm_vendors"].get(implementer) or pairs.get("vendor_id", "generic")
    flags, part = feature_flags(pairs) | IMPLIED, pairs.get("CPU part", "")
    family = [target for target in TARGETS.values() if target.family.name == root]
    fitting = [target for target in family if target.vendor in (vendor, "generic")]
    fitting = [target for target in fitting if target.features <= flags]
    named = [target for target in fitting if part and target.cpu_part == part]
    generic = [target for target in fitting if target.vendor == "generic" and not target.cpu_part]
    if not generic or flags == IMPLIED:
        return missing("archspec", f"no known microarchitecture of the {root} family fits the flags")
    level = max(generic, key=_age)
    newest = max(named or [target for target in fitting if level in target.ancestors] or [level], key=_age)
    return detected(str(newest.name), "archspec, from the flags in /proc/cpuinfo")


def _age(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)
