"""What a person sees and does, for the tests of flows."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress

from rich.segment import Segment
from textual import events
from textual.app import App
from textual.command import CommandList
from textual.css.query import NoMatches
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import UPDATE_PERIOD
from textual.widget import Widget

from capacity_tui.tui.terminal import KeysInTurn
from capacity_tui.tui.views.plan.screen import PlanScreen
from capacity_tui.tui.widgets.lines import Lines

LONGEST_SECONDS = 60.0
QUIET_ROUNDS = 3  # Rounds without anything to do after which the screen is taken to have followed
KEY_NAMES = {
    "+": "plus",
    "-": "minus",
    "/": "slash",
    "?": "question_mark",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "!": "exclamation_mark",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    ".": "full_stop",
    ",": "comma",
    "#": "number_sign",
}
LETTERS = {"space": " ", **{name: letter for letter, name in KEY_NAMES.items()}}


def plan_screen(app: App[None]) -> PlanScreen:
    """Return the plan screen, also while something lies over it."""
    return next(screen for screen in app.screen_stack if isinstance(screen, PlanScreen))


def is_handling(app: App[None]) -> bool:
    """Whether a key or a message waits for the program, a screen or a widget."""
    pumps = [app, *(node for screen in app.screen_stack for node in screen.walk_children(with_self=True))]
    return (isinstance(app, KeysInTurn) and app.has_keys) or any(pump.message_queue_size for pump in pumps)


def is_busy(app: App[None]) -> bool:
    """Whether a thread is at work, or something waits to be handled."""
    return any(worker.group != "live" and not worker.is_finished for worker in app.workers) or is_handling(app)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the threads have reported and the screen has followed."""
    await once(pilot, lambda: plan_screen(pilot.app).query("Prompt"))  # the threads begin after the first frame
    rounds = 0
    while rounds < QUIET_ROUNDS:  # in each, every widget handles what has come to it
        await pilot.pause(0.002)
        rounds = 0 if is_busy(pilot.app) else rounds + 1


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, then wait until the screen has followed."""
    await press_only(pilot, *keys)
    await settle(pilot)


async def press_only(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one after the other, and wait for what each sets off, but not for threads.

    Pilot waits until the process is idle, which it is not while a thread estimates.
    """
    for key in keys:
        burst(pilot.app, key)
        rounds = 0
        while rounds < QUIET_ROUNDS:
            await asyncio.sleep(0.001)
            rounds = 0 if is_handling(pilot.app) else rounds + 1


def burst(app: App[None], *keys: str) -> None:
    """Send keys all at once, as slow lines bring them."""
    for key in keys:
        letter = key if len(key) == 1 else LETTERS.get(key)
        if letter is None and "_" in key:
            letter = unicodedata.lookup(key.replace("_", " "))
        app.post_message(events.Key(KEY_NAMES.get(key, key), letter))


async def resize(pilot: Pilot[None], size: tuple[int, int]) -> None:
    """Change the size of the terminal, and wait until every widget has the place that it keeps.

    A new layout waits for the next update of the screen, may change what a widget shows, and that the layout again.
    """
    await pilot.resize_terminal(*size)
    places, before = _places(pilot.app), None
    while places != before:
        await pilot.pause(2 * UPDATE_PERIOD)
        await settle(pilot)
        places, before = _places(pilot.app), places


def _places(app: App[None]) -> list[Region]:
    return [widget.region for screen in app.screen_stack for widget in screen.walk_children(Widget, with_self=True)]


async def type_text(pilot: Pilot[None], text: str) -> None:
    """Replace what an input holds, and enter it."""
    await press(pilot, "ctrl+u", *({"/": "slash", ".": "full_stop", "-": "minus"}.get(c, c) for c in text), "enter")


def shown(pilot: Pilot[None], panel: str) -> str:
    """Return the lines of a panel that are in sight."""
    lines = pilot.app.screen.query_one(f"#{panel}", Lines)
    return "\n".join(line.plain for line in lines.in_sight)


async def once(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Wait until something holds, however busy the machine is."""
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        with suppress(NoMatches, StopIteration, IndexError):
            if holds():
                return
        await pilot.pause(0.01)
    assert holds(), "never held"


async def until(pilot: Pilot[None], panel: str, text: str) -> None:
    """Wait for what is shown while an answer is held up."""
    with suppress(AssertionError):
        await once(pilot, lambda: text in shown(pilot, panel))
    assert text in shown(pilot, panel)


async def offered(pilot: Pilot[None]) -> None:
    """Wait until the palette has answered what was typed."""
    await settle(pilot)
    await once(pilot, lambda: pilot.app.screen.query_one(CommandList).option_count)
    await settle(pilot)


async def open_exports(pilot: Pilot[None]) -> None:
    """Open the menu of exports, and wait until all of them are written."""
    await press(pilot, "E")
    await once(pilot, lambda: shown(pilot, "export-text"))


def cells(app: App[None]) -> list[list[Segment]]:
    """Return what stands on the screen, line by line."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens, simplify=True)
    return [[segment for strip in line for segment in strip] for line in update.strips]  # type: ignore[union-attr]


def row(pilot: Pilot[None], panel: str, label: str) -> str:
    """Return the line of a panel that begins with a label."""
    lines = shown(pilot, panel).splitlines()
    return next(line for line in lines if line.strip(" ▌").startswith(label))
