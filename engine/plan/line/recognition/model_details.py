"""The words of a line that say more of its model: the format of its weights, its experts, and a second model.

A second one is a draft that guesses for the first, a teacher that it learns from, or one that stands next to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import AT_MOST, MODEL, ModelsAsked
from capacity_tui.engine.plan.line.lexicon.question_words import MOST, WHICH, Questions
from capacity_tui.engine.plan.line.lexicon.similarity import nearest_mixture
from capacity_tui.engine.plan.line.lexicon.task_words import TASK, task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, Amount, Asked, Meaning
from capacity_tui.engine.plan.line.questions import (
    BETWEEN,
    SMALLEST,
    asks_for_model,
    bound_at,
    nouns_asked,
    plain_size,
    superlative_at,
    words_of_kind,
)
from capacity_tui.engine.plan.line.recognition.figure_words import FigureWords
from capacity_tui.engine.units import format_count, parse_quantity

_LONGEST_FAMILY = 3  # Words between ``for`` and a noun of models, as in ``for llama 3 models``
_FARTHEST_SIZE = 5  # Words from a family to its size, as in ``any llama of no more than 30b``
_MOST_WORDS = 5  # Words of a model's name, as ``llama 3.1 8b instruct``
_SIZES = re.compile(r"(\d{1,7}(?:\.\d+)?(?:b|t(?=.a)))(?:[-/ ]a|/)(\d{1,7}(?:\.\d+)?b)", re.IGNORECASE)
_PARAMETERS = re.compile(r"\d+(?:\.\d+)?[bmt]", re.IGNORECASE)  # Of a mixture, as in ``1T with 32B active``
_Model: TypeAlias = tuple[int, int, int]  # Parameters, where the name begins, and how many words it has
FEW_BITS = "4bit"
_USUAL_FORMAT, _USUAL_BITS = "bf16", 16.0  # Of weights of which nobody says another
_EXPERTS = "experts"


class ModelDetails(FigureWords):
    """A line whose words are being recognized, and those of them that say more of its model."""

    def _second_model(self) -> None:
        """Take one of two models for the draft of the other or for its teacher: by the words, else by their sizes."""
        keys, words = self._keys(), vocabulary()
        guesses, teaches = not keys.isdisjoint(words.guessing | words.drafts), not keys.isdisjoint(words.teaching)
        if not guesses and not teaches:
            self._companions()
            self._others()
        if guesses == teaches or len(named := [*self._models()]) != 2:
            return
        size, index, count = self._draft(named) if guesses else self._teacher(named)
        path, name = (
            (Key.INFERENCE_DRAFT_PARAMETERS, "draft") if guesses else (Key.TRAINING_TEACHER_PARAMETERS, "teacher")
        )
        values: dict[str, object] = {path: size}
        if teaches:
            values |= {TASK: FINETUNE, Key.TRAINING_PREFERENCE: "distillation"}
        self._take(index, count, Meaning(f"{name} of {format_count(size)}", values))

    def _companions(self) -> None:
        """Leave out models that embed or listen beside one that answers: ``gpt-oss-120b, and bge-m3 next to it``."""
        words, texts = vocabulary(), [token.text for token in self._tokens]
        tasks = {meaning.values.get(TASK) for text in texts if (meaning := task_named(text)) is not None}
        is_one = tasks & {TRAIN, FINETUNE} or not words.comparing.isdisjoint(map(key_of, texts))
        if is_one or not any(map(self._is_companion, texts)):
            return
        named = [range(index, index + count) for _, index, count in self._models()]
        alone = [at for at, text in enumerate(texts) if self._is_companion(text)]
        alone = [at for at in alone if "-" in texts[at] or models.named_model(texts[at], self._catalog)]
        single = [range(at, at + 1) for at in alone if not self._is_hardware(at)]
        named += [place for place in single if not any(place.start in other for other in named)]
        companions = [place for place in named if any(self._is_companion(texts[at]) for at in place)]
        for place in companions if len(companions) < len(named) else ():
            text = self._span(place.start, len(place))
            self._take(place.start, len(place), Meaning(why=f"left out: {text}; a plan serves one model"))

    def _others(self) -> None:
        """Refuse a second model beside the first on the same hardware, as in ``llama 8b and qwen 14b on one card``."""
        words, keys = vocabulary(), [key_of(token.text) for token in self._tokens]
        named = [] if words.both.isdisjoint(keys) else [one for one in self._models() if self._is_free(*one[1:])]
        for (size, at, count), (other, index, few) in pairwise(named):
            between = keys[at + count : index]
            is_joined = bool(between) and between[0] in words.both and words.joints.issuperset(between[1:])
            is_other = abs(other / size - 1) > models.LIKE_IT and words.compares.isdisjoint(keys)
            if is_joined and is_other and self._is_free(index, few):
                hint, text = "plan each by itself, and add up their memory, or say vs", self._span(at, index + few - at)
                self._take(index, few, Meaning(fault=PlanError("a plan has one model", text, hint)))

    def _is_hardware(self, index: int) -> bool:
        """Whether a word names hardware, also with the one before or behind it: ``e5-2680v4``, ``xeon e5-2680``."""
        spans = (self._span(max(index - 1, 0), 2), self._span(index, 1), self._span(index, 2))
        return any(hardware.named_hardware(span, self._catalog) is not None for span in spans)

    def _draft(self, named: Sequence[_Model]) -> _Model:
        """Return the model that stands next to the word draft; the smaller where neither or both do."""
        words = vocabulary().drafts
        drafts = [one for one in named if {key_of(self._word(at)) for at in (one[1] - 1, one[1] + one[2])} & words]
        return drafts[0] if len(drafts) == 1 else min(named)

    def _teacher(self, named: Sequence[_Model]) -> _Model:
        """Return the model that is distilled: before ``into`` or after ``from``; the larger where neither is said."""
        first, second = sorted(named, key=itemgetter(1))
        between = {key_of(token.text) for token in self._tokens[first[1] + first[2] : second[1]]}
        if between & vocabulary().becoming:
            return first
        return second if between & vocabulary().coming_from else max(named)

    def _models(self) -> Iterator[_Model]:
        """Yield the parameters of models that the line names, where their names begin and how many words they have."""
        index = 0
        while index < len(self._tokens):
            model = next(filter(None, (self._model_at(index, count) for count in range(_MOST_WORDS, 0, -1))), None)
            if model is not None:
                yield model
            index += 1 if model is None else model[2]

    def _model_at(self, index: int, count: int) -> _Model | None:
        """Return the model that some words name, by its parameters."""
        tokens = self._tokens[index : index + count]
        if len(tokens) < count or any(token.ends for token in tokens[:-1]):
            return None
        if count > 1 and hardware.named_hardware(tokens[-1].text, self._catalog) is not None:
            return None  # whisper 4090
        name = " ".join(token.text for token in tokens)
        size = models.is_size(tokens[0].text) and tokens[0].text[-1] in "bB"
        if count == 1 and (not any(map(str.isdigit, name)) or (settings.is_number(name) and not size)):
            return None
        if count == 1 and size and self._is_counted(index):
            return None  # 2B tokens
        meaning = models.named_model(name, self._catalog)
        meaning = meaning or (models.sized_model(name, self._catalog) if size and count == 1 else None)
        if meaning is None and count == 2 and models.is_size(tokens[1].text) and tokens[0].text.isalpha():
            meaning = models.resembling_model(name.replace(" ", "-"), self._catalog)  # llama 70b
        row_id = None if meaning is None else self._catalog.architectures.find_id(str(meaning.values[models.MODEL]))
        total = None if row_id is None else self._catalog.architectures[row_id].params_total
        if size and count == 1 and settings.is_number(name):  # no 8x7b
            total = round(parse_quantity(name, ""))
        return None if not total else (total, index, count)

    def _split_mixture(self) -> None:
        """Read the sizes of a mixture that is called by them, as ``400B-A17B``, as two words; its experts as one."""
        for index in range(len(self._tokens) - 3):
            amount = settings.amount_of(self._word(index + 3))
            if self._word(index + 1) == "of" and amount is not None and amount.name == _EXPERTS:  # 8 of 256 experts
                self._tokens[index : index + 3] = [replace(self._tokens[index + 2], start=self._tokens[index].start)]
        for index, words in ((at, words) for at in range(len(self._tokens)) for words in (1, 2)):
            match, before = _SIZES.fullmatch(self._span(index, words)), self._span(max(index - 1, 0), 1)
            names = (self._span(index, words), f"{before}-{self._span(index, words)}")
            match = match if match and parse_quantity(match[1], "") > parse_quantity(match[2], "") else None  # 3b/7b
            if match is not None and not any(models.resembling_model(name, self._catalog) for name in names):
                parts = (match[1], match[2], max(vocabulary().active, key=len))
                self._tokens[index : index + words] = [replace(self._tokens[index], text=part) for part in parts]

    def _is_active_size(self, index: int) -> bool:
        """Whether a word is the size that one token uses of a mixture, as in ``37B active``."""
        return models.is_size(self._word(index)) and key_of(self._word(index + 1)) in vocabulary().active

    def _mixture(self) -> None:
        """Take the mixture of experts that has the sizes of a line, as ``30B with 3B active``."""
        self._split_mixture()
        numbers = [at for at, token in enumerate(self._tokens) if _PARAMETERS.fullmatch(token.text)]
        at = next(filter(self._is_active_size, numbers), None)
        totals = [other for other in numbers if other != at and not self._is_counted(other)]
        if at is None or not totals or models.MODEL in self._values:
            return
        active, total = (parse_quantity(self._tokens[place].text, "") for place in (at, totals[0]))
        size = self._tokens[totals[0]].text
        nearest, differs = nearest_mixture(total, active, size, self._catalog)
        text = f"{self._tokens[totals[0]].text} with {self._tokens[at].text} active"
        why = f"{text}: {nearest}, a mixture of about these sizes"
        is_known = differs <= models.LIKE_IT
        unknown = Meaning(fault=models.unknown_mixture(text))
        if is_known or self._tokens[at].start == self._tokens[totals[0]].start:  # 2T-a60b
            self._take(totals[0], 1, Meaning(f"model {nearest}", {models.MODEL: nearest}, why) if is_known else unknown)
            self._take(at, 2, Meaning())

    def _weighed_model(self) -> None:
        """Take a model that is given by the bytes of its weights for a decoder of so many parameters.

        As in ``model is 40GB`` and ``a 7 GB q4 gguf``; beside a model that is named they are only said.
        """
        words, figures = vocabulary(), enumerate(hardware.figures_of(token.text) or {} for token in self._tokens)
        sizes = [at for at, figure in figures if hardware.MEMORY in figure and not self._is_before_device(at)]
        if not sizes or asks_for_model(Questions(self._text, self._tokens).all()):
            return
        named = [*self._models()]
        for index in sizes:
            token, nouns = self._tokens[index], self._nouns_of(index)
            is_weighed = not nouns.isdisjoint(words.weighed) and nouns.isdisjoint(words.stored)
            is_of_name = self._text[token.start - 1 : token.start] == "("
            is_of_name &= any(start + count == index for _, start, count in named)
            is_named = bool(named) or any(models.named_model(other.text, self._catalog) for other in self._tokens)
            if is_of_name or (is_named and is_weighed):
                self._take(index, 1, Meaning(why=f"left out: {token.text} of weights; those of the model are counted"))
            is_other = not nouns.isdisjoint(words.model_words) and self._has_memory_of_devices()  # 16gb gpu, 70gb model
            if is_named or not (is_weighed or is_other):
                continue
            others = (settings.named_value(other.text, INFER, "", self._catalog) for other in self._tokens)
            formats = (meaning.values.get(Key.INFERENCE_WEIGHTS) for meaning in others if meaning is not None)
            is_packed = any(key_of(other.text).startswith("gguf") for other in self._tokens)
            usual = words.format_of(FEW_BITS, words.engines["gguf"]) if is_packed else _USUAL_FORMAT
            name = str(next(filter(None, formats), usual))
            bits = self._catalog.quantizations[name].bits_per_weight or _USUAL_BITS
            count = parse_quantity(token.text, "B") * 8 / bits
            row_id = self._catalog.architectures.find_id(f"{float(f'{count / 1e9:.3g}'):g}b")
            what = f"{token.text} of weights: a decoder of {format_count(count)} parameters in {name}"
            values: dict[str, object] = {Key.INFERENCE_WEIGHTS: name} if name == usual != _USUAL_FORMAT else {}
            meaning = Meaning(f"model {row_id}", {MODEL: row_id, **values}, f"{what} (or name the model)")
            unknown = Meaning(fault=PlanError("a decoder of no known size", what, "name the model, or its parameters"))
            self._take(index, 1, meaning if row_id else unknown)
            return

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Leave out the experts of a mixture that is named; a model without any is none of so many."""
        if amount.name != _EXPERTS or amount.field(self._task):
            return super()._kept(amount, value, name)
        row = self._catalog.architectures.get(str(self._values.get(MODEL, "")))
        if row is None or not row.experts:
            hint = "say what a token uses of it, as 30b with 3b active, or give its config.json as model.config=PATH"
            return Meaning(fault=PlanError("a mixture of which sizes?", f"{value} {name}", hint))
        return Meaning(why="" if str(row.experts) == value else f"left out: {value} {name}; {row.id} has {row.experts}")

    # Formats, which other words of the line tell apart

    def _cache(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize the format of keys and values, as in ``fp8 kv cache``, ``32k q4 cache`` and ``kv q8``."""
        cache, between, and_weights = map(vocabulary().of_cache.__getitem__, ("words", "between", "weights"))
        for count in (5, 4, 3, 2) if self._task == INFER else ():
            words = [key_of(self._span(index + at, 1)) for at in range(count)]
            name, of_cache = (words[0], words[1:]) if words[0] not in cache else (words[-1], words[:-1])
            both = and_weights if and_weights.issubset(of_cache) else frozenset()
            is_cache = (cache | between | both).issuperset(of_cache) and not cache.isdisjoint(of_cache)
            if not self._is_free(index, count) or not is_cache:
                continue
            format_ = vocabulary().formats.get(name, name)
            kept = settings.known_value(format_, Key.INFERENCE_KV_CACHE, self._catalog)
            if kept is not None:
                paths = (Key.INFERENCE_KV_CACHE, *([Key.INFERENCE_WEIGHTS] if both else []))
                return count, Meaning(self._span(index, count), dict.fromkeys(paths, kept))
            if settings.named_value(name, INFER, "", self._catalog) is not None:
                hint = "leave it out, or say fp8, int8 or a format of llama.cpp, as q8_0"
                fault = PlanError("keys and values are not kept in this format", self._span(index, count), hint)
                return count, Meaning(fault=fault)
        return None

    # Models that are asked for

    def _models_asked_for(self, index: int) -> tuple[int, Meaning] | None:
        """Keep of which models one is asked for, as in ``best qwen3 moe`` and ``any llm under 8b``."""
        if (bound := self._size_asked(index)) is not None:
            return bound
        (asks, few), words = superlative_at(self._tokens, index), vocabulary()
        of = self._words_between(index + few) if few > 1 else 0  # how large can the qwen2.5 model be
        places = nouns_asked(self._tokens, index + few + of) if asks else range(0)
        kinds = {at: count for at in places if (count := words_of_kind(self._tokens, at))}
        nouns = {at: 1 for at in places if key_of(self._word(at)) in words.sizes_asked["noun"]}
        is_one = asks in (MOST, SMALLEST) and (few == 1 or of > 0 or bool(nouns))
        is_one |= key_of(self._word(index)) in words.sizes_asked["any"] and self._are_bounded(places)
        families = {at: count for at in places if is_one and (count := self._words_of_family(at))}
        end = max((at + count for at, count in (kinds | families | nouns).items()), default=0)
        after, is_least = key_of(self._word(end)), asks not in (MOST, WHICH)
        is_end = end >= places.stop and after not in words.asked[WHICH]  # but the best coding gpu
        is_end |= after in words.sizes_asked["describing"]
        is_named = bool(nouns) or (bool(kinds) and is_end) or bool(families)
        if not is_named or (is_least and not (is_end and (nouns or kinds or asks == SMALLEST))):
            return None
        self._taken |= {at: (count, Meaning()) for at, count in (kinds | families).items()}
        family, kind = (next((self._span(*place) for place in some.items()), "") for some in (families, kinds))
        one = ModelsAsked(family, words.model_kinds.get(key_of(kind), ""))
        named = one.names(self._catalog) if family else ()
        if asks == SMALLEST and named:
            return few, Meaning(f"model {named[-1]}", {MODEL: named[-1]}, f"the smallest {family}: {named[-1]}")
        self._asks_for_model = True
        self._models_asked = replace(one, superlative=self._span(index, few) if is_least else "")
        return (few, Meaning()) if asks == SMALLEST else None

    def _words_between(self, index: int) -> int:
        """Return how many words stand between ``how large`` and a family: ``how large can the qwen3 model be``."""
        between = vocabulary().sizes_asked["of a family"]
        return next((few for few in (3, 2, 1) if key_of(self._span(index, few)) in between), 0)

    def _are_bounded(self, nouns: range) -> bool:
        """Whether a size says how large models of some words are at most or at least, as in ``any llama over 30b``."""
        places = range(nouns.stop, min(nouns.stop + _FARTHEST_SIZE, len(self._tokens)))
        sizes = (at for at in places if models.is_size(plain_size(self._word(at))))
        bounds = (bound_at(self._tokens, at, self._text) for at in sizes)
        return any(bound is not None and bound[-1] in nouns for bound in bounds)

    def _words_of_family(self, index: int) -> int:
        """Return how many words name a family of several models, as ``llama 3``; 0 where none does."""
        name, after = self._word(index).casefold(), self._word(index + 1)
        is_numbered = settings.is_number(after) and not (self._is_counted(index + 1) or self._tokens[index].ends)
        if models.is_size(after) or (is_numbered and models.is_size(self._word(index + 2))):
            return 0
        is_numbered |= key_of(after) in vocabulary().nicknames  # the largest deepseek r1
        family = (re.match("[a-z]*", name) or [""])[0]
        is_one = any(models.is_size(part) and part[0].isdigit() for part in name.split("-"))  # at peak, qwen2.5-7b
        if is_one or family not in models.families_of_models(self._catalog) or self._is_setting(name):
            return 0
        spans = {few: self._span(index, few) for few in (1 + is_numbered, 1)}
        count = next((few for few, span in spans.items() if models.models_of_family(span, self._catalog)[1:]), 0)
        return count + int(count > 0 and key_of(self._word(index + count)) in vocabulary().teaching)

    def _size_asked(self, index: int) -> tuple[int, Meaning] | None:
        """Keep how large a model is to be that is asked for, as in ``best model below 8b`` and ``any llm up to 10b``.

        Where hardware is asked for it is planned for the largest of them.
        """
        bound, size = bound_at(self._tokens, index, self._text), plain_size(self._word(index))
        if bound is None or not models.is_size(size) or self._is_counted(index):
            return None
        name, few, noun = bound
        word, words = self._word(noun).casefold(), vocabulary()
        kinds = (words.model_kinds.get(key_of(self._word(at))) for at in (noun, noun - 1))
        kind = next(filter(None, kinds), "")
        is_of_models = bool(kind) or key_of(word) in words.sizes_asked["noun"] | words.model_words
        is_of_models |= word in models.families_of_models(self._catalog)
        questions = [*Questions(self._text, self._tokens).all()]
        is_asked = self._asks_for_model or asks_for_model(questions)
        is_asked |= key_of(word) in words.sizes_asked["best"] | words.sizes_asked["any"]
        is_most = name in AT_MOST
        is_for_models = any(question.field == hardware.NAME for question in questions)
        is_for_models |= is_of_models and is_most and self._is_for(noun)
        is_for_models &= not is_asked
        is_range = name == BETWEEN and models.is_size(self._word(index + 2))
        others = (at for _, at, _ in self._models() if at not in (index, index + 2 * is_range))
        is_weak = key_of(self._span(index - few, few)) in words.sizes_asked["weak"] if few else False
        is_meant = self._asks_for_model or (is_of_models and (is_asked or (is_for_models and is_most)))
        if (is_weak and not is_meant) or next(others, None) is not None:
            return None
        count, text = 1 + int(self._is_model_word(self._word(index + 1))), self._span(index - few, few + 1)
        parameters = parse_quantity(size, "")
        if few and self._is_free(index - few, few):
            self._taken[index - few] = few, Meaning()
        if is_for_models:
            family = self._family_before(noun)
            several = ModelsAsked(family, kind).within(name, parameters)
            named = several.names(self._catalog) if family or kind else ()
            largest = models.named_model(named[0], self._catalog) if named else models.sized_model(size, self._catalog)
            why = f"{text}: planned for the largest of them; {largest.why if largest else ''}".rstrip("; ")
            return None if largest is None else (count, replace(largest, why=why))
        if is_range:
            count, text, most = 3, f"{text} {self._span(index + 1, 2)}", parse_quantity(self._word(index + 2), "")
            self._models_asked = self._models_asked.within("at most", most)
        self._models_asked = self._models_asked.within(name, parameters)
        return count, Meaning(f"{text} parameters")

    def _is_for(self, noun: int) -> bool:
        """Whether a machine is for models that a word calls so, as in ``gpu for llama models``."""
        is_for = "for" in map(self._word, range(noun - _LONGEST_FAMILY, noun))
        return is_for and self._subject_of(noun) == hardware.NAME

    def _family_before(self, noun: int) -> str:
        """Take the family that ends at a word of models or before it, as in ``llama models``; empty for none."""
        places = {at: self._words_of_family(at) for at in range(max(noun - _LONGEST_FAMILY + 1, 0), noun + 1)}
        at = next((at for at, few in places.items() if few and at + few in (noun, noun + 1)), None)
        if at is None:
            return ""
        self._taken[at] = places[at], Meaning()
        return self._span(at, places[at])

    def _asks_of_family(self) -> bool:
        """Keep a family whose model was guessed and is asked for instead, as in ``2x3090, llama, which model size``."""
        guessed = [at for at, (_, meaning) in self._taken.items() if meaning.why and models.MODEL in meaning.values]
        at = next((at for at in guessed if not any(map(str.isdigit, self._span(at, self._taken[at][0])))), None)
        is_asked = at is not None and key_of(self._word(at - 1)) in vocabulary().choosing
        if at is None or not (is_asked or self._models_asked.is_bounded or asks_for_model(self._questions)):
            return False
        family, self._taken[at] = self._span(at, self._taken[at][0]), (self._taken[at][0], Meaning())
        self._models_asked = replace(self._models_asked, family=family)
        self._values.pop(models.MODEL)
        return True

    def _of_models(self, asked: Asked | None) -> Asked | None:
        """Return what a line asks, of the models that it names; one of no hardware is refused."""
        models_asked = self._models_asked
        if MODEL in self._values:
            models_asked = ModelsAsked(models_asked.family)
        if models_asked.is_open:
            return asked
        rows = models_asked.names(self._catalog)
        if asked is None and hardware.NAME in self._values:
            asked = Asked(MODEL, tuple(self._limits.values()))
        if rows and not models_asked.superlative and asked is not None and asked.solve == MODEL:
            return replace(asked, why=f"the largest {models_asked.words}", models=rows)
        self._faults.append(models_asked.fault(is_known=bool(rows)))
        return asked
