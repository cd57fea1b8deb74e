"""What is predicted for every published run, kept as text so that a change of any figure shows in review.

``uv run python tests/golden/predictions.py`` writes the files beside this one anew and says what moved.
"""

from __future__ import annotations

import csv
import math
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.runs.accuracy import Kind
from capacity_tui.engine.runs.accuracy.published import DESCRIBED, Measurement, read_measurements

RENEW = "uv run python tests/golden/predictions.py"
FOLDER = Path(__file__).parent
# Kinds of figures whose runs share a file.
FILES: dict[str, tuple[Kind, ...]] = {
    file: tuple(kind for kind, figure in DESCRIBED.items() if figure.file == file)
    for file in dict.fromkeys(figure.file for figure in DESCRIBED.values())
}
FIGURES = (
    "allocated_gib",
    "reserved_gib",
    "host_gib",
    "step_seconds",
    "prefill_tokens_per_second",
    "decode_tokens_per_second",
    "time_to_first_token_seconds",
    "watts",
)
DIGITS = 4
# A unit in the last digit: other processors round otherwise.
TOLERANCE = 10.0 ** (1 - DIGITS)
SHOWN = 12

Figures = Mapping[str, str]  # A figure by name, as text; empty where a run has none
Runs = Mapping[str, Figures]  # Figures by the run's id


class Estimates(dict[str, Estimate]):
    """Estimates of published runs, each made once, by the text of its plan."""

    def of(self, row: Measurement) -> Estimate:
        """Return the estimate of a run."""
        text = str(row.plan)
        if text not in self:
            self[text] = estimate_plan(Plan.model_validate(row.plan), None, _catalog()).estimate
        return self[text]


def predicted(name: str, estimates: Estimates) -> Runs:
    """Return what is predicted now for the runs of one file, sorted by id; those that are refused are left out."""
    rows = {row.id: row for kind in FILES[name] for row in read_measurements(kind)}
    return {run: figures for run in sorted(rows) if (figures := _figures(rows[run], estimates))}


def kept(name: str) -> Runs:
    """Return the predictions a file holds."""
    with _path(name).open(encoding="utf-8", newline="") as file:
        return {row["id"]: {figure: row[figure] for figure in FIGURES} for row in csv.DictReader(file)}


def write(name: str, runs: Runs) -> None:
    """Write a file of predictions."""
    with _path(name).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("id", *FIGURES))
        rows.writerows((run, *(figures[figure] for figure in FIGURES)) for run, figures in runs.items())


def difference(name: str, old: Runs, new: Runs) -> str:
    """Return what moved, in words: how many runs, by how much, and those that moved most; empty if nothing did."""
    lines = [f"  no longer predicted: {run}" for run in old if run not in new]
    lines += [f"  newly predicted: {run}" for run in new if run not in old]
    count = len(lines)
    shared = [run for run in new if run in old]
    for figure in FIGURES:
        moves = {run: move for run in shared if (move := _move(old[run][figure], new[run][figure]))}
        if moves:
            count += len(moves)
            most = sorted(moves, key=lambda run: -abs(moves[run]))[:SHOWN]
            middle, low, high = median(moves.values()), min(moves.values()), max(moves.values())
            lines.append(f"  {figure}: {len(moves)} of {len(new)}, median {middle:+.2%}, {low:+.2%} to {high:+.2%}")
            lines += [f"    {run}: {old[run][figure]} -> {new[run][figure]} ({moves[run]:+.2%})" for run in most]
    return "\n".join((f"{name}: {count} predictions moved", *lines)) if lines else ""


@cache
def _catalog() -> Catalog:
    """Return the shipped catalogue, whatever the user's own holds."""
    with tempfile.TemporaryDirectory() as empty:
        return load_catalog(Path(empty))


def _path(name: str) -> Path:
    return FOLDER / f"{name}.csv"


def _figures(row: Measurement, estimates: Estimates) -> Figures | None:
    try:
        estimate = estimates.of(row)
    except CapacityError:
        return None
    values = _values(estimate)
    return {figure: _text(values.get(figure)) for figure in FIGURES}


def _values(estimate: Estimate) -> dict[str, object]:
    memory, computation = estimate.memory, estimate.computation
    found: dict[str, object] = {
        "allocated_gib": memory.per_device_bytes.value / 2**30,
        "reserved_gib": memory.reserved_bytes.value / 2**30,
        "host_gib": memory.host_bytes / 2**30,
        "step_seconds": computation.step_seconds.value,
        "watts": estimate.energy.watts_average,
    }
    if computation.infer is not None:
        found |= {figure: getattr(computation.infer, figure).value for figure in FIGURES[4:7]}
    return found


def _text(value: object) -> str:
    number = math.nan if value is None else float(str(value))
    return "" if math.isnan(number) else f"{number:.{DIGITS}g}"


def _move(old: str, new: str) -> float:
    """Return the relative change of a figure, 0 where it is no more than rounding."""
    before, after = float(old or 0.0), float(new or 0.0)
    if before == after:
        return 0.0
    change = after / before - 1.0 if before else math.inf
    return change if abs(change) > TOLERANCE else 0.0


def renew() -> str:
    """Write every file anew and return what moved."""
    said = []
    for name in FILES:
        old, new = kept(name) if _path(name).exists() else {}, predicted(name, Estimates())
        said.append(difference(name, old, new) or f"{name}: {len(new)} predictions, none moved")
        write(name, new)
    return "\n".join(said)


if __name__ == "__main__":
    sys.stdout.write(renew() + "\n")
