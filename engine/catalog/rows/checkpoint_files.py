"""Rows about checkpoints on disk: how they are called, and what says that one is complete."""

from __future__ import annotations

from pydantic import Field

from capacity_tui.engine.catalog.rows.base import Row


class CheckpointFiles(Row):
    """What the checkpoints of one kind of software look like."""

    names: tuple[str, ...] = Field(description="globs of a checkpoint's folder or file")
    holds: tuple[str, ...] = Field((), description="globs of which each must be found in its folder")
    newest: str | None = Field(None, description="file beside it that names the newest complete one")
    unfinished: tuple[str, ...] = Field((), description="globs of what lies beside it while it is written")
