"""A line as words: where they stand, which were recognized, and what was set so far."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import KnownModel
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import ModelsAsked
from capacity_tui.engine.plan.line.lexicon.numerals import counted_tokens, range_in
from capacity_tui.engine.plan.line.lexicon.question_words import Question
from capacity_tui.engine.plan.line.lexicon.task_words import usual_listeners, with_listeners
from capacity_tui.engine.plan.line.lexicon.tokens import PLAIN_MARKS, WHOLE
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, Amount, Assumption, Meaning, Sight

ACCUMULATION, STEPS_OF_EPOCH, REPEATS = "accumulation", "steps of an epoch", "repeats"
PIXELS, LARGEST_SIDE = 32, 1536  # Sides of images are so many times a whole number, and no longer
DRAWING = ("grpo", "ppo")  # Preferences that draw answers
_LENGTHS = frozenset({Key.TRAINING_SEQ_LEN, Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS})
_CONTEXTS = ("context that an engine is started with", "longest sequence")
_FAR_PASS = 6  # Words between a part of a training and how long it takes


class LineWords:
    """A line whose words are being recognized, one kind after another."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        self._text = text.translate(PLAIN_MARKS)
        self._catalog = catalog
        self._taken: dict[int, tuple[int, Meaning]] = {}
        self._tokens = with_listeners(counted_tokens(text, catalog), catalog)
        self._values: dict[str, object] = {}
        self._assumed: list[Assumption] = []
        self._faults: list[PlanError] = []
        self._unknown: dict[str, str] = {}
        self._limits: dict[int, str] = {}
        self._counts = dict.fromkeys((ACCUMULATION, STEPS_OF_EPOCH, REPEATS), 0)  # of a training, by what they count
        self._batch_tokens = 0
        self._cores = 0
        self._peak, self._peak_at = 1.0, 0  # how many times the load there is at most, and where that stands
        self._models_asked = ModelsAsked()  # of which the largest or the best is asked for
        self._asks_for_model = False
        self._tokens_of_job: tuple[str, int] = "", 0  # the length that requests have of them, and all that are served
        self._group = 0  # answers that are drawn to each prompt of a training
        self._picture_sides = (0, 0)  # pixels of a picture that a language model looks at
        self._pictures = 0  # of them in a request
        self._share_of_users = 0.0
        self._is_shared_card = False  # whether others hold a part of its memory
        self._ruled_out_values: list[tuple[set[str], PlanError]] = []
        self._excluded: set[int] = set()  # where names of hardware end that is not wanted
        self._document_tokens = 0
        self._compute = 0.0  # FLOPs of a training
        self._context = 0  # tokens that a request reads and writes at most
        self._token_rates: dict[str, tuple[int, float]] = {}  # tokens in so many seconds, of answers or of all
        self._hours_of_devices = 0.0  # the most hours of all devices together
        self._signed: set[int] = set()  # where sums stand that had no sign
        self._purchases: list[Question] = []  # sums that hardware is bought for: which is the cheapest
        self._device_price = 0.0
        self._price_of = ""  # what costs so much an hour
        self._task = ""  # What is done; empty as long as words are only looked at for names
        self._model: KnownModel | None = None
        self._questions: tuple[Question, ...] = ()

    def _assume(self, path: str, value: object, why: str) -> None:
        """Set what follows from other words, and say why."""
        self._values[path] = value
        self._assumed.append(Assumption(path, value, why))

    def _rename(self, path: str, row_id: str) -> None:
        """Take another row of the catalogue for the words that named one."""
        before = str(self._values[path])
        self._values[path] = row_id
        for index, (count, meaning) in self._taken.items():
            if path in meaning.values:
                words = meaning.words.replace(before, row_id)
                self._taken[index] = count, replace(meaning, words=words, values={**meaning.values, path: row_id})

    def _degree(self, path: str, otherwise: float = 1) -> int:
        """Return the number that the line has for a field; another where it has none, or one that is no count."""
        text = str(self._values.get(path, otherwise))
        return max(int(text), 1) if text.isdecimal() else max(int(otherwise), 1)

    def _written(self, index: int) -> str:
        return self._text[self._tokens[index].start : self._tokens[index].end]

    def _span(self, index: int, count: int) -> str:
        words = self._tokens[index : index + count]
        return words[0].text if len(words) == 1 else " ".join([token.text for token in words])

    def _hardware_words(self) -> set[int]:
        """Return where words stand that name hardware."""
        of_hardware = {hardware.NAME, hardware.SPEC}
        return {index for index, (_, meaning) in self._taken.items() if meaning.values.keys() & of_hardware}

    def _contexts(self) -> tuple[str, ...]:
        """Return what counts the tokens of prompt and answer together: of some engines each word of a length."""
        is_whole = not vocabulary().context_in_all.isdisjoint(self._keys())
        return (*_CONTEXTS, settings.SEQUENCE) if is_whole else _CONTEXTS

    def _is_free(self, index: int, count: int = 1) -> bool:
        """Whether so many words from here on were not recognized yet."""
        end, taken = index + count, ((start, start + length) for start, (length, _) in self._taken.items())
        return end <= len(self._tokens) and not any(start < end and index < last for start, last in taken)

    def _is_number_at(self, index: int) -> bool:
        return 0 <= index < len(self._tokens) and settings.is_number(self._tokens[index].text)

    def _is_apart(self, index: int, marks: Iterable[str] = ",;?(") -> bool:
        """Whether a comma or the like stands behind a word."""
        after = self._tokens[index + 1].start if index + 1 < len(self._tokens) else len(self._text)
        between = self._text[self._tokens[index].end : after]
        is_listed = self._tokens[index].ends and between.isspace()  # CPU: 80 GPU: 8
        return is_listed or any(mark in between for mark in marks)

    def _is_of_nothing(self, index: int) -> bool:
        """Whether a word is of what was read and sets nothing, as the size of a group of weights."""
        places = ((start, start + few) for start, (few, taken) in self._taken.items() if taken.words)
        return any(start <= index < end and not self._taken[start][1].values for start, end in places)

    def _keys(self) -> set[str]:
        """Return the keys of all words, and of each two."""
        keys = [key_of(token.text) for token in self._tokens]
        return {*keys, *map("".join, pairwise(keys))}

    def _wanted_keys(self) -> set[str]:
        """Return the keys of words, and of each two, but of those behind a negation: ``no speculative decoding``."""
        keys, negations = [key_of(token.text) for token in self._tokens], vocabulary().negations
        wanted = ["" if {*keys[max(at - 2, 0) : at]} & negations else key for at, key in enumerate(keys)]
        return {*wanted, *map("".join, pairwise(wanted))}

    def _written_range(self, index: int, count: int) -> str | None:
        """Return the range of which some words have the larger number, as the line has it; None for other words."""
        tokens = self._tokens[index : index + count]
        ranges = (range_in(self._text[token.start : token.end], token.text) for token in tokens)
        return next(filter(None, ranges), None)

    def _height_and_width(self, width: int, height: int) -> Meaning | None:
        """Recognize the sides of images that a network takes one by one; None where it has no such sides."""
        own = {name for name, _, _ in self._model.parameters()} if self._model is not None else set[str]()
        names = vocabulary().image_sides
        sides = {f"{OWN_PARAMETERS}{name}": pixels for name, pixels in zip(names, (width, height), strict=True)}
        is_apart = own.issuperset(names) and settings.IMAGE_SIZE not in own
        return Meaning(f"images of {width}x{height} pixels", sides) if is_apart else None

    def _is_edge(self, text: str) -> bool:
        """Whether a number may be the side of the images that the model reads: ``384`` beside a network of pictures."""
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        has_edge = settings.named_field(settings.IMAGE_SIZE, self._task, self._model) is not None
        is_side = text.isdecimal() and not int(text) % PIXELS and int(text) <= LARGEST_SIDE
        return is_side and (has_edge or (row is not None and row.kind == "vit"))

    def _second_size(self, index: int, named: Iterable[tuple[int, Meaning]], length: str) -> Meaning | None:
        """Return what a size is beside names of models, and where these end: that of one again, or what to ask of it.

        Behind the length of a sequence it is that of the job, where nothing else is.
        """
        text, names = self._tokens[index].text, {self._span(end - 1, 1): (end, taken.why) for end, taken in named}
        pieces = {name: re.split("[-_]", name.casefold()) for name in names}
        is_assumed = any(entry.key == Key.TASK for entry in self._assumed)
        is_size = any(why or (is_assumed and end == index) for end, why in names.values())
        is_of_job = length in self._values and Key.TRAINING_SAMPLES not in self._values
        model = re.split("[-_]", str(self._values.get(Key.MODEL_NAME, "")).casefold())
        is_same = any(text.casefold() in of for of in (*pieces.values(), model))
        is_again = is_same and not (is_of_job and self._is_number_at(index - 1))  # lora 7b 3060, is a 7b possible
        if not (self._task == FINETUNE or is_size) or (is_of_job and not is_again):
            return None
        if is_again:
            return Meaning()
        for name, (end, why) in names.items():
            if why and end == index and not any(map(models.is_size, pieces[name])):
                hint = f"write {text} alone for a usual model of that size, or {text[:-1]}B tokens; {why}"
                return Meaning(fault=PlanError("no model of that name and size is known", f"{name} {text}", hint))
        hint = f"write {text[:-1]}B tokens, or name one model, or say vs between several"
        return Meaning(fault=PlanError("a second model, or tokens?", text, hint))

    def _is_before_card(self, index: int) -> bool:
        """Whether a number too large for cards stands right before the bare number of one: ``yolo11n 640 1050``."""
        text, card, least = self._tokens[index].text, self._word(index + 1), vocabulary().bounds["side of an image"]
        is_many = text.isdecimal() and int(text) > least and not self._tokens[index].ends
        return is_many and card.isdecimal() and hardware.named_hardware(card, self._catalog) is not None

    def _leave_out(self, path: str, why: str) -> None:
        """Leave out the words that say a field, as the size of a file: ``random forest 54M rows 11 cols 3 GB``."""
        for index, (count, meaning) in self._taken.items():
            if path in meaning.values:
                self._taken[index] = count, Meaning(why=f"left out: {self._span(index, count)}; {why}")
                self._values.pop(path, None)

    def _places_of(self, path: str) -> set[int]:
        """Return where words stand that say a field."""
        spans = ((start, count) for start, (count, taken) in self._taken.items() if path in taken.values)
        return {at for start, count in spans for at in range(start, start + count)}

    def _subject_of(self, verb: int) -> str:
        """Return what a verb is of, by the nearest word before it: the model, a machine, or neither."""
        words, amounts = vocabulary(), vocabulary().amounts
        model = self._places_of(Key.MODEL_NAME)
        for at in range(verb - 1, -1, -1):
            key = key_of(self._span(at, 1))
            if at in model or key in words.model_words:
                return Key.MODEL_NAME
            if key in words.boxes or settings.amount_of(key) in (amounts["devices"], amounts["nodes"]):
                return hardware.NAME
        return ""

    def _is_pass(self, word: str) -> bool:
        """Whether a word is a part of a training that is done again and again: a step or an epoch."""
        amount = settings.amount_of(word) if word else None
        return amount is not None and amount.fields.get(TRAIN) in settings.PASSES

    def _is_of_pass(self, index: int) -> bool:
        """Whether a time is of a part of a training: ``each epoch 3 hours``, ``epoch: 3h``, ``10 epochs, 3h each``."""
        words = [self._span(at, 1) for at in range(max(index - _FAR_PASS, 0), index)]
        numbers = [at for at, word in enumerate(words, 1) if word[:1].isdigit()]
        clause = words[numbers[-1] if numbers else 0 :]
        ones = (key_of(one) for one, noun in pairwise(clause) if self._is_pass(noun))
        is_of_every = key_of(self._span(index + 1, 1)) in vocabulary().every["again"] and not self._tokens[index].ends
        is_of_every &= any(map(self._is_pass, words))
        is_bare = bool(words) and self._is_pass(words[-1]) and self._is_free(index - 1) and words[-1][-1] != "s"
        return is_of_every or is_bare or not vocabulary().every["again"].isdisjoint(ones)

    def _is_group(self, name: str, value: str) -> bool:
        """Whether a word that may count rows counts the answers to a prompt, which are few: ``n=8``."""
        words = vocabulary()
        return key_of(name) in words.drawn and int(value) < words.bounds["answers of a group"]

    def _is_of_requests(self, index: int, count: int) -> bool:
        """Whether a word of some says that they are requests, as ``queries``, rather than what one has several of."""
        amounts = (settings.amount_of(self._span(at, 1)) for at in range(index, index + count))
        return vocabulary().amounts["requests"] in amounts

    def _is_followed(self, amount: Amount) -> bool:
        """Whether what is done has a field for an amount, or learns from answers that are so long."""
        is_answer = amount.field(INFER) == Key.INFERENCE_OUTPUT_TOKENS
        is_answer |= amount.name == "tokens in" and "out" in self._keys()
        return (is_answer and self._task == FINETUNE) or amount.field(self._task) is not None

    def _is_bounded(self, index: int, amount: Amount) -> bool:
        """Whether the number before a word of the most is how much that is, as in ``32k max response length``."""
        text, of_length = self._word(index - 1), not _LENGTHS.isdisjoint(amount.fields.values())
        is_length = of_length and self._is_number_at(index - 1) and not self._tokens[index - 1].ends
        is_length = is_length and settings.at_least(text, int(vocabulary().bounds["tokens of a prompt"]))
        return is_length and hardware.named_hardware(text, self._catalog) is None

    def _is_rate_of_devices(self, index: int) -> bool:
        """Whether compute is that of devices in a second rather than of a whole job, as in ``at 1e15 flops each``."""
        measured, keys = vocabulary().measured, [key_of(token.text) for token in self._tokens]
        before = {"".join(keys[max(index - few, 0) : index]) for few in (1, 2)}
        behind = {"".join(keys[index + 2 : index + 2 + few]) for few in (1, 2)}
        return not (measured["computing"].isdisjoint(before) and measured["computing behind"].isdisjoint(behind))

    def _is_written(self, value: str) -> bool:
        """Whether a word before so many tokens says that they are written: ``generating 10M texts of 500 tokens``."""
        before = next((at for at, token in enumerate(self._tokens) if token.text == value), 0)
        keys = ["", "", *(key_of(token.text) for token in self._tokens[:before])]
        last = self._tokens[max(before - 1, 0)]
        ends = self._text[last.start : last.end].split()[-1:]  # 10 s per answer (300 tokens)
        if any(vocabulary().timed.get(key_of(word)) == WHOLE for word in ends):
            return True
        is_aim = keys[-1] in vocabulary().becoming and keys[-2] != "up"  # summarised to 300 tokens
        is_aim |= keys[-1] == "of" and keys[-2] in vocabulary().written  # 100k completions of 500 tokens
        return is_aim or any(key in vocabulary().writing for key in keys)

    def _sees(self) -> Sight | None:
        """Return what the model makes of a picture; None where it sees none."""
        model, rows = str(self._values.get(Key.MODEL_NAME, "")), vocabulary().sights
        return next((row for begins, row in rows.items() if model.startswith(begins)), None)

    def _is_reading(self) -> bool:
        """Whether the model of the line reads, and writes nothing."""
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME, "")))
        return row is not None and (row.kind == "encoder" or self._is_embedder())

    def _is_embedder(self) -> bool:
        """Whether the model of the line is a decoder that was made to embed or to rank: ``e5-mistral-7b``."""
        places = [(at, few) for at, (few, taken) in self._taken.items() if Key.MODEL_NAME in taken.values]
        names = (part for at, few in places for part in re.split("[-_/ ]", self._span(at, few).casefold()))
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME, "")))
        is_named = not vocabulary().embedders.isdisjoint(names)
        return is_named and row is not None and row.kind == "decoder"

    def _is_of_sound(self) -> bool:
        """Whether the model reads sound."""
        name = str(self._values.get(Key.MODEL_NAME, ""))
        row = self._catalog.architectures.get(name) or self._catalog.networks.get(name)
        return row is not None and row.is_of_sound

    def _seconds_heard(self) -> float:
        """Return the seconds of sound that the model of the line reads at a time, unless the line says others."""
        name = str(self._values.get(Key.MODEL_NAME) or usual_listeners(self._catalog)[0])
        return (self._catalog.architectures.get(name) or self._catalog.networks[name]).seconds_of_sound

    def _is_judged(self) -> bool:
        """Whether a line asks if its time or its speed is as it should be: ``88 hours, is this normal?``."""
        measured, words = vocabulary().measured, [key_of(token.text) for token in self._tokens]
        if not self._keys().isdisjoint(measured["too much"]):
            return True
        for at in (at for at, word in enumerate(words) if word in measured["judged"]):
            verb = next((start for start in range(at - 1, -1, -1) if words[start] not in measured["of it"]), -1)
            is_asked = 0 <= verb < at - 1 and words[verb] in measured["judging"]  # not are expected
            is_asked &= words[verb - 1] not in vocabulary().queries
            is_foreseen = [words[at], *words[at + 1 : at + 2]] == ["expected", "to"]  # how long is it expected to take
            if self._is_apart(at, "?") or (is_asked and not is_foreseen):  # 88 hours, normal? is this normal
                return True
        return False

    def _is_apiece(self, index: int) -> bool:
        """Whether a word says that what stands before it is of each of some, as in ``8 gpus each``."""
        return key_of(self._span(index, 1)) in vocabulary().every["apiece"]

    def _is_per_device(self, start: int, end: int) -> bool:
        """Whether words are of each device: ``128gb ram per gpu``, ``each gpu has 128gb ram``, ``each with 128gb``."""
        words = vocabulary()
        first = start - int(start > 0 and key_of(self._span(start - 1, 1)) in words.every["owning"])
        before = [self._span(first - few, few) for few in (1, 2) if few <= first and not self._is_apart(first - 1)]
        spans = (*before, self._span(end, 1), self._span(end, 2))
        return not words.per_device.isdisjoint(map(key_of, spans))

    def _has_apiece(self) -> bool:
        """Whether any word of the line says so."""
        return any(map(self._is_apiece, range(len(self._tokens))))

    def _is_holding(self, index: int) -> bool:
        """Whether a word stands between nodes and the devices of each, as in ``nodes of 8``."""
        return key_of(self._span(index, 1)) in vocabulary().every["holding"]

    def _word(self, index: int) -> str:
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def _aside(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a model's name that says how long another one is trained: ``1.3b chinchilla``."""
        if key_of(self._tokens[index].text) not in vocabulary().aside or models.is_size(self._span(index + 1, 1)):
            return None
        others = [token.text for at, token in enumerate(self._tokens) if at != index]
        is_other = any(models.is_size(word) or models.named_model(word, self._catalog) for word in others)
        return (1, Meaning()) if is_other else None
