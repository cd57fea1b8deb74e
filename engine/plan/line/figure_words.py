"""The words of a line that are figures of its hardware: memory of devices or of their host, a device of one's own."""

from __future__ import annotations

import math
from itertools import takewhile

from capacity_tui.engine.catalog import Accelerator, Catalog, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.counted_words import EVERY_NODE
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, TRAIN, Assumption, Meaning
from capacity_tui.engine.plan.line.named_words import NamedWords
from capacity_tui.engine.units import format_count, parse_quantity

_GROUPS, _GROUPED = ("128g", "64g"), frozenset({"gptq", "awq"})  # Weights of one scale, as in ``gptq 4bit 128g``
_BITS = frozenset({"4bit", "int4"})  # Of weights that are packed in groups
_AT_PEAK = 0.98  # Share of the peak from which on a speed is the peak itself, rounded
_MEMORY = frozenset({"memory", "mem"})  # What may be a device's or the host's


class FigureWords(NamedWords):
    """A line whose words are being recognized, and those of them that are figures of its hardware."""

    def _figure(self, index: int, figure: dict[str, float]) -> tuple[int, Meaning]:
        """Recognize a figure of the hardware, or the memory of its host."""
        if self._is_of_groups(index):
            return 1, Meaning(why=f"left out: {self._written(index)}, weights of one scale")
        after = key_of(self._span(index + 1, 1)) if self._is_free(index + 1) else ""
        behind = [key_of(self._span(index + at, 1)) for at in (2, 3, 4)] if after == "of" else [after]
        behind = [*takewhile(lambda word: not word[:1].isdigit(), behind)] or [""]
        nouns = vocabulary().stored | vocabulary().ram
        of = next((word for word in behind if word in nouns), behind[0])  # 15 GB of Dutch text, of regular ram
        supply = next((words for words in (1, 2) if key_of(self._span(index + 1, words)) in vocabulary().supplies), 0)
        if supply and "tdp_w" in figure:
            return 1 + supply, Meaning(why=f"left out: {self._span(index, 1 + supply)}")
        is_data = (
            of in vocabulary().stored
            or (after == "of" and settings.amount_of(of) not in (None, vocabulary().amounts["devices"]))
            or figure.get(hardware.MEMORY, 0) > hardware.most_memory(self._catalog)
        )
        is_data &= self._values.get(hardware.NAME) not in self._catalog.processors and of not in vocabulary().ram
        is_data &= not self._is_behind_ram(index)
        size, is_trained = self._tokens[index].text, self._task in (TRAIN, FINETUNE)
        tokens = _tokens_of(size, of, self._catalog) if is_data and is_trained else 0
        if tokens:
            count = format_count(tokens)
            words = 2 + (behind.index(of) + 1 if after == "of" else 0)
            why = f"{size} of {of}: {count} tokens, as such data has"
            return words, Meaning(f"{count} tokens", {Key.TRAINING_TOKENS: tokens}, why)
        if hardware.MEMORY in figure and is_data:
            hint = "say how many tokens, samples or rows there are"
            return 1, Meaning(fault=PlanError("how much data is this?", self._span(index, 2), hint))
        is_ram = of in vocabulary().ram and hardware.MEMORY in figure
        is_ram |= (self._is_of_host(index) or self._is_behind_ram(index)) and hardware.MEMORY in figure
        name = str(self._values.get(hardware.NAME, ""))
        row = self._catalog.accelerators.get(name)
        if of in _MEMORY and row is not None and hardware.memory_of_another(row, figure.get(hardware.MEMORY, 0)):
            is_ram |= figure.get(hardware.MEMORY, 0) > (row.memory_mib or 0)  # 4090, 256GB memory
        if row is not None and is_trained and (reached := self._reached(row, figure, size)) is not None:
            return 1, reached
        together = 1 if self._is_of_a_device(index) else self._degree(hardware.DEVICES)
        meaning = hardware.given_figure(self._tokens[index].text, figure, is_ram, name, self._catalog, together)
        if hardware.NAME in meaning.values:
            self._values.pop(hardware.NAME)  # the same device with another memory
        is_behind = is_ram and of in vocabulary().ram
        return 1 + (behind.index(of) + 1 + int(after == "of") if is_behind else 0), meaning

    def _reached(self, row: Accelerator, figure: dict[str, float], text: str) -> Meaning | None:
        """Return the MFU of devices that compute so much, as ``400 TFLOPs``; None where that is their peak or more."""
        share = figure.get("bf16_tflops", 0.0) / (row.bf16_tflops or row.fp16_tflops or math.inf)
        if not 0 < share < _AT_PEAK:
            return None
        why = f"{text}: {share:.0%} of the {row.bf16_tflops or row.fp16_tflops:g} TFLOP/s that {row.id} has, as MFU"
        return Meaning(f"MFU {share:.3g}", {Key.TRAINING_MFU: f"{share:.4g}"}, why)

    def _written(self, index: int) -> str:
        return self._text[self._tokens[index].start : self._tokens[index].end]

    def _is_of_groups(self, index: int) -> bool:
        """Whether a figure is of the weights of one scale, as in ``gptq 4bit 128g``; beside processors it is memory."""
        is_packed = any(key_of(self._span(at, 1)) in _GROUPED for at in (index - 1, index + 1) if at >= 0)
        bits = key_of(self._span(index - 1, 1)) if index > 1 else ""
        is_packed |= bits in _BITS and key_of(self._span(index - 2, 1)) in _GROUPED
        if self._written(index) not in _GROUPS or not is_packed or key_of(self._span(index + 1, 1)) in vocabulary().ram:
            return False
        named = (hardware.named_hardware(token.text, self._catalog) or Meaning() for token in self._tokens)
        names = {str(values.get(hardware.NAME)) for values in (self._values, *(match.values for match in named))}
        rows = (self._catalog.accelerators.get(name) for name in names)
        return self._catalog.processors.keys().isdisjoint(names) and not any(row and row.unified_memory for row in rows)

    def _is_behind_ram(self, index: int) -> bool:
        """Whether the word of main memory before a figure is its own: ``ddr4 64gb``, but not ``64gb ram 24gb``."""
        is_of_another = any(count > 1 and start + count == index for start, (count, _) in self._taken.items())
        before = vocabulary().start_of([key_of(token.text) for token in self._tokens[:index]])  # host memory is 1TB
        return before > 0 and key_of(self._span(before - 1, 1)) in vocabulary().ram and not is_of_another

    def _is_of_a_device(self, index: int) -> bool:
        """Whether a figure is of each device: ``48gb each``, ``48gb vram per card``, ``48gb 4090 x2``."""
        end = index + 1 + int(key_of(self._span(index + 1, 1)) in {*_MEMORY, "vram"})
        devices = vocabulary().amounts["devices"]
        is_per = self._span(end, 1) == "per" and settings.amount_of(self._span(end + 1, 1)) == devices
        _, behind = self._taken.get(index + 1, (1, Meaning()))
        return is_per or key_of(self._span(end, 1)) in EVERY_NODE or hardware.NAME in behind.values

    def _is_of_host(self, index: int) -> bool:
        """Whether a figure stands behind a processor, as in ``5950x with 64GB``: it is of the host then."""
        plain = (at for at in range(index - 1, -1, -1) if key_of(self._tokens[at].text) not in vocabulary().fillers)
        before = next(plain, None)
        named = None if before is None else hardware.named_hardware(self._tokens[before].text, self._catalog)
        return named is not None and named.values.get(hardware.NAME) in self._catalog.processors

    def _memory_behind(self, index: int) -> Meaning | None:
        """Recognize the memory that a device is sold with behind its name, as in ``a100 80``."""
        name, figure = self._values.get(hardware.NAME), hardware.figures_of(f"{self._tokens[index].text}gb")
        ends = (start + count for start, (count, meaning) in self._taken.items() if hardware.NAME in meaning.values)
        at = index
        while at and key_of(self._span(at - 1, 1)) in vocabulary().adjectives:
            at -= 1  # m4 pro mac mini 64
        if figure is None or at not in ends:
            return None
        meaning = hardware.given_figure(self._tokens[index].text, figure, False, str(name), self._catalog)
        if hardware.NAME in meaning.values:
            self._values.pop(hardware.NAME)
        row = self._catalog.accelerators.get(str(name))  # m3 max 64: one of the sizes that it is sold with
        is_sold = row is not None and row.unified_memory and self._tokens[index].text in vocabulary().unified_memories
        return None if meaning.fault or (hardware.SPEC in "".join(meaning.values) and not is_sold) else meaning

    def _share_of_host(self) -> None:
        """Take the memory of a host with some processors for that of all: each has its part of it."""
        sockets, path = self._values.get(hardware.DEVICES), f"{hardware.SPEC}.{hardware.MEMORY}"
        memory = self._values.get(path)
        is_processor = self._values.get(hardware.NAME) in self._catalog.processors
        if is_processor and isinstance(sockets, int) and sockets > 1 and isinstance(memory, int):
            self._values[path] = memory // sockets

    def _custom_device(self) -> None:
        """Make figures without a device's name a device of one's own."""
        given = {
            key.removeprefix(f"{hardware.SPEC}."): value
            for key, value in self._values.items()
            if key.startswith(f"{hardware.SPEC}.")
        }
        if hardware.NAME in self._values:
            self._share_of_host()
            row, memory = self._catalog.accelerators.get(str(self._values[hardware.NAME])), given.get(hardware.MEMORY)
            if row is None or not isinstance(memory, int):
                return
            same = row.id if hardware.is_memory_of(row, memory) else hardware.with_memory(row, memory, self._catalog)
            if same is not None:
                self._values.pop(f"{hardware.SPEC}.{hardware.MEMORY}")  # A6000 48G *4
                self._rename(hardware.NAME, same)  # 8 a100 (8x40G)
            fault = None if same else hardware.memory_of_another(row, memory)
            self._faults += [] if fault is None else [fault]
            return
        makers = ((token.text, vocabulary().machines.get(key_of(token.text))) for token in self._tokens)
        word, maker = next(((word, maker) for word, maker in makers if maker), ("", ""))
        portable = next((token.text for token in self._tokens if key_of(token.text) in vocabulary().portable), "")
        if portable and hardware.MEMORY in given and not any(key_of(token.text) == "vram" for token in self._tokens):
            hint = "name its card or its processor, or write 8gb vram or 16gb ram"
            self._faults.append(PlanError("whose memory is this?", f"that of a {portable}", hint))
        if given.keys() - {"host_memory_gib"}:
            meaning = hardware.custom_device(given, self._catalog, maker)
            self._values = {key: value for key, value in self._values.items() if not key.startswith(hardware.SPEC)}
            self._values.update(meaning.values)
            self._assumed.append(Assumption(hardware.NAME, meaning.values[hardware.NAME], meaning.why))
        elif maker:
            self._faults.append(PlanError(f"which {word}?", hint="name its chip, or its memory, as 64gb"))


def _tokens_of(size: str, kind: str, catalog: Catalog) -> int:
    """Return the tokens of so many bytes of text, as ``100MB`` of ``text``; 0 where they are of something else."""
    row_id = catalog.data_formats.find_id(kind) or catalog.data_formats.find_id(kind.removesuffix("s"))
    bytes_per_token = None if row_id is None else catalog.data_formats[row_id].bytes_per_token
    return 0 if bytes_per_token is None else round(parse_quantity(size, "B") / bytes_per_token)
