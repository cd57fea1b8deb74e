"""The bottleneck of a run: a weighed score for each resource, and what GPUs waited for or were throttled by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.profile.usage import GpuUsage, Usage
from capacity_tui.engine.units import format_bandwidth, format_percent, format_power, parse_bytes

UNITS = {"cpu": "%", "memory": "%", "disk": "MB/s", "network": "ms", "gpu": "%"}
"""The resources that are scored, with the unit of their thresholds."""
_HEAT = ("thermal (software)", "thermal (hardware)", "hardware slowdown")
_POWER = ("power cap", "power brake")
_OTHERS = ", mostly for other programs"


@dataclass(frozen=True, slots=True)
class Finding:
    """One possible bottleneck: how sure it is, from 0 to 1, and the evidence."""

    kind: str
    score: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The bottleneck of a run."""

    # ``cpu``, ``memory``, ``disk``, ``network`` or ``gpu``; where a GPU is used also ``input`` (it waits for the host),
    # ``gpu_compute``, ``gpu_memory_bandwidth``, ``gpu_power``, ``gpu_heat``, ``gpu_memory`` or ``waiting``; empty where
    # nothing could be had
    kind: str
    confidence: float  # the score of that, from 0 to 1
    evidence: str  # by what it shows, in words
    scores: Mapping[str, float | None]  # of each resource, None where its use could not be read
    findings: tuple[Finding, ...]  # all that reached its threshold, the surest first
    thresholds: Mapping[str, float]


def parse_thresholds(texts: Mapping[str, str]) -> dict[str, float]:
    """Return thresholds given as text, such as ``disk`` at ``500MB/s``; a bare number of ``disk`` is of MB/s.

    Raises:
        CapacityError: there is no such resource, or the value cannot be read or is not above zero.
    """
    read = {}
    for name, text in texts.items():
        if name not in UNITS:
            raise CapacityError(f"no threshold is called {name!r}", hint=f"there are {', '.join(UNITS)}")
        read[name] = _threshold(name, text)
    return read


def thresholds_of_tier(tier: str) -> Mapping[str, float]:
    """Return the thresholds that differ on machines of a tier, as ``detect`` reports it."""
    tiers = rules().tiers
    if tier.upper() not in tiers:
        raise CapacityError(
            f"no tier is called {tier!r}", hint=f"there are {', '.join(tiers)}; detect tells this machine's"
        )
    return tiers[tier.upper()]


def _threshold(name: str, text: str) -> float:
    unit = UNITS[name]
    plain = text.strip().removesuffix(unit).strip()
    try:
        value = float(plain) * (1e6 if name == "disk" else 1)
    except ValueError:
        if name != "disk":
            raise _no_threshold(name, text) from None
        value = float(parse_bytes(text.strip().removesuffix("/s")))
    if not 0 < value < math.inf:
        raise _no_threshold(name, text)
    return value


def _no_threshold(name: str, text: str) -> CapacityError:
    return CapacityError(f"the threshold of {name} is {text!r}", hint=f"give a number of {UNITS[name]} above 0")


def bottleneck_of(
    usage: Usage, latency_ms: float | None = None, thresholds: Mapping[str, float] | None = None
) -> Bottleneck:
    """Return the bottleneck of a run.

    Args:
        latency_ms: mean round trip to the endpoint that it depends on.
        thresholds: in the place of the shipped ones, by resource.
    """
    limits = {**rules().thresholds, **(thresholds or {})}
    uses = _uses(usage, latency_ms)
    scores = {name: None if use is None else min(1.0, use / limits[name]) for name, use in uses.items()}
    plain = [
        Finding(name, score, _evidence(name, usage, uses[name] or 0.0, limits[name]))
        for name, score in scores.items()
        if score is not None
    ]
    plain.sort(key=lambda finding: -finding.score)
    gpus = tuple(_used(usage))
    ours = tuple(_gpu_findings(usage, gpus, limits, plain)) if gpus else ()
    reached = [finding for finding in plain if finding.score >= 1 and not (ours and finding.kind == "gpu")]
    findings = tuple(dict.fromkeys((*ours, *reached)))
    first = next(iter((*ours, *plain)), Finding("", 0.0, "nothing of what it used could be had"))
    return Bottleneck(first.kind, first.score, first.evidence, scores, findings, limits)


def _uses(usage: Usage, latency_ms: float | None) -> dict[str, float | None]:
    total, used = usage.mean("system_memory_total_bytes"), usage.peak("system_memory_used_bytes")
    return {
        "cpu": _most(usage.mean("system_cpu_percent"), _busiest(usage)),
        "memory": 100 * used / total if used is not None and total else None,
        "disk": _most(
            _sum(usage.mean("disk_read_bytes_per_second"), usage.mean("disk_write_bytes_per_second")),
            _sum(usage.mean("read_bytes_per_second"), usage.mean("write_bytes_per_second")),
        ),
        "network": latency_ms,
        "gpu": _mean(_used(usage), "utilization_percent"),
    }


def _busiest(usage: Usage) -> float | None:
    """Return what the busiest process took of its core; of a run too short for two samples, what all of it took."""
    busiest = usage.mean("busiest_process_percent")
    seconds = usage.totals.get("cpu_seconds")
    if busiest is not None or seconds is None or usage.seconds <= 0:
        return busiest
    return min(100.0, 100 * seconds / usage.seconds)


def _used(usage: Usage) -> Iterator[GpuUsage]:
    """Yield the GPUs that the run uses: whose memory it holds, or which are busy where that is unknown."""
    for gpu in usage.gpus:
        used_bytes = gpu.numbers["run_memory_bytes"].peak
        busy = gpu.numbers["utilization_percent"].mean or 0.0
        if used_bytes or (used_bytes is None and busy >= rules().gpu["used_percent"]):
            yield gpu


def _evidence(name: str, usage: Usage, use: float, limit: float) -> str:
    if name == "cpu":
        machine, busiest = usage.mean("system_cpu_percent"), _busiest(usage)
        remark = _OTHERS if taken_by_others(name, usage) else ""
        machine_text = "" if machine is None else f"the machine's CPUs were {_percent(machine)} busy{remark}"
        process_text = (
            "" if busiest is None else f"the busiest process of the run kept one core {_percent(busiest)} busy"
        )
        return f"{', '.join(part for part in (machine_text, process_text) if part)} (threshold {_percent(limit)})"
    if name == "memory":
        run_memory = usage.peak_memory_bytes
        total = usage.mean("system_memory_total_bytes") or 0
        share = f", {_percent(100 * run_memory / total)} by the run" if run_memory and total else ""
        return f"{_percent(use)} of main memory was in use at the peak{share} (threshold {_percent(limit)})"
    if name == "disk":
        remark = _OTHERS if taken_by_others(name, usage) else ""
        return f"disks read and wrote {format_bandwidth(use)}{remark} (threshold {format_bandwidth(limit)})"
    if name == "network":
        return f"a round trip to the endpoint took {use:.3g} ms (threshold {limit:.3g} ms)"
    return f"GPUs were {_percent(use)} busy (threshold {_percent(limit)})"


def taken_by_others(name: str, usage: Usage) -> bool:
    """Return whether a run used less than half of what its machine was busy with; False where that is not known."""
    if name == "cpu":
        used, cores, machine = usage.mean("cpu_percent"), usage.cores, usage.mean("system_cpu_percent")
        return used is not None and machine is not None and cores is not None and used / len(cores) < machine / 2
    if name != "disk":
        return False
    used = _sum(usage.mean("read_bytes_per_second"), usage.mean("write_bytes_per_second"))
    machine = _uses(usage, None)["disk"]
    return used is not None and machine is not None and used < machine / 2


def _gpu_findings(
    usage: Usage, gpus: tuple[GpuUsage, ...], limits: Mapping[str, float], plain: list[Finding]
) -> Iterator[Finding]:
    """Yield what GPUs waited for or were throttled by, the worst first."""
    rule = rules().gpu
    busy = _mean(gpus, "utilization_percent")
    if busy is None:
        return
    filled = tuple(_full(gpus, rule["full_share"]))
    if busy < rule["starved_percent"]:
        yield _starved(usage, busy, plain)
        yield from filled
        return
    findings = sorted((*_throttled_findings(gpus, rule["held_share"]),), key=lambda finding: -finding.score)
    active = _mean(gpus, "memory_activity_percent")
    if active is not None and active >= rule["memory_activity_percent"]:
        evidence = f"its memory was in use {_percent(active)} of the time, while GPUs were {_percent(busy)} busy"
        findings.append(Finding("gpu_memory_bandwidth", min(1.0, active / limits["gpu"]), evidence))
    yield from findings
    evidence = f"GPUs were {_percent(busy)} busy, and nothing was seen to hold them down"
    if not findings:
        yield Finding("gpu_compute", min(1.0, busy / limits["gpu"]), evidence)
    yield from filled


def _starved(usage: Usage, busy: float, plain: list[Finding]) -> Finding:
    """Return what GPUs waited for that are idle much of the time."""
    idle = 1 - busy / 100
    core = rules().gpu["busy_core_percent"]
    busiest = _busiest(usage)
    if busiest is not None and busiest >= core:
        evidence = f"GPUs were only {_percent(busy)} busy while one process kept a core {_percent(busiest)} busy"
        return Finding("input", idle, f"{evidence}: the host does not feed them fast enough")
    slow = next(
        (finding for finding in plain if finding.kind in ("cpu", "disk", "network") and finding.score >= 1), None
    )
    if slow is not None:
        return Finding("input", idle, f"GPUs were only {_percent(busy)} busy; meanwhile {slow.evidence}")
    evidence = f"GPUs were only {_percent(busy)} busy, and neither CPU, disk nor network was"
    return Finding("waiting", idle, f"{evidence}: they waited for each other, for a lock, or for work")


def _throttled_findings(gpus: tuple[GpuUsage, ...], least: float) -> Iterator[Finding]:
    """Yield what drivers throttled clocks for."""
    for kind, reasons, cause in (("gpu_heat", _HEAT, "heat"), ("gpu_power", _POWER, "its power limit")):
        shares = [sum(gpu.throttled.get(reason, 0.0) for reason in reasons) for gpu in gpus]
        share = min(1.0, max(shares, default=0.0))
        if share >= least:
            drawn, limit = _mean(gpus, "power_watts"), _mean(gpus, "power_limit_watts")
            power_text = f", at {format_power(drawn)} of {format_power(limit)}" if drawn and limit else ""
            yield Finding(
                kind, share, f"{cause} held a GPU's clock down {_percent(100 * share)} of the time{power_text}"
            )


def _full(gpus: tuple[GpuUsage, ...], least: float) -> Iterator[Finding]:
    for gpu in gpus:
        used, total = gpu.numbers["memory_used_bytes"].peak, gpu.numbers["memory_total_bytes"].last
        if used and total and used / total >= least:
            evidence = f"GPU {gpu.index} had {_percent(100 * used / total)} of its memory in use at the peak"
            yield Finding("gpu_memory", min(1.0, used / total), evidence)


def _mean(gpus: Iterable[GpuUsage], name: str) -> float | None:
    known = [mean for gpu in gpus if (mean := gpu.numbers[name].mean) is not None]
    return sum(known) / len(known) if known else None


def _most(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _percent(value: float) -> str:
    return format_percent(value / 100)


@dataclass(frozen=True, slots=True)
class Rules:
    """The contents of bottlenecks.yaml."""

    thresholds: Mapping[str, float]
    tiers: Mapping[str, Mapping[str, float]]
    gpu: Mapping[str, float]


@lru_cache(maxsize=1)
def rules() -> Rules:
    """Return the shipped thresholds."""
    data = parse_shipped("bottlenecks.yaml")
    return Rules(data["thresholds"], data["tiers"], data["gpu"])
