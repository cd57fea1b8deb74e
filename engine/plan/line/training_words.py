"""What a line says of a training in several words: models by role, what is offloaded, data and batches."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.hardware_words import figures_of
from capacity_tui.engine.plan.line.lexicon.task_words import METHOD, task_named
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, GIVEN_TWICE, TRAIN, Assumption, Meaning
from capacity_tui.engine.plan.line.recognition.derived_values import DEGREES_OF_MODEL
from capacity_tui.engine.plan.line.sample_words import SampleWords
from capacity_tui.engine.plan.sections import FULL
from capacity_tui.engine.units import parse_count

_PARTS = re.compile("[_=-]")  # offload_param=cpu
_FEWEST_ROWS = 1000  # Fewer may be nodes or devices
_REWARDED = ("ppo",)  # What has a critic and a reward model
_CRITIC = "critic"  # Which learns as the policy does
_REWARD = "reward"  # Of a function too, where no model is named
_WITH_ROLES = (*_REWARDED, "grpo", "dpo", "kto")
_FARTHEST_PART = 8  # Words that say what is offloaded, and to where
_ROWS, _FEATURES = f"{OWN_PARAMETERS}n", f"{OWN_PARAMETERS}p"
_KEPT = ("parameters", "optimizer", "activations")  # What is offloaded, with less that goes with it
_STAGE, _PHASE = "stage", "phase"
_OPTIMIZER_NAME = "named"  # An optimizer that is offloaded, or whose name alone stands before "on cpu"
_MESH = re.compile(r"\d{1,5} ?[x×*] ?\d{1,5}", re.IGNORECASE)  # Groups and their devices: 4x8
_BROAD = "tf32"  # Of products in 32 bits, of which a run in 16 has none


class TrainingWords(SampleWords):
    """A line whose words were recognized, and what only several of them together say of a training."""

    def _set_options(self) -> None:
        super()._set_options()
        self._pass(self._offloaded)

    def _take(self, index: int, count: int, meaning: Meaning) -> None:
        path, before = Key.TRAINING_PRECISION, self._values.get(Key.TRAINING_PRECISION)
        other = meaning.values.get(path, before)
        if before is not None and before != other and _BROAD in (before, other):
            text = f"{_BROAD}: no effect beside {other if before == _BROAD else before}"
            if before == _BROAD:
                self._values.pop(path)
                meaning = Meaning(meaning.words, meaning.values, text)
            else:
                meaning = Meaning(why=text)
        self._shorten_samples(meaning)
        super()._take(index, count, meaning)

    def _table(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize rows and features of data before devices are looked for, as ``100k x 200 v100`` of trees."""
        mark, numbers = self._word(index + 1), [self._word(index), self._word(index + 2)]
        is_table = mark in ("x", "×", "*") and all(map(settings.is_number, numbers))
        if not (is_table and settings.at_least(numbers[0], _FEWEST_ROWS)):
            return None
        paths = (Key.TRAINING_SAMPLES, f"{OWN_PARAMETERS}d_in") if self._is_of_perceptron() else (_ROWS, _FEATURES)
        if paths[0] == _ROWS and not any(self._is_algorithm(token.text) for token in self._tokens):
            return None
        values: dict[str, object] = dict(zip(paths, map(parse_count, numbers), strict=True))
        return 3, Meaning(f"{numbers[0]} rows, {numbers[1]} features", values)

    def _is_algorithm(self, word: str) -> bool:
        """Whether a word names an algorithm that is fitted."""
        meaning = models.named_model(word, self._catalog)
        family = None if meaning is None else presumed_family(str(meaning.values[models.MODEL]), self._catalog)
        return models.is_family(word) or (family is not None and family.task == FIT)

    def _counted(self, index: int) -> tuple[int, Meaning] | None:
        """Leave out which of several trainings it is, as ``stage 1 pretrain``, which is no stage of ZeRO."""
        is_run = key_of(self._word(index)) in (_STAGE, _PHASE) and self._is_number_at(index + 1)
        is_run &= self._is_free(index, 2)
        is_run = is_run and (key_of(self._word(index)) == _PHASE or task_named(self._word(index + 2)) is not None)
        if is_run and not any(key_of(token.text).startswith(vocabulary().staged) for token in self._tokens):
            return 2, Meaning(why=f"left out: {self._span(index, 2)}; a plan is one run")
        return super()._counted(index)

    def _trained_on(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize samples with the word of the task before what they are, as ``5560 training images``."""
        is_task = self._taken.get(index + 1, (0, Meaning()))[1].values.keys() == {Key.TASK}
        name = self._span(index + 2, 1)
        amount = settings.amount_named(name, self._task, self._model) if is_task and self._is_number_at(index) else None
        if amount is None or self._is_apart(index) or amount.field(TRAIN) != Key.TRAINING_SAMPLES:
            return None
        meaning = self._pair(name, self._span(index, 1), amount)
        return None if meaning is None else (1, meaning)

    # Models beside the one that is trained

    def _is_of_a_tool(self, name: str, text: str) -> bool:
        return not _says_offload(name) and super()._is_of_a_tool(name, text)

    def _flag(self, index: int, mark: str) -> tuple[int, Meaning] | None:
        return None if _says_offload(self._tokens[index].text) else super()._flag(index, mark)

    def _other_objective(self) -> None:
        """Leave out the fine-tuning from examples that goes before one from preferences, as in ``sft plus dpo``."""
        learned = self._values.get(Key.TRAINING_PREFERENCE)
        for index, (count, _) in [*self._taken.items()] if learned else ():
            text = self._span(index, count)
            if key_of(text) in vocabulary().supervised:
                self._taken[index] = count, Meaning(why=f"left out: {text}; a plan is one run, here of {learned}")

    def _find_options(self) -> None:
        self._models_of_roles()
        if self._is_of_perceptron():
            self._pass(self._listed)
            self._pass(self._widths)
        super()._find_options()

    def _models_of_roles(self) -> None:
        """Take models by their roles, as ``ppo 7b policy, 7b reward``: all are planned as large as the policy."""
        words, keys = vocabulary(), [key_of(token.text) for token in self._tokens]
        learned = next((name for key in keys if (name := words.objectives.get(key)) in _WITH_ROLES), "")
        places = (at for at, key in enumerate(keys) if key in words.roles and learned)
        wanted = (at for at in places if not self._ruling_out(at))
        roles = [at for at in wanted if key_of(self._span(at, 2)) not in words.remarks]  # reference free
        is_before = bool(roles) and self._is_size_at(roles[0] - 1) and not self._is_apart(roles[0] - 1)
        spans = [self._span_of_role(at, is_before=is_before) for at in roles]
        others = [span for span, at in zip(spans, roles, strict=True) if words.roles[keys[at]] != Key.MODEL_NAME]
        named = {
            at
            for at, key in enumerate(keys)
            if self._is_size_at(at) or models.named_model(self._tokens[at].text, self._catalog)
        }
        if others and named.issubset(at for span in others for at in span):
            first = next(at for at in roles if at in others[0])
            others[0] = range(first, others[0].stop)  # dpo llama 8b reference model
        inside = {at for span in others for at in span}
        policy = next((self._span(at, 1).casefold() for at in sorted(named) if at not in inside), "")
        if any(words.tasks.get(keys[at]) == TRAIN for span in others for at in (span.stop,) if at < len(keys)):
            return  # reward model training
        for at in (at for at in roles if at not in inside):
            self._taken[at] = 1, Meaning()
        for span in others:
            size = next((keys[at] for at in span if self._is_size_at(at)), "")
            before = keys[max(span.start - 2, 0) : span.start]
            is_joined = _CRITIC in keys[span.start : span.stop] and not words.both.isdisjoint(before[-1:])
            is_joined = is_joined and words.roles.get(before[0]) == Key.MODEL_NAME
            text = self._span(span.start, len(span))
            whole = span if is_joined else self._with_offloading(span)  # actor and critic offload
            meaning = self._role(learned, text, is_alike=not size or size in policy.split("-"))
            if whole != span and meaning.fault is None:
                meaning = Meaning(why=f"left out: {self._span(whole.start, len(whole))}; counted on the device")
            self._take(whole.start, len(whole), meaning)

    def _with_offloading(self, span: range) -> range:
        """Return the words of a model with those that offload it, as ``offload reference model`` does."""
        named, moved = vocabulary().offload, {"offload", "host"}
        start, behind = span.start, [*self._offload_kinds(span.stop)] if not self._is_apart(span.stop - 1) else []
        while start > 0 and named.get(key_of(self._span(start - 1, 1))) in moved and not self._is_apart(start - 1):
            start -= 1
        words = [named.get(key_of(self._span(at, 1))) for at in range(max(start - 1, 0), span.start)]
        is_before = "offload" in words and not {*_KEPT, "states", _OPTIMIZER_NAME}.intersection(words)
        parts = set().union(*behind)
        joint, joined = (named.get(key_of(self._span(at, 1))) for at in (span.stop, span.stop + 1))
        is_before &= not (joint == "joint" and joined in _KEPT)  # offload reference and optimizer
        is_behind = "offload" in parts and parts <= {*moved, "joint"}
        return range(start if is_before else span.start, span.stop + len(behind) * is_behind)

    def _role(self, learned: str, text: str, *, is_alike: bool) -> Meaning:
        if learned not in _REWARDED and key_of(text) == _REWARD:
            return Meaning()  # rule-based reward, reward functions
        if learned not in _REWARDED and "ref" not in text.casefold():
            why = f"left out: {text}; beside {learned.upper()} its weights and its passes come on top"
            return Meaning(why=why)
        if not is_alike:
            hint = f"{learned.upper()} is planned with all its models as large as the policy: leave the size out"
            return Meaning(fault=PlanError("a model of another size than the policy", text, hint))
        return Meaning(f"{text}: as large as the policy")

    def _is_size_at(self, index: int) -> bool:
        return 0 <= index < len(self._tokens) and models.is_size(self._tokens[index].text)

    def _span_of_role(self, at: int, *, is_before: bool) -> range:
        """Return where the model of a role stands, as ``llama 7b critic``, ``7b reward model`` and ``critic 7b``."""
        end = at + 1 + int(key_of(self._span(at + 1, 1)) in ("model", "models"))
        if not is_before:
            return range(at, end + int(self._is_size_at(end)))
        start = at - int(self._is_size_at(at - 1))
        families = models.families_of_models(self._catalog)
        return range(start - int(start < at and self._span(max(start - 1, 0), 1).casefold() in families), end)

    # Layers of a perceptron

    def _derive(self) -> None:
        self._make_layers()
        self._make_lengths()
        self._make_sequences()
        self._make_features()
        self._batch_in_one_pass()
        self._replicas_of_groups()
        super()._derive()
        self._groups_of_nodes()
        self._whole_bits()
        self._offload_of_the_framework()
        self._states_in_pages()
        self._states_of_a_rank()
        self._samples_in_a_sequence()
        self._say_what_was_tried()

    def _whole_bits(self) -> None:
        """Say that ``full bf16`` is taken for all weights in mixed precision, which others call pure."""
        spans = (self._span(at, 2) for at in range(len(self._tokens)))
        whole = next((span for span in spans if key_of(span) in vocabulary().every["whole bits"]), "")
        if whole and self._task in (TRAIN, FINETUNE) and Key.TRAINING_MASTER_WEIGHTS not in self._values:
            why = f"{whole}: mixed precision, with weights in 32 bits as well (or say pure {whole.rpartition(' ')[2]})"
            self._assumed.append(Assumption(Key.TRAINING_MASTER_WEIGHTS, None, why))

    def _groups_of_nodes(self) -> None:
        """Shard over all devices as ``fsdp`` does by itself, and within each node where the line says so: ``hsdp``."""
        framework = str(self._values.get(Key.TRAINING_FRAMEWORK))
        is_sharded = framework in vocabulary().every["sharding"] and self._degree(Key.HARDWARE_DEVICES) > 1
        if is_sharded and not {Key.PARALLELISM_ZERO, *DEGREES_OF_MODEL} & self._values.keys():
            self._assume(Key.PARALLELISM_ZERO, 3, f"{framework}: weights, gradients and states shared by all devices")
        if not self._is_sharded_in_nodes() or Key.PARALLELISM_SHARD in self._values:
            return
        if 1 < (size := self._size_of_nodes()) < self._degree(Key.HARDWARE_DEVICES):
            self._assume(Key.PARALLELISM_SHARD, size, f"shards within each node of {size} devices")

    def _size_of_nodes(self) -> int:
        row = self._catalog.accelerators.get(str(self._values.get(Key.HARDWARE_NAME)))
        fabric = None if row is None else self._catalog.fabric_of(row)
        return self._degree(Key.HARDWARE_PER_NODE, 1 if fabric is None else fabric.node_devices)

    def _mesh(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize groups that share states and the devices of each: ``hsdp 4x8``; those of a node in either order."""
        few = next((few for few in (1, 3) if _MESH.fullmatch(self._span(index, few))), 0)
        if not few or not self._is_sharded_in_nodes():
            return None
        groups, size = map(int, re.findall(r"\d+", self._span(index, few)))
        groups, size = (size, groups) if groups == self._size_of_nodes() else (groups, size)
        if (devices := self._degree(Key.HARDWARE_DEVICES, groups * size)) != groups * size:
            title, detail = f"{Key.HARDWARE_DEVICES} {GIVEN_TWICE}", f"{self._span(index, few)!r} and {devices}"
            return few, Meaning(fault=PlanError(title, detail, "keep one of them"))
        values: dict[str, object] = {Key.PARALLELISM_SHARD: size, Key.HARDWARE_DEVICES: groups * size}
        return few, Meaning(words := f"{groups} groups of {size} devices that share states", values, words)

    def _is_sharded_in_nodes(self) -> bool:
        return not self._keys().isdisjoint(vocabulary().sharded_in_nodes)

    def _replicas_of_groups(self) -> None:
        """Count the replicas of all groups that share states: ``8-way shard x 4 replicas`` makes up 32 devices."""
        size, groups = self._degree(Key.PARALLELISM_SHARD), self._degree(Key.PARALLELISM_DP)
        all_, is_open = self._degree(Key.HARDWARE_DEVICES), Key.PARALLELISM_SHARD not in self._values
        if is_open and 1 < groups < all_ and not all_ % groups and self._is_sharded_in_nodes():  # hsdp, 4 replicas
            size = all_ // groups
            self._assume(Key.PARALLELISM_SHARD, size, f"shards within each group of {size} devices")
        is_of_groups = any(taken.words.startswith("replicas ") for _, taken in self._taken.values())
        is_of_groups &= Key.HARDWARE_DEVICES not in self._values
        devices = size * groups * math.prod(map(self._degree, DEGREES_OF_MODEL))
        is_of_groups |= bool(groups % size) or self._degree(Key.HARDWARE_DEVICES) == devices
        if size > 1 and groups > 1 and is_of_groups:
            why = f"{size * groups} replicas: {groups} groups of {size} that share states"
            self._assume(Key.PARALLELISM_DP, size * groups, why)

    def _states_in_pages(self) -> None:
        """Say where states are counted of an optimizer whose pages may move, as ``paged adamw8bit``."""
        begins, optimizer = tuple(vocabulary().paged), self._values.get(Key.TRAINING_OPTIMIZER)
        is_paged = any(key_of(token.text).startswith(begins) for token in self._tokens)
        if is_paged and optimizer is not None and Key.PARALLELISM_OFFLOAD not in self._values:
            why = f"paged: states of {optimizer} counted on the device, which pages leave where memory is short"
            why = f"{why} (say optimizer offload to count them on the host)"
            self._assumed.append(Assumption(Key.TRAINING_OPTIMIZER, None, why))

    def _states_of_a_rank(self) -> None:
        """Train all weights with an optimizer of low rank, and take a rank for that of its states: ``galore r 128``."""
        row = self._catalog.optimizers.get(str(self._values.get(Key.TRAINING_OPTIMIZER)))
        if row is None or row.rank is None or self._values.get(METHOD, FULL) != FULL:
            return
        if self._task == FINETUNE:
            self._values.setdefault(METHOD, FULL)
        if (rank := self._values.pop(Key.TRAINING_ADAPTER_RANK, None)) is not None:
            self._values[Key.TRAINING_OPTIMIZER_RANK] = rank

    # Offloading

    def _offloaded(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize what is kept on the host, as ``cpu offload of params`` and ``optimizer states in ram``."""
        if self._task not in (TRAIN, FINETUNE) or self._ruling_out(index) or not self._is_free(index):
            return None
        before = figures_of(self._span(index - 1, 1)) if index else None
        if before is not None and key_of(self._span(index, 1)) in vocabulary().ram:
            return None  # 128gb ram, offload optimizer
        kinds = [*self._offload_kinds(index)]
        while kinds and kinds[-1] == {"joint"}:
            kinds.pop()
        count, parts = len(kinds), set().union(*kinds)
        names = [self._span(at, 1) for at, kind in enumerate(kinds, index) if _OPTIMIZER_NAME in kind]
        if names and (Key.HARDWARE_NAME in self._values or not parts.isdisjoint({"offload", "states", "optimizer"})):
            parts.add("optimizer")  # adam on cpu, where another device computes
        is_kept = not parts.isdisjoint(_KEPT) and not parts.isdisjoint({"host", "disk"})
        is_kept &= any(key_of(self._tokens[at].text) in vocabulary().offload_on for at in range(index, index + count))
        text, longer = self._span(index, count), self._span(max(index - 1, 0), count + min(index, 1))
        is_other = self._is_switched_off(index + count) or self._phrase(text) or self._phrase(longer)  # zero3 offload
        if is_other or not (is_kept or "offload" in parts):
            return None
        named = [settings.named_value(name, self._task, "", self._catalog) for name in names]
        values = {path: value for one in named if one is not None for path, value in one.values.items()}
        meaning = _offload(text, parts)
        return count, replace(meaning, values={**values, **meaning.values})

    def _offload_of_the_framework(self) -> None:
        """Offload parameters too where the framework knows nothing less, as FSDP, unless the line says which."""
        named = {vocabulary().offload.get(key_of(token.text)) for token in self._tokens}
        is_plain = self._values.get(Key.PARALLELISM_OFFLOAD) == "optimizer" and "optimizer" not in named
        row = self._catalog.frameworks.get(str(self._values.get(Key.TRAINING_FRAMEWORK)))
        if is_plain and row is not None and row.whole_offload:
            why = f"offload: of parameters and optimizer, as {row.name} does both (or say optimizer offload)"
            self._assume(Key.PARALLELISM_OFFLOAD, "parameters", why)

    def _offload_kinds(self, index: int) -> Iterator[set[str]]:
        """Yield what words from a place on say of offloading, as long as they do; some say several things."""
        words = vocabulary()
        for at in range(index, min(index + _FARTHEST_PART, len(self._tokens))):
            kinds = {words.offload.get(key_of(part), "") for part in _parts(self._tokens[at].text)}
            phrase = words.phrase(self._span(at, 2), TRAIN) or {}
            if at > index and phrase and Key.PARALLELISM_OFFLOAD not in phrase:
                return  # offload optimizer, grad ckpt
            if "" in kinds or not self._is_free(at) or (kinds == {"joint"} and at == index):
                return
            yield kinds
            if self._tokens[at].ends:
                return


def _parts(word: str) -> list[str]:
    return _PARTS.split(word.lstrip("-"))


def _says_offload(option: str) -> bool:
    """Whether all parts of the name of an option are words of offloading."""
    return all(key_of(part) in vocabulary().offload for part in _parts(option))


def _offload(text: str, parts: set[str]) -> Meaning:
    """Return what is offloaded, to the memory of the host."""
    title, hint = "", ""
    if "disk" in parts:
        title = "offloading to a disk is not modelled"
        hint = "say cpu offload: host memory then holds it, and the step is faster than from a disk"
    elif "activations" in parts and len(parts & set(_KEPT)) > 1:
        title, hint = "a plan offloads activations or states", "keep one of them"
    kept = next((part for part in _KEPT if part in parts), "optimizer")
    fault = PlanError(title, text, hint) if title else None
    return Meaning(f"offload of {kept}", {} if fault else {Key.PARALLELISM_OFFLOAD: kept}, fault=fault)
