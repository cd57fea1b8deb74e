"""What a line does not want: hardware that is excluded or given up, what is switched off, what was only measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.quantities import QUANTIZED
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, Meaning
from capacity_tui.engine.plan.line.recognition.line_words import LineWords

_FARTHEST_SHARE = 10  # Words from a time to how far something came then
_FAR = 4  # Words before a time or a memory that may say that it is wanted
_STEP = re.compile(r"\d+/\d+")  # Of a log: 1/8 2.8G 25848/25848
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

    def _is_device(self, index: int) -> bool:
        """Whether a word is of devices, of their memory, or of a machine with some."""
        key, text = key_of(self._span(index, 1)), self._span(index, 1)
        amounts = vocabulary().amounts
        is_named = settings.amount_of(text) in (amounts["devices"], amounts["nodes"]) or key in vocabulary().boxes
        return is_named or hardware.named_hardware(text, self._catalog) is not None

    def _is_measured(self, index: int, kind: str) -> bool:
        """Whether a time or a memory is what something took: ``took 7 hours``, but not ``takes 2 days at most``."""
        measured, keys = vocabulary().measured, [key_of(token.text) for token in self._tokens]
        bounded = start = vocabulary().start_of(keys[:index])
        if "".join(keys[max(start - 2, 0) : start]) in measured["at least"]:
            start -= 2
        before = {"".join(keys[max(start - few, 0) : start]) for few in (1, 2, 3) if few <= start}
        is_used = not before.isdisjoint(measured[kind]) and not self._is_apart(start - 1, ",;?")
        is_behind = any("".join(keys[index + 1 : index + 1 + few]) in measured[f"{kind} behind"] for few in (1, 2, 3))
        is_used |= is_behind and measured["ahead"].isdisjoint(keys[max(start - 1, 0) : start])  # in 3 hours now
        is_used |= kind == "time" and self._is_of_failure(start)
        is_used |= kind == "memory" and all(_STEP.fullmatch(self._word(at)) for at in (index - 1, index + 1))
        is_less = self._is_number_at(index) and not measured[kind].isdisjoint(keys[start:index])
        is_used |= is_less and not self._is_in_clause(index, "due")  # 4xa100 only 19 tok/s; i need only 5, only 2 days
        after = index if self._is_apart(index, ",;?()") else index + 2
        few = max((few for few in (1, 2, 3) if "".join(keys[max(start - few, 0) : start]) in measured[kind]), default=0)
        near = {*keys[max(start - _FAR, 0) : start - few], *keys[bounded:index], *keys[index + 1 : after + 1]}
        is_wanted = bool(near & vocabulary().limiting) or self._is_in_clause(start - few, "wanted")
        is_of_a_run = key_of(self._span(index + 1, 1)) in vocabulary().card_memory and not self._is_device(index + 2)
        is_other = kind == "memory" and self._is_before_device(index) and not is_of_a_run
        return is_used and not (is_other or is_wanted or (kind == "memory" and self._is_to_have(start - 1, index)))

    def _is_of_failure(self, index: int) -> bool:
        """Whether words say that something failed then, or how far it came: ``oom after 9h``, ``7% after 9h``."""
        measured, start = vocabulary().measured, max(index - 4, 0)
        before = [key_of(token.text) for token in self._tokens[start:index]]
        spans = {"".join(before[at:-1]) for at in range(len(before) - 1)}
        far = min(index + _FARTHEST_SHARE, len(self._tokens))
        has_failed = not spans.isdisjoint(measured["failing"]) or any(map(self._is_narrated_share, range(start, far)))
        return before[-1:] != [] and before[-1] in measured["failing after"] and has_failed

    def _is_failing(self, index: int) -> bool:
        """Whether a word right behind others says that something failed there: ``128步报错``."""
        is_behind = 0 < index < len(self._tokens) and not self._tokens[index - 1].ends
        return is_behind and key_of(self._word(index)) in vocabulary().measured["failing"]

    def _is_to_have(self, verb: int, index: int) -> bool:
        """Whether a machine needs a memory, as in ``a server that needs 64gb ram``, rather than what runs on it."""
        subject = self._subject_of(verb) if key_of(self._span(verb, 1)) in vocabulary().measured["needed"] else ""
        is_open = hardware.NAME not in self._values and not self._has_memory_of_devices()
        is_of_machine = is_open or key_of(self._span(index + 1, 1)) in vocabulary().ram
        return (subject == hardware.NAME and is_of_machine) or (subject == Key.MODEL_NAME and self._asks_for_model)

    def _is_in_clause(self, index: int, kind: str) -> bool:
        """Whether a word of a kind stands before a place in its clause, as ``must`` in ``must take 2 days``."""
        clause = next((at + 1 for at in range(index - 1, -1, -1) if self._tokens[at].ends), 0)
        words = {*range(clause, index)} - self._places_of(hardware.NAME)  # an m3 max
        return not vocabulary().measured[kind].isdisjoint(key_of(self._span(at, 1)) for at in words)

    def _is_narrated_share(self, index: int) -> bool:
        """Whether a share of nothing stands in a clause that tells something: ``my gpu is at 100%``."""
        words, behind = vocabulary(), key_of(self._word(index + 1))
        plain = words.joints | words.contrasting | words.measured["share behind"] | words.ram | words.card_memory | {""}
        is_of_noun = not self._tokens[index].ends and behind not in plain
        if not self._word(index).endswith("%") or behind in words.of_something or is_of_noun:
            return False
        before = self._tokens[max(index - _FARTHEST_SHARE, 0) : index]  # what MFU is that, 46% or 24%
        is_of_mfu = any(settings.amount_of(token.text) == words.amounts["mfu"] for token in before)
        if is_of_mfu or behind in words.measured["share behind"]:
            return True
        first = next((at + 1 for at in range(index - 1, -1, -1) if self._tokens[at].ends), 0)
        last = next((at for at in range(index, len(self._tokens)) if self._tokens[at].ends), len(self._tokens))
        narrating = words.narrating | words.measured["failing"]
        return not narrating.isdisjoint(key_of(self._word(at)) for at in range(first, last + 1))

    def _has_memory_of_devices(self) -> bool:
        """Whether a line says the memory of its devices, as ``16gb gpu``."""
        figures = enumerate(hardware.figures_of(token.text) or {} for token in self._tokens)
        return any(hardware.MEMORY in figure and self._is_before_device(at) for at, figure in figures)

    def _is_before_device(self, index: int) -> bool:
        """Whether what a figure is of stands behind it: ``a lora on docs, 24gb vram``, ``text, 16gb gpu``."""
        after, words = self._span(index + 1, 1), vocabulary()
        is_named = settings.amount_of(after) == words.amounts["devices"] or key_of(after) in words.card_memory
        is_named |= hardware.named_hardware(after, self._catalog) is not None
        return is_named and not self._is_apart(index)
