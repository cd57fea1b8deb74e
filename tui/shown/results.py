"""Lines of a configuration, choices and results as tables, as plain frozen data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.present import ExplanationText
    from capacity_tui.engine.solve.search import Rejected
ALWAYS = 0  # Rank of what is never left out for want of room
AUTO = "auto"
# Fields that the screen treats as what they are.
MODEL_KEY = Key.MODEL_NAME
HARDWARE_KEY = Key.HARDWARE_NAME
DEVICES_KEY = Key.HARDWARE_DEVICES
PINS_KEY = Key.SCENARIOS


class Kind(StrEnum):
    """How the value of a field is stepped and typed."""

    INTEGER = "integer"
    POWER_OF_TWO = "power-of-two"
    ROUND = "one-two-five"
    NUMBER = "number"
    CHOICE = "choice"
    TEXT = "text"
    PATH = "path"


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the configuration."""

    key: str  # dotted path in the plan, such as ``training.micro_batch``
    label: str  # what the line is called
    group: str  # heading under which it stands
    text: str  # its value as shown, without the unit
    value: float | None = None  # its value as a number, where it has one; None while it is automatic
    unit: str = ""  # unit shown behind the value
    kind: Kind = Kind.TEXT  # how it is stepped and typed
    minimum: float | None = None  # smallest value allowed, if bounded
    maximum: float | None = None  # largest value allowed, if bounded
    step: float = 1  # the difference of one step of an integer or number
    choices: tuple[str, ...] = ()  # the values allowed, of a choice
    catalogue: str = ""  # name of the catalogue to pick from, or empty
    can_be_auto: bool = False  # whether the three modes may choose the value
    is_auto: bool = False  # whether they do
    help: str = ""  # what the field means and why it matters
    idle: str = ""  # why it changes nothing in this plan; empty where it may
    words: Mapping[str, str] = field(default_factory=dict, hash=False)  # a few words for each choice that has any
    synonyms: tuple[str, ...] = ()  # other words under which people look for it
    is_main: bool = True  # whether it is shown before all fields are asked for: it moves figures most, or was set


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a picker."""

    id: str
    title: str
    detail: str = ""
    group: str = ""
    price: str = ""


@dataclass(frozen=True, slots=True)
class SizedModel:
    """The largest model of one way to use hardware."""

    way: str  # what is done and how
    model: str  # its name
    room: str  # how it fits, in words
    share: str  # how much of the memory it takes
    speed: str  # how fast it is
    is_comfortable: bool  # whether there is room to spare
    change: Mapping[str, object] = field(default_factory=dict, hash=False)  # what makes the plan one of it


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the word under the cursor of a line may become."""

    word: str  # the whole word
    kind: str  # what it is, as ``model``
    line: str
    cursor: int  # where the cursor stands then


@dataclass(frozen=True, slots=True)
class Understood:
    """What one line was taken for."""

    words: str  # the same in a few words; empty where nothing was understood
    guesses: tuple[str, ...] = ()  # what was guessed, and why
    faults: tuple[str, ...] = ()  # what was not understood, and what to do
    suggestions: tuple[Suggestion, ...] = ()  # what the word under the cursor may become
    meaningless: tuple[str, ...] = ()  # words and numbers that mean nothing, where the line makes sense without them
    misread: tuple[tuple[int, int], ...] = ()  # where words begin and end that were not understood


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of the table."""

    title: str  # what stands over it
    better: int = 0  # -1 where less is better, 1 where more is, 0 where neither
    is_number: bool = True  # whether it stands at the right
    rank: int = ALWAYS  # ``ALWAYS`` where it is never left out for want of room; of the others the highest goes first
    help: str = ""  # what it means
    unit: str = ""  # of the numbers in it


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table that is only looked at."""

    cells: tuple[str, ...]  # what it has in each column
    stands_out: bool = False  # whether it is one to look at first


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below the heads of their columns, and sentences below them."""

    columns: tuple[TableColumn, ...] = ()  # in their order
    rows: tuple[TableRow, ...] = ()  # in their order
    remarks: tuple[str, ...] = ()  # what to know of them; in their place where there are none


NO_ROWS = Table()


@dataclass(frozen=True, slots=True)
class Cell:
    """What a row has in one column."""

    text: str  # as shown
    number: float | None = None  # by what it is sorted and drawn; None where it is by its text, or is not known


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One plan that was found."""

    change: Mapping[str, object] = field(hash=False)  # what makes it of the plan that was asked about
    verdict: Verdict  # whether it fits
    cells: tuple[Cell, ...]  # what it has in each column
    about: tuple[str, ...] = ()  # all that it sets, and its ranges, a line each
    surpassed: int | None = None  # index of a row that is better in all that was weighed, None where there is none
    # all there is to say of it, its figures to be opened; None where there is no more than ``about``
    page: ExplanationText | None = None

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows, in an older answer too."""
        return tuple((name, str(value)) for name, value in self.change.items())


@dataclass(frozen=True, slots=True)
class Results:
    """The best so far, or at the end."""

    columns: tuple[TableColumn, ...]  # of the table
    rows: tuple[ResultRow, ...]  # the best first
    evaluated: int
    fitting: int  # plans that fit and keep the limits
    seconds: float  # how long it took until now
    excluded: tuple[Rejected, ...] = ()  # what rules excluded
    missed: tuple[Rejected, ...] = ()  # what memory or a limit excluded, most first
    is_complete: bool = True  # whether all was tried
    share: float = 1.0  # how much of it was tried, 1 for all
    weighed: tuple[int, int] | None = None  # indices of the two columns that are drawn against each other
    front: frozenset[int] = frozenset()  # indices of rows that no other surpasses in these
    remarks: tuple[str, ...] = ()  # what else to know, the most important first
    order: str = "goal"  # what rows are in the order of
    # what explains and exports them; None where nothing does
    source: ResultSource | None = field(default=None, compare=False, repr=False)


class ResultSource(Protocol):
    """An answer that can say where its figures come from, and leave the program; both are asked for in a thread."""

    def explained(self, row: ResultRow, key: str) -> ExplanationText:
        """Return where a figure of a row comes from; refused with a ``CapacityError`` where that is not known."""

    def exports(self) -> tuple[Export, ...]:
        """Return every form in which the rows can leave the program."""


class Question(Protocol):
    """What is searched for around one plan; immutable."""

    @property
    def given(self) -> Mapping[str, str]:
        """What the user said of it, by the keys of its fields."""

    def fields(self) -> tuple[Field, ...]:
        """Return its parts, each with what it is now; quick.

        The choices of a text are what steps go through.
        """

    def edited(self, key: str, text: str) -> Question:
        """Return the question with one part said otherwise, an empty one takes it back; CapacityError for nonsense."""

    def command(self) -> str:
        """Return the command that asks the same."""

    def answer(self, report: Callable[[Results], object], stopped: Callable[[], bool]) -> Results:
        """Search; return the best there is, or was when it was stopped."""


@dataclass(frozen=True, slots=True)
class Export:
    """A form in which a plan can leave the program."""

    title: str  # what it is called
    detail: str  # what is in it
    files: Mapping[str, str] = field(hash=False)  # texts by the names of their files
    folder: str = ""  # where several files go; empty for a single file
    # keeps in the history what was exported, at the place that the settings name; returns what to tell of that
    keep: Callable[[str], str] | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """All of it as one text; of several files each below its name."""
        if not self.folder:
            return "".join(self.files.values())
        return "\n".join(f"# {name}\n{text}" for name, text in self.files.items())

    @property
    def name(self) -> str:
        return self.folder or next(iter(self.files))
