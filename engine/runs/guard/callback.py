"""The callback of a Python trainer: reports steps and saves, and adapts the micro-batch to memory.

Nothing here ever raises into the training: what goes wrong is kept in ``problem``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Host, probe_memory, shared_memory
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard.placeholders import ACCUMULATION, ATTEMPT, FOLDER, variable_of

TRAINER_EVENTS = "told.jsonl"  # File of an attempt's folder to which a callback appends its events
SAVE_EVERY = "save_every"
"""File of an attempt's folder in which the guard says how many seconds to work between checkpoints."""

RESTART = "restart"
"""Event by which a trainer that cannot change its micro-batch while it runs asks to be started again."""

SAVED = "saved"  # Event of a checkpoint that was written
_LIMIT = 0.95
_READ_SECONDS = 10.0  # How often the guard's interval is read
_FILE_MODE = 0o600


class GuardCallback:
    """Reports the progress of a training, and holds the micro-batch to continue with.

    In a custom loop: read ``micro_batch`` and ``accumulation`` before each step, call ``step`` behind it, and
    save within ``saving``. As a callback of a Trainer, whose batch is fixed: where memory gets short it saves and
    stops, and the guard starts it again with a smaller batch.

    Args:
        micro_batch: samples at once; that of the guarded plan by default.
        accumulation: micro-batches of a step; that of the guarded plan by default.
        limit: share of memory from which on it is too much; ``watch.memory_share`` of the guarded plan by default.
        memory: returns the share of memory that was used at most since the last call; None where unknown.
        saves: whether a Trainer saves whenever that is due, besides its usual saving.

    Attributes:
        problem: what went wrong with telling first; empty as long as all is well.
    """

    def __init__(
        self,
        micro_batch: int | None = None,
        accumulation: int | None = None,
        limit: float | None = None,
        memory: Callable[[], float | None] | None = None,
        saves: bool = False,
    ) -> None:
        self.problem = ""
        folder = os.environ.get(variable_of(FOLDER))
        attempt = os.environ.get(variable_of(ATTEMPT), "1")
        self._file = None if folder is None else Path(folder) / f"attempt-{attempt}" / TRAINER_EVENTS
        self._memory = memory or _used_share
        largest = micro_batch or int(_plan_number(Key.TRAINING_MICRO_BATCH, 1))
        times = accumulation or int(_plan_number(ACCUMULATION, 1))
        self._control = MicroBatchControl(
            largest, largest * times, limit or _plan_number(Key.WATCH_MEMORY_SHARE, _LIMIT)
        )
        self._is_single_process = os.environ.get("WORLD_SIZE", "1") == "1"
        self._is_first = os.environ.get("RANK", "0") == "0"
        self._asked_for_restart = False
        self._saves = saves
        self._saved_at = time.monotonic()
        self._every = _plan_number(Key.RECOVERY_CHECKPOINT_EVERY, math.inf)
        self._every_read_at = self._saved_at

    @property
    def micro_batch(self) -> int:
        """Samples to take at once."""
        return self._control.current

    @property
    def accumulation(self) -> int:
        """Micro-batches of a step, so that its samples stay the same."""
        return self._control.accumulation

    @property
    def save_is_due(self) -> bool:
        """Whether as much work was done since the last checkpoint as the plan and the time of saving want."""
        now = time.monotonic()
        with self._kept_to_itself():
            if self._file is not None and now - self._every_read_at >= _READ_SECONDS:
                self._every_read_at = now
                interval_file = self._file.with_name(SAVE_EVERY)
                self._every = float(interval_file.read_text()) if interval_file.exists() else self._every
        return now - self._saved_at >= self._every

    def step(self, step: int, loss: float | None = None, **figures: float) -> None:
        """Report that a step is done, and decide on the micro-batch of the next.

        Args:
            figures: other figures to report, by the names of logs, such as ``tokens_per_second``.
        """
        with self._kept_to_itself():
            share, before = self._memory(), self.micro_batch
            # Replicas that took other batches than their peers would wait for them for ever.
            if self._is_single_process:
                self._control.step(share)
            self._report({"step": step, "loss": loss, "memory_share": share, **figures})
            if self.micro_batch != before:
                self._report(
                    {
                        "event": "micro_batch",
                        "step": step,
                        "from": before,
                        "to": self.micro_batch,
                        "accumulation": self.accumulation,
                        "memory_share": share,
                    }
                )

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Save a checkpoint within this block: how long that takes says how often it pays."""
        began = time.monotonic()
        yield
        with self._kept_to_itself():
            self._saved_at = time.monotonic()
            self._report({"event": SAVED, "seconds": self._saved_at - began})

    def on_step_end(self, _: object, state: object, control: Any, **__: object) -> None:
        """Take a step of a Trainer; where it needs another batch, have it save and stop."""
        with self._kept_to_itself():
            before = self.micro_batch
            self.step(int(getattr(state, "global_step", 0)))
            if self._saves and self.save_is_due:
                control.should_save = True
            if self.micro_batch != before and self._file is not None and not self._asked_for_restart:
                self._asked_for_restart = True
                self._report({"event": RESTART, "micro_batch": self.micro_batch, "accumulation": self.accumulation})
                control.should_save = True
                control.should_training_stop = True

    def on_log(self, _: object, state: object, __: object, logs: object = None, **___: object) -> None:
        """Take what a Trainer logs."""
        with self._kept_to_itself():
            if isinstance(logs, Mapping):
                numbers = {str(name): value for name, value in logs.items() if isinstance(value, int | float)}
                self._report({"step": int(getattr(state, "global_step", 0)), **numbers})

    def on_save(self, _: object, state: object, __: object, **___: object) -> None:
        """Take that a Trainer has saved."""
        with self._kept_to_itself():
            self._saved_at = time.monotonic()
            self._report({"event": SAVED, "step": int(getattr(state, "global_step", 0))})

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return what does nothing, for the other events of a Trainer."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    def _report(self, event: Mapping[str, object]) -> None:
        if self._file is None or not self._is_first:
            return
        line = json.dumps({name: value for name, value in event.items() if value is not None}) + "\n"
        handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    @contextmanager
    def _kept_to_itself(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.problem = self.problem or f"{type(error).__name__}: {error}"


def _nothing(*_: object, **__: object) -> None:
    pass


def _plan_number(key: str, otherwise: float) -> float:
    try:
        return float(os.environ.get(variable_of(key), otherwise))
    except ValueError:
        return otherwise


def _used_share() -> float | None:
    """Return the share of the device's memory that was allocated at most since the last call, else of main memory."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return _used_main_memory()
    free, total = torch.cuda.mem_get_info()
    used_elsewhere = total - free - torch.cuda.memory_reserved()
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return float((peak + used_elsewhere) / total)


def _used_main_memory() -> float | None:
    total, _, used = shared_memory(probe_memory(Host()))
    return used.value / total.value if used.value is not None and total.value else None


_SOON = 2  # Steps above the limit after which it shrinks: one may be a spike
_CALM = 50  # Steps of room after which it grows; twice as many each time that growing was too early
_MARGIN = 0.02  # Share that stays free below the limit when it grows


@dataclass(slots=True)
class MicroBatchControl:
    """Keeps a micro-batch as large as memory allows, and the samples of a step the same."""

    largest: int  # what the plan says: it never grows beyond that
    samples: int  # of a replica's step, which micro-batches have to divide
    limit: float  # share of memory from which on it is too much
    current: int = 0
    _above: int = 0
    _below: int = 0
    _calm: int = _CALM
    _since_growing: int | None = None
    _before: dict[int, float] = field(default_factory=dict)
    _freed: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.current = self.current or self.largest

    @property
    def accumulation(self) -> int:
        """Micro-batches of a replica's step."""
        return max(1, self.samples // self.current)

    def step(self, share: float | None) -> int:
        """Take the share of memory that was used at most in a step, and return the micro-batch of the next."""
        if share is None:
            return self.current
        self._learn(share)
        if self._since_growing is not None:
            self._since_growing += 1
        self._above = self._above + 1 if share >= self.limit else 0
        self._below = self._below + 1 if self._has_room(share) else 0
        if self._above >= _SOON and self.current > 1:
            self._shrink(share)
        elif self._below >= self._calm:
            self._set(next(size for size in self._sizes() if size > self.current))
            self._since_growing = 0
        return self.current

    def _shrink(self, share: float) -> None:
        if self._since_growing is not None and self._since_growing <= self._calm:
            self._calm *= 2
        self._since_growing = None
        self._before[self.current] = share
        self._set(max(size for size in self._sizes() if size < self.current))
        self._freed.pop(self.current, None)

    def _learn(self, share: float) -> None:
        """Remember what a smaller micro-batch frees, from the first step with it: others come and go."""
        above = min((size for size in self._before if size > self.current), default=None)
        if above is not None:
            self._freed.setdefault(self.current, self._before[above] - share)

    def _has_room(self, share: float) -> bool:
        """Whether what the last shrinking freed would fit in again."""
        if self.current >= self.largest:
            return False
        freed = self._freed.get(self.current)
        return freed is not None and share + max(freed, 0.0) < self.limit - _MARGIN

    def _sizes(self) -> list[int]:
        """Return halves of the largest micro-batch, the smallest first, that divide the samples of a step."""
        sizes, size = [], self.largest
        while size >= 1:
            if self.samples % size == 0:
                sizes.append(size)
            size //= 2
        return sorted({1, *sizes})

    def _set(self, size: int) -> None:
        self.current, self._above, self._below = size, 0, 0
