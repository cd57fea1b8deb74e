"""What threads tell the screens. A thread touches no widget; only these messages change what is shown."""

from __future__ import annotations

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


class Detected(Answer):
    """This machine was looked at."""

    def __init__(self, hardware: tuple[HardwareRow, ...]) -> None:
        super().__init__()
        self.hardware = hardware


class Opened(Answer):
    """A plan was read, or proposed if it has no path; what was guessed of one that was said in a line."""

    def __init__(self, document: Document, path: Path | None, assumed: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.document = document
        self.path = path
        self.assumed = assumed


class LeftBehindFound(Answer):
    """Earlier runs of the program ended with edits that no file holds."""

    def __init__(self, found: tuple[LeftBehind, ...]) -> None:
        super().__init__()
        self.found = found


class Restored(Answer):
    """Edits of an earlier run were read.

    Attributes:
        plans: the plans and the files they belong to, the last edited first.
        kept: where they were kept.
    """

    def __init__(self, plans: tuple[tuple[Document, Path | None], ...], kept: LeftBehind) -> None:
        super().__init__()
        self.plans = plans
        self.kept = kept

    def drop(self) -> None:
        """Leave the edits to the next run of the program."""
        self.kept.leave()


class Compared(Answer):
    """A plan was estimated in its modes.

    Attributes:
        generation: which plan of the store it was.
        comparison: the estimates.
    """

    def __init__(self, generation: int, comparison: Comparison) -> None:
        super().__init__()
        self.generation = generation
        self.comparison = comparison


class Explained(Answer):
    """A number was explained.

    Attributes:
        explanation: where it comes from.
        is_followed: whether it was put into the number that is shown.
    """

    def __init__(self, explanation: ExplanationText, *, is_followed: bool = False) -> None:
        super().__init__()
        self.explanation = explanation
        self.is_followed = is_followed


class Pictured(Answer):
    """Pictures of a plan are to be shown."""

    def __init__(self, title: str, pictures: tuple[tuple[str, Picture], ...]) -> None:
        super().__init__()
        self.title = title
        self.pictures = pictures


class Exported(Answer):
    """A plan was written in every form there is."""

    def __init__(self, exports: tuple[Export, ...]) -> None:
        super().__init__()
        self.exports = exports


class Advised(Answer):
    """It was found out what would improve a plan.

    Attributes:
        advised: which plan of the store it was, and which mode of it.
        advice: what would, the best first.
    """

    def __init__(self, advised: tuple[int, str], advice: tuple[Advice, ...]) -> None:
        super().__init__()
        self.advised = advised
        self.advice = advice


class Sampled(Answer):
    """The sensors were read."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample


class Reported(Answer):
    """All that is known about this machine was put together."""

    def __init__(self, parts: tuple[Part, ...], load: tuple[Load, ...]) -> None:
        super().__init__()
        self.parts = parts
        self.load = load


class Measuring(Answer):
    """A benchmark began, or a figure came in."""

    def __init__(self, step: BenchmarkStep) -> None:
        super().__init__()
        self.step = step


class Measured(Answer):
    """The benchmarks ended."""

    def __init__(self, outcome: BenchmarkOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class MachineChanged(Message):
    """More is known about this machine than the plan was estimated with."""


class CatalogueRead(Answer):
    """What a picker offers was read."""

    def __init__(self, choices: tuple[Choice, ...]) -> None:
        super().__init__()
        self.choices = choices


class LineRead(Answer):
    """A line was read.

    Attributes:
        text: the line.
        understood: what it says.
        completes: whether the word under its cursor is to be completed.
    """

    def __init__(self, text: str, understood: Understood, completes: bool = False) -> None:
        super().__init__()
        self.text = text
        self.understood = understood
        self.completes = completes


class LinePlanned(Answer):
    """A line became a plan."""

    def __init__(self, document: Document, assumed: tuple[str, ...]) -> None:
        super().__init__()
        self.document = document
        self.assumed = assumed


class StartsRead(Answer):
    """What one may begin with was read."""

    def __init__(self, recent: tuple[RecentPlan, ...], lines: tuple[Choice, ...], plans: tuple[Choice, ...]) -> None:
        super().__init__()
        self.recent = recent
        self.lines = lines
        self.plans = plans


class RowsTried(Answer):
    """The plan was estimated with some rows of a list, by their ids."""

    def __init__(self, tried: Mapping[str, Tried]) -> None:
        super().__init__()
        self.tried = tried


class CellsTried(Answer):
    """The plan was estimated with pairs of values of two fields.

    Attributes:
        tried: what it would be, by pair.
        settled: whether that is the last word on these pairs.
    """

    def __init__(self, tried: Mapping[tuple[str, str], Tried], *, settled: bool) -> None:
        super().__init__()
        self.tried = tried
        self.settled = settled


class LimitFound(Answer):
    """The largest value of a field was found with which a plan fits.

    Attributes:
        generation: which plan of the store it was.
        key: the field.
        limit: how far it goes.
    """

    def __init__(self, generation: int, key: str, limit: Limit) -> None:
        super().__init__()
        self.generation = generation
        self.key = key
        self.limit = limit


class Asked(Answer):
    """It is known what to search for around a plan."""

    def __init__(self, document: Document, question: Question) -> None:
        super().__init__()
        self.document = document
        self.question = question


class Searched(Answer):
    """Plans were found.

    Attributes:
        found: the best so far.
        is_last: whether the search has ended.
    """

    def __init__(self, found: Found, is_last: bool = False) -> None:
        super().__init__()
        self.found = found
        self.is_last = is_last


class PlanPinned(Answer):
    """A plan that was found was put beside the plan.

    Attributes:
        before: the plan as it was.
        document: the plan with the other beside it.
    """

    def __init__(self, before: Document, document: Document) -> None:
        super().__init__()
        self.before = before
        self.document = document


class RunsRead(Answer):
    """Runs were looked at.

    Attributes:
        columns: of their table.
        rows: all of them.
        run: the one under the cursor; None where there is none.
    """

    def __init__(self, columns: tuple[TableColumn, ...], rows: tuple[RunRow, ...], run: WatchedRun | None) -> None:
        super().__init__()
        self.columns = columns
        self.rows = rows
        self.run = run


class RunPlanRead(Answer):
    """The plan of a run was read.

    Attributes:
        document: the plan.
        is_pinned: whether it is to stand beside the plan, not in its place.
    """

    def __init__(self, document: Document, *, is_pinned: bool) -> None:
        super().__init__()
        self.document = document
        self.is_pinned = is_pinned


class Calibrated(Answer):
    """Something was learnt from a run."""

    def __init__(self, said: str) -> None:
        super().__init__()
        self.said = said


class PlanScaled(Answer):
    """The plan was estimated on another number of devices.

    Attributes:
        plan: all that is known by now.
    """

    def __init__(self, plan: ScaledPlan) -> None:
        super().__init__()
        self.plan = plan


class ClusterSeen(Answer):
    """The plan was laid on its cluster.

    Attributes:
        cluster: nodes, placement and queue.
    """

    def __init__(self, cluster: Clustered) -> None:
        super().__init__()
        self.cluster = cluster


class PlanStored(Answer):
    """It was found out what the plan keeps on disk, and reads from there."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        super().__init__()
        self.rows = rows


class CorpusRead(Answer):
    """It is known what corpus the plan has."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__()
        self.corpus = corpus


class PatternsStored(Answer):
    """It was found out what the patterns of a corpus take to keep."""

    def __init__(self, patterns: StoredPatterns) -> None:
        super().__init__()
        self.patterns = patterns
