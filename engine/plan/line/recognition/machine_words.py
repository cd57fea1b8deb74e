"""Hardware that a line names beside other hardware: hosts, machines and their devices."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import Accelerator, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import GIVEN_TWICE, INFER, Amount, Meaning
from capacity_tui.engine.plan.line.recognition.ruled_out_words import RuledOutWords
from capacity_tui.engine.plan.plan import DETECTED
from capacity_tui.engine.units import count_in_words

_NUMBER, _LONGEST_OF_LAYERS = re.compile(r"\d{1,3}"), 5  # Words of what says how many layers are on devices
_MEMORY_RATE = re.compile(r"(\d+)(mts|ch)")  # Speed and channels of main memory, as they are read
_LONGEST_NAME = 6  # Words that counted devices may have, as ``8 x h100 sxm 80gb``
_COUNTED_CORES = re.compile(r"(\d{1,2})(\D+)")
_FAR = 4  # Words before a time or a memory that may say that it is wanted
_CORES, _SOCKETS, _THREADS_OF_A_CORE = "cores", "sockets", 2
_AT_PEAK = 0.98  # Share of the peak from which on a speed is the peak itself, rounded
_USABLE = f"{hardware.SPEC}.usable_memory_mib"
_OF_HOST = (hardware.NAME, hardware.DEVICES)  # What a processor sets until accelerators stand beside it


def _is_same(own: Accelerator, other: Accelerator) -> bool:
    """Whether a machine's device is meant by one of as much memory whose number it begins with: A10 of an A10G."""
    names = (next((part for part in row.id.split("-") if any(map(str.isdigit, part))), row.id) for row in (own, other))
    return next(names).startswith(next(names)) and hardware.is_memory_of(own, other.memory_mib or 1)


class MachineWords(RuledOutWords):
    """A line that may name the same hardware in several ways."""

    def _host(self, index: int, meaning: Meaning) -> Meaning:
        """Take a processor beside accelerators for the one of their host."""
        name, named = self._values.get(hardware.NAME), meaning.values.get(hardware.NAME)
        if name and named and DETECTED in (name, named):  # my laptop with a 3050
            self._values[hardware.NAME] = device = named if name == DETECTED else name
            return replace(meaning, values={**meaning.values, hardware.NAME: device})
        accelerators, processors = self._catalog.accelerators, self._catalog.processors
        if name and named and self._is_chosen(index):
            return meaning  # a 3060, or just my ryzen 5800x
        if named in processors and name in accelerators:
            return self._of_host(named, meaning)
        if name in processors and named in accelerators:
            self._values = {path: value for path, value in self._values.items() if path not in _OF_HOST}
            hosts = {at: count for at, (count, of) in self._taken.items() if of.values.get(hardware.NAME) == name}
            self._taken |= {at: (count, self._of_host(name, self._taken[at][1])) for at, count in hosts.items()}
            self._values[Key.HARDWARE_HOST] = name
        return self._machine(name, named, meaning)

    @staticmethod
    def _of_host(row_id: object, named: Meaning) -> Meaning:
        """Return a processor that stands beside accelerators."""
        sockets = named.values.get(hardware.DEVICES, 1)
        one = "" if sockets == 1 else f"{sockets} sockets of the host: one is counted"
        return Meaning(f"host {row_id}", {Key.HARDWARE_HOST: row_id}, "; ".join(filter(None, (named.why, one))))

    def _machine(self, name: object, named: object, meaning: Meaning) -> Meaning:
        """Take a machine beside its own accelerators for the same hardware, as ``g4dn.12xlarge (4x T4)``."""
        machine = self._catalog.instances.get(str(name)) or self._catalog.instances.get(str(named))
        rows = self._catalog.accelerators
        own = None if machine is None else rows.get(machine.accelerator or "")
        others = [row for one in (name, named) if (row := rows.get(str(one))) is not None]
        if machine is None or own is None or not any(_is_same(own, other) for other in others):
            return meaning
        counts = [values.get(hardware.DEVICES, machine.sold_devices) for values in (self._values, meaning.values)]
        if not name or counts[0] != counts[1]:
            return meaning
        self._values |= {hardware.NAME: machine.id, hardware.DEVICES: counts[0]}
        return replace(meaning, values={**meaning.values, hardware.NAME: machine.id, hardware.DEVICES: counts[0]})

    def _of_processor(self, amount: Amount, value: str, name: str) -> Meaning | None:
        """Take sockets for so many processors, and pass over their threads: ``2 socket xeon``, ``8 cores 16 threads``.

        A few processors are sockets where the one that is named has more cores, as in ``2 cpus epyc 9654``. No memory
        for a GPU that shares it says that the system sets it: ``iogpu.wired_limit_mb=0``.
        """
        if value == "0" and amount.field(INFER) == _USABLE:
            return Meaning(why=f"{name} 0: as the system sets it")
        row, words = self._catalog.processors.get(str(self._values.get(hardware.NAME))), vocabulary()
        if row is None or not value.isdecimal():
            return None
        few, cores = int(value), self._degree(f"{OWN_PARAMETERS}n_jobs", row.cores)
        if amount.name == _CORES and few == _THREADS_OF_A_CORE * cores:
            return Meaning(why=f"left out: {value} {name} of {cores} cores")
        is_some = amount.name == _CORES and key_of(name) in words.processor and few < row.cores
        if (amount.name != _SOCKETS and not is_some) or not 1 <= few <= words.bounds["sockets of a machine"]:
            return None
        return Meaning(f"{few} × {row.id}", {hardware.DEVICES: few})

    def _memory_speed(self, index: int) -> tuple[int, Meaning] | None:
        """Take speed and channels of main memory for the bandwidth of a processor: ``12 channels ddr5-4800``."""
        if _MEMORY_RATE.fullmatch(self._word(index)) is None:
            return None
        row, path = self._catalog.processors.get(str(self._values.get(hardware.NAME))), f"{hardware.SPEC}.bandwidth_gbs"
        if row is None or not (row.memory_channels and row.memory_mts and row.bandwidth_gbs):
            return 1, Meaning(why=f"left out: {self._written(index)}; main memory is as fast as the catalogue has it")
        matches = filter(None, (_MEMORY_RATE.fullmatch(token.text) for token in self._tokens))
        rates, most = {match[2]: int(match[1]) for match in matches}, row.memory_channels
        channels, speed = rates.get("ch", most), rates.get("mts", row.memory_mts)
        channels //= self._degree(hardware.DEVICES) if channels > most else 1
        if channels > most and self._word(index).endswith("ch"):
            return 1, Meaning(why=f"left out: {self._written(index)}; {row.id} has {count_in_words(most, 'channel')}")
        if speed > vocabulary().bounds["MT/s of memory"]:
            return 1, Meaning(why=f"left out: {self._written(index)}; no main memory is as fast")
        channels = min(channels, most)
        rate = round(row.bandwidth_gbs * channels / most * speed / row.memory_mts, 1)
        if math.isclose(rate, row.bandwidth_gbs, abs_tol=0.1):
            return 1, Meaning(f"{rate:g} GB/s of memory, as it has")
        why = f"{count_in_words(channels, 'channel')} of {speed:g} MT/s: {rate:g} GB/s"
        why = f"{why}; the catalogue has {row.bandwidth_gbs:g}"
        return 1, Meaning() if path in self._values else Meaning(f"{rate:g} GB/s of memory", {path: rate}, why)

    def _is_chosen(self, index: int) -> bool:
        """Whether a word that compares stands before another one, over words that turn to it: ``or just 32 cores``."""
        words = vocabulary()
        plain = (at for at in range(index - 1, -1, -1) if key_of(self._tokens[at].text) not in words.turning)
        return key_of(self._span(next(plain, 0), 1)) in words.comparing

    def _is_one_more(self, index: int, meaning: Meaning) -> bool:
        """Whether hardware is counted with what the line had of it before, as in ``two 3090s, add a third 3090``."""
        written = self._text[self._tokens[index].start : self._tokens[index].end]
        is_same = meaning.values.get(hardware.NAME) == self._values.get(hardware.NAME)
        return is_same and key_of(written.split()[-1]) in vocabulary().ordinals

    def _without_size_of_nodes(self, meaning: Meaning) -> Meaning:
        """Take devices of a memory beside nodes that have as many for these, as in ``96 DGX A100 (8x40G)``."""
        size, values = self._values.get(Key.HARDWARE_PER_NODE), dict(meaning.values)
        is_bare = values.keys().isdisjoint({hardware.NAME, Key.HARDWARE_PER_NODE})
        if size and is_bare and hardware.NAME in self._values and values.get(hardware.DEVICES) == size:
            values.pop(hardware.DEVICES)
        nodes, pairs = vocabulary().amounts["nodes"], pairwise(token.text for token in self._tokens)
        counted = (int(number) for number, noun in pairs if number.isdecimal() and settings.amount_of(noun) == nodes)
        wholes = {few * self._degree(hardware.DEVICES) for few in counted if hardware.DEVICES in self._values}
        if is_bare and values.get(hardware.DEVICES) in wholes:  # 32 gpus, 4 nodes of 8 a100
            values.pop(hardware.DEVICES)
        return replace(meaning, values=values)

    def _is_of_a_machine(self, index: int) -> bool:
        """Whether a memory is that of each of some machines, as ``30 GB per node``."""
        amount, node = settings.amount_of(self._span(index + 2, 1)), self._span(index + 1, 1)
        return node in ("per", "a", "each") and amount == vocabulary().amounts["nodes"] and not self._is_apart(index)

    def _other_machine(self, index: int, figure: Mapping[str, float]) -> tuple[int, Meaning] | None:
        """Refuse the memory of a machine by another maker than the named device: ``DGX Spark, Mac Studio 128GB``."""
        row = self._catalog.accelerators.get(str(self._values.get(hardware.NAME)))
        first = next((at for at in (index - 1, index - 2) if self._word(at).casefold() in vocabulary().machines), index)
        maker = vocabulary().machines.get(self._word(first).casefold(), "")
        if row is None or not maker or row.vendor == maker or hardware.MEMORY not in figure:
            return None
        name = self._span(first, index + 1 - first)
        hint = vocabulary().twice.get(hardware.NAME, "keep one of them")
        return 1, Meaning(fault=PlanError(f"{hardware.NAME} {GIVEN_TWICE}", f"{name!r} and {row.id}", hint))

    def _file_size(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out the size of a file of weights in brackets behind their format: ``IQ3_M (~14GB)``."""
        count, format_ = self._taken.get(index - 1, (0, Meaning()))
        between = self._text[self._tokens[index - 1].end : self._tokens[index].start] if index else ""
        is_alone = "(" in between and self._text[self._tokens[index].end :].startswith(")")
        is_format = count == 1 and Key.INFERENCE_WEIGHTS in format_.values
        if not (is_format and is_alone and hardware.NAME in self._values):
            return None
        return 1, Meaning(why=f"left out: {self._word(index)} of weights; those of the model are counted")

    def _name_before(self, index: int) -> str:
        """Return the key of what stands before a figure, over words between: ``host memory is 1TB``."""
        before = vocabulary().start_of([key_of(token.text) for token in self._tokens[:index]])
        return key_of(self._span(before - 1, 1)) if before > 0 else ""

    def _nodes_asked_about(self, number: str) -> Meaning | None:
        """Take nodes of which a line asks if they do for those of its plan: ``4 nodes of 8, are 2 nodes enough``."""
        size, devices = (self._values.get(path) for path in (Key.HARDWARE_PER_NODE, hardware.DEVICES))
        asked = (at for at, token in enumerate(self._tokens[:-2]) if token.text == number)
        is_asked = any(key_of(self._word(at + 2)) in vocabulary().sufficing for at in asked)
        if not (is_asked and isinstance(size, int) and isinstance(devices, int) and number.isdecimal()):
            return None
        self._values[hardware.DEVICES] = int(number) * size
        nodes = count_in_words(int(number), "node")
        why = f"{nodes} of {size}: those asked about, rather than {devices // size}"
        return Meaning(nodes, {hardware.DEVICES: int(number) * size}, why)

    def _is_named_before(self, index: int, names: Container[str]) -> bool:
        """Whether one of some words before a figure is its own: ``ddr4 64gb``, but not ``64gb ram 24gb``."""
        joints = (few for few in (2, 1) if key_of(self._span(index - few, few)) in vocabulary().of_something)
        part = index - 1 - next(joints, index)
        if part > 0 and hardware.MEMORY in (hardware.figures_of(self._word(part)) or {}):
            near = self._tokens[max(part - _FAR, 0) : part]  # my ram is at 118gb out of 128gb
            return any(key_of(token.text) in names and not token.ends for token in near)
        is_of_another = any(count > 1 and start + count == index for start, (count, _) in self._taken.items())
        return self._name_before(index) in names and not is_of_another and not self._is_apart(index - 1, ",;")

    def _nouns_of(self, index: int) -> set[str]:
        """Return the keys of one word and of two that a figure may be of, before it or behind it; also ``model is``."""
        first = vocabulary().start_of([key_of(before.text) for before in self._tokens[:index]])
        before = {key_of(self._span(start, few)) for start, few in ((first - 1, 1), (first - 2, 2), (first - 1, 2))}
        behind = index + 1
        behind += int(self._span(behind, 1) == "of" or key_of(self._span(behind, 1)) in vocabulary().formats)
        after = {key_of(self._span(behind, few)) for few in (1, 2)}
        return (set() if first and self._is_apart(first - 1) else before) | (set() if self._is_apart(index) else after)

    def _portable(self) -> None:
        """Take the card of a laptop where the line says that it is one, as in ``my laptop with a 3050``."""
        places = [at for at, token in enumerate(self._tokens) if key_of(token.text) in vocabulary().portable]
        named = str(self._values.get(hardware.NAME))
        row_id = hardware.portable_of(named, self._catalog) if places else None
        if row_id is not None:
            self._rename(hardware.NAME, row_id)
        if row_id is not None or named not in self._catalog.accelerators:
            self._taken |= {at: (1, Meaning()) for at in places if self._is_free(at)}
        self._cores_of_chip()

    def _cores_of_chip(self) -> None:
        """Take the chip that has so many cores for graphics: ``m1 max with 24 gpu cores``, ``60-core GPU``."""
        row = self._catalog.accelerators.get(str(self._values.get(hardware.NAME)))
        every = vocabulary().every["gpu cores"]
        places = [(at, few) for at in range(len(self._tokens)) for few in (3, 2, 1)]
        counts = ((at, few, _COUNTED_CORES.fullmatch(key_of(self._span(at, few)))) for at, few in places)
        named = ((at, few, match[1]) for at, few, match in counts if match and match[2] in every)
        first, few, cores = next(named, (0, 0, ""))
        if row is None or not row.unified_memory or not cores:
            return
        path, meaning = re.sub(r"\d+$", cores, row.id), Meaning(why=f"left out: {self._span(first, few)}")
        if path in self._catalog.accelerators:
            self._rename(hardware.NAME, path)
            meaning = Meaning()
        own = range(first, first + few)
        self._taken |= {at: (1, meaning if at == first else Meaning()) for at in own if self._is_free(at)}

    def _is_companion(self, word: str) -> bool:
        is_software = settings.named_value(word, INFER, "", self._catalog) is not None  # faster-whisper
        return not is_software and not vocabulary().companions.isdisjoint(word.casefold().split("-"))

    def _layers_of_all(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many layers are on devices: ``27/33 layers``, ``offload 20 layers to my 4090``."""
        every, named = vocabulary().every, self._places_of(hardware.NAME)
        spans = range(min(_LONGEST_OF_LAYERS, len(self._tokens) - index), 1, -1) if self._task == INFER else ()
        for few in spans:
            span = self._span(index, few)
            key, end = _NUMBER.sub("#", key_of(span)), index + few
            end += int(key_of(self._span(end, 1)) in vocabulary().single | vocabulary().owned)  # to my 4090
            if key in every["layers on devices"] or (end in named and key in every["layers to a device"]):
                number = _NUMBER.findall(span)[0]
                return few, settings.field_value(Key.INFERENCE_GPU_LAYERS, number, INFER)
        return None

    def _is_fraction(self, index: int) -> bool:
        """Whether a memory is a part of that of the card which the line names: none is sold with 44.8 GB."""
        row, text = self._catalog.accelerators.get(str(self._values.get(hardware.NAME))), self._span(index, 1)
        memory = (hardware.figures_of(text) or {}).get(hardware.MEMORY, math.inf)
        is_less = row is not None and row.kind == "gpu" and not row.unified_memory and memory < (row.memory_mib or 0)
        sold = 1024 * math.ceil(memory / 1024) if is_less else 0  # 39.6 GB are the A100 of 40
        same = hardware.with_memory(row, sold, self._catalog) if is_less and row is not None else ""
        is_part = "." in text and (same is None or (row is not None and same == row.id))
        words, after = vocabulary(), key_of(self._span(index + 1, 1))
        return is_part and after != "of" and after not in words.ram | words.stored.keys() | words.left_over

    def _left_of_card(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize the memory of a card that others leave: ``3080 6.5gb free``, ``4070 (2gb taken by windows)``."""
        row, path = self._catalog.accelerators.get(str(self._values.get(hardware.NAME))), f"{hardware.SPEC}.memory_mib"
        memory = (hardware.figures_of(self._word(index)) or {}).get(hardware.MEMORY, math.inf)
        whole, words = 0 if row is None or row.kind != "gpu" else row.memory_mib or 0, vocabulary()
        if row is not None and row.unified_memory:
            whole, path = self._degree(path, round(whole)), _USABLE
        held = words.measured["held"]
        few = next((few for few in (2, 3, 4) if key_of(self._span(index + 1, few)) in held), 0)
        nouns = self._nouns_of(index)
        behind = {key_of(self._span(index + 2, 1)), key_of(self._span(index + 3, 1))}  # 10gb left on disk
        is_left = not nouns.isdisjoint(words.left_over) and (nouns | behind).isdisjoint(words.ram | words.disks)
        if not memory < whole or not (few or is_left):
            return None
        self._is_shared_card, left = True, round(whole - memory if few else memory)
        return 1 + few, Meaning(f"{left / hardware.MIB_OF_GIB:g} GiB left of each device", {path: left})

    def _keeps_some_on_host(self) -> bool:
        """Whether words say that a part of the model lies in host memory: ``--cpu-moe 3090 128gb``."""
        words, keys = vocabulary(), self._keys()
        on_host = {key for key, (path, _) in words.needs.items() if path == Key.INFERENCE_GPU_LAYERS}
        return not keys.isdisjoint(on_host | words.on_host) or Key.INFERENCE_GPU_LAYERS in self._values

    def _is_one_a_node(self) -> bool:
        """Whether a line has one device in each of its nodes, as ``4 boxes with a 3090 each``."""
        places = [(at, at + count) for at, (count, taken) in self._taken.items() if hardware.NAME in taken.values]
        return any(self._span(at - 1, 1) in ("a", "an") and self._is_apiece(end) for at, end in places)

    def _racks(self, name: str, rack: str) -> Meaning | None:
        """Return the racks that words count, as ``2x gb200 nvl72`` and ``4 racks of nvl72``: a node of so many each."""
        name, (size, usual) = re.sub(r" racks?( of)? ", "x ", name), vocabulary().racks[key_of(rack)]
        is_usual = not name.strip("0123456789xX×* ")  # 4x nvl72
        match = hardware.named_hardware(f"{name} {usual}".strip() if is_usual else name, self._catalog)
        if match is None or match.fault:
            return None
        racks, why = int(str(match.values.get(hardware.DEVICES, 1))), f"{rack}: of {usual}" if is_usual else ""
        values = {**match.values, hardware.DEVICES: racks * size, Key.HARDWARE_PER_NODE: size}
        return Meaning(f"{racks} x {size} {match.values[hardware.NAME]}", values, why)

    def _is_version(self, index: int) -> bool:
        """Whether a number before counted devices is the version of the family before it: ``llama 2 h100*8``."""
        family, text = self._word(index - 1).casefold(), self._word(index)
        if not text.isdecimal() or family not in models.families_of_models(self._catalog):
            return False
        counted = (
            hardware.named_hardware(self._span(index + 1, few), self._catalog) for few in range(1, _LONGEST_NAME)
        )
        is_known = models.resembling_model(f"{family}-{text}", self._catalog) is not None
        return is_known and any(one is not None and hardware.DEVICES in one.values for one in counted)

    def _of_gpu(self, index: int, row: Accelerator | None, meaning: Meaning) -> Meaning:
        """Take what is called a GPU's memory, where it shares the machine's, for what it may use: ``96gb vram``.

        So is a second memory that is called usable; any other would be that of another machine.
        """
        path, words = f"{hardware.SPEC}.{hardware.MEMORY}", vocabulary()
        if row is None or not row.unified_memory or path not in meaning.values:
            return meaning
        sizes = [(hardware.figures_of(self._word(at)) or {}).get(hardware.MEMORY, 0) for at in range(index)]
        is_second = max(sizes, default=0) > float(str(meaning.values[path]))
        nouns = {key_of(self._span(index + 1, few)) for few in (1, 2, 3, 4)}
        nouns |= {key_of(self._span(index - few, few)) for few in (1, 2, 3) if is_second and few <= index}
        is_called = not nouns.isdisjoint(words.card_memory)
        is_called |= is_second and settings.amount_of(self._span(index + 1, 1)) == words.amounts["devices"]
        if not is_called:
            detail = f"{self._written(index)!r} and {max(sizes, default=0) / hardware.MIB_OF_GIB:g}GB"
            hint = f"say {self._written(index)} for the gpu of what it may use of the memory that it shares"
            return Meaning(fault=PlanError(f"{path} {GIVEN_TWICE}", detail, hint)) if is_second else meaning
        why = f"{self._word(index)}: what the GPU may use of the memory that it shares"
        return Meaning(meaning.words, {_USABLE: meaning.values[path]}, why)

    def _reached(self, row: Accelerator, figure: dict[str, float], text: str) -> Meaning | None:
        """Return the MFU of devices that compute so much, as ``400 TFLOPs``; None where that is their peak or more."""
        share = figure.get("bf16_tflops", 0.0) / (row.bf16_tflops or row.fp16_tflops or math.inf)
        if not 0 < share < _AT_PEAK:
            return None
        why = f"{text}: {share:.0%} of the {row.bf16_tflops or row.fp16_tflops:g} TFLOP/s that {row.id} has, as MFU"
        return Meaning(f"MFU {share:.3g}", {Key.TRAINING_MFU: f"{share:.4g}"}, why)
