"""Content of files of the fleet guide as rows of the catalogue, with remarks and problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from capacity_tui.engine.catalog.reading import Document, KeyPath
from capacity_tui.engine.errors import CapacityError, Place


@dataclass(frozen=True)
class Remark:
    """Something that was read otherwise than it is written, or not at all.

    Attributes:
        place: where it stands.
        words: how it was read, and why.
    """

    place: Place
    words: str

    def one_line(self) -> str:
        """Return place and words as one line."""
        return f"{self.place}: {self.words}"


@dataclass
class FleetFileContent:
    """Content of the files, collected.

    Attributes:
        documents: rows by table, each of them with the lines of its file.
        aliases: names by table, and the ids that they stand for.
        problems: what cannot be used; what stands beside it can.
        remarks: what was read otherwise than it is written.
    """

    documents: dict[str, list[Document]] = field(default_factory=dict)
    aliases: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[CapacityError] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

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
