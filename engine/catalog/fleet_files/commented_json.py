"""JSON with comments, with the line of every key."""

from __future__ import annotations

import json
import re
from pathlib import Path

from capacity_tui.engine.catalog.reading import Document, read_text, read_yaml
from capacity_tui.engine.errors import DocumentError, Place

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
    plain = _TEXT_OR_NOT.sub(lambda found: found[1] or _VISIBLE.sub(" ", found[0]), read_text(path))
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
