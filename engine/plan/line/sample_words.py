"""How long the samples of a training are, and what they have: prompts with their answers, features of each kind."""

from __future__ import annotations

import re
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import find_known_model
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.batch_words import BatchWords
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Amount, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.line_words import DRAWING, PIXELS
from capacity_tui.engine.units import parse_count

_OF_A_KIND, _FEATURES = "features of categories", f"{OWN_PARAMETERS}p"
_DIMENSIONS = re.compile(r"(\d+) ?d", re.IGNORECASE)
_MEAN_LENGTH, _PROMPT, _ANSWER = "mean length", "prompt", "answer"
_PROMPTS = (_PROMPT, "tokens in")  # What counts the tokens of one
_DEGREES = frozenset({Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_DP})  # What an engine may have too
_FARTHEST_ENGINE = 4  # Words between an engine and how it is laid out, as in ``vllm in server mode with tp 2``
_FEWEST_TOKENS = 64  # Of a prompt and its answer as ``512/512``; smaller numbers are a rank and its alpha


class SampleWords(BatchWords):
    """A line whose words were recognized, and those of them that say how large a sample of a training is."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        super().__init__(text, catalog)
        self._mean_tokens = 0  # of a sample
        self._features = 0  # of all kinds that the line names
        self._parts_of_sequence = {_PROMPT: 0, _ANSWER: 0}  # tokens of them

    def _take(self, index: int, count: int, meaning: Meaning) -> None:
        """Leave out how an engine is laid out that answers beside a training, as in ``grpo, vllm tp 2``."""
        is_degree = bool(meaning.values) and _DEGREES.issuperset(meaning.values)
        if is_degree and self._task in (TRAIN, FINETUNE) and self._is_of_engine(index, index + count):
            meaning = Meaning(why=f"left out: {self._span(index, count)}, of an engine that answers beside a training")
        super()._take(index, count, meaning)

    def _is_of_engine(self, start: int, end: int) -> bool:
        """Whether words are of an engine before them in their clause, or behind: ``vllm (tp 2)``, ``tp 2 for vllm``."""
        first = max(start - _FARTHEST_ENGINE, 0)
        set_before = {at for at, (_, taken) in self._taken.items() if taken.values}
        apart = [at + 1 for at in range(first, start) if at in set_before or self._tokens[at].ends]
        words = [token.text for token in self._tokens[max((first, *apart)) : start]]
        if key_of(self._word(end)) in vocabulary().joints and not self._tokens[end - 1].ends:
            words.append(self._word(end + 1))
        return not vocabulary().every["sampling"].isdisjoint(map(key_of, words))

    def _pair(self, name: str, value: str, amount: Amount | None = None) -> Meaning | None:
        """Take more tokens than the model reads for those of the data beside epochs, as in ``3 epochs 100k tokens``."""
        amount = amount or settings.amount_named(name, self._task, self._model, is_before=True)
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        longest = 0 if row is None else max(row.max_context or 0, int(vocabulary().bounds["tokens of data"]))
        if amount is not None and amount.name == settings.TOKENS and longest and settings.at_least(value, longest + 1):
            counted = (settings.amount_of(token.text) for token in self._tokens)
            has_epochs = any(one is not None and one.field(TRAIN) == Key.TRAINING_EPOCHS for one in counted)
            amount = replace(amount, fewer="") if has_epochs and not settings.is_power(value) else amount
        return super()._pair(name, value, amount)

    def _kept(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Keep features of one kind, as ``120 numeric feats``, and the tokens of a prompt and of its answer."""
        if amount.name == _OF_A_KIND and self._task == FIT and value.isdigit():
            self._features += int(value)
            return Meaning(f"{value} {name}")
        if amount.name == _MEAN_LENGTH and self._task in (TRAIN, FINETUNE):
            self._mean_tokens = parse_count(value)
            return Meaning(f"samples of {value} tokens")
        if self._task == FINETUNE and amount.field(INFER) == Key.INFERENCE_GPU_MEMORY_UTILIZATION:
            remark = vocabulary().remarks[next(iter(vocabulary().every["sampling"]))]
            return Meaning(why=f"{name} {value}: {remark}")
        is_answer = amount.field(INFER) == Key.INFERENCE_OUTPUT_TOKENS
        part = _ANSWER if is_answer else _PROMPT
        if (is_answer or amount.name in _PROMPTS) and (
            self._task == FINETUNE or (self._task == TRAIN and self._has_target())
        ):
            length = settings.field_value(Key.TRAINING_SEQ_LEN, value, TRAIN)
            tokens = length.values.get(Key.TRAINING_SEQ_LEN)
            self._parts_of_sequence[part] = tokens if isinstance(tokens, int) else 0
            return Meaning(f"{part} {value}", fault=length.fault)
        return super()._kept(amount, value, name)

    def _make_lengths(self) -> None:
        """Take the mean length of samples for that of documents where the line has a sequence too, else for it."""
        if self._mean_tokens and Key.TRAINING_SEQ_LEN in self._values:
            self._document_tokens = self._mean_tokens
        elif self._mean_tokens:
            self._values[Key.TRAINING_SEQ_LEN] = self._mean_tokens

    def _make_features(self) -> None:
        """Make the features of data of those of each kind, where the line does not say how many there are."""
        if self._features and _FEATURES in self._values:
            why = f"{self._features} of {self._values[_FEATURES]} features: counted like the others"
            self._assumed.append(Assumption(_FEATURES, None, why))
        elif self._features:
            self._assume(_FEATURES, self._features, f"{self._features} features, of whichever kind")

    def _make_sequences(self) -> None:
        """Make sequences of a prompt and its answer, which lie in those that the line says: ``max_length 1024``.

        A training from preferences has an answer, of usual length where the line has a prompt alone.
        """
        path, prompt, answer = Key.TRAINING_SEQ_LEN, self._parts_of_sequence[_PROMPT], self._parts_of_sequence[_ANSWER]
        if answer and self._has_target():
            self._assume(Key.TRAINING_PREDICTED_TOKENS, answer, f"targets of {answer} tokens, which a decoder writes")
            answer = self._parts_of_sequence[_ANSWER] = 0
        if not prompt and not answer:
            return
        if path in self._values:
            parts = " and ".join(f"{name} {tokens}" for name, tokens in self._parts_of_sequence.items() if tokens)
            why = f"{parts}: within sequences of {self._values[path]} tokens"
            self._assumed.append(Assumption(path, None, why))
            return
        if not prompt and Key.TRAINING_PREFERENCE not in self._values:
            hint = "say its prompt too, as prompt 512, or seq for both"
            self._faults.append(PlanError("an answer to what?", f"{answer} tokens", hint))
            return
        parts = f"a prompt of {prompt} and an answer" if prompt else "an answer; say seq for it and its prompt"
        if not answer and Key.TRAINING_PREFERENCE in self._values:
            answer = int(vocabulary().usual[FINETUNE]["answer_tokens"])
            parts = f"a prompt of {prompt}, an answer of {answer} (or say response 1024)"
        alone = "sources" if self._has_target() else "prompts, without answers"
        parts = parts if answer else alone
        self._assume(path, prompt + answer, f"sequences of {prompt + answer} tokens: {parts}")

    def _shorten_samples(self, meaning: Meaning) -> None:
        """Take tokens for those of a sample where the sequence is named behind them: ``600 tokens packed to 4096``."""
        path, few = Key.TRAINING_SEQ_LEN, self._values.get(Key.TRAINING_SEQ_LEN)
        length = meaning.values.get(path)
        places = [(at, count) for at, (count, taken) in self._taken.items() if path in taken.values]
        is_of_tokens = any(self._unit_at(at + count - 1) == settings.TOKENS for at, count in places)
        if is_of_tokens and isinstance(few, int) and isinstance(length, int) and few < length:
            self._document_tokens = few
            self._values.pop(path)
            self._taken |= {at: (count, Meaning(f"samples of {few} tokens")) for at, count in places}

    def _samples_in_a_sequence(self) -> None:
        """Say that samples which are packed count as a sequence each where nobody says how long they are."""
        words = (at for at, token in enumerate(self._tokens) if key_of(token.text) in vocabulary().packing)
        is_packed = any(not self._ruling_out(at) for at in words)
        is_open = Key.TRAINING_DOCUMENT_TOKENS not in self._values and Key.TRAINING_TOKENS not in self._values
        samples = self._values.get(Key.TRAINING_SAMPLES)
        if self._task in (TRAIN, FINETUNE) and is_packed and is_open and samples is not None:
            why = f"packing: {samples} samples counted as a sequence each; say how long they are, as 600 tokens each"
            self._assumed.append(Assumption(Key.TRAINING_SAMPLES, None, why))

    def _bare_number(self, index: int) -> Meaning:
        """Take thousands beside epochs for samples where nothing else says how many there are: ``3 epochs, 52k``."""
        text, path = self._span(index, 1), Key.TRAINING_SAMPLES
        is_open = Key.TRAINING_EPOCHS in self._values
        is_open &= self._values.keys().isdisjoint({path, Key.TRAINING_TOKENS, Key.TRAINING_STEPS})
        is_many = text[-1] in "kK" and (Key.TRAINING_SEQ_LEN in self._values or not settings.is_power(text))
        is_of_device = Key.HARDWARE_NAME in self._taken.get(index + 1, (0, Meaning()))[1].values
        is_of_device &= self._task == TRAIN  # 16k h100
        if self._task not in (TRAIN, FINETUNE) or is_of_device or not (is_open and is_many):
            return super()._bare_number(index)
        meaning = settings.field_value(path, text, self._task, "samples")
        return replace(meaning, why=f"{text}: samples")

    def _dimensions(self, index: int) -> tuple[int, Meaning] | None:
        """Take days that limit nothing for the dimensions of what a fit reads: ``kmeans 10m x 768d``, ``1000 d``."""
        spans = (self._span(index, few) for few in (2, 1) if _FEATURES not in self._values)
        match = next(filter(None, map(_DIMENSIONS.fullmatch, spans)), None)
        if match is None or not (self._task == FIT or " " in match[0]):
            before = (taken.values for at, (count, taken) in self._taken.items() if at + count == index)
            is_unit = self._word(index).casefold() == "d" and any(_FEATURES in values for values in before)
            return (1, Meaning()) if is_unit else None  # 1m x 1000 d
        few = len(match[0].split())
        if self._task != FIT:
            return few, Meaning(why=f"left out: {match[0]}; a model has vectors as long as its own")
        return few, settings.counted(vocabulary().amounts["dim"], match[1], FIT, self._model)

    def _has_target(self) -> bool:
        """Whether the model of the line reads one sequence and writes another."""
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        return row is not None and row.kind == "encoder-decoder"

    def _lengths(self, text: str) -> Meaning | None:
        """Recognize the tokens of prompts and answers of a training too that draws these, as ``ppo 512/512``."""
        parts = text.replace("+", "/").split("/")
        is_pair = len(parts) == len(self._parts_of_sequence) and all(
            settings.at_least(part, _FEWEST_TOKENS) for part in parts
        )
        is_of_both = "+" in text or self._values.get(Key.TRAINING_PREFERENCE) in DRAWING or self._has_target()
        is_of_both &= not any(self._parts_of_sequence.values())
        if self._task not in (TRAIN, FINETUNE) or not (is_pair and is_of_both):
            return super()._lengths(text)
        named = zip(self._parts_of_sequence, parts, strict=True)
        lengths = [self._pair(name, part) or Meaning() for name, part in named]
        return Meaning(", ".join(length.words for length in lengths))

    def _side_at(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize the side of images right behind a sign, as ``yolo11m fps @640``, which is no number of anything."""
        text, path = self._tokens[index].text, f"{OWN_PARAMETERS}{settings.IMAGE_SIZE}"
        is_side = self._text[: self._tokens[index].start].endswith("@") or self._is_before_card(index)
        is_side &= text.isdecimal() and not int(text) % PIXELS
        rows = (find_known_model(token.text, self._catalog) for token in self._tokens) if is_side else ()
        is_own = any(row and settings.IMAGE_SIZE in (name for name, _, _ in row.parameters()) for row in rows)
        return (1, Meaning(f"image {text}", {path: int(text)})) if is_own else None
