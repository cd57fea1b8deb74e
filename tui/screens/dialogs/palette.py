"""The command palette: every action, and everything that can be picked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.app import SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from capacity_tui.tui.actions import ACTIONS, MACHINE, PANELS, Action, key_names
from capacity_tui.tui.mistakes import reported
from capacity_tui.tui.screens.plan.workers import HARDWARE_KEY
from capacity_tui.tui.view import Choice
from capacity_tui.tui.widgets.guarded import ClosesOnce

if TYPE_CHECKING:
    from textual.screen import Screen

    from capacity_tui.tui.app import CapacityApp
    from capacity_tui.tui.screens.plan.screen import PlanScreen

MODEL_KEY = "model.name"
_CATALOGUES = (
    ("model", "Model", MODEL_KEY),
    ("accelerator", "Plan for", HARDWARE_KEY),
    ("profile", "Open", ""),
)


def action_commands(app: CapacityApp, keymap: Mapping[str, str]) -> Iterator[SystemCommand]:
    """Yield every action but the moving of the cursor, which nobody looks for."""
    for action in ACTIONS:
        is_heard = action.scope != "machine" or _machine_screen(app) is not None
        if is_heard and action.scope != "panel" and action.id != "app.palette":
            keys = " ".join(key_names(action, keymap))
            yield SystemCommand(action.title, f"{action.group} · key {keys}", partial(_run, app, action))


async def _run(app: CapacityApp, action: Action) -> None:
    plan = app.plan_screen
    if action.scope in PANELS:
        await app.run_action(action.command, plan.query_one(f"#{action.scope}"))
    else:
        heard_by = {"plan": plan, "machine": _machine_screen(app)}.get(action.scope)
        await app.run_action(action.command, heard_by or app)


def _machine_screen(app: CapacityApp) -> Screen[object] | None:
    return next((screen for screen in app.screen_stack if screen.TITLE == MACHINE), None)


class Palette(CommandPalette, ClosesOnce[None]):
    """Textual's palette, which closes once and runs its command once."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette; a second enter that is under way finds no command."""
        self.call_next(self._forget)
        return super().dismiss(result)

    def _forget(self) -> None:
        self._selected_command = None


class DataCommands(Provider):
    """Models, hardware and plans, by name."""

    _choices: tuple[tuple[str, str, Choice], ...] = ()

    async def startup(self) -> None:
        """Read the catalogues in a thread, so that the palette opens at once."""
        app = self._capacity_app
        worker = app.run_worker(lambda: _read(app), thread=True, group="palette", exit_on_error=False)
        self._choices = await worker.wait()

    async def discover(self) -> Hits:
        """Offer the plans before anything is typed."""
        for verb, key, choice in self._choices:
            if not key:
                yield DiscoveryHit(f"{verb} {choice.title}", partial(self._take, key, choice), help=choice.detail)

    async def search(self, query: str) -> Hits:
        """Offer what matches."""
        matcher = self.matcher(query)
        for verb, key, choice in self._choices:
            text = f"{verb} {choice.title}"
            score = matcher.match(text)
            if score > 0:
                take = partial(self._take, key, choice)
                yield Hit(score, matcher.highlight(text), take, help=choice.detail)

    @property
    def _capacity_app(self) -> CapacityApp:
        return cast("CapacityApp", self.app)

    def _take(self, key: str, choice: Choice) -> None:
        plan: PlanScreen = self._capacity_app.plan_screen
        if not key:
            plan.read_plan(choice.id, None)
        elif refusal := plan.change(key, choice.id):
            plan.say(refusal, "bad")


def _read(app: CapacityApp) -> tuple[tuple[str, str, Choice], ...]:
    found: list[tuple[str, str, Choice]] = []
    with reported(app.plan_screen.post_message):
        engine = app.room.engine()
        for name, verb, key in _CATALOGUES:
            found += [(verb, key, choice) for choice in engine.catalogue(name)]
    return tuple(found)
