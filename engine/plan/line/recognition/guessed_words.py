"""The words of a line that nothing else recognized: numbers of their usual meaning and the nearest names."""

from __future__ import annotations

import re
from dataclasses import replace

from capacity_tui.engine.catalog import format_in_name, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of
from capacity_tui.engine.plan.line.lexicon.question_words import Questions
from capacity_tui.engine.plan.line.lexicon.similarity import (
    HARDWARE_NAME,
    MODEL_NAME,
    TASK_NAME,
    is_common,
    is_near_filler,
    similar_names,
    unknown_words,
)
from capacity_tui.engine.plan.line.lexicon.task_words import TASK, task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import (
    FIT,
    INFER,
    NO_LIMIT,
    OF_WHAT,
    REFUSED,
    TRAIN,
    UNCOUNTED,
    Meaning,
)
from capacity_tui.engine.plan.line.questions import HALF
from capacity_tui.engine.plan.line.recognition.derived_values import DerivedValues
from capacity_tui.engine.plan.line.recognition.money_words import A_SPAN
from capacity_tui.engine.units import parse_count

_NOTHING = Meaning()
_NAMES = frozenset({models.MODEL, hardware.NAME})
_QUANTIZED = {Key.TRAINING_QUANTIZATION, "qlora"}  # By bitsandbytes, as are states of optimizers in 8 bits
_ON = frozenset({"on", "with", "using"})  # Words before a number of devices that were named before

_LIKE = re.compile(r"([a-z]+)[\d.]*-(?:style|like|type|based|class)", re.IGNORECASE)
_LANES = re.compile(
    r"x\d{1,2}(?:/x?\d{1,2})*|\d{1,2}u|\d{1,3}c(?:/\d{1,3}t)?|gen\d|\d+h/[a-z]+|\d+%/\d+%|\d\.\d+x|\w[\w.]*\(\)|cl\d\d",
    re.IGNORECASE,
)
"""Lanes of a slot, cores, hours, shares, latencies: ``x8``, ``8c/16t``, ``43%/57%``, ``CL30``."""
_PROGRESS = re.compile(r"\d+/\d+|(?:\d+:)+\d\d<(?:\d+:)+\d\d|\d+(?:\.\d+)?(?:it/s|s/it)", re.IGNORECASE)
"""A bar of progress in a log: ``25848/25848 [5:32:46<00:00, 1.29it/s]``, whose rate or time says that it is one."""
_FLAT = ("1d", "2d")  # Dimensions of data rather than days
_OF_A_PAIR = 2  # Words between two numbers of which one takes the place of the other
_DIGITS_OF_MANY = 4  # Of a number that is no release and no few of something


class GuessedWords(DerivedValues):
    """A line whose words were recognized, and what becomes of the others."""

    def _guessed(self, index: int) -> tuple[int, Meaning] | None:
        """Take what nothing else recognized for a number of its usual meaning, or for the most similar name."""
        if not self._is_free(index):
            return None
        text = self._tokens[index].text
        is_year = settings.is_year(text) and index > 0 and key_of(self._tokens[index - 1].text) in vocabulary().joints
        if (nothing := _NOTHING if is_year else self._nothing(index)) is not None:
            return 1, nothing
        taken = self._replicas(index) or self._longest(index) or self._whole(index) or self._around(index)
        taken = taken or self._samples_of(index) or self._requests_of(index) or self._part_of_others(index)
        taken = taken or self._embedded(index)
        if taken is None and settings.is_number(text) and (memory := self._memory_behind(index)) is not None:
            taken = 1, memory  # a100 80 monthly
        if taken is not None:
            return taken
        if (fault := self._uncounted(index)) is not None:
            return 1, Meaning(fault=fault)
        if settings.is_number(text):
            return 1, self._bare_number(index)
        return 1, _NOTHING if is_near_filler(text) else self._data_like(text) or self._similar(text)

    def _around(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out a number of what stands around devices, or of a release: ``4 racks``, ``x8``, ``windows 11``."""
        words, text = vocabulary(), self._tokens[index].text
        before, after = key_of(self._span(index - 1, 1)) if index else "", key_of(self._span(index + 1, 1))
        devices = self._values.get(hardware.DEVICES)
        is_whole = text == "1" and after in words.boxes
        if is_whole and isinstance(devices, int) and Key.HARDWARE_PER_NODE not in self._values:
            return 1, Meaning("one machine", {Key.HARDWARE_PER_NODE: devices})  # 16 a10 in one machine
        is_few = text.isdecimal() and len(text) < _DIGITS_OF_MANY and self._span(index + 2, 1) != "of"  # 4 racks of 8
        is_behind = is_few and after in words.surroundings | words.disks and not self._is_apart(index)
        is_released = is_few and before in words.surroundings | words.software
        is_released |= text.lstrip("-").isdecimal() and before in words.numbered  # exit code -9
        is_released &= not self._is_apart(index - 1)
        is_lane = _LANES.fullmatch(text) is not None or self._is_narrated_share(index)
        is_network = self._model is not None and self._model.kind == "network"
        row = self._catalog.architectures.get(str(self._values.get(models.MODEL)))
        is_lane |= is_network and text.casefold() in _FLAT  # unet 2d
        is_lane &= self._task == FIT or not (text[0].isdigit() and text.endswith("()"))  # labels (483903,) of a fit
        is_lane |= row is not None and text.casefold() == f"{row.layers}-layer"  # a 12-layer gpt-2
        bar = [match[0] for match in _PROGRESS.finditer(self._text)]
        is_lane |= text in bar and any(not part.replace("/", "").isdecimal() for part in bar)
        is_given_up = key_of(self._span(index - 2, 2)) in words.given_up and index > _OF_A_PAIR
        is_lane |= is_given_up and self._text[self._tokens[index].end :].startswith(")")  # rank (64 instead of 32)
        if not (is_behind or is_released or is_lane):
            return None
        first = index - int(is_released and not is_behind)
        span = self._span(first, index + 1 + int(is_behind) - first)
        self._taken.pop(index + 1 if is_behind else first, None)
        return 1 + int(is_behind), Meaning(why=f"left out: {span}")

    def _requests_of(self, index: int) -> tuple[int, Meaning] | None:
        """Take so many of something in a span of time for requests, where it is served: ``10k invoices a day``."""
        noun, _, span = self._span(index + 1, 1).partition("/")
        last = index + 1
        if not span and self._span(index + 2, 1) in vocabulary().per:
            span, last = self._span(index + 3, 1), index + 3
        amount = vocabulary().amounts.get(key_of(f"requests/{span}")) if span and noun.isalpha() else None
        if self._task != INFER or amount is None or not self._is_number_at(index) or self._is_apart(index):
            return None  # sd 3.5 1024, images per hour
        for at in range(index + 1, last + 1):
            self._taken.pop(at, None)
        one = settings.amount_of(noun)
        if one is not None and one.field(INFER) == Key.INFERENCE_USERS:  # what costs it for 1000 users a month
            meaning = settings.counted(one, self._tokens[index].text, INFER, self._model)
            return last + 1 - index, replace(meaning, why=f"left out: per {span}")
        meaning = settings.counted(amount, self._tokens[index].text, INFER, self._model)
        return last + 1 - index, replace(meaning, why=f"{noun}: taken for requests")

    def _embedded(self, index: int) -> tuple[int, Meaning] | None:
        """Take so many of something that nothing else counts for what a line embeds: ``embed 3M product blurbs``."""
        path, own = Key.INFERENCE_REQUESTS, self._places_of(models.MODEL)
        keys = {key_of(token.text) for at, token in enumerate(self._tokens) if at not in own}
        is_work = self._task == INFER and self._is_reading() and not vocabulary().embedders.isdisjoint(keys)
        is_some = settings.is_number(self._tokens[index].text) and self._counts_something(index)
        if not (is_work and is_some) or path in self._values or self._is_asked_how_many(index):
            return None
        self._taken.pop(index + 1, None)
        meaning = settings.field_value(path, self._tokens[index].text, INFER)
        return 2, replace(meaning, why=f"{self._span(index, 2)}: taken for texts, each of which is a request")

    def _part_of_others(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out a part of what is counted before it, unless that is devices: ``80 features, 30 of them dates``."""
        before = (taken.values for at, (_, taken) in sorted(self._taken.items()) if at < index)
        counted = [values for values in before if values.keys() - {TASK}]
        is_other = self._is_number_at(index) and self._is_part(index) and bool(counted)
        if not is_other or not _NAMES.isdisjoint(counted[-1]):
            return None
        return 3, Meaning(why=f"left out: {self._span(index, 3)}")

    def _whole(self, index: int) -> tuple[int, Meaning] | None:
        """Take the most time of a model that writes nothing for that of a request: ``reranker under 200ms``."""
        row, text = self._catalog.architectures.get(str(self._values.get(models.MODEL))), self._tokens[index].text
        is_most = key_of(self._span(index - 1, 1)) in vocabulary().limiting | vocabulary().within
        if self._task != INFER or row is None or row.kind != "encoder" or not (is_most and settings.is_time(text)):
            return None
        return 1, settings.counted(vocabulary().amounts["e2e"], text, INFER, self._model)

    def _uncounted(self, index: int) -> PlanError | None:
        """Return what to say of a time, a share or a number of something that nothing is known to be counted in."""
        text = self._tokens[index].text
        noun = key_of(self._span(index + 1, 1))
        if settings.is_number(text) and noun in vocabulary().surroundings and self._span(index + 2, 1) == "of":
            hint = "say how many devices there are in all, as 128 h100, or 16 nodes 8xh100"  # 4 racks of h100
            return PlanError("how many in each?", self._span(index, 2), hint)
        if settings.is_time(text) or duration_of(text) is not None:
            hint = "write ttft 500ms, tpot 50ms or e2e 8s of a latency, within 24h of a job"
            return PlanError(NO_LIMIT, text, hint)
        if text.endswith("%") and settings.is_number(text[:-1]):
            hint = "write 10% of 200 users, or 40% prefix hits"
            amount = settings.amount_of(self._span(index + 2, 1))
            if amount is not None and amount.field(INFER) == Key.INFERENCE_REQUESTS:
                hint = "say how long requests are in the mean, as prompt 2k output 300; others are not told apart"
            return PlanError(OF_WHAT, self._span(index, 2), hint)
        rate = self._span(index + 1, 1).split("/")
        is_rate = len(rate) > 1 and all(map(str.isalpha, rate)) and not self._is_apart(index)  # 2500 samples/s
        is_counted = is_rate or self._counts_something(index)
        if settings.is_number(text) and is_counted and not self._is_asked_how_many(index):
            hint = f"write a word with it, {settings.EXAMPLES}"
            return PlanError(UNCOUNTED, self._span(index, 2), hint)
        return None

    def _nothing(self, index: int) -> Meaning | None:
        """Recognize a word that says nothing beside the others, or that says too little alone."""
        text, words = self._tokens[index].text, vocabulary()
        path, hint = words.needs.get(key_of(text), ("", ""))
        if (match := A_SPAN.fullmatch(text)) and match[1] in words.spans:
            hint = f"write ${text} of money, or {text.partition('/')[0]} requests/{match[1]}"
            return Meaning(fault=PlanError("so much of what?", text, hint))
        questions = Questions(self._text, self._tokens, self._task).all() if path else ()
        is_asked = any(question.field == path for question in questions)
        is_half = any(key_of(token.text) == HALF for token in self._tokens)
        is_asked |= path == Key.INFERENCE_GPU_LAYERS and hardware.NAME in self._values and not is_half  # all that fit
        is_of_task = self._task == INFER or not path.startswith("inference.")  # lora adapters: rank 16
        packed = _QUANTIZED | {row.eight_bit for row in self._catalog.optimizers.values()}
        is_asked |= path in _QUANTIZED and not packed.isdisjoint((*self._values, *map(str, self._values.values())))
        if path and is_of_task and path not in self._values and not is_asked:
            return Meaning(fault=PlanError(f"{text!r} alone says too little", hint=hint))
        field = settings.named_field(text, self._task, self._model)
        is_given = bool(path) or (field is not None and field[0] in self._values)
        is_format = key_of(text) in words.formats or format_in_name(text) is not None
        if self._task in (TRAIN, FIT) and is_format:
            hint = "say qlora, or leave it out" if self._task == TRAIN else "leave it out"
            return Meaning(fault=PlanError("training from the start has weights of 16 bits or more", text, hint))
        is_known = key_of(text) in words.fillers or key_of(text) in self._catalog.architectures.variants
        is_number = field is not None and field[1].kind not in ("choice", "switch")
        is_known |= is_number and not self._is_number_at(index + 1)  # will cp help?
        is_known |= self._is_size_of_model(index) or settings.amount_of(text) is not None
        is_known |= not any(map(str.isalnum, text)) or text.startswith(("r/", "u/"))
        parts, plain = re.split("[-/]", text.casefold()), words.fillers | words.fields.keys() | words.amounts.keys()
        is_counted = index - 1 in self._taken and self._is_number_at(index - 1)  # 2M words/day; not dp 8
        is_plain = not is_counted and len(parts) > 1 and all(part in plain for part in parts)  # tp/pp/dp, node-hours
        is_known |= is_plain and words.refused_release(text) is None  # depth-anything-small
        row = self._catalog.architectures.get(str(self._values.get(models.MODEL)))
        is_known |= row is not None and f"({text})" in row.name  # vit-l-16 at 224
        is_known |= self._is_its_algorithm(text)
        like = _LIKE.fullmatch(text.casefold())  # a llama-style model
        is_known |= like is not None and like[1] in words.fillers | models.families_of_models(self._catalog)
        is_known |= key_of(text) in words.model_words and models.MODEL in self._values  # a 125M param gpt
        return Meaning(why=words.remarks.get(key_of(text), "")) if is_given or is_known else None

    def _is_its_algorithm(self, word: str) -> bool:
        """Whether a word is the family of the algorithm that another word names: ``XGBoost, DaskXGBClassifier``."""
        key, family = key_of(word), str(self._values.get(models.MODEL)).partition("_")[0]
        others = (self._span(at, 1) for at in self._places_of(models.MODEL))
        return self._task == FIT and key == family and any(key[:2] in key_of(other) for other in others)

    def _bare_number(self, index: int) -> Meaning:
        """Return what a number without a word counts."""
        text = self._tokens[index].text
        if self._written_range(index, 1):
            return self._range(index, 1)
        if self._begins_range(index) and self._is_number_at(index + 2):
            return self._range(index)
        behind = self._taken.get(index + 1, (0, _NOTHING))[1].values
        path = Key.INFERENCE_PROMPT_TOKENS if self._task == INFER else Key.TRAINING_SEQ_LEN
        is_of_one = hardware.NAME in behind and hardware.DEVICES not in behind
        if self._task == TRAIN and text[-1] in "kK" and is_of_one and path not in self._values:
            hint = f"write {parse_count(text)} {self._span(index + 1, 1)}, or seq {text}"
            return Meaning(fault=PlanError("so many devices, or a length?", self._span(index, 2), hint))
        is_part = self._is_part(index) and text.isdecimal()  # a6000s, 3 of them
        is_part |= index + 1 == len(self._tokens) and key_of(self._span(index - 1, 1)) in _ON and text.isdecimal()
        is_part |= is_of_one and text[-1] in "kK" and path in self._values  # seq 8192, 16k h100
        if is_part and hardware.NAME in self._values and hardware.DEVICES not in self._values:
            machine = self._catalog.instances.get(str(self._values[hardware.NAME]))
            devices = parse_count(text) * (1 if machine is None else machine.sold_devices)
            return Meaning(f"{devices} devices", {hardware.DEVICES: devices}, f"{text}: {devices} devices")
        # Behind the length of a sequence it is the length of the job, as in ``4k 1B``.
        named = [(at + count, taken) for at, (count, taken) in self._taken.items() if models.MODEL in taken.values]
        if text[-1] in "bB" and (meaning := self._second_size(index, named, path)) is not None:
            return meaning
        edge = settings.named_field(settings.IMAGE_SIZE, self._task, self._model)
        sides = self._edge(int(text), int(text)) if text.isdecimal() else None  # vit-b-16 at 384
        return sides or settings.bare_number(text, self._task, path in self._values, edge)

    def _begins_range(self, index: int) -> bool:
        is_between = index > 0 and key_of(self._span(index - 1, 1)) == "between"
        joints = ("and", "to", "-", "–") if is_between else ("to", "-", "–")
        return self._span(index + 1, 1) in joints and index + 2 < len(self._tokens)

    def _range(self, index: int, words: int = 3) -> Meaning:
        written = self._written_range(index, words) or self._span(index, words)
        return Meaning(fault=PlanError("a range is no plan", written, "keep one number of it"))

    def _similar(self, text: str) -> Meaning:
        """Return what the name most similar to a word stands for, or say that there is none."""
        if is_common(text):
            self._unknown[text] = text  # left out, unless it may be a name where it stands
            return Meaning(fault=unknown_words({text: text}, self._catalog))
        counted = hardware.counted(text)
        name = counted[1] if counted else text
        hint = vocabulary().refused_release(text)
        for kind, near in () if hint and "/" in text else similar_names(name, self._catalog):
            why = f"{text[:40]}: {near} is the nearest name"
            if kind == HARDWARE_NAME and hardware.NAME not in self._values:
                return hardware.hardware_called(near, counted[0] if counted else None, self._catalog, why)
            if kind == MODEL_NAME and models.MODEL not in self._values and counted is None:
                meaning = models.named_model(near, self._catalog)
                if meaning is not None:
                    return Meaning(meaning.words, meaning.values, why)
            meaning = task_named(near) if kind == TASK_NAME else None
            if meaning is not None and meaning.values.get(TASK) == self._values.get(TASK):
                return Meaning(meaning.words, meaning.values, why)
        if hint is not None:
            return Meaning(fault=PlanError(f"{text!r} {REFUSED}", hint=hint))
        self._unknown[text] = name
        return Meaning(fault=unknown_words({text: name}, self._catalog))

    def _longest(self, index: int) -> tuple[int, Meaning] | None:
        """Take the most that stands behind the tokens of an answer for its longest: ``answers of 250, max 1000``."""
        text, is_most = self._tokens[index].text, key_of(self._span(index - 1, 1)) in vocabulary().limiting
        before = next((taken.values for at, (count, taken) in self._taken.items() if at + count == index - 1), {})
        if not (is_most and self._is_number_at(index) and Key.INFERENCE_OUTPUT_TOKENS in before):
            return None
        return 1, settings.field_value(Key.INFERENCE_LONGEST_OUTPUT_TOKENS, text, INFER)
