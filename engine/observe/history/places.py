"""Where the history is kept: a file in the user's folder, or a database that the user names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from capacity_tui.engine.files import NOWHERE, data_folder, typed_path
from capacity_tui.engine.mongodb import URIS, without_password

VARIABLE = "CAPACITY_TUI_HISTORY"
"""Environment variable that names another file or a MongoDB URI, or turns the history ``off``."""
OFF = "off"
FILE = "history.sqlite"
_DIGITS = 8


class HistoryPlace(NamedTuple):
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
    def label(self) -> str:
        """The place in words, without a password."""
        return without_password(self.uri) if self.uri else str(self.file)


Where: TypeAlias = HistoryPlace | str | Path | None


def history_place(where: Where = None, environment: Mapping[str, str] = os.environ, setting: str = "") -> HistoryPlace:
    """Return where the history is kept.

    Args:
        where: a place, a file, a MongoDB URI, or ``off``; by default that of the environment, else the user's file.
        setting: what the user's settings say, where nothing else does.
    """
    if isinstance(where, HistoryPlace):
        return where
    named = str(where or environment.get(VARIABLE) or setting)
    usual = data_folder(environment) / FILE
    if not named or named == OFF:
        # A user without a home has nowhere to keep anything, and needs no note of it at every command.
        return HistoryPlace(usual, is_on=not named and not usual.is_relative_to(NOWHERE))
    if named.lower().startswith(URIS):
        import hashlib  # noqa: PLC0415 - only a database needs it

        digest = hashlib.blake2b(named.encode(), digest_size=_DIGITS // 2).hexdigest()
        return HistoryPlace(usual.with_name(f"history-{digest}.sqlite"), named)
    return HistoryPlace(typed_path(named))
