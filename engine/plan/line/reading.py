"""Read the one line that says a plan: ``llama-3.1-70b lora 8xh100 4k 50M``, its words in any order."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import find_known_model, presumed_family
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line import hardware_words as hardware
from capacity_tui.engine.plan.line import model_words as models
from capacity_tui.engine.plan.line import setting_words as settings
from capacity_tui.engine.plan.line.hardware_words import (
    HARDWARE_NAME,
    MODEL_NAME,
    TASK_NAME,
    similar_names,
    unknown_words,
)
from capacity_tui.engine.plan.line.named_words import NamedWords
from capacity_tui.engine.plan.line.setting_words import METHOD, TASK, task_meant, task_named
from capacity_tui.engine.plan.line.tokens import LONGEST_LINE
from capacity_tui.engine.plan.line.words import (
    FINETUNE,
    FIT,
    INFER,
    TRAIN,
    Assumption,
    Meaning,
    OneLine,
    Word,
    vocabulary,
)
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import parse_count

_NOTHING = Meaning()
_BETWEEN = frozenset({"of", "is", "="})
"""Words between a name and its number, as in ``sequence length of 4096``."""
_SAME_PARAMETERS = 0.15
"""Share by which a size in a model's name, as ``671b``, may differ from its parameters."""


def read_line(text: str, catalog: Catalog | None = None) -> OneLine:
    """Return what a line says: values of a plan, and what each word was taken for.

    Args:
        text: the line.
        catalog: what names stand for; the shipped one with the user's own by default.
    """
    return _Line(text, catalog or load_catalog()).read()


class _Line(NamedWords):
    """A line while it is read: first the words that name model, hardware and task, then those that depend on them."""

    def read(self) -> OneLine:
        """Return all of it."""
        if len(self._text) > LONGEST_LINE:
            hint = "write a plan file, and name it"
            self._faults.append(PlanError("too long for one line", f"{len(self._text)} characters", hint))
        self._pass(self._named)
        if models.MODEL not in self._values:
            self._pass(self._sized)
        self._find_task()
        self._pass(self._set)
        self._pass(self._guessed)
        self._own_figures()
        if self._mended and models.MODEL in self._values:
            name = self._values[models.MODEL]
            self._assumed += [
                Assumption(models.MODEL, name, f"{slip}: {meant} is the nearest name")
                for slip, meant in self._mended.items()
            ]
        if self._unknown:
            self._faults.append(unknown_words(self._unknown, self._catalog))
        words = tuple(self._words())
        return OneLine(self._text, self._task, words, tuple(self._assumed), self._values, tuple(self._faults))

    # The task

    def _find_task(self) -> None:
        """Take the task that was named, or the one that the other words are of."""
        name = self._values.get(models.MODEL)
        family = presumed_family(str(name), self._catalog) if name not in (None, AUTO) else None
        if self._values.get(TASK) == FIT and (family is None or family.task != FIT):
            self._values.pop(TASK)  # does it fit, which every plan answers
        elif family is not None and family.task == FIT and self._values.get(TASK) == TRAIN:
            self._values[TASK] = FIT
        self._model = find_known_model(str(name), self._catalog) if family is not None else None
        if TASK in self._values:
            self._task = str(self._values[TASK])
            return
        telling = [index for index in range(len(self._tokens)) if not self._is_size_of_model(index)]
        words = [self._tokens[index].text for index in telling]
        free = [self._tokens[index].text for index in telling if self._is_free(index)]
        self._task, why = task_meant(words, free, family, self._catalog)
        self._values[TASK] = self._task
        self._assumed.append(Assumption(TASK, self._task, why))

    # Settings

    def _set(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize numbers with what they count, names of values, and ``key=value``."""
        text = self._tokens[index].text
        if "=" in text:
            return 1, settings.assigned(text, self._task, self._model)
        share = settings.percentile(text)
        if share is not None:
            return 1, share if self._task == INFER else settings.unlike(text, "a percentile of latency", self._task)
        figure = hardware.figures_of(text)
        if figure is not None:
            after = key_of(self._span(index + 1, 1)) if self._is_free(index + 1) else ""
            is_ram = after in vocabulary().ram and hardware.MEMORY in figure
            name = str(self._values.get(hardware.NAME, ""))
            meaning = hardware.given_figure(text, figure, is_ram, name, self._catalog)
            if hardware.NAME in meaning.values:
                self._values.pop(hardware.NAME)  # the same device with another memory
            return (2 if is_ram else 1), meaning
        if settings.is_number(text):
            return self._number_first(index)
        return self._name_first(index) or self._number_first(index) or self._value_of_two(index) or self._alone(text)

    def _value_of_two(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a name or a phrase of two words, as ``adamw 8bit`` or ``flash attention``."""
        if not self._is_free(index, 2):
            return None
        both = self._span(index, 2)
        named = settings.exact_value(both, self._task, self._catalog) or self._phrase(both)
        return None if named is None else (2, named)

    def _phrase(self, words: str) -> Meaning | None:
        values = vocabulary().phrase(words, self._task)
        return None if values is None else Meaning(words if values else "", values)

    def _alone(self, text: str) -> tuple[int, Meaning] | None:
        """Recognize a name of a value, a field glued to its number, or a word that says nothing."""
        if key_of(text) in vocabulary().refused:
            return 1, Meaning(fault=PlanError(f"{text!r} cannot be planned", hint=vocabulary().refused[key_of(text)]))
        meaning = self._phrase(text) or self._dataset(text)
        if meaning is None:
            meaning = settings.named_value(text, self._task, str(self._values.get(METHOD, "")), self._catalog)
        parts = settings.glued(text)
        if meaning is None and parts is not None:
            meaning = self._pair(parts[0], parts[1])
        key, words = key_of(text), vocabulary()
        if meaning is None and (key in words.fillers or key in words.suggests):
            meaning = _NOTHING
        if meaning is None and key in words.remarks:
            meaning = Meaning(why=words.remarks[key])
        return None if meaning is None else (1, meaning)

    def _dataset(self, text: str) -> Meaning | None:
        """Recognize a data set by name; what the line says of its length goes before."""
        path, size = vocabulary().datasets.get(key_of(text), ("", 0))
        if not path or self._task not in (TRAIN, FINETUNE):
            return None
        lengths = (Key.TRAINING_TOKENS, Key.TRAINING_SAMPLES, Key.TRAINING_STEPS)
        is_given = any(length in self._values for length in lengths) or any(
            (amount := settings.amount_of(token.text)) is not None and amount.field(TRAIN) in lengths
            for token in self._tokens
        )
        return Meaning(f"data of {text}", {} if is_given else {path: size})

    def _number_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a number with what it counts behind it."""
        number, after = self._tokens[index].text, self._tokens[index + 1].text if self._is_free(index + 1) else ""
        pair = self._span(index + 1, 2) if self._is_free(index + 1, 2) else ""
        is_pair = settings.amount_of(pair) is not None
        after = pair if is_pair else after
        amount = settings.amount_of(after)
        parameter = settings.named_field(after, self._task, self._model)
        is_parameter = parameter is not None and parameter[0].startswith(OWN_PARAMETERS)
        is_counted = amount is not None and (
            amount.is_behind
            or settings.is_time(number)
            or (bool(amount.behind) and not self._begins_another(index + 1 + is_pair))
        )
        if not is_counted and not is_parameter:
            return None
        meaning = self._pair(after, number)
        return None if meaning is None else (3 if is_pair else 2, meaning)

    def _begins_another(self, index: int) -> bool:
        """Whether a word that may stand on either side of a number belongs to the number behind it."""
        if not self._is_number_at(index + 1) or not self._is_free(index + 1):
            return False
        after = self._amount_at(index + 2)
        return after is None or not after.behind

    def _name_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a field by one word or two, with its value behind it; a switch stands alone."""
        for count in (2, 1):
            if not self._is_free(index, count):
                continue
            name = self._span(index, count)
            skipped = int(self._is_free(index + count) and key_of(self._tokens[index + count].text) in _BETWEEN)
            behind = index + count + skipped
            after = self._tokens[behind].text if self._is_free(behind) else ""
            meaning = self._pair(name, after) if after and not self._is_of_next(name, behind) else None
            if meaning is not None:
                return count + skipped + 1, meaning
            field = settings.named_field(name, self._task, self._model)
            if field is not None and field[1].kind == "switch":
                return count, Meaning(name, {field[0]: True})
        return None

    def _is_of_next(self, name: str, index: int) -> bool:
        """Whether the number behind a name is counted by the word behind that, as in ``8k context 16 users``."""
        amount, after = settings.amount_of(name), self._amount_at(index + 1)
        return amount is not None and after is not None and after.is_behind and self._is_number_at(index)

    def _pair(self, name: str, value: str) -> Meaning | None:
        """Return what a name and its value set; None where they do not belong together."""
        amount = settings.amount_of(name)
        if amount is not None and settings.is_amount(value, amount, self._task):
            if amount.name == "nodes":
                return self._nodes(value)
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
        if not isinstance(named, int) or not number.isdigit():
            hint = "say the devices of one node too, as 4 nodes 8xh100"
            return Meaning(fault=PlanError("nodes of unknown size", number, hint))
        devices = named * int(number)
        self._values.pop(hardware.DEVICES)
        return Meaning(
            f"{number} nodes of {named}, {devices} devices", {hardware.DEVICES: devices, Key.HARDWARE_PER_NODE: named}
        )

    def _takes(self, choices: tuple[str, ...], word: str) -> bool:
        return settings.is_number(word) or key_of(word) in {key_of(choice) for choice in (*choices, AUTO, "on", "off")}

    def _guessed(self, index: int) -> tuple[int, Meaning] | None:
        """Take what nothing else recognized for a number of its usual meaning, or for the most similar name."""
        if not self._is_free(index):
            return None
        text = self._tokens[index].text
        if key_of(text) in vocabulary().fillers or key_of(text) in self._catalog.architectures.variants:
            return 1, _NOTHING
        if self._is_size_of_model(index) or settings.amount_of(text) is not None:
            return 1, _NOTHING
        if settings.is_number(text):
            path = Key.INFERENCE_PROMPT_TOKENS if self._task == INFER else Key.TRAINING_SEQ_LEN
            return 1, settings.bare_number(text, self._task, path in self._values)
        return 1, self._similar(text)

    def _is_size_of_model(self, index: int) -> bool:
        """Whether a word says once more how large the model is, as 671b behind deepseek r1."""
        text = self._tokens[index].text
        nearby = [meaning for start, (count, meaning) in self._taken.items() if index in (start - 1, start + count)]
        if self._is_counted(index) or not any(models.MODEL in meaning.values for meaning in nearby):
            return False
        row_id = self._catalog.architectures.find_id(str(self._values.get(models.MODEL, "")))
        total = self._catalog.architectures[row_id].params_total if row_id is not None else None
        if not total or text[-1:] not in "bBmM" or not settings.is_number(text):
            return False
        return abs(parse_count(text) / total - 1) < _SAME_PARAMETERS

    def _similar(self, text: str) -> Meaning:
        """Return what the name most similar to a word stands for, or say that there is none."""
        counted = hardware.counted(text)
        name = counted[1] if counted else text
        for kind, near in similar_names(name, self._catalog):
            why = f"{text[:40]}: {near} is the nearest name"
            if kind == HARDWARE_NAME and hardware.NAME not in self._values:
                return hardware.hardware_called(near, counted[0] if counted else None, self._catalog, why)
            if kind == MODEL_NAME and models.MODEL not in self._values and counted is None:
                meaning = models.named_model(near, self._catalog)
                if meaning is not None:
                    return Meaning(meaning.words, meaning.values, why)
            if kind == TASK_NAME and METHOD not in self._values:
                meaning = task_named(near)
                is_other = meaning is not None and meaning.values.get(TASK) != self._values.get(TASK)
                if meaning is not None and (not is_other or self._assumed):
                    self._values.pop(TASK, None)
                    self._assumed.clear()
                    self._task = str(meaning.values[TASK])
                    return Meaning(meaning.words, meaning.values, why)
        self._unknown[text] = name
        return Meaning(fault=unknown_words({text: name}, self._catalog))

    def _own_figures(self) -> None:
        """Make figures without a device's name a device of one's own."""
        given = {
            key.removeprefix(f"{hardware.SPEC}."): value
            for key, value in self._values.items()
            if key.startswith(f"{hardware.SPEC}.")
        }
        if given.keys() - {"host_memory_gib"} and hardware.NAME not in self._values:
            makers = (vocabulary().machines.get(key_of(token.text)) for token in self._tokens)
            meaning = hardware.custom_device(given, self._catalog, next(filter(None, makers), ""))
            self._values = {key: value for key, value in self._values.items() if not key.startswith(hardware.SPEC)}
            self._values.update(meaning.values)
            self._assumed.append(Assumption(hardware.NAME, meaning.values[hardware.NAME], meaning.why))

    def _words(self) -> Iterator[Word]:
        for index, (count, meaning) in sorted(self._taken.items()):
            first, last = self._tokens[index], self._tokens[index + count - 1]
            yield Word(self._text[first.start : last.end], first.start, last.end, meaning)
