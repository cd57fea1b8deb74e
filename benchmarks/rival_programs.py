"""Other programs of the field at the same tasks, as far as they are installed: first frame, idle screen, one answer.

    uv venv RIVALS && uv pip install --python RIVALS llmfit==1.1.17 llm-analysis==0.2.2   # btop comes with the system
    python benchmarks/rival_programs.py RIVALS

llm-analysis answers in Python alone, in an environment of its own; what its rate is told of stands in ``rivals.py``.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from figures import Figure, show
from terminal import Terminal

ROUNDS = 5
SECONDS = 20.0
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Rival:
    """Another program."""

    name: str  # its name, which is its command too
    drawn: bytes  # what stands on its first frame
    # arguments of a command that answers one question about one model; none where it has no such command
    answer: tuple[str, ...] = ()


RIVALS = (
    Rival("llmfit", b"Models", ("plan", "unsloth/Llama-3.1-8B-Instruct-GGUF", "--context", "8192", "--json")),
    Rival("btop", b"cpu"),
)


def figures(folder: Path) -> Iterator[Figure]:
    """Yield what the programs in an environment, and those of the system, take for what this one does too."""
    for rival in RIVALS:
        program = shutil.which(rival.name, path=str(folder / "bin")) or shutil.which(rival.name)
        if program is not None:
            yield from _of(rival, program)
    if (folder / "bin" / "python").exists():
        yield from _analysed(folder / "bin" / "python")


def _of(rival: Rival, program: str) -> Iterator[Figure]:
    frames = []
    for _ in range(ROUNDS):
        with Terminal([], program=program) as terminal:
            frames.append(terminal.wait_for(rival.drawn))
    yield Figure(f"{rival.name}: first frame", 1000 * statistics.median(frames), "ms")
    with Terminal([], program=program) as terminal:
        terminal.wait_for(rival.drawn)
        terminal.count(4.0)
        before = terminal.processor_seconds()
        written = terminal.count(SECONDS) / SECONDS
        taken = (terminal.processor_seconds() - before) / SECONDS
    yield Figure(f"{rival.name}: idle screen", written, "B/s")
    yield Figure(f"{rival.name}: idle screen, share of a core", 100 * taken, "%")
    if rival.answer:
        answers = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            subprocess.run([program, *rival.answer], check=True, capture_output=True)
            answers.append(time.perf_counter() - started)
        yield Figure(f"{rival.name}: an answer on the command line", statistics.median(answers), "s")


def _analysed(python: Path) -> Iterator[Figure]:
    """Yield how many estimates llm-analysis makes a second of the published runs that it has words for."""
    rows = subprocess.run([sys.executable, str(HERE / "rivals.py"), "rows"], check=True, capture_output=True)
    told = HERE.parent / "build" / "rows.json"
    told.parent.mkdir(exist_ok=True)
    told.write_bytes(rows.stdout)
    done = subprocess.run(
        [str(python), str(HERE / "rivals.py"), "rate", str(told)], capture_output=True, text=True, check=False
    )
    told.unlink()
    if done.returncode == 0:
        yield Figure(
            "llm-analysis: estimates", float(done.stdout.rpartition(": ")[2].split()[0].replace(",", "")), "a second"
        )


if __name__ == "__main__":
    show(figures(Path(sys.argv[1])))
