"""The words of a line that are figures of its hardware: memory of devices or of their host, a device of one's own."""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import chain, takewhile

from capacity_tui.engine.catalog import Accelerator, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL
from capacity_tui.engine.plan.line.lexicon.processor_words import processor_of_line
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, WHOSE_MEMORY, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.named_words import NamedWords
from capacity_tui.engine.units import format_count, parse_quantity

_GROUPS = ("128g", "64g")  # Weights of one scale, as in ``gptq 4bit 128g``
_MEMORY = frozenset({"memory", "mem"})  # What may be a device's or the host's
_HAVING = ("with", "has", "having", "of")
_SPEED = re.compile(
    r"(?:(?P<ports>\d{1,2})[x×])?(?P<number>\d+(?:\.\d+)?)(?P<unit>gb?|gbe|gige|gbit|[gt]bps|[gt]b/s|gbit/s)",
    re.IGNORECASE,
)
_PORTS = re.compile(r"(\d{1,2})[x×]", re.IGNORECASE)  # 8x 400G infiniband
_MEMORY_UNITS, _BITS_OF_A_BYTE = ("g", "gb", "GB", "G"), 8
_FARTHEST_ONE, _ONE = 4, 2  # Words from ``each`` to a memory, and those of ``each user``
_PLAIN = "text"  # How data is stored of which no word says it


class FigureWords(NamedWords):
    """A line whose words are being recognized, and those of them that are figures of its hardware."""

    def _figure(self, index: int, figure: dict[str, float]) -> tuple[int, Meaning]:
        """Recognize a figure of the hardware, or the memory of its host."""
        if self._is_of_groups(index):
            return 1, Meaning(why=f"left out: {self._written(index)}, weights of one scale")
        after = key_of(self._span(index + 1, 1)) if self._is_free(index + 1) else ""
        is_first = self._is_apart(index, ",;") or self._name_before(index).endswith("ram")
        if is_first and hardware.MEMORY in (hardware.figures_of(self._span(index + 2, 1)) or {}):
            after = ""  # vram 24gb, ram 64gb
        # 16 GB of text, 16gb available ram, a 20 GB dataset of code
        is_of = after in {"of", *vocabulary().left_over} or self._span(index + 2, 1) == "of"
        behind = [after, *(key_of(self._span(index + at, 1)) for at in (2, 3, 4) if is_of)]
        behind = [*takewhile(lambda word: not word[:1].isdigit(), behind)] or [""]
        words, is_memory = vocabulary(), hardware.MEMORY in figure
        nouns = words.stored.keys() | words.ram
        of = next((word for word in behind if word in nouns), behind[0])  # 15 GB of Dutch text, of regular ram
        supply = next((few for few in (1, 2) if key_of(self._span(index + 1, few)) in words.supplies), 0)
        near = behind if is_of else [after, key_of(self._span(index + 2, 1))]
        disks = (few for few, word in enumerate(near, 1) if is_memory and word in words.disks)
        supply = supply or next(disks, 0)  # 30TB nvme, 64GB network storage
        is_power = "tdp_w" in figure
        if (held := self._held_elsewhere(index, words.supplies if is_power else words.disks)) is not None:
            return held
        is_of_site = is_power and all(figure["tdp_w"] > (row.tdp_w or 0) for row in self._catalog.accelerators.values())
        if is_of_site or (supply and (is_memory or is_power)):
            return 1 + supply, Meaning(why=f"left out: {self._span(index, 1 + supply)}")
        amount = settings.amount_of(behind[1]) if after == "of" and behind[1:] else None
        size, is_trained = self._tokens[index].text, self._task in (TRAIN, FINETUNE)
        is_data = (
            (of in words.stored and not self._is_apart(index))
            or (is_trained and self._is_named_before(index, words.stored) and not self._is_before_device(index))
            or amount not in (None, words.amounts["devices"])
            or figure.get(hardware.MEMORY, 0) > hardware.most_memory(self._catalog)
        )
        is_data &= self._values.get(hardware.NAME) not in self._catalog.processors and of not in words.ram
        is_data &= not self._is_named_before(index, words.ram) and _MEMORY.isdisjoint(behind)
        is_data &= key_of(self._span(index + 1, 2)) not in vocabulary().card_memory
        if is_memory and is_data:
            return self._size_of_data(index, behind)
        is_ram = of in words.ram and is_memory and not self._is_of_a_card(index)
        is_ram |= (self._is_of_host(index) or self._is_named_before(index, words.ram)) and is_memory
        name = str(self._values.get(hardware.NAME, ""))
        row = self._catalog.accelerators.get(name)
        is_shared = of in _MEMORY or self._is_of_no_card(index) or self._keeps_some_on_host()
        if is_shared and row is not None and hardware.memory_of_another(row, figure.get(hardware.MEMORY, 0)):
            is_ram |= figure.get(hardware.MEMORY, 0) > (row.memory_mib or 0)  # 4090, 256GB memory
        if row is not None and is_trained and (reached := self._reached(row, figure, size)) is not None:
            return 1, Meaning(why=f"left out: {size}, as measured") if self._is_judged() else reached
        if row is not None and is_memory:
            is_ram |= self._is_of_a_machine(index) and not self._is_of_several(row, figure[hardware.MEMORY])
        if shared := 0 if is_ram else self._shared_by(index):
            figure = {hardware.MEMORY: round(figure[hardware.MEMORY] / shared)}
        is_total = self._is_of_all(index)
        is_of_one = not is_total and self._is_of_a_device(index)
        together = 1 if shared or is_of_one else self._degree(hardware.DEVICES)
        meaning = hardware.given_figure(size, figure, is_ram, name, self._catalog, together, is_total=is_total)
        meaning = self._of_gpu(index, row, self._of_its_own(index, row, figure, meaning))
        if shared:
            part = f"{figure[hardware.MEMORY] / 1024:g}GB of each device"
            meaning = Meaning(part, meaning.values, f"{size} of all {shared}: {part}", meaning.fault)
        if hardware.NAME in meaning.values:
            self._values.pop(hardware.NAME)  # the same device with another memory
        is_behind = is_ram and of in words.ram
        return 1 + (behind.index(of) + 1 if is_behind else 0), meaning

    def _is_of_no_card(self, index: int) -> bool:
        """Whether a figure is that of a memory which is not called a card's: ``GPU: 8 * 4090 Memory: 256G``."""
        is_of_card = key_of(self._span(index - 2, 2)) in vocabulary().card_memory
        return self._degree(hardware.DEVICES) > 1 and self._is_named_before(index, _MEMORY) and not is_of_card

    def _held_elsewhere(self, index: int, stores: Container[str]) -> tuple[int, Meaning] | None:
        """Leave out a figure of something else than devices: ``swap 32gb``, ``4gb per worker``, ``psu of 850W``.

        Args:
            index: where it stands.
            stores: words before it that it is of: disks of a memory, supplies of watts.
        """
        is_memory = hardware.MEMORY in (hardware.figures_of(self._tokens[index].text) or {})
        words = next((few for few in (1, 2) if key_of(self._span(index + 1, few)) in vocabulary().of_something), 0)
        part = words + 1 if words and hardware.figures_of(self._word(index + words + 1)) is not None else 0
        is_measured = any(self._is_measured(at, "memory") for at in {index, index + part})
        is_measured = is_memory and (is_measured or self._is_fraction(index))
        if (left := self._left_of_card(index)) is not None or is_measured:  # 4 GB of 8 GB in use
            return left or (1, Meaning(why=f"left out: {self._written(index)}, as measured or needed"))
        is_stored = self._is_named_before(index, stores) and not self._is_before_device(index)
        count = self._words_of_one(index + 1) if is_memory and not self._is_apart(index) else 0
        if not (is_stored or count or (is_memory and self._begins_with_one(index))):
            return None
        end = index + 1 + (count if self._is_free(index, count + 1) else 0)
        text = self._span(index, end - index)
        of_devices = "" if is_stored else "; a plan has all the memory of its devices"
        return end - index, Meaning(why=f"left out: {text}{of_devices}")

    def _of_its_own(self, index: int, row: Accelerator | None, figure: dict[str, float], meaning: Meaning) -> Meaning:
        """Refuse a memory that a card is not sold with, which the line does not call its: ``3090, shows 20 GB``."""
        bandwidth, most = figure.get("bandwidth_gbs", 0.0), vocabulary().bounds["times a bandwidth"]
        if row is not None and bandwidth and not 1 / most < bandwidth / (row.bandwidth_gbs or bandwidth) < most:
            return Meaning(why=f"left out: {self._span(index, 1)}; {row.id} reads {row.bandwidth_gbs:g} GB/s")
        is_other = f"{hardware.SPEC}.{hardware.MEMORY}" in meaning.values and not self._is_named_with_device(index)
        if row is None or row.kind != "gpu" or row.unified_memory or not is_other:
            return meaning
        return Meaning(fault=hardware.memory_of_another(row, figure[hardware.MEMORY], differs=1))

    def _is_named_with_device(self, index: int) -> bool:
        """Whether a memory stands beside the name of the hardware, or is called that of a device: ``22gb 2080 ti``."""
        named = [(at, at + count) for at, (count, taken) in self._taken.items() if hardware.NAME in taken.values]
        between = [range(end, index) if end <= index else range(index + 1, start) for start, end in named]
        words, nouns = vocabulary(), self._nouns_of(index)
        plain = words.fillers | words.adjectives | _MEMORY | words.card_memory
        is_joint = {at: key_of(self._span(at, 1)) in plain and not self._is_apart(at - 1) for at in chain(*between)}
        is_adjacent = any(all(map(is_joint.get, places)) for places in between)
        is_named = any(noun in words.card_memory | words.left_over or noun.endswith(tuple(_MEMORY)) for noun in nouns)
        return is_adjacent or is_named or self._is_before_device(index)

    def _is_of_several(self, row: Accelerator, memory: float) -> bool:
        """Whether a memory in MiB is that of one device, of those of a node, or of all."""
        counts = (1, self._degree(Key.HARDWARE_PER_NODE), self._degree(hardware.DEVICES))
        return any(hardware.is_memory_of(row, memory / count) for count in counts)

    def _words_of_one(self, index: int) -> int:
        """Return how many words say that a memory is of one of several that are no devices, as ``for each process``."""
        first = index + int(key_of(self._span(index, 1)) == "for")
        key, noun = key_of(self._span(first, 1)), self._span(first + 1, 1)
        is_one = key in {*vocabulary().every["again"], "a", "per"} and self._is_of_some(noun)
        return first + 2 - index if is_one and not self._is_device(first + 1) else 0

    def _begins_with_one(self, index: int) -> bool:
        """Whether what a memory is of one of stands before it, as in ``each user gets 10 GB``."""
        for start in range(max(index - _FARTHEST_ONE, 0), index - 1):
            clause = range(start, index)
            is_first = not start or self._is_apart(start - 1)  # 10 requests per user 24gb
            is_joined = key_of(self._span(start, 1)) in vocabulary().every["again"] and len(clause) > _ONE
            is_one = self._words_of_one(start) > 0 and (is_first or is_joined)
            if is_one and not any(self._is_apart(at) or self._span(at, 1)[:1].isdigit() for at in clause):
                return True
        return False

    def _is_of_some(self, noun: str) -> bool:
        """Whether a word is of those who share devices, or a span of time: ``user``, ``process``, ``day``."""
        amount, words = settings.amount_of(noun), vocabulary()
        is_load = amount is not None and amount.field(INFER) in (Key.INFERENCE_USERS, Key.INFERENCE_REQUESTS)
        return is_load or key_of(noun) in words.tenants or key_of(noun) in words.spans

    def _shared_by(self, index: int) -> int:
        """Return how many devices of no name share a memory, as 4 in ``200gb between 4 cards``; 0 where none do."""
        devices = vocabulary().amounts["devices"]
        numbers = [at for at in range(len(self._tokens) - 1) if settings.amount_of(self._span(at + 1, 1)) == devices]
        numbers = [at for at in numbers if self._tokens[at].text.isdecimal()]
        is_shared = key_of(self._span(index + 1, 1)) in vocabulary().sharing and index + 2 in numbers
        is_shared |= hardware.NAME not in self._values and self._is_of_all(index)
        is_memory = hardware.MEMORY in (hardware.figures_of(self._tokens[index].text) or {})
        return int(self._tokens[numbers[0]].text) if is_shared and is_memory and numbers else 0

    def _is_of_all(self, index: int) -> bool:
        """Whether a memory is that of all devices: ``96gb total``, not ``8 gpus total 80gb``, ``256gb total ram``."""
        words = vocabulary()
        is_of_other = settings.amount_of(self._span(max(index - 2, 0), 1)) == words.amounts["devices"]
        if key_of(self._span(index + 1, 1)) in words.totals:  # 24gb total 256gb ram, 256gb total ram
            behind = "" if self._is_apart(index + 1) else self._span(index + 2, 1)
            is_of_other = key_of(behind) in words.ram or hardware.MEMORY in (hardware.figures_of(behind) or {})
        return not is_of_other and not words.totals.isdisjoint(self._nouns_of(index))

    def _size_of_data(self, index: int, behind: list[str]) -> tuple[int, Meaning]:
        """Recognize the tokens of so many bytes of data, as ``5 GB of text``, which words behind or before it name."""
        size, stored = self._tokens[index].text, vocabulary().stored
        nouns = [word for word in behind if word in stored]
        kinds = [stored[word] for word in nouns or [self._name_before(index)] if word in stored]
        rows = [self._catalog.data_formats[kind] for kind in kinds if kind]
        row = next((row for row in rows if row.id != _PLAIN), next(iter(rows), None))  # a dataset of code
        shape = self._catalog.architectures.get(str(self._values.get(MODEL)))
        reads_text = shape is None or (bool(shape.vocab) and not shape.is_of_sound)
        reads_text &= "" not in kinds and (self._model is None or self._model.kind == "transformer")
        words = 1 + max((behind.index(word) + 1 for word in nouns), default=0)
        if self._task != INFER and self._has_length():
            return words, Meaning(why=f"left out: {self._span(index, words)}")
        if self._task not in (TRAIN, FINETUNE) or row is None or not row.bytes_per_token or not reads_text:
            hint = "say how many tokens, samples or rows there are"
            return 1, Meaning(fault=PlanError("how much data is this?", self._span(index, 2), hint))
        tokens = round(parse_quantity(size, "B") / row.bytes_per_token)
        why = f"{size} of {row.name}: {format_count(tokens)} tokens, as such data has"
        return words, Meaning(f"{format_count(tokens)} tokens", {Key.TRAINING_TOKENS: tokens}, why)

    def _has_length(self) -> bool:
        """Whether a number of the line says how long a training is."""
        lengths = (Key.TRAINING_TOKENS, Key.TRAINING_SAMPLES, Key.TRAINING_STEPS, f"{OWN_PARAMETERS}n")
        counts = (self._count_of(at) for at in range(len(self._tokens)) if self._is_number_at(at) and self._is_free(at))
        fields = (count.amount.field(TRAIN) for count in counts if count is not None)
        return any(length in self._values for length in lengths) or any(field in lengths for field in fields)

    def _processor(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize a line of processors whose number nobody wrote, as ``i5 laptop`` and ``epyc, 32 cores``."""
        cores = vocabulary().amounts["cores"]
        counted = (at for at, token in enumerate(self._tokens) if settings.amount_of(token.text) == cores)
        number = next((self._span(at - 1, 1) for at in counted if at and self._span(at - 1, 1).isdecimal()), "0")
        is_counted = number != "0" and self._task != FIT
        is_any = is_counted and hardware.NAME not in self._values  # of a 13900k cpu all is known
        is_portable = any(key_of(token.text) in vocabulary().portable for token in self._tokens)
        for count in (4, 3, 2, 1):
            named = processor_of_line(self._span(index, count), int(number), self._catalog, is_portable, is_any=is_any)
            if named is not None and self._is_free(index, count) and not self._is_phrase(self._span(index, count + 1)):
                return count, named
        return None

    def _network(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize the network between nodes by its speed: ``100GbE between``, ``8x400G infiniband``."""
        match = _SPEED.fullmatch(self._tokens[index].text)
        if match is None:
            return None
        near = (at for at in (index + 1, index + 2, index - 1) if 0 <= at < len(self._tokens))
        places = [at for at in near if self._is_of_speed(index, at)]
        is_of_nodes = any(settings.amount_of(one.text) == vocabulary().amounts["nodes"] for one in self._tokens)
        unit = "gbps" if is_of_nodes and match["unit"].endswith("b/s") else match["unit"].casefold()  # 200Gb/s
        named = key_of(self._span(places[0], 1)) if places else unit
        if (kind := vocabulary().networks.get(named)) is None or self._shared_by(index):
            return None
        scale = (1000 if match["unit"][0] in "tT" else 1) * (_BITS_OF_A_BYTE if "B/s" in self._written(index) else 1)
        link, ports = self._link(kind, float(match["number"]) * scale)
        words = max(places[0] + 1 - index, 1) if places else 1
        text = self._span(index, words)
        is_memory = match["unit"] in _MEMORY_UNITS and (not link or (ports > 1 and self._is_memory_of_card(index)))
        if not link or is_memory:  # of an A6000 48gb nvlink it is the memory
            return None if is_memory or not places else (words, Meaning(why=f"left out: {text}"))
        if places and places[0] < index:
            self._take(index - 1, 1, Meaning(self._span(index - 1, 1)))
        several = _PORTS.fullmatch(self._span(index - 1, 1)) if index and not self._is_apart(index - 1) else None
        if several is not None:
            self._take(index - 1, 1, Meaning(f"{several[1]} ports", {Key.HARDWARE_PORTS_PER_NODE: int(several[1])}))
        values: dict[str, object] = {Key.HARDWARE_INTERCONNECT: link}
        ports *= int(match["ports"] or 1)
        values |= {Key.HARDWARE_PORTS_PER_NODE: ports} if match["ports"] or ports > 1 else {}
        of = f"{ports} of {link}" if ports > 1 and not match["ports"] else link
        return words, Meaning(f"{text} between nodes", values, f"{text}: {of}")

    def _link(self, kind: str, speed: float) -> tuple[str, int]:
        """Return the link of a speed, or the fastest of which some together have it: 40 Gb/s are 4 of 10."""
        prefixes = [f"{prefix}-" for prefix in kind.split()]
        names = (f"{prefix}{speed:g}" for prefix in prefixes)
        if (
            link := next((row_id for name in names if (row_id := self._catalog.links.find_id(name))), None)
        ) is not None:
            return link, 1
        ends = ((row_id, row_id.removeprefix(prefix)) for prefix in prefixes for row_id in self._catalog.links)
        speeds = [(int(end), row_id) for row_id, end in ends if end.isdecimal() and speed % int(end) == 0]
        return (max(speeds)[1], round(speed / max(speeds)[0])) if speeds else ("", 1)

    def _is_memory_of_card(self, index: int) -> bool:
        """Whether a size is that of the card right before it rather than a speed, as in ``a100 40G ethernet``."""
        named = hardware.named_hardware(self._span(index - 1, 1), self._catalog) if index else None
        row = None if named is None else self._catalog.accelerators.get(str(named.values.get(hardware.NAME)))
        memory = (hardware.figures_of(self._span(index, 1)) or {}).get(hardware.MEMORY)
        if row is None or memory is None:
            return False
        return hardware.is_memory_of(row, memory) or hardware.with_memory(row, memory, self._catalog) is not None

    def _is_of_speed(self, index: int, at: int) -> bool:
        """Whether a word beside a speed names a network: no comma stands between, and no other number."""
        between = range(min(index, at), max(index, at))
        is_joined = not any(self._is_apart(place, ",;") for place in between)
        is_joined &= not any(self._span(place, 1)[:1].isdigit() for place in between[1:])  # 24gb, 10gbe between
        if key_of(self._span(at, 1)) in vocabulary().any_network:  # 100G network, but neural network 10gb
            is_first = at < index and (not at or self._is_apart(at - 1))
            is_joined &= is_first or (at == index + 1 and key_of(self._span(at + 1, 1)) not in vocabulary().disks)
        return is_joined and key_of(self._span(at, 1)) in vocabulary().networks

    def _is_of_groups(self, index: int) -> bool:
        """Whether a figure is of the weights of one scale, as in ``gptq 4bit 128g``; beside processors it is memory."""
        formats, packed = (vocabulary().grouped[kind] for kind in ("formats", "bits"))
        is_packed = any(key_of(self._span(at, 1)) in formats for at in (index - 1, index + 1) if at >= 0)
        bits = key_of(self._span(index - 1, 1)) if index > 1 else ""
        is_packed |= bits in packed and key_of(self._span(index - 2, 1)) in formats
        if self._written(index) not in _GROUPS or not is_packed or key_of(self._span(index + 1, 1)) in vocabulary().ram:
            return False
        named = (hardware.named_hardware(token.text, self._catalog) or Meaning() for token in self._tokens)
        names = {str(values.get(hardware.NAME)) for values in (self._values, *(match.values for match in named))}
        rows = (self._catalog.accelerators.get(name) for name in names)
        return self._catalog.processors.keys().isdisjoint(names) and not any(row and row.unified_memory for row in rows)

    def _is_of_a_device(self, index: int) -> bool:
        """Whether a figure is of each device: ``48gb each``, ``48gb vram per card``, ``48gb 4090 x2``."""
        end = index + 1 + int(key_of(self._span(index + 1, 1)) in {*_MEMORY, "vram"})
        devices = vocabulary().amounts["devices"]
        is_per = self._span(end, 1) == "per" and settings.amount_of(self._span(end + 1, 1)) == devices
        _, behind = self._taken.get(index + 1, (1, Meaning()))
        return is_per or self._is_apiece(end) or hardware.NAME in behind.values

    def _is_of_a_card(self, index: int) -> bool:
        """Whether main memory is said of a card of which nothing else is known: ``a gpu with 24gb of ram``."""
        is_of_device = index > 1 and self._span(index - 1, 1) in _HAVING and self._is_device(index - 2)
        is_of_device &= settings.amount_of(self._span(index - 2, 1)) == vocabulary().amounts["devices"]
        return is_of_device and hardware.NAME not in self._values and not self._has_memory_of_devices()

    def _is_of_host(self, index: int) -> bool:
        """Whether a figure stands behind a processor or its cores, as ``5950x with 64GB``: it is of the host then."""
        end = next((at for at in range(index, 0, -1) if key_of(self._span(at - 1, 1)) not in vocabulary().fillers), 0)
        text, few = self._span(max(end - 1, 0), 1), min(end, 2)  # epyc 9654 512gb
        if settings.amount_of(text) == vocabulary().amounts["cores"]:
            return not self._is_before_device(index)
        names = (hardware.named_hardware(name, self._catalog) for name in (self._span(end - few, few), text))
        named = next(filter(None, names), None) or processor_of_line(text, 0, self._catalog, is_portable=False)
        return named is not None and named.values.get(hardware.NAME) in self._catalog.processors

    def _memory_behind(self, index: int) -> Meaning | None:
        """Recognize the memory that a device is sold with behind its name, as in ``a100 80``."""
        name, figure = self._values.get(hardware.NAME), hardware.figures_of(f"{self._tokens[index].text}gb")
        ends = (start + count for start, (count, meaning) in self._taken.items() if hardware.NAME in meaning.values)
        at = index
        while at and key_of(self._span(at - 1, 1)) in vocabulary().adjectives:
            at -= 1  # m4 pro mac mini 64
        if figure is None or at not in ends or self._is_apart(index - 1, "("):
            return None
        meaning = hardware.given_figure(self._tokens[index].text, figure, False, str(name), self._catalog)
        if hardware.NAME in meaning.values:
            self._values.pop(hardware.NAME)
        row = self._catalog.accelerators.get(str(name))  # m3 max 64: one of the sizes that it is sold with
        is_sold = row is not None and row.unified_memory and self._tokens[index].text in vocabulary().unified_memories
        return None if meaning.fault or (hardware.SPEC in "".join(meaning.values) and not is_sold) else meaning

    def _share_of_host(self) -> None:
        """Take the memory of a host for that of the processors that compute: each has its part of it."""
        sockets, path = self._degree(hardware.DEVICES), f"{hardware.SPEC}.{hardware.MEMORY}"
        if (row := self._catalog.processors.get(str(self._values.get(hardware.NAME)))) is None:
            return
        if self._task == FIT and row.segment == "server" and 1 < sockets <= vocabulary().bounds["sockets of a machine"]:
            self._values.setdefault(Key.HARDWARE_PER_NODE, sockets)
        host = float(str(self._values.pop(hardware.HOST_MEMORY, 0))) * hardware.MIB_OF_GIB  # 2x16gb ddr4
        if isinstance(memory := round(host) or self._values.get(path), int):
            self._values[path] = memory // sockets

    def _custom_device(self) -> None:
        """Make figures without a device's name a device of one's own."""
        of_spec = f"{hardware.SPEC}."
        given = {key.removeprefix(of_spec): value for key, value in self._values.items() if key.startswith(of_spec)}
        if hardware.NAME in self._values:
            self._share_of_host()
            row, memory = self._catalog.accelerators.get(str(self._values[hardware.NAME])), given.get(hardware.MEMORY)
            if row is None or not isinstance(memory, int) or self._is_shared_card:
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
        cards = {"vram", *(key for key, amount in vocabulary().amounts.items() if amount.name == "devices")}
        is_named = bool(maker) or not cards.isdisjoint(key_of(token.text) for token in self._tokens)
        if portable and hardware.MEMORY in given and not is_named:
            hint = "name its card or its processor, or write 8gb vram or 16gb ram"
            self._faults.append(PlanError(WHOSE_MEMORY, f"that of a {portable}", hint))
        if self._task == FIT and not is_named and hardware.DEVICES not in self._values:
            self._leave_out(f"{of_spec}{hardware.MEMORY}", "rows and columns tell how much data there is")
        elif given.keys() - {"host_memory_gib"}:
            meaning = hardware.custom_device(given, self._catalog, maker)
            self._values = {key: value for key, value in self._values.items() if not key.startswith(hardware.SPEC)}
            self._values.update(meaning.values)
            self._assumed.append(Assumption(hardware.NAME, meaning.values[hardware.NAME], meaning.why))
        elif maker:
            self._faults.append(PlanError(f"which {word}?", hint="name its chip, or its memory, as 64gb"))
