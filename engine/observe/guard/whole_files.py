"""Whether a file of a checkpoint was written to its end, by its own structure."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import BinaryIO

_ARCHIVE = b"PK\x03\x04"
"""What archives begin with; torch writes its files as such, with a record at their end."""
_LARGEST_JSON = 1 << 26
_INDEX = ".index.json"
_HEADER_LENGTH = 8


def is_whole(path: Path) -> bool:
    """Return whether a file is complete by its structure: archives, tensors behind a header, documents, indexes.

    Others count as complete, unless they are empty where their like never is.
    """
    try:
        if path.suffix == ".json":
            return _is_document(path)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if path.suffix == ".safetensors":
                return _has_all_tensors(file, size)
            if file.read(len(_ARCHIVE)) == _ARCHIVE:
                return zipfile.is_zipfile(file)
            return size > 0 or path.suffix not in (".pt", ".pth", ".bin", ".ckpt", ".npz")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _is_document(path: Path) -> bool:
    """Return whether a document ends, and the files that an index names are there."""
    if path.stat().st_size > _LARGEST_JSON:
        return True
    document = json.loads(path.read_bytes())
    if not path.name.endswith(_INDEX):
        return True
    return all((path.parent / name).is_file() for name in set(document["weight_map"].values()))


def _has_all_tensors(file: BinaryIO, size: int) -> bool:
    """Return whether the tensors that the header lists end where the file does."""
    length = int.from_bytes(file.read(_HEADER_LENGTH), "little")
    if not 0 < length <= min(size, _LARGEST_JSON):
        return False
    header = json.loads(file.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return _HEADER_LENGTH + length + max(ends, default=0) == size
