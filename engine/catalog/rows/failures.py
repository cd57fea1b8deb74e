"""Rows about runs that failed: how each kind of failure is recognised."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, TypeAlias

from pydantic import Field, field_validator

from capacity_tui.engine.catalog.rows.base import Row

FailureKind: TypeAlias = Literal["out_of_memory", "device_lost", "unstable", "hang", "disk_full"]


class FailureSign(Row):
    """What a run leaves behind that failed in one way."""

    kind: FailureKind
    where: Literal["device", "host"] | None = Field(None, description="whose memory it is")
    output: tuple[str, ...] = Field((), description="expressions of lines that the run writes")
    kernel: tuple[str, ...] = Field((), description="expressions of lines in the kernel's log")
    signals: tuple[int, ...] = Field((), description="by which the kernel ends such a run")
    xids: tuple[int, ...] = Field((), description="numbers of the driver that count")

    @field_validator("output", "kernel")
    @classmethod
    def _expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"not a regular expression: {text}: {error}") from None
        return value


@cache
def compiled(expressions: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return expressions as they are searched for, line by line."""
    return tuple(re.compile(text, re.MULTILINE) for text in expressions)
