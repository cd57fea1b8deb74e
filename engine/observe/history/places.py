"""Where the history is kept: a file in the user's folder, or a database that the user names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from capacity_tui.engine.files import data_folder, typed_path

VARIABLE = "CAPACITY_TUI_HISTORY"
"""Environment variable that names another file or a MongoDB URI, or turns the history ``off``."""
OFF = "off"
FILE = "history.sqlite"
_URI = re.compile(r"mongodb(\+srv)?://", re.IGNORECASE)
_SECRET = re.compile(r"//[^@/]*@")
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class HistoryPlace:
    """Where the history is kept.

    Attributes:
        file: the SQLite file; beside it waits what could not be stored yet.
        uri: of a MongoDB in its place; empty for the file.
        is_on: whether estimates and runs are kept by themselves; what the user hands over is kept anyway.
    """

    file: Path
    uri: str = ""
    is_on: bool = True

    @property
    def waiting(self) -> Path:
        """The file in which entries wait until they are stored."""
        return self.file.with_suffix(".waiting.jsonl")

    @property
    def told(self) -> str:
        """The place in words, without a password."""
        return _SECRET.sub("//", self.uri) if self.uri else str(self.file)


def history_place(where: str | Path | None = None, environment: Mapping[str, str] = os.environ) -> HistoryPlace:
    """Return where the history is kept.

    Args:
        where: a file, a MongoDB URI, or ``off``; by default as the environment says, else a file in the user's folder.
        environment: variables of the process.
    """
    named = str(where or environment.get(VARIABLE) or "")
    usual = data_folder(environment) / FILE
    if not named or named == OFF:
        return HistoryPlace(usual, is_on=not named)
    if _URI.match(named):
        own = hashlib.blake2b(named.encode(), digest_size=_DIGITS // 2).hexdigest()
        return HistoryPlace(usual.with_name(f"history-{own}.sqlite"), named)
    return HistoryPlace(typed_path(named))
