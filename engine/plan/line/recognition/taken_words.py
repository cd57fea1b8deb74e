"""What was taken for what, and what that sets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from capacity_tui.engine.catalog import format_in_name, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.model_words import is_size, resembling_model
from capacity_tui.engine.plan.line.lexicon.quantities import counted_start
from capacity_tui.engine.plan.line.lexicon.similarity import ONE_OF, joined_names
from capacity_tui.engine.plan.line.lexicon.task_words import METHOD, TASK, is_of_serving, is_of_training, task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, GIVEN_TWICE, INFER, TRAIN, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.machine_words import MachineWords
from capacity_tui.engine.plan.names import UNNAMED
from capacity_tui.engine.units import parse_count, parse_quantity

_FARTHEST_TRIED = 3  # Words between what says that something was tried and that
_FARTHEST_PRESENT = 6  # Words from a number of users to what says that these are there at once
_NOT_WANTED = "a line says what is wanted, not what is not"
_WEIGHTS = (".bin", ".gguf", ".safetensors")  # What names of files of weights end in
FULL, _ANY_ADAPTER, _HOURS = "full", frozenset({"adapter", "peft", "usepeft"}), frozenset({"hours", "hrs"})
_PACKED, _SEVERAL = "qlora", 2
_COUNT_OR_PLURAL = re.compile(r"^\d+\s*[x×*]?\s*|s$", re.IGNORECASE)  # 8x a100, a100s
_SIZE_IN_ID, _MEMORY = re.compile(r"-\d+gb$"), re.compile(r"\d\s?gb?\b", re.IGNORECASE)
_TIMES = re.compile(r"[x×*](\d+)", re.IGNORECASE)  # x2
_LOADS = (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_USERS, Key.INFERENCE_CONCURRENCY)


class TakenWords(MachineWords):
    """A line whose words are taken, the pass of one kind after another."""

    def _pass(self, recognize: Callable[[int], tuple[int, Meaning] | None]) -> None:
        """Try what was not recognized so far."""
        index = 0
        while index < len(self._tokens):
            match = None if index in self._taken else recognize(index)
            if match is not None:
                self._take(index, *match)
            index += self._taken[index][0] if index in self._taken else 1

    def _take(self, index: int, count: int, meaning: Meaning) -> None:
        if meaning.values.keys() == {TASK} and self._is_past(self._span(index, count)):
            meaning = Meaning("a trained model")
        tasks = {self._values.get(TASK), meaning.values.get(TASK)} - {None}
        if tasks == {TRAIN, FINETUNE} or (FIT in tasks and len(tasks) > 1):  # "train a LoRA", "does it fit"
            self._values.pop(TASK)
            task = FINETUNE if FIT not in tasks else next(iter(tasks - {FIT}))
            meaning = replace(meaning, values={**meaning.values, TASK: task})
        ruled_out = self._ruling_out(index) or self._ruling_out_as_well(index, count, meaning)
        behind = {key_of(self._span(index + count, words)) for words in (1, 2, 3)}
        if meaning.values and not vocabulary().measured["of parts"].isdisjoint(behind):
            meaning = Meaning(fault=PlanError("how many in all?", self._span(index, count + 2), "give the total"))
        if not vocabulary().unsupported.isdisjoint(behind):
            meaning = Meaning(why=f"left out: {self._span(index, count)}")
        if meaning.values and meaning.fault is None and ruled_out:
            text = f"{ruled_out} {self._span(index, count)}"
            fault = PlanError(_NOT_WANTED, repr(text)[:60], "say what you want instead, or leave it out")
            self._ruled_out_values.append((set(meaning.values), fault))
            self._excluded |= {index + count} if hardware.NAME in meaning.values else set()
            meaning = Meaning()
        named = {hardware.NAME, Key.MODEL_NAME, Key.INFERENCE_ENGINE}
        if named & meaning.values.keys() and self._is_given_up(index):
            meaning = Meaning(why=f"left out: {self._span(index, count)}")
        meaning = self._users_present(index, self._without_size_of_nodes(self._host(index, meaning)))
        meaning = self._modules_of_memory(index, count, meaning)
        meaning = self._latency_meant(index, count, meaning)
        meaning = self._added(index, self._at_peak(index, count, self._of_replicas(meaning)))
        is_one = meaning.values in ({Key.INFERENCE_REQUESTS: 1}, {Key.TRAINING_STEPS: 1})  # a single request takes 8 s
        verb = index + count + int(self._is_apiece(index + count))
        verb += int(key_of(self._word(verb)) in vocabulary().measured["judging"])  # 1 step each is taking 300 s
        if is_one and key_of(self._word(verb)) in vocabulary().measured["taking"]:
            meaning = Meaning(self._span(index, count))
        meaning = self._file_of_named(self._span(index, count), meaning)
        meaning = self._named_again(self._span(index, count), self._wrapped(index, count, meaning))
        for path, value in meaning.values.items():
            is_one_more = path == hardware.DEVICES and self._is_one_more(index, meaning)
            if path in self._values and self._values[path] != value and meaning.fault is None and not is_one_more:
                text = self._span(index, count)
                detail = f"{text!r} and {self._values[path]}"
                hint = vocabulary().twice.get(path, "keep one of them")
                meaning = Meaning(fault=PlanError(f"{path} {GIVEN_TWICE}", detail, hint))
        self._values.update(meaning.values)
        if meaning.fault is not None and self._span(index, count) not in self._unknown:
            self._faults.append(meaning.fault)
        self._taken[index] = count, meaning

    def _named_once_more(self, index: int) -> tuple[int, Meaning] | None:
        """Pass over the name of a model that was read before, as the second ``llama 3`` of a line."""
        named = ((at, count) for at, (count, taken) in self._taken.items() if Key.MODEL_NAME in taken.values)
        names = ((key_of(self._span(at, count)), count) for at, count in named if self._is_free(index, count))
        return next(((count, Meaning()) for name, count in names if key_of(self._span(index, count)) == name), None)

    def _named_again(self, text: str, meaning: Meaning) -> Meaning:
        """Take a name alone for the hardware that was named with its memory: ``2x A100 40GB, how many A100s``."""
        first, second = (str(values.get(hardware.NAME, "")) for values in (self._values, meaning.values))
        if not first or second in ("", first) or _MEMORY.search(text):
            return meaning
        is_bare = key_of(_COUNT_OR_PLURAL.sub("", text)) == first.split("-")[0]
        if not is_bare and _SIZE_IN_ID.sub("", second) != _SIZE_IN_ID.sub("", first):
            return meaning
        return replace(meaning, values={path: value for path, value in meaning.values.items() if path != hardware.NAME})

    def _file_of_named(self, text: str, meaning: Meaning) -> Meaning:
        """Take a file of the model that is named for its weights: ``llama 7b -m ./models/7B/ggml-model-q4_0.bin``."""
        named, path = str(self._values.get(Key.MODEL_NAME, "")), Key.INFERENCE_WEIGHTS
        is_file = bool(named) and Key.MODEL_NAME in meaning.values and text.casefold().endswith(_WEIGHTS)
        sizes = [part.casefold() for part in re.split(r"[/_-]", text) if is_size(part)]
        if not is_file or "/" not in text or any(size not in named.split("-") for size in sizes):
            return meaning
        weights = format_in_name(text) if self._values.get(TASK, INFER) == INFER else None
        is_open = weights is not None and path not in self._values
        why = f"{text}: taken for a file of {named}"
        return Meaning(f"weights {weights}" if is_open else "", {path: weights} if is_open else {}, why)

    def _is_past(self, text: str) -> bool:
        """Whether a word says what was done with a model that is served: ``our fine-tuned 8b for 60 users``."""
        if key_of(text) not in vocabulary().participles:
            return False
        words = [token.text for token in self._tokens]
        named = [(task_named(word) or Meaning()).values.get(TASK) for word in words]
        is_served = INFER in named or any(is_of_serving(word, self._catalog) for word in words)
        others = (word for word in words if not (word[:1].isdigit() or key_of(word) in vocabulary().participles))
        return is_served and not any(is_of_training(word, self._catalog) for word in others)

    def _modules_of_memory(self, index: int, count: int, meaning: Meaning) -> Meaning:
        """Take modules of memory for the host's: ``RAM 2x32GB``, ``64GB RAM (2x32GB)``."""
        devices, memory = (meaning.values.get(path) for path in (hardware.DEVICES, f"{hardware.SPEC}.memory_mib"))
        is_next = hardware.figures_of(self._word(index + count + 1)) is not None  # 2x24gb ram 64gb
        nearby = {key_of(self._word(index - 1)), key_of("" if is_next else self._word(index + count))}
        is_host = hardware.NAME not in meaning.values and not vocabulary().ram.isdisjoint(nearby)
        if not (is_host and isinstance(devices, int) and isinstance(memory, int)):
            return meaning
        total = devices * memory / 1024
        return Meaning(f"{total:g}GB of host memory", {hardware.HOST_MEMORY: total})

    def _latency_meant(self, index: int, count: int, meaning: Meaning) -> Meaning:
        """Take a latency too short for a whole answer for that to its first token: ``llama 8b, latency < 500ms``."""
        words, most = vocabulary(), str(meaning.values.get(Key.INFERENCE_REQUEST_SECONDS, ""))
        keys = {key_of(token.text) for token in self._tokens[index : index + count]}
        if most and keys & words.measured["judging"] and self._is_judged():  # latency is 5 s, too slow
            return Meaning(why=f"left out: {self._span(index, count)}, as measured")
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        names = (token.text.partition("<")[0] for token in self._tokens[index : index + count])
        is_bare = any(settings.amount_of(name) == words.amounts["latency"] for name in names)
        is_answer = row is not None and row.kind == "decoder"
        if not (most and is_bare and is_answer) or parse_quantity(most, "s") >= words.bounds["seconds of an answer"]:
            return meaning
        why = f"latency {most}: that to the first token (or say tpot 50ms for each further one, or e2e 8s of all)"
        return Meaning(f"time to first token {most}", {Key.INFERENCE_TTFT_SECONDS: most}, why)

    def _added(self, index: int, meaning: Meaning) -> Meaning:
        """Add the length of a part of a prompt to that of another: ``60 tokens each + 150 tok prompt``."""
        path, joint = Key.INFERENCE_PROMPT_TOKENS, self._span(index - 1, 1) if index else ""
        lengths = (self._values.get(path), meaning.values.get(path))
        if joint not in vocabulary().both or not all(isinstance(length, int) for length in lengths):
            return meaning
        whole = sum(length for length in lengths if isinstance(length, int))
        why = f"{whole} tokens: {lengths[0]} and {lengths[1]}"
        self._values[path] = whole
        return replace(meaning, values={**meaning.values, path: whole}, why=why)

    def _at_peak(self, index: int, count: int, meaning: Meaning) -> Meaning:
        """Take the load of the busiest time where the usual one is named too: ``average 5 rps, peak 20 rps``."""
        path = next((path for path in _LOADS if path in meaning.values and path in self._values), None)
        if path is None or meaning.values[path] == self._values[path]:
            return meaning
        loads = [float(str(values[path])) for values in (self._values, meaning.values)]
        words, ends = vocabulary(), (index - 2, index - 1, index + count, index + count + 1)
        near = {at: key_of(self._span(at, 1)) for at in ends if 0 <= at < len(self._tokens)}
        is_usual = loads[1] < loads[0] and not (words.averages - words.joints).isdisjoint(near.values())
        is_peak = loads[1] > loads[0] and not words.peaks.isdisjoint(near.values())
        if not (is_peak or is_usual):
            return meaning
        peak = (meaning.values if is_peak else self._values)[path]
        empty = (1, Meaning())
        named = [at for at, key in near.items() if key in words.peaks and self._taken.get(at, empty) == empty]
        self._taken |= {at: (1, Meaning("peak")) for at in named}
        self._assume(path, peak, f"peak: {peak}, where {min(loads):g} are usual")
        return Meaning(self._span(index, count))

    def _of_replicas(self, meaning: Meaning) -> Meaning:
        """Take devices that make up all with the replicas before them for one of these: ``8 a100, 2 replicas of 4``."""
        few, devices = meaning.values.get(hardware.DEVICES), self._values.get(hardware.DEVICES)
        replicas = self._degree(Key.PARALLELISM_DP)
        if not isinstance(few, int) or replicas < _SEVERAL or few == devices or few * replicas != devices:
            return meaning
        values = {path: value for path, value in meaning.values.items() if path != hardware.DEVICES}
        if self._values.keys().isdisjoint({Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP}):
            values[Key.PARALLELISM_TP] = few
        return replace(meaning, values=values, why=f"{few} devices of each of {replicas} replicas")

    def _users_present(self, index: int, meaning: Meaning) -> Meaning:
        """Take those who are there at once for the users where all of them are named too: ``300 staff, 30 online``."""
        users, others = meaning.values.get(Key.INFERENCE_USERS), self._values.get(Key.INFERENCE_USERS)
        if not (isinstance(users, int) and isinstance(others, int) and users != others):
            return meaning
        some = min(users, others)
        places = (at for at, (_, taken) in self._taken.items() if taken.values.get(Key.INFERENCE_USERS) == some)
        at = index if users == some else next(places, index)
        around = self._tokens[max(at - 1, 0) : at + _FARTHEST_PRESENT]
        if vocabulary().present.isdisjoint(key_of(token.text) for token in around):
            return meaning
        self._assume(Key.INFERENCE_USERS, some, f"{some} users: those there at once, of {max(users, others)}")
        return replace(meaning, values={})

    def _are_users(self, index: int) -> bool:
        """Whether a word is of users whose number stands before it, as in ``5 users at once, 8k ctx``."""
        amount = settings.amount_of(self._span(index, 1)) if index > 0 else None
        return amount is not None and amount.field(INFER) == Key.INFERENCE_USERS and self._is_number_at(index - 1)

    def _is_named_device(self, index: int) -> bool:
        """Whether a number is the name of a device, with the word behind it or without: ``3090``, ``7900 xtx``."""
        names = (hardware.named_hardware(self._span(index, few), self._catalog) for few in (1, 2))
        return any(name is not None and hardware.DEVICES not in name.values for name in names)

    def _is_of_name(self, index: int) -> bool:
        """Whether a number ends the name before it: ``llama 3 batch 4``, ``zero 3 mbs 2``, ``flash attention 2``."""
        before = self._span(index - 1, 1) if index else ""
        named = resembling_model(f"{before}-{self._word(index)}", self._catalog) if before.isalpha() else None
        model = "" if named is None else str(named.values[Key.MODEL_NAME])
        is_model = re.match(rf"{re.escape(f'{before}-{self._word(index)}')}(?![\dbx])", model, re.I) is not None
        of_stage = Key.PARALLELISM_ZERO in vocabulary().fields.get(key_of(before), ())
        is_stage = of_stage and not self._ruling_out(index - 1)
        phrases = (self._span(index - few, few + 1) for few in (1, 2) if few <= index)
        is_phrase = any(vocabulary().phrase(phrase, TRAIN) is not None for phrase in phrases)
        return (is_model or is_stage or is_phrase) and not self._is_apart(index - 1)

    def _say_what_was_tried(self) -> None:
        """Say of settings that a line tells to have been tried that they are planned for: ``tried awq, still oom``."""
        named = {TASK, METHOD, Key.MODEL_NAME, hardware.NAME, hardware.DEVICES}
        for at, (count, meaning) in self._taken.items():
            keys = [key_of(token.text) for token in self._tokens[max(at - _FARTHEST_TRIED, 0) : at] if not token.ends]
            is_tried = not vocabulary().measured["tried"].isdisjoint(keys) and meaning.values.keys() - named
            if is_tried and not meaning.why:
                why = f"{self._span(at, count)}: tried, and planned for; leave it out to see the plan without"
                self._assumed += [Assumption(path, value, why) for path, value in meaning.values.items()]

    def _joined(self, index: int) -> tuple[int, Meaning] | None:
        """Refuse several names of a kind as one word, as ``t4/l4``, which a line may compare."""
        text = self._span(index, 1)
        hint = "keep one of them, or say both as A vs B"
        return (1, Meaning(fault=PlanError(ONE_OF, text, hint))) if joined_names(text, self._catalog) else None

    def _packed_base(self, text: str) -> Meaning | None:
        """Take few bits of a base that adapters are trained on for QLoRA, as in ``lora 4bit``."""
        is_base = settings.known_value(text, Key.TRAINING_QUANTIZATION, self._catalog) is not None
        if is_base and settings.known_value(text, Key.TRAINING_PRECISION, self._catalog) is not None:
            return self._base_of_network(text)
        is_base |= key_of(text) in vocabulary().formats
        if self._task != FINETUNE or self._values.get(METHOD) == _PACKED or not is_base:
            return None
        base = settings.named_value(text, FINETUNE, _PACKED, self._catalog)
        if base is None or Key.TRAINING_QUANTIZATION not in base.values:
            return None
        if self._values.get(METHOD) == FULL:
            hint = "say qlora, or leave it out"
            return Meaning(fault=PlanError("full fine-tuning trains weights of 16 bits or more", text, hint))
        self._values.pop(METHOD, None)
        why = f"{text}: adapters on packed weights are QLoRA"
        return Meaning(base.words, {METHOD: _PACKED, **base.values}, why)

    def _base_of_network(self, text: str) -> Meaning | None:
        """Take a format for that of the base of adapters of images, as fp8 of Flux; elsewhere it is of the products."""
        network, path = self._catalog.networks.get(str(self._values.get(Key.MODEL_NAME))), Key.TRAINING_QUANTIZATION
        is_adapted = self._task == FINETUNE and self._values.get(METHOD) not in (None, "full")
        if not is_adapted or network is None or not network.is_sampled:
            return None
        why = f"{text}: the frozen base, as tools of such models have it (or say training.precision={text})"
        return Meaning(f"base {text}", {path: settings.known_value(text, path, self._catalog)}, why)

    def _too_few_for_all(self, index: int, count: int) -> str:
        """Return why a batch is of each device: replicas need a sequence each; empty for others."""
        name = self._span(index, count)
        shards = math.prod(map(self._degree, (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP)))
        is_split = shards > 1 and self._values.get(Key.PARALLELISM_ZERO, 0) in (0, "0")
        replicas = self._degree(Key.PARALLELISM_DP, 1 if is_split else self._degree(hardware.DEVICES) // shards)
        is_bare = "".join(filter(str.isalpha, key_of(name))) in vocabulary().bare_batches
        is_bare &= key_of(self._span(index + count, 1)) not in vocabulary().totals
        is_few = is_bare and self._degree(Key.TRAINING_GLOBAL_BATCH) < replicas
        return f"{name}: of each device, as {replicas} replicas need as many" if is_few else ""

    def _is_job(self, value: str) -> bool:
        """Whether so many tokens are more than any context that the line can mean: those of many requests."""
        row = self._catalog.architectures.get(str(self._values.get(Key.MODEL_NAME)))
        at = next((at for at, token in enumerate(self._tokens) if token.text == value), 0)
        behind = {key_of(token.text) for token in self._tokens[at + 1 : at + 4]}
        amounts = (vocabulary().amounts.get(key) for key in behind)
        is_length = any(amount is not None and amount.name == settings.SEQUENCE for amount in amounts)
        longest = max(row.max_context or 0 if row else 0, int(vocabulary().fewest_tokens))
        return not is_length and settings.at_least(value, longest + 1)

    def _is_sample(self, index: int) -> bool:
        """Whether a word is of what a model is trained on one by one: sequences or samples, and no dataset."""
        word = self._span(index, 1)
        amount = settings.amount_of(word)
        if amount is None:
            return False
        is_some = amount.field(TRAIN) == Key.TRAINING_SAMPLES and word.casefold().endswith("s")
        return is_some or settings.SEQUENCE in (amount.name, amount.leading)

    def _same_value(self, text: str) -> Meaning | None:
        """Recognize names of one value with hyphens between, as ``int4-awq``."""
        named = [settings.named_value(part, self._task, "", self._catalog) for part in text.split("-")]
        first = named[0] if len(named) > 1 else None
        is_one = first is not None and all(part is not None and part.values == first.values for part in named)
        return first if is_one else None

    def _is_trained_elsewhere(self, index: int) -> bool:
        """Whether another word than the one at a place is of training."""
        others = [token.text for at, token in enumerate(self._tokens) if at != index and token.text[-1] not in "bB"]
        tasks = {meaning.values.get(TASK) for word in others if (meaning := task_named(word)) is not None}
        return bool(tasks & {TRAIN, FINETUNE}) or any(is_of_training(word, self._catalog) for word in others)

    def _is_asked_how_many(self, index: int) -> bool:
        """Whether words just before a place ask how many there are of what stands behind it, or for the most of it."""
        queries, before = vocabulary().queries, range(max(index - 3, 0), index - 1)
        is_many = any(queries.get(key_of(self._span(at, 2))) == "many" for at in before)
        return is_many or any(queries.get(key_of(self._span(at, 1))) == "most" for at in before)

    def _replicas(self, index: int) -> tuple[int, Meaning] | None:
        """Take what a degree of the model is multiplied by for replicas, as in ``TP=4 x2``."""
        match = _TIMES.fullmatch(self._tokens[index].text)
        before = [taken.values for start, (count, taken) in self._taken.items() if start + count == index]
        if match is None or not any(map(settings.is_degree, (path for values in before for path in values))):
            return None
        return 1, Meaning(f"replicas {match[1]}", {Key.PARALLELISM_DP: int(match[1])}, f"{match[0]}: replicas")

    def _tokens_before(self, text: str) -> int:
        return next(at for at, token in enumerate(self._tokens) if token.text == text)

    def _is_of_degree(self, index: int) -> bool:
        """Whether a word is of the name of a degree, whatever it alone says: ``8-way data parallel``, ``ep 8``."""
        text, fields = self._tokens[index].text.partition("=")[0], vocabulary().fields
        is_last = not self._is_number_at(index - 1) and any(map(self._is_number_at, (index + 1, index + 2)))
        glued = settings.glued(text) or (text if is_last or text != self._tokens[index].text else "",)
        names = (glued[0], self._span(max(index - 1, 0), 2), self._span(index, 2))
        return any(settings.is_degree(path) for name in names for path in fields.get(key_of(name), ()))

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

    def _refusal(self, words: str) -> str | None:
        """Return what to say in place of what no plan can follow; ``step 3`` is a step, and so is step3 of a model."""
        is_step = settings.is_numbered(key_of(words)) and (" " in words or Key.MODEL_NAME in self._values)
        return None if is_step else vocabulary().refusal(words)

    def _beneath(self, index: int) -> tuple[int, Meaning] | None:
        """Pass over what another word of the line says in particular, as in ``pytorch fsdp`` and ``adapter: qlora``."""
        methods = vocabulary().methods
        named = {methods.get(key_of(token.text)) for token in self._tokens} - {None, FULL}
        is_any = key_of(self._tokens[index].text) in _ANY_ADAPTER
        is_any |= settings.amount_of(self._span(index, 2).partition("=")[0]) is not None  # lora rank 64 qlora
        if is_any and key_of(self._tokens[index].text) in methods and len(named) > 1:
            return 1, Meaning()
        if self._catalog.frameworks.find_id(self._tokens[index].text) != UNNAMED:
            return None
        others = {self._catalog.frameworks.find_id(token.text) for token in self._tokens}
        return (1, Meaning()) if others - {None, UNNAMED} else None

    def _device_hours(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize hours that devices make up together, as in ``3072 H100 hours``."""
        end = next((at for at in range(index + 1, index + 4) if key_of(self._span(at, 1)) in _HOURS), index)
        is_one = end > index and not any(token.ends for token in self._tokens[index:end])  # on 4 L4s, hours?
        number, name = self._tokens[index].text, self._span(index + 1, end - index - 1)
        number = str(parse_count(number)) if number[-1:] in "kK" and settings.is_number(number) else number
        match = hardware.named_hardware(f"{number} {name}".rstrip(), self._catalog) if is_one else None
        is_asked = end > index and "?" in self._text[self._tokens[end].end :][:2]
        is_asked |= counted_start(number) != ""  # bert on 8xV100 hours
        if match is None or hardware.DEVICES not in match.values or is_asked:
            return None
        self._hours_of_devices = float(str(match.values[hardware.DEVICES]))
        named: dict[str, object] = {hardware.NAME: match.values[hardware.NAME]}
        return end + 1 - index, Meaning(self._span(index, end + 1 - index), named)
