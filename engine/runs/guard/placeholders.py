"""The plan's values in a command: as ``{training.micro_batch}`` in its words or files, and as environment variables."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import reading
from capacity_tui.engine.plan import OWN_PARAMETERS, Plan, accumulation_of, all_fields, table_text

PREFIX = "CAPACITY_TUI_"  # Before the name of every variable that a command finds in its environment
RUN, ATTEMPT, FOLDER = "run.id", "run.attempt", "run.folder"
ACCUMULATION, CHECKPOINT = "run.accumulation", "run.checkpoint"
RUN_KEYS = (RUN, ATTEMPT, FOLDER, ACCUMULATION, CHECKPOINT)  # Placeholders beyond the fields of plans

_NAMED = re.compile(
    r"(?P<open>\{\{)(?P<literal>[a-z_]+(?:\.[a-z_0-9]+)+)\}\}"
    r"|(?<![$%])\{(?P<key>[a-z_]+(?:\.[a-z_0-9]+)+)\}"
)


def values_of(plan: Plan, run_values: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the values of all placeholders as texts by key, with those no plan says; unknown ones are left out."""
    paths = [*all_fields(), *(f"{OWN_PARAMETERS}{name}" for name in plan.model.spec)]
    values = {path: _text(plan.value(path)) for path in paths}
    if plan.is_training:
        values[ACCUMULATION] = str(accumulation_of(plan))
    return {key: text for key, text in {**values, **(run_values or {})}.items() if text}


def filled_words(words: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with values in the place of its placeholders.

    A word whose checkpoint is not there yet is left out, together with the option before it that it belongs to.

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
    advice = f"{{{near[0]}}} is a placeholder" if near else "placeholders are keys of plans"
    return PlanError(
        "no field of plans has that name", hint=f"{advice}; {{{{{key}}}}} stands for the text itself", place=location
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else table_text(value)


_FOLDER = "files"
_PATH = re.compile(r"[^\s'\"=;|&<>(),:`$]+")
"""What may be a path within a longer word, such as the text that a shell runs."""

_PLAIN = re.compile(r"[\w./+-]*|\[[\w./+, -]*\]")
"""Values that mean the same in any file: numbers, names, paths, and lists of them."""

_PLAIN_IN_YAML = re.compile(r"[\w./][\w./ +()-]*")
_JSON, _YAML, _SHELL = (".json",), (".yaml", ".yml"), (".sh", ".bash", ".zsh", ".slurm", ".sbatch")
_IN_DOUBLE_QUOTES = re.compile(r"([\\\"$`])")


class RewrittenFiles:
    """The files of a command that are rewritten."""

    def __init__(self, files: Sequence[str], work: Path, folder: Path) -> None:
        self._work = work
        sources = dict.fromkeys(_resolved(work, file) for file in files)
        self._copies = {
            source: folder / _FOLDER / str(number) / Path(source).name for number, source in enumerate(sources, 1)
        }

    def words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command with copies in the place of files.

        A file may be a word, stand behind ``--option=``, or within a word, and be written in any way.

        Raises:
            PlanError: no word names one of the files.
        """
        used_keys: set[str] = set()
        result = tuple(self._word(word, used_keys) for word in words)
        for source in self._copies:
            if source not in used_keys:
                hint = f"write its path into the command, or leave --rewrite out; it works in {self._work}"
                raise PlanError("no word of the command names this file", hint=hint, place=Place(source))
        return result

    def texts(self, values: Mapping[str, str]) -> dict[Path, str]:
        """Return what each copy holds, by where it lies; the files stay as they are."""
        return {copy: filled_file(Path(source), values) for source, copy in self._copies.items()}

    def _word(self, word: str, used_keys: set[str]) -> str:
        option, equals, value = word.partition("=")
        if (copy := self._copy(word, used_keys)) is not None:
            return str(copy)
        if equals and (copy := self._copy(value, used_keys)) is not None:
            return f"{option}={copy}"
        return _PATH.sub(partial(self._within, used_keys), word)

    def _within(self, used_keys: set[str], match: re.Match[str]) -> str:
        copy = self._copy(match[0], used_keys)
        if copy is None:
            return match[0]
        before = match.string[: match.start()][-1:]
        return str(copy) if before in ("'", '"') else shlex.quote(str(copy))

    def _copy(self, text: str, used_keys: set[str]) -> Path | None:
        source = _resolved(self._work, text)
        if source in self._copies:
            used_keys.add(source)
        return self._copies.get(source)


def filled_file(source: Path, values: Mapping[str, str]) -> str:
    """Return what a file holds, with values in the place of its placeholders, quoted as JSON, YAML or a shell need it.

    In other kinds of files values stand as they are.
    """
    with reading(source):
        text = source.read_text(encoding="utf-8")
    return filled(text, {CHECKPOINT: "", **values}, str(source), partial(_quoted, source.suffix.lower()))


def _quoted(suffix: str, before: str, value: str, location: Place) -> str:
    """Return a value as it has to stand behind a text of a file of some kind."""
    if _PLAIN.fullmatch(value) or suffix not in (*_JSON, *_YAML, *_SHELL):
        return value
    quote = _open_quote(before, suffix)
    if suffix in _SHELL:
        if quote == "'":
            return value.replace("'", "'\\''")
        return _IN_DOUBLE_QUOTES.sub(r"\\\1", value) if quote else shlex.quote(value)
    if quote == '"':
        return json.dumps(value, ensure_ascii=False)[1:-1]
    if quote == "'" and "\n" not in value:
        return value.replace("'", "''")
    if not quote and suffix in _YAML and _PLAIN_IN_YAML.fullmatch(value):
        return value
    hint = f"put double quotes around the placeholder: the value is {value!r}"
    raise PlanError("the value needs quotes there", hint=hint, place=location)


def _open_quote(before: str, suffix: str) -> str:
    """Return the quote within which a text ends; empty where none is open."""
    quote, is_escaped, last = "", False, "\n"
    # In YAML and JSON a scalar is searched in its line alone: apostrophes elsewhere are not its quotes.
    for character in before if suffix in _SHELL else before.rpartition("\n")[2]:
        if is_escaped:
            is_escaped = False
        elif character == "\\" and quote != "'" and (suffix in _SHELL or quote):
            is_escaped = True
        elif quote == "#":
            quote = "" if character == "\n" else quote
        elif quote:
            quote = "" if character == quote else quote
        elif (last.isspace() and character in "#\"'") or (character in "\"'" and (suffix in _SHELL or last in "[{,:")):
            quote = character
        last = character
    return "" if quote == "#" else quote


def _resolved(work: Path, path: str) -> str:
    return os.path.realpath(work / path)
