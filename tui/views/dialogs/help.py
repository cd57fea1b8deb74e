"""Texts over the screen, one of them the help, and the palette: every action, and all that can be picked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

from textual import events
from textual.app import App, ComposeResult, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.tui.actions import (
    ACTIONS,
    QUERY_VIEWS,
    Action,
    Commanded,
    dialog_bindings,
    key_names,
    read_table,
    with_keys,
)
from capacity_tui.tui.requests import reported
from capacity_tui.tui.session import HasSession, Session
from capacity_tui.tui.shown.results import HARDWARE_KEY, MODEL_KEY, Choice
from capacity_tui.tui.text import Line, Span, left, line, plain_text, to_ascii, wrap
from capacity_tui.tui.widgets.lines import ClosesOnce, DrawnLines


class TextLines(DrawnLines):
    """A text that is built anew for each width."""

    def __init__(self, build: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._build = build

    def draw(self, width: int) -> list[Line]:
        return self._build(width)

    def scroll_pages(self, direction: int) -> None:
        self.scroll_lines(direction * max(self.size.height - 1, 1))

    def scroll_to_end(self, direction: int) -> None:
        self.scroll_lines(direction * len(self.lines))

    def as_text(self) -> str:
        return plain_text(self.lines)


class ScrollsText:
    """A screen over which the mouse scrolls its text, wherever it is."""

    text: TextLines  # what is scrolled

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.text.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.text.scroll_lines(-3)


class TextDialog(ScrollsText, ModalScreen[None], ClosesOnce[None]):
    """Shows lines that are laid out for the width there is."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("text")

    def __init__(
        self,
        title: str,
        build: Callable[[int], list[Line]],
        copy: Callable[[str], None],
        export: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._copy = copy
        self._export = export
        self.text = TextLines(build)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as frame:
            ascii_only = self.app.has_class("-ascii")
            frame.border_title = Content(to_ascii(self._title) if ascii_only else self._title)
            export = ", E pictures" if self._export else ""
            frame.border_subtitle = Content(f"j k scroll, y copy{export}, esc close")
            yield self.text

    def action_move(self, offset: int) -> None:
        self.text.scroll_lines(offset)

    def action_scroll_page(self, direction: int) -> None:
        self.text.scroll_pages(direction)

    def action_export(self) -> None:
        if self._export is not None:
            self._export()

    def action_copy(self) -> None:
        self._copy(self.text.as_text())
        self.dismiss()


_ABOUT = {row["topic"]: row["text"] for row in read_table(Path(__file__).with_name("help.csv"))}
_KEYS = 18


def help_lines(
    panel: str, keymap: Mapping[str, str], settings: str, width: int, about: tuple[str, str] = ("", "")
) -> list[Line]:

    def wrapped(text: str) -> list[Line]:
        return [line(Span(piece, "value")) for piece in wrap(with_keys(text, keymap), width)]

    what, meaning = about
    lines = [line(Span(what, "heading")), *wrapped(meaning), line()] if meaning else []
    lines += [line(Span(panel.capitalize(), "heading")), *wrapped(_ABOUT.get(panel, ""))]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines += [line(), line(Span(group, "heading"))]
        lines += [_key_line(action, keymap, width) for action in ACTIONS if action.group == group]
    lines += [line(), line(Span("Other keys", "heading"))]
    other = f"Write the name on the right and the keys below `keys:` in {settings}, such as `edit.undo: U`."
    return lines + wrapped(other)


def _key_line(action: Action, keymap: Mapping[str, str], width: int) -> Line:
    keys = "  ".join(key_names(action, keymap))
    places = QUERY_VIEWS if action.scope == "asking" else (action.scope,)
    words = " and ".join(place.capitalize() for place in places)
    where = "" if action.scope in {"app", "plan", "panel"} else f" (in {words})"
    title = left(action.title + where, max(width - _KEYS - 20, 0))
    return line(Span(left(keys, _KEYS), "key"), Span(title, "value"), Span(f" {action.id}", "dim"))


_CATALOGUES = (("model", "Model", MODEL_KEY), ("accelerator", "Plan for", HARDWARE_KEY), ("profile", "Open", ""))


def action_commands(app: App[None], keymap: Mapping[str, str]) -> Iterator[SystemCommand]:
    """Yield every action that is heard but the moving of the cursor, which nobody looks for."""
    for action in ACTIONS:
        command = _command(app, action.id)
        if command is not None and action.scope != "panel" and action.id != "app.palette":
            keys = " ".join(key_names(action, keymap))
            yield SystemCommand(action.title, f"{action.group} · key {keys}", command)


def _command(app: App[None], name: str) -> Callable[[], object] | None:
    """Return what an action does: what the uppermost screen that hears it says, else the program."""
    for hearing in (*reversed(app.screen_stack), app):
        if isinstance(hearing, Commanded) and name in hearing.commands:
            return partial(hearing.action_perform, name)
    return None


def _nothing() -> None:
    """Do nothing."""


class Palette(CommandPalette, ClosesOnce[None]):
    """Textual's palette, which closes once and runs its command once."""

    _is_closed = False

    def _action_command_list(self, action: str) -> None:
        """Pass an action on to the list; a page of one that is not laid out yet, or has no room, is a line."""
        try:
            super()._action_command_list(action)
        except KeyError:  # Textual looks the line of a command up before there are lines
            super()._action_command_list(action.replace("page", "cursor"))

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette; a second enter that is under way finds a command that does nothing."""
        if self._is_closed:
            self._selected_command = DiscoveryHit("", _nothing)
        self._is_closed = True
        return super().dismiss(result)


class DataCommands(Provider):
    """Models, hardware and plans, by name."""

    _choices: tuple[tuple[str, str, Choice], ...] = ()

    async def startup(self) -> None:
        """Read the catalogues in a thread, so that the palette opens at once."""
        session = self._session
        worker = self.app.run_worker(lambda: _read(session), thread=True, group="palette", exit_on_error=False)
        self._choices = await worker.wait()

    async def discover(self) -> Hits:
        """Offer the plans before anything is typed."""
        for verb, key, choice in self._choices:
            if not key:
                yield DiscoveryHit(f"{verb} {choice.title}", partial(self._take, key, choice), help=choice.detail)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for hit in self._fields(query):
            yield hit
        for verb, key, choice in self._choices:
            text = f"{verb} {choice.title}"
            score = matcher.match(text)
            if score > 0:
                take = partial(self._take, key, choice)
                yield Hit(score, matcher.highlight(text), take, help=choice.detail)

    def _fields(self, query: str) -> Iterator[Hit]:
        """Yield the fields that match, and what is typed behind the name of one as its new value."""
        document = self._session.store.document
        name, _, value = query.rpartition(" ")
        whole, before = self.matcher(query), self.matcher(name)
        for field in document.fields() if document else ():
            names = " ".join((field.label, field.key, *field.synonyms))
            text = f"{field.label} = {field.text or '–'}"
            if (score := whole.match(names)) > 0:
                yield Hit(score, text, partial(self._session.wanted.publish, field.key), help=field.help)
            elif name and (score := before.match(names)) > 0 and not field.catalogue:
                text = f"Set {field.label} to {value}"
                yield Hit(score, text, partial(self._set, field.key, value), text=text, help=field.help)

    def _set(self, key: str, value: str) -> None:
        if refusal := self._session.change(key, value):
            self._session.say(refusal, "bad")

    @property
    def _session(self) -> Session:
        return cast("HasSession", self.app).session

    def _take(self, key: str, choice: Choice) -> None:
        if not key:
            self._session.open_named(choice.id)
        else:
            self._set(key, choice.id)


def _read(session: Session) -> tuple[tuple[str, str, Choice], ...]:
    choices: list[tuple[str, str, Choice]] = []
    with reported(session.fail_soon):
        engine = session.engine
        for name, verb, key in _CATALOGUES:
            choices += [(verb, key, choice) for choice in engine.catalogue(name)]
    return tuple(choices)
