"""Law and deduplication of a corpus, counted level by level in one pass over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property
from itertools import takewhile

import numpy as np

from capacity_tui.engine.errors import Place, PlanError, StorageError
from capacity_tui.engine.estimate import formula
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage.corpus import NUMBER_TYPES, Chunks, Corpus, Counter, Read, Sentences, Tally
from capacity_tui.engine.storage.pattern_store import MOST_LEVELS, PatternQuestion, held_at
from capacity_tui.engine.storage.zipf import LawFit, fit_law

TIMES = (10.0, 100.0, 1000.0)  # How many times the text there is, deduplication is given for
_ROWS_A_DECADE = 8
_LEAST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class FitQuestion:
    """How a corpus is cut and counted."""

    chunk: int = 15  # tokens of a pattern of the first level
    levels: int = 4  # how many there are
    fan_in: int | None = None  # patterns of a level in one of the next; None for as many as a chunk has tokens
    kept: int = 1 << 20  # different patterns of a level that are counted exactly; of more, a sample is
    numbers: str | None = None  # type of the numbers in files that hold tokens as numbers

    def check(self) -> None:
        """Refuse what makes no sense; raises PlanError if a number is out of its range."""
        ranges = {
            "chunk": (1, 1 << 20),
            "levels": (1, MOST_LEVELS),
            "fan_in": (2, 1 << 20),
            "kept": (_LEAST_KEPT, 1 << 28),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise PlanError(f"{name.replace('_', ' ')} out of range", str(value), f"from {low} to {high}")
        if self.numbers not in (None, *NUMBER_TYPES):
            raise PlanError("no type of numbers", str(self.numbers), f"one of {', '.join(NUMBER_TYPES)}")


@dataclass(frozen=True, slots=True)
class RankRow:
    """How often the thing of a rank came, and how often the law has it."""

    rank: int
    count: int
    fitted: float


@dataclass(frozen=True)
class LevelFit:
    """What was counted at one level."""

    name: str  # ``tokens``, ``node0`` and so on, or ``sentences``
    holds: str  # what its patterns are in a text
    tally: Tally  # the counts

    @property
    def deduplication(self) -> float:
        """Share of the patterns that repeat an earlier one."""
        return 1.0 - self.tally.distinct / self.tally.occurrences

    @cached_property
    def law(self) -> LawFit:
        """The likeliest law of the counts."""
        return fit_law(self.tally)

    def deduplication_at(self, times: float) -> float | None:
        """Return the share that the law has repeated in so many times the text; None where no law holds."""
        if not self.law.holds:
            return None
        occurrences = times * self.tally.occurrences
        return 1.0 - float(self.law.distinct(occurrences)) / occurrences

    def ranks(self) -> Iterator[RankRow]:
        """Yield ranks of even distance in their logarithm, down to the last."""
        last = len(self.tally.counts)
        through = np.cumsum(self.tally.stands_for)
        decades = np.log10(max(through[-1], 1.0))
        wanted = np.unique(np.round(np.geomspace(1, through[-1], int(decades * _ROWS_A_DECADE) + 2)))
        for place in np.unique(np.minimum(np.searchsorted(through, wanted), last - 1)):
            rank = round(float(through[place]))
            yield RankRow(rank, int(self.tally.counts[place]), float(self.law.fitted(float(rank))))


@dataclass(frozen=True, slots=True)
class CorpusFit:
    """What a corpus is like."""

    question: FitQuestion  # how it was cut
    read: Read
    complete: bool  # whether all of it was
    tokens: LevelFit  # its words and signs, or numbers
    levels: tuple[LevelFit, ...]  # patterns, from chunks on
    sentences: LevelFit | None  # the text cut at full stops instead; None for numbers

    @property
    def mean_tokens(self) -> float:
        """Tokens of a document."""
        return self.tokens.tally.occurrences / max(self.read.documents, 1)

    def storage_question(self) -> PatternQuestion:
        """Return what to ask of the storage of these texts.

        Laws are those of the first levels, up to one where none holds; the last then stands for those above.
        """
        question = self.question
        laws = [level.law for level in takewhile(lambda level: level.law.holds, self.levels)]
        return PatternQuestion(
            float(self.read.documents),
            self.mean_tokens,
            question.chunk,
            question.levels,
            question.fan_in,
            tuple(law.alpha for law in laws),
            tuple(level.deduplication for level in self.levels),
            kinds=tuple(law.kinds for law in laws) if len(laws) == len(self.levels) else (),
        )


@dataclass(slots=True)
class _Counted:
    """A level while it is counted: what cuts for it, and what counts its pieces."""

    name: str
    holds: str
    cutter: Chunks | Sentences | None
    counter: Counter = field(repr=False)

    def fit(self) -> LevelFit:
        return LevelFit(self.name, self.holds, self.counter.tally())


def fit_corpus(
    source: str,
    question: FitQuestion,
    callback: Callable[[Read], object] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> CorpusFit:
    """Count the patterns of a text, level by level, in one pass and in bounded memory.

    Every document is cut from its own beginning; what is left at its end is a shorter pattern at each level.

    Args:
        source: a file, a folder of files, or ``-`` for standard input.
        callback: called after each block with what was read.

    Raises:
        PlanError: the question makes no sense.
        StorageError: there is nothing to read, or it cannot be read.
    """
    question.check()
    corpus = Corpus(source, question.numbers)
    tokens = _Counted("tokens", "tokens", None, Counter(question.kept))
    widths = [question.chunk, *[question.fan_in or max(question.chunk, 2)] * (question.levels - 1)]
    levels = [
        _Counted(f"node{number}", holds, Chunks(width), Counter(question.kept))
        for number, (width, holds) in enumerate(zip(widths, map(held_at, range(MOST_LEVELS)), strict=False))
    ]
    sentences = _Counted("sentences", "sentences", Sentences(corpus.sentence_ends), Counter(question.kept))
    complete = True
    for block, ends in corpus.blocks():
        values = block
        tokens.counter.add(values)
        if corpus.has_sentences and sentences.cutter is not None:
            sentences.counter.add(sentences.cutter.cut(values, ends))
        for level in levels:
            if level.cutter is not None:
                values = level.cutter.cut(values, ends)
                level.counter.add(values)
        if callback is not None:
            callback(corpus.read)
        if stopped():
            complete = False
            break
    fitted = [token.fit() for token in (tokens, *levels, sentences)]
    if not all(entry.tally.occurrences for entry in fitted[:-1]):
        raise StorageError(
            "holds no text" if complete else "nothing was counted yet",
            hint="name text, JSON lines or .npy files; --numbers for others that hold tokens as numbers",
            place=Place(source),
        )
    return CorpusFit(
        question, corpus.read, complete, fitted[0], tuple(fitted[1:-1]), fitted[-1] if corpus.has_sentences else None
    )


deduplication_at_level = formula()  # Share of the patterns of a level that repeat an earlier one
unique_patterns = formula()  # Patterns of a level that a store keeps
pieces_of = formula()
pattern_bytes = formula()
stored_bytes = formula()
deduplication_of_length = formula()  # Share of pieces of some length that repeat an earlier one
