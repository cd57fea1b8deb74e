"""What the workers tell the screen. Workers touch no widget; only these messages change what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from capacity_tui.tui.view import (
    BenchmarkOutcome,
    BenchmarkStep,
    Choice,
    Comparison,
    Document,
    Explanation,
    HardwareRow,
    Sample,
)

if TYPE_CHECKING:
    from rich.console import RenderableType


class Detected(Message):
    """This machine was looked at."""

    def __init__(self, hardware: tuple[HardwareRow, ...]) -> None:
        super().__init__()
        self.hardware = hardware


class Opened(Message):
    """A plan was read, or proposed if it has no path."""

    def __init__(self, document: Document, path: Path | None) -> None:
        super().__init__()
        self.document = document
        self.path = path


class Compared(Message):
    """A plan was estimated in its modes."""

    def __init__(self, generation: int, comparison: Comparison) -> None:
        super().__init__()
        self.generation = generation
        self.comparison = comparison


class Explained(Message):
    """A number was explained."""

    def __init__(self, generation: int, explanation: Explanation) -> None:
        super().__init__()
        self.generation = generation
        self.explanation = explanation


class Sampled(Message):
    """The sensors were read."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample


class Reported(Message):
    """All that is known about this machine was put together."""

    def __init__(self, generation: int, parts: tuple[RenderableType, ...]) -> None:
        super().__init__()
        self.generation = generation
        self.parts = parts


class Measuring(Message):
    """A benchmark began, or a figure came in."""

    def __init__(self, generation: int, step: BenchmarkStep) -> None:
        super().__init__()
        self.generation = generation
        self.step = step


class Measured(Message):
    """The benchmarks ended."""

    def __init__(self, generation: int, outcome: BenchmarkOutcome) -> None:
        super().__init__()
        self.generation = generation
        self.outcome = outcome


class MachineChanged(Message):
    """More is known about this machine than the plan was estimated with."""


class CatalogueRead(Message):
    """What a picker offers was read."""

    def __init__(self, choices: tuple[Choice, ...]) -> None:
        super().__init__()
        self.choices = choices


class Failed(Message):
    """Something did not work.

    Attributes:
        generation: the generation of the plan that could not be estimated, None for anything else.
    """

    def __init__(self, title: str, hint: str, detail: str, generation: int | None = None) -> None:
        super().__init__()
        self.title = title
        self.hint = hint
        self.detail = detail
        self.generation = generation
