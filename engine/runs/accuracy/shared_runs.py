"""Runs that people hand to each other: rows in the form of the published measurements, without anything private.

What is written is chosen, not what is left out: numbers and switches of the plan, words that the shipped catalogues or
the fields' own lists have, the device, the day, and what was measured. A run that needs other words is not
written at all.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.rows import Row
from capacity_tui.engine.errors import CapacityError, CatalogError, Place, PlanError, refuse_all
from capacity_tui.engine.files import NOWHERE, reading
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.models import FAMILIES, knob_of, spec_type_of
from capacity_tui.engine.plan import DETECTED, all_fields, known_words, leaves
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.runs.accuracy.published import Kind, Measurement, measurement_of
from capacity_tui.engine.runs.history import RunRecord

SOURCE = {"id": "shared/1", "key": "shared runs", "title": "runs that were shared", "url": ""}
COLUMNS = (
    "id",
    "source",
    "published_model",
    "published_hardware",
    "quality",
    "device",
    "date",
    "peak_memory",
    "peak_memory_unit",
    "counted_as",
    "step_time_s",
    "derived_step_time_s",
    "skip",
    "parameters",
    "active_parameters",
    "attention_width",
    "task",
    "assumed",
    "notes",
)
"""Columns that every file has; behind them come the fields of the plans."""
STEP, PEAK = Figure.STEP_SECONDS, Figure.MEMORY_RESERVED_BYTES
_KINDS: tuple[Kind, ...] = ("train_time", "train_memory")
_FIGURES = {"step_seconds": STEP, "device_bytes": PEAK}
_SECTIONS = ("model", "parallelism", "hardware")
_TASKS = frozenset({"train", "finetune", "infer", "fit"})
_NAMED: Mapping[str, tuple[str, ...]] = {
    Key.MODEL_NAME: ("architectures", "networks"),
    Key.HARDWARE_NAME: ("accelerators", "processors", "instances"),
    Key.HARDWARE_INTERCONNECT: ("links",),
}
_FREE = frozenset({Key.TRAINING_FRAMEWORK})
"""Fields whose words may be left out: what an estimate does not know is software without a name."""
# A model of processors, never a machine: no word of it is a long number, as those of serial numbers are.
_CPU = re.compile(r"cpu(?!.*-[0-9a-f]{8,}(-|$))-[a-z0-9-]+-\d+(\.\d+)?")
_DEVICE = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_DAY, _ID_BYTES = 10, 5
_NAMED_IDS = 3
_UNIT = 2**20


class PrivateError(Exception):
    """A run that cannot be written without something private."""


def shared_text(runs: Sequence[RunRecord]) -> tuple[str, tuple[str, ...]]:
    """Return the measured runs among some as a file, and why others are not in it, a line for each reason."""
    rows: list[dict[str, object]] = []
    left_out: dict[str, list[str]] = {}
    for run in runs:
        try:
            rows.append(_row(run))
        except PrivateError as error:
            left_out.setdefault(str(error), []).append(run.id)
    fields = dict.fromkeys(key for row in rows for key in row if key not in COLUMNS)
    text = io.StringIO()
    table = csv.DictWriter(text, (*COLUMNS, *fields), restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue(), tuple(f"{_some(ids)}: {reason}" for reason, ids in left_out.items())


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED_IDS} more" if len(ids) > _NAMED_IDS else ""
    return f"{', '.join(ids[:_NAMED_IDS])}{more}"


def read_shared(path: Path) -> tuple[RunRecord, ...]:
    """Return the runs in a file that somebody shared, each with the device it ran on.

    Raises:
        StorageError: the file cannot be read.
        PlanError: it is no such file, or rows of it are invalid; the first is raised, the others are ``further``.
    """
    with reading(path):
        lines = path.read_text(encoding="utf-8").splitlines()
    runs: list[RunRecord] = []
    faults: list[PlanError] = []
    try:
        table = csv.DictReader(lines, strict=True)
        if lacking := [column for column in COLUMNS if column not in (table.fieldnames or ())]:
            raise PlanError(
                "no file of shared runs",
                f"it has no column {lacking[0]}",
                "capacity-tui history export --share writes one",
                Place(str(path), 1),
            )
        for row in table:
            location = Place(str(path), table.line_num)
            try:
                runs.append(_run(row, location))
            except CapacityError as error:
                where = Place(location.file, location.line, error.place.field)
                faults.append(PlanError(error.title, error.detail, error.hint, where))
    except csv.Error as error:
        raise PlanError("no table of comma-separated values", str(error), place=Place(str(path))) from error
    refuse_all(faults)
    return tuple(runs)


def _row(run: RunRecord) -> dict[str, object]:
    step, peak = run.actual.get(STEP), run.actual.get(PEAK)
    if run.plan is None:
        raise PrivateError("it ran without a plan")
    if not (step or peak):
        raise PrivateError("neither its step nor its memory was measured")
    if not (run.device in _shipped().accelerators or _CPU.fullmatch(run.device)):
        raise PrivateError("its device is none of the shipped catalogue")
    sizes = {key: run.predicted.get(f"model.{key}", {}).get("value", 0) for key in ("parameters", "active_parameters")}
    row = {
        "source": SOURCE["id"],
        "published_hardware": run.device,
        "quality": "A",
        "device": run.device,
        "date": run.started[:_DAY],
        "step_time_s": step or "",
        "attention_width": 0,
        Key.TASK: run.plan[Key.TASK] if run.plan.get(Key.TASK) in _TASKS else "train",
        **{key: round(value) for key, value in sizes.items()},
        **dict(_fields(run.plan, run.device)),
    }
    if peak:
        row |= {"peak_memory": peak / _UNIT, "peak_memory_unit": "MiB", "counted_as": "device"}
    row["published_model"] = row[Key.MODEL_NAME]
    text = json.dumps(row, sort_keys=True)
    return {"id": f"run-{hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()}", **row}


def _fields(plan: Mapping[str, object], device: str) -> Iterator[tuple[str, object]]:
    """Yield the fields of a plan that the run depends on, as cells by their columns."""
    sections = (*_SECTIONS, "inference" if plan.get(Key.TASK) == "infer" else "training")
    for path, value in leaves({section: plan.get(section) or {} for section in sections}):
        if value in (None, "", [], (), {}):
            continue
        shown = device if (path, value) == (Key.HARDWARE_NAME, DETECTED) and not _CPU.fullmatch(device) else value
        if (cell := _cell(path, shown)) is not None:
            yield path, cell


def _cell(path: str, value: object) -> object:
    """Return a value as a cell; None where it is left out; raises PrivateError if it might be private."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, int | float) for item in value):
        return json.dumps(value)
    word = _public_word(path, value) if isinstance(value, str) else None
    if word is None and path not in _FREE:
        raise PrivateError(f"{path} has no word of the shipped catalogues")
    return word


def _public_word(path: str, value: str) -> str | None:
    """Return how everybody calls what a word of a plan means; None where it might be the user's own."""
    if path in _NAMED:
        return _public_name(_NAMED[path], value)
    known = all_fields().get(path)
    words = {*(known.knob.choices if known else ()), *known_words(path, _shipped()), *_spec_words()}
    return value if all(part in words for part in value.split("+")) else None


def _public_name(tables: Sequence[str], name: str) -> str | None:
    """Return the id of a shipped row that a name means; families and what is detected have names of their own."""
    if name in FAMILIES or name == DETECTED:
        return name
    for table in tables:
        try:
            row: Row = getattr(_shipped(), table).find(name)
        except CatalogError:
            continue
        return row.id
    return None


@cache
def _shipped() -> Catalog:
    """Return the catalogue without the user's own rows."""
    return load_catalog(NOWHERE)


@cache
def _spec_words() -> frozenset[str]:
    """Return the words that families of models have in their own parameters."""
    types = (spec_type_of(family.id, family.kind) for family in FAMILIES.values())
    fields = (info for kind in types if kind is not None for info in kind.model_fields.values())
    knobs = (knob_of(info) for info in fields)
    return frozenset(choice for knob in knobs if knob is not None for choice in knob.choices)


def _run(row: Mapping[str, str], location: Place) -> RunRecord:
    """Return the run of a row; raises CapacityError if it is invalid."""
    if None in row or None in row.values():
        raise PlanError("the row has more or fewer cells than there are columns", place=location)
    if not _DEVICE.fullmatch(row["device"]):
        raise PlanError("no device", repr(row["device"])[:80], "the name its measurements go by", Place(field="device"))
    try:
        day = date.fromisoformat(row["date"])
    except ValueError as error:
        raise PlanError("no day", str(error), "write it as 2026-11-22", Place(field="date")) from error
    read = [measurement_of(kind, row, SOURCE, location) for kind in _KINDS]
    measured = [measurement for measurement in read if measurement is not None]
    if not measured:
        raise PlanError("nothing was measured", hint="give step_time_s, or peak_memory with its unit")
    plan = plan_from_data(measured[0].plan)
    return RunRecord(
        kind="run",
        plan=plan.plain_data(),
        machine={"hardware": row["published_hardware"]},
        actual=dict(map(_figure, measured)),
        device=row["device"],
        details={"shared": True},
        started=f"{day.isoformat()}T00:00:00.000Z",
        id=hashlib.blake2b(json.dumps(row, sort_keys=True).encode(), digest_size=_ID_BYTES).hexdigest(),
    )


def _figure(measured: Measurement) -> tuple[str, float]:
    """Return the result key and the value of a measurement; raises PlanError if it cannot be."""
    if not 0 < measured.value < float("inf"):
        raise PlanError("what was measured cannot be", str(measured.value), "check step_time_s and peak_memory")
    return _FIGURES.get(measured.quantity, PEAK), measured.value
