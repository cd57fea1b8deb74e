"""The short flags of a plan: what the one line says, each under a name of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog, nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.line.lexicon.hardware_words import hardware_names, named_hardware
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL, model_names, named_model, sized_model
from capacity_tui.engine.plan.line.lexicon.quantities import counted_start
from capacity_tui.engine.plan.line.lexicon.setting_words import SEQUENCE, TOKENS, amount_of, counted, value_names
from capacity_tui.engine.plan.line.lexicon.tokens import split
from capacity_tui.engine.plan.line.lexicon.vocabulary import UNSAID, vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE, FIT, INFER, TRAIN, Meaning, OneLine, PlanFlags, Word
from capacity_tui.engine.record import dataclass


def line_of_flags(flags: PlanFlags, task: str | None = None, catalog: Catalog | None = None) -> OneLine:
    """Return the line that flags stand for; nothing in it is guessed.

    Args:
        flags: the flags.
        task: what is done where they do not say; by default what suits the model.
        catalog: what names stand for; the shipped one with the user's own by default.
    """
    facts = catalog or load_catalog()
    meanings = dict(_named(flags, facts))
    values = {path: value for meaning in meanings.values() for path, value in meaning.values.items()}
    done = values.get(Key.TASK, task)
    if done is None:
        name = values.get(MODEL)
        done = FIT if name is not None and presumed_family(str(name), facts).task == FIT else TRAIN
    for amount, number in ((SEQUENCE, flags.seq), (TOKENS, flags.tokens)):
        counts = amount_of(amount)
        if number and counts is not None:
            meanings[number] = counted(counts, number, str(done), None)
            values |= meanings[number].values
    words = tuple(Word(text, 0, 0, meaning) for text, meaning in meanings.items())
    faults = tuple(meaning.fault for meaning in meanings.values() if meaning.fault is not None)
    return OneLine(" ".join(meanings), str(done), words, (), values, faults)


def _named(flags: PlanFlags, catalog: Catalog) -> Iterator[tuple[str, Meaning]]:
    """Yield what model, task and hardware stand for; unknown names are refused with the plan."""
    if flags.model:
        match = named_model(flags.model, catalog) or sized_model(flags.model, catalog)
        yield flags.model, match or Meaning(f"model {flags.model}", {MODEL: flags.model})
    if flags.task:
        yield flags.task, _task(flags.task)
    if flags.gpu:
        name = flags.gpu.strip()
        yield flags.gpu, named_hardware(name, catalog) or Meaning(name, {Key.HARDWARE_NAME: name})


def _task(name: str) -> Meaning:
    words, key = vocabulary(), key_of(name)
    if key in words.methods:
        return Meaning(name, {Key.TASK: FINETUNE, Key.TRAINING_METHOD: words.methods[key]})
    if key in words.tasks:
        return Meaning(name, {Key.TASK: words.tasks[key]})
    known = ("train", *dict.fromkeys(words.methods.values()), "infer", "fit")
    near = nearest(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return Meaning(
        fault=PlanError("no such task", repr(name)[:60], f"{hint}allowed: {', '.join(known)}", Place("--task"))
    )


MOST = 8  # Completions that are offered at once

FEWEST_OF_A_PART = 3  # Characters from which on the middle of a name is completed


@dataclass(frozen=True, slots=True)
class Completion:
    """What a word may become."""

    text: str  # the whole word
    kind: str  # what it is: task, method, model, hardware, amount, value or field
    line: str  # the line with the word completed, and a space behind it
    cursor: int  # where the cursor stands then


def completions(text: str, cursor: int | None = None, catalog: Catalog | None = None) -> tuple[Completion, ...]:
    """Return what the word under the cursor may become, the likeliest first; nothing where no word is begun.

    Args:
        text: the line.
        cursor: position in it; the end by default.
        catalog: where names come from; the shipped one with the user's own by default.
    """
    at = len(text) if cursor is None else cursor
    token = next((token for token in split(text) if token.start < at <= token.end), None)
    if token is None:
        return ()
    begun = text[token.start : at]
    count = counted_start(begun)
    typed = key_of(begun[len(count) :])
    names = [entry for entry in _names(catalog or load_catalog()) if not count or entry[2] == "hardware"]
    begins = [entry for entry in names if entry[0].startswith(typed)]
    # A part of a name is enough where no name begins so, as 3.1-70 of llama-3.1-70b.
    meant = begins or [entry for entry in names if len(typed) >= FEWEST_OF_A_PART and typed in entry[0]]
    offered: dict[str, Completion] = {}
    for _, name, kind in meant:
        before = f"{text[: token.start]}{count}{name}{'' if kind == 'field' else ' '}"
        offered.setdefault(name, Completion(f"{count}{name}", kind, before + text[token.end :].lstrip(), len(before)))
    return tuple(offered.values())[:MOST]


@lru_cache(maxsize=4)
def _names(catalog: Catalog) -> tuple[tuple[str, str, str], ...]:
    offered = tuple((key_of(name), name, kind) for name, kind in _offered(catalog) if "_" not in name)
    paths = (path for path, known in all_fields().items() if known.knob.role not in UNSAID)
    return (*offered, *((key_of(path.rpartition(".")[2]), f"{path}=", "field") for path in paths))


def _offered(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield names and what they are, the likeliest first."""
    words = vocabulary()
    yield from ((name, "method") for name in dict.fromkeys(words.methods.values()))
    yield from ((name, "task") for name in ("serve", "train", "fine-tune", "fit"))
    yield from ((name, "model") for name in words.models)
    yield from ((name, "hardware") for name in words.hardware)
    yield from ((name, "amount") for name in ("batch", "seq", "tokens", "rank", "prompt", "output", "epochs", "steps"))
    yield from ((name, "model") for name in model_names(catalog))
    yield from ((name, "hardware") for name in hardware_names(catalog))
    yield from ((name, "value") for task in (TRAIN, INFER) for name in value_names(task, catalog))
