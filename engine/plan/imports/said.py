"""What files of other tools say of a plan, each thing with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.errors import Place
from capacity_tui.engine.plan.imports.tools import Tool

Level: TypeAlias = Literal["typed", "said", "kept", "base", "default", "derived"]
"""Who says it, the strongest first: the command line; an option that is there; a comment that an exported file keeps;
the plan that files are laid over; a tool where its option is left out. What follows from others has the last."""
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class Said:
    """One value.

    Attributes:
        field: plan field, or a quantity that fields follow from.
        value: its value.
        place: file, line and the option's own name.
        text: what stands there, or what it follows from.
        tool: the tool's id; empty where none says it.
        level: who says it.
        besides: further values that are written with the same word.
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
    """An option that no setting of the plan follows from.

    Attributes:
        place: file, line and the option's own name.
        why: what is not counted, or the options that may be meant.
    """

    place: Place
    why: str = ""


@dataclass(slots=True)
class Reading:
    """What one file says.

    Attributes:
        file: its name as the user gave it.
        tool: whose it is.
        said: values, in the order of the file; defaults last.
        ignored: options without a part in an estimate.
        unmodelled: options that change a run and that plans have no word for.
        unknown: options that the tool is not known to have.
        named: files of other tools that it names.
    """

    file: str
    tool: Tool
    said: list[Said] = field(default_factory=list)
    ignored: list[Place] = field(default_factory=list)
    unmodelled: list[Remark] = field(default_factory=list)
    unknown: list[Remark] = field(default_factory=list)
    named: list[tuple[Path, Place]] = field(default_factory=list)

    def says(self, values: Mapping[str, object], like: Said) -> Iterator[Said]:
        """Yield values that one word stands for."""
        for name, value in values.items():
            first, *besides = value if isinstance(value, list) else [value]
            yield Said(name, first, like.place, like.text, like.tool, like.level, tuple(besides))
