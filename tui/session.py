"""What every screen works with: the engine, the plan, requests, settings, the clipboard and the status line."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from textual.app import App
from textual.dom import DOMNode
from textual.timer import Timer
from textual.worker import get_current_worker

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import config_folder, settings_file, typed_path
from capacity_tui.tui.actions import Guide
from capacity_tui.tui.requests import Fault, Request, reported
from capacity_tui.tui.settings import RecentPlan, Settings, remember_plan, save_setting, shortened, write_file
from capacity_tui.tui.store import Store
from capacity_tui.tui.text import Glyphs, Span

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Column, Comparison
    from capacity_tui.tui.unsaved import LeftBehind, UnsavedPlans
    from capacity_tui.tui.view import Document, Engine

T = TypeVar("T")
_REST_SECONDS = 0.2  # An edit is kept on disk when no other has followed it for this long


class Topic(Generic[T]):
    """Something that nodes of the screen are told of at once; their mistakes are not swallowed, as by a Signal."""

    def __init__(self) -> None:
        self._listeners: list[tuple[DOMNode, Callable[[T], object]]] = []

    def subscribe(self, node: DOMNode, listener: Callable[[T], object]) -> None:
        self._listeners.append((node, listener))

    def publish(self, event: T) -> None:
        self._listeners = [entry for entry in self._listeners if entry[0].is_running]
        for _, listener in tuple(self._listeners):
            listener(event)


class Session:
    """What every screen is given.

    Args:
        load_engine: returns the engine; called in a thread.
        glyphs: what graphs are drawn with.
    """

    def __init__(self, app: App[None], load_engine: Callable[[], Engine], settings: Settings, glyphs: Glyphs) -> None:
        self.app = app
        self.settings = settings
        self.glyphs = glyphs
        self.store = Store()  # the plan that is edited
        self.plan_changes: Topic[None] = Topic()  # published whenever the store has another plan
        self.answers: Topic[None] = Topic()  # published whenever what the plan comes to is shown anew
        self.views: Topic[str] = Topic()  # published whenever another view is wanted, with its name
        self.status: Topic[Span] = Topic()  # published whenever something is to be said in the status line
        self.wanted: Topic[str] = Topic()  # published whenever a field is to be edited, with its key
        self.figures: Topic[str] = Topic()  # published whenever a figure is to be explained, with its key
        # published whenever something goes wrong that no screen shows in its own place
        self.failures: Topic[Fault] = Topic()
        self.last_failure: Fault | None = None  # what went wrong last
        self.trouble: Fault | None = None  # why there are no new numbers, None where there are
        self.was_typed = False  # whether any key came yet
        self.left_behind = ""  # what an earlier run left behind and nobody has decided on; empty for nothing
        self.guide = Guide(settings.hint)  # what a first-time user may try next
        self.left: dict[str, str] = {}  # what was typed into dialogs and left with esc, by what it answers
        self.engine_if_loaded: Engine | None = None
        self._load_engine, self._loading = load_engine, threading.Lock()
        self._newest: WeakKeyDictionary[DOMNode, dict[str, int]] = WeakKeyDictionary()
        self._turns: dict[str, threading.Lock] = {}
        self._keep_timer: Timer | None = None
        self._keeping_failed = False
        self._leave_requested_at = -1

    @property
    def engine(self) -> Engine:
        """The engine; loads it, so only threads ask for it: the first frame does not wait."""
        with self._loading:
            if self.engine_if_loaded is None:
                self.engine_if_loaded = self._load_engine()
                # What was just loaded stays: searching it for garbage would make keys wait now and then.
                gc.freeze()
            return self.engine_if_loaded

    @cached_property
    def unsaved(self) -> UnsavedPlans:
        """What no file holds; nothing is unsaved before the first frame."""
        from capacity_tui.tui.unsaved import Swap, UnsavedPlans

        return UnsavedPlans(self.store, Swap())

    # Requests

    def request(
        self,
        requester: DOMNode,
        subject: str,
        show: Callable[[T], object] | None = None,
        failed: Callable[[Fault], object] | None = None,
        drop: Callable[[T], object] | None = None,
    ) -> Request[T]:
        """Return a new request, which outdates those before it on the subject; ``ask`` says the rest."""
        newest = self._newest.setdefault(requester, {})
        return Request(requester, subject, newest, show, failed or self.fail, drop)

    def ask(
        self,
        requester: DOMNode,
        subject: str,
        work: Callable[[Request[T]], T | None],
        show: Callable[[T], object] | None = None,
        *,
        failed: Callable[[Fault], object] | None = None,
        drop: Callable[[T], object] | None = None,
        in_turn: bool = False,
    ) -> Request[T]:
        """Have a thread answer a new request; the one before it on the subject is cancelled, its answers are dropped.

        Args:
            requester: the screen or widget that waits for the answers, and calls what follows.
            subject: what is asked for.
            work: called in a thread; what it returns is an answer, and it may send others before.
            show: called with each answer.
            failed: called with what went wrong; where it is missing the program says that.
            drop: called with an answer that came too late, to let go of what it holds.
            in_turn: whether to wait until older work on the subject is done, and to do nothing if yet another waits.
        """
        request = self.request(requester, subject, show, failed, drop)
        turn = self._turns.setdefault(subject, threading.Lock()) if in_turn else nullcontext()

        def run() -> None:
            request.cancelled = get_current_worker().cancelled_event
            with turn, reported(request.fail):
                answer = work(request) if request.is_newest else None
                if answer is not None:
                    request.answer(answer)

        requester.run_worker(run, subject, subject, exit_on_error=False, exclusive=True, thread=True)
        return request

    def cancel(self, requester: DOMNode, subject: str) -> None:
        self.request(requester, subject)
        self.app.workers.cancel_group(requester, subject)

    def compare(
        self, requester: DOMNode, show: Callable[[Comparison], object], failed: Callable[[Fault], object] | None = None
    ) -> None:
        """Have the plan estimated in its modes."""
        document = self.store.document
        if document is not None:
            self.ask(
                requester,
                "compare",
                lambda request: request.while_wanted(document.compare),
                show,
                failed=failed,
                in_turn=True,
            )

    # The plan

    def open(self, source: Path | str, path: Path | None) -> None:
        """Have another plan opened: a file, an example by its name, or a text, with the file that it belongs to."""
        self.ask(self.app, "open", lambda _: self.engine.open(source), lambda opened: self.take_up(opened, path))

    def open_named(self, name: str) -> None:
        """Have the plan of a file opened if the name is a path, else an example."""
        path = typed_path(name)
        is_path = path.suffix in {".yaml", ".yml"} or "/" in name
        self.open(path if is_path else name, path if is_path else None)

    def take_up(self, document: Document, path: Path | None, assumed: tuple[str, ...] = ()) -> None:
        """Take up another plan.

        Args:
            path: the file that it belongs to, if any.
            assumed: what was guessed of a plan that was said in a line.
        """
        replaces_changes = self.store.is_changed
        self.store.open(document, path)
        if path is not None:
            self._remember(path, document.name)
        words = f"assumed: {'; '.join(assumed)}" if assumed else ""
        if words:
            self.say(words)
        elif replaces_changes:
            self.say("{edit.undo} brings back the previous plan and its changes")
        self.plan_changed()
        if document.answered_in:
            self.app.call_after_refresh(self._show_answer, document.answered_in, words)

    def _show_answer(self, view: str, words: str) -> None:
        """Show the view that answers a line's question, whose own status line says what was assumed."""
        self.show_view(view)
        if words:
            self.app.call_after_refresh(self.say, words)

    def _remember(self, path: Path, name: str) -> None:
        """Have a file that was opened remembered for the next start."""

        def work(_: Request[None]) -> None:
            with suppress(CapacityError):  # a full disk is no reason not to open it
                remember_plan(RecentPlan(str(path.absolute()), True, name))

        self.ask(self.app, "recent", work)

    def restore(self, kept: LeftBehind, plans: tuple[tuple[Document, Path | None], ...]) -> None:
        """Take up restored plans and the files they belong to, the last edited one on top of the others."""
        for document, path in reversed(plans):
            self.store.open(document, path, is_saved=False)
        self.unsaved.restored_from(kept)
        self.plan_changed()
        self.say("restored; {file.save} saves it", "good")

    def change(self, key: str, text: str) -> str:
        """Change a field of the plan; return why that was refused, or an empty text."""
        return self.apply({key: text})

    def apply(self, change: Mapping[str, object]) -> str:
        """Change several fields of the plan in one edit; return why that was refused, or an empty text."""
        try:
            changed = self.store.change(change)
        except CapacityError as error:
            return error.in_place()
        if changed:
            self.plan_changed()
        return ""

    def change_to(self, after: Document, key: str) -> None:
        """Take up a changed plan as an edit of a field."""
        if self.store.change_to(after, key):
            self.plan_changed()

    def plan_changed(self) -> None:
        self.plan_changes.publish(None)
        self.keep_unsaved()

    def renew_plan(self) -> None:
        """Take up what is known about this machine by now."""
        engine = self.engine_if_loaded
        if engine is not None and self.store.document is not None:
            self.store.renew(engine.renewed)
            self.plan_changed()

    def keep_unsaved(self) -> None:
        """Have what no file holds written where it outlives the program, once the keys rest."""
        if self._keep_timer is not None:
            self._keep_timer.stop()
        self._keep_timer = self.app.set_timer(_REST_SECONDS, self._keep_unsaved_now)

    def _keep_unsaved_now(self) -> None:
        keep = self.unsaved.keeping()

        def work(_: Request[None]) -> None:
            try:
                keep()
            except Exception:
                is_known, self._keeping_failed = self._keeping_failed, True
                if not is_known:  # reported once until it works again
                    raise
            else:
                self._keeping_failed = False

        self.ask(self.app, "keep", work)

    def may_leave(self) -> bool:
        """Return whether the program may end: nothing is unsaved, or it was asked for twice."""
        if not self.store.unsaved or self._leave_requested_at == self.store.revision:
            return True
        self._leave_requested_at = self.store.revision
        self.say("unsaved changes: {file.save} saves, {app.quit} again quits without saving", "warn")
        return False

    def numbers(self, consequence: str = "") -> tuple[Document, Column] | None:
        """Return the plan and its chosen column; say that there are no numbers of it, and what follows from that."""
        answered = self.store.answered
        if answered is None:
            self.say(f"no numbers for this plan yet{consequence}", "warn")
        return answered

    # The user

    def show_view(self, name: str) -> None:
        self.views.publish(name)

    def show_trouble(self, trouble: Fault | None) -> None:
        """Say why there are no new numbers, until there are."""
        self.trouble = trouble
        self.answers.publish(None)

    def end_guide(self) -> None:
        """Tell nobody any more how to begin, now or at the next start."""
        self.guide.end()
        self.answers.publish(None)
        self.remember("hint", False)

    def say(self, text: str, role: str = "value") -> None:
        """Say something in the status line, until the next key; actions stand in braces for their keys."""
        self.status.publish(Span(text, role))

    def fail(self, fault: Fault) -> None:
        """Say what went wrong, and keep all of it for whoever asks."""
        self.last_failure = fault
        self.failures.publish(fault)
        self.say(fault.in_short, "bad")

    def fail_soon(self, fault: Fault) -> None:
        """Have it said what went wrong; may be called in any thread."""
        self.app.call_later(self.fail, fault)

    def copy(self, text: str, name: str = "copied.txt") -> None:
        """Copy a text through the terminal, and put it into a file since the terminal may refuse."""
        self.app.copy_to_clipboard(text)
        path = config_folder() / name
        refusal = write_file(path, text)
        kept = f"written to {shortened(path)}; copied too if the terminal allows it"
        self.say(refusal or kept, "bad" if refusal else "good")

    def remember(self, name: str, value: str | bool) -> None:
        """Write a setting down, and say so where that fails."""
        try:
            save_setting(settings_file(), name, value)
        except CapacityError as error:
            self.say(error.one_line(), "bad")


class HasSession(Protocol):
    """A program with a session, for what Textual makes without passing anything on."""

    session: Session
