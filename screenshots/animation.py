"""Draws frames of a terminal as one SVG that shows them after each other, by styles alone: it moves in any browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.sax.saxutils import escape

Style: TypeAlias = tuple[str, str, bool]  # Ink, paper, and whether it is bold


@dataclass(frozen=True, slots=True)
class Run:
    """Cells of one style beside each other: the first column, their text, their style."""

    column: int
    text: str
    style: Style


Row: TypeAlias = tuple[Run, ...]
Frame: TypeAlias = tuple[Row, ...]

INK, PAPER = "#d7d7d7", "#121212"
NAMED = {
    "black": "#000000",
    "red": "#cd3131",
    "green": "#23a55a",
    "brown": "#c8a13a",
    "blue": "#3b78ff",
    "magenta": "#b267e6",
    "cyan": "#29b8db",
    "white": "#e5e5e5",
}
WIDTH, HEIGHT, MARGIN, FRAME = 8.4, 17, 12, 26
BASELINE = 13
FONTS = "Menlo,Consolas,'DejaVu Sans Mono',monospace"
NO_BREAK = "\u00a0"  # A space that no reader of pictures takes out


def animated(frames: Sequence[tuple[float, Frame]], columns: int, lines: int, title: str) -> str:
    """Return the picture.

    Args:
        frames: seconds for which each is shown, and what it shows.
    """
    rows = {row: number for number, row in enumerate(dict.fromkeys(row for _, frame in frames for row in frame))}
    width, height = columns * WIDTH + 2 * MARGIN, lines * HEIGHT + FRAME + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{''.join(_rules(frames))}</style>",
        f"<defs>{''.join(_drawn(row, number) for row, number in rows.items())}</defs>",
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
        *(
            f'<circle cx="{MARGIN + 6 + 18 * n}" cy="13" r="5" fill="{c}"/>'
            for n, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
        f'<g transform="translate({MARGIN},{FRAME})">',
        *(_frame(frame, number, rows) for number, (_, frame) in enumerate(frames)),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def _rules(frames: Sequence[tuple[float, Frame]]) -> Iterator[str]:
    """Yield the styles: each frame is seen in its part of the whole time, the last one without animation."""
    whole = sum(seconds for seconds, _ in frames)
    yield f"text{{font:14px {FONTS};fill:{INK}}}.b{{font-weight:bold}}"
    yield f".f{{visibility:hidden;animation:{whole:.2f}s step-end infinite}}"
    begun = 0.0
    for number, (seconds, _) in enumerate(frames):
        start, end = 100 * begun / whole, 100 * (begun + seconds) / whole
        before = "0%{visibility:hidden}" if number else ""
        yield f"@keyframes k{number}{{{before}{start:.2f}%{{visibility:visible}}{end:.2f}%{{visibility:hidden}}}}"
        yield f"#f{number}{{animation-name:k{number}}}"
        begun += seconds
    yield f"@media (prefers-reduced-motion:reduce){{.f{{animation:none}}#f{len(frames) - 1}{{visibility:visible}}}}"


def _frame(frame: Frame, number: int, rows: dict[Row, int]) -> str:
    lines = "".join(f'<use href="#r{rows[row]}" y="{line * HEIGHT}"/>' for line, row in enumerate(frame))
    return f'<g class="f" id="f{number}">{lines}</g>'


def _drawn(row: Row, number: int) -> str:
    """Return a row: its papers below, its texts above."""
    papers = "".join(_paper(run) for run in row if _colour(run.style[1], PAPER) != PAPER)
    return f'<g id="r{number}">{papers}{"".join(_text(run) for run in row if run.text.strip())}</g>'


def _paper(run: Run) -> str:
    x, width = run.column * WIDTH, len(run.text) * WIDTH
    return f'<rect x="{x:.1f}" width="{width:.1f}" height="{HEIGHT}" fill="{_colour(run.style[1], PAPER)}"/>'


def _text(run: Run) -> str:
    """Return a text whose letters stand in their cells whatever font there is."""
    lead = len(run.text) - len(run.text.lstrip())
    text = run.text.strip()
    ink, _, bold = run.style
    colour = _colour(ink, INK)
    style = "" if colour == INK else f' style="fill:{colour}"'
    look = style + (' class="b"' if bold else "")
    x, length = (run.column + lead) * WIDTH, len(text) * WIDTH
    return (
        f'<text x="{x:.1f}" y="{BASELINE}" textLength="{length:.1f}"{look}>{escape(text).replace(" ", NO_BREAK)}</text>'
    )


def _colour(name: str, default: str) -> str:
    """Return a colour of the emulator: a name, or six digits."""
    if name == "default":
        return default
    plain = name.removeprefix("bright").removeprefix("light")
    return NAMED.get(plain, f"#{name}" if len(name) == 6 else default)
