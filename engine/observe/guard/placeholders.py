"""The plan's values in a command: as ``{training.micro_batch}`` in its words or files, and as environment variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.plan import OWN_PARAMETERS, Plan, accumulation_of, all_fields, table_text

PREFIX = "CAPACITY_TUI_"
"""Before the name of every variable that a command finds in its environment."""
RUN, ATTEMPT, FOLDER = "run.id", "run.attempt", "run.folder"
ACCUMULATION, CHECKPOINT = "run.accumulation", "run.checkpoint"
RUN_KEYS = (RUN, ATTEMPT, FOLDER, ACCUMULATION, CHECKPOINT)
"""Placeholders beyond the fields of plans."""
_NAMED = re.compile(
    r"(?P<open>\{\{)(?P<literal>[a-z_]+(?:\.[a-z_0-9]+)+)\}\}"
    r"|(?<![$%])\{(?P<key>[a-z_]+(?:\.[a-z_0-9]+)+)\}"
)


def values_of(plan: Plan, run_values: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the values of all placeholders as texts by key; unknown ones are left out.

    Args:
        plan: the plan, every default filled in.
        run_values: what no plan says, by the keys of ``OF_RUN``.
    """
    paths = [*all_fields(), *(f"{OWN_PARAMETERS}{name}" for name in plan.model.spec)]
    values = {path: _text(plan.value(path)) for path in paths}
    if plan.task in (None, "train", "finetune"):
        values[ACCUMULATION] = str(accumulation_of(plan))
    return {key: text for key, text in {**values, **(run_values or {})}.items() if text}


def filled_words(words: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with values in the place of its placeholders.

    A word whose checkpoint is not there yet is left out, together with the option before it that it belongs to.

    Args:
        values: by key, as ``values_of`` returns them.

    Raises:
        PlanError: a placeholder names no field of plans, or one that the plan leaves open.
    """
    result: list[str] = []
    for word in words:
        if CHECKPOINT in keys_in(word) and CHECKPOINT not in values:
            if word == f"{{{CHECKPOINT}}}" and result and result[-1].startswith("-") and "=" not in result[-1]:
                result.pop()
            continue
        result.append(filled(word, values))
    return tuple(result)


def filled(
    text: str,
    values: Mapping[str, str],
    file: str | None = None,
    quoted: Callable[[str, str, Place], str] = lambda _, value, __: value,
) -> str:
    """Return a text with values in the place of its placeholders; doubled braces stand for themselves.

    Args:
        text: words of a command, or what a file holds.
        values: by key.
        quoted: makes of the text before a placeholder, its value and its place what stands there instead.

    Raises:
        PlanError: a placeholder names no field of plans, or one that the plan leaves open.
    """

    def value(match: re.Match[str]) -> str:
        key = match["key"]
        if key is None:
            return f"{{{match['literal']}}}"
        line = None if file is None else text.count("\n", 0, match.start()) + 1
        place = Place(file, line, key)
        if key in values:
            return quoted(text[: match.start()], values[key], place)
        raise _unknown(key, place)

    return _NAMED.sub(value, text)


def keys_in(text: str) -> list[str]:
    """Return the keys of the placeholders in a text."""
    return [match["key"] for match in _NAMED.finditer(text) if match["key"]]


def environment_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return values as variables of the environment: ``training.micro_batch`` is CAPACITY_TUI_TRAINING_MICRO_BATCH."""
    return {variable_of(key): text for key, text in values.items()}


def variable_of(key: str) -> str:
    """Return the name of the variable that holds a value."""
    return PREFIX + re.sub(r"[^A-Za-z0-9]", "_", key).upper()


def _unknown(key: str, location: Place) -> PlanError:
    if key in all_fields() or key.startswith(OWN_PARAMETERS) or key in RUN_KEYS:
        return PlanError("the plan leaves it open", hint="give it a value in the plan", place=location)
    near = nearest(key, [*all_fields(), *RUN_KEYS])
    meant = f"{{{near[0]}}} is a placeholder" if near else "placeholders are keys of plans"
    return PlanError(
        "no field of plans is called so", hint=f"{meant}; {{{{{key}}}}} stands for the text itself", place=location
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else table_text(value)
