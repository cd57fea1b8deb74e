"""Runs as earlier versions kept them, a file of lines a device: taken over into the history, the files kept aside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import data_folder, reading_error, rename_file
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import FOLDER
from capacity_tui.engine.observe.history import History, RunRecord

_ENDING = ".runs.jsonl"
_TAKEN = ".old"
_ID_BYTES = 5
_FIGURES = {"step_seconds": Figure.STEP_SECONDS, "peak_bytes": Figure.MEMORY_RESERVED_BYTES}


def take_over_earlier_runs(history: History, folder: Path | None = None) -> None:
    """Put runs of earlier versions into the history, and give their files another name.

    Args:
        folder: the program's data, the user's own by default.

    Raises:
        StorageError: a file cannot be read, or nothing can be kept.
    """
    for file in sorted(((folder or data_folder()) / FOLDER).glob(f"*{_ENDING}")):
        bad: list[str] = []
        history.keep(*_runs(file, bad))
        aside = _free_name(file)
        rename_file(file, aside)
        if bad:
            history.notes.append(f"{aside}: {len(bad)} of its lines cannot be read, and stay there alone: {bad[0]}")


def _runs(file: Path, bad: list[str]) -> Iterator[RunRecord]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise reading_error(error, file) from error
    for number, line in enumerate(lines, 1):
        try:
            yield _run(json.loads(line), file.name.removesuffix(_ENDING), f"{file.name}:{number}:{line}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            bad.append(f"line {number}: {error}")


def _run(data: Mapping[str, object], device: str, text: str) -> RunRecord:
    return RunRecord(
        kind="run",
        plan=cast("Mapping[str, object]", data["plan"]),
        actual={key: float(cast("float", data[name])) for name, key in _FIGURES.items() if data[name] is not None},
        device=device,
        started=f"{data['date']}T00:00:00.000Z",
        # The same run has the same id, should this be stopped before the file has its other name.
        id=hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest(),
    )


def _free_name(file: Path) -> Path:
    names = (file.with_name(f"{file.name}{_TAKEN}{number or ''}") for number in range(1000))
    free = next((name for name in names if not name.exists()), None)
    if free is None:
        raise StorageError("there are too many earlier files of runs", str(file), "move them away")
    return free
