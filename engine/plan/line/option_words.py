"""Options of a line that other tools have, as ``n_samples_per_prompt 8`` and ``--max-prompt-length=256``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog, Plain, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.task_words import METHOD, TASK, task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, UNKNOWN_OPTION, Meaning
from capacity_tui.engine.plan.line.unknown_words import UnknownWords
from capacity_tui.engine.plan.options import Agreed, agreed, bears_on_a_run, is_option, option_name, takes, tool
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import parse_quantity

_NUMBERED = re.compile(r"device=(0|\d(?:,\d)+|(?:cuda|gpu)(?::\d)?)", re.IGNORECASE)
_FILE = re.compile(  # Of data, of settings or of a script
    r"(?P<name>[a-z_-]+=)?\S*\w\.(?:ya?ml|jsonl?|csv|parquet|txt|ipynb|toml|cfg|(?P<script>sh|py))", re.IGNORECASE
)
_GROUP = re.compile(r"([a-z_-]+)[=:]?(\d+)|(\d+)([a-z_-]+)", re.IGNORECASE)
_FEWEST_OF_A_GROUP = 16  # Weights that share a scale
_MARK, _BITS = "--", "bits"
_LEAVE_OUT = "leave it out, or say what it is in words"
_HINT = "write it into a file of options of its tool, and name that file"
_TASKS = (TRAIN, INFER)
_RECKONED = re.compile(  # 7 x 4 = 28 GB, and with a division of anything: 360 / 1 * 10 = 3600
    r"\d[\d.]*b?(?: ?[x×*+] ?\d[\d.]*b?)+ ?= ?[~≈]?\d[\d.]* ?[gt]b|\d+ ?/ ?\d+(?: ?[x×*/] ?\d+)+ ?= ?\d+", re.IGNORECASE
)
_LONGEST_CALCULATION = 12  # Words of it
_FARTHEST_VERB = 3  # Words between it and one that takes it, as in ``requires about 7 x 4``
_LEFT_OPEN = ("-1", AUTO)
_BATCHES = frozenset({Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_MICRO_BATCH, Key.INFERENCE_BATCH})


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a line with its value."""

    name: str
    value: str  # empty for a switch

    @property
    def words(self) -> str:
        """Both, as a message has them."""
        return f"{self.name} {self.value}".strip()

    @property
    def plain(self) -> Plain:
        """Its value as a file would have it."""
        key, words = key_of(self.value), vocabulary()
        if not self.value or key in words.switched_on | words.switched_off:
            return key not in words.switched_off
        if not settings.is_number(self.value):
            return self.value
        number = parse_quantity(self.value, "")
        return int(number) if number.is_integer() else number


class OptionWords(UnknownWords):
    """A line whose words were recognized, and options in it that tables of tools have."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        super().__init__(text, catalog)
        self._options: dict[int, tuple[int, Option]] = {}

    def _find_options(self) -> None:
        """Set options aside before names are looked for, as values may be called like other things."""
        for index, token in enumerate(self._tokens):
            if index in self._taken or not self._is_free(index):
                continue
            written = self._text[token.start : token.end].rstrip(",;")
            name, mark, value = written.partition("=")
            joint = 1 + int(self._word(index + 1) == "=")
            is_apart = token.ends and not self._text.startswith(":", token.end)
            behind = "" if mark or is_apart else self._word(index + joint)
            is_option_of_some = bool(mark) or name.startswith(_MARK) or is_option(name) or self._is_setting(name)
            is_open = (value or behind) == AUTO and is_option_of_some and key_of(name) not in vocabulary().model_words
            if is_open or value == _LEFT_OPEN[0] or (behind == _LEFT_OPEN[0] and self._is_setting(name)):
                count = 1 + joint * int(not mark)
                self._options[index], self._taken[index] = (count, Option(name, value or behind)), (count, Meaning())
                continue
            if not self._is_of_a_tool(name, token.text):
                continue
            is_value = bool(behind) and takes(name, Option(name, behind).plain)
            if mark or is_value or written.startswith(_MARK) or takes(name, True):
                count, option = 1 + joint * int(is_value), Option(name, value or (behind if is_value else ""))
                if (method := self._method_of(option)) is not None:
                    self._take(index, count, method)
                    continue
                self._options[index], self._taken[index] = (count, option), (count, Meaning())
        self._pass(lambda index: self._group_of_weights(index) or self._pure_bits(index))
        self._pass(
            lambda index: (
                self._file(index)
                or self._calculation(index)
                or self._flag(index, _MARK)
                or self._numbered_devices(index)
            )
        )

    def _is_of_a_tool(self, name: str, text: str) -> bool:
        """Whether a name is of an option that no word of a line is called by."""
        is_written = name.startswith(_MARK) or "_" in name or ("=" in text and not name.isalpha())
        if not (is_written and name.lstrip("-")[:1].isalpha() and is_option(name)):
            return False
        words, plain = vocabulary(), name.lstrip("-")
        is_word = self._is_setting(plain) or task_named(plain) is not None or key_of(plain) in words.fillers
        is_word |= any(settings.amount_named(word, task, None) for task in _TASKS for word in (name, plain))
        is_word |= any(words.phrase(plain, task) is not None for task in _TASKS)
        is_word |= any(key_of(plain) in group for group in (words.known_by_value, words.switches, words.remarks))
        is_word |= key_of(plain) in words.of_cache["words"]
        return not is_word and self._thing(plain, 1) is None

    def _flag(self, index: int, mark: str) -> tuple[int, Meaning] | None:
        """Leave out an option that no tool has, unless its name tells of memory or time."""
        match, name = super()._flag(index, mark), self._tokens[index].text
        if match is not None and (remark := vocabulary().remarks.get(key_of(name))):
            return 1, Meaning(why=remark)
        if match is None or not name.startswith(_MARK) or not bears_on_a_run(name):
            return match
        return match[0], Meaning(fault=PlanError(UNKNOWN_OPTION, self._span(index, match[0]), _LEAVE_OUT))

    def _group_of_weights(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many weights share a scale, as in ``gptq 4bit group 128``, where no answers are drawn."""
        words, keys = vocabulary(), self._keys()
        formats = tuple(words.grouped["formats"])
        is_packed = any(key in words.formats or key.startswith(formats) for key in keys)
        if not is_packed or not keys.isdisjoint(words.objectives):
            return None
        for count in (count for count in (3, 2, 1) if self._is_free(index, count)):
            match = _GROUP.fullmatch(self._span(index, count).replace(" ", ""))
            name, number = ("", "") if match is None else (match[1] or match[4], match[2] or match[3])
            is_name = key_of(name) in words.grouped["words"] and (count > 1 or bool(match and match[1]))  # but 128g
            if is_name and int(number) >= _FEWEST_OF_A_GROUP and int(number).bit_count() == 1:
                return count, Meaning(f"{number} weights share a scale")
        return None

    def _pure_bits(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize 16 bits throughout, as ``full bf16`` says them of a network or beside a method."""
        key, others = key_of(self._span(index, 2)), [token.text for token in self._tokens]
        if key not in vocabulary().every["whole bits"]:
            return None
        del others[index : index + 2]
        is_method = any(METHOD in (task_named(other) or Meaning()).values for other in others)
        named = (models.named_model(other, self._catalog) or Meaning() for other in others)
        is_network = any(meaning.values.get(Key.MODEL_NAME) in self._catalog.networks for meaning in named)
        tasks = {rows.get(key_of(other)) for rows in (vocabulary().tasks, vocabulary().suggests) for other in others}
        if not (is_method or (is_network and tasks & {TRAIN, FINETUNE})):
            return None
        pure = key.replace("full", "pure")
        meaning = Meaning(pure, vocabulary().phrases[TRAIN][pure], vocabulary().remarks[pure])
        return (2, meaning) if self._is_free(index, 2) else None

    def _file(self, index: int) -> tuple[int, Meaning] | None:
        """Take a file for what its name says, as ``zero3.json``; pass over others where another word is the model."""
        text, written = self._word(index), self._written(index)
        file, parts = _FILE.fullmatch(written), re.split(r"[\W_]", written)
        for name, begins in vocabulary().telling_files.items():
            if file is not None or written.startswith(begins):
                for values in tool(name).started_values(written):
                    return 1, Meaning(written, dict(values))
        is_script = file is not None and file["script"] and any(map(task_named, parts))  # finetune_lora_ds.sh
        if file is None or is_script or key_of(text) in vocabulary().datasets:
            return None
        named, others = models.named_model(text, self._catalog), (token.text for token in self._tokens)
        is_model = named is not None and named.values.get(Key.MODEL_NAME) != text  # yolo11n.yaml
        is_other = not file["name"] and not any(self._is_of_model(other) for other in others if other != text)
        if is_model or is_other or Key.MODEL_NAME.partition(".")[0] in str(file["name"]):
            return None
        return 1, Meaning(why=f"left out: {written}")

    def _is_of_model(self, word: str) -> bool:
        """Whether a word names a model, or says the size of one."""
        named = models.named_model(word, self._catalog) or models.resembling_model(word, self._catalog)
        return named is not None or models.is_size(word)

    def _numbered_devices(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize devices by their numbers or their kind, as ``device=0,1``."""
        match = _NUMBERED.fullmatch(self._word(index))
        devices = 0 if match is None else len(match[1].split(",")) * match[1][:1].isdecimal()
        values: dict[str, object] = {Key.HARDWARE_DEVICES: devices} if devices > 1 else {}
        return None if match is None else (1, Meaning(f"{devices} devices" if values else "", values))

    def _set_options(self) -> None:
        """Take the options for what their tools agree on."""
        named = {key_of(token.text) for token in self._tokens}
        for index, (count, option) in self._options.items():
            if option.value in _LEFT_OPEN:
                amount = settings.amount_of(option.name)
                self._take(index, count, self._left_open(option, "" if amount is None else amount.field(self._task)))
                continue
            try:
                agreement = self._agreement(option, named, serves=self._task == INFER)
                meaning = self._meaning_of(option, agreement)
            except PlanError as fault:
                meaning = Meaning(fault=fault)
            self._take(index, count, meaning)
        self._pass(self._alongside)

    def _agreement(self, option: Option, named: set[str], *, serves: bool) -> Agreed | None:
        read = {**vocabulary().option_quantities, _BITS: _BITS}
        return agreed(option.name, option.plain, serves=serves, read=read, named=named)

    def _method_of(self, option: Option) -> Meaning | None:
        """Return the method that an option names, before any task is known, as ``finetuning_type lora``, or None."""
        method = task_named(option.value)
        if method is None or METHOD not in method.values:
            return None
        try:
            agreement = self._agreement(option, set(), serves=False)
        except PlanError:
            return None
        is_method = agreement is not None and METHOD in agreement.values
        return replace(method, words=option.words) if is_method else None

    def _alongside(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out what stands beside a model that is named, which alone would be refused as one."""
        words, text = vocabulary(), self._span(index, 1)
        if Key.MODEL_NAME not in self._values or key_of(text) not in words.alongside:
            return None
        return 1, Meaning() if key_of(text) in words.guessing else Meaning(why=f"left out: {text}")

    def _left_open(self, option: Option, path: str | None) -> Meaning:
        """Return what an option sets that its tool is to find by itself: a batch as large as fits, else nothing."""
        if path not in _BATCHES:
            return Meaning(why=f"left out: {option.words}, which leaves it open")
        return Meaning(f"{option.name} as large as fits", {path: AUTO})

    def _meaning_of(self, option: Option, agreement: Agreed | None) -> Meaning:
        if agreement is None:
            task = "serving" if self._task == INFER else "training"
            return Meaning(fault=PlanError(f"an option that no tool of {task} has", option.words, _LEAVE_OUT))
        if agreement.others:
            detail = f"{option.name}: {', '.join(agreement.tools)} against {', '.join(agreement.others)}"
            return Meaning(fault=PlanError("tools differ in what this option says", detail, "name the tool too"))
        if not agreement.values and agreement.is_counted:
            return Meaning(fault=PlanError("an option that a line does not read", option.words, _HINT))
        why = "; ".join(f"{option.words}: {remark}" for remark in agreement.remarks)
        if not agreement.values:
            return Meaning(why=why or f"{option.words}: no effect on memory or time")
        meanings = [*self._meanings(option, agreement)]
        fault = next((one.fault for one in meanings if one.fault is not None), None)
        values = {path: value for one in meanings for path, value in one.values.items()}
        return Meaning(", ".join(one.words for one in meanings if one.words), values, why, fault)

    def _meanings(self, option: Option, agreement: Agreed) -> Iterator[Meaning]:
        for path, value in agreement.values.items():
            amount = None if "." in path else vocabulary().amounts.get(key_of(path))
            is_own = value == option.plain and not isinstance(option.plain, bool)
            text = option.value if is_own else str(value)
            if path == _BITS:
                bits = f"{value}bit"
                yield self._packed_base(bits) or settings.named_value(bits, self._task, "", self._catalog) or Meaning()
            elif amount is not None:
                yield self._pair(option_name(option.name), text, amount) or Meaning(f"{amount.name} {text}")
            elif path == TASK:
                continue
            elif isinstance(value, bool | str) and not settings.is_number(text):
                yield Meaning(f"{path.rpartition('.')[2]} {value}", {path: value})
            else:
                yield settings.field_value(path, text, FINETUNE)

    def _calculation(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out what a line reckons by itself, as ``7 x 4 x 4 = 112 GB``."""
        spans = range(min(_LONGEST_CALCULATION, len(self._tokens) - index), 0, -1)
        few = next((few for few in spans if _RECKONED.fullmatch(self._span(index, few))), 0)
        before = {key_of(token.text) for token in self._tokens[max(index - _FARTHEST_VERB, 0) : index]}
        names_hardware = any(hardware.named_hardware(token.text, self._catalog) for token in self._tokens)
        if not few or not (names_hardware or before & vocabulary().measured["memory"]):
            return None  # what a machine has together, as cluster: 4 * 80 = 320GB
        return few, Meaning(why=f"left out: {self._span(index, few)}, reckoned; a plan counts its memory itself")
