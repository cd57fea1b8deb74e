"""Batches that a line writes as a product, and those of one device."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.question_words import asks_how_much_memory
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, TRAIN, Amount, Meaning
from capacity_tui.engine.plan.line.perceptron_words import PerceptronWords
from capacity_tui.engine.plan.line.recognition.line_words import ACCUMULATION

_FACTORS = re.compile(r"([a-z_ -]+?)\s*=?\s*(\d+(?:\s*[x×*]\s*\d+)+)(?:\s*=\s*\d+)?", re.IGNORECASE)  # bs 8*4=32
_TIMES = re.compile(r"\s*[x×*]\s*")
_TEXT = ("decoder", "encoder")  # Models that read texts rather than pictures
_MOST_WORDS = 7  # Of a batch with its factors, as in ``batch size 8 x 4 x 2``
_OF_PICTURES = (3, 4)  # Sizes of a batch of pictures: how many, channels if said, height and width
_BATCHES = (Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_MICRO_BATCH)


class BatchWords(PerceptronWords):
    """A line whose words were recognized, and those of them that make up a batch."""

    def _set_options(self) -> None:
        super()._set_options()
        self._pass(self._batch_of_factors)

    def _is_of_one_device(self, index: int, count: int) -> bool:
        _, behind = self._taken.get(index + count + 1, (1, Meaning()))
        is_times = _TIMES.fullmatch(self._word(index + count)) is not None  # batch 4 x 8 gpus
        return (is_times and Key.HARDWARE_DEVICES in behind.values) or super()._is_of_one_device(index, count)

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Take what a measure word counts for pictures where no device stands before it: ``图片5000张``."""
        places = [at for at, token in enumerate(self._tokens) if token.text == value and self._word(at + 1) == name]
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        is_many = settings.at_least(value, int(vocabulary().bounds["pictures before a device"]))
        is_text = row is not None and row.kind in _TEXT
        few = 0 if is_many and not is_text else 2  # 2张4090, 128张A800 of a language model, but 5000张 3060
        near = {at - 1 for at in places} | {at + few for at in places if few}
        if key_of(name) not in vocabulary().measures or near & self._places_of(Key.HARDWARE_NAME):
            return super()._kept(amount, value, name)
        return settings.counted(vocabulary().amounts["images"], value, self._task, self._model)

    def _batch_of_factors(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a batch as a product: of each device and how many there are, or how often: ``batch 256x8``."""
        most = min(_MOST_WORDS, len(self._tokens) - index) if self._task in (TRAIN, FINETUNE) else 0
        for count in range(most, 0, -1):
            match = _FACTORS.fullmatch(self._span(index, count)) if self._is_free(index, count) else None
            amount = None if match is None else settings.amount_named(match[1], self._task, self._model)
            if match is None or amount is None or amount.field(TRAIN) not in _BATCHES:
                continue
            last = index + count - 1
            if self._is_number_at(last) and next(self._names_behind(last), None) is not None:
                continue  # batch 4 x 8 gpus
            factors = [int(factor) for factor in _TIMES.split(match[2])]
            behind = settings.amount_of(self._word(last + 1))
            if behind is not None and behind.name == ACCUMULATION:
                self._counts[ACCUMULATION] = factors.pop()
                micro_batch = math.prod(factors)
                return count + 1, Meaning(f"micro batch {micro_batch}", {Key.TRAINING_MICRO_BATCH: micro_batch})
            return count, self._of_factors(factors, match[0])
        return None

    def _of_factors(self, factors: list[int], text: str) -> Meaning:
        """Return a batch of some factors: that of a device, the number of devices if one is, and how often."""
        batch, devices = math.prod(factors), self._degree(Key.HARDWARE_DEVICES)
        if len(set(factors)) == 1 and factors[0] >= vocabulary().bounds["side of an image"]:
            return Meaning(why=f"left out: {text}")
        is_shape = (
            len(factors) in _OF_PICTURES and factors[-1] == factors[-2] >= vocabulary().bounds["side of an image"]
        )
        pictures = self._pictures_of(factors[-1]) if is_shape else None  # 32x3x512x512
        if pictures is not None:
            return replace(pictures, values={Key.TRAINING_GLOBAL_BATCH: factors[0], **pictures.values})
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        if row is not None and row.kind != "vit" and factors[-1] >= vocabulary().bounds["tokens of a factor"]:
            batch = math.prod(factors[:-1])
            whole: dict[str, object] = {Key.TRAINING_GLOBAL_BATCH: batch, Key.TRAINING_SEQ_LEN: factors[-1]}
            return Meaning(f"batch {batch} of {factors[-1]} tokens", whole)
        values: dict[str, object] = {Key.TRAINING_GLOBAL_BATCH: batch}
        own = next((factor for factor in factors if factor != devices), factors[0])
        if devices in factors or devices == 1:
            values[Key.TRAINING_MICRO_BATCH] = own
        why = f"{text}: {batch} a step" + (f", {own} at a time on each device" if len(values) > 1 else "")
        return Meaning(f"batch {batch}", values, why)

    def _pictures_of(self, side: int) -> Meaning | None:
        """Return what pictures of so many pixels a side set; None where the model reads none."""
        field = settings.named_field(settings.IMAGE_SIZE, self._task, self._model)
        other = None if field is None else settings.field_value(field[0], str(side), self._task, knob=field[1])
        return self._edge(side, side) or other

    def _batch_in_one_pass(self) -> None:
        """Hold the batch of one device in one pass where the line asks whether it fits, or its memory: ``mem?``."""
        batch, keys = self._values.get(Key.TRAINING_GLOBAL_BATCH), self._keys()
        is_one = self._degree(Key.HARDWARE_DEVICES) == 1 and Key.HARDWARE_NAME in self._values
        is_open = Key.TRAINING_MICRO_BATCH not in self._values and not self._counts[ACCUMULATION]
        is_fit = not keys.isdisjoint(vocabulary().whether_it_fits)
        if is_one and is_open and isinstance(batch, int) and (is_fit or asks_how_much_memory(self._text)):
            asked = "whether it fits" if is_fit else "for its memory"
            why = f"batch {batch}: in one pass, as the line asks {asked} (or give accumulation 4)"
            self._assume(Key.TRAINING_MICRO_BATCH, batch, why)
            is_network = self._model is not None and self._model.kind != "transformer"
            if is_network and Key.TRAINING_CHECKPOINTING not in self._values:
                why = "nothing is recomputed, as is usual of such networks (or say checkpointing)"
                self._assume(Key.TRAINING_CHECKPOINTING, "none", why)
