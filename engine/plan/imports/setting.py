"""Settings read from files of other tools, each with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.errors import Place
from capacity_tui.engine.plan.imports.tools import Tool

Level: TypeAlias = Literal["typed", "said", "kept", "base", "default", "derived"]
"""Origin of a setting, the strongest first: typed on the command line; an option in a file; the comment of an exported
file; the plan that files are laid over; the tool's default. Settings derived from others come last."""
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class ImportedSetting:
    """A value for a field of a plan, or for a quantity that fields are derived from.

    Attributes:
        field: plan field, or quantity.
        place: file, line and the option's name.
        text: as written in the file, or what it is derived from.
        tool: the tool's id; empty where no tool sets it.
        level: origin.
        besides: further values that the same word stands for.
    """

    field: str
    value: object
    place: Place
    text: str = ""
    tool: str = ""
    level: Level = "said"
    besides: tuple[object, ...] = ()

    @property
    def words(self) -> str:
        """Where it comes from, for people."""
        key = self.place.field or ""
        stands = ":".join(str(part) for part in (self.place.file, self.place.line) if part is not None)
        if self.level == "typed":
            return key or "typed"
        if self.level == "derived":
            return self.text
        if self.level == "default":
            return f"{stands}: not given, {key} is {self.text} by default" if key else f"{stands}: the tool's default"
        return f"{stands}: {key} {self.text}".rstrip() if key else f"{stands}: a file of this tool"


@dataclass(frozen=True, slots=True)
class Remark:
    """An option that sets nothing in the plan.

    Attributes:
        place: file, line and the option's name.
        why: what is not counted, or the options that may be meant.
    """

    place: Place
    why: str = ""


@dataclass(slots=True)
class Reading:
    """What was read from one file.

    Attributes:
        file: its name as the user gave it.
        settings: in the order of the file; defaults last.
        ignored: options that no estimate depends on.
        unmodelled: options that change a run and that plans have no word for.
        unknown: options that the tool does not have.
        named: files of other tools that it refers to.
    """

    file: str
    tool: Tool
    settings: list[ImportedSetting] = field(default_factory=list)
    ignored: list[Place] = field(default_factory=list)
    unmodelled: list[Remark] = field(default_factory=list)
    unknown: list[Remark] = field(default_factory=list)
    named: list[tuple[Path, Place]] = field(default_factory=list)


def settings_from(values: Mapping[str, object], source: ImportedSetting) -> Iterator[ImportedSetting]:
    """Yield a setting for each value by field, with place, text and level of the option they are read from."""
    for name, value in values.items():
        first, *besides = value if isinstance(value, list) else [value]
        yield replace(source, field=name, value=first, besides=tuple(besides))
