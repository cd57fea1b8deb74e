"""JSON with comments, with the line of every key."""

from __future__ import annotations

import re
from pathlib import Path

from capacity_tui.engine.catalog.reading import Document, read_text, read_yaml
from capacity_tui.engine.errors import DocumentError

_TEXT_OR_NOT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)
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
        raise DocumentError("not valid JSON", error.detail, "look for a comma or a quote", error.place) from None
