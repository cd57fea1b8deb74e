"""Rows about what is watched for in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from capacity_tui.engine.catalog.rows.base import Row


class Detector(Row):
    """What is watched for in a run, and from when on it is told."""

    level: Literal["note", "warning", "error"] = Field(description="how it is told")
    remedy: str = Field(description="what to do, in one clause")
    thresholds: Mapping[str, float] = Field({}, description="from when on it is told")
    causes: Mapping[str, tuple[str, ...]] = Field({}, description="words of drivers by what they mean")
