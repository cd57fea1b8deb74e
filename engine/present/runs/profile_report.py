"""What profiling a program showed, as rows and as a page."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from http.client import responses
from operator import attrgetter

from capacity_tui.engine.present.parts import Part, PicturePart, TablePart, TextPart, parts_as_html, table_part
from capacity_tui.engine.present.pictures.charts import Course, course_chart
from capacity_tui.engine.present.runs.run_report import report_words
from capacity_tui.engine.runs.profile import (
    UNITS,
    GpuSnapshot,
    GpuUsage,
    Profile,
    ProfilingSummary,
    ResourceSnapshot,
    missing_of,
    taken_by_others,
)
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_power,
    format_rate,
    format_seconds,
    format_temperature,
    not_available,
)

Row = tuple[str, str]
_LONGEST_COMMAND = 60
_MOST_CORES = 16


def profile_title(profile: Profile) -> str:
    """Return what ran, how it ended and how long it took."""
    summary, ended = profile.summary, profile.ended
    words = shlex.join(profile.command) or "this process"
    shown = words if len(words) <= _LONGEST_COMMAND else words[: _LONGEST_COMMAND - 1] + "…"
    parts = [shown, format_seconds(summary.duration_seconds), f"{summary.usage.snapshots} looks"]
    if ended is not None:
        by = f" ({signal.Signals(ended.signal).name})" if ended.signal is not None else ""
        parts.insert(1, f"exit code {ended.exit_code}{by}")
    return " · ".join(parts)


def profile_rows(summary: ProfilingSummary) -> tuple[Row, ...]:
    """Return what a profile came to, as names and words."""
    missing = missing_of(summary)
    return (
        ("Memory", _memory(summary, missing.get("memory_bytes", ""))),
        ("CPU", _cpu(summary, missing.get("cpu_percent", ""))),
        ("Cores", _cores(summary, missing.get("cpu_per_core_percent", "too short a run"))),
        ("Disk", _disk(summary, missing)),
        ("Network", _network(summary, missing)),
        *((("Latency", _latency(summary)),) if summary.latency else ()),
        *_gpus(summary, missing),
        *(
            (f"Stage {stage.name}", _joined(format_seconds(stage.seconds), *_work(stage.samples, stage.seconds)))
            for stage in summary.stages
        ),
        *(
            (("Work", _joined(*_work(summary.samples, summary.duration_seconds))),)
            if summary.samples is not None
            else ()
        ),
        ("Bottleneck", bottleneck_text(summary)),
        *(
            ("Also", finding.evidence)
            for finding in summary.bottleneck.findings
            if finding.kind != summary.bottleneck.kind
        ),
    )


def bottleneck_text(summary: ProfilingSummary) -> str:
    """Return what held a run up, and by what that shows."""
    bottleneck = summary.bottleneck
    if not bottleneck.kind:
        return not_available(bottleneck.evidence)
    name = bottleneck.kind.replace("_", " ")
    if not bottleneck.findings:
        share = format_percent(bottleneck.confidence)
        return f"none reached its threshold; nearest is {name}, at {share} of its own: {bottleneck.evidence}"
    if taken_by_others(bottleneck.kind, summary.usage):
        name = f"{name}, taken by other programs"
    return f"{name}: {bottleneck.evidence}"


def threshold_text(name: str, value: float) -> str:
    """Return a threshold of a resource with its unit."""
    return format_bandwidth(value) if name == "disk" else f"{value:g} {UNITS[name]}"


def _memory(summary: ProfilingSummary, reason: str) -> str:
    usage = summary.usage
    if usage.peak_memory_bytes is None:
        return not_available(reason)
    mean, text = usage.mean("memory_bytes"), summary.memory_bytes_per_sample
    processes, total = usage.peak("processes") or 0, usage.mean("system_memory_total_bytes")
    return _joined(
        f"{format_bytes(usage.peak_memory_bytes)} at the peak",
        f"{format_bytes(mean)} on average" if mean is not None else "",
        f"of {format_bytes(total)}" if total else "",
        f"{format_bytes(text)} a sample" if text is not None else "",
        f"{format_number(processes)} processes" if processes > 1 else "",
    )


def _cpu(summary: ProfilingSummary, reason: str) -> str:
    share, seconds = summary.cpu_avg_percent, summary.usage.totals["cpu_seconds"]
    if share is None:
        return not_available(reason)
    peak = summary.cpu_peak_percent
    return _joined(
        f"{format_percent(share / 100)} of one core on average",
        f"{format_percent(peak / 100)} at the peak" if peak is not None else "",
        f"{format_seconds(seconds)} of CPU time",
    )


def _cores(summary: ProfilingSummary, reason: str) -> str:
    cores = summary.usage.cores
    if cores is None:
        return not_available(reason)
    if len(cores) > _MOST_CORES:
        busiest = sorted(cores, reverse=True)[:_MOST_CORES]
        return f"busy, by all programs: {_listed(busiest)} (the {_MOST_CORES} busiest of {len(cores)})"
    return f"busy, by all programs: {_listed(cores)}"


def _listed(cores: Sequence[float]) -> str:
    return ", ".join(format_percent(value / 100) for value in cores)


def _disk(summary: ProfilingSummary, missing: dict[str, str]) -> str:
    usage = summary.usage
    read, written = usage.totals["read_bytes"], usage.totals["written_bytes"]
    whole = usage.mean("disk_read_bytes_per_second"), usage.mean("disk_write_bytes_per_second")
    machine = (
        f"machine {format_bandwidth(whole[0])} read, {format_bandwidth(whole[1])} written" if None not in whole else ""
    )
    if read is None or written is None:
        return _joined(not_available(missing.get("read_bytes", "")), machine)
    return _joined(f"{format_bytes(read, 'MB')} read", f"{format_bytes(written, 'MB')} written", machine)


def _network(summary: ProfilingSummary, missing: dict[str, str]) -> str:
    received, sent = summary.usage.system_totals["received"], summary.usage.system_totals["sent"]
    if received is None or sent is None:
        return not_available(missing.get("received", "too short a run"))
    return f"{format_bytes(received, 'MB')} received, {format_bytes(sent, 'MB')} sent, by all on this machine"


def _latency(summary: ProfilingSummary) -> str:
    latency = summary.latency
    if latency is None or latency.round_trip_ms is None:
        return not_available(latency.last_failure if latency else "")
    median, most = latency.round_trip_ms
    connect = f"{latency.connect_ms[0]:.3g} ms to connect" if latency.connect_ms else ""
    failed = f"{latency.failed} of {latency.asked} failed" if latency.failed else ""
    status = latency.status or HTTPStatus.OK
    refused = f"refused with {status} {responses.get(status, '')}".rstrip() if status >= HTTPStatus.BAD_REQUEST else ""
    return _joined(f"{median:.3g} ms median, {most:.3g} ms 95th percentile", connect, failed, refused)


def _gpus(summary: ProfilingSummary, missing: dict[str, str]) -> Iterator[Row]:
    if not summary.usage.gpus:
        yield "GPU", not_available(missing.get("gpus", "too short a run"))
    for gpu in summary.usage.gpus:
        yield f"GPU {gpu.index}", _gpu(gpu)


def _gpu(gpu: GpuUsage) -> str:
    busy, power = gpu.numbers["utilization_percent"].mean, gpu.numbers["power_watts"].mean
    used, total = gpu.numbers["memory_used_bytes"].peak, gpu.numbers["memory_total_bytes"].last
    own, heat = gpu.numbers["run_memory_bytes"].peak, gpu.numbers["temperature_celsius"].peak
    held = ", ".join(f"{reason} {format_percent(share)}" for reason, share in gpu.throttled.items() if share > 0)
    return _joined(
        f"{format_percent(busy / 100)} busy" if busy is not None else "",
        f"{format_bytes(used)} of {format_bytes(total)}" if used is not None and total is not None else "",
        f"{format_bytes(own)} by the run" if own is not None else "",
        format_power(power) if power is not None else "",
        f"{format_temperature(heat)} at most" if heat is not None else "",
        f"throttled by {held}" if held else "",
    )


def _work(samples: float | None, seconds: float) -> tuple[str, ...]:
    if samples is None:
        return ()
    rate = (format_rate(samples / seconds, "samples/s"),) if seconds > 0 else ()
    return (f"{format_count(samples)} samples", *rate)


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def profile_page(profile: Profile) -> str:
    """Return a profile as a page: figures, what held it up with all scores, curves, stages, what is missing."""
    return parts_as_html(profile_title(profile), _page_parts(profile))


def _page_parts(profile: Profile) -> Iterator[Part]:
    summary = profile.summary
    bottleneck = summary.bottleneck
    yield TextPart(bottleneck_text(summary), "dim")
    yield TextPart(f"Looked at every {summary.interval:g} s, more often in the beginning.", "quiet")
    yield TextPart("Figures", "strong")
    yield table_part(("", ""), profile_rows(summary))
    yield TextPart("Bottlenecks", "strong")
    yield TextPart(
        "Each use relative to its threshold: 100 % is at or above it. A run can have several bottlenecks at once.",
        "quiet",
    )
    scores = bottleneck.scores.items()
    rows = [
        (name, "n/a" if score is None else format_percent(score), threshold_text(name, bottleneck.thresholds[name]))
        for name, score in scores
    ]
    bars = tuple(score or 0.0 for _, score in scores)
    yield TablePart(("Resource", "Score", "Threshold"), tuple(rows), (1, 2), bars=bars)
    if charts := tuple(_charts(profile.timeline)):
        yield TextPart("Over time", "strong")
        yield from charts
    missing = [(name.replace("_", " "), reason) for name, reason in sorted(missing_of(summary).items())]
    missing += [("profiling itself", problem) for problem in profile.problems]
    if missing:
        yield TextPart("Not available", "strong")
        yield table_part(("", ""), missing)


def _charts(timeline: tuple[ResourceSnapshot, ...]) -> Iterator[PicturePart]:
    words = report_words()
    for title, chart in words["charts"].items():
        courses = [_course(label, name, timeline) for label, name in chart["lines"].items()]
        yield from _chart(title, courses, chart["unit"])
    gpus = sorted({gpu.index for snapshot in timeline for gpu in snapshot.gpus})
    for title, chart in words["gpu_charts"].items():
        yield from _chart(title, [_gpu_course(index, chart["shows"], timeline) for index in gpus], chart["unit"])


def _chart(title: str, courses: list[Course], unit: str) -> Iterator[PicturePart]:
    known = [course for course in courses if any(value is not None for _, value in course.points)]
    drawn = course_chart(title, known, unit)
    if drawn:
        labels = tuple(course.label for course in known) if len(known) > 1 else ()
        yield PicturePart(drawn, (), f"{title}.", labels)


def _course(label: str, name: str, timeline: tuple[ResourceSnapshot, ...]) -> Course:
    read = attrgetter(name)
    points = [(snapshot.at_seconds, read(snapshot)) for snapshot in timeline]
    # What is read now and then only is a line through where it was read.
    return Course(label, [point for point in points if point[1] is not None] if name == "shared_once_bytes" else points)


def _gpu_course(index: int, name: str, timeline: tuple[ResourceSnapshot, ...]) -> Course:
    read = attrgetter(name)

    def at(gpus: tuple[GpuSnapshot, ...]) -> float | None:
        return next((read(gpu) for gpu in gpus if gpu.index == index), None)

    return Course(f"GPU {index}", [(snapshot.at_seconds, at(snapshot.gpus)) for snapshot in timeline])
