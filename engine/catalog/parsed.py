"""Shipped catalogue files as data, parsed once: YAML takes longer to read than an estimate to compute."""

from __future__ import annotations

import json
from hashlib import blake2b
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from platformdirs import user_cache_dir

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import write_atomically


def parse_shipped(file: Traversable) -> dict[str, Any]:
    """Return the blocks of a shipped file by name.

    The parsed form is kept in the user's cache directory under the digest of the file's content, so that a changed
    file is never mistaken for the old one. Without a writable cache the file is parsed each time.
    """
    content = file.read_bytes()
    kept = _kept(file.name, content)
    try:
        rows: dict[str, Any] = json.loads(kept.read_bytes())
    except (OSError, ValueError):
        rows = yaml.load(content, Loader=yaml.CSafeLoader)
        _keep(kept, rows)
    return rows


def _kept(name: str, content: bytes) -> Path:
    digest = blake2b(content, digest_size=12).hexdigest()
    return Path(user_cache_dir("capacity-tui")) / "catalog" / f"{Path(name).stem}-{digest}.json"


def _keep(path: Path, rows: dict[str, Any]) -> None:
    """Write the parsed form and drop older ones of the same file; a cache that cannot be written is no loss."""
    stem = path.name.rpartition("-")[0]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(rows, default=str), overwrite=True)
        for old in path.parent.glob(f"{stem}-{'[0-9a-f]' * 24}.json"):
            if old != path:
                old.unlink(missing_ok=True)
    except (OSError, StorageError):
        return
