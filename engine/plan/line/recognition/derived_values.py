"""What the words of a line make up together: devices of a layout, batches of a step, the price of all devices."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

from capacity_tui.engine.catalog import format_in_name, key_of, named_release
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import refuse_training
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL
from capacity_tui.engine.plan.line.lexicon.processor_words import processor_of_line
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, INFER, TRAIN, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.line_words import ACCUMULATION, REPEATS, STEPS_OF_EPOCH
from capacity_tui.engine.plan.line.recognition.model_details import FEW_BITS
from capacity_tui.engine.plan.line.recognition.money_words import MoneyWords
from capacity_tui.engine.units import count_in_words, format_count

DEGREES_OF_MODEL = (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP)
_DEGREES = (*DEGREES_OF_MODEL, Key.PARALLELISM_DP)
_CONTEXT = re.compile(r"-(\d+k)$")  # A context that names of releases end in, as ``phi-3-medium-4k``

WITH_OR_WITHOUT = "with it, or without it?"
_OF_REPLICA = "per replica"
_SETTINGS = frozenset(
    {
        *(Key.INFERENCE_WEIGHTS, Key.INFERENCE_KV_CACHE, Key.TRAINING_PRECISION, Key.TRAINING_OPTIMIZER),
        *(Key.PARALLELISM_ZERO, Key.PARALLELISM_OFFLOAD, *DEGREES_OF_MODEL),
    }
)
"""What a plan may have or not, so that a line may ask whether it is needed."""
_SEVERAL = frozenset({"multilora", "multiloraserving"})  # Adapters of which nobody says how many
_THREADS = f"{OWN_PARAMETERS}n_jobs"  # Of trees, which run on so many cores
_FEWEST_TO_PACK = 6.0  # Bits a weight of a model that is called quantized where it is published in more
_FARTHEST_QUERY, _IS = 4, frozenset({"is", "are", "isnt"})
_SAME_BATCH = 0.05  # Share by which a batch of tokens may differ from a power of two and is meant to be that


class DerivedValues(MoneyWords):
    """A line whose words were recognized, and what follows from several of them."""

    def _derive(self) -> None:
        """Set what follows, each from what was set before it."""
        self._whether()
        self._writes_nothing()
        self._prompt_of_context()
        self._release_of_context()
        self._length_given_twice()
        self._replicas_of_attention()
        self._devices_of_layout()
        self._memory_of_hosts()
        self._accumulate()
        self._batch_of_tokens()
        self._answers_to_prompts()
        self._length_of_documents()
        self._optimal_length()
        self._method_of_the_framework()
        self._unquantized()
        self._weights_of_the_engine()
        self._small_images()
        self._picture_tokens()
        self._derive_load()
        self._bill_of_power()
        self._cores_of_processor()
        self._trained_by_itself()
        self._guesses_ahead()
        self._served_adapters()

    def _whether(self) -> None:
        """Refuse to choose where a line asks whether a setting is needed, as ``do i need grad checkpointing``."""
        words, task = vocabulary(), TRAIN if self._task == FINETUNE else self._task
        places = range(len(self._tokens))
        either = {at: few for at in places for few in (3, 2, 1) if self._asks_whether("either", at, few)}
        others = [at for at in places if not any(start <= at < start + few for start, few in either.items())]
        compares = any(key_of(self._tokens[at].text) in words.comparing for at in others)
        for index, (count, meaning) in [*self._taken.items()]:
            is_negated = key_of(self._tokens[index].text) in words.negations
            end = index + count - int(index + count - 1 in either and count > 1)  # offload on, or off
            name = self._span(index + is_negated, end - index - is_negated)
            is_setting = bool(meaning.values) and _SETTINGS.issuperset(meaning.values) and not compares
            is_ruled_out, other = key_of(name) in words.ruled_out.get(task, {}), words.instead.get(key_of(name))
            other = None if compares else other
            if not (is_ruled_out or is_setting or other):
                continue
            first = next((index - few for few in (5, 4, 3, 2) if self._asks_whether("before", index - few, few)), index)
            behind = (end + few for few in (3, 2, 1) if self._asks_whether("behind", end, few))
            last = end + either.get(end, 0) if other or end in either else next(behind, end)
            if first < index or last > end:
                for at in range(first, last):
                    for path in self._taken.pop(at, (0, Meaning()))[1].values:
                        self._values.pop(path, None)
                without = other or (f"no {name}" if is_ruled_out else "leave it out")
                hint = f"write it, or {without}; where a line may compare plans, it stands for both"
                fault = PlanError(WITH_OR_WITHOUT, name, hint)
                self._take(first, last - first, Meaning(fault=fault))

    def _writes_nothing(self) -> None:
        """Write one token, that of reading, where a decoder embeds or ranks."""
        path = Key.INFERENCE_OUTPUT_TOKENS
        if self._task == INFER and self._is_embedder() and path not in self._values:
            self._assume(path, 1, "output 1: it embeds or ranks, which is read and not written (or say output 64)")

    def _asks_whether(self, side: str, start: int, count: int) -> bool:
        """Whether some words ask for what stands beside them: ``do i need fp8``, but not ``what gpu do i need fp8``."""
        if start < 0 or key_of(self._span(start, count)) not in vocabulary().whether[side]:
            return False
        before = [key_of(token.text) for token in self._tokens[max(start - _FARTHEST_QUERY, 0) : start]]
        if side == "behind":  # is fp8 needed, but 70b fp8 required memory
            return not _IS.isdisjoint(before)
        return vocabulary().queries.keys().isdisjoint({*before, *map("".join, pairwise(before))})

    def _release_of_context(self) -> None:
        """Take the release of a model that reads as much as the line says, as ``phi-3-medium`` of 128k."""
        name, architectures = str(self._values.get(MODEL)), self._catalog.architectures
        suffix, row = _CONTEXT.search(name), architectures.get(name)
        length = self._context or self._values.get(Key.INFERENCE_PROMPT_TOKENS, self._values.get(Key.TRAINING_SEQ_LEN))
        if suffix is None or row is None or not isinstance(length, int) or length <= (row.max_context or 0):
            return
        stem = name[: suffix.start()]
        releases = [other for other in architectures.values() if _CONTEXT.sub("", other.id) == stem]
        longer = [other for other in releases if (other.max_context or 0) >= length]
        if longer and not any(token.text.casefold().endswith(suffix[0]) for token in self._tokens):
            release = longer[0].id
            self._rename(MODEL, release)
            why = f"{release}: the release that reads {format_count(length)} tokens, where {name} reads {suffix[1]}"
            self._assume(MODEL, release, why)

    def _length_given_twice(self) -> None:
        """Make one length of the steps and the epochs of a training: those of an epoch are so many times as many.

        Steps that are as many as all samples or more are all that there are; fewer may be of anything.
        """
        epochs, samples = self._values.get(Key.TRAINING_EPOCHS), self._degree(Key.TRAINING_SAMPLES, 0)
        steps = self._values.get(Key.TRAINING_STEPS)
        if self._counts[REPEATS] > 1:
            why = f"{samples * self._counts[REPEATS]} samples: {samples}, each {self._counts[REPEATS]} times"
            has_samples = Key.TRAINING_SAMPLES in self._values
            why = why if has_samples else f"left out: {self._counts[REPEATS]} repeats; say of how many samples"
            samples *= self._counts[REPEATS]
            self._values |= {Key.TRAINING_SAMPLES: samples} if has_samples else {}
            self._assumed.append(Assumption(Key.TRAINING_SAMPLES, samples if has_samples else None, why))
        if self._counts[STEPS_OF_EPOCH]:
            self._values.pop(Key.TRAINING_EPOCHS, None)
            self._values[Key.TRAINING_STEPS] = steps = round(self._counts[STEPS_OF_EPOCH] * float(str(epochs or 1)))
            why = f"{steps} steps: {self._counts[STEPS_OF_EPOCH]} in each of {epochs or 1} epochs"
        elif steps is None or epochs is None:
            return
        elif self._are_all_steps() or (
            Key.TRAINING_SAMPLES in self._values and float(str(steps)) >= samples * float(str(epochs))
        ):
            self._values.pop(Key.TRAINING_EPOCHS)
            why = f"{steps} steps in all; left out: {epochs} epochs"
        else:
            fault = PlanError("a length given twice", f"{steps} steps and {epochs} epochs", "keep one of them")
            self._faults.append(fault)
            return
        self._assume(Key.TRAINING_STEPS, steps, why)

    def _are_all_steps(self) -> bool:
        """Whether a line says that its steps are those of all epochs: ``8 epochs = 4032 steps``, ``(1500 steps)``."""
        paths = {Key.TRAINING_STEPS, Key.TRAINING_EPOCHS}
        places = [at for at, (_, taken) in self._taken.items() if not paths.isdisjoint(taken.values)]
        marks = (self._text[: self._tokens[at].start].rstrip()[-1:] for at in places)
        is_total = any(key_of(self._span(at - 1, 1)) in vocabulary().totals for at in places if at)
        return is_total or not {"=", "("}.isdisjoint(marks)

    def _devices_of_layout(self) -> None:
        """Take as many devices as the degrees of the line make up, where it does not say how many there are.

        Those of each replica are so many times, as in ``3 replicas on 2 h100 each``.
        """
        ends = (at + count for at, (count, taken) in self._taken.items() if hardware.DEVICES in taken.values)
        replicas, named = self._degree(Key.PARALLELISM_DP), self._values.get(hardware.DEVICES)
        is_of_replica = any(self._ends_a_replica(end) or self._span(end, 2) == _OF_REPLICA for end in ends)
        others = math.prod(map(self._degree, DEGREES_OF_MODEL))
        is_counted = others == 1 and any(taken.words.startswith("replicas ") for _, taken in self._taken.values())
        is_of_replica &= is_counted or replicas * others != named  # dp 4 tp 2 8 h100 each 80gb
        if is_of_replica and replicas > 1 and isinstance(named, int) and Key.HARDWARE_PER_NODE not in self._values:
            devices = replicas * named
            self._assume(hardware.DEVICES, devices, f"{devices} devices: {named} for each of {replicas} replicas")
        devices = math.prod(map(self._degree, _DEGREES))
        is_device = self._values.get(hardware.NAME) in self._catalog.accelerators
        if hardware.DEVICES in self._values or not is_device or devices < 2:
            return
        self._assume(hardware.DEVICES, devices, f"{devices} devices, as the degrees of the line make up")

    def _replicas_of_attention(self) -> None:
        """Leave out replicas of the attention alone, which take no devices: ``tp 8 dp 8 --enable-dp-attention``."""
        tensor, replicas = self._degree(Key.PARALLELISM_TP), self._degree(Key.PARALLELISM_DP)
        if replicas > 1 and tensor % replicas == 0 and not vocabulary().inside_tensor.isdisjoint(self._keys()):
            self._values.pop(Key.PARALLELISM_DP)
            why = f"left out: {replicas} replicas of the attention, inside {tensor} devices of tensor parallelism"
            self._assumed.append(Assumption(Key.PARALLELISM_DP, None, why))

    def _memory_of_hosts(self) -> None:
        """Share the memory of a machine out among its devices, as in ``4x a10g, 768gb ram``, unless it is of each."""
        path, own = hardware.HOST_MEMORY, self._values.get(hardware.SPEC)
        figures, key = own if isinstance(own, dict) else {}, path.removeprefix(f"{hardware.SPEC}.")
        memory = self._values.get(path, figures.get(key))  # or of a device that no catalogue has
        name = str(self._values.get(hardware.NAME))
        row, machine = self._catalog.accelerators.get(name), self._catalog.instances.get(name)
        if memory is None or (row is None and machine is None):
            return
        devices = self._degree(hardware.DEVICES, 1 if machine is None else machine.sold_devices)
        fabric = None if row is None else self._catalog.fabric_of(row)
        usual = fabric.node_devices if fabric is not None and devices > fabric.node_devices > 1 else devices
        size = self._degree(hardware.PER_NODE, usual if machine is None else machine.sold_devices)
        places = ((at, at + count) for at, (count, taken) in self._taken.items() if path in taken.values)
        is_per_device = hardware.PER_NODE not in self._values and any(self._is_per_device(*place) for place in places)
        if size > 1 and not is_per_device:
            share = round(float(str(memory)) / size, 1)
            self._assume(path, share, f"host memory: {share:g} GiB for each of {size} devices of a machine")
            if figures:
                self._values[hardware.SPEC] = {**figures, key: self._values.pop(path)}

    def _ends_a_replica(self, index: int) -> bool:
        """Whether a word says that devices before it are those of each replica: nothing that each has follows."""
        behind = index + 1 + int(self._span(index + 1, 1) == "for")
        is_model = {MODEL, Key.INFERENCE_ENGINE} & self._taken.get(behind, (0, Meaning()))[1].values.keys()
        is_end = index + 1 >= len(self._tokens) or self._is_apart(index) or bool(is_model)
        return self._is_apiece(index) and is_end

    def _batches_of_devices(self) -> None:
        """Take a batch for that of a device: ``bs=2 per gpu``, or too few for all, as in ``8xa100 zero3 bs=1``."""
        for index, (count, meaning) in self._taken.items():
            end = index + count
            starts = range(end - 3, end + 1 + int(not self._is_number_at(end)))  # of 4 per gpu; per gpu; images per gpu
            behind = (key_of(self._span(start, words)) for start in starts for words in (2, 3))
            is_of_one = self._is_of_one_device(index, count) or not vocabulary().per_device.isdisjoint(behind)
            few = "" if is_of_one else self._too_few_for_all(index, count)
            if Key.TRAINING_GLOBAL_BATCH in meaning.values and (is_of_one or few):
                batch = self._values.pop(Key.TRAINING_GLOBAL_BATCH)
                values: dict[str, object] = {Key.TRAINING_MICRO_BATCH: batch}
                self._taken[index] = count, replace(meaning, words=f"micro {meaning.words}", values=values, why=few)
                self._values |= values

    def _cores_of_processor(self) -> None:
        """Refuse a part of a processor, as ``8 cores of an epyc-9654``: a plan has all of its cores."""
        words, keys = vocabulary(), [key_of(token.text) for token in self._tokens]
        for before, joint, after in zip(keys, keys[1:], keys[2:], strict=False):
            is_device = words.amounts["devices"] in map(words.amounts.get, (before, after))
            if joint in words.comparing and is_device and not words.processor.isdisjoint((before, after)):
                hint, text = "name the card, and the processor", f"{before} {joint} {after}"
                self._faults.append(PlanError("which gpu, and which processor?", text, hint))
        is_alone = self._is_without_card() and not self._asks_for_hardware()
        threads = str(self._values.get(_THREADS, 0))
        self._cores = self._cores or (int(threads) if threads.isdecimal() and not self._asks_for_hardware() else 0)
        if (self._cores or is_alone) and hardware.NAME not in self._values:
            if is_alone and (cloud := next((key for key in keys if key in words.clouds), "")):
                hint = "name it, as c7i.4xlarge or n2-standard-32"
                self._faults.append(PlanError("which machine of a provider?", f"one of {cloud} without a gpu", hint))
                return
            is_portable = any(key_of(token.text) in vocabulary().portable for token in self._tokens)
            named = processor_of_line("cpu", self._cores, self._catalog, is_portable=is_portable, is_any=True)
            name = None if named is None else named.values[hardware.NAME]
            if named is not None:
                text = count_in_words(self._cores, "core") if self._cores else "no gpu"
                self._assume(hardware.NAME, name, f"{named.why.replace('cpu', text, 1)} (or name another)")
                self._values |= {hardware.DEVICES: 1} if is_alone else {}
                self._share_of_host()
            return
        row = self._catalog.processors.get(str(self._values.get(hardware.NAME)))
        if row is not None and self._cores not in (0, row.cores, row.cores + row.efficiency_cores, row.threads):
            hint = f"leave them out, or name a machine or a processor that has {self._cores}"
            fault = PlanError("a plan has all cores of a processor", f"{self._cores} of {row.cores_words}", hint)
            self._faults.append(fault)

    def _trained_by_itself(self) -> None:
        """Refuse to train a part of a model whose training needs the rest of it, as CLIP's tower of pictures."""
        try:
            is_trained = self._task != INFER or not vocabulary().matched.isdisjoint(self._keys())
            if is_trained and MODEL in self._values:
                refuse_training(str(self._values[MODEL]), self._catalog)
        except PlanError as fault:
            hint = "say images, as embed 1M images; the tower that reads texts is not counted"
            pairs = PlanError("only pictures are read", str(self._values[MODEL]), hint)
            self._faults.append(pairs if self._task == INFER else fault)

    def _served_adapters(self) -> None:
        """Ask how many adapters are served where the line only says that there are several."""
        keys = self._keys()
        if keys & _SEVERAL and Key.INFERENCE_ADAPTERS not in self._values and "howmany" not in keys:
            self._faults.append(PlanError("how many adapters?", hint="say how many are served, as 20 adapters"))

    def _guesses_ahead(self) -> None:
        """Guess as many tokens as usual where the line says that some are guessed."""
        path, has_draft = Key.INFERENCE_NUM_SPECULATIVE_TOKENS, Key.INFERENCE_DRAFT_PARAMETERS in self._values
        is_guessed = has_draft or not self._wanted_keys().isdisjoint(vocabulary().guessing)
        if self._task == INFER and is_guessed and path not in self._values:
            self._values[path] = tokens = int(vocabulary().usual[INFER][path])
            self._assumed.append(
                Assumption(path, tokens, f"{tokens} tokens guessed before each pass (or give 4 draft tokens)")
            )

    def _accumulate(self) -> None:
        """Make the batch of a step of what each device takes, how often, and how many devices there are.

        Beside an accumulation a batch is that of a device, as training scripts have it.
        """
        if not self._counts[ACCUMULATION]:
            return
        micro_batch = self._values.get(Key.TRAINING_MICRO_BATCH) or self._values.pop(Key.TRAINING_GLOBAL_BATCH, None)
        if not isinstance(micro_batch, int) or Key.TRAINING_GLOBAL_BATCH in self._values:
            hint = "say the batch of a device too, as micro batch 2 accumulation 8, or the batch of a step alone"
            self._faults.append(PlanError("accumulation of which batch?", str(self._counts[ACCUMULATION]), hint))
            return
        row_id = self._catalog.instances.find_id(str(self._values.get(hardware.NAME, "")))
        sold = 1 if row_id is None else self._catalog.instances[row_id].sold_devices
        replicas = max(self._degree(hardware.DEVICES, sold) // math.prod(map(self._degree, DEGREES_OF_MODEL)), 1)
        batch = micro_batch * self._counts[ACCUMULATION] * replicas
        self._values |= {Key.TRAINING_MICRO_BATCH: micro_batch, Key.TRAINING_GLOBAL_BATCH: batch}
        why = f"{batch} a step: {micro_batch} of each of {replicas} replicas, {self._counts[ACCUMULATION]} times"
        self._assume(Key.TRAINING_GLOBAL_BATCH, batch, why)

    def _batch_of_tokens(self) -> None:
        """Make the batch of a step of its tokens, as ``batch 4M tokens``: so many sequences of the line's length."""
        if not self._batch_tokens:
            return
        sequence = self._values.get(Key.TRAINING_SEQ_LEN)
        if not isinstance(sequence, int):
            row_id = self._catalog.architectures.find_id(str(self._values.get(MODEL, "")))
            context = self._catalog.architectures[row_id].max_context if row_id is not None else None
            usual = int(vocabulary().usual[TRAIN]["sequence_of_a_batch"])
            sequence = min(usual, int(context or usual))
            self._values[Key.TRAINING_SEQ_LEN] = sequence
            self._assume(Key.TRAINING_SEQ_LEN, sequence, f"sequences of {sequence} tokens")
        batch = max(round(self._batch_tokens / sequence), 1)
        power = 2 ** round(math.log2(batch))
        batch = power if abs(power / batch - 1) < _SAME_BATCH else batch  # 4M tokens are 1024 sequences of 4096
        why = f"{batch} sequences a step: {format_count(batch * sequence)} tokens"
        self._assume(Key.TRAINING_GLOBAL_BATCH, batch, why)

    def _answers_to_prompts(self) -> None:
        """Make the samples of a training of its prompts and the answers drawn to each."""
        prompts = self._values.get(Key.TRAINING_SAMPLES)
        if self._group and isinstance(prompts, int):
            samples = prompts * self._group
            why = f"{samples} samples: {self._group} answers to each of {prompts} prompts"
            self._assume(Key.TRAINING_SAMPLES, samples, why)
        elif self._group:
            is_open = self._values.keys().isdisjoint({Key.TRAINING_TOKENS, Key.TRAINING_STEPS})
            how = "say how many prompts there are, as 7.5k prompts" if is_open else "left out; each is a sample"
            self._assumed.append(Assumption(Key.TRAINING_SAMPLES, None, f"{self._group} answers to each prompt: {how}"))

    def _method_of_the_framework(self) -> None:
        """Train as is usual of the framework where the line names no method, as adapters with Unsloth."""
        framework = str(self._values.get(Key.TRAINING_FRAMEWORK))
        method = vocabulary().methods_of.get(framework)
        if self._task == FINETUNE and method is not None and Key.TRAINING_METHOD not in self._values:
            self._assume(Key.TRAINING_METHOD, method, f"method: {method}, as is usual of {framework} (or say lora)")

    def _weights_of_the_engine(self) -> None:
        """Take bits of weights for the format that the engine of the line has of so many, as ``mlx 4bit``.

        Some engines serve a format where nobody names one, as Ollama does.
        """
        is_stored = format_in_name(str(self._values.get(MODEL, ""))) is not None
        if self._task == INFER and Key.INFERENCE_WEIGHTS not in self._values and not is_stored:
            for token in self._tokens:
                if (weights := vocabulary().weights_of.get(key_of(token.text))) is not None:
                    why = f"weights: {weights}, what {token.text} serves where no other is named"
                    self._assume(Key.INFERENCE_WEIGHTS, weights, why)
        if self._task == INFER and Key.INFERENCE_WEIGHTS not in self._values and self._is_quantized():
            weights = vocabulary().format_of(FEW_BITS, self._engine_of_weights())
            self._assume(Key.INFERENCE_WEIGHTS, weights, f"weights: {weights}, as quantized to 4 bits (or say 8bit)")
        formats = vocabulary().bits.get(self._engine_of_weights(), {})
        values = {key: formats[key] for token in self._tokens if (key := key_of(token.text)) in formats}
        for bits, name in [*values.items()][:1] if Key.INFERENCE_WEIGHTS in self._values else ():
            self._assume(Key.INFERENCE_WEIGHTS, name, f"weights: {name}, as its engine has {bits}")
        if (kept := str(self._values.get(Key.INFERENCE_KV_CACHE))) in formats:
            self._assume(Key.INFERENCE_KV_CACHE, formats[kept], f"cache: {formats[kept]}, as its engine has {kept}")

    def _is_quantized(self) -> bool:
        """Whether a line calls a model quantized that is published in more bits, as in ``mixtral quantized``."""
        row = self._catalog.architectures.get(str(self._values.get(MODEL, "")))
        published = self._catalog.quantizations.get((row and row.weights) or "")
        bits = None if published is None else published.bits_per_weight
        cache = vocabulary().of_cache["words"]
        empty = [at for at, taken in self._taken.items() if taken == (1, Meaning())]
        named = [at for at in empty if key_of(self._word(at)) in vocabulary().quantized]
        named = [at for at in named if cache.isdisjoint(key_of(self._word(near)) for near in range(at - 2, at + 3))]
        is_called = any(key_of(self._word(at - 1)) not in vocabulary().negations for at in named)
        return is_called and row is not None and (bits is None or bits > _FEWEST_TO_PACK)

    def _engine_of_weights(self) -> str:
        """Return the engine that the line names, else the usual one of its packed file or of its hardware."""
        engine = self._catalog.engines.find_id(named_release(str(self._values.get(Key.INFERENCE_ENGINE, "")))[0])
        name = str(self._values.get(hardware.NAME))
        is_packed = any(key_of(token.text) == "gguf" for token in self._tokens)
        device = self._catalog.accelerators.get(name)
        kind = "CPU" if name in self._catalog.processors else "" if device is None else device.vendor
        return engine or vocabulary().engines.get("gguf" if is_packed else kind, "")
