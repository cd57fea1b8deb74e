"""Measurements of a series that is not done yet: one line each in a file, so that it can go on after a stop."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import make_folder, state_folder, storage_error
from capacity_tui.engine.growth.measuring import Measurement, Measuring

_FOLDER = "measured"
_DIGEST_BYTES = 10


class KeptMeasurements:
    """What was measured of a command in this folder so far; of a series that was done, nothing."""

    def __init__(self, measuring: Measuring) -> None:
        metric = measuring.metric.text if measuring.metric else ""
        what = json.dumps([measuring.command, measuring.disk, metric, str(Path.cwd())])
        name = hashlib.blake2b(what.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        self._file = state_folder() / _FOLDER / f"{name}.jsonl"

    def measurements(self) -> tuple[Measurement, ...]:
        """Return what was measured before a stop; lines that were cut short are left out."""
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ()
        measurements = []
        for line in lines:
            with suppress(ValueError, TypeError):
                measurements.append(Measurement(**json.loads(line)))
        return tuple(measurements)

    def add(self, measurement: Measurement) -> None:
        """Keep one more.

        Raises:
            StorageError: it cannot be written.
        """
        make_folder(self._file.parent)
        line = json.dumps(asdict(measurement)) + "\n"
        try:
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise storage_error(error, self._file, "cannot be written") from error

    def forget(self) -> None:
        """Keep nothing of it any more: the series is done, or begins anew."""
        with suppress(OSError, StorageError):
            self._file.unlink(missing_ok=True)
