"""Files that a command gets as filled copies: where these lie, which words name them, how values are quoted in them."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import reading_error
from capacity_tui.engine.observe.guard.placeholders import CHECKPOINT, filled

_FOLDER = "files"
_PATH = re.compile(r"[^\s'\"=;|&<>(),:`$]+")
"""What may be a path within a longer word, such as the text that a shell runs."""
_PLAIN = re.compile(r"[\w./+-]*|\[[\w./+, -]*\]")
"""Values that mean the same in any file: numbers, names, paths, and lists of them."""
_PLAIN_IN_YAML = re.compile(r"[\w./][\w./ +()-]*")
_JSON, _YAML, _SHELL = (".json",), (".yaml", ".yml"), (".sh", ".bash", ".zsh", ".slurm", ".sbatch")
_IN_DOUBLE_QUOTES = re.compile(r"([\\\"$`])")


class RewrittenFiles:
    """The files of a command that are rewritten.

    Args:
        work: the folder the command works in.
        folder: below which copies lie, each under the name of its file.
    """

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
        taken: set[str] = set()
        result = tuple(self._word(word, taken) for word in words)
        for source in self._copies:
            if source not in taken:
                hint = f"write its path into the command, or leave --rewrite out; it works in {self._work}"
                raise PlanError("no word of the command names this file", hint=hint, place=Place(source))
        return result

    def texts(self, values: Mapping[str, str]) -> dict[Path, str]:
        """Return what each copy holds, by where it lies; the files stay as they are.

        Args:
            values: by key; a checkpoint that is not there yet is an empty text.

        Raises:
            CapacityError: a file cannot be read, or a placeholder cannot be filled.
        """
        return {copy: filled_file(Path(source), values) for source, copy in self._copies.items()}

    def _word(self, word: str, taken: set[str]) -> str:
        option, equals, value = word.partition("=")
        if (copy := self._copy(word, taken)) is not None:
            return str(copy)
        if equals and (copy := self._copy(value, taken)) is not None:
            return f"{option}={copy}"
        return _PATH.sub(partial(self._within, taken), word)

    def _within(self, taken: set[str], match: re.Match[str]) -> str:
        copy = self._copy(match[0], taken)
        if copy is None:
            return match[0]
        before = match.string[: match.start()][-1:]
        return str(copy) if before in ("'", '"') else shlex.quote(str(copy))

    def _copy(self, text: str, taken: set[str]) -> Path | None:
        source = _resolved(self._work, text)
        if source in self._copies:
            taken.add(source)
        return self._copies.get(source)


def filled_file(source: Path, values: Mapping[str, str]) -> str:
    """Return what a file holds, with values in the place of its placeholders, quoted as JSON, YAML or a shell need it.

    In other kinds of files values stand as they are.

    Args:
        source: the file; stays as it is.
        values: by key; a checkpoint that is not there yet is an empty text.

    Raises:
        CapacityError: the file cannot be read, or a placeholder cannot be filled.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise reading_error(error, source) from None
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
