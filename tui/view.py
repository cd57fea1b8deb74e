"""What the screen shows, as plain frozen data: the one vocabulary between the engine and the widgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, Protocol

from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from capacity_tui.engine.present import ExplanationText, Part
    from capacity_tui.engine.present.pictures import Picture
    from capacity_tui.engine.solve.modes import FieldLimit
    from capacity_tui.tui.shown.comparison import Advice, Comparison, HardwareRow, Row, Trial
    from capacity_tui.tui.shown.results import Choice, Export, Field, Question, SizedModel, TableColumn, Understood
    from capacity_tui.tui.shown.scale import Clustered, Corpus, ScaledPlan


class Standing(StrEnum):
    """How a run stands."""

    GOES_ON = "goes on"
    UNWATCHED = "running, not watched"
    ENDED = "ended"
    FAILED = "failed"
    PAST = "past"
    EXAMPLE = "an example, made up"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run."""

    id: str  # what it is called
    standing: Standing  # how it stands
    cells: tuple[str, ...]  # what it has in each column
    has_plan: bool = False  # whether it followed a plan


class Band(NamedTuple):
    """What was predicted of a figure: the value with its range."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True)
class RunGraph:
    """One figure of a run as it went."""

    title: str  # what it is
    now: str  # its newest value, as shown
    points: tuple[tuple[float, float], ...]  # place and value, by rising place
    places: tuple[float, float]  # the first and the last place that there is room for
    first: str  # the first place, as shown
    last: str  # the last place, as shown
    low: str  # lowest value that is drawn, as shown
    high: str  # highest value that is drawn, as shown
    ends: tuple[float, float]  # both as numbers
    band: Band | None = None  # what was predicted; None where nothing was
    predicted: str = ""  # the same, as shown
    verdict: str = ""  # on which side of the prediction it lies; empty without one
    is_inside: bool = True  # whether it lies within
    unit: str = ""  # of its values
    axis: str = "step"  # what places count: ``step`` or ``seconds``


@dataclass(frozen=True, slots=True)
class RunDevice:
    """A device, and who works on it."""

    name: str  # what it is called
    text: str  # how busy, full, hot it is
    share: float | None = None  # how busy, 1 for full; None where that is not known
    warning: str = ""  # what holds it back; empty for nothing
    processes: tuple[str, ...] = ()  # who holds its memory, a line each


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that was reported of a run."""

    time: str  # when, as shown
    level: str  # ``note``, ``warning`` or ``error``
    text: str


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """All there is to show of one run."""

    id: str  # what it is called
    head: str = ""  # how far it is, in one line
    graphs: tuple[RunGraph, ...] = ()  # its figures, those beside a prediction first
    devices: tuple[RunDevice, ...] = ()  # what it runs on
    events: tuple[RunEvent, ...] = ()  # what was reported of it, the newest first
    remarks: tuple[str, ...] = ()  # why it differs from its plan, and what to know of it


@dataclass(frozen=True, slots=True)
class Reading:
    """One live quantity at one moment."""

    name: str  # what it is called, constant over time
    value: float | None  # its value, None where the sensor is missing
    maximum: float | None  # value at which the graph is full, None to fit what was seen
    text: str  # the value as shown
    reason: str = ""  # why there is no value


@dataclass(frozen=True, slots=True)
class BenchmarkStep:
    """How far the benchmarks are."""

    name: str  # what is measured now
    number: int  # which of them it is, from 1
    total: int  # how many there are
    latest: str = ""  # the figure that just came in, with its spread, or why it was not measured; empty for none


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """How the benchmarks ended."""

    figures: int  # how many figures came in
    is_complete: bool  # whether none was stopped
    doubt: str = ""  # why the figures are kept apart and estimates do not use them; empty where they do


class Sampler(Protocol):
    """Reads the sensors of this machine."""

    def sample(self) -> tuple[Reading, ...]:
        """Return the present readings; may take some tens of milliseconds."""


class Document(Protocol):
    """An immutable plan, together with the machine it is edited on."""

    @property
    def name(self) -> str:
        """What the plan is called."""

    @property
    def answered_in(self) -> str:
        """The view that answers what the line asks that the plan comes from; empty where it asks nothing."""

    @property
    def followed(self) -> Mapping[str, str]:
        """What moved along with the change that made this plan, fields or whole sections, each with the reason."""

    def fields(self) -> tuple[Field, ...]:
        """Return the lines of the configuration; quick."""

    def sizes(self, key: str) -> tuple[int, ...]:
        """Return the values that a step of a field may land on, in order; none for any; quick."""

    def edited(self, key: str, text: str) -> Document:
        """Return the plan with one field changed; a ``CapacityError`` says why that makes no sense."""

    def trial(self, key: str, text: str) -> Trial:
        """Return what the plan would be with one field changed, or why it cannot be."""

    def trial_pairs(
        self, keys: tuple[str, str], pairs: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[Mapping[tuple[str, str], Trial], bool]]:
        """Yield what the plan would be with pairs of values of two fields, and whether that is the last word.

        A first answer tells of all pairs as the plan is filled now, later ones as it would be filled then.
        """

    def changed(self, change: Mapping[str, object]) -> Document:
        """Return the plan with several fields changed at once; refused like ``edited``."""

    def unanswered(self) -> Document:
        """Return the same plan without what was worked out of it."""

    def foresee(self, change: Mapping[str, object]) -> None:
        """Estimate ahead what a change of the plan would come to; refused like ``edited``."""

    def limit(self, mode: str, key: str) -> FieldLimit:
        """Return the largest value of a field with which the plan fits as a mode of its own fills it.

        Refused like ``edited``.
        """

    def ladder(self) -> tuple[SizedModel, ...]:
        """Return the largest models that the plan's hardware tunes and runs, comfortably and on the edge."""

    def compare(self) -> Comparison:
        """Estimate the plan in its modes."""

    def advice(self, mode: str) -> tuple[Advice, ...]:
        """Return what would improve the plan as a mode of its own fills it, the best first."""

    def question(self, given: Mapping[str, str]) -> Question:
        """Return what to search for around the plan: what is said, and what makes sense at once for the rest."""

    def migration(self, mode: str, given: Mapping[str, str]) -> Question:
        """Return what the plan as a mode fills it would be worth on other machines: what is said, and the rest."""

    def scaled(self, mode: str, growth: str) -> Iterator[ScaledPlan]:
        """Yield the plan as a mode of its own fills it on more and more devices, each time all that is known so far."""

    def clustered(self, mode: str) -> Iterator[Clustered]:
        """Yield where the plan as a mode of its own fills it lies on its cluster, then its nodes as they are now."""

    def stored(self, mode: str) -> tuple[Row, ...]:
        """Return what the plan as a mode of its own fills it keeps on disk, and reads from there."""

    def corpus(self, given: Mapping[str, str]) -> Corpus:
        """Return the plan's data as a corpus of patterns: what is said of it, and what makes sense for the rest."""

    def explain(self, mode: str, key: str) -> ExplanationText:
        """Say where a number comes from."""

    def pins(self) -> tuple[str, ...]:
        """Return the names of the plans beside it; quick."""

    def pinned(self, mode: str) -> Document:
        """Return the plan with that of a mode beside it, under a free name; refused where there are too many."""

    def pinned_with(self, change: Mapping[str, object]) -> Document:
        """Return the plan with what a change makes of it beside it; refused like ``pinned`` and ``edited``."""

    def pinned_with_plan(self, other: Document) -> Document:
        """Return the plan with another one beside it; refused where there are too many."""

    def replaced_by(self, other: Document) -> Document:
        """Return another plan with those that stand beside this one."""

    def unpinned(self, name: str) -> Document:
        """Return the plan without one of those beside it."""

    def taken(self, name: str) -> Document:
        """Return one of the plans beside it in its place; those beside it stay."""

    def renamed(self, name: str, new: str) -> Document:
        """Return the plan with another name for one of those beside it; CapacityError for a name nothing may have."""

    def dump(self, mode: str | None = None) -> str:
        """Return the plan as YAML; of a mode with everything chosen, without one as it was written."""

    def exports(self, mode: str) -> tuple[Export, ...]:
        """Return every form in which the plan, as a mode fills it, can leave the program."""

    def pictures(self, mode: str) -> tuple[tuple[str, Picture], ...]:
        """Return what there is to draw of the plan as a mode fills it, with titles."""


class Engine(Protocol):
    """What the screen asks of the engine; every method may be slow and runs in a thread."""

    def detect(self) -> tuple[HardwareRow, ...]:
        """Look at this machine."""

    def machine_report(self, document: Document | None, ascii_only: bool) -> tuple[Part, ...]:
        """Return all that is known about this machine, and what the plan meets on it, in ASCII alone if asked for.

        A plan that suits the machine stands in for none, or for one on other hardware.
        """

    def machine_load(self) -> tuple[Row, ...]:
        """Return how full and how busy this machine is, each with a share; takes some tenths of a second."""

    def benchmark(self, progress: Callable[[BenchmarkStep], None], cancelled: Event) -> BenchmarkOutcome:
        """Measure this machine, keep what was measured, and look at the machine again.

        Args:
            progress: called in this thread before each benchmark and after each figure.
            cancelled: stops the benchmarks when set; what is complete by then is kept.

        Raises:
            CapacityError: the results cannot be kept.
        """

    def renewed(self, document: Document) -> Document:
        """Return the same plan on this machine as it was last looked at; quick."""

    def propose(self, hardware: str | None = None) -> Document:
        """Return a plan that fits this machine, or other hardware, such as ``8xH100-SXM``, if that exists."""

    def read_line(self, text: str, cursor: int) -> Understood:
        """Return what a line such as ``llama-3.1-70b lora 8xh100 4k 50M`` says; quick."""

    def is_line(self, name: str) -> bool:
        """Return whether a name is no plan's but a line that says one, at least in part."""

    def plan_of_line(
        self, text: str, document: Document | None, hardware: str | None = None, *, leaves_out: bool = False
    ) -> tuple[Document, tuple[str, ...]]:
        """Return the plan that a line says, and what was guessed.

        Args:
            document: the plan whose hardware is meant where the line names none.
            hardware: what is planned for instead, such as ``8xH100-SXM``.
            leaves_out: whether words and numbers that mean nothing are left out, and said to be.

        Raises:
            CapacityError: the line makes no sense.
        """

    def locate(self, source: Path) -> Path | str:
        """Return the file that a path or the name of a saved plan means, if there is one; an example has its name."""

    def open(self, source: Path | str) -> Document:
        """Read a plan from a file, or from text; raises CapacityError where there is none that makes sense."""

    def catalogue(self, name: str) -> tuple[Choice, ...]:
        """Return what can be picked: ``model``, ``accelerator``, ``interconnect``, ``profile`` or ``line``.

        The id of a profile that lies in a file of the user's is its path.
        """

    def save(self, path: Path, text: str) -> Path | None:
        """Write a plan; return where a damaged one before it went; CapacityError leaves what was there untouched."""

    def plans_folder(self) -> Path:
        """Return where plans are saved under a name."""

    def sampler(self) -> Sampler:
        """Return the reader of this machine's sensors."""

    def runs(self, history: str) -> RunsReader:
        """Return the reader of runs that go on and are past; the settings say where the history is."""


class RunsReader(Protocol):
    """Reads runs that go on and runs that are past; every method may be slow and runs in a thread."""

    def columns(self) -> tuple[TableColumn, ...]:
        """Return the columns of the table."""

    def rows(self) -> tuple[RunRow, ...]:
        """Return all runs, those that go on first, then the newest first."""

    def run(self, name: str, window: float) -> WatchedRun:
        """Return all there is to show of a run by now, of the newest share of its course."""

    def document(self, name: str) -> Document:
        """Return the plan of a run; raises CapacityError where it has none, or none that can be read."""

    def calibrate(self, name: str) -> str:
        """Let estimates rest on a run, and return what changed, in words; CapacityError where it teaches nothing."""

    def restore(self, name: str) -> str:
        """Take back what was last learnt for the device of a run, and return what estimates rest on then."""

    def close(self) -> None:
        """Let files go."""
