"""Read the one line that says a plan: ``llama-3.1-70b lora 8xh100 4k 50M``, its words in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import KnownModel, find_known_model, presumed_family
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
from capacity_tui.engine.plan.line.setting_words import METHOD, TASK, task_meant, task_named
from capacity_tui.engine.plan.line.words import (
    INFER,
    LONGEST_LINE,
    TRAIN,
    Amount,
    Assumption,
    Meaning,
    OneLine,
    Word,
    split,
    vocabulary,
)
from capacity_tui.engine.schema import AUTO

_MOST_WORDS = 4
"""Words that one name may have, as in ``llama 3.1 70b`` or ``H100 SXM``."""
_NOTHING = Meaning()


def read_line(text: str, catalog: Catalog | None = None) -> OneLine:
    """Return what a line says: values of a plan, and what each word was taken for.

    Args:
        text: the line.
        catalog: what names stand for; the shipped one with the user's own by default.
    """
    return _Line(text, catalog or load_catalog()).read()


class _Line:
    """A line while it is read: first the words that name model, hardware and task, then those that depend on them."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        self._text = text
        self._catalog = catalog
        self._tokens = split(text)
        self._taken: dict[int, tuple[int, Meaning]] = {}
        self._values: dict[str, object] = {}
        self._assumed: list[Assumption] = []
        self._faults: list[PlanError] = []
        self._unknown: dict[str, str] = {}
        self._task = TRAIN
        self._model: KnownModel | None = None

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
        if self._unknown:
            self._faults.append(unknown_words(self._unknown, self._catalog))
        words = tuple(self._words())
        return OneLine(self._text, self._task, words, tuple(self._assumed), self._values, tuple(self._faults))

    def _pass(self, recognize: Callable[[int], tuple[int, Meaning] | None]) -> None:
        """Try what was not recognized so far."""
        index = 0
        while index < len(self._tokens):
            match = None if index in self._taken else recognize(index)
            if match is not None:
                self._take(index, *match)
            index += self._taken[index][0] if index in self._taken else 1

    def _take(self, index: int, count: int, meaning: Meaning) -> None:
        for path, value in meaning.values.items():
            if path in self._values and self._values[path] != value and meaning.fault is None:
                text = self._span(index, count)
                detail = f"{text!r} and {self._values[path]}"
                meaning = Meaning(fault=PlanError(f"{path} is said twice", detail, "keep one of them"))
        self._values.update(meaning.values)
        if meaning.fault is not None and self._span(index, count) not in self._unknown:
            self._faults.append(meaning.fault)
        self._taken[index] = count, meaning

    def _span(self, index: int, count: int) -> str:
        return " ".join(token.text for token in self._tokens[index : index + count])

    def _is_free(self, index: int, count: int = 1) -> bool:
        """Whether so many words from here on were not recognized yet."""
        inside = range(index, index + count)
        return inside.stop <= len(self._tokens) and not any(
            start < inside.stop and inside.start < start + length for start, (length, _) in self._taken.items()
        )

    # Names

    def _named(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize what names task, method, model or hardware, the longest name first."""
        token = self._tokens[index]
        if "=" in token.text and "(" not in token.text:
            return None
        user_defined = hardware.named_hardware(token.text, self._catalog) if "(" in token.text else None
        if user_defined is not None:
            return 1, user_defined
        if settings.is_number(token.text) and self._is_counted(index):
            return None
        for count in range(min(_MOST_WORDS, len(self._tokens) - index), 0, -1):
            if not self._is_free(index, count):
                continue
            phrase = self._span(index, count)
            meaning = task_named(phrase) or self._thing(phrase, count)
            if meaning is not None:
                return count, meaning
        return None

    def _thing(self, phrase: str, count: int) -> Meaning | None:
        """Return model or hardware of a name; of several words only names without additions."""
        if count > 1 and any(mark in phrase for mark in "=("):
            return None
        if count == 1 and self._is_value(phrase):
            return None
        match = hardware.named_hardware(phrase, self._catalog) if not settings.is_number(phrase) or count == 1 else None
        if match is not None and not (settings.is_number(phrase) and len(phrase) < 4):
            return match
        if count > 1 and self._catalog.architectures.is_variant(phrase):
            return None
        return models.named_model(phrase, self._catalog)

    def _is_value(self, word: str) -> bool:
        """Whether a word is the exact name of a number format, framework, engine or optimizer."""
        return (
            any(
                key_of(word) == key_of(name)
                for task in (TRAIN, INFER)
                for name in settings.value_names(task, self._catalog)
            )
            or key_of(word) in vocabulary().formats
        )

    def _is_counted(self, index: int) -> bool:
        """Whether a word beside a number says what it counts."""
        behind = self._amount_at(index + 1)
        if behind is not None and behind.is_behind:
            return True
        before = self._amount_at(index - 1)
        is_of_another = before is not None and before.is_behind and self._is_number_at(index - 2)
        return before is not None and not is_of_another

    def _amount_at(self, index: int) -> Amount | None:
        return settings.amount_of(self._tokens[index].text) if 0 <= index < len(self._tokens) else None

    def _is_number_at(self, index: int) -> bool:
        return 0 <= index < len(self._tokens) and settings.is_number(self._tokens[index].text)

    def _sized(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a size, or a part of a model's name, where no model was named in full."""
        if models.MODEL in self._values or self._is_counted(index) or not self._is_free(index):
            return None
        text = self._tokens[index].text
        if "=" in text or key_of(text) in vocabulary().fillers or self._is_setting(text):
            return None
        if self._is_free(index, 2) and not self._is_setting(self._tokens[index + 1].text):
            joined = f"{text}-{self._tokens[index + 1].text}"
            match = models.resembling_model(joined, self._catalog)
            if match is not None and not settings.is_number(text):
                return 2, match
        if settings.is_number(text) and text[-1:] not in "bB":
            return None
        match = models.sized_model(text, self._catalog) or models.resembling_model(text, self._catalog)
        return (1, match) if match is not None else None

    def _is_setting(self, text: str) -> bool:
        """Whether a word has a meaning beside models."""
        parts = settings.glued(text)
        known = settings.amount_of(text) or (parts is not None and settings.amount_of(parts[0]))
        return bool(known or self._is_value(text) or hardware.figures_of(text) or vocabulary().fields.get(key_of(text)))

    # The task

    def _find_task(self) -> None:
        """Take the task that was named, or the one that the other words are of."""
        name = self._values.get(models.MODEL)
        family = presumed_family(str(name), self._catalog) if name not in (None, AUTO) else None
        self._model = find_known_model(str(name), self._catalog) if family is not None else None
        if TASK in self._values:
            self._task = str(self._values[TASK])
            return
        free = [token.text for index, token in enumerate(self._tokens) if self._is_free(index)]
        words = [token.text for token in self._tokens]
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
            return (2 if is_ram else 1), hardware.given_figure(text, figure, is_ram, name, self._catalog)
        if settings.is_number(text):
            return self._number_first(index)
        return self._name_first(index) or self._number_first(index) or self._alone(text)

    def _alone(self, text: str) -> tuple[int, Meaning] | None:
        """Recognize a name of a value, a field glued to its number, or a word that says nothing."""
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

    def _number_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a number with what it counts behind it."""
        number, after = self._tokens[index].text, self._tokens[index + 1].text if self._is_free(index + 1) else ""
        pair = self._span(index + 1, 2) if self._is_free(index + 1, 2) else ""
        is_pair = settings.amount_of(pair) is not None and settings.amount_of(after) is None
        after = pair if is_pair else after
        amount = settings.amount_of(after)
        parameter = settings.named_field(after, self._task, self._model)
        is_parameter = parameter is not None and parameter[0].startswith(OWN_PARAMETERS)
        is_counted = amount is not None and (amount.is_behind or settings.is_time(number))
        if not is_counted and not is_parameter:
            return None
        meaning = self._pair(after, number)
        return None if meaning is None else (3 if is_pair else 2, meaning)

    def _name_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a field by one word or two, with its value behind it; a switch stands alone."""
        for count in (2, 1):
            if not self._is_free(index, count):
                continue
            name = self._span(index, count)
            after = self._tokens[index + count].text if self._is_free(index + count) else ""
            meaning = self._pair(name, after) if after else None
            if meaning is not None:
                return count + 1, meaning
            field = settings.named_field(name, self._task, self._model)
            if field is not None and field[1].kind == "switch":
                return count, Meaning(name, {field[0]: True})
        return None

    def _pair(self, name: str, value: str) -> Meaning | None:
        """Return what a name and its value set; None where they do not belong together."""
        amount = settings.amount_of(name)
        if amount is not None and settings.is_amount(value, amount, self._task):
            if amount.name == "nodes":
                return self._nodes(value)
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
        if settings.is_number(text):
            path = Key.INFERENCE_PROMPT_TOKENS if self._task == INFER else Key.TRAINING_SEQ_LEN
            return 1, settings.bare_number(text, self._task, path in self._values)
        return 1, self._similar(text)

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
        given = {key.removeprefix(f"{hardware.SPEC}."): value for key, value in self._values.items()
                 if key.startswith(f"{hardware.SPEC}.")}  # fmt: skip
        if given and hardware.NAME not in self._values:
            meaning = hardware.custom_device(given, self._catalog)
            self._values = {key: value for key, value in self._values.items() if not key.startswith(hardware.SPEC)}
            self._values.update(meaning.values)
            self._assumed.append(Assumption(hardware.NAME, meaning.values[hardware.NAME], meaning.why))

    def _words(self) -> Iterator[Word]:
        for index, (count, meaning) in sorted(self._taken.items()):
            first, last = self._tokens[index], self._tokens[index + count - 1]
            yield Word(self._text[first.start : last.end], first.start, last.end, meaning)
