"""The questions in a line: words that ask for how many, for the most or for one of several, and what they ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.setting_words import TOKENS, is_number
from capacity_tui.engine.plan.line.lexicon.tokens import Token, split
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, Amount
from capacity_tui.engine.record import dataclass

MODEL, HARDWARE, DEVICES = Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES
CHEAPEST, COST, FASTEST = "cheapest", "cost", "fastest"
MANY, MUCH, MOST, WHICH, LONG, LIMIT, ALONE = "many", "much", "most", "which", "long", "limit", "alone"
LENGTHS = frozenset({Key.TRAINING_TOKENS, Key.TRAINING_EPOCHS, Key.TRAINING_STEPS, Key.TRAINING_SAMPLES})
"""Lengths of a job, which are asked for where it has a limit."""

_SEQUENCE, _BATCH, _LENGTH = "sequence", "batch", "length"
_OF_SERVING: Mapping[str, str] = {_SEQUENCE: Key.INFERENCE_PROMPT_TOKENS, _BATCH: Key.INFERENCE_BATCH, _LENGTH: ""}
_OF_TRAINING: Mapping[str, str] = {
    _SEQUENCE: Key.TRAINING_SEQ_LEN,
    _BATCH: Key.TRAINING_MICRO_BATCH,
    _LENGTH: Key.TRAINING_TOKENS,
}
_SOLVED_FOR: Mapping[str, str] = {
    Key.TRAINING_GLOBAL_BATCH: Key.TRAINING_MICRO_BATCH,
    Key.INFERENCE_CONCURRENCY: Key.INFERENCE_BATCH,
}
_BY_AMOUNT = LENGTHS | {
    Key.TRAINING_SEQ_LEN,
    Key.TRAINING_MICRO_BATCH,
    Key.TRAINING_ADAPTER_RANK,
    Key.INFERENCE_PROMPT_TOKENS,
    Key.INFERENCE_OUTPUT_TOKENS,
    Key.INFERENCE_BATCH,
    Key.INFERENCE_USERS,
    Key.INFERENCE_REQUEST_RATE,
    Key.INFERENCE_ADAPTERS,
    Key.INFERENCE_GPU_LAYERS,
    Key.PARALLELISM_DP,
}
"""Fields that are asked for by any word that says what numbers of them count."""

_LATENCIES = (Key.INFERENCE_TTFT_SECONDS, Key.INFERENCE_TPOT_SECONDS, Key.INFERENCE_REQUEST_SECONDS)
_SECTIONS = {"inference.": (INFER,), "training.": (TRAIN, FINETUNE)}
_REACH = {MUCH: 2, LIMIT: 0}  # Words between one that asks and what it asks for, as in ``how many A100 80GB cards``
_FARTHEST, MOST_WORDS, _LONGEST_NOUN = 5, 4, 4
_LONGEST_NOUN_OF_MEMORY = 3  # Words behind how much, as in ``how much free gpu memory``
_AT_ONCE = frozenset({"concurrent", "parallel", "simultaneous"})  # How many concurrent, and how many concurrent users
_SIZES = frozenset({"long", "longer", "large", "larger", "big", "bigger", "small", "short", "more"})
_NUMBER_OF = ["number", "of"]
_JOINTS = frozenset({"and", "&", "+", "/"})
_HOURS = (["hours"], ["gpuhours"], ["days"], ["gpudays"])  # What devices are counted in, rather than by number
_LAYOUTS = (["parallel"], ["parallelism"])  # Behind model, which is no model then
_NAMED_MOST = "max"  # What names of options begin with that ask without a number, as ``max_num_seqs``


@dataclass(frozen=True, slots=True)
class Question:
    """What some words ask."""

    kind: str
    field: str  # the field of a plan; empty where no word names it
    words: str  # for people
    start: int = 0
    end: int = 0


class Questions:
    """The questions in a line.

    Args:
        text: the line.
        tokens: its words.
        task: what is done; empty where that is not known.
        hardware: where words stand that name hardware.
        counted: where words stand that say something of the plan, numbers with what they count among them.
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[Token],
        task: str = "",
        hardware: Collection[int] = (),
        counted: Collection[int] = (),
    ) -> None:
        self._text, self._tokens, self._task = text, tokens, task
        self._hardware, self._counted = frozenset(hardware), frozenset(counted)
        self._keys = [key_of(token.text) for token in tokens]

    def all(self) -> Iterator[Question]:
        """Yield them in order."""
        queries, keys = vocabulary().queries, self._keys
        end = 0
        for index in range(len(keys)):
            spans = (count for count in range(MOST_WORDS, 0, -1) if index + count <= len(keys))
            spans = (count for count in spans if self._counted.isdisjoint(range(index, index + count)))
            count = next((count for count in spans if "".join(keys[index : index + count]) in queries), 0)
            kind = queries.get("".join(keys[index : index + count]), "") if count else ""
            is_within = index + count <= end and kind not in (CHEAPEST, COST, FASTEST)  # vram needed
            questions = self._of(kind, index, index + count) if kind and not is_within else ()
            questions = self._without(index) if not kind and index >= end else questions
            for question in questions:
                end = max(end, question.end)
                yield question

    def _of(self, kind: str, index: int, end: int) -> Iterator[Question]:
        """Yield what is asked by the words at a place: what stands behind them, or before those that end a line."""
        if self._keys[index:end] == _NUMBER_OF and end in self._counted - self._hardware:
            return  # number of epochs 3
        noun = None if kind == COST else self._behind(kind, end)
        if kind == MANY and noun is None and index and self._keys[index - 1] in vocabulary().asked["memory"]:
            yield Question(MUCH, "", self._span(index - 1, end), index - 1, end)  # ram needed
            return
        keys = self._keys[end : end + _FARTHEST]
        needs = noun is None and not vocabulary().needing.isdisjoint(keys)
        is_last = not keys or self._tokens[end - 1].ends or keys[0] in vocabulary().closing or needs
        if noun is None and kind == MANY and is_last:  # on H100s, how many do we need?
            places = range(index - 1, max(index - _FARTHEST, -1), -1)
            noun = next(filter(None, (self._answered(at) or self._noun(kind, at) for at in places)), None)
        if noun is None and kind in (MOST, LIMIT) and not self._is_number(end):
            nouns = (self._noun(kind, at) for at in range(max(index - _LONGEST_NOUN, 0), index))
            noun = next((match for match in nouns if match and match[1] == index), None)  # batch size max
        if noun is not None and (not noun[2] or self._is_set(index, noun[1])):
            return  # how many hours, which every plan tells
        is_of_method = index > 0 and self._keys[index - 1] in vocabulary().methods
        if noun is None and is_of_method and "".join(self._keys[index:end]) in vocabulary().whether["behind"]:
            return  # is qlora needed
        if noun is None:
            chooses = self._keys[index] in vocabulary().compares and vocabulary().sufficing.isdisjoint(keys)
            is_open = kind == WHICH and not chooses  # which is quicker is one of those named
            last = self._does_otherwise(end) if is_open else 0
            otherwise = HARDWARE if kind in (CHEAPEST, FASTEST, COST) or last else ""
            otherwise = DEVICES if kind == MANY and is_last else otherwise
            last = last or end + int(kind == MANY and not is_last)
            yield Question(kind, otherwise, self._span(index, last), index, last)
            return
        start, last = min(index, noun[0]), max(end, noun[1])
        yield Question(kind, self._at_once(noun), self._span(start, last), start, last)
        if self._keys[last : last + 1] and self._keys[last] in _JOINTS:  # max batch and context
            other = self._noun(kind, last + 1)
            if other is not None and other[2]:
                yield Question(kind, other[2], self._span(last + 1, other[1]), last + 1, other[1])

    def _is_set(self, index: int, end: int) -> bool:
        """Whether a number follows the words that name it, as in ``the number of input tokens to 1000``."""
        between = (end + few for few in (1, 2) if "".join(self._keys[end : end + few]) in vocabulary().between)
        return self._keys[index : index + 2] == _NUMBER_OF and any(map(self._is_number, between))

    def _does_otherwise(self, end: int) -> int:
        """Return where words end behind ``what`` that ask for what does: ``would be faster``; 0 for others."""
        words, keys = vocabulary(), self._keys[end : end + _FARTHEST]
        verbs = words.needing | words.solving["doing"]
        opens = not (words.solving["opening"] | words.solving["wishing"]).isdisjoint(keys[:1])
        return next((end + at + 1 for at, key in enumerate(keys) if at and key in verbs), 0) if opens else 0

    def _at_once(self, noun: tuple[int, int, str]) -> str:
        """Return the field of a noun: of users who are all answered at once, of whom each has a request, the batch."""
        start, end, field = noun
        last = next((at + 1 for at in range(end - 1, len(self._keys)) if self._tokens[at].ends), len(self._keys))
        near = range(max(start - 1, 0), last)
        spans = ("".join(self._keys[at : at + few]) for at in near for few in range(1, MOST_WORDS + 1))
        is_at_once = field == Key.INFERENCE_USERS and not vocabulary().together.isdisjoint(spans)
        return str(_OF_SERVING[_BATCH]) if is_at_once else field

    def _without(self, index: int) -> Iterator[Question]:
        """Yield what is asked without a word that asks: ``context?``, ``ngl?``, ``max_num_seqs``."""
        noun = self._noun(WHICH, index)
        if noun is None or not noun[2]:
            return
        _, end, field = noun
        key = "".join(self._keys[index:end])
        is_option = key in vocabulary().asked[ALONE] or (end == index + 1 and key.startswith(_NAMED_MOST))
        after = self._tokens[end].start if end < len(self._tokens) else len(self._text)
        begins = index == 0 or self._tokens[index - 1].ends or index - 1 in self._counted or not self._keys[index - 1]
        begins = begins or self._keys[index - 1] in _JOINTS
        is_noun = field == MODEL and index - 1 in self._counted - self._hardware  # a 70b model?
        begins &= not is_noun or self._tokens[index - 1].ends
        if is_option or (begins and field != HARDWARE and "?" in self._text[self._tokens[end - 1].end : after]):
            yield Question(MOST, field, self._span(index, end), index, end)

    def _behind(self, kind: str, first: int) -> tuple[int, int, str] | None:
        """Return where the noun stands that words before a place ask for, and its field, empty for what plans tell."""
        together = None
        if self._tokens[first - 1].ends:
            return None
        for at in range(first, min(first + _REACH.get(kind, _FARTHEST), len(self._tokens))):
            noun, key = self._noun(kind, at), self._keys[at]
            if noun is not None and noun[1] == at + 1 and key in _AT_ONCE:
                together = together or noun
            elif noun is not None and not (kind == WHICH and at > first and self._keys[at - 1] in _SIZES):
                return noun
            elif (answered := self._answered(at)) is not None:
                return answered
            if key in vocabulary().ending or (kind == LONG and key in vocabulary().during) or self._tokens[at].ends:
                break
        return together

    def _answered(self, at: int) -> tuple[int, int, str] | None:
        """Return where a word stands for what every plan tells; None for others."""
        words, key = vocabulary(), self._keys[at]
        is_other = at > 0 and self._keys[at - 1] + key in words.circumstances  # real time
        is_answered = at not in self._counted and not is_other and (key in words.durations or key in words.answered)
        return (at, at + 1, "") if is_answered else None

    def _noun(self, kind: str, at: int) -> tuple[int, int, str] | None:
        """Return where a noun begins and ends, and the field that it is of; None for other words."""
        if at in self._hardware:
            is_asked = kind in (MANY, LIMIT) and self._keys[at + 1 : at + 2] not in _HOURS
            return (at, at + 1, DEVICES) if is_asked else None
        for words in range(min(_LONGEST_NOUN, len(self._keys) - at), 0, -1):
            end = at + words
            is_one = not any(token.ends for token in self._tokens[at : end - 1])
            is_one &= self._counted.isdisjoint(range(at, end))
            field = self._field(kind, "".join(self._keys[at:end])) if is_one else None
            if field is not None and not (field == MODEL and self._is_of_hardware(end)):
                after = self._keys[end : end + 1]
                is_answered = after in _HOURS or (field == MODEL and after in _LAYOUTS)
                return at, end, "" if is_answered else field
        return None

    def _field(self, kind: str, key: str) -> str | None:
        """Return the field that a noun is of, empty where every plan tells it; None where it is none."""
        nouns, amount = vocabulary().asked, vocabulary().amounts.get(key)
        fields = _OF_SERVING if self._task == INFER else _OF_TRAINING
        named = (str(nouns.get(table, {}).get(key, "")) for table in ((MANY, MOST) if kind == LIMIT else (kind,)))
        field = next((fields.get(name, name) for name in named if name and self._is_of_task(name)), None)
        if field is not None or kind in (CHEAPEST, FASTEST):
            return nouns[WHICH].get(key) if field is None else field
        return None if amount is None or kind == LONG or not self._task else self._field_of(amount, key)

    def _field_of(self, amount: Amount, key: str) -> str | None:
        """Return the field that a word which says what numbers count is of, empty where it is told by every plan."""
        if amount.name == TOKENS:
            return (_OF_SERVING if self._task == INFER else _OF_TRAINING)[_LENGTH]
        path = amount.field(self._task) or ""
        if amount.reciprocal or path in _LATENCIES:
            return ""
        path = _SOLVED_FOR.get(path, path)
        return path if path in _BY_AMOUNT and amount.tells and len(key) > 1 else None

    def _is_of_task(self, field: str) -> bool:
        sections = (tasks for section, tasks in _SECTIONS.items() if field.startswith(section))
        return not self._task or self._task in next(sections, (self._task,))

    def _is_number(self, at: int) -> bool:
        """Whether a number stands at a place that is no device: ``context limit 8k``."""
        is_other = at >= len(self._tokens) or at in self._hardware or self._tokens[at - 1].ends
        return not is_other and is_number(self._tokens[at].text)

    def _is_of_hardware(self, end: int) -> bool:
        """Whether words behind ``model`` say that it is one of hardware: ``which model of gpu``."""
        of = self._keys[end + 1 : end + 3] if self._keys[end : end + 1] == ["of"] else []
        return any(vocabulary().asked[WHICH].get(key) == HARDWARE for key in of)

    def _span(self, start: int, end: int) -> str:
        return " ".join(token.text for token in self._tokens[start:end])


def general_question(tokens: Sequence[Token]) -> PlanError | None:
    """Return what to say of a line that weighs what it says no number of, as ``more vram or more cuda cores``."""
    keys = [key_of(token.text) for token in tokens]
    for mark in (at for at, key in enumerate(keys[:-1]) if key in vocabulary().comparing):
        first = next((at for at in range(mark - 2, -1, -1) if keys[at] == keys[mark + 1] and keys[at] in _SIZES), mark)
        if first < mark and not any(key[:1].isdigit() for key in keys[first : mark + 3]):
            hint = "name machines, as sdxl on a 3090 or a 4070 ti: both are planned, with what limits each"
            weighed = " ".join(token.text for token in tokens[first : mark + 3])
            return PlanError("a general question is no plan", weighed, hint)
    return None


def asks_how_much_memory(text: str) -> bool:
    """Return whether words of a line plainly ask for memory: ``how much vram for qlora 70b``, ``batch 32 - mem?``."""
    tokens = split(text)
    keys, words = [key_of(token.text) for token in tokens], vocabulary()
    nouns, queries = words.asked["memory"].keys(), words.queries
    much = (at + few for at in range(len(keys)) for few in (1, 2) if queries.get("".join(keys[at : at + few])) == MUCH)
    ends = (token.end for token, key in zip(tokens, keys, strict=True) if key in nouns)
    is_bare = any(text[end:].lstrip().startswith("?") for end in ends)
    return is_bare or any(not nouns.isdisjoint(keys[first : first + _LONGEST_NOUN_OF_MEMORY]) for first in much)


def asks_for_memory(text: str) -> bool:
    """Return whether a line asks how much memory something takes, in any way: ``ram needed for qlora 70b``."""
    nouns = vocabulary().asked["memory"].keys()
    spans = (map(key_of, question.words.split()) for question in Questions(text, split(text)).all())
    return asks_how_much_memory(text) or any(not nouns.isdisjoint(span) for span in spans)
