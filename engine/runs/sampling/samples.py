"""Samples: timings of kernels and collectives, and the files that keep them, a line each, appended as they come."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import (
    CORRUPT,
    data_folder,
    json_table,
    make_folder,
    reading,
    rename_file,
    set_aside,
    write_atomically,
    writing,
)
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import MEASURED
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.history import History, RunRecord

FOLDER = "samples"
Value = str | int | float
STEADY_SPREAD = 0.2  # A median that varies by more than this says more about other work than about the kernel


@dataclass(frozen=True, slots=True)
class Sample:
    """One timing."""

    name: str
    step: str  # which pass of a kernel; ``forward`` for collectives
    dtype: str
    shape: Mapping[str, int]  # sizes by name; collectives have ``bytes`` and ``group``
    seconds: float  # median of one run
    best: float  # the fastest; other work on the machine only ever adds time
    spread: float  # interquartile range over the median
    runs: int
    date: str  # when, ISO day

    @property
    def undisturbed(self) -> float:
        """Seconds of one run: the median, or the fastest where other work made the median unsteady."""
        return self.seconds if self.spread <= STEADY_SPREAD else self.best

    @property
    def key(self) -> str:
        """The case in one line; equal for equal cases."""
        sizes = " ".join(f"{name}={size}" for name, size in self.shape.items())
        return f"{self.name} {self.step} {self.dtype} {sizes}"


@dataclass(frozen=True, slots=True)
class SampleFile:
    """The samples of one device with one set of software."""

    path: Path
    software: Mapping[str, str]
    # memory the software takes outside its tensors; None where that was not measured
    context_bytes: float | None = None
    samples: tuple[Sample, ...] = ()  # what is there; the newest of equal cases
    set_aside: Path | None = None  # the damaged file these were rescued from, if there was one


def today() -> str:
    """Return the day, UTC, as samples are dated."""
    return datetime.now(UTC).date().isoformat()


def sample_path(device: str, software: Mapping[str, str], folder: Path | None = None) -> Path:
    """Return the file for a device's samples.

    Args:
        folder: the program's data, the user's own by default.
    """
    words = "-".join(f"{name}-{version}" for name, version in software.items())
    name = re.sub(r"[^A-Za-z0-9.+]+", "-", words).strip("-")
    return (folder or data_folder()) / FOLDER / device / f"{name}.jsonl"


def sample_files(device: str, folder: Path | None = None) -> tuple[Path, ...]:
    """Return the files of a device's samples, the one written to last first."""
    home = (folder or data_folder()) / FOLDER / device
    paths = [path for path in home.glob("*.jsonl") if CORRUPT not in path.name]
    return tuple(sorted(paths, key=lambda path: (path.stat().st_mtime, path.name), reverse=True))


def open_samples(path: Path, software: Mapping[str, str], context_bytes: float | None = None) -> SampleFile:
    """Return a file ready to append to, made if it is not there.

    Args:
        software: versions by name, for a new file.
        context_bytes: memory the software takes outside its tensors, for a new file.

    Raises:
        StorageError: it cannot be made or read.
    """
    if not path.exists():
        make_folder(path.parent)
        write_atomically(path, _heading(software, context_bytes))
        return SampleFile(path, software, context_bytes)
    return read_samples(path)


def read_samples(path: Path) -> SampleFile:
    """Return what a file holds; a damaged one is kept aside, and what can be read of it rewritten.

    Raises:
        StorageError: it cannot be read.
    """
    with reading(path):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    software: dict[str, str] = {}
    context: float | None = None
    samples: dict[str, Sample] = {}
    damaged = not lines
    for number, line in enumerate(lines):
        try:
            data = json_table(json.loads(line))
            if number == 0 and "software" in data:
                software = {name: str(version) for name, version in json_table(data["software"]).items()}
                context = float(cast("Value", data["context_bytes"])) if data.get("context_bytes") else None
                continue
            sample = _sample(data)
        except (ValueError, KeyError, TypeError):
            damaged = True
            continue
        samples[sample.key] = sample
    whole = SampleFile(path, software, context, tuple(samples.values()))
    return replace(whole, set_aside=_rescue(whole)) if damaged else whole


def append(path: Path, sample: Sample) -> None:
    """Append one sample as one write, so that a reader or a power cut sees a whole line or none.

    Raises:
        StorageError: it cannot be written.
    """
    content = _line(asdict(sample)).encode()
    with writing(path):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, content) != len(content):
                raise StorageError("the disk is full", hint="free some space", place=Place(str(path)))
            os.fsync(handle)
        finally:
            os.close(handle)


def _line(data: Mapping[str, object]) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"


def _heading(software: Mapping[str, str], context_bytes: float | None) -> str:
    return _line({"software": dict(software), "context_bytes": context_bytes})


def _rescue(whole: SampleFile) -> Path:
    aside = set_aside(whole.path)
    write_atomically(whole.path, _heading(whole.software, whole.context_bytes))
    for sample in whole.samples:
        append(whole.path, sample)
    return aside


def _sample(data: Mapping[str, object]) -> Sample:
    sample = record_of_data(Sample, data)
    if not 0 < sample.best <= sample.seconds < float("inf") or not 0 <= sample.spread < float("inf"):
        raise ValueError("not a time")
    return replace(sample, date=datetime.fromisoformat(sample.date).date().isoformat())


STABLE = 0.01  # The median is known well enough when half of its range of uncertainty is below this share of it
FEWEST, MOST = 5, 200
WARM_UPS = 2
BATCH_SECONDS = 0.002  # A batch of runs lasts this long at the least, so that reading the clock costs nothing

# Standard error of a median over (interquartile range / square root of the count), for normal errors.
MEDIAN_ERROR = 0.93


class Clock(Protocol):
    """Times runs on one device, synchronised before and after."""

    def seconds(self, run: Callable[[], object], repeats: int) -> float:
        """Return the seconds of ``repeats`` runs one after the other."""


class HostClock:
    """For kernels that are done when their call returns.

    Args:
        threads: threads that kernels run on. What a single one spends on them is not disturbed by other work that it
            shares its core with, so the processor's time counts; several wait for each other, and the wall's does.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._now = time.process_time if threads == 1 else time.perf_counter

    def seconds(self, run: Callable[[], object], repeats: int) -> float:
        """Return the seconds of ``repeats`` runs one after the other."""
        start = self._now()
        for _ in range(repeats):
            run()
        return self._now() - start


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one run takes."""

    seconds: float  # median over the batches
    best: float  # mean over the fastest batch
    spread: float  # interquartile range over the median
    runs: int


def summary(batches: Sequence[float], runs: int) -> Timing:
    """Return what the seconds of one run in each batch say, of so many runs in all."""
    low, median, high = np.percentile(batches, (25, 50, 75))
    return Timing(float(median), min(batches), float((high - low) / median), runs)


def time_kernel(
    run: Callable[[], object], clock: Clock, limit_seconds: float, cancelled: threading.Event | None = None
) -> Timing | None:
    """Return how long a kernel takes; None if it was cancelled before enough is known.

    Args:
        limit_seconds: when to be content with what is known.
    """
    started = time.perf_counter()
    once = min(clock.seconds(run, 1) for _ in range(WARM_UPS))
    repeats = max(1, min(MOST, round(BATCH_SECONDS / max(once, 1e-9))))
    batches: list[float] = []
    while not _known(batches):
        if cancelled is not None and cancelled.is_set():
            return None
        batches.append(clock.seconds(run, repeats) / repeats)
        if time.perf_counter() - started > limit_seconds and len(batches) >= FEWEST:
            break
    return summary(batches, repeats * len(batches))


def _known(batches: list[float]) -> bool:
    if len(batches) < FEWEST:
        return False
    low, median, high = np.percentile(batches, (25, 50, 75))
    error = MEDIAN_ERROR * (high - low) / len(batches) ** 0.5
    return len(batches) >= MOST or bool(error <= STABLE * median)


_ENDING = ".runs.jsonl"
_TAKEN = ".old"
_ID_BYTES = 5
_FIGURES = {"step_seconds": Figure.STEP_SECONDS, "peak_bytes": Figure.MEMORY_RESERVED_BYTES}


def take_over_earlier_runs(history: History) -> None:
    """Put runs of earlier versions into the history, and give their files another name."""
    for file in sorted((data_folder() / MEASURED).glob(f"*{_ENDING}")):
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
