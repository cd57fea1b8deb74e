"""Numbers of a line and the words beside them: which words say what a number counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import is_size, named_model
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, is_near_scale, sides_of
from capacity_tui.engine.plan.line.lexicon.task_words import task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FIT, INFER, TRAIN, Amount, Meaning
from capacity_tui.engine.plan.line.recognition.taken_words import TakenWords
from capacity_tui.engine.record import dataclass

_OF_THEM = ("of", ("them", "em", "those", "these", "whom"))
MOST_WORDS = 4  # Words that one name of what is counted may have
_LONGEST_OTHER = 4  # Letters of words that are seldom what is counted, as ``plus`` and ``only``
_TIMES, _BATCH, BATCH_OF_TOKENS, _STEPS, TOKEN = ("x", "×", "*"), "batch", "tokens of a batch", "steps", "token"
_OTHER_STEPS, _AT_ONCE = "steps of warm-up or of reports", ("requests at once", "sequences at once")
_STOPS = (*",;?(:", ". ", " - ", " – ", "—")  # Behind a number that counts nothing which follows
_OF_MONEY = ("pricing.", "limits.")  # What fields of money begin with
_ROUND = 100  # What a number of something is mostly a multiple of, and that of a device is not
_OF_A_STEP = (Key.TRAINING_SEQ_LEN, Key.TRAINING_GLOBAL_BATCH)  # What no job's tokens are the tokens of
_LARGEST_BATCH = 100_000  # Sequences of a batch; a larger number counts its tokens
_FEWEST_TOKENS = 4096  # Of a batch that is said in tokens


@dataclass(frozen=True, slots=True)
class Count:
    """A number with the words that say what it counts."""

    start: int  # where they begin, the number among them, and a unit
    end: int
    name: str  # the words, without the unit
    amount: Amount  # what they say


class NumberNames(TakenWords):
    """A line whose words are being recognized, and which of them say what its numbers count."""

    def _is_value(self, word: str) -> bool:
        """Whether a word is the exact name of a number format, framework, engine or optimizer."""
        return settings.is_exact_value(word, self._catalog) or key_of(word) in vocabulary().formats

    def _is_phrase(self, words: str) -> bool:
        """Whether some words set a field, whatever the first of them alone stands for: ``full precision``."""
        return " " in words and any(vocabulary().phrase(words, task) is not None for task in (TRAIN, INFER))

    def _phrase(self, words: str) -> Meaning | None:
        values = vocabulary().phrase(words, self._task)
        why = vocabulary().remarks.get(key_of(words), "")
        return None if values is None else Meaning(words if values else "", values, why)

    def _count_of(self, index: int) -> Count | None:
        """Return what the number at a place counts; None where no word says it; tokens may be said in words."""
        count, words = self._named_count(index), vocabulary().amounts[settings.WORDS]
        if count is None or not count.amount.unit or settings.amount_of(self._span(index + 1, 1)) != words:
            return count
        return replace(count, amount=counted_like(count.amount, words))

    def _named_count(self, index: int) -> Count | None:
        """Return what words say that the number at a place counts, tokens and words of text alike.

        Words that always stand behind a number go first, then the words before it that no number before them has, then
        the words behind it, unless they begin what follows.
        """
        behind = next(self._names_behind(index), None)
        before = next(self._names_before(index), None)
        is_last = behind is None or self._begins_another(behind) or _is_speed(behind)
        is_side = before is not None and before.amount.fields.get(TRAIN, "").endswith(settings.IMAGE_SIZE)
        is_free = before is not None or behind is None or not self._is_number_at(behind.end)
        behind = behind if is_free or not self._is_of_name(index) else None
        before = None if is_last and not is_side and self._is_only_hardware(index) else before  # time per epoch 3090
        if behind is not None and (steps := self._steps(index, behind, before)) is not None:
            return steps
        if behind is not None and behind.amount.name == "devices" and self._is_of_option(index):
            return before  # depth 8 gpu a10g
        if behind is not None and behind.amount.is_behind:  # input 1500 tokens; tp 8 users 16; batch 256 images/s
            is_other = self._begins_another(behind) or _is_speed(behind)
            length = None if before is None else self._length_of_one(before, behind, index)
            if length is not None:
                return length
            is_before = before is not None and (before.end > index + 1 or is_other)
            if not is_before and not self._is_of_hardware(index, behind):
                return behind
        is_last = behind is not None and (not self._is_number_at(behind.end) or self._is_apart(behind.end - 1))
        is_far = before is not None and (before.amount.is_behind or self._is_apart(index - 1))
        if (
            behind is None or behind.amount.is_behind or not (before is None or (is_far and is_last))
        ):  # 12k imgs 1024 px, but batch 8 seq 2048
            return before
        return before if self._begins_another(behind) or self._is_of_hardware(index, behind) else behind

    def _steps(self, index: int, behind: Count, before: Count | None) -> Count | None:
        """Return what steps count that are no length of the job, or of a part of it; None for others.

        As in ``3 epochs of 500 steps``, ``100k sequences of 50 steps`` and ``warmup 100 steps``.
        """
        if behind.amount.name != _STEPS:
            return None
        is_of_some = index > 1 and self._span(index - 1, 1) == "of"
        noun = settings.amount_of(self._span(index - 2, 1)) if is_of_some else None
        if noun is not None and noun.field(TRAIN) == Key.TRAINING_EPOCHS:
            return replace(behind, amount=vocabulary().amounts["stepsperepoch"])
        if is_of_some and self._is_sample(index - 2):
            one = settings.amount_named(settings.SEQUENCE, self._task, self._model)
            has_steps = one is not None and (one.field(self._task) or "").startswith(OWN_PARAMETERS)
            return replace(behind, amount=one) if one is not None and has_steps else behind
        is_of_another = before is not None and before.amount.name in (_OTHER_STEPS, "accumulation")
        is_of_another &= not self._is_apart(index - 1)
        is_last = not self._is_number_at(behind.end) or self._is_apart(behind.end - 1)  # warmup 10 steps 100
        is_last |= self._is_of_devices(behind.end, is_apart=True)  # warmup 2000 steps 512 h100
        other = next(self._names_behind(behind.end), None) if self._is_number_at(behind.end) else None
        is_last |= other is not None and other.amount.is_behind  # warmup 2000 steps 1T tokens
        return replace(before, end=behind.end) if before is not None and is_of_another and is_last else None

    def _length_of_one(self, before: Count, behind: Count, index: int) -> Count | None:
        """Return how much is in one of what stands before a number, as ``sequences of 100 steps``; None elsewhere."""
        is_of_one = before.amount.behind == "either" and key_of(self._tokens[index - 1].text) == "of"
        is_of_some = behind.amount.fields.get(TRAIN) == Key.TRAINING_SAMPLES and not behind.amount.leading
        is_of_one |= before.amount.name == _BATCH and is_of_some and not self._begins_another(behind)  # batch 8 images
        if not is_of_one or before.end > index + 1 or (self._task == INFER and before.amount.name == _BATCH):
            return None  # a batch of 10k documents is read until it ends
        amount = before.amount
        if before.amount.unit and behind.amount.name != settings.WORDS:
            amount = vocabulary().amounts["letters"]  # answers of 2 paragraphs
        return replace(before, end=behind.end, amount=amount)

    def _is_counted(self, index: int) -> bool:
        """Whether a word beside a number says what it counts."""
        return self._is_number_at(index) and (self._count_of(index) is not None or self._is_of_option(index))

    def _is_of_option(self, index: int) -> bool:
        """Whether the name of an option, known or not, is before a number: ``max_bin 256 a10g``, ``depth 8 a10g``."""
        before = self._span(index - 1, 1) if index else ""
        fields = vocabulary().fields.get(key_of(before), ())
        is_own = settings.amount_of(before) is None and any(path.startswith(OWN_PARAMETERS) for path in fields)
        is_named = "_" in before and before.replace("_", "").isalpha() and not self._is_known(before)
        is_option = is_own or (is_named and not (self._is_value(before) or vocabulary().phrase(before, TRAIN)))
        is_free = not self._is_number_at(index - 2) or self._is_named_first(index - 2)  # seq 100 hidden 512
        return is_option and not self._is_apart(index - 1) and is_free

    def _is_in_count(self, index: int) -> bool:
        """Whether a word is one of several that say what a number before them counts, as in ``20 lora adapters``."""
        counts = (self._count_of(at) for at in range(max(index - MOST_WORDS, 0), index) if self._is_number_at(at))
        return any(count is not None and index < count.end - 1 and count.start < index for count in counts)

    def _is_amount(self, index: int) -> bool:
        text = self._tokens[index].text
        return settings.is_number(text.removesuffix("%")) or settings.is_time(text)

    def _names_behind(self, index: int) -> Iterator[Count]:
        """Yield what words behind a number say that it counts, the most words first, beside a unit those with it."""
        first = index + 1 + (len(_OF_THEM) if self._is_part(index) else self._described(index))
        is_unit = self._unit_at(first) and not self._is_apart(first)
        number, is_time = self._tokens[index].text, settings.is_time(self._tokens[index].text)
        is_job = settings.at_least(number, settings.LONGEST_SEQUENCE)
        if self._is_apart(index, _STOPS) or self._is_apart(first - 1, _STOPS):
            return
        for at in (first + 1, first) if is_unit else (first,):
            for words in range(MOST_WORDS, 0, -1):
                amount = self._amount_at(at, words, number, self._unit_at(first) if at > first else "")
                two = self._span(at, 2)
                is_phrase = words == 1 and " " in two and (self._is_phrase(two) or key_of(two) in vocabulary().fields)
                if amount is None or is_phrase or not (amount.behind or is_time) or self._is_length(index, amount):
                    continue
                is_in = self._span(at, words) == "in" and at == first
                if is_in and (self._is_plain(at + 1) or self._is_value(self._span(at + 1, 1))):
                    continue  # users 10 in same time, a100 80 in int8
                is_of_peak = amount.field(TRAIN) == Key.TRAINING_MFU and not self._is_apart(at + words - 1)
                if is_of_peak and key_of(self._span(at + words, 1)) in vocabulary().other_peaks:
                    continue  # 10% of peak lr
                count = Count(index, at + words, self._span(at, words), amount)
                is_of_unit = amount.unit == self._unit_at(first) and amount.field(self._task or INFER) is not None
                is_of_unit &= not (is_job and amount.field(TRAIN) in _OF_A_STEP)  # 15T tokens seq 8192
                if at == first or (is_of_unit and not self._begins_another(count)):
                    yield count

    def _names_before(self, index: int) -> Iterator[Count]:
        """Yield what words before a number say that it counts, unless the number before them has them."""
        text = self._tokens[index].text
        first = vocabulary().start_of([key_of(token.text) for token in self._tokens[:index]])
        for end in dict.fromkeys((index, first)):
            for words in range(min(MOST_WORDS, end), 0, -1):
                start = end - words
                amount = self._amount_at(start, words, text, self._unit_at(index + 1), is_before=True)
                if amount is not None and amount.leading:
                    amount = settings.amount_named(amount.leading, self._task, self._model)
                is_of_devices = amount is not None and self._is_of_devices(index, is_apart=amount.billions)
                if self._is_apart(index - 1, "?") or is_of_devices:
                    return
                is_apart = self._is_apart(index - 1) or self._span(end, 1) == "of"  # how many nodes of 8 h100
                is_other = amount is not None and ((amount.is_behind and is_apart) or self._is_length(index, amount))
                is_other |= amount is not None and amount.reciprocal and text[-1] in "kK"  # tok/s 8k
                is_other |= amount is not None and amount.name in _AT_ONCE and self._are_users(start - 1)
                after = key_of(self._span(index + 1, 1))
                is_box = after in vocabulary().boxes or after in vocabulary().deadlines  # in 1 box, in one weekend
                is_other |= is_box and not self._is_apart(index)
                is_other |= len(text) == 1 and key_of(self._span(start, words)) in vocabulary().surroundings  # gen 4
                is_other |= amount is not None and not amount.tells and self._span(end, 1) == "of"  # out of 2 4080s
                is_other |= self._span(index + 1, 1) == "of" and settings.is_part_of_a_run(self._span(start, words))
                is_sum = amount is not None and (amount.field(self._task) or "").startswith(_OF_MONEY)
                is_sum |= key_of(self._span(start, words)) in vocabulary().writing  # generate 1M answers
                is_other |= is_sum and next(self._names_behind(index), None) is not None  # a $2000 budget, 4k context
                if amount is None or amount.behind == "only" or is_other:
                    continue
                far = (few for few in (1, 2) if self._is_number_at(start - 1 - few))
                described = next((few for few in far if self._is_described(start - 1 - few, few)), 0)
                at = start - 1 - (0 if self._is_number_at(start - 1) else described)
                is_number = self._is_number_at(at) and self._is_free(at)
                other = self._count_of(at) if is_number else None
                if (other is None or other.end <= start) and not self._belongs_to_another(start):
                    is_unit = amount.unit == self._unit_at(index + 1)
                    is_unit &= amount.name == BATCH_OF_TOKENS or not settings.is_length_of_job(text)
                    yield Count(start, index + 1 + int(bool(amount.unit) and is_unit), self._span(start, words), amount)
                break

    def _is_plain(self, index: int) -> bool:
        """Whether a word is of plain language, and goes on what stands before it."""
        key = key_of(self._span(index, 1))
        is_other = key in vocabulary().joints or settings.amount_of(key) is not None
        return key.isalpha() and not is_other and not self._is_apart(index - 1)

    def _is_length(self, index: int, amount: Amount) -> bool:
        """Whether a number is how long those are that stand before it, as in ``100 seqs of 4k in flight``."""
        is_long = self._tokens[index].text[-1] in "kK"
        if is_long and amount.name in (*_AT_ONCE, "requests", "users") and self._is_asked_how_many(index):
            return True  # how many concurrent 8k sessions
        if amount.name not in _AT_ONCE or self._span(index - 1, 1) != "of":
            return False
        noun = key_of(self._span(index - 2, 1))
        return noun in vocabulary().amounts and self._is_number_at(index - 3)

    def _belongs_to_another(self, index: int) -> bool:
        """Whether a word ends what a number further before it counts, as in ``8 images per prompt, one a6000``."""
        numbers = (at for at in range(max(index - MOST_WORDS, 0), index - 1) if self._is_number_at(at))
        names = [next(self._names_behind(at), None) for at in numbers]
        if self._is_sample(index) and any(count is not None and self._is_token(count, index) for count in names):
            return True
        others = (count for count in names if count is not None and count.end > index)
        return any(count.amount.is_behind or not self._begins_another(count) for count in others)

    def _is_token(self, count: Count, end: int) -> bool:
        """Whether words before a place say how long those behind them are, as in ``200000 token sequences``."""
        is_job = settings.is_length_of_job(self._tokens[count.start].text)
        return count.end == end and key_of(count.name) == TOKEN and not is_job

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
        if amount is not None and amount.name == "tokens in" and duration_of(self._span(index + words, 1)) is not None:
            return None  # docs of 300 tokens in 24h
        is_plain = words > 1 or (amount is not None and not amount.tells)
        if is_plain and self._task and amount is not None and not self._is_followed(amount):
            return None  # 2T tokens in 30 days, 10M in a weekend
        if amount is not None and amount.name == _BATCH and self._task != INFER and settings.is_number(number):
            is_of_tokens = settings.at_least(number, _FEWEST_TOKENS if unit else _LARGEST_BATCH)
            amount = vocabulary().amounts[key_of(BATCH_OF_TOKENS)] if is_of_tokens else amount
        is_of_model = is_size(number) and number[-1] in "bB" and amount is not None and not amount.billions
        return None if amount is None or is_of_model or not settings.is_amount(number, amount, self._task) else amount

    def _is_part(self, index: int) -> bool:
        """Whether a number is of those that were counted before it, as in ``30 of them``."""
        return self._span(index + 1, 1) == _OF_THEM[0] and self._span(index + 2, 1) in _OF_THEM[1]

    def _described(self, index: int) -> int:
        """Return how many words that say nothing stand between a number and its noun: 1 in ``50k legal texts``."""
        return next((few for few in (1, 2) if self._is_described(index, few)), 0)

    def _is_described(self, index: int, few: int) -> bool:
        """Whether some words that say nothing stand between a number and what it counts."""
        number, words, noun = self._tokens[index].text, vocabulary(), index + few + 1
        described = [self._span(at, 1) for at in range(index + 1, noun)]
        amount = settings.amount_of(self._span(noun, 1)) if self._is_free(index + 1, few + 1) else None
        if amount is None or any(self._is_apart(at) for at in range(index, noun)):
            return False
        names = (
            self._span(at, count) for at in range(index + 1, noun) for count in range(noun - at + 1, MOST_WORDS + 1)
        )
        known = (settings.amount_of(name) or key_of(name) in words.fields for name in names)  # 10k daily active users
        if any(known) or any(map(settings.amount_of, described)):
            return False
        if key_of(described[0]) in words.of_something or (number[-1] in "bB" and not amount.billions):
            is_counted = few == 1 and amount.is_behind
            return is_counted and key_of(described[0]) in words.of_something  # 20 milliards de tokens
        is_any, keys = amount.described == "any", frozenset(map(key_of, described))
        plain = (keys & words.fillers | keys & words.suggests.keys()) - words.joints - words.model_words
        are_meant = all(key_of(word) in plain or (is_any and not self._is_known(word)) for word in described)
        are_letters = all(re.sub("[-&/]", "", word).isalpha() for word in described)  # 8000 Q&A pairs
        is_adjective = bool(amount.described or amount.is_behind) and are_letters and are_meant
        return is_adjective and hardware.named_hardware(number, self._catalog) is None

    def _is_known(self, word: str) -> bool:
        """Whether a word is of plan or of plain language, as those that no adjective is."""
        words, key = vocabulary(), key_of(word)
        named = task_named(word) or hardware.named_hardware(word, self._catalog) or named_model(word, self._catalog)
        groups = (words.joints, words.fillers, words.refused, words.queries)
        return named is not None or any(key in group for group in groups) or is_near_scale(word)

    def _unit_at(self, index: int) -> str:
        """Return the unit that a word is, as ``tokens``; empty for other words."""
        amount = settings.amount_of(self._tokens[index].text) if index < len(self._tokens) else None
        name = "" if amount is None else settings.TOKENS if amount.name == settings.WORDS else amount.name
        return name if name in vocabulary().units else ""

    def _begins_another(self, count: Count) -> bool:
        """Whether words that may stand on either side of a number belong to the number behind them."""
        if count.amount.behind == "only" and key_of(count.name) not in vocabulary().fields:
            return False  # but ep 8
        is_number = self._is_number_at(count.end) and self._is_free(count.end) and not self._is_apart(count.end - 1)
        is_number = is_number and settings.is_amount(self._span(count.end, 1), count.amount, self._task)
        if duration_of(self._span(count.end, 1)) is not None:
            return key_of(self._span(count.end - 1, 1)) in vocabulary().within  # 200 tokens in 6 hours
        behind = next(self._names_behind(count.end), None) if is_number else None
        is_unit = behind is not None and behind.end == count.end + 2 and self._unit_at(count.end + 1) != ""
        is_unit &= bool(count.amount.unit) and not settings.is_length_of_job(self._span(count.end, 1))
        if not is_number or (behind is not None and not is_unit and not self._begins_another(behind)):
            return False  # seq 2048 steps 1000 batch 8, but input 500 tokens output 100 tokens
        text, is_named = self._tokens[count.start].text, self._is_named_first(count.start)
        is_bare = text.isdecimal() and all(int(text) % step for step in settings.STEPS_OF_LENGTHS)
        is_long = is_bare or self._task == FIT or any((count.amount.is_behind, count.amount.unit, count.amount.leading))
        is_long = (is_long and not is_named) or self._span(count.end, 1) == "1"  # 7k prompts 8 h100
        if is_long and (self._is_of_devices(count.end, is_apart=True) or self._span(count.end + 1, 1) in _TIMES):
            return False  # 500 output 2 h200, 500 trees 500k x 80, but batch 64 h200
        return not self._is_named_device(count.end) or hardware.NAME in self._values  # 16k ctx 3090

    def _is_named_first(self, index: int) -> bool:
        """Whether a word before a number says what it counts, unless a number before that has it."""
        before = self._span(max(index - 1, 0), 1)
        is_name = settings.amount_of(before) is not None or key_of(before) in vocabulary().fields
        return is_name and (not self._is_number_at(index - 2) or self._is_named_first(index - 2))

    def _is_of_devices(self, index: int, *, is_apart: bool = False) -> bool:
        """Whether a number is that of the devices behind it: ``grad accumulation, 8 h100``, ``fit in 4 x a100``."""
        times = int(self._span(index - 1, 1) == "in" and self._span(index + 1, 1) in _TIMES)
        after, is_apart = self._span(index + 1 + times, 1), is_apart or bool(times) or self._is_apart(index - 1)
        is_number = bool(after) and self._tokens[index].text.isdecimal() and is_apart
        return is_number and hardware.named_hardware(after, self._catalog) is not None

    def _is_of_hardware(self, index: int, behind: Count) -> bool:
        """Whether a number is a device's, and words behind it of the next: ``4090 batch 16``, ``4090 images 1080p``.

        A number that is no round one is the device where words that may begin what follows stand behind it and the
        line names no other hardware: ``4090 answers within 1s``.
        """
        text = self._tokens[index].text
        is_many = text[-1:] in ("k", "K") and behind.amount.is_behind  # 7700k samples of 1k tokens
        if is_many or hardware.named_hardware(text, self._catalog) is None:
            return False
        end = behind.end + int(self._span(behind.end, 1) == "of")
        after = self._span(end, 1)
        is_followed = self._is_number_at(end) or duration_of(after) is not None or sides_of(after) is not None
        is_open = behind.amount.behind == "either" or behind.amount.name in ("devices", "runs")  # 4090 gpus
        return is_followed or (is_open and self._is_only_hardware(index)) or _is_speed(behind)

    def _is_only_hardware(self, index: int) -> bool:
        """Whether a number that is no round one names a device, and no other word of the line does."""
        text = self._tokens[index].text
        if not text.isdecimal() or int(text) % _ROUND == 0 or hardware.named_hardware(text, self._catalog) is None:
            return False
        others = (token.text for at, token in enumerate(self._tokens) if at != index and not self._is_number_at(at))
        named = (hardware.named_hardware(other, self._catalog) or Meaning() for other in others)
        names = (name for meaning in named if (name := meaning.values.get(hardware.NAME)) is not None)
        return all(name in self._catalog.processors for name in names)

    def _counts_something(self, index: int) -> bool:
        """Whether a word that no plan knows stands behind a number and may be what it counts: ``25k patients``."""
        after = self._tokens[index + 1].text if index + 1 < len(self._tokens) else ""
        words, key = vocabulary(), key_of(after)
        is_noun = after.replace("-", "").isalpha() and (len(after) > _LONGEST_OTHER or key in words.circumstances)
        is_noun = is_noun and key not in words.joints
        is_nothing = self._taken.get(index + 1, (1, Meaning())) == (1, Meaning())
        return is_noun and is_nothing and not self._is_apart(index, _STOPS)


def counted_like(amount: Amount, unit: Amount) -> Amount:
    """Return some amount, a number of which is in what another one is counted in, as answers in words."""
    return replace(amount, per=unit.per, assumes=unit.assumes)


def _is_speed(count: Count) -> bool:
    """Whether words are a speed that lines ask for as well, as ``images/s`` behind a batch or a device."""
    is_rate = count.amount.fields.get(INFER) in (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_TPOT_SECONDS)
    return is_rate and key_of(count.name) in vocabulary().fillers
