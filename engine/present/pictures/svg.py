"""SVG by hand: elements that take colours and font from the page around them, and files of their own."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from capacity_tui.engine.errors import MissingPartError
from capacity_tui.engine.extras import install_command

WIDTH = 720

COLOURS = 8

_STYLE = (
    "svg{background:#fff;font:12px sans-serif}"
    ".c0{fill:#3b8fd0}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#cc79a7}"
    ".c4{fill:#56b4e9}.c5{fill:#d55e00}.c6{fill:#b8a800}.c7{fill:#888}"
    ".line{fill:none;stroke-width:2}.s0{stroke:#3b8fd0}.s1{stroke:#e69f00;stroke-width:2;fill:none}.s2{stroke:#009e73}"
    ".s3{stroke:#cc79a7}.s4{stroke:#56b4e9}.s5{stroke:#d55e00}.s6{stroke:#b8a800}.s7{stroke:#888}"
    ".roof{stroke:#333}.ideal{stroke:#999;stroke-dasharray:4 4}.run{fill:#d55e00}"
    ".grid{stroke:#ddd}.limit{stroke:#d55e00;stroke-dasharray:4 3}.label{fill:#555}.inside{fill:#111}"
    ".band{fill:#3b8fd0;fill-opacity:.15}.good{fill:#bfe3cf}.warn{fill:#f6dfa4}.bad{fill:#f0b9ac}.dim{fill:#e4e4e4}"
    ".accent{fill:#7fb2e5}.here{fill:none;stroke:#111;stroke-width:2}"
)
"""What a page would give it; colours that are told apart without red or green."""


def alone(chart: str) -> str:
    """Return a chart as a file of its own, with colours that a page would give it."""
    named = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return named.replace("<title>", f"<style>{_STYLE}</style><title>", 1)


def fill(number: int) -> str:
    """Return the class that fills a shape with the colour of a number."""
    return f"c{number % COLOURS}"


def svg(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """Return a chart of a height, with its title and what it shows in words."""
    body = "".join(parts)
    names = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return f'<svg role="img" viewBox="0 0 {WIDTH} {height:g}" aria-label="{escape(title)}">{names}{body}</svg>'


def element(name: str, title: str = "", **attributes: object) -> str:
    """Return an element; a title is shown where the mouse is."""
    written = " ".join(f'{key.rstrip("_")}="{_attribute(value)}"' for key, value in attributes.items())
    return f"<{name} {written}><title>{escape(title)}</title></{name}>" if title else f"<{name} {written}/>"


def _attribute(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else escape(str(value))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def polyline(places: Iterable[tuple[float, float]], kind: str) -> str:
    """Return lines from place to place."""
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_=f"{kind} line")


def label(text: str, x: float, y: float, kind: str, anchor: str) -> str:
    """Return a text at a place, which is its start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def as_png(chart: str) -> bytes:
    """Return an SVG file as a PNG file of twice its size.

    Raises:
        MissingPartError: what converts is not installed, or the library of the system that it needs.
    """
    try:
        import cairosvg  # noqa: PLC0415 - an extra, loaded where a PNG is wanted
    except (ImportError, OSError) as error:  # it raises the latter where the system has no libcairo
        reason = (str(error).splitlines() or [""])[0]
        hint = f"{install_command('pictures')}, and libcairo of your system; SVG needs neither"
        raise MissingPartError("PNG needs CairoSVG", reason, hint) from error
    png: bytes = cairosvg.svg2png(bytestring=chart.encode(), scale=2.0, background_color="white")
    return png
