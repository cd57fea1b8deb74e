"""Records the moving picture of the README: the real program on a real terminal, keys typed as a person would.

Run it with ``uv run python -m screenshots.record``; it writes ``docs/recording.svg``. What it shows is planned for
hardware that is named, so that how long a search took is all that depends on the machine it is taken on.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyte

from benchmarks.terminal import Terminal
from screenshots.animation import Frame, Row, Run, animated

COLUMNS, LINES = 120, 40
TO = Path(__file__).parents[1] / "docs" / "recording.svg"
MOST_BYTES = 400_000
# What the emulator takes for text: questions to terminals newer than it.
UNKNOWN = re.compile(rb"\x1b\[[<>=][\d;]*[a-zA-Z]|\x1b\[\?[\d;]*\$p")
ENTER, TAB, ESCAPE, DOWN = "\r", "\t", "\x1b", "\x1b[B"
LETTER = 0.05  # Seconds for which each letter of a typed text is shown


@dataclass(frozen=True, slots=True)
class Step:
    """Keys, and what one sees of them."""

    keys: str  # what is typed, a text letter by letter
    hold: float  # seconds for which the screen is shown then, however long it took to get there
    until: str  # regular expression of what stands on the screen then, and not before


STEPS = (
    Step("", 0.6, "I want to"),
    Step("llama-3.1-70b lora 8xh100 4k 50M", 1.2, "understood: model llama-3.1-70b · LoRA · 8 × h100-sxm-80gb · sequ"),
    Step(ENTER, 2.2, r"fits(.*\n)*.*8×H100 SXM5 80GB .*(\n.*)* \[balanced\] (.*\n)*.*a ✓ Use spot"),
    Step(DOWN, 0.4, "What to do with the model"),
    Step(DOWN, 2.0, "dora"),
    Step(DOWN, 0.4, r"\[4096✓\]"),
    Step("+", 1.6, r"was 4 096(.*\n)*.*\[8192✓\]"),
    Step("u", 0.6, r"\[4096✓\](.*\n)*.*a ✓ Use spot"),
    Step("a", 2.0, "Use spot capacity: u undoes it"),
    Step(" ", 0.6, "f Find .*any other key: stay here"),
    Step("f", 2.4, "✓ [\\d ]+ tried, [\\d ]+ fit, "),
    Step(DOWN, 0.8, r"hardware .*\n.* ✓ .*\n.*▌ ✓ "),
    Step(ENTER, 1.4, "applied to the plan"),
    Step(ESCAPE, 1.0, "2 Config"),
    Step("E", 2.2, "Files for Axolotl"),
    Step(ESCAPE, 1.2, "6 Advice"),
)
PATIENCE = 90.0  # Seconds within which it is to stand there; a search over the whole catalogue takes most of them
QUIET = 0.4  # Seconds without a change after which the rest of the screen stands too


class Recording:
    """What stands on a program's screen after each step, and for how long it is shown."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.frames: list[tuple[float, Frame]] = []

    def take(self, step: Step) -> None:
        """Type the keys of a step and keep what comes of them."""
        is_text = len(step.keys) > 1 and not step.keys.startswith(ESCAPE)
        for letter in step.keys if is_text else (step.keys,):
            self.terminal.send(letter.encode())
            if is_text:
                self._follow(LETTER)
                self._keep(LETTER)
        until = time.monotonic() + PATIENCE
        while not re.search(step.until, self.shown()):
            if time.monotonic() > until:
                raise TimeoutError(f"after {step.keys!r} no {step.until!r} stands on the screen:\n{self.shown()}")
            self._follow(QUIET)
        self._follow(QUIET)
        self._keep(step.hold)

    def shown(self) -> str:
        """Return the text of the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def _follow(self, quiet: float) -> None:
        """Follow the screen until nothing was written for a time, or for three times as long."""
        until = time.monotonic() + 3 * quiet
        while (written := self.terminal.read(quiet)) and time.monotonic() < until:
            self.stream.feed(UNKNOWN.sub(b"", written))
        self.stream.feed(UNKNOWN.sub(b"", written))

    def _keep(self, seconds: float) -> None:
        frame = tuple(self._row(number) for number in range(LINES))
        if self.frames and self.frames[-1][1] == frame:
            self.frames[-1] = (self.frames[-1][0] + seconds, frame)
        else:
            self.frames.append((seconds, frame))

    def _row(self, number: int) -> Row:
        runs: list[Run] = []
        for column in range(COLUMNS):
            cell = self.screen.buffer[number][column]
            ink, paper = (cell.bg, cell.fg) if cell.reverse else (cell.fg, cell.bg)
            style = (ink, paper, cell.bold)
            if runs and runs[-1].style == style:
                runs[-1] = Run(runs[-1].column, runs[-1].text + cell.data, style)
            else:
                runs.append(Run(column, cell.data, style))
        return tuple(runs)


def main() -> None:
    """Record, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("DATA", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = str(Path(folder) / name)
        os.environ["CAPACITY_TUI_HISTORY"] = "off"
        with Terminal(["-m", "capacity_tui.tui"], COLUMNS, LINES, sys.executable) as terminal:
            recording = Recording(terminal)
            for step in STEPS:
                recording.take(step)
    frames = recording.frames
    drawing = animated(frames, COLUMNS, LINES, "capacity-tui")
    if len(drawing.encode()) > MOST_BYTES:
        raise SystemExit(f"{len(drawing.encode())} bytes are more than {MOST_BYTES}: record fewer frames")
    TO.write_text(drawing, "utf-8")
    print(f"{TO.name}: {len(frames)} frames, {sum(seconds for seconds, _ in frames):.0f} s, {len(drawing) // 1000} kB")


if __name__ == "__main__":
    main()
