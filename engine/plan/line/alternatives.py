"""Lines that one line compares: ``h100 vs a100 for llama 8b`` is one for each device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.model_words import is_size
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import OneLine
from capacity_tui.engine.plan.line.reading import read_line
from capacity_tui.engine.record import dataclass

_MOST_WORDS = 5  # Words that one of the compared names may have, as in ``rtx 6000 ada``
_JOINTS = frozenset({"with", "to"})  # Between names of a line that says that it compares
_ENDS = ".,;:?!"
_THAN = re.compile(
    r"\b(?:(?:be|is|are|any|much) )*(?:faster|slower|cheaper|better|worse|quicker) than\b"
    r"|\b(?:beats?|outperforms?|than|compared (?:with|to|against))\b",
    re.IGNORECASE,
)
"""Words of a comparison between what it compares: ``2x 3090 be faster than a 4090``."""
_NUMBERS = frozenset({Key.HARDWARE_DEVICES, Key.HARDWARE_PER_NODE, Key.INFERENCE_WEIGHTS, Key.TRAINING_QUANTIZATION})
"""Fields that one of the compared lines may say and the other not, as in ``2 a100 vs h100``."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the lines that a line compares."""

    name: str  # the words that tell it from the others
    text: str  # the line
    before: int = 0  # words of the line that stand before them
    behind: int = 0  # words of the line that stand behind them

    def cuts(self, line: OneLine, *, is_last: bool) -> bool:
        """Whether a model or hardware of the line begins before its name, or of the last line ends behind it."""
        pieces = [(match.start(), match.end()) for match in re.finditer(r"\S+", self.text)]
        at = pieces[-self.behind - 1][1] if is_last else pieces[self.before][0]
        named = (word for word in line.words if {Key.MODEL_NAME, Key.HARDWARE_NAME} & set(word.meaning.values))
        return any(word.start < at < word.end for word in named)


def alternatives(text: str, catalog: Catalog | None = None) -> tuple[Alternative, ...]:
    """Return the lines that a line compares, where it is no plan by itself and all of them are; empty for others.

    The shortest names that make every line a plan are the compared ones.

    Args:
        text: the line.
        catalog: what names stand for; the shipped one with the user's own by default.
    """
    words = _THAN.sub("vs", text).split()
    keys = [key_of(word.rstrip(".,")) for word in words]
    known = vocabulary()
    marks = [at for at, key in enumerate(keys) if key in known.comparing]
    compares = not known.compares.isdisjoint(keys)
    both = [at for at, key in enumerate(keys) if key in known.both and compares]
    marks = marks or both or [at for at, key in enumerate(keys) if key in _JOINTS and compares]
    facts = catalog or load_catalog()

    @cache
    def read(line: str) -> OneLine:
        return read_line(line, facts)

    if not marks or not read(text).faults:
        return ()
    for places in filter(None, (marks, sorted({*marks, *both}) if both else [])):
        alike = (lines for lines in _splits(words, places) if _are_alike(map(read, (line.text for line in lines))))
        if first := next(alike, None):
            return next((lines for lines in (first, *alike) if not _cut_names(lines, read)), first)
    return _otherwise(words, marks[-1], read)


def _splits(words: list[str], marks: list[int]) -> Iterator[tuple[Alternative, ...]]:
    """Yield the lines for names of each length, the shortest first; those between two marks are whole names."""
    first, last = marks[0], marks[-1]
    between = [words[one + 1 : other] for one, other in pairwise(marks)]
    lengths = ((before, behind) for before in range(1, _MOST_WORDS + 1) for behind in range(1, _MOST_WORDS + 1))
    for before, behind in sorted(lengths, key=sum):
        if before > first or last + behind >= len(words) or not all(between):
            continue
        head, tail = words[: first - before], words[last + 1 + behind :]
        names = [words[first - before : first], *between, words[last + 1 : last + 1 + behind]]
        if tail and is_size(tail[0]) and any(is_size(word) for name in names for word in name):
            continue  # llama 3.1 8b vs qwen2.5 7b: the size belongs to the last name
        if is_size(names[-1][0].rstrip(_ENDS)) and not all(is_size(name[0].rstrip(_ENDS)) for name in names):
            continue  # gemma 2 9b or 27b: both are sizes of the name before them
        yield tuple(Alternative(_name(name), " ".join((*head, *name, *tail)), len(head), len(tail)) for name in names)


def _otherwise(words: list[str], mark: int, read: Callable[[str], OneLine]) -> tuple[Alternative, ...]:
    """Return the lines for what stands before the last mark, and for that with what a clause behind it says instead.

    As ``full fine-tune of qwen2.5-14b on 4xA6000, or should I just do lora``.
    """
    first, clause = read(" ".join(words[:mark])), read(" ".join(words[mark + 1 :]))
    instead = [word for word in clause.words if word.meaning.values.keys() - {Key.TASK}]
    paths = {path for word in instead for path in word.meaning.values} - {Key.TASK}
    replaced = [word for word in first.words if paths & word.meaning.values.keys()]
    if not replaced or clause.faults or not paths <= {path for word in replaced for path in word.meaning.values}:
        return ()
    name, text = " ".join(word.text for word in instead), first.text
    for word in reversed(replaced):
        text = f"{text[: word.start]}{name if word is replaced[0] else ''}{text[word.end :]}"
    if not _are_alike([first, read(text)]):
        return ()
    return Alternative(_name([replaced[0].text]), first.text), Alternative(_name([name]), text)


def _name(words: list[str]) -> str:
    """Return how a compared plan may be called: no dots, no article."""
    return re.sub(r"[^\w\s-]+", "-", re.sub(r"^an? ", "", " ".join(words))).strip("- ")


def _are_alike(lines: Iterable[OneLine]) -> bool:
    """Whether lines are plans of the same task that say the same fields, no two of them the same."""
    read: list[OneLine] = []
    for line in lines:
        if line.faults or not line.understood or any(line.task != other.task for other in read):
            return False
        read.append(line)
    fields_of = [_fields(line) for line in read]
    if len({len(line.limits or (line.asked.limits if line.asked else ())) for line in read}) > 1:
        return False
    return all(fields == fields_of[0] for fields in fields_of) and len({str(dict(line.values)) for line in read}) > 1


def _cut_names(lines: tuple[Alternative, ...], read: Callable[[str], OneLine]) -> bool:
    """Whether a name of a model or of hardware goes on beyond what is compared, as in ``h100 pcie vs sxm``."""
    first, last = read(lines[0].text), read(lines[-1].text)
    return lines[0].cuts(first, is_last=False) or lines[-1].cuts(last, is_last=True)


def _fields(line: OneLine) -> set[str]:
    return {str(path) for path in line.values} - {str(path) for path in _NUMBERS}
