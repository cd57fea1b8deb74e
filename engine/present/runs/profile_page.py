"""A profile as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from markupsafe import Markup

from capacity_tui.engine.present.html import template
from capacity_tui.engine.present.pictures.charts import Course, course_chart
from capacity_tui.engine.present.runs.profile_rows import bottleneck_text, profile_rows, profile_title, threshold_text
from capacity_tui.engine.printable import printable_lines
from capacity_tui.engine.runs.profile import GpuSnapshot, Profile, ResourceSnapshot, missing_of
from capacity_tui.engine.units import format_percent

_CHARTS = (
    ("Memory of the run", "B", (("resident", "memory_bytes"), ("shared pages once", "shared_once_bytes"))),
    (
        "CPU of the run, in percent of one core",
        "%",
        (("run", "cpu_percent"), ("busiest process", "busiest_process_percent")),
    ),
    ("The machine", "%", (("CPU", "system_cpu_percent"),)),
    ("Disk, by the run", "B/s", (("read", "read_bytes_per_second"), ("written", "write_bytes_per_second"))),
    (
        "Disk, by the machine",
        "B/s",
        (("read", "disk_read_bytes_per_second"), ("written", "disk_write_bytes_per_second")),
    ),
    (
        "Network, by the machine",
        "B/s",
        (("received", "network_receive_bytes_per_second"), ("sent", "network_send_bytes_per_second")),
    ),
    ("Latency of the endpoint", "ms", (("round trip", "latency_ms"),)),
)
_GPU_CHARTS = (
    ("GPUs busy", "%", "utilization_percent"),
    ("GPU memory in use", "B", "memory_used_bytes"),
    ("GPU power", "W", "power_watts"),
    ("GPU temperature in degrees Celsius", "C", "temperature_celsius"),
)


def profile_page(profile: Profile) -> str:
    """Return a profile as a page: figures, what held it up with all scores, curves, stages, what is missing."""
    summary = profile.summary
    found = summary.bottleneck
    page = template("profile.html").render(
        title=profile_title(profile),
        bottleneck=bottleneck_text(summary),
        rows=profile_rows(summary),
        scores=[
            (
                name,
                "n/a" if score is None else format_percent(score),
                threshold_text(name, found.thresholds[name]),
                score or 0.0,
            )
            for name, score in found.scores.items()
        ],
        charts=tuple(_charts(profile.timeline)),
        missing=sorted(missing_of(summary).items()),
        problems=profile.problems,
        interval=summary.interval,
    )
    return printable_lines(page)


def _charts(timeline: tuple[ResourceSnapshot, ...]) -> Iterator[tuple[str, Markup, list[str]]]:
    """Yield each chart that has anything to show: its title, the picture, the names of its lines."""
    for title, unit, lines in _CHARTS:
        courses = [_course(label, name, timeline) for label, name in lines]
        yield from _chart(title, courses, unit)
    gpus = sorted({gpu.index for snapshot in timeline for gpu in snapshot.gpus})
    for title, unit, name in _GPU_CHARTS:
        yield from _chart(title, [_gpu_course(index, name, timeline) for index in gpus], unit)


def _chart(title: str, courses: list[Course], unit: str) -> Iterator[tuple[str, Markup, list[str]]]:
    known = [course for course in courses if any(value is not None for _, value in course.points)]
    drawn = course_chart(title, known, unit)
    if drawn:
        yield title, Markup(drawn), [course.label for course in known]  # noqa: S704 - escaped where it is made


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
