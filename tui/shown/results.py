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


ALWAYS = 0
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
    """One line of the configuration.

    Attributes:
        key: dotted path in the plan, such as ``training.micro_batch``.
        label: what the line is called.
        group: heading under which it stands.
        text: its value as shown, without the unit.
        value: its value as a number, where it has one; None while it is automatic.
        unit: unit shown behind the value.
        kind: how it is stepped and typed.
        minimum: smallest value allowed, if bounded.
        maximum: largest value allowed, if bounded.
        step: the difference of one step of an integer or number.
        choices: the values allowed, of a choice.
        catalogue: name of the catalogue to pick from, or empty.
        can_be_auto: whether the three modes may choose the value.
        is_auto: whether they do.
        help: what the field means and why it matters.
        idle: why it changes nothing in this plan; empty where it may.
        words: a few words for each choice that has any.
        synonyms: other words under which people look for it.
        is_main: whether it is shown before all fields are asked for: it moves figures most, or was set.
    """

    key: str
    label: str
    group: str
    text: str
    value: float | None = None
    unit: str = ""
    kind: Kind = Kind.TEXT
    minimum: float | None = None
    maximum: float | None = None
    step: float = 1
    choices: tuple[str, ...] = ()
    catalogue: str = ""
    can_be_auto: bool = False
    is_auto: bool = False
    help: str = ""
    idle: str = ""
    words: Mapping[str, str] = field(default_factory=dict, hash=False)
    synonyms: tuple[str, ...] = ()
    is_main: bool = True


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
    """The largest model of one way to use hardware.

    Attributes:
        way: what is done and how.
        model: its name.
        room: how it fits, in words.
        share: how much of the memory it takes.
        speed: how fast it is.
        is_comfortable: whether there is room to spare.
        change: what makes the plan one of it.
    """

    way: str
    model: str
    room: str
    share: str
    speed: str
    is_comfortable: bool
    change: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the word under the cursor of a line may become.

    Attributes:
        word: the whole word.
        kind: what it is, as ``model``.
        line: the line with it.
        cursor: where the cursor stands then.
    """

    word: str
    kind: str
    line: str
    cursor: int


@dataclass(frozen=True, slots=True)
class Understood:
    """What one line was taken for.

    Attributes:
        words: the same in a few words; empty where nothing was understood.
        guesses: what was guessed, and why.
        faults: what was not understood, and what to do.
        suggestions: what the word under the cursor may become.
        unknown: words that mean nothing, where the line makes sense without them.
        misread: where words begin and end that were not understood.
    """

    words: str
    guesses: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    unknown: tuple[str, ...] = ()
    misread: tuple[tuple[int, int], ...] = ()


"""Rank of what is never left out for want of room."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of the table.

    Attributes:
        title: what stands over it.
        better: -1 where less is better, 1 where more is, 0 where neither.
        is_number: whether it stands at the right.
        rank: ``ALWAYS`` where it is never left out for want of room; of the others the highest goes first.
        help: what it means.
        unit: of the numbers in it.
    """

    title: str
    better: int = 0
    is_number: bool = True
    rank: int = ALWAYS
    help: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table that is only looked at.

    Attributes:
        cells: what it has in each column.
        stands_out: whether it is one to look at first.
    """

    cells: tuple[str, ...]
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below the heads of their columns, and sentences below them.

    Attributes:
        columns: in their order.
        rows: in their order.
        remarks: what to know of them; in their place where there are none.
    """

    columns: tuple[TableColumn, ...] = ()
    rows: tuple[TableRow, ...] = ()
    remarks: tuple[str, ...] = ()


NO_ROWS = Table()


@dataclass(frozen=True, slots=True)
class Cell:
    """What a row has in one column.

    Attributes:
        text: as shown.
        number: by what it is sorted and drawn; None where it is by its text, or is not known.
    """

    text: str
    number: float | None = None


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One plan that was found.

    Attributes:
        change: what makes it of the plan that was asked about.
        verdict: whether it fits.
        cells: what it has in each column.
        about: all that it sets, and its ranges, a line each.
        surpassed: index of a row that is better in all that was weighed, None where there is none.
        page: all there is to say of it, its figures to be opened; None where there is no more than ``about``.
    """

    change: Mapping[str, object] = field(hash=False)
    verdict: Verdict
    cells: tuple[Cell, ...]
    about: tuple[str, ...] = ()
    surpassed: int | None = None
    page: ExplanationText | None = None

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows, in an older answer too."""
        return tuple((name, str(value)) for name, value in self.change.items())


@dataclass(frozen=True, slots=True)
class ExcludedPlans:
    """What one rule excluded, or what one limit is missed by.

    Attributes:
        rule: the rule or limit in words.
        count: how many plans.
        example: one of them.
    """

    rule: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Results:
    """The best so far, or at the end.

    Attributes:
        columns: of the table.
        rows: the best first.
        tried: plans that were tried.
        fitting: plans that fit and keep the limits.
        seconds: how long it took until now.
        excluded: what rules excluded.
        missed: what memory or a limit excluded, most first.
        is_complete: whether all was tried.
        share: how much of it was tried, 1 for all.
        weighed: indices of the two columns that are drawn against each other.
        front: indices of rows that no other surpasses in these.
        remarks: what else to know, the most important first.
        order: what rows are in the order of.
        source: what explains and exports them; None where nothing does.
    """

    columns: tuple[TableColumn, ...]
    rows: tuple[ResultRow, ...]
    tried: int
    fitting: int
    seconds: float
    excluded: tuple[ExcludedPlans, ...] = ()
    missed: tuple[ExcludedPlans, ...] = ()
    is_complete: bool = True
    share: float = 1.0
    weighed: tuple[int, int] | None = None
    front: frozenset[int] = frozenset()
    remarks: tuple[str, ...] = ()
    order: str = "goal"
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
        """Return the question with one part said otherwise; an empty text takes it back.

        Raises:
            CapacityError: the text makes no sense there.
        """

    def command(self) -> str:
        """Return the command that asks the same."""

    def answer(self, report: Callable[[Results], object], stopped: Callable[[], bool]) -> Results:
        """Search; return the best there is, or was when it was stopped.

        Args:
            report: called with the best so far, a few times a second.
            stopped: whether to search on.

        Raises:
            CapacityError: the question cannot be answered for this plan.
        """


@dataclass(frozen=True, slots=True)
class Export:
    """A form in which a plan can leave the program.

    Attributes:
        title: what it is called.
        detail: what is in it.
        files: texts by the names of their files.
        folder: where several files go; empty for a single file.
        keep: keeps in the history what was exported, at the place that the settings name; returns what to tell of that.
    """

    title: str
    detail: str
    files: Mapping[str, str] = field(hash=False)
    folder: str = ""
    keep: Callable[[str], str] | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """All of it as one text; of several files each below its name."""
        if not self.folder:
            return "".join(self.files.values())
        return "\n".join(f"# {name}\n{text}" for name, text in self.files.items())

    @property
    def name(self) -> str:
        """What the file or folder is called."""
        return self.folder or next(iter(self.files))
