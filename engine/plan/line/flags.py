"""The short flags of a plan: what the one line says, each under a name of its own."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog, nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.plan.line.given_flags import PlanFlags
from capacity_tui.engine.plan.line.hardware_words import named_hardware
from capacity_tui.engine.plan.line.model_words import MODEL, named_model, sized_model
from capacity_tui.engine.plan.line.setting_words import SEQUENCE, TOKENS, amount_of, counted
from capacity_tui.engine.plan.line.vocabulary import FINETUNE, FIT, TRAIN, vocabulary
from capacity_tui.engine.plan.line.words import Meaning, OneLine, Word


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
    done = values.get("task", task)
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
        return Meaning(name, {"task": FINETUNE, Key.TRAINING_METHOD: words.methods[key]})
    if key in words.tasks:
        return Meaning(name, {"task": words.tasks[key]})
    known = ("train", *dict.fromkeys(words.methods.values()), "infer", "fit")
    near = nearest(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return Meaning(
        fault=PlanError("no task is called so", repr(name)[:60], f"{hint}allowed: {', '.join(known)}", Place("--task"))
    )
