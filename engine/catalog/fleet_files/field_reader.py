"""Content of files of the fleet guide as rows of the catalogue, with remarks and problems."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from capacity_tui.engine.catalog.reading import Document, KeyPath, read_text, read_yaml
from capacity_tui.engine.errors import CapacityError, DocumentError, Place
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True)
class Remark:
    """Something that was read otherwise than it is written, or not at all."""

    place: Place  # where it stands
    words: str  # how it was read, and why

    def one_line(self) -> str:
        """Return place and words as one line."""
        return f"{self.place}: {self.words}"


@dataclass
class FleetFileContent:
    """Content of the files, collected."""

    # rows by table, each of them with the lines of its file
    documents: dict[str, list[Document]] = field(default_factory=dict)
    aliases: dict[str, dict[str, str]] = field(default_factory=dict)  # names by table, and the ids that they stand for
    problems: list[CapacityError] = field(default_factory=list)  # what cannot be used; what stands beside it can
    remarks: list[Remark] = field(default_factory=list)  # what was read otherwise than it is written

    def add(self, table: str, document: Document, rows: Mapping[str, tuple[KeyPath, Any]]) -> None:
        """Add rows to a table.

        Args:
            table: name of the table.
            document: where they come from.
            rows: by id, where each stands in the document, and its fields.
        """
        lines: dict[KeyPath, int] = {}
        for row_id, (path, _) in rows.items():
            depth = len(path)
            lines[(row_id,)] = document.place(*path).line or 1
            lines |= {(row_id, *key[depth:]): line for key, line in document.lines.items() if key[:depth] == path}
        data = {row_id: fields for row_id, (_, fields) in rows.items()}
        self.documents.setdefault(table, []).append(Document(data, document.file, lines))


_TEXT_OR_NOT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)

_COMMA_TOO_MANY = re.compile(r",(?=\s*[}\]])")

_VISIBLE = re.compile(r"[^\n]")


def read_commented_json(path: Path) -> Document:
    """Return the data of a JSON file; comments (``//`` and ``/* */``) and commas too many do no harm.

    Raises:
        StorageError: the file cannot be read.
        DocumentError: it is too large, not text or not JSON.
    """
    # Without its comments JSON is YAML; what is taken out leaves blanks, so that lines stay what they are.
    plain = _TEXT_OR_NOT.sub(lambda match: match[1] or _VISIBLE.sub(" ", match[0]), read_text(path))
    try:
        return read_yaml(plain, str(path))
    except DocumentError as error:
        if error.title != "not valid YAML":
            raise
        raise _in_words_of_json(plain, error) from None


def _in_words_of_json(plain: str, error: DocumentError) -> DocumentError:
    """Return a fault of a file as a reader of JSON has it; as it was where that one finds none."""
    hint = "look for a comma or a quote"
    try:
        json.loads(_COMMA_TOO_MANY.sub(" ", plain))
    except json.JSONDecodeError as fault:
        place = Place(error.place.file, fault.lineno)
        return DocumentError("not valid JSON", f"{fault.msg}, column {fault.colno}", hint, place)
    return DocumentError("not valid JSON", error.detail, hint, error.place)
