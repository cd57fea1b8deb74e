"""What the commands of a page answer: held against ``page_answers.yaml``, which stands beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).parent / "page_answers.yaml"


def expectations(page: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what the commands of a page answer, by command without its program."""
    rows: dict[str, dict[str, Mapping[str, Any]]] = yaml.safe_load(TABLE.read_text("utf-8"))
    return rows.get(page, {})


def faults(expected: Mapping[str, Any], text: str) -> Iterator[str]:
    """Yield in what an answer is not as expected.

    Args:
        expected: ``says``: words of the output; ``json``: values by path, a pair of numbers being a range.
        text: the output; JSON where ``json`` asks for it.
    """
    flat = " ".join(text.split())
    yield from (f"does not say {words!r}" for words in expected.get("says", ()) if words not in flat)
    data = json.loads(text) if "json" in expected else None
    for path, wanted in expected.get("json", {}).items():
        found = _at(data, path)
        if isinstance(wanted, list) and len(wanted) == len(("low", "high")):
            low, high = wanted
            if not isinstance(found, int | float) or not low <= found <= high:
                yield f"{path} is {found}, not {low} to {high}"
        elif found != wanted:
            yield f"{path} is {found!r}, not {wanted!r}"


def _at(data: Any, path: str) -> Any:
    """Return what stands at a path such as ``top[0].set.hardware\\.name``."""
    for part in re.split(r"(?<!\\)\.|\[|\]\.?", path):
        if part and data is not None:
            data = data[int(part)] if isinstance(data, list) else data.get(part.replace("\\.", "."))
    return data
