"""Words of a line beside numbers: what is counted, and fields with their values."""

from __future__ import annotations

import math

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line import hardware_words as hardware
from capacity_tui.engine.plan.line import setting_words as settings
from capacity_tui.engine.plan.line.named_words import NamedWords
from capacity_tui.engine.plan.line.words import FINETUNE, TRAIN, Assumption, Meaning, vocabulary
from capacity_tui.engine.schema import AUTO

_BETWEEN = frozenset({"of", "is", "="})
"""Words between a name and its number, as in ``sequence length of 4096``."""
_WORDS_OF_A_FIELD = (4, 3, 2, 1)
_LONGEST_OTHER = 4
"""Letters of words that end in s and are no plurals, as ``this`` and ``plus``."""
_DEGREES_OF_MODEL = (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP)
_DEGREES = (*_DEGREES_OF_MODEL, Key.PARALLELISM_DP)
_IN_TOKENS = frozenset({Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS, Key.TRAINING_SEQ_LEN})


class CountedWords(NamedWords):
    """A line whose numbers are being recognized with what they count."""

    def _number_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a number with what it counts behind it."""
        number, after = self._tokens[index].text, self._tokens[index + 1].text if self._is_free(index + 1) else ""
        named = (count for count in _WORDS_OF_A_FIELD[:-1] if self._is_free(index + 1, count))
        spans = ((count, settings.amount_of(self._span(index + 1, count))) for count in named)
        more = next((count - 1 for count, amount in spans if amount is not None and amount.field(self._task)), 0)
        after = self._span(index + 1, 1 + more) if more else after
        amount = settings.amount_of(after)
        parameter = settings.named_field(after, self._task, self._model)
        is_parameter = parameter is not None and parameter[0].startswith(OWN_PARAMETERS)
        is_counted = amount is not None and (
            amount.is_behind
            or settings.is_time(number)
            or (bool(amount.behind) and not self._begins_another(index + 1 + more))
        )
        if not is_counted and not is_parameter:
            return None
        meaning = self._pair(after, number)
        return None if meaning is None else (2 + more, meaning)

    def _begins_another(self, index: int) -> bool:
        """Whether a word that may stand on either side of a number belongs to the number behind it."""
        if not self._is_number_at(index + 1) or not self._is_free(index + 1):
            return False
        after = self._amount_at(index + 2)
        return after is None or not after.behind

    def _name_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a field by one word or some, with its value behind it; a switch stands alone."""
        for count in _WORDS_OF_A_FIELD:
            if not self._is_free(index, count):
                continue
            name = self._span(index, count)
            skipped = int(self._is_free(index + count) and key_of(self._tokens[index + count].text) in _BETWEEN)
            behind = index + count + skipped
            after = self._tokens[behind].text if self._is_free(behind) else ""
            meaning = self._pair(name, after) if after and not self._is_of_next(name, behind) else None
            if meaning is not None:
                unit = int(self._is_free(behind + 1) and self._counts_tokens(name, behind + 1))
                return count + skipped + 1 + unit, meaning
            field = settings.named_field(name, self._task, self._model)
            if field is not None and field[1].kind == "switch":
                return count, Meaning(name, {field[0]: True})
        return None

    def _is_of_next(self, name: str, index: int) -> bool:
        """Whether the number behind a name is counted by the word behind that, as in ``8k context 16 users``."""
        amount, after = settings.amount_of(name), self._amount_at(index + 1)
        if amount is None or after is None or self._counts_tokens(name, index + 1):
            return False
        return after.is_behind and self._is_number_at(index)

    def _counts_tokens(self, name: str, index: int) -> bool:
        """Whether a word is the unit of what a name counts, as the last of ``input 1500 tokens``."""
        amount, unit = settings.amount_of(name), self._amount_at(index)
        return (
            amount is not None
            and unit is not None
            and unit.name == settings.TOKENS
            and bool(set(amount.fields.values()) & _IN_TOKENS)
        )

    def _pair(self, name: str, value: str) -> Meaning | None:
        """Return what a name and its value set; None where they do not belong together."""
        amount = settings.amount_of(name)
        if amount is not None and settings.is_amount(value, amount, self._task):
            if amount.name == "nodes":
                return self._nodes(value)
            if amount.name == "accumulation" and value.isdigit() and self._task in (TRAIN, FINETUNE):
                self._accumulation = int(value)
                return Meaning(f"accumulation {value}")
            if amount.name == settings.TOKENS and settings.is_sequence(value, self._task, self._values):
                amount = vocabulary().amounts[settings.SEQUENCE]
            return settings.counted(amount, value, self._task, self._model)
        field = settings.named_field(name, self._task, self._model)
        if field is None or not self._takes(field[1].choices, value):
            return None
        return settings.field_value(field[0], value, self._task, knob=field[1])

    def _nodes(self, number: str) -> Meaning:
        """Multiply the devices that were named, which are then those of one node."""
        named = self._values.get(hardware.DEVICES)
        row = self._catalog.accelerators.get(str(self._values.get(hardware.NAME)))
        fabric = self._catalog.fabric_of(row) if row is not None and named is None else None
        size = fabric.node_devices if fabric is not None else named
        if not isinstance(size, int) or not number.isdigit() or (fabric is not None and size == 1):
            hint = "say the devices of one node too, as 4 nodes 8xh100"
            return Meaning(fault=PlanError("nodes of unknown size", number, hint))
        self._values.pop(hardware.DEVICES, None)
        devices = size * int(number)
        why = "" if fabric is None else f"{size} devices a node, as {fabric.name} have"
        counted: dict[str, object] = {hardware.DEVICES: devices, Key.HARDWARE_PER_NODE: size}
        return Meaning(f"{number} nodes of {size}, {devices} devices", counted, why)

    def _takes(self, choices: tuple[str, ...], word: str) -> bool:
        return settings.is_number(word) or key_of(word) in {key_of(choice) for choice in (*choices, AUTO, "on", "off")}

    def _part_of_data(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how much of a data set there is, as in ``52k alpaca``."""
        name = key_of(self._tokens[index + 1].text) if self._is_free(index + 1) else ""
        path = vocabulary().datasets.get(name, ("", 0))[0]
        if not path or self._task not in (TRAIN, FINETUNE):
            return None
        return 2, settings.field_value(path, self._tokens[index].text, self._task, f"data of {name}")

    def _counts_something(self, index: int) -> bool:
        """Whether a plural that no plan knows stands behind a number, as in ``25k patients``."""
        after = self._tokens[index + 1].text if index + 1 < len(self._tokens) else ""
        is_plural = after.isalpha() and after.endswith("s") and len(after) > _LONGEST_OTHER
        return is_plural and self._taken.get(index + 1, (1, Meaning())) == (1, Meaning())

    def _count_of(self, path: str, otherwise: float = 1) -> int:
        """Return the number that the line has for a field; another where it has none, or one that is no count."""
        text = str(self._values.get(path, otherwise))
        return max(int(text), 1) if text.isdigit() else max(int(otherwise), 1)

    def _devices_of_layout(self) -> None:
        """Take as many devices as the degrees of the line make up, where it does not say how many there are."""
        devices = math.prod(map(self._count_of, _DEGREES))
        is_device = self._values.get(hardware.NAME) in self._catalog.accelerators
        if hardware.DEVICES in self._values or not is_device or devices < 2:
            return
        self._values[hardware.DEVICES] = devices
        why = f"{devices} devices, as the degrees of the line make up"
        self._assumed.append(Assumption(hardware.DEVICES, devices, why))

    def _accumulate(self) -> None:
        """Make the batch of a step of what each device takes, how often, and how many devices there are.

        Beside an accumulation a batch is that of a device, as training scripts have it.
        """
        if not self._accumulation:
            return
        micro_batch = self._values.get(Key.TRAINING_MICRO_BATCH) or self._values.pop(Key.TRAINING_GLOBAL_BATCH, None)
        if not isinstance(micro_batch, int) or Key.TRAINING_GLOBAL_BATCH in self._values:
            hint = "say the batch of a device too, as micro batch 2 accumulation 8, or the batch of a step alone"
            self._faults.append(PlanError("accumulation of which batch?", str(self._accumulation), hint))
            return
        row_id = self._catalog.instances.find_id(str(self._values.get(hardware.NAME, "")))
        sold = 1 if row_id is None else self._catalog.instances[row_id].sold_devices
        replicas = max(self._count_of(hardware.DEVICES, sold) // math.prod(map(self._count_of, _DEGREES_OF_MODEL)), 1)
        batch = micro_batch * self._accumulation * replicas
        self._values |= {Key.TRAINING_MICRO_BATCH: micro_batch, Key.TRAINING_GLOBAL_BATCH: batch}
        why = f"{batch} a step: {micro_batch} of each of {replicas} replicas, {self._accumulation} times"
        self._assumed.append(Assumption(Key.TRAINING_GLOBAL_BATCH, batch, why))
