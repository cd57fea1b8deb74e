"""A search shared out among workers, with the answer that a search here gives, to the last bit.

Chunks come back in any order. Their outcomes are added up in the order of the question, piece by piece as here,
and the few configurations that an answer shows are estimated here.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Protocol, TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.files import make_folder, state_folder, writing
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.nodes.chunks import (
    Chunk,
    Cutting,
    Outcome,
    SearchEnvironment,
    outcomes_as_text,
    outcomes_from_text,
)
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.search import (
    REPORT_SECONDS,
    REPORT_SHARE,
    Answer,
    BlockResult,
    Question,
    TopK,
    answerable,
    goal_of,
    search,
    spaces_of,
)
from capacity_tui.engine.solve.space import Values

Filled: TypeAlias = Mapping[tuple[object, ...], Values]
Outcomes: TypeAlias = tuple[Outcome, ...]
# Chunks that may wait for an earlier one, over the chunks that workers have: their outcomes are held in memory.
MOST_WAITING = 16


class Workers(Protocol):
    """Workers that evaluate chunks."""

    @property
    def room(self) -> int:
        """How many chunks they take at once, those that wait at a worker among them."""

    def give(self, chunk: Chunk, filled: Filled) -> None:
        """Have a chunk evaluated, with what plans left open as filled in the order of the question."""

    def finished(self) -> Iterator[tuple[Chunk, Outcomes]]:
        """Yield chunks that are done, after a moment at the latest; none where none are."""


@dataclass(slots=True)
class _Slot:
    """A chunk in the order of the question, or its outcome; its share is that of one number."""

    chunk: Chunk
    share: float = 1.0
    content: Sequence[tuple[BlockResult, ...] | _Slot] | None = None


class SharedSearch:
    """One search, shared out."""

    def __init__(
        self, question: Question, catalog: Catalog, machine: Machine | None, known: Journal, cutting: Cutting
    ) -> None:
        self._original, self._catalog, self._machine = question, catalog, machine
        self._question = answerable(question)
        self._spaces = spaces_of(self._question, catalog, machine)
        self._best = TopK(self._question, goal_of(self._question), catalog, machine)
        self._known, self._cutting = known, cutting
        self._slots: dict[Chunk, _Slot] = {}
        self._order: deque[tuple[BlockResult, ...] | _Slot] = deque()
        self._cut: deque[_Slot] = deque()
        self._next = 0
        self._share = 0.0
        self.resumed = 0

    def run(
        self,
        workers: Workers,
        progress: Callable[[Answer], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Return the best configurations; the best so far where the search is stopped.

        Raises:
            CapacityError: nothing of the question can be estimated, or the workers cannot.
        """
        started = monotonic()
        due = started + REPORT_SECONDS
        self._give(workers)
        while self._slots:
            for chunk, outcomes in workers.finished():
                self._known.keep(chunk, outcomes)
                self._take(self._slots.pop(chunk), outcomes)
            self._add_up()
            if stopped():
                return self._best.answer(monotonic() - started, self._share, complete=False)
            now = monotonic()
            if progress is not None and now >= due:
                progress(self._best.answer(now - started, self._share, complete=False))
                after = monotonic()
                due = after + max(REPORT_SECONDS, (after - now) / REPORT_SHARE)
            self._give(workers)
        self._add_up()
        if self._spaces.count == 1 and not self._best.valid:
            return search(self._original, self._catalog, self._machine)  # says why nothing of it can be estimated
        return self._best.answer(monotonic() - started, 1.0, complete=True)

    def _give(self, workers: Workers) -> None:
        """Give workers as many chunks as they take, without those that are known."""
        while len(self._slots) < workers.room and (slot := self._following(workers.room)) is not None:
            outcomes = self._known.outcomes(slot.chunk)
            if outcomes is not None:
                self.resumed += 1
                self._take(slot, outcomes)
                continue
            self._slots[slot.chunk] = slot
            workers.give(slot.chunk, self._spaces.filled)

    def _following(self, room: int) -> _Slot | None:
        """Return the next chunk; None where there is none, or too much waits for an earlier one."""
        if self._cut:
            return self._cut.popleft()
        self._add_up()
        if self._next >= self._spaces.count or len(self._order) > MOST_WAITING * room:
            return None
        first, self._next = self._next, min(self._next + self._cutting.numbers, self._spaces.count)
        for number in range(first, self._next):
            self._spaces.fill(number)
        slot = _Slot(Chunk(first, self._next))
        self._order.append(slot)
        return slot

    def _take(self, slot: _Slot, outcomes: Outcomes) -> None:
        """Store the result of a chunk; what is not evaluated yet follows as further chunks."""
        content: list[tuple[BlockResult, ...] | _Slot] = []
        for number, outcome in enumerate(outcomes, slot.chunk.first):
            content.append(outcome.parts)
            cut = [_Slot(chunk, 1.0 / outcome.chunks) for chunk in outcome.cut(number)]
            content += cut
            self._cut.extend(cut)
            if not cut:
                self._share += slot.share / self._spaces.count
        slot.content = content

    def _add_up(self) -> None:
        """Add up what is done, in the order of the question, up to the first chunk that is not."""
        while self._order:
            head = self._order[0]
            if isinstance(head, _Slot) and head.content is None:
                return
            self._order.popleft()
            if isinstance(head, _Slot):
                self._order.extendleft(reversed(head.content or ()))
                continue
            for part in head:
                self._best.add(part)


FOLDER = "searches"
MOST_JOURNALS = 20  # Journals that were not resumed are removed; the oldest first


class Journal:
    """The chunks of one search that are done, each a line of a file, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        make_folder(path.parent)
        with writing(path):
            self._read()

    def __len__(self) -> int:
        return len(self._known)

    def outcomes(self, chunk: Chunk) -> Outcomes | None:
        """Return the outcome of a chunk; None where it is not known."""
        text = self._known.pop(_key(chunk), None)
        try:
            return None if text is None else outcomes_from_text(text)
        except (ValueError, KeyError, TypeError):
            return None

    def keep(self, chunk: Chunk, outcomes: Outcomes) -> None:
        """Keep the result of a chunk, as one write: readers see a whole line or none."""
        with writing(self._path), self._path.open("ab") as file:
            file.write(f"{_key(chunk)} {outcomes_as_text(outcomes)}\n".encode())

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
        complete = content[: content.rfind(b"\n") + 1]
        if len(complete) < len(content):
            os.truncate(self._path, len(complete))
        for line in complete.decode(errors="replace").splitlines():
            key, _, text = line.partition(" ")
            self._known[key] = text


def journal_of(
    question: Question,
    machine: Machine | None,
    rests_on: SearchEnvironment,
    user_files: Mapping[str, bytes],
    cutting: Cutting,
) -> Journal:
    """Return the journal of a search: the same one for the same question, program and catalogue."""
    words = (dump_plan(question.plan), *map(repr, (question, machine, rests_on, cutting, sorted(user_files))))
    digest = sha256("\n".join(words).encode())
    for name in sorted(user_files):
        digest.update(user_files[name])
    return Journal(state_folder() / FOLDER / f"{digest.hexdigest()[:32]}.jsonl")


def _key(chunk: Chunk) -> str:
    return f"{chunk.first}-{chunk.last}-{chunk.begin}-{chunk.end}"
