"""A line whose words are being recognized: what was taken for what, and what that sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import Accelerator, Catalog, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import KnownModel
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import ModelsAsked
from capacity_tui.engine.plan.line.lexicon.numerals import counted_tokens, range_in
from capacity_tui.engine.plan.line.lexicon.quantities import QUANTIZED
from capacity_tui.engine.plan.line.lexicon.question_words import Question
from capacity_tui.engine.plan.line.lexicon.similarity import ONE_OF, joined_names
from capacity_tui.engine.plan.line.lexicon.task_words import METHOD, TASK, usual_listeners
from capacity_tui.engine.plan.line.lexicon.tokens import WHOLE
from capacity_tui.engine.plan.line.lexicon.vocabulary import Sight, vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Assumption, Meaning
from capacity_tui.engine.plan.plan import DETECTED

ACCUMULATION, STEPS_OF_EPOCH, REPEATS = "accumulation", "steps of an epoch", "repeats"
_FARTHEST_PRESENT = 6  # Words from a number of users to what says that these are there at once
_FAR_PASS = 6  # Words between a part of a training and how long it takes
_NOT_WANTED = "a line says what is wanted, not what is not"
_PACKED = "qlora"
_OF_HOST = (hardware.NAME, hardware.DEVICES)  # What a processor sets until accelerators stand beside it


def _is_same(own: Accelerator, other: Accelerator) -> bool:
    """Whether a machine's device is meant by one of as much memory whose number it begins with: A10 of an A10G."""
    names = (next((part for part in row.id.split("-") if any(map(str.isdigit, part))), row.id) for row in (own, other))
    return next(names).startswith(next(names)) and hardware.is_memory_of(own, other.memory_mib or 1)


class TakenWords:
    """A line whose words are being recognized, the pass of one after another."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        self._text = text
        self._catalog = catalog
        self._taken: dict[int, tuple[int, Meaning]] = {}
        self._tokens = counted_tokens(text, catalog)
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
        self._answer_tokens = 0  # tokens of one of them
        self._picture_sides = (0, 0)  # pixels of a picture that a language model looks at
        self._pictures = 0  # of them in a request
        self._share_of_users = 0.0
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

    def _pass(self, recognize: Callable[[int], tuple[int, Meaning] | None]) -> None:
        """Try what was not recognized so far."""
        index = 0
        while index < len(self._tokens):
            match = None if index in self._taken else recognize(index)
            if match is not None:
                self._take(index, *match)
            index += self._taken[index][0] if index in self._taken else 1

    def _take(self, index: int, count: int, meaning: Meaning) -> None:
        tasks = {self._values.get(TASK), meaning.values.get(TASK)} - {None}
        if tasks == {TRAIN, FINETUNE} or (FIT in tasks and len(tasks) > 1):  # "train a LoRA", "does it fit"
            self._values.pop(TASK)
            task = FINETUNE if FIT not in tasks else next(iter(tasks - {FIT}))
            meaning = replace(meaning, values={**meaning.values, TASK: task})
        ruled_out = self._ruling_out(index) or self._ruling_out_as_well(index, meaning)
        behind = {key_of(self._span(index + count, words)) for words in (1, 2, 3)}
        if meaning.values and not vocabulary().measured["of parts"].isdisjoint(behind):
            meaning = Meaning(fault=PlanError("how many in all?", self._span(index, count + 2), "give the total"))
        if not vocabulary().unsupported.isdisjoint(behind):
            meaning = Meaning(why=f"left out: {self._span(index, count)}")
        if meaning.values and meaning.fault is None and ruled_out:
            text = f"{ruled_out} {self._span(index, count)}"
            fault = PlanError(_NOT_WANTED, repr(text)[:60], "say what you want instead, or leave it out")
            self._ruled_out_values.append((set(meaning.values), fault))
            self._excluded |= {index + count} if hardware.NAME in meaning.values else set()
            meaning = Meaning()
        if {hardware.NAME, Key.MODEL_NAME} & meaning.values.keys() and self._is_given_up(index):
            meaning = Meaning(why=f"left out: {self._span(index, count)}")
        meaning = self._users_present(index, self._without_size_of_nodes(self._host(index, meaning)))
        for path, value in meaning.values.items():
            is_one_more = path == hardware.DEVICES and self._is_one_more(index, meaning)
            if path in self._values and self._values[path] != value and meaning.fault is None and not is_one_more:
                text = self._span(index, count)
                detail = f"{text!r} and {self._values[path]}"
                hint = vocabulary().twice.get(path, "keep one of them")
                meaning = Meaning(fault=PlanError(f"{path} is given twice", detail, hint))
        self._values.update(meaning.values)
        if meaning.fault is not None and self._span(index, count) not in self._unknown:
            self._faults.append(meaning.fault)
        self._taken[index] = count, meaning

    def _ruling_out(self, index: int) -> str:
        """Return the words right before a place that rule out what stands there; empty for others."""
        spans = (self._span(index - few, few) for few in (4, 3, 2, 1) if few <= index)
        is_apart = index > 0 and self._tokens[index - 1].ends
        return "" if is_apart else next((span for span in spans if key_of(span) in vocabulary().negations), "")

    def _ruling_out_as_well(self, index: int, meaning: Meaning) -> str:
        """Return the joint between hardware that is not wanted and a place that names more: ``no h100 or a100``."""
        is_more = index - 1 in self._excluded and hardware.NAME in meaning.values
        joint = self._span(index - 1, 1) if is_more else ""
        return joint if key_of(joint) in vocabulary().both | vocabulary().comparing else ""

    def _exclusions(self) -> Iterator[PlanError]:
        """Yield the faults of what is not wanted where nothing else is, kinds of hardware among it: ``no nvidia``."""
        yield from (fault for paths, fault in self._ruled_out_values if not paths <= self._values.keys())
        words, count = vocabulary(), len(self._tokens)
        for index in range(count if hardware.NAME not in self._values else 0):
            spans = (few for few in (2, 1) if index + few <= count)
            few = next((few for few in spans if key_of(self._span(index, few)) in words.hardware_kinds), 0)
            if not few:
                continue
            after = key_of(self._span(index + few, 1))
            is_noun = self._is_apart(index + few - 1) or self._tokens[index + few - 1].ends
            is_noun |= after in words.joints | words.fillers | {""}  # no nvidia driver is none
            if is_noun and (before := self._ruling_out(index)):
                self._unknown.pop(self._span(index, few), None)
                text = f"{before} {self._span(index, few)}"
                yield PlanError(_NOT_WANTED, repr(text), "name the hardware that may be used, or leave it out")

    def _too_few_for_all(self, index: int, count: int) -> str:
        """Return why a batch is of each device: replicas that share their state need one each; empty for others."""
        name, is_shared = self._span(index, count), self._values.get(Key.PARALLELISM_ZERO, 0) not in (0, "0")
        shards = math.prod(map(self._degree, (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP)))
        replicas = self._degree(Key.PARALLELISM_DP, self._degree(hardware.DEVICES) // shards if is_shared else 1)
        is_bare = "".join(filter(str.isalpha, key_of(name))) in vocabulary().bare_batches
        is_bare &= key_of(self._span(index + count, 1)) not in vocabulary().totals
        is_few = is_bare and self._degree(Key.TRAINING_GLOBAL_BATCH) < replicas
        return f"{name}: of each device, as {replicas} replicas need as many" if is_few else ""

    def _users_present(self, index: int, meaning: Meaning) -> Meaning:
        """Take those who are there at once for the users where all of them are named too: ``300 staff, 30 online``."""
        users, others = meaning.values.get(Key.INFERENCE_USERS), self._values.get(Key.INFERENCE_USERS)
        if not (isinstance(users, int) and isinstance(others, int) and users != others):
            return meaning
        some = min(users, others)
        places = (at for at, (_, taken) in self._taken.items() if taken.values.get(Key.INFERENCE_USERS) == some)
        at = index if users == some else next(places, index)
        around = self._tokens[max(at - 1, 0) : at + _FARTHEST_PRESENT]
        if vocabulary().present.isdisjoint(key_of(token.text) for token in around):
            return meaning
        self._assume(Key.INFERENCE_USERS, some, f"{some} users: those there at once, of {max(users, others)}")
        return replace(meaning, values={})

    def _is_one_more(self, index: int, meaning: Meaning) -> bool:
        """Whether hardware is counted with what the line had of it before, as in ``two 3090s, add a third 3090``."""
        written = self._text[self._tokens[index].start : self._tokens[index].end]
        is_same = meaning.values.get(hardware.NAME) == self._values.get(hardware.NAME)
        return is_same and key_of(written.split()[-1]) in vocabulary().ordinals

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

    def _joined(self, index: int) -> tuple[int, Meaning] | None:
        """Refuse several names of a kind as one word, as ``t4/l4``, which a line may compare."""
        text = self._span(index, 1)
        hint = "keep one of them, or say both as A vs B"
        return (1, Meaning(fault=PlanError(ONE_OF, text, hint))) if joined_names(text, self._catalog) else None

    def _is_given_up(self, index: int) -> bool:
        """Whether words before a name say that another one takes its place, as in ``instead of our 8 a100``."""
        if " to " in (self._written_range(index, 1) or ""):
            return False  # upgrading from 3090 to 4090: the range has both
        first = index - int(key_of(self._span(max(index - 1, 0), 1)) in ("a", "an", "the", "our", "my", "these"))
        before = (key_of(self._span(first - words, words)) for words in (1, 2) if first >= words)
        return any(key in vocabulary().given_up for key in before)

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
        is_of_every = key_of(self._span(index + 1, 1)) in vocabulary().every and not self._tokens[index].ends
        is_of_every &= any(map(self._is_pass, words))
        is_bare = bool(words) and self._is_pass(words[-1]) and self._is_free(index - 1) and words[-1][-1] != "s"
        return is_of_every or is_bare or not vocabulary().every.isdisjoint(ones)

    def _is_switched_off(self, index: int) -> bool:
        """Whether a word switches off what is before it: ``offload=no``, ``offload off``; not ``lora no offload``."""
        key, words = key_of(self._span(index, 1)), vocabulary()
        if key not in words.negations or index + 1 >= len(self._tokens) or self._tokens[index].ends:
            return key in words.switched_off
        return key in words.switched_off and self._tokens[index].start == self._tokens[index - 1].start

    def _unquantized(self) -> None:
        """Serve weights of 16 bits where the line says that nothing is quantized, as ``no quantization``."""
        words, path = vocabulary(), Key.INFERENCE_WEIGHTS
        spans = [self._span(at, count).split() for at, (count, _) in self._taken.items() if count > 1]
        is_none = any(key_of(span[0]) in words.negations and key_of(span[-1]) in QUANTIZED for span in spans)
        if self._task == INFER and is_none and path not in self._values:
            self._assume(path, "bf16", "weights: bf16, as nothing is quantized")

    def _packed_base(self, text: str) -> Meaning | None:
        """Take few bits of a base that adapters are trained on for QLoRA, as in ``lora 4bit``."""
        if self._task != FINETUNE or self._values.get(METHOD) == _PACKED or key_of(text) not in vocabulary().formats:
            return None
        base = settings.named_value(text, FINETUNE, _PACKED, self._catalog)
        if base is None or Key.TRAINING_QUANTIZATION not in base.values:
            return None
        if self._values.get(METHOD) == "full":
            hint = "say qlora, or leave it out"
            return Meaning(fault=PlanError("full fine-tuning trains weights of 16 bits or more", text, hint))
        self._values.pop(METHOD, None)
        why = f"{text}: adapters on packed weights are QLoRA"
        return Meaning(base.words, {METHOD: _PACKED, **base.values}, why)

    def _is_group(self, name: str, value: str) -> bool:
        """Whether a word that may count rows counts the answers to a prompt, which are few: ``n=8``."""
        words = vocabulary()
        return key_of(name) in words.drawn and int(value) < words.bounds["answers of a group"]

    def _is_of_requests(self, index: int, count: int) -> bool:
        """Whether a word of some says that they are requests, as ``queries``, rather than what one has several of."""
        amounts = (settings.amount_of(self._span(at, 1)) for at in range(index, index + count))
        return vocabulary().amounts["requests"] in amounts

    def _keys(self) -> set[str]:
        """Return the keys of all words, and of each two."""
        keys = [key_of(token.text) for token in self._tokens]
        return {*keys, *map("".join, pairwise(keys))}

    def _is_rate_of_devices(self, index: int) -> bool:
        """Whether compute is that of devices in a second rather than of a whole job, as in ``at 1e15 flops each``."""
        measured, keys = vocabulary().measured, [key_of(token.text) for token in self._tokens]
        before = {"".join(keys[max(index - few, 0) : index]) for few in (1, 2)}
        behind = {"".join(keys[index + 2 : index + 2 + few]) for few in (1, 2)}
        return not (measured["computing"].isdisjoint(before) and measured["computing behind"].isdisjoint(behind))

    def _subject_of(self, verb: int) -> str:
        """Return what a verb is of, by the nearest word before it: the model, a machine, or neither."""
        words, amounts = vocabulary(), vocabulary().amounts
        named = ((at, few) for at, (few, taken) in self._taken.items() if Key.MODEL_NAME in taken.values)
        model = {at for start, few in named for at in range(start, start + few)}
        for at in range(verb - 1, -1, -1):
            key = key_of(self._span(at, 1))
            if at in model or key in words.model_words:
                return Key.MODEL_NAME
            if key in words.boxes or settings.amount_of(key) in (amounts["devices"], amounts["nodes"]):
                return hardware.NAME
        return ""

    def _written_range(self, index: int, count: int) -> str | None:
        """Return the range of which some words have the larger number, as the line has it; None for other words."""
        tokens = self._tokens[index : index + count]
        ranges = (range_in(self._text[token.start : token.end], token.text) for token in tokens)
        return next(filter(None, ranges), None)

    def _without_size_of_nodes(self, meaning: Meaning) -> Meaning:
        """Take devices of a memory beside nodes that have as many for these, as in ``96 DGX A100 (8x40G)``."""
        size, values = self._values.get(Key.HARDWARE_PER_NODE), dict(meaning.values)
        if size and hardware.NAME in self._values.keys() - values.keys() and values.get(hardware.DEVICES) == size:
            values.pop(hardware.DEVICES)
        return replace(meaning, values=values)

    def _host(self, index: int, meaning: Meaning) -> Meaning:
        """Take a processor beside accelerators for the one of their host, which a plan does not name."""
        name, named = self._values.get(hardware.NAME), meaning.values.get(hardware.NAME)
        if name and named and DETECTED in (name, named):  # my laptop with a 3050
            self._values[hardware.NAME] = device = named if name == DETECTED else name
            return replace(meaning, values={**meaning.values, hardware.NAME: device})
        accelerators, processors = self._catalog.accelerators, self._catalog.processors
        if name and named and self._is_chosen(index):
            return meaning  # a 3060, or just my ryzen 5800x
        if named in processors and name in accelerators:
            why = f"{self._tokens[index].text}: the processor of the host; what counts of it goes into hardware.spec"
            return Meaning(why=why)
        if name in processors and named in accelerators:
            self._values = {path: value for path, value in self._values.items() if path not in _OF_HOST}
        return self._machine(name, named, meaning)

    def _is_chosen(self, index: int) -> bool:
        """Whether a word that compares stands before another one, over words that turn to it: ``or just 32 cores``."""
        words = vocabulary()
        plain = (at for at in range(index - 1, -1, -1) if key_of(self._tokens[at].text) not in words.turning)
        return key_of(self._span(next(plain, 0), 1)) in words.comparing

    def _machine(self, name: object, named: object, meaning: Meaning) -> Meaning:
        """Take a machine beside its own accelerators for the same hardware, as ``g4dn.12xlarge (4x T4)``."""
        machine = self._catalog.instances.get(str(name)) or self._catalog.instances.get(str(named))
        rows = self._catalog.accelerators
        own = None if machine is None else rows.get(machine.accelerator or "")
        others = [row for one in (name, named) if (row := rows.get(str(one))) is not None]
        if machine is None or own is None or not any(_is_same(own, other) for other in others):
            return meaning
        counts = [values.get(hardware.DEVICES, machine.sold_devices) for values in (self._values, meaning.values)]
        if not name or counts[0] != counts[1]:
            return meaning
        self._values |= {hardware.NAME: machine.id, hardware.DEVICES: counts[0]}
        return replace(meaning, values={**meaning.values, hardware.NAME: machine.id, hardware.DEVICES: counts[0]})

    def _degree(self, path: str, otherwise: float = 1) -> int:
        """Return the number that the line has for a field; another where it has none, or one that is no count."""
        text = str(self._values.get(path, otherwise))
        return max(int(text), 1) if text.isdecimal() else max(int(otherwise), 1)

    def _span(self, index: int, count: int) -> str:
        words = self._tokens[index : index + count]
        return words[0].text if len(words) == 1 else " ".join([token.text for token in words])

    def _is_free(self, index: int, count: int = 1) -> bool:
        """Whether so many words from here on were not recognized yet."""
        end, taken = index + count, ((start, start + length) for start, (length, _) in self._taken.items())
        return end <= len(self._tokens) and not any(start < end and index < last for start, last in taken)

    def _is_number_at(self, index: int) -> bool:
        return 0 <= index < len(self._tokens) and settings.is_number(self._tokens[index].text)

    def _is_written(self, value: str) -> bool:
        """Whether a word before so many tokens says that they are written: ``generating 10M texts of 500 tokens``."""
        before = next((at for at, token in enumerate(self._tokens) if token.text == value), 0)
        keys = ["", "", *(key_of(token.text) for token in self._tokens[:before])]
        last = self._tokens[max(before - 1, 0)]
        ends = self._text[last.start : last.end].split()[-1:]  # 10 s per answer (300 tokens)
        if any(vocabulary().timed.get(key_of(word)) == WHOLE for word in ends):
            return True
        is_aim = keys[-1] in ("to", "into") and keys[-2] != "up"  # summarised to 300 tokens
        is_aim |= keys[-1] == "of" and keys[-2] in vocabulary().written  # 100k completions of 500 tokens
        return is_aim or any(key in vocabulary().writing for key in keys)

    def _sees(self) -> Sight | None:
        """Return what the model makes of a picture; None where it sees none."""
        model, rows = str(self._values.get(Key.MODEL_NAME, "")), vocabulary().sights
        return next((row for begins, row in rows.items() if model.startswith(begins)), None)

    def _is_of_sound(self) -> bool:
        """Whether the model reads sound."""
        name = str(self._values.get(Key.MODEL_NAME, ""))
        row = self._catalog.architectures.get(name) or self._catalog.networks.get(name)
        return row is not None and row.is_of_sound

    def _seconds_heard(self) -> float:
        """Return the seconds of sound that the model of the line reads at a time, unless the line says others."""
        name = str(self._values.get(Key.MODEL_NAME) or usual_listeners(self._catalog)[0])
        return (self._catalog.architectures.get(name) or self._catalog.networks[name]).seconds_of_sound

    def _is_without_card(self) -> bool:
        """Whether a line rules out any device but its processor, as ``no gpu`` does, but not ``no gpu sharing``."""
        places = [at for at, token in enumerate(self._tokens) if key_of(token.text) not in ("a", "an", "any")]
        for before, at in pairwise(places):
            is_none = self._tokens[before].text.casefold() in vocabulary().negations
            after = key_of(self._span(at + 1, 1))
            is_end = self._is_apart(at) or not after.isalpha() or after in vocabulary().joints
            is_end |= Key.MODEL_NAME in self._taken.get(at + 1, (0, Meaning()))[1].values
            is_end &= vocabulary().stocked.isdisjoint(key_of(self._span(at + 1, few)) for few in (1, 2, 3))
            if is_none and is_end and f"no{key_of(self._tokens[at].text)}" in vocabulary().without_card:
                return True
        return False

    def _is_apart(self, index: int, marks: Iterable[str] = ",;?(") -> bool:
        """Whether a comma or the like stands behind a word."""
        after = self._tokens[index + 1].start if index + 1 < len(self._tokens) else len(self._text)
        return any(mark in self._text[self._tokens[index].end : after] for mark in marks)
