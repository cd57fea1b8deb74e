"""A line in words: what they may count, what each of them was taken for, and why; and flags in place of words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import field, replace

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass

# Titles of faults, or what these end in, by which others know what went wrong.
GIVEN_TWICE, REFUSED = "is given twice", "cannot be planned"
WHOSE_MEMORY, OF_WHAT, UNCOUNTED = "whose memory is this?", "a share of what?", "what does this number count?"
NO_LIMIT, UNKNOWN_OPTION = "what does this time limit?", "an option that no tool known here has"
_NOT_KNOWN = "option known here", "options known here"
_COUNTING_NOTHING = (OF_WHAT, UNCOUNTED)


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that nobody gave."""

    key: str  # field of the plan
    value: object  # what was taken; None where nothing can be
    why: str  # why this, and how to say another where that is not plain
    moves: tuple[str, ...] = ()  # result keys of the figures that it moves most


_MODEL, _HARDWARE, _OF_HARDWARE = Key.MODEL_NAME, Key.HARDWARE_NAME, "hardware."


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a word or some words stand for."""

    words: str = ""  # the same for people, as ``sequence 4 096``; empty for words that say nothing
    values: Mapping[str, object] = field(default_factory=dict, hash=False)  # values of a plan by path
    why: str = ""  # why it was guessed; empty where it is what was written
    fault: PlanError | None = None  # why it stands for nothing


@dataclass(frozen=True, slots=True)
class Word:
    """Some characters of the line, and what they stand for."""

    text: str
    start: int
    end: int
    meaning: Meaning

    @property
    def wrong(self) -> str:
        """What is wrong with it, in a few words; empty where nothing is."""
        return "" if self.meaning.fault is None else self.meaning.fault.title

    @classmethod
    def of_line(cls, text: str, why: str) -> Word:
        """Return what there is to know of a line as a whole."""
        return cls("", len(text), len(text), Meaning(why=why))


@dataclass(frozen=True, slots=True)
class Amount:
    """What a number may count."""

    name: str  # for people, as ``sequence``
    fields: Mapping[str, str]  # the field it goes to, by what is done with the model
    # whether its words may stand behind the number: ``only`` there, ``always`` where they do wherever a number is
    # before them, ``either`` where they may begin what follows as well, empty where they only stand before it
    behind: str = ""
    reciprocal: bool = False  # whether the field is one over the number, as a time is of a rate
    per: float = 1.0  # what the number is divided by, as requests a day are for those a second
    most: float = math.inf  # the most that it may count; more are of something else
    beyond: str = ""  # what to write instead of more
    many: str = ""  # the field that more of them go to where they are served, a part at once
    tells: bool = True  # whether its words tell what is done with the model
    hint: str = ""  # what to write instead, of what is told apart by another word
    unit: str = ""  # the amount whose words may stand between the number and these, or behind the number
    billions: bool = False  # whether so many may be counted; elsewhere a number of billions is the size of a model
    fewer: str = ""  # the amount that a number counts in a training which is too small to be this one
    # which words may stand between the number and these: ``plain`` ones, or ``any`` that means nothing
    described: str = ""
    thousands: str = ""  # the amount that a number with k counts beside these words, as in ``4k sequences``
    leading: str = ""  # the amount that a number behind these words counts, where that is another
    assumes: str = ""  # what makes a number of something else of it, for people

    @property
    def is_behind(self) -> bool:
        """Whether its words stand behind the number wherever a number is before them."""
        return self.behind in ("always", "only")

    def field(self, task: str) -> str | None:
        """Return the field of a task; fine-tuning has those of training."""
        return self.fields.get(TRAIN if task == FINETUNE else task)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a line asks that no plan says, answered by solving its plan for a field."""

    solve: str  # the field, as ``hardware.devices``
    limits: tuple[str, ...] = ()  # what must hold, as ``time<=30d``
    goal: str = ""  # what the best has least or most of; empty for what is usual of the field
    why: str = ""  # the same for people
    clouds: tuple[str, ...] = ()  # providers whose machines are asked for; empty for all
    models: tuple[str, ...] = ()  # ids of which one is asked for, the largest first; empty for usual ones


@dataclass(frozen=True, slots=True)
class OneLine:
    """A line that was read."""

    text: str  # the line
    task: str  # what is done: train, finetune, infer or fit
    words: tuple[Word, ...]  # its words in order
    assumed: tuple[Assumption, ...]  # what nobody said, with the reason
    values: Mapping[str, object] = field(hash=False)  # values of a plan by path
    faults: tuple[PlanError, ...] = ()  # what could not be understood, or contradicts itself
    unknown: tuple[str, ...] = ()  # words that mean nothing here, which the last of the faults names
    asked: Asked | None = None  # what no plan says; None where the line is a plan
    limits: tuple[str, ...] = ()  # what must hold that nothing is asked with, as ``time<=30d``
    unanswered: tuple[str, ...] = ()  # what is asked for that nothing is solved for
    has_given_way: bool = False  # whether what it tells gave way to what it asks about

    @property
    def understood(self) -> str:
        """What was understood, in a few words."""
        return " · ".join(word.meaning.words for word in self.words if word.meaning.words)

    @property
    def guesses(self) -> tuple[str, ...]:
        """What was guessed and why, then what nobody said."""
        return (*self.remarks, *self.readings, *dict.fromkeys(entry.why for entry in self.assumptions))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of words that no plan can follow."""
        whys = (word.meaning.why for word in self.words if word.meaning.why and not word.meaning.values)
        return tuple(dict.fromkeys(whys))

    @property
    def readings(self) -> tuple[str, ...]:
        """What numbers were taken to count that do not say it."""
        bare = (word.meaning for word in self.words if _is_bare(word))
        return tuple(meaning.why for meaning in bare if meaning.why and meaning.values)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What was guessed of its words, then what nobody said."""
        guessed = (
            Assumption(path, value, word.meaning.why)
            for word in self.words
            if word.meaning.why and not _is_bare(word)
            for path, value in word.meaning.values.items()
        )
        return (*guessed, *self.assumed)

    @property
    def meaningless(self) -> tuple[str, ...]:
        """Words and numbers that mean nothing here, in order; empty where anything else is wrong too."""
        words = [word for word in self.words if word.text in self.unknown or word.wrong in _COUNTING_NOTHING]
        return () if self.without(words).faults else tuple(dict.fromkeys(word.text for word in words))

    def without_meaningless(self) -> OneLine:
        """Return the line without the words and numbers that mean nothing here, which is remarked."""
        without = self.meaningless
        return self.without([word for word in self.words if word.text in without and word.meaning.fault is not None])

    @property
    def fault_of_unknown(self) -> PlanError | None:
        """The fault that names the unknown words; None where there are none."""
        return next((fault for fault in self.faults if fault.title.endswith(_NOT_KNOWN)), None)

    def without(self, words: Collection[Word]) -> OneLine:
        """Return the line without some words and what is wrong with them, which is remarked before all else."""
        if not words:
            return self
        texts = dict.fromkeys(_detail(word) for word in words)
        unknown = tuple(text for text in self.unknown if all(word.text != text for word in words))
        gone = {word.meaning.fault for word in words}
        faults = (fault for fault in self.faults if fault not in gone)
        kept = tuple(fault for fault in faults if unknown or not fault.title.endswith(_NOT_KNOWN))
        left_out = Word("", 0, 0, Meaning(why=f"not understood, and left out: {', '.join(texts)}"))
        rest = (word for word in self.words if word not in words)
        return replace(self, words=(left_out, *rest), faults=kept, unknown=unknown)

    def has(self, path: str) -> bool:
        """Whether the line says anything of a field."""
        return path in self.values

    def changed_by(self, other: OneLine) -> OneLine:
        """Return the line with what another one says in place of what it says itself of the same.

        Other hardware takes the place of all that was said of hardware.
        """

        def is_replaced(path: str) -> bool:
            return other.has(path) or (other.has(_HARDWARE) and path.startswith(_OF_HARDWARE))

        left = {path: value for path, value in self.values.items() if not is_replaced(path)}
        words = (
            word for word in self.words if not word.meaning.values or not all(map(is_replaced, word.meaning.values))
        )
        return OneLine(
            f"{self.text} {other.text}".rstrip(),
            str(other.values.get(Key.TASK, self.task)),
            (*words, *other.words),
            self.assumed,
            {**left, **other.values},
            (*self.faults, *other.faults),
            self.unknown,
            None if self.asked is not None and other.has(self.asked.solve) else self.asked,
            (*self.limits, *other.limits),
        )


def _detail(word: Word) -> str:
    """Return a word that means nothing, with what stands behind a number."""
    fault = word.meaning.fault
    return str(fault.detail) if fault is not None and fault.title in _COUNTING_NOTHING else word.text


def _is_bare(word: Word) -> bool:
    """Whether a word is a number whose meaning its size says, as in ``4k``."""
    return word.text[:1].isdigit() and _MODEL not in word.meaning.values and _HARDWARE not in word.meaning.values


TRAIN, FINETUNE, INFER, FIT = "train", "finetune", "infer", "fit"
SHORTEST = 5  # Letters of an adverb of time, as of ``daily``: any is not ``an y``


@dataclass(frozen=True, slots=True)
class PlanFlags:
    """Flags as somebody gave them; None where they were not given."""

    model: str | None = None  # a model's name, or its size
    task: str | None = None  # train, full, lora, qlora, dora, infer or fit
    gpu: str | None = None  # hardware with its number, as ``8xH100-SXM``
    seq: str | None = None  # tokens of one sequence
    tokens: str | None = None  # of the whole job
    imports: tuple[str, ...] = ()  # configurations of other tools, by file or folder
    stand_in: bool = False  # whether a usual model of the same size stands in for one that is not known
    leave_out: bool = False  # whether words and numbers that mean nothing are left out of a line

    @property
    def is_given(self) -> bool:
        """Whether any flag was given that changes a plan."""
        return any((self.model, self.task, self.gpu, self.seq, self.tokens))


@dataclass(frozen=True, slots=True)
class Currency:
    """Money that is no dollars, and what it was worth on some day."""

    name: str  # of one, as ``euro``
    usd: float  # dollars of one
    source: str  # whose rate that is, and of which day
    words: tuple[str, ...]  # what is written beside a sum of it


@dataclass(frozen=True, slots=True)
class Sight:
    """What a language model makes of a picture."""

    source: str
    side: int = 0  # pixels a side of what one token stands for; 0 where every picture has as many tokens
    tokens: int = 0  # of every picture, or of each tile of one
    tile: int = 0  # pixels a side of a tile; 0 where a picture is one
    most: int = 1  # tiles of a picture, beside which a small one of the whole is read

    def tokens_of(self, width: int, height: int) -> int:
        """Return the tokens of a picture of so many pixels; 0 where they are needed and not given."""
        if self.side:
            return math.prod(round(pixels / self.side) or 1 for pixels in (width, height)) if width else 0
        if not self.tile:
            return self.tokens
        tiles = min(
            math.prod(max(round(pixels / self.tile), 1) for pixels in (width, height)) if width else 0, self.most
        )
        return self.tokens * (tiles + int(tiles > 1))
