"""Takes the pictures of the documentation from the running program.

Each picture is a plan on hardware that is named in it, so that it does not depend on the machine it is taken on.
Run it with ``python screenshots/make.py``, or with the names of pictures for those only; it writes SVG and PNG files
beside itself, a picture of each view among them, and the report of the same plan as a page.
"""

from __future__ import annotations

import asyncio
import html
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import cairosvg
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from capacity_tui.tui.actions import VIEWS

FOLDER = Path(__file__).parent
PLAN = """
model: {name: llama-3.1-8b}
training:
  seq_len: 8192
  micro_batch: auto
  global_batch: 256
  checkpointing: auto
  tokens: 2.0e9
parallelism: {zero: auto}
hardware: {name: h100-sxm-80gb, devices: 8}
"""
SERVED = """
model: {name: llama-3.3-70b}
task: infer
inference: {engine: vllm, batch: 64, ttft_seconds: 1}
hardware: {name: h100-sxm-80gb, devices: 4}
"""
TEXT = re.compile(r'<text(?P<before>[^>]*? )x="(?P<x>[\d.]+)"(?P<after>[^>]*textLength[^>]*)>(?P<content>[^<]*)</text>')
BRAILLE = re.compile("[\u2801-\u28ff]")
CELL_WIDTH = 12.2

WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


@dataclass(frozen=True)
class Picture:
    """One picture: size, theme and glyphs of the terminal, keys pressed first, and time for the graphs to grow."""

    name: str
    size: tuple[int, int] = WIDE
    theme: str = "dark"
    keys: tuple[str, ...] = ()
    seconds: float = 0
    ascii_only: bool = False
    plan: str = PLAN


PICTURES = (
    Picture("plan", seconds=15),
    Picture("what-if", keys=("3", "b", "2", "down", "down", "down", "plus", "plus")),
    Picture("why", keys=("3", "down", "down", "down", "down", "down", "4")),
    *(Picture(view, keys=("space", key)) for view, key in VIEWS.items() if view != "plan"),
    Picture("patterns", keys=("space", "s", "3")),
    Picture("map", keys=("3", "b", "2", "number_sign")),
    Picture("start", keys=("i",)),
    Picture("pick-hardware", keys=("H", "h", "2", "0", "0")),
    Picture("ladder", keys=("2", "M")),
    Picture("export", keys=("E",)),
    Picture("charts", keys=("space", "s", "v")),
    Picture("missed-limit", plan=SERVED),
    Picture("palette", keys=("ctrl+p", "q", "w", "e", "n")),
    Picture("help", keys=("question_mark",)),
    Picture("light", theme="light"),
    Picture("high-contrast", theme="high-contrast"),
    Picture("colour-blind", theme="colour-blind"),
    Picture("ansi", theme="ansi"),
    Picture("usual-80x24", USUAL),
    Picture("narrow-60x20", NARROW),
    Picture("tiny-40x12", TINY),
    Picture("ascii", ascii_only=True),
)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the threads have reported."""
    for _ in range(4):
        waiting = [worker for worker in pilot.app.workers if worker.group != "live"]
        if waiting:
            with suppress(WorkerCancelled):  # a newer question took its place
                await pilot.app.workers.wait_for_complete(waiting)
        await pilot.pause(0.2)


async def take(picture: Picture) -> None:
    """Run the program at a size, press the keys, and write what is seen."""
    from capacity_tui.tui.app import CapacityApp
    from capacity_tui.tui.settings import Settings

    settings = Settings(theme=picture.theme, glyphs="braille", hint=False, live_seconds=0.5)
    app = CapacityApp(source=picture.plan, settings=settings, ascii_only=picture.ascii_only)
    async with app.run_test(size=picture.size) as pilot:
        await settle(pilot)
        await pilot.press(*picture.keys)
        await pilot.pause(picture.seconds)
        await settle(pilot)
        drawing = app.export_screenshot(title="capacity-tui")
    path = FOLDER / f"{picture.name}.svg"
    path.write_text(drawing, encoding="utf-8")
    cairosvg.svg2png(bytestring=_for_converter(drawing).encode(), write_to=str(path.with_suffix(".png")), scale=1.0)
    print(path.name)


def _for_converter(drawing: str) -> str:
    """Name fonts that are there and place every character: the converter does neither by itself."""
    drawing = drawing.replace("Fira Code, monospace", "DejaVu Sans Mono")
    return TEXT.sub(_placed, drawing)


def _placed(text: re.Match[str]) -> str:
    start, content = float(text["x"]), text["content"]
    count = len(html.unescape(content))
    places = " ".join(f"{start + CELL_WIDTH * index:.1f}" for index in range(count))
    font = ' style="font-family: DejaVu Sans"' if BRAILLE.search(content) else ""
    return f'<text{font}{text["before"]}x="{places}"{text["after"]}>{content}</text>'


def write_report() -> None:
    """Write the same plan as the page that ``plan -o report.html`` makes of it."""
    from capacity_tui.tui.cli.program import run_command

    plan = Path(os.environ["CAPACITY_TUI_STATE"]).parent / "llama-3.1-8b.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    run_command(["plan", str(plan), "-o", str(FOLDER / "report.html")])


def main(names: Sequence[str]) -> None:
    """Take the pictures of some names, or all, with settings of their own."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("CONFIG", "DATA", "STATE"):
            os.environ[f"CAPACITY_TUI_{name}"] = str(Path(folder) / name)
        os.environ["CAPACITY_TUI_HISTORY"] = "off"
        os.environ["PATH"] = str(Path(folder) / "no-programs")  # no batch system and no driver of this machine
        write_report()
        for picture in (one for one in PICTURES if not names or one.name in names):
            asyncio.run(take(picture))


if __name__ == "__main__":
    main(sys.argv[1:])
