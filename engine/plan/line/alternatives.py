"""Lines that one line compares: ``h100 vs a100 for llama 8b`` is one for each device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.compared_settings import choices, needed_or_not, says_to_compare, with_and_without
from capacity_tui.engine.plan.line.lexicon.hardware_words import figures_of, named_hardware
from capacity_tui.engine.plan.line.lexicon.model_words import is_size
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, sum_of
from capacity_tui.engine.plan.line.lexicon.setting_words import amount_of, is_time
from capacity_tui.engine.plan.line.lexicon.similarity import ONE_OF, joined_names
from capacity_tui.engine.plan.line.lexicon.tokens import LONGEST_LINE, split
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import GIVEN_TWICE, OneLine, Word
from capacity_tui.engine.plan.line.reading import read_line
from capacity_tui.engine.plan.line.recognition.derived_values import WITH_OR_WITHOUT
from capacity_tui.engine.record import dataclass

_MOST_WORDS = 6  # Words that one of the compared names may have, as in ``1 x rtx 6000 pro 96gb``
_LONGEST_COUNT = 3  # Digits of a number that is a setting's rather than a device, as ``3090`` is
_JOINTS = frozenset({"with", "to"})  # Between names of a line that says that it compares
_NUMBER = re.compile(r"\d[\d.,]*[kmb]?(?=\b|x)", re.IGNORECASE)
_COUNT, _COUNTS = re.compile(r"\d+[x×*]"), re.compile(r"\d{1,3}/\d{1,3}")  # 4/8 a100
_ENDS = ".,;:?!"
_UNIT_BEHIND = re.compile(r"(?<!\S)(\d{1,3})(?= (?:or|vs|versus) \d+([gt]b?|[kmb])\b)", re.IGNORECASE)  # 24 or 48gb
_SIZE_APART = re.compile(r"(?<=\d) (?=[gt]b\b)", re.IGNORECASE)  # 6 GB or 4 GB
_CHOICE = re.compile(r",? (?:or|rather than|instead of|in place of) (?:with |in |on |an? )?", re.IGNORECASE)
_OVER = re.compile(r"\bover(?=.* worth)", re.IGNORECASE)  # Is a 4090 over a 3090 worth it
_MEMORY_BEHIND = re.compile(r"^\s*\(?\d+\s?gb?\b\)?(?:\s*vram\b)?", re.IGNORECASE)  # gtx 1660 super 6gb
_NAMES = frozenset({Key.MODEL_NAME, Key.HARDWARE_NAME})
_TWICE, _NO_FAULT = frozenset(f"{name} {GIVEN_TWICE}" for name in _NAMES), PlanError("")
_AGAIN = frozenset({*_TWICE, f"{Key.HARDWARE_DEVICES} {GIVEN_TWICE}"})
_HARDWARE, _CORES = "hardware", f"{OWN_PARAMETERS}n_jobs"  # Cores that an algorithm runs on
_NUMBERS = frozenset(
    {
        *(Key.INFERENCE_WEIGHTS, Key.TRAINING_QUANTIZATION, Key.PRICING_USD_PER_HOUR),
        *(Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP, Key.PARALLELISM_DP),
    }
)
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
        at = self._place()[is_last]
        return any(word.start < at < word.end for word in line.words if not _NAMES.isdisjoint(word.meaning.values))

    def names(self, line: OneLine, *, is_inside: bool) -> set[str]:
        """Return which of model and hardware the line has in its name, or around it."""
        start, end = self._place()
        named = [word for word in line.words if (start <= word.start < end) is is_inside]
        is_processor = any(key_of(word.text) in vocabulary().processor for word in named)  # lightgbm cpu
        paths = {path for word in named for path in _NAMES & word.meaning.values.keys()}
        return paths | ({Key.HARDWARE_NAME} if is_processor else set())

    def _place(self) -> tuple[int, int]:
        """Return where its name begins and ends in the line."""
        pieces = [(match.start(), match.end()) for match in re.finditer(r"\S+", self.text)]
        return pieces[self.before][0], pieces[-self.behind - 1][1]


def alternatives(text: str, catalog: Catalog | None = None, whole: OneLine | None = None) -> tuple[Alternative, ...]:
    """Return the lines that a line compares, where it is no plan by itself and all of them are; empty for others.

    The shortest names that make every line a plan are the compared ones.

    Args:
        text: the line.
        catalog: what names stand for; the shipped one with the user's own by default.
        whole: the same line as it was read; read here by default.
    """
    if len(text) > LONGEST_LINE:
        return ()
    facts = catalog or load_catalog()

    @cache
    def read(line: str) -> OneLine:
        return read_line(line, facts, is_settled=False)

    if whole is None or whole.has_given_way:
        whole = read(text)
    lines = _compared(text, whole, facts, read)
    listed = _with_list(text, whole) if whole.faults and not lines else text
    return lines if listed == text else _compared(listed, whole, facts, read)


def _compared(text: str, whole: OneLine, catalog: Catalog, read: Callable[[str], OneLine]) -> tuple[Alternative, ...]:
    """Return the lines that a line compares, which was read as a whole."""
    for name in (*whole.unknown, *(str(fault.detail) for fault in whole.faults if fault.title == ONE_OF)):
        text = _with_choice(name, text, catalog)
    text = _whether_else().sub(" or ", text) if any(fault.title in _AGAIN for fault in whole.faults) else text
    text = _SIZE_APART.sub("", _than().sub("vs", _OVER.sub("vs", text)))
    words = _UNIT_BEHIND.sub(r"\1\2", text).split()
    keys = [key_of(word.rstrip(".,")) for word in words]
    known, compares = vocabulary(), says_to_compare(text)
    marks = [at for at, key in enumerate(keys) if key in known.comparing]
    both = [at for at, key in enumerate(keys) if key in known.both and compares]
    marks = marks or both or [at for at, word in enumerate(words) if _joins_sizes(words, at)]
    marks = marks or [at for at, key in enumerate(keys) if key in _JOINTS and compares]
    if (fault := next((fault for fault in whole.faults if fault.title == WITH_OR_WITHOUT), None)) is not None:
        return _settings(needed_or_not(whole, str(fault.detail), read))
    if marks and not whole.faults and _counts_otherwise(words, marks[-1], whole):
        return _recounted(words, marks[-1], read)
    far = {word.rstrip(_ENDS) for at, word in enumerate(words) if all(abs(at - mark) > _MOST_WORDS for mark in marks)}
    is_wrong = bool(marks) and not far.isdisjoint(read(text).unknown)  # in all of them
    if not marks or is_wrong or not (whole.faults or _joins_values(whole)):
        return ()
    if pair := _resized(words, marks[-1], read) or _settings(with_and_without(words, marks[-1], read)):
        return pair
    every = sorted({*marks, *both}) if both else []
    for places, is_other_size in ((marks, False), *([(every, False)] if every else []), (marks, True)):
        splits = _splits(words, places, is_other_size=is_other_size)
        alike = (lines for lines in splits if _are_alike(map(read, (line.text for line in lines))))
        if first := next(alike, None):
            return next((lines for lines in (first, *alike) if not _cut_names(lines, read)), first)
    return _otherwise(words, marks[-1], read) or _recounted(words, marks[-1], read)


def _settings(compared: Iterable[tuple[str, str]]) -> tuple[Alternative, ...]:
    return tuple(Alternative(_name(name.split()), line) for name, line in compared)


def _with_list(text: str, line: OneLine) -> str:
    """Return a line with ``or`` for the commas of a list whose names are too many for one plan: ``h100, a100, l40s``.

    Sizes behind one name are a list too, as ``llama-2 7b, 13b, 70b``.
    """
    listed = choices(text)
    twice = [word for word in line.words if (word.meaning.fault or _NO_FAULT).title in _TWICE]
    for word in twice if listed == text == line.text else ():
        listed = re.sub(rf",\s*(?:and |or )?(?={re.escape(word.text)}(?!\w))", " or ", listed, count=1)
    return listed


def _with_choice(name: str, text: str, catalog: Catalog) -> str:
    """Return a line with ``or`` for a slash between formats, sizes or devices: ``q4_k_m/q6_k``, ``2x h100/a100``."""
    choice = re.sub(r"^\d+[x×*]", "", name).rstrip(_ENDS)  # 8*a100/h100
    parts = joined_names(choice, catalog) or tuple(choice.split("/") if _COUNTS.fullmatch(choice) else ())
    are_devices = bool(parts) and named_hardware(parts[0], catalog) is not None
    match = re.search(rf"(\d+\s*[x×*]\s*|\d+\s+)?{re.escape(choice)}(\s*[x×*]\s*\d)?", text)
    is_counted = match is not None and (bool(match[2]) or (match[1] or "").strip().isdecimal())
    if not parts or match is None or (are_devices and is_counted):  # llama 3 h100/a100
        return text
    count = (match[1] or "") if are_devices else ""
    counted = [part if _COUNT.match(part) else f"{count}{part}" for part in parts]  # 2x4090/2x3090
    return text.replace(match[0] if are_devices else choice, " or ".join(counted))


def _splits(words: list[str], marks: list[int], *, is_other_size: bool = False) -> Iterator[tuple[Alternative, ...]]:
    """Yield the lines for names of each length, the shortest first; those between two marks are whole names.

    Args:
        words: of the line.
        marks: where those stand that compare.
        is_other_size: whether a size alone may stand for a model beside another name, as in ``mixtral 8x7b or 34b``.
    """
    first, last = marks[0], _before_name(words, marks[-1])
    between = [words[_before_name(words, one) + 1 : other] for one, other in pairwise(marks)]
    lengths = ((before, behind) for before in range(1, _MOST_WORDS + 1) for behind in range(1, _MOST_WORDS + 1))
    for before, behind in sorted(lengths, key=sum):
        if before > first or last + behind >= len(words) or not all(between):
            continue
        head, tail = words[: first - before], words[last + 1 + behind :]
        whether = (few for few in (5, 4, 3, 2) if key_of("".join(head[-few:])) in vocabulary().whether["before"])
        head = head[: -next(whether, 0) or None]  # should i use awq or gptq
        names = [words[first - before : first], *between, words[last + 1 : last + 1 + behind]]
        is_over = any(word.endswith((".", "?", "!", ";")) for name in names for word in name[:-1])  # a cpu? For a
        if is_over or _are_parted_from_providers(names, [*head, *tail]):
            continue  # runpod 4090 vs lambda a100
        is_bought = _is_price(words[first - 1 :], is_sum=True)  # 3090 for $800 or 4090 for $2755
        is_number_cut = bool(head) and head[-1].isdecimal()  # 32 cores or one t4
        if is_number_cut and len({amount_of(name[0].rstrip(_ENDS)) is None for name in names}) > 1:
            continue
        if tail and (figures_of(tail[0].rstrip(_ENDS)) or _is_price(tail, is_sum=is_bought)):
            continue  # 4090 or a100 80gb; 5090s or an a100 at $1.60/h
        if _goes_on(tail):
            continue  # m2 macbook air 16gb
        is_other = bool(tail) and is_size(tail[0]) and any(is_size(word) for name in names for word in name)
        plain = [name[0].rstrip(_ENDS) if len(name) == 1 else "" for name in names]
        if is_other or len({name.isdecimal() and len(name) <= _LONGEST_COUNT for name in plain}) > 1:
            continue  # llama 3.1 8b vs qwen2.5 7b: a size of the last name; pp 4 dp 2 vs tp 8; batch 8, or a 4090
        is_size_last = is_size(names[-1][0].rstrip(_ENDS))
        if is_size_last and is_other_size is all(is_size(name[0].rstrip(_ENDS)) for name in names):
            continue  # gemma 2 9b or 27b: both are sizes of the name before them
        yield tuple(Alternative(_name(name), " ".join((*head, *name, *tail)), len(head), len(tail)) for name in names)


def _goes_on(tail: list[str]) -> bool:
    """Whether words behind names that are compared belong to the last one: an edition, a kind of machine."""
    words, keys = vocabulary(), [key_of(word.rstrip(_ENDS)) for word in tail]
    parts = words.editions | words.portable | words.cases | words.machines.keys()
    few = next((at for at, key in enumerate(keys) if key not in parts), len(keys))
    has_figure = few < len(tail) and figures_of(tail[few].rstrip(_ENDS)) is not None
    return few > 0 and (has_figure or keys[0] not in words.queries)


def _are_parted_from_providers(names: list[list[str]], others: list[str]) -> bool:
    """Whether some names have a provider that others have around them, or some of them are a provider alone."""
    clouds = vocabulary().clouds.keys()
    known = [[key_of(word.rstrip(_ENDS)) in clouds for word in name] for name in (*names, others)]
    are_alone = [*map(all, known[:-1])]
    return (len(set(map(any, known[:-1]))) > 1 and any(known[-1])) or (any(are_alone) and not all(are_alone))


@cache
def _than() -> re.Pattern[str]:
    """Return what is written between names that are compared, as in ``2x 3090 be faster than a 4090``."""
    phrases = "|".join(sorted(vocabulary().than, key=len, reverse=True))
    return re.compile(rf"\b(?:(?:be|is|are|any|much) )*(?:{phrases})\b", re.IGNORECASE)


@cache
def _whether_else() -> re.Pattern[str]:
    """Return what stands before something else of which a line asks if it does: ``4x a10g oom, would 8x a10g help``."""
    words = vocabulary()
    groups = (words.whether_it_fits, *(words.solving[of] for of in ("opening", "doing", "moving")), words.turning)
    short, openings, verbs, moving, turning = ("|".join(sorted(group)) for group in groups)
    failed, a = rf"(?:\s+(?:gives|gave|got|goes|is|was))?(?:\s+(?:{short}))?[,.;?]?", r"(?:(?:a|an|one|the)\s+)?"
    asked = rf"\s+(?:but\s+)?(?:{openings})\s+{a}"
    moved = rf"[.,;?]\s+(?:(?:{turning})\s+)*?(?:{moving})\s+to\s+{a}"  # should we switch to a
    much = rf"[.,;?]?\s+how much (?:{verbs}) (?:{openings})\s+(?:be\s+)?{a}"
    return re.compile(rf"{much}|{failed}{asked}(?=(?:\S+\s+){{1,6}}?(?:be\s+)?(?:{verbs})\b)|{moved}", re.IGNORECASE)


def _joins_sizes(words: list[str], at: int) -> bool:
    """Whether a word stands between the sizes of two models, as in ``llama 3.1 70b and 405b``."""
    sizes = [word.rstrip(_ENDS) for word in (*words[at - 1 : at], *words[at + 1 : at + 2])]
    return key_of(words[at]) in vocabulary().both and len(sizes) > 1 and all(map(is_size, sizes))


def _before_name(words: list[str], mark: int) -> int:
    """Return where the last word stands before the name behind a mark, as ``to`` in ``or switch to a 5090``."""
    plain = (at for at in range(mark + 1, len(words)) if key_of(words[at]) not in vocabulary().turning)
    return next(plain, mark + 1) - 1


def _is_price(words: list[str], *, is_sum: bool = False) -> bool:
    """Whether some words begin with what a device costs an hour, as ``$1.60/h`` and ``at 1.60/h``, or with any sum."""
    at = int(key_of(words[0]) in vocabulary().priced | vocabulary().within)
    word = "".join(words[at : at + 1]).rstrip(_ENDS)
    is_unsigned = word[:1].isdecimal() and (bool(at) or "." in word)  # requests have no fractions
    dollars = sum_of(f"${word}" if is_unsigned else word)
    return dollars is not None and (bool(dollars[1]) or (is_sum and not is_unsigned))


def _joins_values(line: OneLine) -> bool:
    """Whether a line has a choice between two values that could both hold, as ``tp8 or pp8``."""
    valued = [word for word in line.words if word.meaning.values]
    ends, starts = {word.end for word in valued}, {word.start for word in valued}
    return any(match.start() in ends and match.end() in starts for match in _CHOICE.finditer(line.text))


def _resized(words: list[str], mark: int, read: Callable[[str], OneLine]) -> tuple[Alternative, ...]:
    """Return the lines for two sizes of a model, with what both have behind the first: ``14b q4 or do i need 8b``."""
    at = _before_name(words, mark) + 1
    size, before = ("".join(words[at : at + 1]).rstrip(_ENDS), [word.rpartition("-")[2] for word in words[:mark]])
    first = max((place for place, word in enumerate(before) if is_size(word)), default=mark)
    if not is_size(size) or first >= mark - 1:
        return ()
    resized = f"{words[first].removesuffix(before[first])}{size}"
    names, rest = (before[first], size), [*words[first + 1 : mark], *words[at + 1 :]]
    lines = [" ".join((*words[:first], name, *rest)) for name in (words[first], resized)]
    pairs = zip(names, lines, strict=True)
    return tuple(Alternative(_name([name]), line) for name, line in pairs) if _are_alike(map(read, lines)) else ()


def _counts_otherwise(words: list[str], mark: int, line: OneLine) -> bool:
    """Whether a number in words behind a mark counts nothing: ``are three nodes sufficient or do i need four``."""
    at = _number_behind(words, mark)
    asks_whether = any(key_of(word.rstrip(_ENDS)) in vocabulary().sufficing for word in words[mark + 1 :])
    number = re.compile(rf"{re.escape(words[at].strip(_ENDS))}\b")  # but not 24h, as measured
    about = (word.text for word in line.words if word.meaning.why and not (word.meaning.words or word.meaning.values))
    return at > 0 and (any(map(number.match, about)) or (asks_whether and not words[at].strip(_ENDS).isdecimal()))


def _number_behind(words: list[str], mark: int) -> int:
    """Return where the first number behind a mark stands; 0 where none does."""
    places = range(mark + 1, min(mark + 1 + _MOST_WORDS, len(words)))
    keys = {at: key_of(words[at].strip(_ENDS)) for at in places}
    return next((at for at, key in keys.items() if key.isdecimal() or vocabulary().counts.get(key, 0) > 0), 0)


def _recounted(words: list[str], mark: int, read: Callable[[str], OneLine]) -> tuple[Alternative, ...]:
    """Return the lines for a number of a line and for another one of the same: ``on 4xh100 or do i need 8``.

    Right behind the mark it is of what was counted last, as in ``200 users instead of 100``, else of devices.
    """
    at = _number_behind(words, mark)
    behind = ("".join(words[at + 1 : at + few]).strip(_ENDS) for few in (2, 3))
    times = (token.text for token in split(" ".join(words[at : at + 2]))[:1])
    is_of_nodes = key_of(words[mark - 1].rstrip(_ENDS)) in vocabulary().boxes  # 8xh100, single node or 2
    if is_of_nodes or any(is_time(text) or duration_of(text) is not None for text in times):  # took 753 sec vs 2190 sec
        return ()
    if not at or any(amount_of(word) is not None or read(word).has(Key.HARDWARE_NAME) for word in behind if word):
        return ()
    first = read(" ".join((*words[:mark], *words[at + 1 :])))
    before = [word for word in first.words if word.end <= len(" ".join(words[:mark])) and _is_counted(word)]
    paths = (Key.HARDWARE_DEVICES, Key.HARDWARE_NAME)  # three nodes of 8 h100: the nodes
    named = (
        word
        for path in paths
        for word in first.words
        if path in word.meaning.values and word.meaning.values[path] == first.values.get(path)
    )
    device = next(named, None)
    counted = before[-1] if before and at == mark + 1 else device
    if counted is None:
        return ()
    number, rest = words[at].strip(_ENDS), counted.text
    if counted is not device:
        name = _NUMBER.sub(number, rest, count=1)
    else:
        is_number = Key.HARDWARE_DEVICES in counted.meaning.values
        rest = re.sub(r"^\d+\s*[x×*]?\s*|^[a-z]+\s+", "", rest, flags=re.IGNORECASE) if is_number else rest
        name = f"{number} {rest}"
    second = read(f"{first.text[: counted.start]}{name}{first.text[counted.end :]}")
    if not _are_alike([first, second]):
        return ()
    return Alternative(_name([counted.text]), first.text), Alternative(_name([name]), second.text)


def _is_counted(word: Word) -> bool:
    """Whether some words are a number with what it counts: devices, or a field that is no name."""
    values = word.meaning.values
    is_setting = _NUMBER.search(word.text) is not None and values.keys().isdisjoint({Key.MODEL_NAME, Key.TASK})
    return bool(values) and (is_setting or Key.HARDWARE_NAME in values)


def _otherwise(words: list[str], mark: int, read: Callable[[str], OneLine]) -> tuple[Alternative, ...]:
    """Return the lines for what stands before the last mark, and with what a clause behind it says instead.

    As ``full fine-tune of qwen2.5-14b on 4xA6000, or should I just do lora``.
    """
    first, clause = read(" ".join(words[:mark])), " ".join(words[_before_name(words, mark) + 1 :])
    for word in first.words:
        paths = word.meaning.values.keys() - {Key.TASK}
        rest = first.text[word.end :]
        rest = _MEMORY_BEHIND.sub("", rest) if Key.HARDWARE_NAME in paths else rest
        second = read(f"{first.text[: word.start]}{rest} {clause}") if paths else first
        instead = next((other for other in second.words if paths & other.meaning.values.keys()), None)
        if instead is not None and _are_alike([first, second]):
            return Alternative(_name([word.text]), first.text), Alternative(_name([instead.text]), second.text)
    return ()


def _name(words: list[str]) -> str:
    """Return how a compared plan may be called: no dots, no article, no price."""
    end = next((at for at in range(1, len(words)) if _is_price(words[at:])), len(words))
    return re.sub(r"[^\w\s-]+", "-", re.sub(r"^an? ", "", " ".join(words[:end]))).strip("- ")


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
    """Whether a name of a model or of hardware goes on beyond what is compared, or stands there for one line alone.

    As in ``h100 pcie vs sxm`` and ``epyc 9654 with 768gb ram vs 2x 3090``.
    """
    every = [read(one.text) for one in lines]
    inside, around = (
        {path for one, line in zip(lines, every, strict=True) for path in one.names(line, is_inside=is_inside)}
        for is_inside in (True, False)
    )
    is_elsewhere = not inside.isdisjoint(around)
    return is_elsewhere or lines[0].cuts(every[0], is_last=False) or lines[-1].cuts(every[-1], is_last=True)


def _fields(line: OneLine) -> set[str]:
    """Return what a line says that another one has to say too: of hardware that it is named, however it is counted."""
    is_processor = any(key_of(word.text) in vocabulary().processor for word in line.words)
    paths = {*line.values, *([Key.HARDWARE_NAME] if is_processor else [])} - _NUMBERS
    return {_HARDWARE if path.startswith(f"{_HARDWARE}.") or path == _CORES else str(path) for path in paths}
