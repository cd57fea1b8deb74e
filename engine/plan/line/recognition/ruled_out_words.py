"""What a line does not want: hardware that is excluded or given up, what is switched off."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import Accelerator, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon.quantities import QUANTIZED
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, Meaning
from capacity_tui.engine.plan.line.recognition.line_words import LineWords

_AT_PEAK = 0.98  # Share of the peak from which on a speed is the peak itself, rounded
_RECKONED = re.compile(r"\d[\d.]*b?(?: ?[x×*+] ?\d[\d.]*b?)+ ?= ?[~≈]?\d[\d.]* ?[gt]b", re.IGNORECASE)
_LONGEST_CALCULATION = 10  # Words of it
_FARTHEST_VERB = 3  # Words between it and one that takes it, as in ``requires about 7 x 4``
_NOT_WANTED = "a line says what is wanted, not what is not"


class RuledOutWords(LineWords):
    """A line whose words rule out what they stand before."""

    def _ruling_out(self, index: int) -> str:
        """Return the words right before a place that rule out what stands there; empty for others."""
        spans = (self._span(index - few, few) for few in (4, 3, 2, 1) if few <= index)
        is_apart = index > 0 and self._tokens[index - 1].ends
        is_apart |= key_of(self._span(index, 1)) in vocabulary().datasets  # treinar resnet50 no imagenet
        return "" if is_apart else next((span for span in spans if key_of(span) in vocabulary().negations), "")

    def _ruling_out_as_well(self, index: int, count: int, meaning: Meaning) -> str:
        """Return what joins more hardware to some that is not wanted: ``no h100 or a100``, ``not on h100, a100``."""
        words, joint = vocabulary(), self._span(index - 1, 1) if index else ""
        if hardware.NAME not in meaning.values:
            return ""
        if index - 1 in self._excluded and key_of(joint) in words.both | words.comparing:
            return joint
        is_listed = index in self._excluded and self._tokens[index - 1].ends and hardware.DEVICES not in meaning.values
        is_meant = not words.permitting.isdisjoint(key_of(self._span(at, 1)) for at in range(index, index + count + 2))
        return "," if is_listed and not is_meant else ""

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

    def _is_given_up(self, index: int) -> bool:
        """Whether words before a name say that another one takes its place, as in ``instead of our 8 a100``."""
        if " to " in (self._written_range(index, 1) or ""):
            return False  # upgrading from 3090 to 4090: the range has both
        first = index - int(key_of(self._span(max(index - 1, 0), 1)) in vocabulary().single | vocabulary().owned)
        before = (key_of(self._span(first - words, words)) for words in (1, 2, 3) if first >= words)
        return any(key in vocabulary().given_up for key in before)

    def _wrapped(self, index: int, count: int, meaning: Meaning) -> Meaning:
        """Take the engine that runs the model where another one wraps it; leave out one that is only asked about.

        So are ``text-generation-webui with llama.cpp`` and ``llama.cpp gives 8 t/s, should ollama be slower``.
        """
        engines, path = self._catalog.engines, Key.INFERENCE_ENGINE
        first, second = (str(values.get(path, "")) for values in (self._values, meaning.values))
        if not first or second in ("", first):
            return meaning
        wrapping, text = vocabulary().run_by["wrapping"], self._span(index, count)
        is_asked = key_of(self._span(index - 1, 1)) in vocabulary().run_by["asked about"]
        if engines.find_id(first) == engines.find_id(second) or key_of(second) in wrapping or is_asked:
            return Meaning(why=f"left out: {text}; the plan is of {first}")
        joint = key_of(self._word(index - 1))
        if key_of(first) not in wrapping or joint not in {key_of(first), *vocabulary().run_by["joining"]}:
            return meaning
        self._values.pop(path)
        return replace(meaning, why=f"{text}: what {first} runs the model with")

    def _calculation(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out what a line reckons by itself, as ``7 x 4 x 4 = 112 GB``."""
        spans = range(min(_LONGEST_CALCULATION, len(self._tokens) - index), 0, -1)
        few = next((few for few in spans if _RECKONED.fullmatch(self._span(index, few))), 0)
        before = {key_of(token.text) for token in self._tokens[max(index - _FARTHEST_VERB, 0) : index]}
        names_hardware = any(hardware.named_hardware(token.text, self._catalog) for token in self._tokens)
        if not few or not (names_hardware or before & vocabulary().measured["memory"]):
            return None  # what a machine has together, as cluster: 4 * 80 = 320GB
        return few, Meaning(why=f"left out: {self._span(index, few)}, reckoned; a plan counts its memory itself")

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

    def _reached(self, row: Accelerator, figure: dict[str, float], text: str) -> Meaning | None:
        """Return the MFU of devices that compute so much, as ``400 TFLOPs``; None where that is their peak or more."""
        share = figure.get("bf16_tflops", 0.0) / (row.bf16_tflops or row.fp16_tflops or math.inf)
        if not 0 < share < _AT_PEAK:
            return None
        why = f"{text}: {share:.0%} of the {row.bf16_tflops or row.fp16_tflops:g} TFLOP/s that {row.id} has, as MFU"
        return Meaning(f"MFU {share:.3g}", {Key.TRAINING_MFU: f"{share:.4g}"}, why)
