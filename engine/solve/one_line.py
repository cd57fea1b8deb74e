"""The one line that says a plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, counted, key_of, load_catalog
from capacity_tui.engine.errors import CapacityError, Place, PlanError, refuse_all
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.estimate.serving import released_format, vendor_of
from capacity_tui.engine.keys import JOB_LIMITS, ON_HOST, Key
from capacity_tui.engine.models import find_known_model
from capacity_tui.engine.plan import DETECTED, Assumption, HardwareSection, Plan, edited
from capacity_tui.engine.plan.line import FINETUNE, FIT, INFER, TRAIN, Asked, OneLine, vocabulary
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.answers import LargestModel, largest_model, open_plan, usual_models
from capacity_tui.engine.solve.idle_words import idle_words
from capacity_tui.engine.solve.line_job import job_words, rent_words
from capacity_tui.engine.solve.line_memory import OF_LAYERS, is_asked_for_memory, layers_asked, memory_words
from capacity_tui.engine.solve.modes.modes import with_placeholders
from capacity_tui.engine.units import format_count, parse_quantity

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

_MODEL, _HARDWARE, _OF_HARDWARE = Key.MODEL_NAME, Key.HARDWARE_NAME, "hardware."
_LATENCIES = (Key.INFERENCE_TTFT_SECONDS, Key.INFERENCE_TPOT_SECONDS, Key.INFERENCE_REQUEST_SECONDS)
_WEIGHTS, _FEWEST_BITS = Key.INFERENCE_WEIGHTS, "4bit"
_LIMITED = {figure: limit for word, limit in JOB_LIMITS.items() for figure in (word, limit.served)}
"""What limits a whole job, by the figures that lines say it of."""

_TOKENS, _EPOCHS, _METHOD = Key.TRAINING_TOKENS, Key.TRAINING_EPOCHS, Key.TRAINING_METHOD
_SAMPLER_STEPS = "sampler_steps"  # What models that draw have


@dataclass(frozen=True, slots=True)
class LinePlan:
    """The plan that a line says."""

    plan: Plan
    assumptions: tuple[Assumption, ...]  # what nobody said
    remarks: tuple[str, ...] = ()  # what to know of words that the plan cannot follow
    readings: tuple[str, ...] = ()  # what numbers were taken to count
    asked: Asked | None = None  # what the line asks that the plan does not say; None where the plan is all

    @property
    def assumed(self) -> tuple[str, ...]:
        """What nobody said, in words."""
        return (*self.remarks, *self.readings, *dict.fromkeys(entry.why for entry in self.assumptions))


def plan_of_line(
    line: OneLine,
    machine: Machine | None = None,
    hardware: HardwareSection | None = None,
    catalog: Catalog | None = None,
    *,
    tries_hardware: bool = False,
) -> LinePlan:
    """Return the plan that a line says.

    Args:
        hardware: what is planned for where the line names none; this machine by default.
        tries_hardware: whether others are tried in place of hardware that the line does not name.

    Raises:
        PlanError: a word was not understood, or the words contradict each other; ``further`` has the other faults.
    """
    refuse_faults(line)
    facts = catalog or load_catalog()
    values, assumed = {**dict(_limited(line)), **line.values}, list(line.assumptions)
    is_open = not line.has(_HARDWARE) and (tries_hardware or (line.asked is not None and line.asked.solve == _HARDWARE))
    if not line.has(_HARDWARE):
        here = hardware or HardwareSection()
        named = {path: value for path, value in values.items() if path.startswith("hardware.")}
        values = {"hardware": here, **{path: value for path, value in values.items() if path not in named}, **named}
        devices = f"{here.devices} x " if here.devices else ""
        _refuse_without_card(line, None if is_open or here.name != DETECTED else machine)
        why = _why_here(machine) if here.name == DETECTED else f"on {devices}{here.name}, as before"
        if not is_open:
            assumed.append(Assumption(_HARDWARE, here.name, why))
    if line.asked is not None and line.asked.solve == Key.INFERENCE_USERS:
        values[Key.INFERENCE_USERS] = 1  # to begin with: the pause between their requests is of somebody's
    for entry in (*_length(line, facts), *_pace(line)):
        values[entry.key] = entry.value
        assumed.append(entry)
        if entry.key in (_TOKENS, Key.TRAINING_SAMPLES):
            values.pop(_EPOCHS if entry.key == _TOKENS else _TOKENS, None)  # each is counted in the other
    if line.task == FIT and not line.has(_MODEL):
        hint = "name an algorithm, such as xgboost_like or kmeans"
        raise PlanError("no algorithm named", hint=hint, place=Place(field=_MODEL))
    if _takes_all_of_the_context(line):
        del values[Key.INFERENCE_PROMPT_TOKENS]
    plan = edited(open_plan(line.task), {_MODEL: usual_models(facts)[-1], **values}, facts).plan
    line = replace(line, asked=line.asked or layers_asked(line, plan, facts))
    asked = "" if line.asked is None else line.asked.solve
    if not line.has(Key.INFERENCE_ENGINE) and (guess := _usual_engine(plan, machine, facts, asked, is_open=is_open)):
        engine, where = guess
        plan = edited(plan, {Key.INFERENCE_ENGINE: engine}, facts).plan
        assumed.append(Assumption(Key.INFERENCE_ENGINE, engine, f"engine: {engine}, usual for {where}"))
    if line.asked is not None and line.asked.solve == _MODEL and line.task == INFER and not line.has(_WEIGHTS):
        weights = vocabulary().format_of(_FEWEST_BITS, plan.inference.engine)
        plan = edited(plan, {_WEIGHTS: weights}, facts).plan
        assumed.append(
            Assumption(_WEIGHTS, weights, f"weights in {weights}, as the largest are run (or give q8 or bf16)")
        )
    if not line.has(_MODEL):
        name, why = _usual_model(line, plan, machine, facts)
        plan = edited(plan, {_MODEL: name}, facts).plan
        if asked != _MODEL:
            assumed.append(Assumption(_MODEL, name, why))
    if asked in (_HARDWARE, Key.HARDWARE_DEVICES) and line.task == FINETUNE and not line.has(_METHOD):
        why = "all weights are trained, or adapters where only they fit (or say full, lora or qlora)"
        assumed.append(Assumption(_METHOD, None, why))
    plan, shorter = _within_context(line, plan, facts)
    plan, paced = _as_people_read(line, plan, facts)
    assumed += [*shorter, *paced, *_settings_of_the_model(line, plan)]
    memory = memory_words(line, plan, facts) if is_asked_for_memory(line) else ()
    remarks = (
        *memory,
        *job_words(line, plan, facts),
        *rent_words(line, plan, facts),
        *line.remarks,
        *idle_words(line, plan, facts),
    )
    return LinePlan(plan, tuple(assumed), remarks, line.readings, line.asked)


def _limited(line: OneLine) -> Iterator[tuple[str, object]]:
    """Yield what a line says must hold of the whole job, as fields of its plan."""
    for text in line.limits:
        figure, _, value = text.partition("<=")
        yield _LIMITED[figure].field, parse_quantity(value, _LIMITED[figure].unit)


def _refuse_without_card(line: OneLine, machine: Machine | None) -> None:
    """Ask for the card of an algorithm that is to run on one where this machine has none, as ``xgboost gpu_hist``."""
    cards, words = vocabulary().every["of a card"], vocabulary().processor
    keys = {key: text for text in re.findall(r"\w+", line.text) if (key := key_of(text)) in cards | words}
    is_bare = line.task == FIT and machine is not None and not machine.accelerators
    if is_bare and keys and words.isdisjoint(keys):
        hint = "name it, as on a 3090: this machine has none; or leave it out, for a plan on the processor"
        raise PlanError("which gpu?", next(iter(keys.values())), hint)


def _why_here(machine: Machine | None) -> str:
    """Return what is said of a plan for this machine, which may have nothing that most models run on."""
    if machine is None or machine.accelerators:
        return "on this machine"
    return "on this machine, which has no accelerator (name one, or ask for the cheapest gpu)"


def changed_by_line(plan: Plan, line: OneLine, catalog: Catalog | None = None) -> Plan:
    """Return a plan changed by what a line says; other hardware takes the place of all that was said of hardware.

    Raises:
        PlanError: a word was not understood, or does not suit the plan.
    """
    refuse_faults(line)
    hardware_values = {path: value for path, value in line.values.items() if path.startswith(_OF_HARDWARE)}
    if not line.has(_HARDWARE):
        return edited(plan, line.values, catalog).plan
    section = {path.removeprefix(_OF_HARDWARE): value for path, value in hardware_values.items()}
    rest = {path: value for path, value in line.values.items() if path not in hardware_values}
    return edited(plan, {**rest, "hardware": section}, catalog).plan


def refuse_faults(line: OneLine) -> None:
    """Check that a line was understood; raises PlanError if it was not; ``further`` has what else was not."""
    refuse_all(line.faults)


def _usual_engine(
    plan: Plan, machine: Machine | None, catalog: Catalog, asked: str, *, is_open: bool
) -> tuple[str, str] | None:
    """Return the engine that usually serves a plan's language model, and what it is usual for; None for other plans.

    Args:
        asked: the field that is solved for; empty where the plan is all.
        is_open: whether its hardware is asked for, most of which is of the first maker that lists offer.
    """
    if plan.task != INFER:
        return None
    try:
        resolved = resolve_plan(with_placeholders(plan, catalog), catalog, machine)
        name = plan.inference.weights or released_format(plan.model, catalog)[0]
        weights = catalog.quantizations.find(resolved.plan.inference.weights_format if name == AUTO else name)
    except CapacityError:
        return None
    if resolved.shape is None or not resolved.shape.is_decoder:
        return None
    maker = vocabulary().makers[0] if is_open else vendor_of(resolved.cluster.device, catalog)
    row = None if is_open else catalog.accelerators.get(resolved.cluster.device.id)
    has_layers = plan.is_split_with_host or asked in ON_HOST
    kinds = (
        (OF_LAYERS if has_layers else None, f"with {OF_LAYERS}"),
        (weights.family, f"of {weights.family} weights"),
        (None if row is None else row.generation, f"on {row.name if row else ''}"),
        (maker, f"on {maker}"),
    )
    usual = ((vocabulary().engines.get(kind or ""), f"a model {where}") for kind, where in kinds)
    return next(((engine, where) for engine, where in usual if engine is not None), None)


def _usual_model(line: OneLine, plan: Plan, machine: Machine | None, catalog: Catalog) -> tuple[str, str]:
    """Return the model of a line that names none, and why: the largest for its hardware, else a usual one for any."""
    if line.asked is not None and line.asked.solve == _HARDWARE:
        name = vocabulary().models[0]
        return name, f"{name}, a usual model (or name another, as llama-3.1-70b)"
    models = line.asked.models if line.asked is not None and line.asked.models else usual_models(catalog)
    largest = largest_model(plan, models, machine, catalog)
    return largest.comfortable or largest.edge or largest.smallest, _why_largest(largest)


def _why_largest(largest: LargestModel) -> str:
    """Return why a model was chosen, with the one that is on the edge of the memory."""
    if largest.comfortable is None:
        name = largest.edge or largest.smallest
        edge, smallest = "on the edge of the memory, and no smaller one has room", "the smallest; none is known to fit"
        why = edge if largest.edge else smallest
        return f"{name}: {why}"
    edge = f" ({largest.edge} is on the edge)" if largest.edge else ""
    return f"{largest.comfortable}: the largest well-known model that fits with room to spare{edge}"


def _length(line: OneLine, catalog: Catalog) -> Iterator[Assumption]:
    """Yield what a job whose length is not said, or only in part, is taken to be long."""
    tokens, epochs = line.values.get(_TOKENS), float(str(line.values.get(_EPOCHS, 1)))
    if isinstance(tokens, int) and line.asked is not None and line.asked.solve == _EPOCHS:
        length = line.values.get(Key.TRAINING_SEQ_LEN, vocabulary().usual[TRAIN]["sequence_of_a_batch"])
        sequence = int(str(length))
        samples = max(round(tokens / sequence), 1)
        if not line.has(Key.TRAINING_SEQ_LEN):
            yield Assumption(Key.TRAINING_SEQ_LEN, sequence, f"sequences of {sequence} tokens")
        yield Assumption(Key.TRAINING_SAMPLES, samples, f"an epoch is {format_count(tokens)}: {samples} of {sequence}")
        return
    if isinstance(tokens, int) and line.has(_EPOCHS):
        count = format_count(tokens * epochs)
        yield Assumption(_TOKENS, round(tokens * epochs), f"{count} tokens: {epochs:g} times {format_count(tokens)}")
    if line.task not in (TRAIN, FINETUNE) or line.has(_TOKENS) or line.has(Key.TRAINING_STEPS):
        return
    if line.asked is not None and line.asked.solve == Key.TRAINING_SAMPLES:
        yield Assumption(Key.TRAINING_SAMPLES, 1, "samples are read once (or give 3 epochs)")  # to begin with
        if not line.has(_EPOCHS):
            yield Assumption(_EPOCHS, 1, "samples are read once (or give 3 epochs)")
        return
    if line.has(Key.TRAINING_SAMPLES):
        if not line.has(_EPOCHS):
            yield Assumption(_EPOCHS, 1, "1 epoch of the samples, each as long as the sequence (or give 3 epochs)")
        return
    usual = vocabulary().usual.get(line.task, {}).get(_TOKENS)
    row = catalog.architectures.known(str(line.values.get(_MODEL, "")))
    if row is not None and row.is_of_sound:
        hours = vocabulary().usual[FINETUNE]["hours_of_sound"]
        samples = round(hours * 3600 / row.seconds_of_sound)
        why = f"{hours:g} h of sound: {samples} samples of {row.seconds_of_sound:g} s (give 50 hours of audio)"
        yield Assumption(Key.TRAINING_SAMPLES, samples, why)
        if not line.has(_EPOCHS):
            yield Assumption(_EPOCHS, 1, "1 epoch of them (or give 3 epochs)")
    elif usual is not None and _draws(str(line.values.get(_MODEL, "")), catalog):
        steps = int(vocabulary().usual[FINETUNE]["drawing_steps"])
        yield Assumption(Key.TRAINING_STEPS, steps, f"{steps} steps, a trainer's default (give 3000 steps)")
    elif usual is not None:
        count = format_count(usual * epochs, decimals=0)
        factor = f", {epochs:g} times {format_count(usual, decimals=0)}" if epochs != 1 else ""
        yield Assumption(_TOKENS, usual * epochs, f"{count} tokens{factor} (give 50M, or {_TOKENS}=)")


def _draws(name: str, catalog: Catalog) -> bool:
    """Whether a model draws pictures, in steps of a sampler."""
    model = find_known_model(name, catalog)
    return model is not None and any(key == _SAMPLER_STEPS for key, _, _ in model.parameters())


def _pace(line: OneLine) -> Iterator[Assumption]:
    """Yield how often users send a request where they are not said to wait for each other."""
    are_asked = line.asked is not None and line.asked.solve == Key.INFERENCE_USERS
    if (line.has(Key.INFERENCE_USERS) or are_asked) and not line.has(Key.INFERENCE_SECONDS_BETWEEN_REQUESTS):
        pause = vocabulary().usual[INFER][Key.INFERENCE_SECONDS_BETWEEN_REQUESTS]
        why = f"users send a request every {pause:g} s (or give 64 requests at once, or 3 requests/s)"
        yield Assumption(Key.INFERENCE_SECONDS_BETWEEN_REQUESTS, pause, why)


def _takes_all_of_the_context(line: OneLine) -> bool:
    """Whether a context of 0 is all of the model's: ``llama-server -m model.gguf -c 0``."""
    is_known = key_of(str(line.values.get(Key.INFERENCE_ENGINE))) in vocabulary().whole_context
    return is_known and line.values.get(Key.INFERENCE_PROMPT_TOKENS) == 0


def _within_context(line: OneLine, plan: Plan, catalog: Catalog) -> tuple[Plan, list[Assumption]]:
    """Return a plan with a prompt and an answer of the model where nobody said how long, or as long as it reads."""
    row = catalog.architectures.known(plan.model.name)
    if line.task != INFER or row is None:
        return plan, []
    prompt, answer = Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS
    if row.is_of_sound:
        length, read = int(counted("transcript-tokens")), int(str(row.config["max_source_positions"]))
        why = f"a request is {row.seconds_of_sound:g} s of sound, {length} tokens"
        sizes = ((answer, length, why), (prompt, read, f"prompt: {read} tokens, as the model always reads"))
        assumed = [Assumption(*size) for size in sizes if not line.has(size[0])]
    else:
        longest = int(row.max_context or 0) - (plan.inference.output_tokens if row.kind == "decoder" else 0)
        is_shorter = not line.has(prompt) and longest < plan.inference.prompt_tokens
        is_other = longest > 0 and (is_shorter or _takes_all_of_the_context(line))
        why = f"prompt: {longest} tokens, as the model reads {row.max_context}"
        assumed = [Assumption(prompt, longest, why)] if is_other else []
    return edited(plan, {entry.key: entry.value for entry in assumed}, catalog).plan if assumed else plan, assumed


def _as_people_read(line: OneLine, plan: Plan, catalog: Catalog) -> tuple[Plan, list[Assumption]]:
    """Return a plan whose answers come as fast as users read, where a line asks what they need and says no latency.

    Those to requests at once begin as soon as people wait for: their next requests wait for these.
    """
    row, users = catalog.architectures.known(plan.model.name), Key.INFERENCE_USERS
    loads = {users, Key.INFERENCE_CONCURRENCY}
    are_at_once = line.has(Key.INFERENCE_CONCURRENCY) and any(loads & word.meaning.values.keys() for word in line.words)
    is_read = line.asked is not None and (line.has(users) or line.asked.solve == users or are_at_once)
    if not is_read or row is None or row.kind != "decoder" or any(line.has(latency) for latency in _LATENCIES):
        return plan, []
    usual = vocabulary().usual[INFER]
    read, waited = usual[Key.INFERENCE_TPOT_SECONDS], usual[Key.INFERENCE_TTFT_SECONDS]
    why = f"answers come as fast as people read, {1 / read:.2g} tokens/s (or give 20 tok/s, or tpot 50ms)"
    assumed = [Assumption(Key.INFERENCE_TPOT_SECONDS, read, why)]
    if are_at_once:
        why = f"answers begin within {waited:g} s, which people wait (or give ttft 2s)"
        assumed.append(Assumption(Key.INFERENCE_TTFT_SECONDS, waited, why))
    return edited(plan, {entry.key: entry.value for entry in assumed}, catalog).plan, assumed


def _settings_of_the_model(line: OneLine, plan: Plan) -> Iterator[Assumption]:
    """Yield the settings that a kind of model begins with, and that nobody said."""
    for path in (Key.TRAINING_STEPS, Key.TRAINING_MICRO_BATCH):
        value = plan.value(path)
        if line.task == TRAIN and not line.has(path) and value not in (None, AUTO):
            label = "steps" if path.endswith("steps") else "batch"
            yield Assumption(path, value, f"{label} {value} (give another, or {path}=)")
