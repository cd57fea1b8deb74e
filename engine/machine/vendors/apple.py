"""The GPU of Apple silicon, which shares main memory, through system_profiler."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from capacity_tui.engine.machine.facts import Fact, assumed, detected, missing
from capacity_tui.engine.machine.known_devices import match_accelerator, match_cpu, usable_memory
from capacity_tui.engine.machine.machine import Accelerator, Cache, Cpu, Stack, unknown, unknown_accelerator
from capacity_tui.engine.machine.main_memory import probe_memory
from capacity_tui.engine.machine.probing import Host, NotPresentError, parse_pairs
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices, Vendor

VENDOR = "Apple"
WIRED_LIMIT = "iogpu.wired_limit_mb"
PROFILER = ("system_profiler", "SPDisplaysDataType", "-json")


def probe_apple_gpu(host: Host) -> ProbedDevices:
    """Return the GPU of Apple silicon; raises NotPresentError elsewhere."""
    if host.system != "Darwin":
        raise NotPresentError("not a Mac")
    report = host.command(*PROFILER)
    if report.value is None:
        raise NotPresentError(report.reason)
    chips = [_accelerator(host, index, entry) for index, entry in enumerate(_displays(report.value))]
    if not chips:
        raise NotPresentError("no Apple GPU in this Mac")
    return ProbedDevices(tuple(chips))


def _accelerator(host: Host, index: int, entry: dict[str, str]) -> Accelerator:
    source = " ".join(PROFILER)
    name = f"{entry['sppci_model']} ({entry.get('sppci_cores', '?')}-core GPU)"
    memory = probe_memory(host)
    limit = _wired_limit(host, name, memory.total_bytes)
    free = memory.available_bytes.map(lambda left: min(left, limit.value) if limit.value else left)
    return replace(
        unknown_accelerator(index, VENDOR, source, "macOS does not tell"),
        name=detected(name, source),
        catalogue_id=match_accelerator(name, None),
        memory_total_bytes=limit,
        memory_free_bytes=free,
        runtime=detected(entry.get("spdisplays_mtlgpufamilysupport", "Metal"), source),
        integrated=detected(True, source),
        visible=detected(True, source),
    )


def _wired_limit(host: Host, name: str, total: Fact[int]) -> Fact[int]:
    """Return the bytes of main memory that Metal may hold: what the user set, else macOS's own share."""
    answer = host.command("sysctl", "-n", WIRED_LIMIT)
    if answer.value and answer.value.strip().isdigit() and int(answer.value) > 0:
        return detected(int(answer.value) << 20, f"sysctl {WIRED_LIMIT}")
    if total.value is None:
        return total
    release = (host.command("sw_vers", "-productVersion").value or "").partition(".")[0]
    usable, why = usable_memory(VENDOR, name, total.value, int(release) if release.isdigit() else None)
    return assumed(int(usable), why)


def _displays(text: str) -> list[dict[str, str]]:
    try:
        entries = json.loads(text).get("SPDisplaysDataType", [])
    except (ValueError, AttributeError):
        return []
    return [entry for entry in entries if str(entry.get("sppci_model", "")).startswith("Apple")]


SYSCTL = ("sysctl", "hw", "machdep.cpu")


def probe_apple_cpu(host: Host) -> Cpu:
    """Return the processor of a Mac; raises NotPresentError elsewhere."""
    if host.system != "Darwin":
        raise NotPresentError("not a Mac")
    report = host.command(*SYSCTL)
    if report.value is None:
        return unknown(Cpu, report.source, report.reason)
    pairs = parse_pairs(report.value)
    model = _text(pairs, "machdep.cpu.brand_string")
    silicon = (model.value or "").startswith("Apple")
    bare = unknown(Cpu, report.source, "macOS does not tell")
    return replace(
        bare,
        model=model,
        vendor=detected("Apple" if silicon else "Intel", report.source),
        microarchitecture=_microarchitecture(model),
        sockets=_number(pairs, "hw.packages"),
        physical_cores=_number(pairs, "hw.physicalcpu"),
        performance_cores=_number(pairs, "hw.perflevel0.physicalcpu"),
        efficiency_cores=_number(pairs, "hw.perflevel1.physicalcpu"),
        threads=_number(pairs, "hw.logicalcpu"),
        usable_threads=_number(pairs, "hw.logicalcpu"),
        base_mhz=_number(pairs, "hw.cpufrequency").map(lambda hertz: hertz / 1e6),
        simd=_simd(pairs, silicon),
        simd_bits=_simd_bits(pairs, silicon),
        caches=_caches(pairs),
        catalogue_id=match_cpu(model.value) if model.value else missing(model.source, model.reason),
    )


def _microarchitecture(model: Fact[str]) -> Fact[str]:
    """Return archspec's name for the generation, such as m2 for ``Apple M2 Max``."""
    generation = re.search(r"Apple (M\d+)", model.value or "")
    if generation is None:
        return missing(model.source, "not Apple silicon")
    return detected(generation[1].lower(), model.source)


def _simd(pairs: dict[str, str], silicon: bool) -> Fact[tuple[str, ...]]:
    if silicon:
        names = {"hw.optional.arm.FEAT_FP16": "NEON FP16", "hw.optional.arm.FEAT_DotProd": "NEON dot product"}
        names |= {"hw.optional.arm.FEAT_BF16": "BF16", "hw.optional.arm.FEAT_I8MM": "I8MM"}
        names |= {"hw.optional.arm.FEAT_SME": "SME"}
        return detected(("NEON", *(name for key, name in names.items() if pairs.get(key) == "1")), "sysctl hw.optional")
    names = {"hw.optional.avx1_0": "AVX", "hw.optional.avx2_0": "AVX2", "hw.optional.avx512f": "AVX-512"}
    return detected(tuple(name for key, name in names.items() if pairs.get(key) == "1"), "sysctl hw.optional")


def _simd_bits(pairs: dict[str, str], silicon: bool) -> Fact[int]:
    if silicon:
        return detected(128, "NEON")
    widths = {"hw.optional.avx512f": 512, "hw.optional.avx2_0": 256, "hw.optional.avx1_0": 256}
    return detected(max((bits for key, bits in widths.items() if pairs.get(key) == "1"), default=128), "sysctl")


def _caches(pairs: dict[str, str]) -> Fact[tuple[Cache, ...]]:
    """Return one entry a kind of cache and core; macOS has no count of them."""
    levels = []
    for key, size in pairs.items():
        kind = re.fullmatch(r"hw\.perflevel\d\.l(\d)(\w*)cachesize", key)
        if kind and size.isdigit():
            levels.append(Cache(int(kind[1]), {"i": "instruction", "d": "data"}.get(kind[2], "unified"), int(size), 1))
    return detected(tuple(levels), "sysctl hw.perflevel") if levels else missing("sysctl hw.perflevel", "not listed")


def _text(pairs: dict[str, str], key: str) -> Fact[str]:
    return detected(pairs[key], f"sysctl {key}") if pairs.get(key) else missing(f"sysctl {key}", "not listed")


def _number(pairs: dict[str, str], key: str) -> Fact[int]:
    text = pairs.get(key, "")
    return detected(int(text), f"sysctl {key}") if text.isdigit() else missing(f"sysctl {key}", "not listed")


def _stacks(host: Host) -> tuple[Stack, ...]:
    return (Stack("Metal", detected("part of macOS", "macOS")),) if host.system == "Darwin" else ()


APPLE = Vendor(
    "apple", VENDOR, probe_apple_gpu, _stacks, processor=probe_apple_cpu, packages=("mlx",), torch_backend="mps"
)
