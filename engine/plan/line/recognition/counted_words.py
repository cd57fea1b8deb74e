"""What the numbers of a line set, with the words that say what they count."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.task_words import METHOD, task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Amount, Meaning
from capacity_tui.engine.plan.line.recognition.line_words import DRAWING
from capacity_tui.engine.plan.line.recognition.number_names import (
    BATCH_OF_TOKENS,
    MOST_WORDS,
    TOKEN,
    NumberNames,
    counted_like,
)
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import parse_count, parse_quantity

_SAME_PARAMETERS = 0.15  # Share by which a size in a model's name, as ``671b``, may differ from its parameters
_CHASSIS = re.compile(r"[a-z]{1,4}\d{3,5}(?!b$)[a-z]{0,3}", re.IGNORECASE)  # R760xa, but qwen235b
_NUMBERED = re.compile(r"\d{4}|g(?:en)?\d{1,2}", re.IGNORECASE)  # precision 7960, proliant gen10
_SIZE_OF_A_NODE = re.compile(r"\d{1,2}(?:[x×].*)?", re.IGNORECASE)  # nodes with 8xh100, nodes of 16
_EVERY_SO_LONG = re.compile(r"(?=.*[1-9])\d{1,6}(?:\.\d{1,3})?(?:us|ms|s)", re.IGNORECASE)
_OF_TEXT = (settings.TOKENS, settings.WORDS)  # What a text is counted in
_DEVICE_HOURS, _BUSY = ("GPU-hours", "GPU-days", "node-hours"), "time that devices are busy"
_DEVICES = frozenset({hardware.NAME, hardware.DEVICES})
OF_SOUND = "of sound"  # What ends the words of hours that are heard
_GROUPS = ("answers to a prompt", "answers of a group", "generations")


class CountedWords(NumberNames):
    """A line whose words are being recognized, and its numbers with what they count."""

    def _counted(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a number with the words beside it, whichever come first."""
        if (part := self._part_of_run(index) or self._every_so_often(index)) is not None:
            return part
        numbers = (at for at in range(index, min(index + MOST_WORDS + 2, len(self._tokens))) if self._is_amount(at))
        number = next(numbers, None)
        count = None if number is None or not self._is_free(number) else self._count_of(number)
        if number is None or count is None or count.start != index or not self._is_free(index, count.end - index):
            return None
        amount, amounts = count.amount, vocabulary().amounts
        if count.start == number and key_of(count.name) in vocabulary().written:
            is_of_some = self._span(count.end, 1) == "of" and self._is_number_at(count.end + 1)
            is_drawn = self._values.get(Key.TRAINING_PREFERENCE) in DRAWING
            if is_of_some and self._task == INFER:  # 100k completions of 500 tokens
                amount = amounts["requests"]
            elif is_drawn and self._tokens[number].text.isdecimal():  # 16 answers to each prompt; 2k are so long
                amount = amounts["rollouts"]
        if amount.fewer and self._is_of_sample(number, count.end):
            amount = counted_like(amounts[amount.fewer], amount)
        if amount.name == _BUSY and self._span(number - 1, 1) in vocabulary().measured["assumed"]:
            amount = amounts["mfu"]
        path = amount.fields.get(TRAIN)
        is_crash = path == Key.TRAINING_STEPS and not count.name.isascii() and self._is_failing(count.end)  # 128步报错
        if is_crash or (path in settings.PASSES and self._is_of_failure(number)):
            return count.end - index, Meaning(
                why=f"left out: {self._span(index, count.end - index)}; a plan is a whole run"
            )
        meaning = self._pair(count.name, self._tokens[number].text, amount)
        if meaning is not None and self._is_part(number):  # 200 people, 30 of them at once
            self._values = {path: value for path, value in self._values.items() if path not in meaning.values}
        return None if meaning is None else (count.end - index, meaning)

    def _part_of_run(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out where in a run something is, of which the whole counts: ``oom at step 3``, ``epoch 2 of 3``."""
        words, name = vocabulary(), self._span(index, 1)
        is_part = settings.is_part_of_a_run(name) and self._is_number_at(index + 1) and self._is_free(index, 2)
        is_part &= self._written_range(index + 1, 1) is None  # from step 0 to 10000
        is_of, before = self._span(index + 2, 1) == "of", key_of(self._span(index - 1, 1)) if index else ""
        if not is_part or self._is_apart(index) or self._task == INFER or not (is_of or before in words.within_run):
            return None
        why = f"left out: {self._span(index, 2)}; a plan is a whole run"
        whole = self._pair(name, self._span(index + 3, 1)) if is_of and self._is_number_at(index + 3) else None
        return (2, Meaning(why=why)) if whole is None else (4, replace(whole, why=why))

    def _every_so_often(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many requests come in a time, of all or of each user: ``1 frame every 2 seconds``."""
        words, time, behind = vocabulary(), self._span(index + 3, 1), key_of(self._span(index + 2, 1))
        is_some = settings.at_least(self._span(index, 1), 1) and _EVERY_SO_LONG.fullmatch(time) is not None
        is_of_time = self._is_number_at(index) and behind in words.every["again"] and is_some
        if self._task != INFER or not is_of_time or key_of(self._span(index + 1, 1)) not in words.sent:
            return None
        few, seconds = parse_quantity(self._tokens[index].text, ""), parse_quantity(time, "s")
        others = (self._count_of(at) for at in range(len(self._tokens)) if self._is_number_at(at) and at != index)
        fields = {other.amount.field(INFER) for other in others if other is not None}
        if Key.INFERENCE_USERS in fields | self._values.keys():
            pause = f"{seconds / max(few, 1):.4g}"
            return 4, Meaning(f"a request every {pause} s", {Key.INFERENCE_SECONDS_BETWEEN_REQUESTS: pause})
        rate = settings.field_value(Key.INFERENCE_REQUEST_RATE, f"{few / seconds:.4g}", INFER)
        return 4, replace(rate, why=f"{self._span(index, 4)}: {few / seconds:.4g} requests a second")

    def _amount_asked(self, index: int) -> tuple[int, Meaning] | None:
        """Pass over words that say what is asked for, as in ``how many lora adapters`` and ``how many billion params``.

        A rank is one of LoRA, whatever that is called elsewhere in the line.
        """
        queries, nouns = vocabulary().queries, vocabulary().asked
        kind = queries.get(key_of(self._span(index - 2, 2)), "") if index > 1 else ""
        kind = kind or (queries.get(key_of(self._span(index - 1, 1)), "") if index else "")
        if not kind or self._is_number_at(index + 2 + int(self._span(index + 2, 1) == "of")):
            return None  # max input length of 2048
        amount = settings.amount_of(self._span(index, 2)) if self._is_free(index, 2) else None
        if amount is not None and self._is_bounded(index - 1, amount):
            return None
        if amount is not None:
            named = task_named(self._tokens[index].text) if amount.field(TRAIN) == Key.TRAINING_ADAPTER_RANK else None
            others = (task_named(token.text) for at, token in enumerate(self._tokens) if at != index)
            is_named = any(other is not None and METHOD in other.values for other in others)
            return 2, Meaning() if named is None or is_named else named
        key = key_of(self._tokens[index].text)
        is_scale = key in nouns.get(kind, {}) and (key in vocabulary().refused or len(key) == 1)
        return (1, Meaning()) if is_scale and not self._is_number_at(index + 1) else None

    def _is_of_sample(self, number: int, end: int) -> bool:
        """Whether so many tokens are those of each sample, however long: ``samples of 200k tokens``, ``200k each``."""
        is_of_one = self._is_apiece(end)
        is_of_one |= key_of(self._span(end - 1, 1)) == TOKEN and self._is_sample(end)
        is_of_one |= number > 1 and self._span(number - 1, 1) == "of" and self._is_sample(number - 2)
        is_open = self._task in (TRAIN, FINETUNE) and Key.TRAINING_SEQ_LEN not in self._values
        fewest = int(vocabulary().fewest_tokens)
        return is_of_one and is_open and not settings.at_least(self._tokens[number].text, fewest)

    def _pair(self, name: str, value: str, amount: Amount | None = None) -> Meaning | None:
        """Return what a name and its value set; None where they do not belong together."""
        amount = amount or settings.amount_named(name, self._task, self._model, is_before=True)
        if amount is None or not settings.is_amount(value, amount, self._task):
            return self._value_of_field(name, value)
        if amount.name == "nodes":
            return self._nodes(value)
        if amount.name == "prompts" and self._task in (TRAIN, FINETUNE):
            if settings.is_power(value):
                hint = f"write {parse_count(value)} prompts, or prompt {value}"
                return Meaning(fault=PlanError("so many prompts, or so long?", f"{value} {name}", hint))
            amount = vocabulary().amounts["samples"]
        if (kept := self._kept(amount, value, name)) is not None:
            return kept
        if amount.thousands and value[-1] in "kKmM":
            is_length = value[-1] in "kK"  # 4k sequences, but 50k sequences
            is_length &= self._task == INFER or settings.is_power(value)
            amount = vocabulary().amounts[amount.thousands if is_length else "samples"]
        if amount.fewer and settings.is_sequence(value, self._task, self._values):
            amount = counted_like(vocabulary().amounts[amount.fewer], amount)
        if amount.name in _OF_TEXT and self._task == INFER and self._is_written(value):
            amount = counted_like(vocabulary().amounts[key_of("output")], amount)
        return settings.counted(amount, value, self._task, self._model)

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep a number that no field has, of which other words of the line make one."""
        if self._task in (TRAIN, FINETUNE) and (kept := self._kept_of_training(amount, value, name)) is not None:
            return kept
        if (kept := self._of_processor(amount, value, name)) is not None:
            return kept
        is_share = value.endswith("%") and amount.name in settings.SHARED
        is_of_all = not is_share and amount.reciprocal and parse_quantity(value, "") > amount.most
        if is_share:
            return self._share(value)
        if amount.name in _OF_TEXT and self._task == INFER and self._is_job(value):
            is_written = self._is_written(value)
            path = Key.INFERENCE_OUTPUT_TOKENS if is_written else Key.INFERENCE_PROMPT_TOKENS
            self._tokens_of_job = path, round(parse_count(value) / amount.per)
            return Meaning(f"{value} {amount.name} in all")
        if amount.name == "cores" and value.isdigit() and (self._task != FIT or self._is_alternative(value)):
            self._cores = int(value)
        elif amount.name in self._contexts() and self._task == INFER and value[0] in "123456789":
            length = settings.field_value(Key.INFERENCE_PROMPT_TOKENS, value, INFER).values
            self._context = int(str(length.get(Key.INFERENCE_PROMPT_TOKENS, 0)))
        elif is_of_all and self._task == INFER:
            is_written = amount.per == 1 or "out" in amount.name or self._is_written(value)  # 2B tokens/day are all
            self._token_rates["output" if is_written else "all"] = int(parse_quantity(value, "")), amount.per
        elif amount.name in _DEVICE_HOURS and self._task in (TRAIN, FINETUNE) and (size := self._hours_at_once(amount)):
            self._hours_of_devices = parse_quantity(value, "") * size / amount.per
        else:
            return None
        hint = f"name their processor, as epyc with {value} cores"
        fault = PlanError("a device, or a processor?", f"{value} {name}", hint)
        is_open = amount.name == "cores" and self._is_alternative(value)
        return Meaning(f"{value} {name}", fault=fault if is_open else None)

    def _is_of_one_device(self, index: int, count: int) -> bool:
        """Whether a batch is that of each device: ``batch 256 each amp``, ``4 a100, each with batch 8``."""
        named = {at + few for at, (few, taken) in self._taken.items() if not _DEVICES.isdisjoint(taken.values)}
        behind, before = index + count, index - 1 - int(index > 0 and self._span(index - 1, 1) == "with")
        behind += int(self._span(behind, 1) == "on")
        is_behind = self._is_apiece(behind) and not self._is_apart(behind - 1)
        is_behind &= not self._is_pass(self._span(behind + 1, 1))  # batch 256 each step
        return is_behind or (before in named and self._is_apiece(before))

    def _share(self, value: str) -> Meaning:
        """Keep a share of all users, as ``10%``, that is there at once."""
        if self._share_of_users:
            hint = "keep one of them, or say how many users are there at once"
            return Meaning(fault=PlanError("a share given twice", value, hint))
        self._share_of_users = float(value[:-1]) / 100
        return Meaning(f"{value} of them")

    def _kept_of_training(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep passes and tokens of a batch, and the tokens of samples that are shorter than the sequence."""
        is_drawn = self._values.get(Key.TRAINING_PREFERENCE) in DRAWING
        is_rate, noun = amount.field(INFER) == Key.INFERENCE_REQUEST_RATE, settings.amount_of(name.partition("/")[0])
        is_short = amount.fewer and Key.TRAINING_SEQ_LEN in self._values
        is_short = is_short and not settings.at_least(value, int(vocabulary().fewest_tokens))
        if amount.name in self._counts and value.isdigit():
            self._counts[amount.name] = int(value)
            kept = f"{amount.name} {value}"
        elif is_drawn and value.isdigit() and (amount.name in _GROUPS or self._is_group(name, value)):
            self._group, kept = int(value), f"{value} answers to each prompt"
        elif amount.name == "compute" and self._task == TRAIN and self._computed(value, name):
            self._compute, kept = self._computed(value, name), f"{value} {name}"
        elif amount.name == BATCH_OF_TOKENS:
            self._batch_tokens, kept = parse_count(value), f"batch {value} tokens"
        elif is_short:
            self._document_tokens, kept = round(parse_count(value) / amount.per), f"samples of {value} tokens"
        else:
            has_hours = any(taken.words.endswith(OF_SOUND) for _, taken in self._taken.values())
            if has_hours and amount.field(TRAIN) == Key.TRAINING_SAMPLES:  # 6000 hours of audio in 5M rows
                return Meaning(why=f"left out: {value} {name}; the hours of sound say how much there is")
            is_run = is_rate and noun == vocabulary().amounts["runs"]  # 3 jobs per week
            return Meaning(why=f"left out: {value} {name}; a plan is one run") if is_run else None
        return Meaning(kept)

    def _computed(self, value: str, name: str) -> float:
        """Return the FLOPs that a training has in all, as 1e23; 0 for those of a device."""
        flops = parse_quantity(value, "") * vocabulary().flops.get(key_of(name), 0.0)
        places = (at for at, token in enumerate(self._tokens) if token.text == value)
        is_rate = flops < vocabulary().bounds["FLOPs of a training"] or any(map(self._is_rate_of_devices, places))
        return 0.0 if is_rate else flops

    def _edge(self, width: int, height: int) -> Meaning | None:
        """Recognize the size of images that a vision transformer reads; None of other models."""
        row = self._catalog.architectures.get(str(self._values.get(models.MODEL)))
        edge, path = round(math.sqrt(width * height)), f"{OWN_PARAMETERS}{settings.IMAGE_SIZE}"
        if row is None or row.kind != "vit":
            return None
        is_usual = f"({edge})" in row.name
        return Meaning(f"images of {edge} pixels", {} if is_usual else {path: edge})

    def _value_of_field(self, name: str, value: str) -> Meaning | None:
        """Return what a field and the name of its value set, as ``attention flash``."""
        field = settings.named_field(name, self._task, self._model)
        states = ("on", "off") if field is not None and field[1].kind == "switch" else ()
        if field is None or key_of(value) not in {key_of(choice) for choice in (*field[1].choices, AUTO, *states)}:
            return None
        return settings.field_value(field[0], value, self._task, knob=field[1])

    # Sizes of models

    def _size_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a model whose size stands before its family: ``70b llama2``, ``the 120b model of gpt-oss``."""
        size, start = self._tokens[index].text, self._behind_joints(index + 1)
        if not models.is_size(size) or self._tokens[index].ends:
            return None
        for count in (3, 2, 1):
            match = self._model_of(self._span(start, count), size)
            if match is not None and self._is_free(index, start + count - index):
                return start + count - index, match
        name = self._span(start, 1)
        is_another = key_of(name) in vocabulary().fillers or key_of(name) in self._catalog.architectures.variants
        is_another |= self._is_setting(name) or not name[:1].isalpha() or not self._is_free(index, start + 1 - index)
        is_another |= self._is_number_at(start + 1) and not self._tokens[start].ends
        if is_another or models.named_model(name, self._catalog):
            return None
        match = models.resembling_model(f"{name}-{size}", self._catalog)
        if match is None and name.casefold() in models.families_of_models(self._catalog):  # a 50m llama
            match = models.sized_model(size, self._catalog)
        return None if match is None else (start + 1 - index, match)

    def _behind_joints(self, index: int) -> int:
        while key_of(self._span(index, 1)) in vocabulary().size_joints:
            index += 1
        return index

    def _model_of(self, family: str, size: str) -> Meaning | None:
        return models.named_model(f"{family.replace(' ', '-')}-{size}", self._catalog) if family[:1].isalpha() else None

    def _model_called(self, name: str) -> Meaning | None:
        return models.sized_model(name, self._catalog) or models.named_model(name, self._catalog)

    def _is_model_word(self, text: str) -> bool:
        """Whether a word behind a number says that it is the parameters of a model, as in ``400M model``."""
        return key_of(text) in vocabulary().model_words

    def _is_setting(self, text: str) -> bool:
        """Whether a word has a meaning beside models."""
        parts = settings.glued(text)
        known = settings.amount_of(text) or (parts is not None and settings.amount_of(parts[0]))
        return bool(known or self._is_value(text) or hardware.figures_of(text) or vocabulary().fields.get(key_of(text)))

    def _is_size_of_model(self, index: int) -> bool:
        """Whether a word says once more how large the model is, as 671b behind deepseek r1."""
        text = self._tokens[index].text
        row_id = self._catalog.architectures.find_id(str(self._values.get(models.MODEL, "")))
        is_active = models.is_size(text) and key_of(self._span(index + 1, 1)) in vocabulary().active
        if row_id is not None and self._catalog.architectures[row_id].experts and is_active:
            return True  # qwen3-next 80b, 3b active
        if row_id is None or text[-1:] not in "bBmMtT" or not settings.is_number(text) or self._is_counted(index):
            return False
        is_called = self._is_model_word(self._span(index + 1, 1))  # a 1T param kimi k2
        at = index + int(is_called)
        named = [(start, count) for start, (count, meaning) in self._taken.items() if models.MODEL in meaning.values]
        is_adjacent = any(at == start - 1 or index == start + count for start, count in named)
        if not (is_adjacent or is_called) and any(map(models.is_size, row_id.split("-"))):
            return False  # opt-175b 992 a100 180B
        row, size = self._catalog.architectures[row_id], parse_quantity(text, "")
        sizes = (row.params_total, row.params_active if row.experts else None)
        return any(total and abs(size / total - 1) < _SAME_PARAMETERS for total in sizes)

    def _nodes(self, number: str) -> Meaning:
        """Take the devices that were named for those of one node, or of all where no node has so many."""
        named, name = self._values.get(hardware.DEVICES), str(self._values.get(hardware.NAME))
        machine, row = self._catalog.instances.get(name), self._catalog.accelerators.get(name)
        hint = "say the devices of one node too, as 4 nodes 8xh100"
        fault = Meaning(fault=PlanError("nodes of unknown size", number, hint))
        if not number.isdigit() or not int(number):
            return fault
        if (asked := self._nodes_asked_about(number)) is not None:
            return asked
        nodes = int(number)
        if machine is not None:
            named = nodes * (named if isinstance(named, int) else machine.sold_devices)
            return Meaning(f"{number} x {machine.id}", {hardware.DEVICES: named})
        fabric = self._catalog.fabric_of(row) if row is not None else None
        usual = fabric.node_devices if fabric is not None else 1
        named = 1 if named is None and self._is_one_a_node() else named
        size, why, at = named, "", self._place_of_size()
        if at and (one := _number(self._span(at, 1))) and named in (None, nodes * one):
            size = one  # a100, are 3 nodes of 8 enough; 8 a100 (2 nodes of 4)
            self._taken[at - 1] = 2, Meaning()
        elif fabric is not None and named is None and usual > 1:
            size, why = usual, f"{usual} devices a node, as {fabric.name} have"
        elif isinstance(named, int) and named > usual > 1 and nodes > 1 and not at:
            counts_nodes = self._has_apiece()  # 216 mi250x nodes, 4 each
            nodes, size = (named, nodes) if counts_nodes else (nodes, named // nodes if named % nodes == 0 else None)
            size = size if size is not None and size <= usual else None
        if not isinstance(size, int):
            return fault
        self._values.pop(hardware.DEVICES, None)
        devices = size * nodes
        counted: dict[str, object] = {hardware.DEVICES: devices, Key.HARDWARE_PER_NODE: size}
        return Meaning(f"{nodes} nodes of {size}, {devices} devices", counted, why)

    def _place_of_size(self) -> int:
        """Return where a line has the devices of a node: ``2 nodes of 16 v100``, as a DGX-2 has; 0 for nowhere."""
        for index in range(len(self._tokens) - 2):
            amount, size = settings.amount_of(self._tokens[index].text), self._tokens[index + 2].text
            is_size = _SIZE_OF_A_NODE.fullmatch(size) is not None and next(self._names_behind(index + 2), None) is None
            if amount is not None and amount.name == "nodes" and is_size and self._is_holding(index + 1):
                return index + 2
        return 0

    def _chassis(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out the name of a server behind its maker, as ``Dell R760xa`` and ``HPE ProLiant DL380``."""
        end, words, is_of_line = index, vocabulary(), False
        while end < len(self._tokens) and (end == index or not self._tokens[end - 1].ends):
            key = key_of(self._tokens[end].text)
            is_name = end > index and (key in words.chassis or self._is_chassis(end, is_of_line=is_of_line))
            if not (key in words.vendors or is_name):
                break
            end, is_of_line = end + 1, is_of_line or key in words.chassis
        return (end - index, Meaning(why=f"left out: {self._span(index, end - index)}")) if end > index else None

    def _is_chassis(self, index: int, *, is_of_line: bool) -> bool:
        """Whether a word is the number of a server; the name of a card is before another one: ``P620 with A6000``."""
        text, places = self._tokens[index].text, (index, *range(index + 2, index + 5))
        is_name = is_of_line and _NUMBERED.fullmatch(text) is not None and not self._is_counted(index)
        is_setting = text[1:2].isalpha() and self._is_setting(text)  # bs128, but R740
        is_other = is_setting or models.named_model(text, self._catalog) is not None
        cards = [hardware.named_hardware(self._span(at, 1), self._catalog) for at in places]
        is_free = cards[0] is None or (self._is_holding(index + 1) and any(cards[1:]))
        return is_free and (is_name or (_CHASSIS.fullmatch(text) is not None and not is_other))

    def _is_alternative(self, number: str) -> bool:
        """Whether a line with hardware compares it with so many cores, as ``one T4 or just 32 cores``."""
        places = [at for at, token in enumerate(self._tokens) if token.text == number]
        ends = (count.end for at in places if (count := self._count_of(at)) is not None)
        is_first = any(key_of(self._span(end, 1)) in vocabulary().comparing for end in ends)  # 32 cores or a t4
        return hardware.NAME in self._values and (is_first or any(map(self._is_chosen, places)))

    def _hours_at_once(self, amount: Amount) -> int:
        """Return how many devices make up what is counted in hours; 0 for nodes of unknown size."""
        row = self._catalog.accelerators.get(str(self._values.get(hardware.NAME)))
        fabric = self._catalog.fabric_of(row) if row is not None and amount.name == _DEVICE_HOURS[-1] else None
        named = self._degree(Key.HARDWARE_PER_NODE, 0 if fabric is None else fabric.node_devices)
        return named if amount.name == _DEVICE_HOURS[-1] else 1


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else 0
