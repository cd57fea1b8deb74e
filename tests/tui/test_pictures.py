"""What the screen looks like, cell by cell: every screen, dialog and state, at three sizes, in colour and without.

Each file in ``pictures/`` holds one state: its text at all sizes, with the styles of 80x24. Where a change of looks is
meant, ``RENEW=1 pytest tests/tui/test_pictures.py`` writes them anew; the difference belongs into the review.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from fake_sampler import FakeSampler
from flow import cells, press, resize, settle, type_text
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.settings import Settings
from capacity_tui.tui.shown.comparison import HardwareRow
from capacity_tui.tui.unsaved import KeptPlan, Swap
from capacity_tui.tui.view import Reading

PICTURES = Path(__file__).parent / "pictures"
SIZES = ((120, 40), (80, 24), (60, 20))
STYLED = (80, 24)
LEFT_BEHIND_AT = 1_767_225_600


@dataclass(frozen=True)
class State:
    """How to get to a state of the screen."""

    keys: tuple[str, ...] = ()  # what is pressed at the start
    plan: str = ""  # text of a plan for the real engine; empty for the small one of the tests
    typed: str = ""  # what is typed and entered after the keys
    theme: str = "dark"  # name of the theme
    asks: bool = False  # whether the start prompt comes first
    hint: bool = False  # whether the hint of the first run is shown
    prepare: Callable[[], None] = lambda: None  # called before the start
    meddle: Callable[[FakeEngine], None] = lambda _: None  # called with the small engine before the keys


def leave_edits_behind() -> None:
    folder = Path(os.environ["CAPACITY_TUI_STATE"]) / "unsaved"
    swap = Swap(folder)
    swap.keep([KeptPlan("llama-3-8b", "/plans/llama.yaml", "x"), KeptPlan("gpt2", "", "x")], 1)
    (file,) = folder.glob("*.json")
    os.utime(file, (LEFT_BEHIND_AT, LEFT_BEHIND_AT))
    assert swap._lock is not None
    os.close(swap._lock)


H100 = "hardware: {name: h100-sxm-80gb, devices: 8}"
STATES = {
    "start": State(hint=True),
    "changed-and-pinned": State(("b", "j", "+")),
    "does-not-fit": State(("j", "+", "+", "+", "3")),
    "estimate-fails": State(("enter", *"broken", "enter")),
    "old-numbers": State(("j", "+"), meddle=lambda engine: engine.gate.clear()),
    "value-refused": State(("j", "j", "e"), typed="9999"),
    "simulated": State(("H", *"a100", "enter", "1")),
    "config-zoomed": State(("z",)),
    "plans-zoomed": State(("3", "j", "z")),
    "why": State(("3", "j", "j", "4")),
    "live": State(("5",)),
    "explanation": State(("4", "enter")),
    "help": State(("?",)),
    "error": State(("enter", *"broken", "enter", "!")),
    "machine": State(("m",)),
    "pick-model": State(("enter", *"ll")),
    "pick-nothing": State(("H", *"zzzz")),
    "open-plan": State(("o",)),
    "start-prompt": State(asks=True),
    "start-understood": State((*"llama-3-8b", "space", "x"), asks=True),
    "list-with-figures": State(("H", "tab")),
    "map": State(("#",)),
    "map-of-time": State(("#", "tab", "l", "j")),
    "palette": State(("ctrl+p", *"undo")),
    "find": State(("/",)),
    "found": State(("space", "f", "j", "x", "j")),
    "found-question": State(("space", "f", "tab", "l", "enter"), typed="soon"),
    "cloud": State(("space", "c", "j")),
    "cloud-offer": State(("space", "c", "j", "3", "j")),
    "scale": State(("space", "s", "j")),
    "scale-weak": State(("space", "s", "tab", "v")),
    "scale-patterns": State(("space", "s", "3", "+")),
    "export": State(("E",)),
    "quit-asks": State(("j", "+", "q")),
    "left-behind": State(prepare=leave_edits_behind),
    "light": State(("3",), theme="light"),
    "high-contrast": State(("3",), theme="high-contrast"),
    "training": State(("3",), f"model: {{name: llama-3.1-8b}}\ntraining: {{tokens: 1e9, micro_batch: auto}}\n{H100}"),
    "training-too-large": State(("3",), f"model: {{name: llama-3.1-70b}}\ntraining: {{tokens: 1e9}}\n{H100}"),
    "fine-tuning": State(
        ("3",),
        "model: {name: llama-3.1-8b}\ntask: finetune\ntraining: {adapter: {kind: qlora}, tokens: 1e6}\n"
        "hardware: {name: rtx-4090}",
    ),
    "serving": State(("3",), f"model: {{name: qwen2.5-72b}}\ntask: infer\n{H100}"),
    "network": State(
        ("3",), "model: {name: resnet-50}\ntraining: {samples: 1e6, epochs: 3}\nhardware: {name: rtx-4090}"
    ),
    "classical": State(("3",), "model: {name: svm_rbf, spec: {n: 5000, p: 20}}\nhardware: {name: epyc-9654}"),
    "model-open": State((), "model: {name: auto}\nhardware: {name: rtx-4090}"),
    "layout-refused": State(("3",), f"model: {{name: llama-3.1-8b}}\nparallelism: {{tp: 3}}\n{H100}"),
}


class StillSampler(FakeSampler):
    """Sensors that stand still."""

    def sample(self) -> tuple[Reading, ...]:
        self.count = 0
        return super().sample()


class StillEngine(FakeEngine):
    """The small engine, with files of one name wherever the tests run."""

    def sampler(self) -> StillSampler:
        return StillSampler()

    def plans_folder(self) -> Path:
        return Path("/plans")


class StillCapacityEngine(CapacityEngine):
    """The real engine on no machine in particular."""

    def detect(self) -> tuple[HardwareRow, ...]:
        return ()

    def sampler(self) -> StillSampler:  # type: ignore[override]
        return StillSampler()


@pytest.fixture(scope="module")
def real_engine() -> StillCapacityEngine:
    return StillCapacityEngine()


def picture(app: App[None], size: tuple[int, int], styled: bool) -> str:
    """Return text, and where asked for the styles: a letter and a length for each run of cells of one style."""
    lines = cells(app)
    text = ["".join(segment.text for segment in line).rstrip() for line in lines]
    parts = [f"== {size[0]}x{size[1]}", *text]
    if styled:
        names: dict[str, str] = {}
        runs = []
        for line in lines:
            styles = ((str(segment.style or ""), len(segment.text)) for segment in line if segment.text)
            merged = ((style, sum(length for _, length in run)) for style, run in groupby(styles, lambda one: one[0]))
            runs.append(" ".join(f"{names.setdefault(style, _letter(len(names)))}{length}" for style, length in merged))
        parts += ["-- styles", *runs, "-- where", *(f"{name} = {style}" for style, name in names.items())]
    return "\n".join(parts) + "\n"


def _letter(number: int) -> str:
    return chr(ord("a") + number % 26) * (1 + number // 26)


async def reach(pilot: Pilot[None], state: State, engine: FakeEngine) -> None:
    """Press what leads to the state."""
    await settle(pilot)
    state.meddle(engine)
    if engine.gate.is_set():
        await press(pilot, *state.keys[:-1])
        await press(pilot, *state.keys[-1:])
        if state.typed:
            await type_text(pilot, state.typed)
    else:
        await pilot.press(*state.keys[:-1], "plus")
    for entry in pilot.app.screen.query(Input):
        entry.cursor_blink = False
    await pilot.pause(0.15)


async def pictures_of(state: State, engine: CapacityEngine, ascii_only: bool) -> str:
    """Return the pictures of a state at all sizes, or without colour at one."""
    small = StillEngine()
    settings = Settings(
        theme=state.theme,
        glyphs="ascii" if ascii_only else "braille",
        hint=state.hint,
        start=state.asks,
        live_seconds=60,
    )
    app = CapacityApp(
        source=(state.plan or None) if not state.asks else None,
        settings=settings,
        ascii_only=ascii_only,
        engine=lambda: engine if state.plan else small,
    )
    found = ""
    async with app.run_test(size=SIZES[0]) as pilot:
        await reach(pilot, state, small)
        for size in (STYLED,) if ascii_only else SIZES:
            if small.gate.is_set():
                await resize(pilot, size)
            else:  # threads are held up, and not waited for
                await pilot.resize_terminal(*size)
                await pilot.pause(0.05)
            found += ("== without colour\n" if ascii_only else "") + picture(app, size, size == STYLED)
        small.gate.set()
        assert not app.mistakes
    return found


@pytest.mark.parametrize("name", STATES)
async def test_screen_looks_as_it_did(name: str, real_engine: CapacityEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC0")
    time.tzset()
    STATES[name].prepare()
    found = await pictures_of(STATES[name], real_engine, ascii_only=False)
    monkeypatch.setenv("NO_COLOR", "1")
    if STATES[name].theme == "dark":
        found += await pictures_of(STATES[name], real_engine, ascii_only=True)
    file = PICTURES / f"{name}.txt"
    if os.environ.get("RENEW"):
        PICTURES.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == found, f"{file.name} differs; the top of this file says how to renew it"
