"""The command palette: every action, and everything that can be picked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import cast

from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from capacity_tui.tui.actions import ACTIONS, Commanded, key_names
from capacity_tui.tui.requests import reported
from capacity_tui.tui.session import HasSession, Session
from capacity_tui.tui.shown.results import HARDWARE_KEY, MODEL_KEY, Choice
from capacity_tui.tui.widgets.lines import ClosesOnce

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
