"""A program that keeps runs for tests: `history_writer.py FILE COUNT [FIRST [LARGEST FILE [USER]]]`; tells each run."""

import os
import resource
import sys

from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, record_run
from capacity_tui.engine.runs.history.sqlite_store import SqliteStore

PADDING = {"text": "x" * 2000}


def main(file: str, count: int, first: str = "a", largest: int = -1, user: int = -1) -> None:
    # All is loaded before the program may do less than it may now.
    assert SqliteStore
    if largest >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if user >= 0:
        os.setuid(user)
    for number in range(count):
        kind = "estimate" if number % 3 else "run"
        entry = RunRecord(kind, {"step": f"{first}{number}"}, details=PADDING, id=f"{first}{number:04d}")
        note = record_run(entry, file)
        os.write(1, f"{entry.id} {note}\n".encode())
    if not count:
        history = History(file)
        found = history.find(WantedRuns())
        os.write(1, f"{len(found)} {' '.join(history.notes)}\n".encode())


main(*(int(word) if word.lstrip("-").isdigit() else word for word in sys.argv[1:]))
