"""The plan's values in a command: as ``{training.micro_batch}`` in its words or files, and as environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import reading_error
from capacity_tui.engine.plan.all_fields import OWN_PARAMETERS, all_fields
from capacity_tui.engine.plan.batches import accumulation_of
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.table_text import table_text

PREFIX = "CAPACITY_TUI_"
"""Before the name of every variable that a command finds in its environment."""
RUN, ATTEMPT, FOLDER = "run.id", "run.attempt", "run.folder"
ACCUMULATION, CHECKPOINT = "run.accumulation", "run.checkpoint"
OF_RUN = (RUN, ATTEMPT, FOLDER, ACCUMULATION, CHECKPOINT)
"""What a command may be told that no plan says."""
_NAMED = re.compile(
    r"(?P<open>\{\{)(?P<literal>[a-z_]+(?:\.[a-z_0-9]+)+)\}\}"
    r"|(?<![$%])\{(?P<key>[a-z_]+(?:\.[a-z_0-9]+)+)\}"
)


def values_of(plan: Plan, of_run: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return all that a command may be told, as texts by key; what is not known is left out.

    Args:
        plan: the plan, every default filled in.
        of_run: what no plan says, by the keys of ``OF_RUN``.
    """
    paths = [*all_fields(), *(f"{OWN_PARAMETERS}{name}" for name in plan.model.spec)]
    found = {path: _text(plan.value(path)) for path in paths}
    if plan.task in (None, "train", "finetune"):
        found[ACCUMULATION] = str(accumulation_of(plan))
    return {key: text for key, text in {**found, **(of_run or {})}.items() if text}


def filled_words(words: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with values in the place of its placeholders.

    A word whose checkpoint is not there yet is left out, together with the option before it that it belongs to.

    Args:
        words: the command and its arguments.
        values: by key, as ``values_of`` returns them.

    Raises:
        PlanError: a placeholder names no field of plans, or one that the plan leaves open.
    """
    found: list[str] = []
    for word in words:
        if CHECKPOINT in _keys(word) and CHECKPOINT not in values:
            if word == f"{{{CHECKPOINT}}}" and found and found[-1].startswith("-") and "=" not in found[-1]:
                found.pop()
            continue
        found.append(filled(word, values))
    return tuple(found)


def filled(text: str, values: Mapping[str, str], file: str | None = None) -> str:
    """Return a text with values in the place of its placeholders; doubled braces stand for themselves.

    Args:
        text: words of a command, or what a file holds.
        values: by key.
        file: where it stands, for messages.

    Raises:
        PlanError: a placeholder names no field of plans, or one that the plan leaves open.
    """

    def value(match: re.Match[str]) -> str:
        key = match["key"]
        if key is None:
            return f"{{{match['literal']}}}"
        if key in values:
            return values[key]
        line = None if file is None else text.count("\n", 0, match.start()) + 1
        raise _unknown(key, Place(file, line, key))

    return _NAMED.sub(value, text)


def filled_file(source: Path, values: Mapping[str, str]) -> str:
    """Return what a file holds, with values in the place of its placeholders; the file stays as it is.

    Args:
        source: the file.
        values: by key; a checkpoint that is not there yet is an empty text.

    Raises:
        CapacityError: the file cannot be read, or a placeholder cannot be filled.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise reading_error(error, source) from None
    return filled(text, {CHECKPOINT: "", **values}, str(source))


def environment_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return values as variables of the environment: ``training.micro_batch`` is CAPACITY_TUI_TRAINING_MICRO_BATCH."""
    return {variable_of(key): text for key, text in values.items()}


def variable_of(key: str) -> str:
    """Return the name of the variable that holds a value."""
    return PREFIX + re.sub(r"[^A-Za-z0-9]", "_", key).upper()


def _keys(text: str) -> list[str]:
    return [match["key"] for match in _NAMED.finditer(text) if match["key"]]


def _unknown(key: str, place: Place) -> PlanError:
    if key in all_fields() or key.startswith(OWN_PARAMETERS) or key in OF_RUN:
        return PlanError("the plan leaves it open", hint="give it a value in the plan", place=place)
    near = nearest(key, [*all_fields(), *OF_RUN])
    meant = f"{{{near[0]}}} is a placeholder" if near else "placeholders are keys of plans"
    return PlanError(
        "no field of plans is called so", hint=f"{meant}; {{{{{key}}}}} stands for the text itself", place=place
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else table_text(value)
