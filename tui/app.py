"""The program: its screen, themes, keys and exit."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

from rich.console import RenderableType
from textual import events, on
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.screen import ModalScreen, Screen
from textual.timer import Timer

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import config_folder, settings_file
from capacity_tui.tui import text
from capacity_tui.tui.actions import VIEWS, Commanded, bindings, checked_keymap
from capacity_tui.tui.requests import fault_of
from capacity_tui.tui.session import Session
from capacity_tui.tui.settings import Settings
from capacity_tui.tui.settings import load as load_settings
from capacity_tui.tui.terminal import Difference, KeysInTurn, Painted
from capacity_tui.tui.text import Line, Span, line, wrap
from capacity_tui.tui.views.plan.screen import PlanScreen
from capacity_tui.tui.views.view_screen import Views
from capacity_tui.tui.widgets import themes
from capacity_tui.tui.widgets.lines import ClosesOnce, Guarded

if TYPE_CHECKING:
    from capacity_tui.tui.view import Engine


_REST_SECONDS = 0.4  # Keys rest when none came for this long
# Searches of young objects for garbage until all of memory is searched: when keys rest, and at the latest.
_SEARCHES_AT_REST, _SEARCHES_AT_MOST = 10, 100
_FLOOD, _FLOOD_SECONDS = 20, 2.0
"""More mistakes than this within so many seconds, and every next frame would be one too."""


def load_engine() -> Engine:
    """Import the engine; takes some tenths of a second, so a thread calls it."""
    from capacity_tui.tui.engine_view import CapacityEngine

    return CapacityEngine()


def _data_commands() -> type[Provider]:
    from capacity_tui.tui.views.dialogs.help import DataCommands

    return DataCommands


class CapacityApp(Commanded, Guarded, KeysInTurn):
    """The full-screen planner.

    Args:
        source: path of a plan, or its text; None to propose one that fits this machine.
        accelerator: catalogue id of hardware to plan for instead of the plan's own.
        ascii_only: whether to draw with ASCII characters alone.
        engine: returns the engine; called in a thread.
    """

    TITLE = "capacity-tui"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = App.COMMANDS | {_data_commands}

    def __init__(
        self,
        *,
        source: Path | str | None = None,
        accelerator: str | None = None,
        settings: Settings | None = None,
        ascii_only: bool = False,
        engine: Callable[[], Engine] = load_engine,
    ) -> None:
        # Textual turns NO_COLOR into shades of grey unless the terminal's own colours are used.
        no_color = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if no_color else None)
        self.settings = settings or Settings()
        self.animation_level = "none"
        self._trouble = ""
        self._rest_timer: Timer | None = None
        self._painted = Painted()
        self._use_keymap()
        self._glyphs = text.choose(self.settings.glyphs, ascii_only)
        self.session = Session(self, engine, self.settings, self._glyphs)
        self._source = source
        self._accelerator = accelerator
        self._asks_first = self.settings.start and source is None and accelerator is None
        self._theme_name = "ansi" if no_color else self.settings.theme
        self.mistakes: list[Exception] = []
        self.fatal: Exception | None = None
        self._mistakes_at: list[float] = []
        self.set_class(self._glyphs is text.Glyphs.ASCII, "-ascii")
        self._use_theme(self._theme_name)
        views = Views(self, self.session)
        self.session.views.subscribe(self, views.show)
        self.commands = {
            "app.help": self._show_help,
            "app.quit": self.action_leave,
            "app.palette": self.action_command_palette,
            "app.start": self._show_start,
            "app.theme": self._use_next_theme,
            "app.suspend": self.action_suspend_process,
            "view.choose": views.choose,
            "view.next": partial(views.show_next, 1),
            "view.previous": partial(views.show_next, -1),
            **{f"view.{name}": partial(views.show, name) for name in VIEWS},
            "machine.show": partial(views.show, "machine"),
            "error.show": self._show_last_failure,
        }

    def get_driver_class(self) -> type[Driver]:
        """Return the driver that ends at once, where there is a choice."""
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from capacity_tui.tui.driver import PromptDriver

        return PromptDriver

    def get_default_screen(self) -> Screen[None]:
        return PlanScreen(self.session, self._source, self._accelerator)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:  # noqa: ARG002
        """Offer every action of the registry in the palette."""
        from capacity_tui.tui.views.dialogs.help import action_commands

        return action_commands(self, self.settings.keys)

    @property
    def keys_wait(self) -> bool:
        """Whether the line that asks what is wanted is to come, or a dialog closes once what it shows is read."""
        return self._asks_first or (isinstance(self.screen, ClosesOnce) and self.screen.is_answered)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.session.was_typed = True
            if self._rest_timer is not None:
                self._rest_timer.stop()
            self._rest_timer = self.set_timer(_REST_SECONDS, self._search_for_garbage)
        await super().on_event(event)

    def on_ready(self) -> None:
        """Say what was wrong with the settings, now that there is a place to say it."""
        gc.enable()
        if self._trouble:
            self.session.say(self._trouble, "bad")
        if self._asks_first:
            self.call_after_refresh(self._ask_first)

    def _search_for_garbage(self) -> None:
        """Search all of memory while keys rest: a key that comes meanwhile waits for some tens of milliseconds."""
        if gc.get_count()[2] > _SEARCHES_AT_REST:
            gc.collect()

    async def _ask_first(self) -> None:
        """Ask what is wanted once the first frame is painted, and hand on what was typed by then."""
        from capacity_tui.tui.views.dialogs.start import StartPrompt

        await self.push_screen(StartPrompt(self.session))
        self._asks_first = False
        # Behind what gives the focus to that line.
        self.call_later(self.hand_on)

    def on_resize(self) -> None:
        """Paint all of the screen, since the terminal has moved what stood on it."""
        self._painted.forget()

    # Actions

    def action_command_palette(self) -> None:
        from capacity_tui.tui.views.dialogs.help import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def _show_start(self) -> None:
        from capacity_tui.tui.views.dialogs.start import StartPrompt

        if not isinstance(self.screen, ModalScreen):
            self.push_screen(StartPrompt(self.session))

    def _show_help(self) -> None:
        from capacity_tui.tui.views.dialogs.help import TextDialog, help_lines

        screen = next((screen for screen in reversed(self.screen_stack) if isinstance(screen, Commanded)), self)
        about = screen.about()

        def build(width: int) -> list[Line]:
            return help_lines(screen.topic, self.settings.keys, str(settings_file()), width, about)

        self.push_screen(TextDialog("Help", build, self.session.copy))

    def _show_last_failure(self) -> None:
        """Show all that is known of what went wrong last."""
        from capacity_tui.tui.views.dialogs.help import TextDialog

        fault = self.session.last_failure
        if fault is None:
            self.session.say("no error so far")
            return

        def build(width: int) -> list[Line]:
            parts = ((fault.title, "bad"), (fault.detail, "value"), (fault.hint, "label"))
            wrapped = ((text, role) for whole, role in parts for text in whole.splitlines())
            return [line(Span(piece, role)) for text, role in wrapped for piece in wrap(text, width) or [""]]

        self.push_screen(TextDialog("The last error", build, self.session.copy))

    def _use_next_theme(self) -> None:
        names = themes.BUNDLED
        position = names.index(self._theme_name) if self._theme_name in names else -1
        name = names[(position + 1) % len(names)]
        self._use_theme(name)
        self.session.say(f"theme {name}")
        self.session.remember("theme", name)

    def action_leave(self) -> None:
        """Quit, after a warning where something is unsaved."""
        if self.session.may_leave():
            if self.session.guide.has_begun and not self.session.guide.is_over:
                self.session.end_guide()
            self.session.unsaved.give_up()
            self.exit()

    async def action_quit(self) -> None:
        """Quit by Textual's own key, no less careful."""
        self.action_leave()

    def action_help_quit(self) -> None:
        """Say how to quit, to whoever tries Ctrl-C."""
        self.session.say("{app.quit} quits")

    # Painting

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Write what the terminal does not show yet, and nothing else."""
        if isinstance(renderable, LayoutUpdate | ChopsUpdate):
            super()._display(screen, Difference(renderable, self._painted))
        else:
            super()._display(screen, renderable)

    # Mistakes and signals

    def _handle_exception(self, error: Exception) -> None:
        """Tell of a mistake and go on; end where there is no screen yet, or nothing but mistakes follow."""
        now = time.monotonic()
        self._mistakes_at = [*(at for at in self._mistakes_at if now - at < _FLOOD_SECONDS), now]
        self.mistakes.append(error)
        if not any(screen.is_running for screen in self._screen_stack) or len(self._mistakes_at) > _FLOOD:
            self.fatal = error
            self.end(1)
            self._close_messages_no_wait()
        else:
            self.session.fail_soon(fault_of(error))

    def end(self, code: int) -> None:
        """End at once; what no file holds is offered at the next start."""
        with suppress(Exception):  # whatever else is broken, the program ends
            self.session.unsaved.keeping()()
        self.exit(return_code=code)

    @on(Driver.SignalResume)
    def paint_again(self) -> None:
        """Paint all of the screen, since the shell has written over it."""
        self._painted.forget()
        self.refresh(layout=True)

    def _use_theme(self, name: str) -> None:
        try:
            theme = themes.load(name, config_folder() / "themes")
        except (CapacityError, OSError) as error:
            self._trouble = error.one_line() if isinstance(error, CapacityError) else str(error)
            name, theme = "dark", themes.load("dark", config_folder() / "themes")
        self._theme_name = name
        self.register_theme(theme)
        self.theme = theme.name

    def _use_keymap(self) -> None:
        try:
            keys = checked_keymap(self.settings.keys, str(settings_file()))
        except CapacityError as error:
            self._trouble = error.one_line()
        else:
            self.settings = replace(self.settings, keys=keys)
            self.set_keymap(keys)


_ARENA_MAX = -8  # M_ARENA_MAX in malloc.h of glibc


def _share_one_heap() -> None:
    """Keep glibc from giving each worker thread a heap of its own, none of which shrinks."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)  # musl has none


def run(
    *,
    plan: str | None = None,
    plan_path: Path | None = None,
    gpu: str | None = None,
    ascii: bool = False,  # noqa: A002
    mouse: bool = True,
    theme: str | None = None,
) -> NoReturn:
    """Open the screen; the process ends with it, as a thread that hangs in a driver would hold the shell up.

    Args:
        plan: text of a plan to open.
        plan_path: path of a plan to open.
        gpu: catalogue id of hardware to plan for instead of the plan's own.
        ascii: whether to draw with ASCII characters alone.
        mouse: whether to capture the mouse.
        theme: name of a theme or path of a theme file, instead of the one in the settings.

    Raises:
        CapacityError: there is no terminal to draw on.
        Exception: a mistake of the program that leaves no screen to go on with.
    """
    # Textual reads stdin and draws on stderr.
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CapacityError("the screen needs a terminal", hint="see `capacity-tui --help` for commands without one")
    if os.environ.get("TERM") == "dumb":
        raise CapacityError("TERM=dumb cannot position text", hint="set TERM, such as xterm-256color")
    _share_one_heap()
    gc.set_threshold(*gc.get_threshold()[:2], _SEARCHES_AT_MOST)
    settings = load_settings(settings_file())
    if theme:
        settings = replace(settings, theme=theme)
    app = CapacityApp(source=plan_path or plan, accelerator=gpu, settings=settings, ascii_only=ascii)
    # Textual's own loop would wait for the threads.
    loop = asyncio.new_event_loop()
    if sys.platform != "win32":  # where Textual's own driver heeds what there is
        from capacity_tui.tui.driver import heed_signals

        heed_signals(loop, app.end, lambda: app.call_later(app.action_leave))
    app.run(mouse=mouse and settings.mouse, loop=loop)
    if app.fatal is not None:
        raise app.fatal
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(app.return_code or 0)
