"""Profiles a run from its start to its end, this program's own work or a command's."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import write_atomically
from capacity_tui.engine.machine import Sampler
from capacity_tui.engine.runs.command import Ended
from capacity_tui.engine.runs.processes import ProcessTree, observe
from capacity_tui.engine.runs.profile.bottleneck import bottleneck_of
from capacity_tui.engine.runs.profile.profile import (
    Entry,
    OpenStage,
    Profile,
    ProfilingSummary,
    Stages,
    profile_as_json,
)
from capacity_tui.engine.runs.profile.snapshots import ResourceSnapshot, Timeline
from capacity_tui.engine.runs.profile.usage import Account, LatencyProbe

SHORTEST_INTERVAL = 0.05
FIRST_WAIT = 0.05
"""Seconds to the second sample; each wait doubles until it is the interval, so that short runs have samples too."""

_STOP_SECONDS = 1.0


class ProfilingEngine:
    """Watches this process, or another, with all that it starts, in a separate thread.

    What goes wrong in that thread ends the watching, never the run.

    Args:
        sampling_interval: seconds from one sample to the next.
        pid: the process to watch; this one by default.
        url: an endpoint that the run depends on, probed meanwhile.
        thresholds: in the place of the shipped ones, by resource: cpu, memory, disk, network, gpu.
        seen: called with every snapshot, in the sampling thread.

    Raises:
        CapacityError: the interval is too short, or the endpoint is no web address.
    """

    def __init__(
        self,
        sampling_interval: float = 1.0,
        pid: int | None = None,
        url: str | None = None,
        thresholds: Mapping[str, float] | None = None,
        seen: Callable[[ResourceSnapshot], None] | None = None,
    ) -> None:
        if not sampling_interval >= SHORTEST_INTERVAL:
            raise CapacityError(
                f"an interval of {sampling_interval:g} s", hint=f"it must be at least {SHORTEST_INTERVAL:g} s"
            )
        self.interval = sampling_interval
        self.stages = Stages()
        self._pid = os.getpid() if pid is None else pid
        self._thresholds = thresholds
        self._seen = seen
        self._latency = LatencyProbe(url, sampling_interval) if url else None
        self._account = Account()
        self._timeline = Timeline()
        self._problems: list[str] = []
        self._counted: float | None = None
        self._sampler: Sampler | None = None
        self._tree: ProcessTree | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._profile: Profile | None = None

    def __enter__(self) -> ProfilingEngine:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, pid: int | None = None) -> None:
        """Begin to watch; the first sample is taken before this returns.

        Args:
            pid: the process to watch, where that was not known before.
        """
        if self._thread is not None:
            return
        self._pid = self._pid if pid is None else pid
        self._thread = threading.Thread(target=self._work, name="profiling", daemon=True)
        if self._latency is not None:
            self._latency.start()
        if self._guarded(self._open):
            self._thread.start()

    @contextmanager
    def stage(self, name: str, samples: float | None = None) -> Iterator[OpenStage]:
        """Work on a named stage; call ``done`` of what is given, or say how many samples it is in all.

        Args:
            name: of the stage; it may be entered again.
            samples: that are done when it ends.
        """
        with self.stages.stage(name) as stage:
            yield stage
            if samples is not None:
                stage.done(samples)

    def done(self, samples: float = 1) -> None:
        """Count samples that the whole run has got done; without, those of its stages count."""
        self._counted = (self._counted or 0) + samples

    def add_problem(self, text: str) -> None:
        """Add a problem outside the run to the profile."""
        self._problems.append(text)

    def stop(self, ended: Ended | None = None) -> ProfilingSummary:
        """Take the last sample and return the result of the run.

        Raises:
            CapacityError: it was never started, so that there is nothing to return.
        """
        if self._thread is None:
            raise CapacityError("profiling was not started", hint="call start() before the work, stop() behind it")
        return self.profile(ended).summary

    def profile(self, ended: Ended | None = None, command: tuple[str, ...] = ()) -> Profile:
        """Stop, and return the summary with its course; the same for later calls."""
        if self._profile is not None:
            return self._profile
        self._stopped.set()
        if self._latency is not None:
            self._latency.stop()
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
            if self._thread.is_alive():
                self._problems.append("the last look was not waited for: the system did not answer")
            elif self._sampler is not None:
                self._sampler.close()
        usage = self._account.usage(ended)
        latency = self._latency.result() if self._latency else None
        summary = ProfilingSummary(
            interval=self.interval,
            usage=usage,
            stages=self.stages.totals(),
            samples=self._samples(),
            latency=latency,
            bottleneck=bottleneck_of(usage, latency.mean_ms if latency else None, self._thresholds),
        )
        self._profile = Profile(command, ended, summary, self._timeline.snapshots, tuple(self._problems))
        return self._profile

    def export_json(self, path: str | Path) -> None:
        """Write the profile as JSON; raises StorageError if it cannot be written."""
        write_atomically(Path(path), profile_as_json(self.profile()), overwrite=True)

    def _samples(self) -> float | None:
        if self._counted is not None:
            return self._counted
        counted = [stage.samples for stage in self.stages.totals() if stage.samples is not None]
        return sum(counted) if counted else None

    def _work(self) -> None:
        """Sample until stopped, and once more then."""
        wait, due = min(FIRST_WAIT, self.interval), time.monotonic()
        while not self._stopped.is_set():
            due = max(due + wait, time.monotonic())
            wait = min(2 * wait, self.interval)
            self._stopped.wait(due - time.monotonic())
            if not self._guarded(self._look):
                break

    def _guarded(self, work: Callable[[], None]) -> bool:
        """Do work outside the run, and return whether it succeeded."""
        try:
            work()
        except Exception as error:
            self._problems.append(f"watching ended early: {type(error).__name__}: {error}")
            return False
        return True

    def _open(self) -> None:
        self._sampler, self._tree = Sampler(detailed=True), ProcessTree(self._pid)
        self._look()

    def _look(self) -> None:
        if self._tree is None or self._sampler is None:
            return
        observation = observe(self._tree, self._sampler)
        latency = self._latency.last_ms if self._latency else None
        snapshot = self._account.add(observation, self.stages.current, latency)
        if snapshot is not None:
            self._timeline.add(snapshot)
            self._tell(snapshot)

    def _tell(self, snapshot: ResourceSnapshot) -> None:
        """Call the listener, if any; one that fails is not called again."""
        try:
            if self._seen is not None:
                self._seen(snapshot)
        except Exception as error:
            self._seen = None
            self._problems.append(str(error))


class WorkInOutput:
    """Finds work in lines.

    Args:
        samples: expression of a line that counts samples: its group is how many are done so far; without a group
            each such line is one. None where no line does.
        stages: expression of the line with which each stage begins, by name.

    Raises:
        CapacityError: an expression cannot be read.
    """

    def __init__(self, samples: str | None, stages: Mapping[str, str]) -> None:
        self._samples = None if samples is None else _expression(samples)
        self._stages = {name: _expression(text) for name, text in stages.items()}
        self._counted = 0.0
        self._open: Entry | None = None

    def take(self, line: str, at: float, engine: ProfilingEngine) -> None:
        """Record the work of a line that came at a time on the monotonic clock."""
        for name, expression in self._stages.items():
            if expression.search(line):
                self.end(at, engine)
                self._open = engine.stages.enter(name, at)
        match = self._samples.search(line) if self._samples else None
        if match is None:
            return
        done = self._done(match)
        engine.done(done)
        if self._open is not None:
            self._open[2].done(done)

    def never_begun(self, engine: ProfilingEngine) -> tuple[str, ...]:
        """Return the stages whose line did not come."""
        begun = {stage.name for stage in engine.stages.totals()}
        return tuple(name for name in self._stages if name not in begun)

    def end(self, at: float, engine: ProfilingEngine) -> None:
        """End the stage that is open."""
        if self._open is not None:
            engine.stages.leave(self._open, at)
            self._open = None

    def _done(self, match: re.Match[str]) -> float:
        """Return how many samples a line counts that were not counted before."""
        if not match.re.groups:
            return 1.0
        try:
            count = float((match[1] or "").replace(",", "").replace("_", ""))
        except ValueError:
            return 0.0
        new = max(0.0, count - self._counted)
        self._counted += new
        return new


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise CapacityError(f"{text!r} is no regular expression", str(error)) from error
