"""What threads tell the screens. A thread touches no widget; only these messages change what is shown."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from capacity_tui.tui.requests import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity_tui.engine.present import ExplanationText, Part
    from capacity_tui.engine.present.pictures import Picture
    from capacity_tui.engine.solve.modes import Limit
    from capacity_tui.tui.settings import RecentPlan
    from capacity_tui.tui.shown.cluster import Clustered, ScaledPlan
    from capacity_tui.tui.shown.comparison import Advice, Comparison, HardwareRow, Row
    from capacity_tui.tui.shown.corpus import Corpus, StoredPatterns
    from capacity_tui.tui.shown.fields import Choice, Understood
    from capacity_tui.tui.shown.machine import BenchmarkOutcome, BenchmarkStep, Load, Sample
    from capacity_tui.tui.shown.results import Export, Found, Question, TableColumn
    from capacity_tui.tui.shown.runs import RunRow, WatchedRun
    from capacity_tui.tui.shown.tried import Tried
    from capacity_tui.tui.unsaved import LeftBehind
    from capacity_tui.tui.view import Document


@dataclass(eq=False)
class Detected(Answer):
    """This machine was looked at."""

    hardware: tuple[HardwareRow, ...]


@dataclass(eq=False)
class Opened(Answer):
    """A plan was read, or proposed if it has no path; what was guessed of one that was said in a line."""

    document: Document
    path: Path | None
    assumed: tuple[str, ...] = ()


@dataclass(eq=False)
class LeftBehindFound(Answer):
    """Earlier runs of the program ended with edits that no file holds."""

    found: tuple[LeftBehind, ...]


@dataclass(eq=False)
class Restored(Answer):
    """Edits of an earlier run were read.

    Attributes:
        plans: the plans and the files they belong to, the last edited first.
        kept: where they were kept.
    """

    plans: tuple[tuple[Document, Path | None], ...]
    kept: LeftBehind

    def drop(self) -> None:
        """Leave the edits to the next run of the program."""
        self.kept.leave()


@dataclass(eq=False)
class Compared(Answer):
    """A plan was estimated in its modes.

    Attributes:
        generation: which plan of the store it was.
        comparison: the estimates.
    """

    generation: int
    comparison: Comparison


@dataclass(eq=False)
class Explained(Answer):
    """A number was explained.

    Attributes:
        explanation: where it comes from.
        is_followed: whether it was put into the number that is shown.
    """

    explanation: ExplanationText
    _: KW_ONLY
    is_followed: bool = False


@dataclass(eq=False)
class Pictured(Answer):
    """Pictures of a plan are to be shown."""

    title: str
    pictures: tuple[tuple[str, Picture], ...]


@dataclass(eq=False)
class Exported(Answer):
    """A plan was written in every form there is."""

    exports: tuple[Export, ...]


@dataclass(eq=False)
class Advised(Answer):
    """It was found out what would improve a plan.

    Attributes:
        advised: which plan of the store it was, and which mode of it.
        advice: what would, the best first.
    """

    advised: tuple[int, str]
    advice: tuple[Advice, ...]


@dataclass(eq=False)
class Sampled(Answer):
    """The sensors were read."""

    sample: Sample


@dataclass(eq=False)
class Reported(Answer):
    """All that is known about this machine was put together."""

    parts: tuple[Part, ...]
    load: tuple[Load, ...]


@dataclass(eq=False)
class Measuring(Answer):
    """A benchmark began, or a figure came in."""

    step: BenchmarkStep


@dataclass(eq=False)
class Measured(Answer):
    """The benchmarks ended."""

    outcome: BenchmarkOutcome


class MachineChanged(Message):
    """More is known about this machine than the plan was estimated with."""


@dataclass(eq=False)
class CatalogueRead(Answer):
    """What a picker offers was read."""

    choices: tuple[Choice, ...]


@dataclass(eq=False)
class LineRead(Answer):
    """A line was read.

    Attributes:
        text: the line.
        understood: what it says.
        completes: whether the word under its cursor is to be completed.
    """

    text: str
    understood: Understood
    completes: bool = False


@dataclass(eq=False)
class LinePlanned(Answer):
    """A line became a plan."""

    document: Document
    assumed: tuple[str, ...]


@dataclass(eq=False)
class StartsRead(Answer):
    """What one may begin with was read."""

    recent: tuple[RecentPlan, ...]
    lines: tuple[Choice, ...]
    plans: tuple[Choice, ...]


@dataclass(eq=False)
class RowsTried(Answer):
    """The plan was estimated with some rows of a list, by their ids."""

    tried: Mapping[str, Tried]


@dataclass(eq=False)
class CellsTried(Answer):
    """The plan was estimated with pairs of values of two fields.

    Attributes:
        tried: what it would be, by pair.
        settled: whether that is the last word on these pairs.
    """

    tried: Mapping[tuple[str, str], Tried]
    _: KW_ONLY
    settled: bool


@dataclass(eq=False)
class LimitFound(Answer):
    """The largest value of a field was found with which a plan fits.

    Attributes:
        generation: which plan of the store it was.
        key: the field.
        limit: how far it goes.
    """

    generation: int
    key: str
    limit: Limit


@dataclass(eq=False)
class Asked(Answer):
    """It is known what to search for around a plan."""

    document: Document
    question: Question


@dataclass(eq=False)
class Searched(Answer):
    """Plans were found.

    Attributes:
        found: the best so far.
        is_last: whether the search has ended.
    """

    found: Found
    is_last: bool = False


@dataclass(eq=False)
class PlanPinned(Answer):
    """A plan that was found was put beside the plan.

    Attributes:
        before: the plan as it was.
        document: the plan with the other beside it.
    """

    before: Document
    document: Document


@dataclass(eq=False)
class RunsRead(Answer):
    """Runs were looked at.

    Attributes:
        columns: of their table.
        rows: all of them.
        run: the one under the cursor; None where there is none.
    """

    columns: tuple[TableColumn, ...]
    rows: tuple[RunRow, ...]
    run: WatchedRun | None


@dataclass(eq=False)
class RunPlanRead(Answer):
    """The plan of a run was read.

    Attributes:
        document: the plan.
        is_pinned: whether it is to stand beside the plan, not in its place.
    """

    document: Document
    _: KW_ONLY
    is_pinned: bool


@dataclass(eq=False)
class Calibrated(Answer):
    """Something was learnt from a run."""

    said: str


@dataclass(eq=False)
class PlanScaled(Answer):
    """The plan was estimated on another number of devices.

    Attributes:
        plan: all that is known by now.
    """

    plan: ScaledPlan


@dataclass(eq=False)
class ClusterSeen(Answer):
    """The plan was laid on its cluster.

    Attributes:
        cluster: nodes, placement and queue.
    """

    cluster: Clustered


@dataclass(eq=False)
class PlanStored(Answer):
    """It was found out what the plan keeps on disk, and reads from there."""

    rows: tuple[Row, ...]


@dataclass(eq=False)
class CorpusRead(Answer):
    """It is known what corpus the plan has."""

    corpus: Corpus


@dataclass(eq=False)
class PatternsStored(Answer):
    """It was found out what the patterns of a corpus take to keep."""

    patterns: StoredPatterns
