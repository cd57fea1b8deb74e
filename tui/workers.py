"""Everything slow, in threads that post messages and touch no widget."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from textual import work
from textual.screen import Screen
from textual.worker import get_current_worker

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.messages import Compared, Detected, Explained, Failed, Opened, Sampled
from capacity_tui.tui.store import Store
from capacity_tui.tui.view import Document, Engine

HARDWARE_KEY = "hardware.name"
EXPLAIN_AFTER_SECONDS = 0.1
UNFOCUSED_SLOWDOWN = 5.0
"""How much less often the sensors are read while nobody looks."""


class EngineRoom:
    """Loads the engine the first time a thread needs it, so that the first frame does not wait for it."""

    def __init__(self, load: Callable[[], Engine]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """Return the engine."""
        with self._lock:
            if self._engine is None:
                self._engine = self._load()
                # What was just loaded stays: searching it for garbage would make keys wait now and then.
                gc.freeze()
            return self._engine


def breakdown(error: BaseException | None, generation: int | None = None) -> Failed:
    """Return what to say about a fault of the program itself."""
    hint = "! shows what happened; please report it with the plan that caused it"
    return Failed("the program made a mistake", hint, "".join(traceback.format_exception(error)), generation)


def failure(error: CapacityError, generation: int | None = None) -> Failed:
    """Return what to say about an error that was foreseen."""
    title = ": ".join(part for part in (str(error.place), error.title) if part)
    return Failed(title, error.hint, error.detail, generation)


class PlanWorkers(Screen[None]):
    """The threads of the plan screen.

    Args:
        room: where the engine is.
        store: the plan that is edited.
    """

    def __init__(self, room: EngineRoom, store: Store) -> None:
        super().__init__()
        self.room = room
        self.store = store
        self._estimating = threading.Lock()

    @work(thread=True, exclusive=True, group="open", exit_on_error=False)
    def begin(self, source: Path | str | None, accelerator: str | None) -> None:
        """Look at the machine, then open the plan that was asked for, or propose one."""
        try:
            engine = self.room.engine()
            self.post_message(Detected(engine.detect()))
            document = engine.open(source) if source else engine.propose(accelerator)
            if source and accelerator:
                document = document.edited(HARDWARE_KEY, accelerator)
            self.post_message(Opened(document, source if isinstance(source, Path) else None))
        except CapacityError as error:
            self._fail(error)

    @work(thread=True, exclusive=True, group="open", exit_on_error=False)
    def read_plan(self, source: Path | str, path: Path | None) -> None:
        """Open another plan."""
        try:
            self.post_message(Opened(self.room.engine().open(source), path))
        except CapacityError as error:
            self._fail(error)

    @work(thread=True, exclusive=True, group="compare", exit_on_error=False)
    def compare(self, document: Document, generation: int) -> None:
        """Estimate a plan, unless a newer one waits when its turn comes."""
        with self._estimating:
            if generation != self.store.generation:
                return
            try:
                self.post_message(Compared(generation, document.compare()))
            except CapacityError as error:
                self._fail(error, generation)

    @work(thread=True, exclusive=True, group="explain", exit_on_error=False)
    def explain(self, document: Document, generation: int, mode: str, key: str) -> None:
        """Say where a number comes from, once the keys rest: it takes several estimates."""
        if get_current_worker().cancelled_event.wait(EXPLAIN_AFTER_SECONDS):
            return
        try:
            self.post_message(Explained(generation, document.explain(mode, key)))
        except CapacityError as error:
            self._fail(error)

    @work(thread=True, exclusive=True, group="live", exit_on_error=False)
    def watch_sensors(self, seconds: float) -> None:
        """Read the sensors until cancelled."""
        cancelled = get_current_worker().cancelled_event
        try:
            sampler = self.room.engine().sampler()
            while not cancelled.is_set():
                self.post_message(Sampled(sampler.sample()))
                cancelled.wait(seconds)
        except CapacityError as error:
            self._fail(error)

    def _fail(self, error: CapacityError, generation: int | None = None) -> None:
        self.post_message(failure(error, generation))
