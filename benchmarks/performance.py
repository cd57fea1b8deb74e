"""All budgets in one table, with what other programs take in the same run: writes ``docs/performance.md``.

    uv run python benchmarks/performance.py [RIVALS]

RIVALS is the environment that ``rival_programs.py`` tells how to make. Takes some six minutes.
Nothing else should run meanwhile. Each machine has a section of its own; only that of this one is written anew.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import first_paint
import headless
import idle_bytes
import key_to_screen
import plans_per_second
import rival_programs
from figures import Figure

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGINS = "<!-- measured: written by benchmarks/performance.py -->"
RIVALS = ("llmfit", "llm-analysis")


def section(measured: Iterable[Figure], rivals: Iterable[Figure], versions: str) -> Iterator[str]:
    """Yield the lines of this machine's section, without its heading."""
    load, _, _ = os.getloadavg()
    day = dt.datetime.now(tz=dt.UTC).date()
    yield from ("", f"Measured {day} with {versions}; the load was {load:.1f} as it began.", "")
    yield from ("| what | measured | wanted | met |", "| --- | ---: | ---: | --- |")
    for each in measured:
        met = {True: "yes", False: "**no**", None: ""}[each.is_met]
        yield f"| {each.what} | {each.text} | {each.wanted_text} | {met} |"
        print(each.what, each.text, flush=True)
    for index, each in enumerate(rivals):
        if not index:
            yield from ("", "Other programs, in the same run:", "", "| what | measured |", "| --- | ---: |")
        yield f"| {each.what} | {each.text} |"
        print(each.what, each.text, flush=True)


def versions(folder: Path | None) -> str:
    """Return what was measured on and with."""
    own = f"Python {platform.python_version()}, Textual {importlib.metadata.version('textual')}"
    others = []
    for name in RIVALS if folder else ():
        found = importlib.metadata.distributions(
            path=[str(each) for each in (folder or Path()).glob("lib/*/site-packages")]
        )
        others += [f"{name} {each.version}" for each in found if each.metadata["Name"] == name]
    return ", ".join((own, *others))


def processor() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def sections(text: str) -> dict[str, str]:
    """Return what the page says of each machine, by heading."""
    parts = (part.partition("\n") for part in f"\n{text.strip()}".split("\n## ")[1:])
    return {heading: rest.strip() for heading, _, rest in parts}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    before, _, after = PAGE.read_text("utf-8").partition(BEGINS)
    measured = (
        figure
        for part in (first_paint, key_to_screen, idle_bytes, headless, plans_per_second)
        for figure in part.figures()
    )
    lines = section(measured, rival_programs.figures(folder) if folder else (), versions(folder))
    heading = f"{os.cpu_count()} cores of {processor()}"
    machines = {heading: "\n".join(lines).strip()} | {
        name: text for name, text in sections(after).items() if name != heading
    }
    told = "\n\n".join(f"## {name}\n\n{text}" for name, text in machines.items())
    PAGE.write_text(f"{before}{BEGINS}\n\n{told}\n", "utf-8")


if __name__ == "__main__":
    main()
