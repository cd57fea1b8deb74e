"""Runs a command with some settings and says what it took; whatever it does, it ends in time."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeAlias

import psutil

from capacity_tui.engine.catalog.rows import NUMBER
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs import RunningCommand
from capacity_tui.engine.runs.history import RunRecord
from capacity_tui.engine.runs.logs import LineReader, LogFigures, UserExpression, figures_of
from capacity_tui.engine.runs.profile import Profile, ProfilingEngine, profile_entry

_KEY = "json:"
_METRIC = "metric"
_FIRST_NUMBER = re.compile(NUMBER, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OutputMetric:
    """How a number is found in output; the last one counts."""

    text: str  # as it was given
    # of a line: its first group is the number, or the first number in it without a group. None for a key.
    pattern: re.Pattern[str] | None

    def find(self, output: str) -> float | None:
        """Return the number, None where there is none."""
        if self.pattern is None:
            return self._find_key(output)
        matches = deque(self.pattern.finditer(output), maxlen=1)
        if not matches:
            return None
        number = _FIRST_NUMBER.search(matches[0][1] or "" if self.pattern.groups else matches[0][0])
        return None if number is None else float(number[0].replace(",", "").replace("_", ""))

    def _find_key(self, output: str) -> float | None:
        by_key = UserExpression(None, self.text.removeprefix(_KEY), _METRIC)
        lines = [output] if _is_json(output) else output.splitlines()
        values = (by_key.find(" ".join(line.split())) for line in reversed(lines))
        return next((numbers[_METRIC] for numbers in values if numbers), None)


def parse_output_metric(text: str) -> OutputMetric:
    """Return how a number is found: ``json:KEY`` with points between names of inner objects, or an expression."""
    if text.startswith(_KEY):
        if not text.removeprefix(_KEY):
            raise CapacityError("no key behind json:", hint="write json:KEY, such as json:patterns")
        return OutputMetric(text, None)
    try:
        return OutputMetric(text, re.compile(text, re.MULTILINE))
    except re.error as error:
        raise CapacityError(f"{text!r} is no regular expression", str(error)) from None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


Setting: TypeAlias = Mapping[str, str]  # What stands for each placeholder of a command
_INTERVAL = 0.1
_FEWEST_LOOKS = 3  # With fewer looks, and nothing from the kernel, the peak of memory was not seen
_MOST_OUTPUT = 1 << 24
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run took; None where it could not be had."""

    set: Setting  # what stood for each placeholder
    repeat: int  # which run of this setting, from 0
    seconds: float  # from start to end
    exit_code: int  # of the command, as shells give it
    peak_memory_bytes: float | None = None  # the most that it held
    disk_bytes: float | None = None  # what it wrote, or what lies afterwards where it was told to look
    cpu_seconds: float | None = None  # of all of its processes
    metric: float | None = None  # what its output tells of what it got done
    problem: str = ""  # why it does not count; empty for a run that ended well
    step_seconds: float | None = None  # of a training step, where its output is read as a log
    device_memory_bytes: float | None = None  # the most that it names, likewise


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a command is measured."""

    command: tuple[str, ...]  # its words; ``{key}`` in them stands for a setting
    limit_seconds: float  # after so long it is ended
    # a file or folder whose size counts as its disk space, with placeholders too; empty for what it writes
    disk: str = ""
    metric: OutputMetric | None = None  # how its output tells what it got done
    reads_log: bool = False  # whether its output is read as the log of a training

    def missing(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the keys that nothing in the command takes."""
        return tuple(key for key in keys if not any(f"{{{key}}}" in word for word in self.command))

    def run(self, setting: Setting, repeat: int = 0) -> tuple[Measurement, RunRecord | None, bool]:
        """Run the command once; return what it took, an entry for the history, and whether the user had enough."""
        words = tuple(filled(word, setting) for word in self.command)
        with tempfile.TemporaryFile() as output, Path(os.devnull).open("rb") as nothing:
            engine = ProfilingEngine(_INTERVAL)
            running = RunningCommand(words, outputs=(output.fileno(), output.fileno()), source=nothing.fileno())
            limit = _Limit(running.pid, self.limit_seconds)
            engine.start(running.pid)
            ended = running.wait()
            limit.over()
            profile = engine.profile(ended, words)
            text = _text_of(output)
        measured = self._measured(setting, repeat, profile, text, limit.passed)
        entry = profile_entry(profile)
        details = {**entry.details, "set": dict(setting), "metric": measured.metric}
        return measured, replace(entry, details=details), running.interrupted

    def _measured(self, setting: Setting, repeat: int, profile: Profile, text: str, too_long: bool) -> Measurement:
        ended, usage = profile.ended, profile.summary.usage
        exit_code = ended.exit_code if ended else 0
        kernel_peak = ended is not None and ended.largest_rss_bytes is not None
        metric = self.metric.find(text) if self.metric is not None else None
        problem = ""
        if too_long:
            problem = f"ended after {self.limit_seconds:g} s"
        elif exit_code:
            problem = f"exit code {exit_code}: {_last_line(text)}".rstrip(": ")
        elif self.metric is not None and metric is None:
            problem = f"its output has no {self.metric.text}"
        log = _log_of(text) if self.reads_log else LogFigures(None, None, 0)
        return Measurement(
            set=dict(setting),
            repeat=repeat,
            seconds=profile.summary.duration_seconds,
            exit_code=exit_code,
            peak_memory_bytes=usage.peak_memory_bytes if kernel_peak or usage.snapshots >= _FEWEST_LOOKS else None,
            disk_bytes=_size_of(Path(filled(self.disk, setting))) if self.disk else usage.totals.get("written_bytes"),
            cpu_seconds=usage.totals.get("cpu_seconds"),
            metric=metric,
            problem=problem,
            step_seconds=log.step_seconds,
            device_memory_bytes=log.peak_bytes,
        )


def filled(text: str, setting: Setting) -> str:
    """Return a text with what stands for its placeholders; other braces stay as they are."""
    for key, value in setting.items():
        text = text.replace(f"{{{key}}}", value)
    return text


class _Limit:
    """Ends a command, and all that it started, when its time is over."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.passed = False
        self._ended = threading.Event()
        self._process: psutil.Process | None = None
        with suppress(psutil.Error):
            self._process = psutil.Process(pid)
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._end)
        self._timer.daemon = True
        self._timer.start()

    def over(self) -> None:
        self._timer.cancel()
        self._ended.set()

    def _end(self) -> None:
        if self._process is None:
            return
        self.passed = True
        family: list[psutil.Process] = []
        with suppress(psutil.Error):
            family = self._process.children(recursive=True)
        family.append(self._process)
        for process in family:
            with suppress(psutil.Error):
                process.terminate()
        # Waited for by whoever started it: asking the system here would take its exit code away.
        self._ended.wait(_GRACE_SECONDS)
        for process in family:
            with suppress(psutil.Error):
                process.kill()


def _text_of(output: BinaryIO) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _MOST_OUTPUT))
    return output.read().decode("utf-8", "replace")


def _log_of(text: str) -> LogFigures:
    reader = LineReader()
    return figures_of(entry for line in text.splitlines() if (entry := reader.read(line)) is not None)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:120] if lines else ""


def _size_of(path: Path) -> float | None:
    """Return the size of a file, or of all files in a folder; None where there is nothing."""
    try:
        if path.is_file():
            return float(path.stat().st_size)
        sizes = [float(file.stat().st_size) for file in path.rglob("*") if file.is_file()]
    except OSError as error:
        raise CapacityError(f"{path} cannot be measured", str(error.strerror or error).lower()) from None
    return sum(sizes) if sizes else None
