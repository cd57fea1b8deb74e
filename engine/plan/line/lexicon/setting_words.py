"""Words of a line that set a field: a number with what it counts, a name of the catalogue, or ``key=value``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from capacity_tui.engine.catalog import SEPARATOR, Catalog, Table, key_of, load_catalog, named_release, nearest
from capacity_tui.engine.errors import CatalogError, Place, PlanError, UnitError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import KnownModel
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS, all_fields
from capacity_tui.engine.plan.line.lexicon.tokens import PERCENTILE
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, UNCOUNTED, Amount, Meaning
from capacity_tui.engine.plan.names import known_names
from capacity_tui.engine.schema import AUTO, Knob
from capacity_tui.engine.units import format_count, format_number, parse_count, parse_length, parse_quantity

SHARED = ("users", "requests at once", "sequences at once")  # What a share of all users is counted as
SEQUENCE, TOKENS, WORDS, IMAGE_SIZE = "sequence", "tokens", "words", "image_size"
_NUMBER = re.compile(
    r"(?i)(?=.{,24}\Z)[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+|\d{1,9}(?:\.\d*)?e[+-]?1?\d|\d(?:\.\d*)?e2\d)(?:[kmbgq]i?|t)?"
)
_YEAR = re.compile(r"20(?:1[5-9]|2\d)")
_TIME = re.compile(r"\d{1,9}(?:\.\d*)?(?:us|ms|s|sec|min|h)", re.IGNORECASE)
_GLUED = re.compile(r"([a-z_\-]{2,}|r(?=\d\d)|z(?=[0-3]$))[<:]?=?(\d\S*)", re.IGNORECASE)
_MEAN_BITS = re.compile(r"(\d(?:\.\d+)?)bpw", re.IGNORECASE)  # 4.5bpw, as only ExLlama has them

_SHORTEST_SEQUENCE, LONGEST_SEQUENCE = 64, 16 * 2**20
STEPS_OF_LENGTHS = (64, 500)
"""Lengths that people choose are multiples of one of these; 2026 and 123456 are other numbers."""
_IN_SHORT_FROM = 10**5
_TASK_WORDS = {"train": "training", "finetune": "fine-tuning", "infer": "serving", "fit": "fitting"}
_LAYOUT, _PERCENT = "parallelism.", 100
PASSES = (Key.TRAINING_STEPS, Key.TRAINING_EPOCHS)  # Parts of a training, done again and again
_NEVER_NONE = frozenset({*PASSES, Key.HARDWARE_DEVICES})
_FREE = (f"{Key.HARDWARE_SPEC}.", f"{Key.MODEL_SPEC}.")
NO_FIELD, OF_OTHER_TASKS = "no such field", "does not belong to"
EXAMPLES = "such as batch 16, rank 64 or training.micro_batch=4"


def is_number(word: str) -> bool:
    """Return whether a word is a number, with a suffix such as k or M or without."""
    return _NUMBER.fullmatch(word) is not None


def is_time(word: str) -> bool:
    """Return whether a word is a time, as ``500ms``."""
    return _TIME.fullmatch(word) is not None


def is_year(word: str) -> bool:
    """Return whether a number is a year that people write about, as in ``in 2025``."""
    return _YEAR.fullmatch(word) is not None


def percentile(word: str) -> Meaning | None:
    """Return the share of requests that latencies are of, as ``p95`` says it; None for another word."""
    match = PERCENTILE.fullmatch(word)
    return None if match is None else Meaning(f"percentile {match[1]}", {Key.INFERENCE_PERCENTILE: float(match[1])})


def is_length_of_job(number: str) -> bool:
    """Return whether a number without a word is the tokens of a job: it ends in M, B or T, or is as large."""
    try:
        return number[-1:].casefold() in ("m", "b", "t") or parse_count(number) >= vocabulary().fewest_tokens
    except UnitError:
        return False


def at_least(number: str, fewest: int) -> bool:
    """Return whether a number is as large as another."""
    try:
        return parse_count(number) >= fewest
    except UnitError:
        return False


def is_sequence(number: str, task: str, values: Mapping[str, object]) -> bool:
    """Return whether so many tokens are those of a sample, as in ``10k samples of 2048 tokens``: jobs are longer."""
    if task not in (TRAIN, FINETUNE) or Key.TRAINING_SEQ_LEN in values:
        return False
    try:
        length, words = parse_count(number) if number[-1] in "mM" else _length(number), vocabulary()
    except UnitError:
        return False
    return length < words.longest_sequence or (length < words.fewest_tokens and length.bit_count() == 1)


def unlike(word: str, what: str, task: str) -> Meaning:
    """Return the fault of a word that belongs to another task."""
    return _fault(f"{what} {OF_OTHER_TASKS} {_TASK_WORDS[task]}", word, "leave it out, or say serve")


def is_amount(word: str, amount: Amount, task: str) -> bool:
    """Return whether a word says how many of something there are: a number, or a time of what is counted in seconds."""
    known, served = (all_fields().get(amount.field(of) or "") for of in (task, INFER))
    if served is not None and served.knob.maximum == 1 and amount.field(TRAIN) == "" and task != INFER:
        return word.endswith("%") or "." in word  # colocate 0.4, but colocate 8 h100
    if word.endswith("%"):
        return amount.field(task) == "" or (known is not None and (known.knob.maximum == 1 or amount.name in SHARED))
    if word[-1:] in ("k", "K") and amount.field(TRAIN) == Key.TRAINING_EPOCHS:
        return False  # 3 epochs, 52k
    return is_number(word) or (is_time(word) and bool(amount.hint or (known is not None and known.knob.unit == "s")))


def amount_of(word: str) -> Amount | None:
    """Return what a word says that numbers beside it count."""
    return vocabulary().amounts.get(key_of(word))


def amount_named(words: str, task: str, model: KnownModel | None, *, is_before: bool = False) -> Amount | None:
    """Return what some words say that a number beside them counts: an amount, or a field by its name.

    Args:
        words: the words.
        is_before: whether they stand before it, where those of some amounts never do, as in ``ep 8`` and ``2 ep``.
        task: what is done; empty where that is not known yet, when only degrees are known by their fields.
        model: the model, whose own parameters may stand on either side of a number.
    """
    amount, others = amount_of(words), vocabulary().fields.get(key_of(words), ())
    if amount is not None and amount.behind == "only" and is_before and others:
        amount = None
    own = next((path for path in others if path.removeprefix(OWN_PARAMETERS) in _parameters(model)), None)
    if amount is not None and own is None:
        return amount
    if not task:
        path = next((path for path in others if is_degree(path) or words.startswith("--")), None)
        return None if path is None else Amount(words, {TRAIN: path, INFER: path}, "either")
    field = named_field(words, task, model)
    if field is None or field[1].kind in ("switch", "choice"):
        return None  # what has names takes no number
    behind = "either" if field[0].startswith(OWN_PARAMETERS) or is_degree(field[0]) else ""
    return Amount(_in_sentence(field[1].label), {TRAIN if task == FINETUNE else task: field[0]}, behind)


def is_degree(path: str) -> bool:
    """Return whether a field says how many devices share the work in one way."""
    return path.startswith(_LAYOUT) and all_fields()[path].knob.kind not in ("switch", "choice")


def counted(amount: Amount, number: str, task: str, model: KnownModel | None) -> Meaning:
    """Return what a number of something sets."""
    path = amount.field(task)
    if amount.hint:
        return _fault(f"{amount.name} of which kind?", number, amount.hint)
    if path == "" or (path in _NEVER_NONE and number == "0"):  # OOM at step 0
        why = f"{amount.name} {number}: {amount.assumes or 'no effect on memory or time'}"
        return Meaning(why=why) if amount.assumes else Meaning(why)
    number = f"{float(number[:-1]) / 100:g}" if number.endswith("%") else number
    try:
        count = parse_quantity(number, "") if is_number(number) else 0.0
    except UnitError as error:
        return Meaning(fault=PlanError(error.title, error.detail, error.hint))
    if task == INFER and count > amount.most:
        beyond = _fault(f"{amount.name} beyond {amount.most:g}", number, amount.beyond)
        takes_load = amount.many and (model is None or model.kind == "transformer")
        return field_value(amount.many, number, task) if takes_load else beyond
    known = all_fields().get(path or "")
    if amount.per != 1 and is_number(number):
        number = f"{count / amount.per:{'.0f' if known is not None and known.knob.kind != 'number' else '.4g'}}"
    if known is not None and known.knob.maximum == 1 and 1 < count <= _PERCENT:  # mfu 45
        number = f"{count / _PERCENT:g}"
    if amount.reciprocal and count > 0:
        number = f"{1 / count:.4g}s"
    if path is not None and path.startswith(OWN_PARAMETERS):
        path = path if model and path.removeprefix(OWN_PARAMETERS) in dict(_parameters(model)) else None
    if path is None:
        hint = "leave it out, or say key=value"
        return _fault(f"{amount.name} {OF_OTHER_TASKS} {_TASK_WORDS[task]}", number, hint)
    meaning = field_value(path, number, task, amount.name, _parameters(model).get(path.removeprefix(OWN_PARAMETERS)))
    is_plain = not amount.assumes or "" in amount.fields.values()
    return meaning if is_plain else replace(meaning, why=f"{amount.name}: {amount.assumes}")


def named_field(word: str, task: str, model: KnownModel | None) -> tuple[str, Knob] | None:
    """Return the field that a word names by label or key; None where there is none in this task."""
    others = vocabulary().fields.get(key_of(word), ())
    called = {} if model is None else {key_of(other): name for other, name in model.spec_type.other_names.items()}
    for name, knob in _parameters(model).items():
        path = f"{OWN_PARAMETERS}{name}"
        if key_of(word) in (key_of(name), key_of(knob.label)) or path in others or called.get(key_of(word)) == name:
            return path, knob
    known = vocabulary().field_of(word, task)
    return (known, all_fields()[known].knob) if known is not None and known in all_fields() else None


def glued(word: str) -> tuple[str, str] | None:
    """Return word and number of ``zero3`` and the like; None for other words."""
    match = _GLUED.fullmatch(word)
    return (match[1], match[2]) if match and not is_numbered(word) else None


def is_numbered(word: str) -> bool:
    """Return whether a word is the number of a part of a run, as ``step3``, rather than how many, as ``step500``."""
    return word[-1:].isdecimal() and is_part_of_a_run(word[:-1])


def is_part_of_a_run(word: str) -> bool:
    """Return whether a word is one of the parts of a run, as ``step`` and ``epoch``, but not ``steps``."""
    amount = None if word.endswith("s") else amount_of(word)
    return amount is not None and amount.behind == "always" and amount.field(TRAIN) in PASSES


def field_value(path: str, text: str, task: str, name: str = "", knob: Knob | None = None) -> Meaning:
    """Return what a field is set to by a text; the number is checked where the plan is made."""
    del task
    known = all_fields().get(path)
    about = knob or (known.knob if known else None)
    label = name or (_in_sentence(about.label) if about else path)
    value: object = text
    shown = text
    if about is not None and _NUMBER.fullmatch(text):
        try:
            if about.is_length:
                value = _length(text)
                shown = format_number(float(value))
            elif about.kind in ("integer", "power-of-two"):
                value = parse_count(text)
                shown = _in_short(value)
        except UnitError as error:
            return Meaning(fault=PlanError(error.title, error.detail, error.hint, Place(field=path)))
    elif about is not None and about.kind == "switch" and key_of(text) in ("on", "yes", "off", "no"):
        value = key_of(text) in ("on", "yes")
    return Meaning(f"{label} {shown}", {path: value})


def is_power(text: str) -> bool:
    """Return whether a number of thousands stands for a power of two, as ``4k`` and ``262k`` do."""
    return _power_meant(text) > 0


def _power_meant(text: str) -> int:
    """Return the power of two that a number of thousands stands for; 0 for others."""
    thousands = int(text[:-1]) if text[-1:] in ("k", "K") and text[:-1].isdigit() else 0
    power = 2 ** round(math.log2(thousands * 1000)) if thousands else 0
    return power if round(power / 1000) == thousands else 0


def _length(text: str) -> int:
    """Return the tokens of a length: ``262k`` are 2**18; what is no whole power of two, ``1.2k``, is decimal."""
    power = _power_meant(text)
    if power:
        return power
    try:
        return parse_length(text)
    except UnitError:
        return parse_count(text)


def bare_number(word: str, task: str, has_sequence: bool, edge: tuple[str, Knob] | None = None) -> Meaning:
    """Return what a number without a word counts: ``4k`` is a sequence, ``50M`` the tokens of a job.

    Of a model of images, whose field of their edge is given, ``1024`` is that.
    """
    words = vocabulary()
    if edge is not None and word.isdigit() and int(word) >= min(words.image_edges.values()):
        return field_value(edge[0], word, task, knob=edge[1])
    sequence, tokens = words.amounts[key_of("sequence")], words.amounts[key_of("tokens")]
    suffix = word.rstrip("iI")[-1:].casefold()
    try:
        count = parse_count(word)
    except UnitError as error:
        return Meaning(fault=PlanError(error.title, error.detail, error.hint))
    is_job = suffix in ("m", "b", "t") or count >= words.fewest_tokens
    is_round = suffix == "k" or any(count % step == 0 for step in STEPS_OF_LENGTHS)
    is_length = is_round and _SHORTEST_SEQUENCE <= count <= LONGEST_SEQUENCE and not has_sequence
    is_trained = task in (TRAIN, FINETUNE)
    if edge is not None or (is_job and (suffix == "g" or not is_trained)) or not (is_job or is_length) or task == FIT:
        return _fault(UNCOUNTED, word, f"write a word with it, {EXAMPLES}")
    amount, name = (tokens, tokens.name) if is_job else (sequence, _length_name(task))
    meaning = field_value(str(amount.field(task)), word, task, name)
    return replace(meaning, why=f"{word}: {'tokens of the whole job' if is_job else f'{name} in tokens'}")


def named_value(word: str, task: str, method: str, catalog: Catalog) -> Meaning | None:
    """Return what a name of the catalogue sets: a number format, a framework, an engine, an optimizer."""
    words = vocabulary()
    if key_of(word) in words.fillers and key_of(word) == "none":
        return None
    software, release = named_release(word)
    if release:
        of_task = Key.INFERENCE_ENGINE if task == INFER else Key.TRAINING_FRAMEWORK
        return field_value(of_task, word, task) if _otherwise(software, of_task, catalog) else None
    mean = _MEAN_BITS.fullmatch(word)
    name = words.formats.get(key_of(word), word) if mean is None else f"exl2-{float(mean[1])}"
    if task == INFER and name in words.formats.values() and name != word:
        name = words.served.get(name, name)
    paths = [path for path in words.values_of(task) if path != Key.TRAINING_QUANTIZATION or method == "qlora"]
    for find in (known_value, _otherwise):
        for path in paths:
            row_id = find(name, path, catalog)
            if row_id is not None:
                return field_value(path, row_id, task)
    return None


def exact_value(name: str, task: str, catalog: Catalog) -> Meaning | None:
    """Return what the exact name of a row sets, or another name of an engine, as ``lm studio``; None for others."""
    for path in vocabulary().values_of(task):
        row_id = known_value(name, path, catalog)
        if row_id is None and path == Key.INFERENCE_ENGINE:
            row_id = _otherwise(name, path, catalog)
        if row_id is not None:
            return field_value(path, row_id, task)
    return None


def assigned(text: str, task: str, model: KnownModel | None) -> Meaning:
    """Return what ``key=value`` sets, or software with its release; the key is a path, or its last part, or a label."""
    if SEPARATOR in text:
        released, software = named_value(text, task, "", load_catalog()), key_of(text.partition(SEPARATOR)[0])
        if software in vocabulary().software and released is None:
            released = Meaning(why=f"left out: {text.replace(SEPARATOR, ' ')}")
        return released or _fault("no such software", repr(text), "write an engine or a framework, ==, its release")
    key, _, value = text.partition("=")
    is_limit, key, value = key.endswith("<"), key.strip().removesuffix("<"), value.strip()
    if not value:
        return _fault("a key without a value", text, "write key=value, such as training.micro_batch=4")
    if key in all_fields() or key.startswith(_FREE):
        return field_value(key, value, task)
    amount = amount_named(key, task, model)
    if amount is not None and amount.behind != "only" and amount.field(task) is not None:
        is_value = is_amount(value, amount, task) or key_of(value) == AUTO
        hint = "write key=number, such as batch=16"
        return counted(amount, value, task, model) if is_value else _fault("not a number", repr(text), hint)
    named = named_field(key, task, model)
    if named is not None:
        return field_value(named[0], value, task, knob=named[1])
    near = nearest(key, (name for name in (*all_fields(), *vocabulary().fields) if key_of(name) != key_of(key)), 2)
    hint = f"did you mean {' or '.join(near)}?" if near else "the fields are in the list of the screen"
    of_any = f"a line limits time, dollars, ttft, tpot and e2e; `capacity-tui need --limit '{text[:40]}'` any figure"
    return _fault("no such limit", repr(text), of_any) if is_limit else _fault(NO_FIELD, repr(key), hint)


def value_names(task: str, catalog: Catalog) -> list[str]:
    """Return the names whose values may stand alone."""
    return [name for path in vocabulary().values_of(task) for name in known_names(path, catalog)]


def _in_sentence(label: str) -> str:
    """Return a label with a small first letter, unless it is short for something."""
    return label if label[1:] != label[1:].lower() else label[:1].lower() + label[1:]


def _in_short(value: int) -> str:
    return format_count(value).replace(".0 ", " ") if value >= _IN_SHORT_FROM else format_number(float(value))


def _parameters(model: KnownModel | None) -> dict[str, Knob]:
    return {} if model is None else {name: knob for name, knob, _ in model.parameters()}


def _length_name(task: str) -> str:
    return "prompt" if task == INFER else SEQUENCE


def known_value(name: str, path: str, catalog: Catalog) -> str | None:
    """Return the value of a field that is called so; None where none is."""
    return _names_by_key(path, catalog).get(key_of(name))


@lru_cache(maxsize=64)
def _names_by_key(path: str, catalog: Catalog) -> Mapping[str, str]:
    return {key_of(known): known for known in known_names(path, catalog)}


def is_exact_value(name: str, catalog: Catalog) -> bool:
    """Return whether a word is the exact name of a number format, framework, engine or optimizer."""
    paths = (path for task in (TRAIN, INFER) for path in vocabulary().values_of(task))
    return any(known_value(name, path, catalog) is not None for path in paths)


def _otherwise(name: str, path: str, catalog: Catalog) -> str | None:
    """Return the name that a field knows something by, from other names for it."""
    rows = all_fields()[path].knob.rows
    tables: dict[str, Table[Any]] = {
        "precision": catalog.precisions,
        "framework": catalog.frameworks,
        "optimizer": catalog.optimizers,
        "attention kernel": catalog.attention_kernels,
        "format of frozen weights": catalog.quantizations,
        "format of weights": catalog.quantizations,
        "engine": catalog.engines,
    }
    if rows == "format of weights" and key_of(name).startswith("exl2") and key_of(name) != "exl2":
        with suppress(CatalogError):
            return catalog.quantizations.find(name).id
    row_id = tables[rows].find_id(name) if rows in tables else None
    return name if row_id is not None and rows == "engine" else row_id


def _fault(title: str, detail: str, hint: str) -> Meaning:
    return Meaning(fault=PlanError(title, detail[:80], hint))
