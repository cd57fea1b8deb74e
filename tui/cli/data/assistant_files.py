"""Which files an assistant may name: those below the working folder, and below folders that the user gave it.

Errors quote what they read, so that any other file would reach the assistant line by line.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from capacity_tui.engine.errors import CapacityError

LONGEST_WORD = 100_000
"""Characters of an argument; systems take some more."""
_ESCAPE = re.compile(r"\\(?:x(?P<two>[0-9a-fA-F]{2})|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|/)")
_BETWEEN = re.compile(r"(?:https?|mongodb(?:\+srv)?)://\S*|[\s=,:{}\[\]\"'|>]+")
_LONGEST_PATH = 4096


class ReachError(CapacityError):
    """An argument that an assistant may not give."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The folders whose files may be named.

    Attributes:
        folders: real paths.
    """

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Reach:
        """Return that of some folders and of the working folder, unless that is the root of all files."""
        work = Path.cwd().resolve()
        return cls((*(() if work == Path(work.anchor) else (work,)), *(folder.resolve() for folder in folders)))

    def check(self, arguments: object) -> None:
        """Check every text in the arguments of a call.

        Raises:
            ReachError: one names a file elsewhere, or what is neither a file nor a folder.
        """
        for text in _texts(arguments):
            for word in dict.fromkeys((text.strip(), *_BETWEEN.split(_unescaped(text)))):
                if word.strip("/") and len(word) < _LONGEST_PATH and "\0" not in word:
                    self._check(word)

    def _check(self, word: str) -> None:
        path = Path(os.path.expanduser(word))  # noqa: PTH111 - the method raises for a user nobody knows
        leads_away = path.is_absolute() or ".." in path.parts
        try:
            status = path.stat()
        except (OSError, ValueError):
            if not leads_away or not path.name:
                return
        else:
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                raise ReachError(f"{word[:200]} is no regular file", hint="name the file of a plan")
        real = path.resolve()
        if not any(real.is_relative_to(folder) for folder in self.folders):
            known = ", ".join(map(str, self.folders)) or "no folder"
            hint = "the user may add a folder: capacity-tui mcp --folder DIR"
            raise ReachError(f"{word[:200]} is outside of what may be read", f"that is below {known}", hint)


def check_words(words: Sequence[str]) -> None:
    """Check what becomes the words of a command line.

    Raises:
        ReachError: one cannot be a word.
    """
    for word in words:
        if "\0" in word:
            raise ReachError("an argument has a character 0", hint="leave it out")
        if len(word.encode("utf-8", "replace")) > LONGEST_WORD:
            raise ReachError(
                f"an argument is longer than {LONGEST_WORD} bytes", hint="give the plan as an object, or name its file"
            )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


def _unescaped(text: str) -> str:
    """Return a text with characters in the place of the escapes by which YAML and JSON write them."""

    def character(match: re.Match[str]) -> str:
        code = match["two"] or match["four"] or match["eight"]
        try:
            return "/" if code is None else chr(int(code, 16))
        except (ValueError, OverflowError):
            return match[0]

    return _ESCAPE.sub(character, text)
