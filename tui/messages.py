"""What the workers tell the screen. Workers touch no widget; only these messages change what is shown."""

from __future__ import annotations

from dataclasses import dataclass
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

    from capacity_tui.tui.swap import LeftBehind


@dataclass(frozen=True, slots=True)
class Request:
    """Something that a worker was asked for.

    Attributes:
        group: what was asked for; a newer request of a group makes the answers to older ones worthless.
        number: counts the requests of the group.
    """

    group: str
    number: int


class Requests:
    """Numbers requests, since a thread that was cancelled still answers."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def new(self, group: str) -> Request:
        """Return a request that outdates those of its group before it."""
        self._newest[group] = self._newest.get(group, 0) + 1
        return Request(group, self._newest[group])

    def is_newest(self, request: Request | None) -> bool:
        """Whether an answer to the request still counts; one that nobody asked for always does."""
        return request is None or request.number == self._newest.get(request.group)


class Detected(Message):
    """This machine was looked at."""

    def __init__(self, hardware: tuple[HardwareRow, ...]) -> None:
        super().__init__()
        self.hardware = hardware


class Opened(Message):
    """A plan was read, or proposed if it has no path."""

    def __init__(self, request: Request, document: Document, path: Path | None) -> None:
        super().__init__()
        self.request = request
        self.document = document
        self.path = path


class LeftBehindFound(Message):
    """Earlier runs of the program ended with edits that no file holds."""

    def __init__(self, found: tuple[LeftBehind, ...]) -> None:
        super().__init__()
        self.found = found


class Restored(Message):
    """Edits of an earlier run were read.

    Attributes:
        plans: the plans and the files they belong to, the last edited first.
        kept: where they were kept.
    """

    def __init__(self, request: Request, plans: tuple[tuple[Document, Path | None], ...], kept: LeftBehind) -> None:
        super().__init__()
        self.request = request
        self.plans = plans
        self.kept = kept


class Compared(Message):
    """A plan was estimated in its modes."""

    def __init__(self, request: Request, generation: int, comparison: Comparison) -> None:
        super().__init__()
        self.request = request
        self.generation = generation
        self.comparison = comparison


class Explained(Message):
    """A number was explained."""

    def __init__(self, request: Request, explanation: Explanation) -> None:
        super().__init__()
        self.request = request
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
        request: what was asked for, None where nothing was.
    """

    def __init__(self, title: str, hint: str, detail: str, request: Request | None = None) -> None:
        super().__init__()
        self.title = title
        self.hint = hint
        self.detail = detail
        self.request = request

    @property
    def in_short(self) -> str:
        """Title and remedy in one line."""
        return ": ".join(part for part in (self.title, self.hint or self.detail) if part)
