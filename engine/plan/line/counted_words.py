"""Numbers of a line and the words beside them: which words say what a number counts, and what that sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line import setting_words as settings
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL, is_size, named_model
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of
from capacity_tui.engine.plan.line.lexicon.tokens import WHOLE
from capacity_tui.engine.plan.line.lexicon.vocabulary import Amount, vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Meaning
from capacity_tui.engine.plan.line.taken_words import TakenWords
from capacity_tui.engine.plan.line.task_words import task_named
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import parse_count, parse_quantity

_BETWEEN = frozenset({"of", "is", "to", "="})  # Words between a name and its value, as in ``attention is flash``
_OF_THEM = ("of", ("them", "those", "these", "whom"))
_MOST_WORDS = 4  # Words that one name of what is counted may have
_LONGEST_OTHER = 4  # Letters of words that are seldom what is counted, as ``plus`` and ``only``
EVERY_NODE, OF_A_NODE = frozenset({"each", "apiece"}), frozenset({"of", "with", "w/", "x", "×"})
_BATCH, _BATCH_OF_TOKENS = "batch", "tokens of a batch"
_DRAWING, _GROUPS = ("grpo", "ppo"), ("answers to a prompt", "answers of a group")  # Preferences that draw answers
_ROUND = 100  # What a number of something is mostly a multiple of, and that of a device is not
_LARGEST_BATCH = 100_000  # Sequences of a batch; a larger number counts its tokens
_FEWEST_TOKENS = 4096  # Of a batch that is said in tokens


@dataclass(frozen=True, slots=True)
class Count:
    """A number with the words that say what it counts."""

    start: int  # where they begin, the number among them, and a unit
    end: int
    name: str  # the words, without the unit
    amount: Amount  # what they say


class CountedWords(TakenWords):
    """A line whose words are being recognized, and its numbers with what they count."""

    def _is_phrase(self, words: str) -> bool:
        """Whether some words set a field, whatever the first of them alone stands for: ``full precision``."""
        return " " in words and any(vocabulary().phrase(words, task) is not None for task in (TRAIN, INFER))

    # Which words say what a number counts

    def _count_of(self, index: int) -> Count | None:
        """Return what the number at a place counts; None where no word says it.

        Words that always stand behind a number go first, then the words before it that no number before them has, then
        the words behind it, unless they begin what follows.
        """
        behind = next(self._names_behind(index), None)
        before = next(self._names_before(index), None)
        if behind is not None and behind.amount.is_behind:
            # input 1500 tokens; tp 8 users 16; batch 256 images/s
            is_other = self._begins_another(behind) or _is_speed(behind)
            length = None if before is None else self._length_of_one(before, behind, index)
            if length is not None:
                return length
            is_before = before is not None and (before.end > index + 1 or is_other)
            if not is_before and not self._is_of_hardware(index, behind):
                return behind
        is_last = behind is not None and (not self._is_number_at(behind.end) or self._is_apart(behind.end - 1))
        is_far = before is not None and (before.amount.is_behind or self._is_apart(index - 1))
        is_open = before is None or (is_far and is_last)
        if behind is None or behind.amount.is_behind or not is_open:  # 12k imgs 1024 px, but batch 8 seq 2048
            return before
        return before if self._begins_another(behind) or self._is_of_hardware(index, behind) else behind

    def _length_of_one(self, before: Count, behind: Count, index: int) -> Count | None:
        """Return how much is in one of what stands before a number, as ``sequences of 100 steps``; None elsewhere."""
        is_of_one = before.amount.behind == "either" and key_of(self._tokens[index - 1].text) == "of"
        if not is_of_one or before.end > index + 1 or (self._task == INFER and before.amount.name == _BATCH):
            return None  # a batch of 10k documents is read until it ends
        words, amount = vocabulary().amounts["words"], before.amount
        if before.amount.unit and behind.amount == words:  # answers of 200 words
            amount = replace(amount, per=words.per, assumes=words.assumes)
        elif before.amount.unit:
            amount = vocabulary().amounts["letters"]  # answers of 2 paragraphs
        return replace(before, end=behind.end, amount=amount)

    def _is_counted(self, index: int) -> bool:
        """Whether a word beside a number says what it counts."""
        return self._is_number_at(index) and self._count_of(index) is not None

    def _is_in_count(self, index: int) -> bool:
        """Whether a word is one of several that say what a number before them counts, as in ``20 lora adapters``."""
        counts = (self._count_of(at) for at in range(max(index - _MOST_WORDS, 0), index) if self._is_number_at(at))
        return any(count is not None and index < count.end - 1 and count.start < index for count in counts)

    def _counted(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a number with the words beside it, whichever come first."""
        numbers = (at for at in range(index, min(index + _MOST_WORDS + 2, len(self._tokens))) if self._is_amount(at))
        number = next(numbers, None)
        count = None if number is None or not self._is_free(number) else self._count_of(number)
        if number is None or count is None or count.start != index or not self._is_free(index, count.end - index):
            return None
        meaning = self._pair(count.name, self._tokens[number].text, count.amount)
        if meaning is not None and self._is_part(number):  # 200 people, 30 of them at once
            self._values = {path: value for path, value in self._values.items() if path not in meaning.values}
        return None if meaning is None else (count.end - index, meaning)

    def _is_amount(self, index: int) -> bool:
        text = self._tokens[index].text
        return settings.is_number(text.removesuffix("%")) or settings.is_time(text)

    def _names_behind(self, index: int) -> Iterator[Count]:
        """Yield what words behind a number say that it counts, the most words first, beside a unit those with it."""
        first = index + 1 + (len(_OF_THEM) if self._is_part(index) else int(self._is_described(index)))
        is_unit = self._unit_at(first) and not self._is_apart(first)
        number, is_time = self._tokens[index].text, settings.is_time(self._tokens[index].text)
        if self._is_apart(index) or self._is_apart(first - 1):
            return
        for at in (first + 1, first) if is_unit else (first,):
            for words in range(_MOST_WORDS, 0, -1):
                amount = self._amount_at(at, words, number, self._unit_at(first) if at > first else "")
                is_phrase = words == 1 and self._is_phrase(self._span(at, 2))
                if amount is None or is_phrase or not (amount.behind or is_time):
                    continue
                count = Count(index, at + words, self._span(at, words), amount)
                is_of_unit = amount.unit == self._unit_at(first) and amount.field(self._task or INFER) is not None
                if at == first or (is_of_unit and not self._begins_another(count)):
                    yield count

    def _names_before(self, index: int) -> Iterator[Count]:
        """Yield what words before a number say that it counts, unless the number before them has them."""
        text = self._tokens[index].text
        first = vocabulary().start_of([key_of(token.text) for token in self._tokens[:index]])
        for end in dict.fromkeys((index, first)):
            for words in range(min(_MOST_WORDS, end), 0, -1):
                start = end - words
                amount = self._amount_at(start, words, text, self._unit_at(index + 1), is_before=True)
                if amount is not None and amount.leading:
                    amount = settings.amount_named(amount.leading, self._task, self._model)
                if self._is_apart(index - 1, "?"):
                    return
                is_apart = self._is_apart(index - 1) or self._span(end, 1) == "of"  # how many nodes of 8 h100
                if amount is None or amount.behind == "only" or (amount.is_behind and is_apart):
                    continue
                is_described = self._is_number_at(start - 2) and self._is_described(start - 2)  # 88k squad examples
                at = start - 1 - int(is_described and not self._is_number_at(start - 1))
                is_number = self._is_number_at(at) and self._is_free(at)
                other = self._count_of(at) if is_number else None
                if other is None or other.end <= start:
                    is_unit = amount.unit == self._unit_at(index + 1)
                    is_unit &= amount.name == _BATCH_OF_TOKENS or not settings.is_length_of_job(text)
                    yield Count(start, index + 1 + int(bool(amount.unit) and is_unit), self._span(start, words), amount)
                break

    def _amount_at(
        self, index: int, words: int, number: str, unit: str = "", *, is_before: bool = False
    ) -> Amount | None:
        """Return what some words say that a number counts; billions are a size unless so many are counted.

        A batch is one of tokens where these stand beside it, or where it has too many sequences.
        """
        if index < 0 or not self._is_free(index, words):
            return None
        amount = settings.amount_named(self._span(index, words), self._task, self._model, is_before=is_before)
        if amount is not None and not amount.tells and settings.is_year(number):
            return None  # in 2025
        is_plain = words > 1 or (amount is not None and not amount.tells)
        if is_plain and self._task and amount is not None and amount.field(self._task) is None:
            return None  # 2T tokens in 30 days, 10M in a weekend
        if amount is not None and amount.name == _BATCH and self._task != INFER and settings.is_number(number):
            is_of_tokens = settings.at_least(number, _FEWEST_TOKENS if unit else _LARGEST_BATCH)
            amount = vocabulary().amounts[key_of(_BATCH_OF_TOKENS)] if is_of_tokens else amount
        is_of_model = is_size(number) and number[-1] in "bB" and amount is not None and not amount.billions
        return None if amount is None or is_of_model or not settings.is_amount(number, amount, self._task) else amount

    def _is_part(self, index: int) -> bool:
        """Whether a number is of those that were counted before it, as in ``30 of them``."""
        return self._span(index + 1, 1) == _OF_THEM[0] and self._span(index + 2, 1) in _OF_THEM[1]

    def _is_described(self, index: int) -> bool:
        """Whether a word that says nothing stands between a number and what it counts, as in ``50k legal texts``."""
        number, words = self._tokens[index].text, vocabulary()
        described = self._span(index + 1, 1)
        amount = settings.amount_of(self._span(index + 2, 1)) if self._is_free(index + 1, 2) else None
        names = (self._span(index + 1, count) for count in (2, 3))
        is_one_name = any(settings.amount_of(name) is not None for name in names)  # 10k daily active users
        is_apart = self._is_apart(index) or self._is_apart(index + 1) if amount is not None else True
        if amount is None or is_apart or is_one_name or settings.amount_of(described):
            return False
        if key_of(described) in words.of_something or number[-1] in "bB":
            return amount.is_behind and key_of(described) in words.of_something  # 20 milliards de tokens
        is_plain = key_of(described) in (words.fillers | words.suggests.keys()) - words.joints - words.model_words
        is_meant = is_plain or (amount.described == "any" and not self._is_known(described))
        letters = re.sub("[-&/]", "", described)  # 8000 Q&A pairs
        is_adjective = bool(amount.described or amount.is_behind) and letters.isalpha() and is_meant
        return is_adjective and hardware.named_hardware(number, self._catalog) is None

    def _is_known(self, word: str) -> bool:
        """Whether a word is of plan or of plain language, as those that no adjective is."""
        words, key = vocabulary(), key_of(word)
        named = task_named(word) or hardware.named_hardware(word, self._catalog) or named_model(word, self._catalog)
        return named is not None or key in words.joints | words.fillers | words.refused.keys() | words.queries.keys()

    def _unit_at(self, index: int) -> str:
        """Return the unit that a word is, as ``tokens``; empty for other words."""
        amount = settings.amount_of(self._tokens[index].text) if index < len(self._tokens) else None
        return amount.name if amount is not None and amount.name in vocabulary().units else ""

    def _is_apart(self, index: int, marks: str = ",;?(") -> bool:
        """Whether a comma or the like stands behind a word."""
        after = self._tokens[index + 1].start if index + 1 < len(self._tokens) else len(self._text)
        return any(mark in self._text[self._tokens[index].end : after] for mark in marks)

    def _begins_another(self, count: Count) -> bool:
        """Whether words that may stand on either side of a number belong to the number behind them."""
        is_number = self._is_number_at(count.end) and self._is_free(count.end) and not self._is_apart(count.end - 1)
        if duration_of(self._span(count.end, 1)) is not None:
            return key_of(self._span(count.end - 1, 1)) in vocabulary().within  # 200 tokens in 6 hours
        if not is_number or next(self._names_behind(count.end), None) is not None:
            return False
        is_hardware = hardware.named_hardware(self._tokens[count.end].text, self._catalog) is not None
        return not is_hardware or hardware.NAME in self._values  # 16k ctx 3090

    def _is_of_hardware(self, index: int, behind: Count) -> bool:
        """Whether a number is a device's, and words behind it are of the next: ``4090 batch 16``, ``4090 in 2d``.

        A number that is no round one is the device where words that may begin what follows stand behind it and the
        line names no other hardware: ``4090 answers within 1s``.
        """
        text = self._tokens[index].text
        if hardware.named_hardware(text, self._catalog) is None:
            return False
        end = behind.end + int(self._span(behind.end, 1) == "of")
        is_followed = self._is_number_at(end) or duration_of(self._span(end, 1)) is not None
        others = [token.text for at, token in enumerate(self._tokens) if at != index and not self._is_number_at(at)]
        is_only = behind.amount.behind == "either" and int(text) % _ROUND != 0 if text.isdecimal() else False
        is_only &= not any(hardware.named_hardware(other, self._catalog) for other in others)
        return is_followed or is_only or _is_speed(behind)

    # What they set

    def _pair(self, name: str, value: str, amount: Amount | None = None) -> Meaning | None:
        """Return what a name and its value set; None where they do not belong together."""
        amount = amount or settings.amount_named(name, self._task, self._model, is_before=True)
        if amount is None or not settings.is_amount(value, amount, self._task):
            return self._value_of_field(name, value)
        if amount.name == "nodes":
            return self._nodes(value)
        if (kept := self._kept(amount, value, name)) is not None:
            return kept
        if amount.thousands and value[-1] in "kKmM":
            is_length = value[-1] in "kK" and (
                self._task == INFER or settings.is_power(value)
            )  # 4k sequences, but 50k sequences
            amount = vocabulary().amounts[amount.thousands if is_length else "samples"]
        if amount.fewer and settings.is_sequence(value, self._task, self._values):
            amount = vocabulary().amounts[amount.fewer]
        if amount.name == settings.TOKENS and self._task == INFER and self._is_written(value):
            amount = vocabulary().amounts[key_of("output")]
        return settings.counted(amount, value, self._task, self._model)

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep a number that no field has, of which other words of the line make one."""
        if self._task in (TRAIN, FINETUNE) and (kept := self._kept_of_training(amount, value)) is not None:
            return kept
        row = self._catalog.architectures.get(str(self._values.get(MODEL)))
        if amount.name == "image size" and row is not None and f"({value})" in row.name:
            return Meaning(f"{value} pixels, as it has")
        is_share = value.endswith("%") and amount.name in settings.SHARED
        is_of_all = not is_share and amount.reciprocal and parse_quantity(value, "") > amount.most
        if is_share:
            self._share_of_users = float(value[:-1]) / 100
        elif amount.name == "cores" and value.isdigit() and self._task != FIT:
            self._cores = int(value)
        elif is_of_all and self._task == INFER:
            is_written = amount.per == 1 or "out" in amount.name or self._is_written(value)  # 2B tokens/day are all
            self._token_rates["output" if is_written else "all"] = int(parse_quantity(value, "")), amount.per
        else:
            return None
        return Meaning(f"{value} {name}")

    def _kept_of_training(self, amount: Amount, value: str) -> Meaning | None:
        """Keep passes and tokens of a batch, and the tokens of samples that are shorter than the sequence."""
        if amount.name == "accumulation" and value.isdigit():
            self._accumulation = int(value)
            return Meaning(f"accumulation {value}")
        if self._values.get(Key.TRAINING_PREFERENCE) in _DRAWING and value.isdigit() and amount.name in _GROUPS:
            self._group = int(value)
            return Meaning(f"{value} answers to each prompt")
        if self._values.get(Key.TRAINING_PREFERENCE) in _DRAWING and amount.field(INFER) == Key.INFERENCE_OUTPUT_TOKENS:
            length = settings.field_value(Key.TRAINING_SEQ_LEN, value, TRAIN).values
            self._answer_tokens = int(str(length.get(Key.TRAINING_SEQ_LEN, 0)))
            return Meaning(f"answers of {value} tokens")
        if amount.name == _BATCH_OF_TOKENS:
            self._batch_tokens = parse_count(value)
            return Meaning(f"batch {value} tokens")
        is_short = amount.fewer and Key.TRAINING_SEQ_LEN in self._values
        if is_short and not settings.at_least(value, int(vocabulary().fewest_tokens)):
            self._document_tokens = parse_count(value)
            return Meaning(f"samples of {value} tokens")
        return None

    def _is_written(self, value: str) -> bool:
        """Whether a word before so many tokens says that they are written: ``generating 10M texts of 500 tokens``."""
        before = next((at for at, token in enumerate(self._tokens) if token.text == value), 0)
        keys = ["", "", *(key_of(token.text) for token in self._tokens[:before])]
        last = self._tokens[max(before - 1, 0)]
        ends = self._text[last.start : last.end].split()[-1:]  # 10 s per answer (300 tokens)
        if any(vocabulary().timed.get(key_of(word)) == WHOLE for word in ends):
            return True
        is_aim = keys[-1] in ("to", "into") and keys[-2] != "up"  # summarised to 300 tokens
        return is_aim or any(key in vocabulary().writing for key in keys)

    def _value_of_field(self, name: str, value: str) -> Meaning | None:
        """Return what a field and the name of its value set, as ``attention flash``."""
        field = settings.named_field(name, self._task, self._model)
        states = ("on", "off") if field is not None and field[1].kind == "switch" else ()
        if field is None or key_of(value) not in {key_of(choice) for choice in (*field[1].choices, AUTO, *states)}:
            return None
        return settings.field_value(field[0], value, self._task, knob=field[1])

    def _field_first(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a field by one word or some, with the name of its value behind it; a switch stands alone."""
        for words in range(_MOST_WORDS, 0, -1):
            if not self._is_free(index, words):
                continue
            name = self._span(index, words)
            skipped = int(self._is_free(index + words) and key_of(self._tokens[index + words].text) in _BETWEEN)
            behind = index + words + skipped
            meaning = self._value_of_field(name, self._tokens[behind].text) if self._is_free(behind) else None
            if meaning is not None:
                return words + skipped + 1, meaning
            field = settings.named_field(name, self._task, self._model)
            if field is not None and field[1].kind == "switch" and not settings.is_exact_value(name, self._catalog):
                return words, Meaning(name, {field[0]: True})
        return None

    def _nodes(self, number: str) -> Meaning:
        """Take the devices that were named for those of one node, or of all where no node has so many."""
        named, name = self._values.get(hardware.DEVICES), str(self._values.get(hardware.NAME))
        machine, row = self._catalog.instances.get(name), self._catalog.accelerators.get(name)
        hint = "say the devices of one node too, as 4 nodes 8xh100"
        fault = Meaning(fault=PlanError("nodes of unknown size", number, hint))
        if not number.isdigit() or not int(number):
            return fault
        nodes = int(number)
        if machine is not None:
            named = nodes * (named if isinstance(named, int) else machine.sold_devices)
            return Meaning(f"{number} x {machine.id}", {hardware.DEVICES: named})
        fabric = self._catalog.fabric_of(row) if row is not None else None
        usual = fabric.node_devices if fabric is not None else 1
        size, why = named, ""
        if fabric is not None and named is None and usual > 1:
            size, why = usual, f"{usual} devices a node, as {fabric.name} have"
        elif isinstance(named, int) and named > usual > 1 and not self._is_of_a_node():
            counts_nodes = any(key_of(token.text) in EVERY_NODE for token in self._tokens)  # 216 mi250x nodes, 4 each
            nodes, size = (named, nodes) if counts_nodes else (nodes, named // nodes if named % nodes == 0 else None)
            size = size if size is not None and size <= usual else None
        if not isinstance(size, int):
            return fault
        self._values.pop(hardware.DEVICES, None)
        devices = size * nodes
        counted: dict[str, object] = {hardware.DEVICES: devices, Key.HARDWARE_PER_NODE: size}
        return Meaning(f"{nodes} nodes of {size}, {devices} devices", counted, why)

    def _is_of_a_node(self) -> bool:
        """Whether words say that devices are those of a node: ``2 nodes of 16 v100``, as a DGX-2 has."""
        keys = [key_of(token.text) for token in self._tokens]
        names = (settings.amount_of(key) for key in keys)
        return any(
            amount is not None and amount.name == "nodes" and key in OF_A_NODE
            for amount, key in zip(names, keys[1:], strict=False)
        )

    def _counts_something(self, index: int) -> bool:
        """Whether a word that no plan knows stands behind a number and may be what it counts: ``25k patients``."""
        after = self._tokens[index + 1].text if index + 1 < len(self._tokens) else ""
        words, key = vocabulary(), key_of(after)
        is_noun = after.replace("-", "").isalpha() and (len(after) > _LONGEST_OTHER or key in words.circumstances)
        is_noun = is_noun and key not in words.joints
        is_nothing = self._taken.get(index + 1, (1, Meaning())) == (1, Meaning())
        return is_noun and is_nothing and not self._is_apart(index)


def _is_speed(count: Count) -> bool:
    """Whether words are a speed that lines ask for as well, as ``images/s`` behind a batch or a device."""
    rates = (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_TPOT_SECONDS)
    return count.amount.fields.get(INFER) in rates and key_of(count.name) in vocabulary().fillers
