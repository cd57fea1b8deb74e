"""Everything slow, in threads that post messages and touch no widget."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from textual import work
from textual.screen import Screen
from textual.worker import get_current_worker

from capacity_tui.tui.messages import (
    Compared,
    Detected,
    Explained,
    Failed,
    LeftBehindFound,
    Opened,
    Request,
    Requests,
    Restored,
    Sampled,
)
from capacity_tui.tui.mistakes import reported
from capacity_tui.tui.store import Store
from capacity_tui.tui.swap import KeptPlan, LeftBehind, Swap
from capacity_tui.tui.view import Document, Engine
from capacity_tui.tui.widgets.guarded import Guarded

Unsaved = Sequence[tuple[Document, Path | None]]
"""Plans with changes that no file holds, and the files they belong to."""
HARDWARE_KEY = "hardware.name"
EXPLAIN_AFTER_SECONDS = 0.1
RETRY_SECONDS = 5.0
"""How long sensors that failed are left alone."""
UNFOCUSED_SLOWDOWN = 5.0
"""How much less often the sensors are read while nobody looks."""


class EngineRoom:
    """Loads the engine the first time a thread needs it, so that the first frame does not wait for it."""

    def __init__(self, load: Callable[[], Engine]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    @property
    def loaded(self) -> Engine | None:
        """The engine if it is loaded by now; never waits."""
        return self._engine

    def engine(self) -> Engine:
        """Return the engine; may wait until it is loaded."""
        with self._lock:
            if self._engine is None:
                self._engine = self._load()
                # What was just loaded stays: searching it for garbage would make keys wait now and then.
                gc.freeze()
            return self._engine


class PlanWorkers(Guarded, Screen[None]):
    """The threads of the plan screen.

    Args:
        room: where the engine is.
        store: the plan that is edited.
    """

    def __init__(self, room: EngineRoom, store: Store) -> None:
        super().__init__()
        self.room = room
        self.store = store
        self.requests = Requests()
        self.swap = Swap()
        self.restored: list[LeftBehind] = []
        self._tells_of_swap = True
        self._estimating = threading.Lock()

    def begin(self, source: Path | str | None, accelerator: str | None) -> None:
        """Look at the machine, then open the plan that was asked for, or propose one."""
        self._begin(self.requests.new("open"), source, accelerator)

    @work(thread=True, group="begin", exit_on_error=False)
    def _begin(self, request: Request, source: Path | str | None, accelerator: str | None) -> None:
        with reported(self.post_message):
            if found := self.swap.left_behind():
                self.post_message(LeftBehindFound(tuple(found)))
        with reported(self.post_message):
            self.post_message(Detected(self.room.engine().detect()))
        if not self.requests.is_newest(request):
            return
        with reported(self.post_message, request):
            engine = self.room.engine()
            place = engine.locate(source) if isinstance(source, Path) else source
            document = engine.open(place) if place else engine.propose(accelerator)
            if place and accelerator:
                document = document.edited(HARDWARE_KEY, accelerator)
            self.post_message(Opened(request, document, place if isinstance(place, Path) else None))

    def read_plan(self, source: Path | str, path: Path | None) -> None:
        """Open another plan."""
        self._read_plan(self.requests.new("open"), source, path)

    @work(thread=True, exclusive=True, group="open", exit_on_error=False)
    def _read_plan(self, request: Request, source: Path | str, path: Path | None) -> None:
        with reported(self.post_message, request):
            self.post_message(Opened(request, self.room.engine().open(source), path))

    def give_up_unsaved(self) -> None:
        """Keep nothing any more: all is saved, or the user wants none of it."""
        for kept in self.restored:
            kept.discard()
        self.swap.close()

    def restore(self, kept: LeftBehind) -> None:
        """Open the plans that an earlier run of the program left behind."""
        self._restore(self.requests.new("open"), kept)

    @work(thread=True, exclusive=True, group="open", exit_on_error=False)
    def _restore(self, request: Request, kept: LeftBehind) -> None:
        with reported(self.post_message, request):
            opened = ((self.room.engine().open(plan.text), plan.path) for plan in kept.plans)
            plans = tuple((document, Path(path) if path else None) for document, path in opened)
            self.post_message(Restored(request, plans, kept))

    @work(thread=True, exclusive=True, group="keep", exit_on_error=False)
    def keep_in_swap(self, number: int, unsaved: Unsaved) -> None:
        """Write down what no file holds; then what it was restored from is needed no more."""
        with reported(self.post_message if self._tells_of_swap else _keep_quiet):
            self._tells_of_swap = False
            self.swap.keep(kept_plans(unsaved), number)
            self._tells_of_swap = True
            for kept in self.restored:
                kept.discard()

    def compare(self, document: Document, generation: int) -> None:
        """Estimate a plan, unless a newer one waits when its turn comes."""
        self._compare(self.requests.new("compare"), document, generation)

    @work(thread=True, exclusive=True, group="compare", exit_on_error=False)
    def _compare(self, request: Request, document: Document, generation: int) -> None:
        with self._estimating, reported(self.post_message, request):
            if self.requests.is_newest(request):
                self.post_message(Compared(request, generation, document.compare()))

    def explain(self, document: Document, mode: str, key: str) -> None:
        """Say where a number comes from, once the keys rest: it takes several estimates."""
        self._explain(self.requests.new("explain"), document, mode, key)

    @work(thread=True, exclusive=True, group="explain", exit_on_error=False)
    def _explain(self, request: Request, document: Document, mode: str, key: str) -> None:
        if get_current_worker().cancelled_event.wait(EXPLAIN_AFTER_SECONDS):
            return
        with reported(self.post_message, request):
            self.post_message(Explained(request, document.explain(mode, key)))

    @work(thread=True, exclusive=True, group="live", exit_on_error=False)
    def watch_sensors(self, seconds: float) -> None:
        """Read the sensors until cancelled; a reading that fails is told once."""
        cancelled = get_current_worker().cancelled_event
        tell: Callable[[Failed], object] = self.post_message
        while not cancelled.is_set():
            with reported(tell):
                sampler = self.room.engine().sampler()
                while not cancelled.is_set():
                    self.post_message(Sampled(sampler.sample()))
                    cancelled.wait(seconds)
            tell = _keep_quiet
            cancelled.wait(max(seconds, RETRY_SECONDS))


def kept_plans(unsaved: Unsaved) -> list[KeptPlan]:
    """Return plans as they are kept."""
    return [KeptPlan(document.name, str(path or ""), document.dump()) for document, path in unsaved]


def _keep_quiet(_: Failed) -> None:
    """Say nothing of what was told already."""
