"""What is done with the model: the words that name it, and what the others suggest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from capacity_tui.engine.catalog import Catalog, format_in_name, key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import Family
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon.setting_words import (
    amount_of,
    glued,
    is_length_of_job,
    is_number,
    named_value,
    percentile,
)
from capacity_tui.engine.plan.line.lexicon.tokens import Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Meaning
from capacity_tui.engine.units import format_count

TASK, METHOD = Key.TASK, Key.TRAINING_METHOD

_SHOWN_TASKS = {TRAIN: "train", FINETUNE: "fine-tune", INFER: "serve", FIT: "fit"}

_METHOD_WORDS = {"full": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA"}

_LONGEST_INITIALS = 4  # Letters of an objective's name that is one of initials, as ``GRPO``

_OF_TRAINING = frozenset({Key.PARALLELISM_ZERO, Key.PARALLELISM_INTERLEAVE})
"""Fields beside those of training that only a training uses."""

_TRAINED_ON = "nf4"  # Format of hub names that adapters are trained on as often as models are served in it


def task_named(phrase: str) -> Meaning | None:
    """Return the task or the method that some words name, those of one with hyphens too, as ``lora-tune``."""
    words, key = vocabulary(), key_of(phrase)
    if key in words.methods:
        method = words.methods[key]
        return Meaning(_METHOD_WORDS.get(method, method), {TASK: FINETUNE, METHOD: method})
    if key in words.objectives:
        objective = words.objectives[key]
        name = objective.replace("_", " ") if len(objective) > _LONGEST_INITIALS else objective.upper()
        why = "" if key_of(objective)[:_LONGEST_INITIALS] in key else f"{phrase}: computed as {name}"
        return Meaning(name, {TASK: FINETUNE, Key.TRAINING_PREFERENCE: objective}, why)
    if key in words.tasks:
        return Meaning(_SHOWN_TASKS[words.tasks[key]], {TASK: words.tasks[key]})
    parts = phrase.split("-")
    named = [meaning for part in parts if len(parts) > 1 and (meaning := task_named(part)) is not None]
    if len(named) < len(parts) or len(parts) == 1:
        return None
    return max(named, key=lambda meaning: len(meaning.values))


def task_meant(
    words: Sequence[str],
    free: Sequence[str],
    family: Family | None,
    catalog: Catalog,
    devices: int = 1,
    tokens: float = 0.0,
) -> tuple[str, str]:
    """Return what is done where no word names it, and why it is taken for that.

    Args:
        words: all words of the line.
        free: those that name neither model nor hardware.
        family: of the model; None where none was named.
        catalog: what names stand for.
        devices: how many there are; so many that no engine serves one model from all are for training.
        tokens: how many there are; so many that nobody has answered at once are for training.
    """
    serving = _first(words, lambda word: is_of_serving(word, catalog))
    is_sampled = family is not None and _is_sampled(family.id, catalog)
    training = _first(free, lambda word: is_of_training(word, catalog, is_sampled=is_sampled))
    tuned = _first(free, lambda word: vocabulary().suggests.get(key_of(word.partition("=")[0])) == FINETUNE)
    is_answering = family is not None and (is_sampled or _is_answering(family.id, catalog))
    is_open = family is None or is_answering
    suggested = _first(free, lambda word: _suggests_serving(key_of(word), is_named=family is not None, is_open=is_open))
    if suggested is None and (family is None or is_answering or family.is_transformer):
        suggested = _first(free, lambda word: key_of(word) in vocabulary().of_memory)
    if family is not None and family.task == FIT:
        return FIT, f"task: fitting, as {family.id} is"
    if is_answering and not is_sampled:
        tuned = tuned or _first(free, _is_of_samples)  # 3 epochs of 10k samples, 7b
    speed = None if serving is None else amount_of(serving)
    if speed is not None and speed.reciprocal and (training or tuned) is not None:
        serving = None  # tp4 pp2 zero1, tokens/s
    evidence = ((INFER, "serving", serving), (FINETUNE, "fine-tuning", tuned), (TRAIN, "training", training))
    amounts = filter(None, map(amount_of, words))
    is_of_requests = any(amount.fields.get(INFER) == Key.INFERENCE_REQUESTS for amount in amounts)
    implied = _first(words, lambda word: vocabulary().suggests.get(key_of(word)) == TRAIN and not is_of_requests)
    for task, name, word in (*evidence, (TRAIN, "training", implied), (INFER, "serving", suggested)):
        if word is not None:
            return task, f"task: {name}, because of {word!r}"
    if devices > vocabulary().usual[INFER]["most_devices"]:
        return TRAIN, f"task: training, as none was named for {devices} devices (or say serve)"
    if tokens >= vocabulary().usual[INFER]["most_tokens"]:
        return TRAIN, f"task: training, as none was named for {format_count(tokens)} tokens (or say serve)"
    if is_answering:
        return INFER, "task: serving, as no training was named (say train or lora)"
    return TRAIN, "task: training, as none was named"


def _is_of_samples(word: str) -> bool:
    """Whether a word is of a training that goes over some samples, which a model is tuned by rather than made."""
    parts = glued(word)
    amount = amount_of((parts or (word,))[0])
    is_before = parts is not None and amount is not None and amount.behind == "only"  # ep8 is no 8 ep
    return amount is not None and not is_before and amount.fields.get(TRAIN) == Key.TRAINING_EPOCHS


def _suggests_serving(key: str, *, is_named: bool, is_open: bool) -> bool:
    """Whether a word suggests serving; the largest and the best do where no model is named: then it is asked for.

    Words as plain as ``use`` do where nothing speaks against it: a model that answers, or none.
    """
    words = vocabulary()
    if key in words.suggests_little:
        return is_open
    return words.suggests.get(key) == INFER or (not is_named and words.queries.get(key) in ("most", "which"))


def _first(words: Sequence[str], is_meant: Callable[[str], bool]) -> str | None:
    return next(filter(is_meant, words), None)


def _is_sampled(name: str, catalog: Catalog) -> bool:
    """Whether a model makes pictures, in steps of a sampler."""
    network = catalog.networks.find_id(name)
    return network is not None and catalog.networks[network].is_sampled


def _is_answering(name: str, catalog: Catalog) -> bool:
    """Whether a model is served more often than it is trained: a decoder, or one that listens."""
    row_id = catalog.architectures.find_id(name) if catalog.networks.find_id(name) is None else None
    if row_id is None:
        return False
    row = catalog.architectures[row_id]
    return row.kind == "decoder" or row.is_of_sound or bool(row.untrained)


def is_of_training(word: str, catalog: Catalog, *, is_sampled: bool = False) -> bool:
    """Whether a word is of training alone: the length of a job, a framework, a setting of training.

    Steps are those of the sampler where the model makes pictures.
    """
    if is_number(word):
        return is_length_of_job(word)
    name = (glued(word) or (word.partition("=")[0],))[0]
    amount = amount_of(name)
    if amount is not None:
        is_step = is_sampled and amount.fields.get(INFER, "").startswith(OWN_PARAMETERS)
        is_served = INFER in amount.fields and (is_step or not amount.fields[INFER].startswith(OWN_PARAMETERS))
        return amount.tells and not is_served and TRAIN in amount.fields
    words = vocabulary()
    if key_of(word) in words.fillers or key_of(word) in words.counts:
        return False
    path = words.field_of(name, TRAIN) or ""
    is_field = path in _OF_TRAINING or (path.startswith("training.") and words.field_of(name, INFER) is None)
    is_value = named_value(word, TRAIN, "", catalog) is not None
    is_served = named_value(word, INFER, "", catalog) is not None
    return name.startswith("training.") or is_field or (is_value and not is_served)


def is_of_serving(word: str, catalog: Catalog) -> bool:
    """Whether a word is of serving alone: a limit of latency, an engine, a format that weights are only served in."""
    of_serving = vocabulary().of_serving | vocabulary().embedders
    if percentile(word) is not None or not of_serving.isdisjoint((key_of(word), *word.casefold().split("-"))):
        return True
    if format_in_name(word) not in (None, _TRAINED_ON) and catalog.architectures.is_variant(word):
        return True
    amount = amount_of((glued(word) or (word,))[0])
    if amount is not None and set(amount.fields) == {INFER}:
        return amount.tells
    if key_of(word) in vocabulary().fillers or word.startswith("inference."):
        return word.startswith("inference.")
    is_trained = named_value(word, TRAIN, "qlora", catalog) is not None
    return not is_trained and named_value(word, INFER, "", catalog) is not None


def usual_listeners(catalog: Catalog) -> tuple[str, ...]:
    """Return the models that read sound of those that are meant where a line names a work alone."""
    rows = catalog.architectures
    return tuple(name for name in vocabulary().works.values() if name in rows and rows[name].is_of_sound)


def with_listeners(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with the model that software runs by its name for its size: ``whisper.cpp medium.en``.

    A plain word is a size right behind the software or before one of models, as in ``whisper, the medium model``.
    """
    words, family = vocabulary(), vocabulary().run_by["family"][0]
    keys = [token.text.casefold() for token in tokens]
    for at, match in enumerate(map(_size_of_listener().fullmatch, keys)):
        before, behind = [*keys[:at], ""][at - 1], [*keys, ""][at + 1]
        is_called = family in before and not before.startswith(f"{family}-") and not tokens[at - 1].ends
        is_called |= key_of(behind) in words.model_words or behind in words.run_by["kinds"]
        goes_on = behind in words.run_by["sizes"]  # large-v3 turbo
        size = "" if match is None else f"{match['size']}{f'-{behind}' if goes_on else ''}"
        row_id = catalog.architectures.find_id(f"{family}-{size}") if size and not behind[1:2].isdigit() else None
        if row_id is None or not any(family in key for key in keys):
            continue
        if is_called or keys[at] != size or "-" in keys[at]:
            named = {family, keys[at], *([behind] if goes_on else [])}
            return [replace(token, text=row_id) if token.text.casefold() in named else token for token in tokens]
    return tokens


@cache
def _size_of_listener() -> re.Pattern[str]:
    sizes = "|".join(vocabulary().run_by["sizes"])
    return re.compile(rf"(?:ggml-)?(?P<size>(?:{sizes})(?:-v\d)?(?:-turbo)?)(?:\.en)?(?:\.bin)?")


def is_camera(word: str, *, with_rate: bool) -> bool:
    """Return whether a word counts what sends pictures: ``cameras``, and ``streams`` beside the rate of one."""
    words = vocabulary()
    is_stream = with_rate and key_of(word) in words.filming["with it"]
    return is_stream or amount_of(word) in (words.amounts["cameras"], words.amounts["camera"])
