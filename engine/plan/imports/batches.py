"""Batches and lengths of a job that follow from several options of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Architecture
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import shape_of
from capacity_tui.engine.numeric import any_true
from capacity_tui.engine.plan.imports.setting import LEVELS, Remark, Settings, is_kept
from capacity_tui.engine.plan.sections import TrainingSection

MICRO, GLOBAL, STEPS = Key.TRAINING_MICRO_BATCH, Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_STEPS

LENGTH = Key.TRAINING_SEQ_LEN

PREFERENCE, GROUPED = Key.TRAINING_PREFERENCE, "grpo"

SPLITS = (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP)

_PAIRED = frozenset({"dpo", "orpo", "reward"})  # What learns from two sequences at a time

_USUAL_LENGTH = TrainingSection.model_fields["seq_len"].default

OF_LOOPS = {
    "loop_batch": MICRO,
    "loop_accumulation": "accumulation",
    "loop_precision": Key.TRAINING_PRECISION,
    "loop_rate": Key.TRAINING_LEARNING_RATE,
    "loop_optimizer": Key.TRAINING_OPTIMIZER,
}
"""What loops of a script's own say, by field: no trainer does."""

_LENGTHS = (STEPS, Key.TRAINING_TOKENS, Key.TRAINING_EPOCHS)


def answers(settings: Settings) -> None:
    """Settle what is learned from rewarded answers: so many to each prompt, each with its prompt."""
    prompt = settings.count("prompt_length", settings.count("usual_prompt"))
    answer = settings.count("answer_length", settings.count("usual_answer"))
    entropy = settings.chosen.get("entropy_weight")
    if entropy is not None and entropy.value and not settings.is_given(Key.TRAINING_LOSS):
        settings.set(Key.TRAINING_LOSS, "standard", entropy)
    sample = settings.count("sample_length")  # of a prompt where answers are written, else of all that is learned
    prompt = prompt or (sample if answer else None)
    if sample and not answer:
        settings.set(Key.TRAINING_SEQ_LEN, sample, settings.chosen["sample_length"])
    together = settings.count("generated_length")
    if together and answer and "prompt_length" not in settings.chosen:
        prompt = max(1, together - answer)
    is_paired = settings.is_given(Key.TRAINING_SEQ_LEN) and "learned_from_pairs" in settings.chosen
    if prompt and answer and (not is_paired or "usual_answer" in settings.chosen):
        derivation = f"prompts of {prompt} and answers of {answer} tokens"
        settings.derive(Key.TRAINING_SEQ_LEN, prompt + answer, derivation)
    elif answer and settings.is_given("answer_length") and Key.TRAINING_SEQ_LEN not in settings.chosen:
        settings.derive(Key.TRAINING_SEQ_LEN, answer, f"answers of {answer} tokens: no file gives how long prompts are")
    rewarded = settings.chosen.get("rewarded_how") or settings.chosen.get("rewarded")
    if rewarded is not None and "rewarded" in settings.chosen:
        settings.set(PREFERENCE, rewarded.value, rewarded)
        _apart(settings)
    pairs = settings.chosen.get("learned_from_pairs")
    if pairs is not None and PREFERENCE not in settings.chosen:
        settings.set(PREFERENCE, pairs.value, pairs)
    if answer and settings.value("logits_of_answers") and settings.value(PREFERENCE) == GROUPED:
        reads = f"logits of answers of {answer} tokens, of prompts none"
        settings.derive(Key.TRAINING_PREDICTED_TOKENS, answer, reads)
    prompts, answers = settings.count("prompts"), settings.count("answers", 1) or 1
    if prompts and GLOBAL not in settings.chosen:
        written = f"{prompts} prompts with {answers} answers" if answers > 1 else settings.chosen["prompts"].words
        settings.derive(GLOBAL, prompts * answers, written)
    together, length = settings.count("tokens_together"), settings.count(Key.TRAINING_SEQ_LEN)
    if settings.value("tokens_fill_batches") and together:
        whole = (length or _USUAL_LENGTH) * (2 if settings.value(PREFERENCE) in _PAIRED else 1)
        settings.derive(MICRO, _filled(settings, together // whole), f"{together} tokens in sequences of {whole}")
    of_step = settings.count("tokens_of_step")
    if of_step and length:
        settings.derive(GLOBAL, max(1, of_step // length), f"{of_step} tokens in sequences of {length}")


def _apart(settings: Settings) -> None:
    """Leave out what stands on devices of its own beside those of the model that answers.

    Without values, rewards and a reference its training is what GRPO does without a reference.
    """
    apart = settings.chosen.get("models_apart")
    if apart is None or not apart.value:
        return
    others = [] if settings.value(PREFERENCE) == GROUPED else ["values"]
    if settings.value("reference_apart", True) and settings.value("reference_weight", 1):
        settings.derive(Key.TRAINING_REFERENCE, "precomputed", "a reference on devices of its own")
        others.append("the reference")
    if others:
        elsewhere = f"{' and '.join(others)} on devices of their own"
        settings.derive(PREFERENCE, GROUPED, f"{settings.value(PREFERENCE)} with {elsewhere} is counted as this")
        place = replace(settings.chosen["rewarded"].place, field="groups of devices")
        why = f"rewards, {' and '.join(others)} stand on devices of their own: those of the actor alone are counted"
        settings.remarks.append(Remark(place, why))


def _filled(settings: Settings, held: int) -> int:
    """Return the sequences of a pass whose tokens may be those of so many: passes of a replica are as alike as can be.

    As ``verl/utils/seqlen_balancing.py`` of verl 0.7 spreads them.
    """
    replicas, whole = _replicas(settings), settings.count(GLOBAL)
    share = max(1, whole // replicas) if whole and replicas else held
    passes = -(-share // max(1, held))
    return -(-share // passes)


def target(settings: Settings, row: Architecture | None) -> None:
    """Take the length of what is to be written for that of an encoder-decoder's target.

    A decoder has it behind what it is written from. A model that takes less than the usual length has all it takes.
    """
    longest = shape_of(row).fixed_length or int(row.max_context or 0) if row is not None and row.heads else 0
    if 0 < longest < _USUAL_LENGTH and LENGTH not in settings.chosen and settings.value(Key.TASK) != "infer":
        settings.derive(LENGTH, longest, f"the model takes {longest} tokens")
    option, source = settings.chosen.get("target_length"), settings.chosen.get(LENGTH)
    if option is None or row is None:
        return
    if any_true(shape_of(row).encoder_layers > 0):
        settings.set(Key.TRAINING_PREDICTED_TOKENS, option.value, option, option.level)
    elif source is not None and settings.is_given("target_length") and "target_is_behind" in settings.chosen:
        both = (settings.count(LENGTH) or 0) + (settings.count("target_length") or 0)
        settings.derive(LENGTH, both, f"{source.words}; {option.words}")


def batches(settings: Settings) -> None:
    """Settle the batches: micro-batch x accumulation x replicas is the batch of a step."""
    for quantity, name in OF_LOOPS.items():
        if (option := settings.chosen.get(quantity)) is not None and name not in settings.chosen:
            settings.set(name, option.value, option, option.level)
    replicas = _replicas(settings)
    together = settings.count("micro_batch_together")
    if together and replicas and MICRO not in settings.chosen:
        settings.set(MICRO, max(1, together // replicas), settings.chosen["micro_batch_together"])
    of_process, micro = settings.count("batch_of_process"), settings.count(MICRO)
    if of_process and micro and not settings.is_given("accumulation"):
        settings.derive("accumulation", max(1, of_process // micro), settings.chosen["batch_of_process"].words)
    of_step = settings.count("micro_batches_of_step")
    if of_step and micro and GLOBAL not in settings.chosen:
        settings.derive(GLOBAL, micro * of_step, settings.chosen["micro_batches_of_step"].words)
    micro, steps, whole = settings.count(MICRO), settings.count("accumulation"), settings.count(GLOBAL)
    if is_kept(settings.chosen.get(GLOBAL)) and micro and settings.is_given("accumulation"):
        whole = None
    if whole and replicas:
        given_steps = steps if settings.is_given("accumulation") else None
        given_micro = micro if settings.is_given(MICRO) or settings.is_begun_with(MICRO) or _is_own(settings) else None
        if given_micro and given_steps and given_micro * given_steps * replicas != whole:
            product = f"{given_micro} x {given_steps} x {replicas} replicas"
            why = f"{product} is {given_micro * given_steps * replicas}, not {whole}"
            settings.clash("batch_sizes", why, (MICRO, "accumulation", GLOBAL))
        elif given_micro and whole % (given_micro * replicas) and not settings.value("tokens_fill_batches"):
            why = f"a batch of {whole} is no multiple of {given_micro} x {replicas} replicas"
            settings.clash("batch_sizes", why, (MICRO, GLOBAL))
        elif not given_micro and given_steps and whole % (given_steps * replicas) == 0:
            settings.derive(
                MICRO, whole // (given_steps * replicas), f"{whole} / ({given_steps} x {replicas} replicas)"
            )
        elif not given_micro and not given_steps and whole % replicas == 0 and whole >= replicas:
            settings.derive(MICRO, whole // replicas, f"{whole} / {replicas} replicas")
    elif not whole and replicas and (micro or settings.is_given("accumulation")):
        steps, micro = steps or 1, micro or 1
        settings.derive(GLOBAL, micro * steps * replicas, f"{micro} x {steps} x {replicas} replicas")


def _is_own(settings: Settings) -> bool:
    """Whether the tool that is told the batch of a step has a micro-batch of its own, up to which it accumulates."""
    micro, whole = settings.chosen.get(MICRO), settings.chosen.get(GLOBAL)
    return micro is not None and whole is not None and micro.tool == whole.tool and bool(micro.place.field)


def _replicas(settings: Settings) -> int | None:
    devices, split = settings.count(Key.HARDWARE_DEVICES, 1) or 1, product(settings, SPLITS)
    if devices % split:
        return None
    return devices // split


def job_length(settings: Settings) -> None:
    """Leave one length of a job: a typed one, else steps before epochs. Data sets have so many samples each."""
    sets, answers, passes = settings.value("datasets"), settings.count("answers"), settings.count("episodes")
    if isinstance(sets, tuple):
        _times(settings, Key.TRAINING_SAMPLES, len(sets), f"of each of {len(sets)} data sets")
    _times(settings, Key.TRAINING_SAMPLES, answers, f"prompts with {answers} answers")
    if passes and Key.TRAINING_EPOCHS not in settings.chosen:
        settings.set(Key.TRAINING_EPOCHS, passes, settings.chosen["episodes"])
    else:
        _times(settings, Key.TRAINING_EPOCHS, passes, f"in {passes} passes over the prompts")
    loops, loop_steps = settings.chosen.get("loops"), settings.chosen.get("steps_of_loop")
    if loop_steps is not None:
        steps = (settings.count("steps_of_loop") or 0) * (settings.count("loops", 1) or 1)
        settings.set(STEPS, steps, loop_steps)
    elif loops is not None:
        settings.set(Key.TRAINING_EPOCHS, loops.value, loops, loops.level)
    written = settings.chosen.get("written_steps")
    is_same = written is not None and settings.value(STEPS) == written.value
    if is_same and any(is_kept(settings.chosen.get(name)) for name in _LENGTHS if name != STEPS):
        del settings.chosen[STEPS]  # those of the plan that is kept, whose own length says more
    given = [name for name in _LENGTHS if name in settings.chosen]
    ranked = sorted(given, key=lambda name: (LEVELS.index(settings.chosen[name].level), _LENGTHS.index(name)))
    for name in ranked[1:]:
        del settings.chosen[name]


def _times(settings: Settings, name: str, times: int | None, words: str) -> None:
    """Let a length that is given count several times over."""
    length = settings.chosen.get(name)
    if length is not None and isinstance(length.value, int | float) and (times or 1) > 1 and settings.is_given(name):
        settings.chosen[name] = replace(length, value=length.value * (times or 1), text=f"{length.text} {words}")


def product(settings: Settings, names: Sequence[str]) -> int:
    """Return the product of some sizes; one that no file gives is 1."""
    whole = 1
    for name in names:
        whole *= settings.count(name, 1) or 1
    return whole
