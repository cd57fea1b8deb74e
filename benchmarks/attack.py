"""Everything that may be fed to the program, at random from printed seeds: none of it may be a fault.

``python benchmarks/attack.py --plans 20000 --files 3000 --keys 5000`` answers random plans, each with twice of one
thing (``random_plans.py``), reads damaged files of every kind (``tests/hostile_files.py``), and types random keys,
pastes, clicks and sizes into the real screen on a terminal. It prints each fault with the seed that makes it again
(``--seed``), and a table; it ends with 1 where there is a fault.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import termios
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from random_plans import faults_of
from terminal import Terminal

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hostile_files import KINDS, broken_reading

from capacity_tui.engine.catalog import load_catalog

SCREEN = "from capacity_tui.tui.app import run; run(plan={plan!r})"
PLANS = (
    "{model: {name: gpt2}, hardware: {name: rtx-4090}}",
    "{model: {name: llama-3.1-70b}, task: infer, hardware: {name: h100-sxm-80gb, devices: 8}}",
    "{model: {name: svm_rbf, spec: {n: 5000, p: 20}}, hardware: {name: rtx-4090}}",
)
KEYS = (
    *(bytes([byte]) for byte in range(32, 127) if chr(byte) not in "q"),
    *(f"\x1b[{letter}".encode() for letter in "ABCDFHZ"), b"\x1b[5~", b"\x1b[6~", b"\x1b[3~", b"\x1b", b"\r", b"\t",
    b"\x7f", b"\x10", b"\x12", b"\x00", b"\x1b[", b"\xff\xc3", "\u00e9\u65e5\U0001f600".encode(), b"jj+", b"/batch\r+",
)  # fmt: skip
PASTES = (b"llama-3.1-8b lora 4xh100", b"\0\x1b[2J" * 50, b"x" * 20_000, "\u65e5\n".encode() * 500)
SIZES = ((120, 40), (80, 24), (60, 20), (20, 5), (1, 1), (300, 100))
EVENTS = 200  # Events of one session on the screen
REST_SECONDS, LAST_SECONDS = 0.02, 60.0


def typed(terminal: Terminal, chance: Random) -> None:
    """Send one random event."""
    columns, lines = chance.choice(SIZES)
    kind = chance.random()
    if kind < 0.75:
        terminal.send(chance.choice(KEYS))
    elif kind < 0.93:
        button, end = chance.choice((0, 2, 35, 64, 65)), chance.choice("Mm")
        place = f"{chance.randrange(columns + 2)};{chance.randrange(lines + 2)}"
        terminal.send(f"\x1b[<{button};{place}{end}".encode())
    elif kind < 0.96:
        terminal.send(b"\x1b[200~" + chance.choice(PASTES)[: 1 << 11] + b"\x1b[201~")
    else:
        fcntl.ioctl(terminal.handle, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def faults_of_screen(seed: int) -> Iterator[str]:
    """Yield what is wrong of one session: mistakes, an end nobody asked for, a terminal that is not given back."""
    chance = Random(seed)
    with Terminal(["-c", SCREEN.format(plan=chance.choice(PLANS))], *chance.choice(SIZES[:3])) as terminal:
        before, written = termios.tcgetattr(terminal.handle), b""
        terminal.wait_for(b"fit", 120.0)
        for _ in range(EVENTS):
            if terminal.process.poll() is not None:
                break
            typed(terminal, chance)
            written += terminal.read(REST_SECONDS)
        left = terminal.process.poll()
        terminal.process.terminate()
        while piece := terminal.read(LAST_SECONDS):
            written += piece
        try:
            terminal.process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            yield "it does not end when it is told to"
        for file in Path(terminal.state.name).rglob("mistakes.txt"):
            yield f"a mistake of the program: {file.read_text('utf-8').strip().splitlines()[-1]}"
        if left:
            yield f"it ended by itself with {left}"
        if b"Traceback" in written:
            yield "a traceback was written"
        if termios.tcgetattr(terminal.handle)[3] != before[3] or b"\x1b[?1049l" not in written:
            yield "the terminal was not given back as it was"


def files_of(seed: int, kind: str) -> Iterator[str]:
    """Yield what is wrong about a damaged file of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield from broken_reading(kind, seed, Path(folder))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            yield f"internal error: {type(error).__name__}: {error} in {Path(place.filename).name}:{place.lineno}"


def main() -> int:
    """Attack as much as is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("plans", 2000), ("files", 300), ("keys", 1000)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:  # what is saved, exported or kept by random keys
        os.environ["CAPACITY_TUI_DATA"] = folder
        os.chdir(folder)
        return _attacks(given)


def _attacks(given: argparse.Namespace) -> int:
    """Make every attack; 1 where there is any fault."""
    catalog, counts, rows = load_catalog(), Counter[str](), list[tuple[str, ...]]()

    def attacked(what: str, tries: int, found: Iterator[tuple[int, str]], each: int = 1) -> None:
        faults = list(found)
        for seed, fault in faults:
            print(f"{what}, seed {seed}: {fault}", flush=True)
        seeds = f"{given.seed}-{given.seed + tries - 1}"
        rows.append((what, seeds, f"{tries * each:,}", f"{len({seed for seed, _ in faults}):,}"))

    def seeds(count: int) -> range:
        return range(given.seed, given.seed + count)

    plans = seeds(given.plans)
    found = ((seed, fault) for seed in plans for fault in faults_of(seed, catalog, counts, pairs=True))
    attacked("plans and pairs", given.plans, found)
    for kind in KINDS:
        found = ((seed, fault) for seed in seeds(given.files) for fault in files_of(seed, kind))
        attacked(f"damaged: {kind}", given.files, found)
    sessions = -(-given.keys // EVENTS)
    found = ((seed, fault) for seed in seeds(sessions) for fault in faults_of_screen(seed))
    attacked("keys, mouse, sizes", sessions, found, EVENTS)
    for row in (("attack", "seeds", "tries", "faulty"), *rows):
        print("{:28} {:>16} {:>10} {:>7}".format(*row))
    return 1 if any(row[-1] != "0" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
