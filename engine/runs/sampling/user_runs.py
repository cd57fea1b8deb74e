"""Runs the user timed: what they say about the machine beyond single kernels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError, StorageError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.files import data_folder, reading, rename_file
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import MEASURED, Machine
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, history_entry
from capacity_tui.engine.runs.sampling.samples import today

STEP, REQUEST, PEAK = Figure.STEP_SECONDS, Figure.REQUEST_SECONDS, Figure.MEMORY_RESERVED_BYTES
MOST_RUNS = 50  # A device is fitted to its newest runs: earlier behaviour says little, and each takes a while
_DAY = 10


# Why a run was slower that says nothing of the device: others used it too, or something else ran than its plan.
HELD_UP = {
    "shared": "others used the machine meanwhile",
    "input": "it waited for its data",
    "smaller_batch": "its batch was another than the plan's",
    "larger_batch": "its batch was another than the plan's",
    "precision": "its precision was another than the plan's",
    "devices": "it ran on another number of devices than the plan's",
}


@dataclass(frozen=True, slots=True)
class UserRun:
    """One run with what was measured."""

    plan: Mapping[str, object]  # as data of a plan file, with nothing open
    step_seconds: float | None  # time of an optimizer step, or of a request; None where it was not measured
    peak_bytes: float | None  # device memory the driver showed (a CPU: the process) at its peak; None likewise
    date: str  # ISO day
    others: float = 0.0  # share of the machine that others used meanwhile
    why: tuple[str, ...] = ()  # codes of why it differed from its plan, as whoever watched it saw that
    # key that its device's measurements go by; empty where it is not known
    device: str = field(default="", compare=False)

    @property
    def held_up(self) -> str:
        """Why its time says nothing of the device, in words; empty where it does."""
        return next((HELD_UP[code] for code in self.why if code in HELD_UP), "")

    @property
    def weight(self) -> float:
        """How much it counts: less where others used the machine too."""
        return max(1.0 - self.others, 0.0) ** 2


def user_run(plan: Plan, step_seconds: float | None, peak_bytes: float | None) -> UserRun:
    """Return a run of today; raises PlanError if nothing was measured."""
    if step_seconds is None and peak_bytes is None:
        raise PlanError("nothing was measured", hint="give --step-seconds, --peak-gib or --log")
    return UserRun(plan.plain_data(), step_seconds, peak_bytes, today())


def run_entry(
    run: UserRun, machine: Machine, catalog: Catalog, details: Mapping[str, object] | None = None
) -> RunRecord:
    """Return a run as an entry of the history, with what was predicted of it before it is learnt from."""
    predicted = estimate_plan(Plan.model_validate(run.plan), machine, catalog)
    figures = {STEP: run.step_seconds, PEAK: run.peak_bytes}
    return history_entry(predicted, "run", {key: value for key, value in figures.items() if value is not None}, details)


def kept_runs(history: History) -> tuple[UserRun, ...]:
    """Return the runs of all devices whose step or memory was measured, in the order of the devices' names.

    Raises:
        StorageError: the history cannot be read.
    """
    take_over_earlier_runs(history)
    entries = history.find(WantedRuns(measured=True))
    return tuple(
        measured for run in sorted(entries, key=lambda run: (run.device, run.started)) if (measured := user_run_of(run))
    )


def read_runs(key: str, history: History, most: int = MOST_RUNS) -> tuple[UserRun, ...]:
    """Return the newest runs of a device whose step or memory was measured, the oldest of them first.

    Raises:
        StorageError: the history cannot be read.
    """
    take_over_earlier_runs(history)
    runs = (user_run_of(run) for run in reversed(history.find(WantedRuns(device=key, measured=True))))
    return tuple(measured for measured in runs if measured is not None)[-most:]


def with_cores_of(machine: Machine, run: UserRun) -> Machine:
    """Return a machine with as many usable cores as it had when a run of its processor was measured."""
    cores = run.device.rpartition("-")[2]
    if not run.device.startswith("cpu-") or not cores.isdigit():
        return machine
    usable = replace(machine.cpu.usable_threads, value=int(cores))
    return replace(machine, accelerators=(), cpu=replace(machine.cpu, usable_threads=usable))


def keep_run(entry: RunRecord, history: History) -> tuple[UserRun, ...]:
    """Add a run to those kept, and return those of its device.

    Raises:
        StorageError: the history cannot be read or written.
    """
    take_over_earlier_runs(history)
    history.keep(entry)
    return read_runs(entry.device, history)


def user_run_of(run: RunRecord) -> UserRun | None:
    """Return the run of an entry; None where it ran without a plan, or something else was measured."""
    step, peak = run.actual.get(STEP) or run.actual.get(REQUEST), run.actual.get(PEAK)
    if run.plan is None or not (step or peak):
        return None
    others, why = run.details.get("others"), run.details.get("why")
    return UserRun(
        run.plan,
        step,
        peak,
        run.started[:_DAY],
        others if isinstance(others, float) else 0.0,
        tuple(map(str, why)) if isinstance(why, list | tuple) else (),
        run.device,
    )


_ENDING = ".runs.jsonl"
_TAKEN = ".old"
_ID_BYTES = 5
_FIGURES = {"step_seconds": Figure.STEP_SECONDS, "peak_bytes": Figure.MEMORY_RESERVED_BYTES}


def take_over_earlier_runs(history: History, folder: Path | None = None) -> None:
    """Put runs of earlier versions into the history, and give their files another name."""
    for file in sorted(((folder or data_folder()) / MEASURED).glob(f"*{_ENDING}")):
        bad: list[str] = []
        history.keep(*_runs(file, bad))
        aside = _free_name(file)
        rename_file(file, aside)
        if bad:
            history.notes.append(f"{aside}: {len(bad)} of its lines cannot be read, and stay there alone: {bad[0]}")


def _runs(file: Path, bad: list[str]) -> Iterator[RunRecord]:
    with reading(file):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            yield _run(json.loads(line), file.name.removesuffix(_ENDING), f"{file.name}:{number}:{line}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            bad.append(f"line {number}: {error}")


def _run(data: Mapping[str, object], device: str, text: str) -> RunRecord:
    return RunRecord(
        kind="run",
        plan=cast("Mapping[str, object]", data["plan"]),
        actual={key: float(cast("float", data[name])) for name, key in _FIGURES.items() if data[name] is not None},
        device=device,
        started=f"{data['date']}T00:00:00.000Z",
        # The same run has the same id, should this be stopped before the file has its other name.
        id=hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest(),
    )


def _free_name(file: Path) -> Path:
    names = (file.with_name(f"{file.name}{_TAKEN}{number or ''}") for number in range(1000))
    free = next((name for name in names if not name.exists()), None)
    if free is None:
        raise StorageError("there are too many earlier files of runs", str(file), "move them away")
    return free
