"""Shipped data as plain values: what is parsed once is kept, so that most starts load no YAML parser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import cache_folder, write_atomically
from capacity_tui.engine.record import dataclass


def parse_shipped(file: Traversable | str) -> dict[str, Any]:
    """Return the blocks of a shipped file, or of one of ``profiles`` by its name, by theirs.

    The parsed form is kept in the user's cache directory under the digest of the file's content, so that a changed
    file is never mistaken for the old one. Without a writable cache the file is parsed each time.
    """
    shipped = files("capacity_tui.profiles") / file if isinstance(file, str) else file
    content = shipped.read_bytes()
    cached = cache_folder() / "catalog" / f"{Path(shipped.name).stem}-{_digest(content)}.json"
    rows = _read(cached)
    if rows is None:
        import yaml  # noqa: PLC0415 - it takes longer to load than what is kept

        text = json.dumps(yaml.load(content, Loader=yaml.CSafeLoader), default=str)
        _keep(cached, text)
        # What is kept has no dates of its own: the first reading must not have any either.
        rows = json.loads(text)
    return rows


def _read(cached: Path) -> dict[str, Any] | None:
    """Return what the cache holds; None where nothing is kept, or not what was written: then it is written again."""
    try:
        digest, _, text = cached.read_bytes().partition(b"\n")
        if digest != _digest(text).encode():
            return None
        rows: dict[str, Any] = json.loads(text)
    except (OSError, ValueError):
        return None
    return rows


def _keep(path: Path, text: str) -> None:
    """Write the parsed form under its digest and drop older ones of the file; an unwritable cache is no loss."""
    stem = path.name.rpartition("-")[0]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, f"{_digest(text.encode())}\n{text}", overwrite=True)
        for old in path.parent.glob(f"{stem}-{'[0-9a-f]' * 24}.json"):
            if old != path:
                old.unlink(missing_ok=True)
    except (OSError, StorageError):
        return


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class NamedNumber:
    """One number."""

    name: str
    value: float  # the number; every formula is handed this very object
    source: str
    unit: str = ""  # of the value, empty for a pure number


@cache
def named_numbers(file: str) -> Mapping[str, NamedNumber]:
    """Return every number of a file in ``profiles/`` by its key."""
    rows = parse_shipped(file)
    return {
        key: NamedNumber(row["name"], float(row["value"]), row["source"], row.get("unit", ""))
        for key, row in rows.items()
    }


def counted(count: str) -> float:
    """Return a counted number by its key."""
    return counts()[count].value


def counts() -> Mapping[str, NamedNumber]:
    return named_numbers("counts.yaml")
