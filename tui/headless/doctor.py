"""``detect --doctor``: what to put into a bug report."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.tui.headless.output import format_of, write

if TYPE_CHECKING:
    from capacity_tui.engine.machine import DoctorReport


def write_doctor(private: bool, wanted: str | None, output: Path | None) -> None:
    """Detect this machine and write how every probe went, with the catalogue rows that cannot be used."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.machine import examine as doctor_report
    from capacity_tui.engine.machine import report_lines as doctor_lines
    from capacity_tui.engine.present import to_json, to_yaml

    started = time.perf_counter()
    machine = detect()
    report = doctor_report(machine, time.perf_counter() - started, private)
    problems = [problem.one_line() for problem in load_catalog().problems]
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        data = {**_data(report), "catalogue_problems": problems}
        write(to_json(data) if form == "json" else to_yaml(data), output)
        return
    lines = [*doctor_lines(report), "", f"catalogue: {len(problems)} problems", *(f"  {line}" for line in problems)]
    write("\n".join(lines) + "\n", output)


def _data(report: DoctorReport) -> dict[str, object]:
    probes = [{**asdict(finding.probe), "returned": list(finding.lines)} for finding in report.findings]
    return {"versions": dict(report.versions), "seconds": report.seconds, "probes": probes}
