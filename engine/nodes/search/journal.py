"""Journals of searches: the chunks that are done, so that a search that was stopped or killed resumes."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.engine.files import make_folder, state_folder, storage_error
from capacity_tui.engine.nodes.search.chunks import Chunk, Cutting, outcomes_as_text, outcomes_from_text
from capacity_tui.engine.nodes.search.environment import Circumstances
from capacity_tui.engine.nodes.search.shared_search import Outcomes
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.solve.search import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity_tui.engine.machine import Machine

FOLDER = "searches"
# Journals that nobody went on with are removed; the oldest first.
MOST_JOURNALS = 20


class Journal:
    """The chunks of one search that are done, each a line of a file.

    Args:
        path: the file; it need not be there.

    Raises:
        StorageError: it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        make_folder(path.parent)
        try:
            self._read()
        except OSError as error:
            raise storage_error(error, path, "cannot be written") from error

    def __len__(self) -> int:
        return len(self._known)

    def outcomes(self, chunk: Chunk) -> Outcomes | None:
        """Return what a chunk came to; None where it is not known."""
        text = self._known.pop(_key(chunk), None)
        try:
            return None if text is None else outcomes_from_text(text)
        except (ValueError, KeyError, TypeError):
            return None

    def keep(self, chunk: Chunk, outcomes: Outcomes) -> None:
        """Keep the result of a chunk, as one write: readers see a whole line or none.

        Raises:
            StorageError: it cannot be written.
        """
        try:
            with self._path.open("ab") as file:
                file.write(f"{_key(chunk)} {outcomes_as_text(outcomes)}\n".encode())
        except OSError as error:
            raise storage_error(error, self._path, "cannot be written") from error

    def remove(self) -> None:
        """Remove the file: the search is done."""
        with suppress(OSError):
            self._path.unlink()

    def _read(self) -> None:
        """Take the whole lines of the file, and cut off what a death in the middle of one left."""
        for old in sorted(self._path.parent.glob("*.jsonl"), key=os.path.getmtime)[:-MOST_JOURNALS]:
            if old != self._path:
                old.unlink(missing_ok=True)
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self._path, len(whole))
        for line in whole.decode(errors="replace").splitlines():
            key, _, text = line.partition(" ")
            self._known[key] = text


def journal_of(
    question: Question,
    machine: Machine | None,
    rests_on: Circumstances,
    user_files: Mapping[str, bytes],
    cutting: Cutting,
) -> Journal:
    """Return the journal of a search: the same one for the same question, program and catalogue.

    Raises:
        StorageError: it cannot be read or written.
    """
    words = (dump_plan(question.plan), *map(repr, (question, machine, rests_on, cutting, sorted(user_files))))
    digest = sha256("\n".join(words).encode())
    for name in sorted(user_files):
        digest.update(user_files[name])
    return Journal(state_folder() / FOLDER / f"{digest.hexdigest()[:32]}.jsonl")


def _key(chunk: Chunk) -> str:
    return f"{chunk.first}-{chunk.last}-{chunk.begin}-{chunk.end}"
