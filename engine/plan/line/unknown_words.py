"""The words of a line that go into no plan: said where they bear on one, so that nothing of a line is lost silently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.similarity import is_common, similar_names, unknown_words
from capacity_tui.engine.plan.line.lexicon.task_words import task_named
from capacity_tui.engine.plan.line.lexicon.tokens import Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FIT, Asked, Meaning
from capacity_tui.engine.plan.line.recognition.guessed_words import GuessedWords

_NOTHING = Meaning()
_NAMES = frozenset({models.MODEL, hardware.NAME})
_ONE, _NOT = 1, "not"
_OF_EXPERTS = ("moe", "sparse")
_LOADS = (Key.INFERENCE_USERS, Key.INFERENCE_CONCURRENCY, Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_BATCH)
_FARTHEST = 3  # Words between one that asks and what it asks for, as in ``how many busy users``
_DATED = re.compile(r"\d{1,2}(?::\d\d)?[ap]m|\d+(?:st|nd|rd|th)|v\d+(?:\.\d+)*", re.IGNORECASE)  # 1am, 2nd, v2
_SHORTEST_PART = 5  # Letters of a name that stands for a longer one which begins with it
_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)+(?:\(\))?", re.IGNORECASE)  # Of a program
_VOWELS = frozenset("aeiouy")  # Words without any are short for something


class UnknownWords(GuessedWords):
    """The words of a line that mean nothing here."""

    def _is_named(self, asked: Asked | None) -> bool:
        """Whether a line names its model and its hardware, or asks for them: no other word can be their name then."""
        solved = "" if asked is None else asked.solve
        has_hardware = hardware.NAME in self._values or solved in (hardware.NAME, hardware.DEVICES)
        return has_hardware and (models.MODEL in self._values or solved == models.MODEL)

    def _bears_nothing(self, text: str, *, is_named: bool) -> bool:
        """Whether a word is of plain language: a common one, or one of a line that names all and that is like no name.

        Neither stands beside a name that it may belong to.
        """
        index = self._tokens_before(text)
        named_at = [at for at, (_, meaning) in self._taken.items() if models.MODEL in meaning.values]
        pieces, model = ({*name.casefold().split("-")} for name in (text, str(self._values.get(models.MODEL))))
        is_part = pieces <= model or any(key_of(self._written(at)).startswith(key_of(text)) for at in named_at)
        is_part &= len(text) >= _SHORTEST_PART
        if is_part and not models.is_size(self._word(index + 1)):
            return True  # any r1-distill model: r1-distill-qwen-7b
        whys = {at: self._taken[at][1].why for at in named_at}
        guessed = {at for at, why in whys.items() if why and models.OF_A_SHAPE not in why}
        named = guessed if self._task != FIT else set()  # names of algorithms are whole
        places = [at for at in (index - 1, index + 1) if 0 <= at < len(self._tokens)]
        fields = (settings.named_field(self._tokens[at].text, self._task, self._model) for at in places)
        is_value = any(field is not None and field[1].kind == "choice" for field in fields)  # the sophia optimizer
        parts = re.split(r"(?<=\w)['’.-]", text)
        is_name = not is_named or not all(map(str.isalpha, parts)) or any(similar_names(text, self._catalog))
        is_name |= len(text) > 1 and text.isascii() and _VOWELS.isdisjoint(text.casefold())
        is_option = self._is_number_at(index + 1) or self._word(index + 1) == "="
        if is_named and not is_option and _IDENTIFIER.fullmatch(text):  # parallel_for, CUDNN_STATUS_ALLOC_FAILED
            is_name = any(models.named_model(part, self._catalog) for part in text.split("_"))
        is_name |= any(models.resembling_model(part, self._catalog) for part in {text, *parts})
        is_name |= any(map(self._is_telling, {text, *parts}))
        if _DATED.fullmatch(text):
            return text[0].isdigit() or (is_named and not named.intersection(places))
        if is_common(text):  # the tiger 13b, the sophia optimizer
            return not (is_value or (index + 1 in named and models.is_size(self._tokens[index + 1].text)))
        return not (is_value or is_name or named.intersection(places))

    def _fault_of_unknown(self) -> PlanError:
        """Return what to say of words that mean nothing here, and what to write in a line that says nothing else."""
        fault = unknown_words(self._unknown, self._catalog)
        places = (at for at, (_, taken) in self._taken.items() if at and models.MODEL in taken.values)
        if size := next((self._span(at, 1) for at in places if self._span(at - 1, 1) in self._unknown), ""):
            hint = f"write {size} alone for a usual model of that size; " * models.is_size(size)
            return PlanError(fault.title, hint=f"{hint}{fault.hint}")
        if self._faults or not self._values.keys().isdisjoint(_NAMES):
            return fault
        hint = f"say what is done with which model, and on what, as lora llama-3.1-8b 4090; {fault.hint}"
        return PlanError(fault.title, "nothing to plan without a model or hardware", hint)

    def _traits(self) -> set[str]:
        """Return keys of words that are true of the model and the hardware of the line, as ``nvlink`` of an H100."""
        model = self._catalog.architectures.get(str(self._values.get(models.MODEL)))
        device = self._catalog.accelerators.get(str(self._values.get(hardware.NAME)))
        machine = self._catalog.instances.get(str(self._values.get(hardware.NAME)))
        is_bare = machine is not None and machine.accelerator is None
        if is_bare or self._values.get(hardware.NAME) in self._catalog.processors:
            return {*vocabulary().processor, *vocabulary().without_card}
        of_device = "" if device is None else f"{device.name} {device.generation} {device.link_name}"
        return {*map(key_of, of_device.split()), *(_OF_EXPERTS if model is not None and model.experts else ())}

    def _is_telling(self, word: str) -> bool:
        """Whether a word has a meaning of its own."""
        is_of_plan = task_named(word) is not None or vocabulary().refusal(word) is not None
        return is_of_plan or self._is_setting(word) or hardware.named_hardware(word, self._catalog) is not None


def remainder(
    tokens: Sequence[Token],
    taken: Mapping[int, tuple[int, Meaning]],
    task: str,
    fields: set[str],
    traits: set[str],
    unanswered: Mapping[str, None],
    plain: Iterable[str],
) -> str:
    """Return the words of a line that bear on a plan and went into none, in a few words; empty where none did.

    Args:
        tokens: words of the line.
        taken: how many words from each place on were taken together, and for what.
        task: what is done.
        fields: paths that the line says, or asks for.
        traits: keys of words that are true of the model or the hardware anyway.
        unanswered: words that ask for what is not solved for.
        plain: words of plain language that no list has.
    """
    keys = [key_of(token.text) for token in tokens]
    empty = [at for at in range(len(tokens)) if taken.get(at) == (1, _NOTHING) and not _is_asked(keys, at)]
    named = [(at, at + count) for at, (count, meaning) in taken.items() if meaning.values.keys() & _NAMES]
    editions = _editions(tokens, empty, named)
    left_out = dict.fromkeys((*editions, *_left_out(tokens, empty, traits), *plain))
    uncounted = dict.fromkeys(_uncounted(tokens, empty, task, fields))
    parts = (("left out", left_out), ("without a number", uncounted), ("not answered", unanswered))
    return "; ".join(f"{name}: {', '.join(some)}" for name, some in parts if some)


def _editions(tokens: Sequence[Token], empty: Sequence[int], named: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield words that make another product of a name beside them, where none is called so: the large of pixtral large.

    Before another noun they are of that: llama-70b large batches.
    """
    words, begins, ends = vocabulary(), {begin for begin, _ in named}, {end for _, end in named}
    for at in empty:
        key, after = key_of(tokens[at].text), key_of(tokens[at + 1].text) if at + 1 < len(tokens) else ""
        is_last = not after or tokens[at].ends or after in words.joints
        if (key in words.editions and at in ends and is_last) or (key in words.leading_editions and at + 1 in begins):
            yield tokens[at].text


def _left_out(tokens: Sequence[Token], empty: Sequence[int], traits: set[str]) -> Iterator[str]:
    """Yield circumstances, numbers in words, and what a word rules out that no plan has."""
    words, ruling = vocabulary(), vocabulary().negations - vocabulary().leaving - {_NOT}
    for at in empty:
        text, key = tokens[at].text, key_of(tokens[at].text)
        before = key_of(tokens[at - 1].text) if at and at - 1 in empty else ""
        if before in ruling and key in words.fillers - words.prose and f"no{key}" not in traits:
            yield f"{tokens[at - 1].text} {text}"
        elif at and f"{key_of(tokens[at - 1].text)}{key}" in words.queries:
            continue  # on as few as possible
        elif (key in words.circumstances and key not in traits) or words.counts.get(key, _ONE) != _ONE:
            yield text


def _uncounted(tokens: Sequence[Token], empty: Sequence[int], task: str, fields: set[str]) -> Iterator[str]:
    """Yield loads and fields that the line names without a number, as in ``many users`` and ``will cp help``."""
    words = vocabulary()
    for at in empty:
        amount, key = words.amounts.get(key_of(tokens[at].text)), key_of(tokens[at].text)
        if key in words.within:
            continue
        is_load = amount is not None and amount.field(task) in _LOADS and fields.isdisjoint(_LOADS)
        is_solved = words.needs.get(key, ("", ""))[0] in fields
        is_open = amount is None and not is_solved and key not in words.fillers and words.phrase(key, task) is None
        is_open &= fields.isdisjoint(words.fields.get(key, fields))
        if is_load or is_open:
            yield tokens[at].text


def _is_asked(keys: Sequence[str], at: int) -> bool:
    """Whether a word that asks stands before another one, as in ``how many users``."""
    before = keys[max(at - _FARTHEST, 0) : at]
    pairs = map("".join, pairwise(before))
    return any(key in vocabulary().queries for key in (*before, *pairs))
