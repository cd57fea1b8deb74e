"""The edited plan, its history and its baseline. Knows no widget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Advice, Column, Comparison
    from capacity_tui.tui.shown.results import Field
    from capacity_tui.tui.view import Document


OPENED = "a plan was opened"
TAKEN = "a pinned plan was loaded"  # Stand in the history for the field where all of the plan was replaced
_ANSWERED = 2  # So many plans of a history keep what they were estimated to come to: a third of a megabyte each


@dataclass(slots=True, eq=False)
class Origin:
    """The file that a plan and all its edits belong to."""

    path: Path | None  # where it lies, None before it is saved for the first time
    saved: Document | None  # the plan as it stands there, or as it was proposed; None where it cannot be told
    texts: dict[str, str]  # the fields of that plan, by key


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry of the history: what an edit replaced."""

    before: Document
    origin: Origin
    key: str

    @property
    def leaves_unsaved(self) -> bool:
        """Whether another plan was opened over changes that were not saved."""
        return self.key == OPENED and self.before != self.origin.saved


@dataclass(frozen=True, slots=True)
class Baseline:
    """What deltas are counted from."""

    mode: str | None = None  # the column every other is compared with, or None when each is compared with itself
    pinned: Comparison | None = None  # the comparison that was pinned, or None for the present one
    is_edit: bool = False  # whether that is the one before the last edit

    def column_for(self, column: Column, comparison: Comparison) -> Column | None:
        """Return the column to compare this one with, None when it is itself the baseline."""
        source = self.pinned or comparison
        mode = self.mode or column.mode
        baseline = source.column(mode)
        return None if baseline is column else baseline


class Store:
    """The state of the plan screen."""

    def __init__(self) -> None:
        self._undo: list[Edit] = []
        self._redo: list[Edit] = []
        self._origin = Origin(None, None, {})
        self._before_edit: Baseline | None = None
        self._listed: tuple[Column, ...] = ()
        self._sorted_by = ""
        self._awaits_edit = False
        self._is_edited = False
        self.document: Document | None = None
        self.generation = 0  # counts the plans that were to be estimated
        self.revision = 0  # counts the changes of the user's own
        self.comparison: Comparison | None = None
        self.compared_generation = -1
        self.baseline = Baseline()
        self.mode = ""
        self.advice: tuple[Advice, ...] = ()  # what would improve the plan, the best first
        self.advised = (-1, "")  # generation and mode that the advice is on

    @property
    def is_stale(self) -> bool:
        return self.comparison is not None and self.compared_generation != self.generation

    @property
    def deltas_from(self) -> Baseline:
        """What deltas count from: numbers the user pinned, else those before the last edit, else the baseline."""
        return self.baseline if self.baseline.pinned else self._before_edit or self.baseline

    @property
    def moved_along(self) -> dict[str, str]:
        """The fields that the last edit moved besides those it was on, with the reason of each."""
        return {} if self.document is None else {**self._chosen_anew(), **self._followed(self.document)}

    @property
    def last_edit(self) -> tuple[str, str, str]:
        """The field that the last edit was on, what it was before and what it is now; empty texts for none."""
        if self.document is None or not self._is_edited:
            return "", "", ""
        edit = self._undo[-1]
        field = next((field for field in self.document.fields() if field.key == edit.key), None)
        return (field.label, _texts(edit.before).get(field.key, ""), field.text) if field else ("", "", "")

    @property
    def before_edit(self) -> Column | None:
        """What the chosen column came to before the last edit; None where nothing was edited since."""
        column, before = self.column, self._before_edit and self._before_edit.pinned
        return before.column(column.mode) if column and before else None

    @property
    def is_advised(self) -> bool:
        """Whether the advice is on the plan as the chosen mode fills it; the usual one beside a pinned plan."""
        return self.mode_column is not None and self.advised == (self.generation, self.mode_column.mode)

    @property
    def way_out(self) -> Advice | None:
        """The best way out where the plan does not fit, as soon as it is known."""
        column = self.column
        if column is None or column.is_pinned or not self.is_advised or column.verdict.holds is not False:
            return None
        return next((advice for advice in self.advice if advice.verdict.holds is not False), None)

    @property
    def path(self) -> Path | None:
        return self._origin.path

    @property
    def is_changed(self) -> bool:
        return self.document is not None and self.document != self._origin.saved

    @property
    def changes(self) -> dict[str, str]:
        """The fields that differ from the saved plan, with what stands there."""
        return {} if self.document is None else self.changed(self.document.fields())

    @property
    def unsaved(self) -> list[tuple[Document, Path | None]]:
        """Plans with changes that no file holds, the present one first, and the files they belong to."""
        plans = {id(self._origin): (self.document, self.path)} if self.document is not None and self.is_changed else {}
        for edit in reversed(self._undo):
            if edit.leaves_unsaved:
                plans.setdefault(id(edit.origin), (edit.before, edit.origin.path))
        return list(plans.values())

    @property
    def edits(self) -> int:
        return len(self._undo)

    @property
    def column(self) -> Column | None:
        if self.comparison is None or not self.comparison.columns:
            return None
        columns = self.comparison.columns
        chosen = self.comparison.column(self.mode) or self.comparison.column(self.comparison.usual)
        return chosen or columns[len(columns) // 2]

    @property
    def answered(self) -> tuple[Document, Column] | None:
        """The plan and its chosen column; None while there are no numbers of it."""
        document, column = self.document, self.column
        return None if document is None or column is None or self.is_stale else (document, column)

    @property
    def mode_column(self) -> Column | None:
        """The column of this plan that is chosen; the usual one where the chosen one is another plan's."""
        column = self.column
        if self.comparison is None or column is None or not column.is_pinned:
            return column
        return self.comparison.column(self.comparison.usual) or self.comparison.columns[0]

    def open(self, document: Document, path: Path | None = None, is_saved: bool = True) -> None:
        """Take up another plan, as a file has it or not; undoing that brings the one before back, with its history."""
        if self.document is not None:
            _add(self._undo, Edit(self.document, self._origin, OPENED))
        self._redo.clear()
        self.baseline = Baseline() if self.baseline.pinned else self.baseline
        self._origin = Origin(path, document if is_saved else None, _texts(document))
        self._replace(document)
        self.forget_edit()

    def edit(self, key: str, text: str) -> bool:
        """Change one field; return whether that changed the plan; raises CapacityError for a senseless text."""
        return self.change({key: text})

    def change(self, change: Mapping[str, object]) -> bool:
        """Change several fields as one entry of the history; return whether that changed the plan."""
        return self.document is not None and self.change_to(self.document.changed(change), next(iter(change)))

    def change_to(self, after: Document, key: str) -> bool:
        """Take up a changed plan as an edit of a field; return whether it is another one."""
        from capacity_tui.tui.shown.results import PINS_KEY

        if self.document is None or after == self.document:
            return False
        _add(self._undo, Edit(self.document, self._origin, key))
        self._redo.clear()
        self._replace(after)
        self.forget_edit()
        if key != PINS_KEY:  # what stands beside the plan moves nothing of it
            self._awaits_edit, self._is_edited = self.comparison is not None, True
        return True

    def renew(self, renewed: Callable[[Document], Document]) -> None:
        """Replace the plan and all of its history by the same plans on a machine that is known better."""
        if self.document is None:
            return
        origins = {id(origin): origin for origin in (self._origin, *(edit.origin for edit in self._undo + self._redo))}
        for origin in origins.values():
            origin.saved = None if origin.saved is None else renewed(origin.saved)
        for history in (self._undo, self._redo):
            history[:] = [replace(edit, before=renewed(edit.before)) for edit in history]
        self._replace(renewed(self.document), is_edit=False)

    def undo(self) -> str | None:
        """Take back the last edit; return the field it was on, None when there is none."""
        return self._travel(self._undo, self._redo)

    def redo(self) -> str | None:
        """Do again what was taken back; return the field it was on, None when there is none."""
        return self._travel(self._redo, self._undo)

    def mark_saved(self, path: Path) -> None:
        """Remember that the plan now stands in a file."""
        if self.document is not None:
            self._origin.path = path
            self._origin.saved = self.document
            self._origin.texts = _texts(self.document)

    def changed(self, fields: Iterable[Field]) -> dict[str, str]:
        """Return, for the fields that differ from the saved plan, what stands there."""
        saved = self._origin.texts
        return {
            field.key: saved.get(field.key, "–") for field in fields if field.text != saved.get(field.key, field.text)
        }

    def accept(self, generation: int, comparison: Comparison) -> bool:
        """Take a comparison, unless it answers for an earlier plan; return whether it was taken."""
        if generation != self.generation:
            return False
        if self.comparison is None and comparison.columns:
            self.baseline = Baseline(comparison.columns[0].mode)
        if self._awaits_edit:
            self._before_edit, self._awaits_edit = Baseline(pinned=self.comparison, is_edit=True), False
        self._listed = comparison.columns
        self.comparison = replace(comparison, columns=self._in_order())
        self.compared_generation = generation
        return True

    def choose(self, mode: str) -> None:
        self.mode = mode

    def choose_next(self, offset: int) -> None:
        """Choose the column that many places further, around the end."""
        if self.comparison is None or self.column is None:
            return
        columns = self.comparison.columns
        self.mode = columns[(columns.index(self.column) + offset) % len(columns)].mode

    def sort(self, key: str) -> bool:
        """Put the columns into the order of a quantity, the best first, or back; return whether they are sorted."""
        self._sorted_by = "" if key == self._sorted_by else key
        if self.comparison is not None:
            self.comparison = replace(self.comparison, columns=self._in_order())
        return bool(self._sorted_by)

    def _in_order(self) -> tuple[Column, ...]:
        def rank(column: Column) -> float:
            row = column.row(self._sorted_by)
            return float("inf") if row is None or row.value is None else row.value * (-1 if row.better > 0 else 1)

        return tuple(sorted(self._listed, key=rank)) if self._sorted_by else self._listed

    def toggle_column_baseline(self) -> None:
        if self.column is not None:
            same = self.deltas_from == Baseline(self.column.mode)
            self.forget_edit()
            self.baseline = Baseline() if same else Baseline(self.column.mode)

    def toggle_pinned_baseline(self) -> None:
        """Use the current numbers as the baseline now, or no longer."""
        self.forget_edit()
        self.baseline = Baseline() if self.baseline.pinned else Baseline(pinned=self.comparison)

    def forget_edit(self) -> None:
        """Count deltas from the baseline again, and mark no field as moved along."""
        self._before_edit, self._awaits_edit, self._is_edited = None, False, False

    def _followed(self, document: Document) -> dict[str, str]:
        if not self._is_edited:
            return {}
        before = _texts(self._undo[-1].before)
        return {
            field.key: why
            for field in document.fields()
            for path, why in document.followed.items()
            if f"{field.key}.".startswith(f"{path}.") and before.get(field.key) != field.text
        }

    def _chosen_anew(self) -> dict[str, str]:
        """Return the automatic fields for which the mode chose another value after the last edit."""
        column, before = self.mode_column, self._before_edit and self._before_edit.pinned
        other = before.column(column.mode) if column and before else None
        if self.document is None or column is None or other is None:
            return {}
        chosen = {field.key: column.chosen.get(field.key) for field in self.document.fields() if field.is_auto}
        texts = {key: other.chosen[key].text for key in chosen if key in other.chosen}
        return {
            key: f"{texts[key]} → {now.text}"
            for key, now in chosen.items()
            if now is not None and key in texts and texts[key] != now.text
        }

    def _travel(self, source: list[Edit], target: list[Edit]) -> str | None:
        if not source or self.document is None:
            return None
        edit = source.pop()
        _add(target, Edit(self.document, self._origin, edit.key))
        self._origin = edit.origin
        self._replace(edit.before)
        self.forget_edit()
        return edit.key

    def _replace(self, document: Document, is_edit: bool = True) -> None:
        self.document = document
        self.generation += 1
        self.revision += is_edit


def _add(history: list[Edit], edit: Edit) -> None:
    """Add an edit to a history; plans further back than a few are estimated anew when they come back."""
    history.append(edit)
    if len(history) > _ANSWERED:
        older = history[-_ANSWERED - 1]
        history[-_ANSWERED - 1] = replace(older, before=older.before.unanswered())


def _texts(document: Document) -> dict[str, str]:
    return {field.key: field.text for field in document.fields()}
