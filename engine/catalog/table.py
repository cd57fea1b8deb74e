"""One catalogue: rows by id, read when first asked for, the user's own files laid over the shipped ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from capacity_tui.engine.catalog.reading import (
    Document,
    KeyPath,
    brand_pattern,
    brandless_key_of,
    key_of,
    nearest,
    read_yaml,
)
from capacity_tui.engine.catalog.rows.base import FROM_USER, Row
from capacity_tui.engine.catalog.rows.prices import day_of_file
from capacity_tui.engine.catalog.shipped import parse_shipped
from capacity_tui.engine.errors import CapacityError, CatalogError, Place
from capacity_tui.engine.printable import printable, printable_data

RowT = TypeVar("RowT", bound=Row)
_Fields = dict[str, Any]
MOST_NAMES = 2**14  # Names whose ids a table keeps, known or not
LIKE = "like"  # Field of a row that names another row of its table: what it does not give itself is as there


class Table(Mapping[str, RowT], Generic[RowT]):
    """A read-only catalogue of one kind of row.

    Rows of shipped files are checked when they are first used; rows of the user's files when the table is.

    Args:
        kind: what a row is, for messages: ``accelerator``.
        shipped: YAML files of the package, each a mapping of id to fields.
        own: the user's YAML files of the same form; they add rows and override fields of shipped ones.
        documents: what other files of the user's say in the same form; they go over ``own``.
        named: fields, by dotted path, that name rows of other tables, and what finds those; a row of the user's that
            names none is left out.
    """

    def __init__(
        self,
        kind: str,
        row_type: type[RowT],
        shipped: Sequence[Traversable],
        own: Sequence[Path] = (),
        aliases: Mapping[str, str] | None = None,
        documents: Sequence[Document] = (),
        named: Mapping[str, Callable[[str], Row]] | None = None,
    ) -> None:
        self.kind = kind
        self.row_type = row_type
        self._files = shipped
        self._user_files = own
        self._aliases = aliases or {}
        self._own_documents = documents
        self._named = named or {}
        self._rows: dict[str, RowT] = {}
        self._ids_of_names: dict[str, str | None] = {}

    def __getitem__(self, row_id: str) -> RowT:
        row = self._rows.get(row_id) or self._user_rows[0].get(row_id)
        if row is None:
            row = self._shipped_row(row_id)
        self._rows[row_id] = row
        return row

    def with_rows(self, rows: Mapping[str, RowT]) -> Table[RowT]:
        """Return the table with other rows under known ids."""
        changed = copy(self)
        changed._rows = {**self._rows, **rows}
        return changed

    def __iter__(self) -> Iterator[str]:
        yield from self._shipped
        yield from (row_id for row_id in self._user_rows[0] if row_id not in self._shipped)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def file(self) -> str:
        """Name of its files below a folder of catalogues, without the suffix where it is one file."""
        path = Path(str(self._files[0]))
        return path.parent.name if len(self._files) > 1 else path.stem

    @property
    def problems(self) -> tuple[CapacityError, ...]:
        """What is wrong with the user's own files; the rows concerned are left out."""
        lost = [(alias, row_id) for alias, row_id in self._aliases.items() if row_id not in self]
        return (*self._user_rows[1], *(_lost_alias(self.kind, alias, row_id) for alias, row_id in lost))

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names and the ids they stand for."""
        return self._aliases

    def where(self, field: str, value: object) -> Iterator[RowT]:
        """Yield the rows that have a value in a field; no other row is checked for it."""
        for row_id in self:
            row = self._rows.get(row_id) or self._user_rows[0].get(row_id)
            if (self._shipped[row_id].get(field) if row is None else getattr(row, field)) == value:
                yield self[row_id]

    def find(self, name: str) -> RowT:
        """Return the row of an id, an alias or a maker's name in any spelling; CatalogError names the nearest known."""
        row_id = self.find_id(name)
        if row_id is None:
            near = self.nearest(name)
            hint = f"nearest known: {', '.join(near)}" if near else f"known: {len(self)} ids, none similar"
            raise CatalogError(
                f"no {self.kind} is called {name!r}"[:200], hint=with_left_out(hint, name, self.problems)
            )
        return self[row_id]

    def known(self, name: str | None) -> RowT | None:
        """Return the row that a name stands for; None where there is none."""
        row_id = None if name is None else self.find_id(name)
        return None if row_id is None else self[row_id]

    def find_id(self, name: str) -> str | None:
        """Return the id that a name stands for, kept for the next line that has it; None where there is none."""
        known = self._ids_of_names
        if name in known:
            return known[name]
        if len(known) >= MOST_NAMES:
            known = self._ids_of_names = {}
        row_id = known[name] = self._id_of(name)
        return row_id

    def _id_of(self, name: str) -> str | None:
        if name in self:
            return name
        for key in dict.fromkeys((key_of(name), brandless_key_of(name, self.brands))):
            row_id = self._ids_by_key.get(key) or self._ids_by_name.get(key)
            if row_id is not None:
                return row_id
        return None

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return the known ids nearest to a misspelt name."""
        close = nearest(name, [*self, *self._aliases])
        return tuple(dict.fromkeys(self._aliases.get(known, known) for known in close))

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._shipped or row_id in self._user_rows[0]

    @cached_property
    def _shipped(self) -> dict[str, _Fields]:
        rows: dict[str, _Fields] = {}
        for file in self._files:
            rows.update(parse_shipped(file))
        return {row_id: _laid_over(rows, fields) for row_id, fields in rows.items()}

    @cached_property
    def brands(self) -> re.Pattern[str]:
        """What is left out of names: the shipped brands, and the vendors of the user's own rows."""
        vendors = (getattr(row, "vendor", "") for row in self._user_rows[0].values())
        return brand_pattern((*_shipped_brands(), *filter(None, vendors)))

    @cached_property
    def _ids_by_key(self) -> dict[str, str]:
        keys = {key_of(alias): row_id for alias, row_id in self._aliases.items() if row_id in self}
        return keys | {key_of(row_id): row_id for row_id in self}

    @cached_property
    def _ids_by_name(self) -> dict[str, str]:
        ids: dict[str, str] = {}
        for row_id in self:
            row = self._user_rows[0].get(row_id)
            fields = row.model_dump() if row else self._shipped[row_id]
            for name in filter(None, map(fields.get, ("name", *self.row_type.other_names))):
                ids.setdefault(key_of(name), row_id)
                ids.setdefault(brandless_key_of(name, self.brands), row_id)
        return ids

    @cached_property
    def _user_rows(self) -> tuple[dict[str, RowT], tuple[CapacityError, ...]]:
        """The valid rows of the user's files, and the problems of the others."""
        rows: dict[str, RowT] = {}
        problems: list[CapacityError] = []
        for document in (*self._read_user_files(problems), *self._own_documents):
            for row_id in document.data if isinstance(document.data, dict) else {}:
                try:
                    row = self._user_row(row_id, document, rows.get(row_id))
                    rows[row_id] = self._with_known_names(row, document)
                except ValidationError as error:
                    problems += refusals(error, self.row_type, document, (row_id,), CatalogError)
                except CatalogError as problem:
                    problems.append(problem)
        return rows, tuple(problems)

    def _read_user_files(self, problems: list[CapacityError]) -> Iterator[Document]:
        """Yield the user's files that can be read."""
        for path in self._user_files:
            try:
                document = read_yaml(path)
                if document.data is not None and not isinstance(document.data, dict):
                    hint = "write one block a row: its id, a colon, then its fields indented"
                    raise CatalogError("not a catalogue", hint=hint, place=document.place())
                yield document
            except CapacityError as problem:
                problems.append(problem)

    def _user_row(self, row_id: str, document: Document, before: RowT | None) -> RowT:
        """Return a row of the user's, laid over the shipped one of the same id, or over one of an earlier file."""
        overlay = document.data[row_id] if isinstance(document.data, dict) else None
        if not isinstance(overlay, dict):
            raise CatalogError("a row must be a block of fields", place=document.place(row_id))
        for reserved in ("id", "provenance", "overrides"):
            if reserved in overlay:
                place = document.place(row_id, reserved)
                raise CatalogError("this field is filled in by the program", hint="remove it", place=place)
        shipped = self._shipped.get(row_id)
        pattern = self._shipped.get(str(overlay.get(LIKE)), {})
        if LIKE in overlay and not pattern:
            raise CatalogError(f"no {self.kind} is called {overlay[LIKE]!r}"[:200], place=document.place(row_id, LIKE))
        path = Path(document.file or "")
        changed = day_of_file(path)
        earlier = before and before.model_dump(exclude={"id", "provenance", "overrides"}, exclude_unset=True)
        base = (
            earlier
            or shipped
            or {**pattern, "name": row_id, "source": f"user file {path.name}", "checked": changed, "confidence": "B"}
        )
        known = {"id": printable(row_id), "provenance": FROM_USER, "overrides": tuple(overlay) if shipped else ()}
        texts = printable_data(_merged(base, overlay))
        return self.row_type.model_validate({**cast("_Fields", texts), **known})

    def _with_known_names(self, row: RowT, document: Document) -> RowT:
        """Return a row whose names of other rows are those rows' ids; raises CatalogError if nothing is called so."""
        for path, find in self._named.items():
            steps = path.split(".")
            value: Any = reduce(getattr, steps, cast("Any", row))
            for name in value if isinstance(value, tuple) else (value,) if value else ():
                try:
                    row_id = find(name).id
                except CatalogError as error:
                    place = document.place(row.id, *steps)
                    raise CatalogError(error.title, error.detail, error.hint, place) from None
                if len(steps) == 1 and value == name:
                    row = row.model_copy(update={path: row_id})
        return row

    def _shipped_row(self, row_id: str) -> RowT:
        try:
            return self.row_type.model_validate({"id": row_id, **self._shipped[row_id]})
        except ValidationError as error:
            documents = [read_yaml(file.read_text("utf-8"), file.name) for file in self._files]
            document = next(d for d in documents if isinstance(d.data, dict) and row_id in d.data)
            raise refusals(error, self.row_type, document, (row_id,), CatalogError)[0] from None


def _shipped_brands() -> Sequence[str]:
    shipped = parse_shipped("brands.yaml")
    return cast("Sequence[str]", shipped["brands"])


def _lost_alias(kind: str, alias: str, row_id: str) -> CatalogError:
    return CatalogError(f"alias {alias!r} stands for no known {kind}", row_id, "correct the id in aliases.yaml")


def _laid_over(rows: Mapping[str, _Fields], fields: _Fields) -> _Fields:
    """Return the fields of a row with those of the row it is like below them."""
    pattern = fields.get(LIKE)
    return _merged(_laid_over(rows, rows[pattern]), fields) if pattern else fields


def _merged(base: _Fields, over: _Fields) -> _Fields:
    """Return the base with the fields of ``over`` laid on it, block by block."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


_PACKAGE = "capacity_tui.profiles"


def shipped_files(stem: str) -> list[Traversable]:
    """Return the packaged file of a table, or the files of its folder."""
    profiles = files(_PACKAGE)
    single = profiles / f"{stem}.yaml"
    if single.is_file():
        return [single]
    in_folder = [file for file in (profiles / stem).iterdir() if file.name.endswith(".yaml")]
    return sorted(in_folder, key=lambda file: file.name)


def user_files(directory: Path, stem: str) -> list[Path]:
    """Return the user's own file of a table and the files of its folder, as far as there are any."""
    single = directory / f"{stem}.yaml"
    return [*([single] if single.exists() else []), *sorted((directory / stem).glob("*.yaml"))]


def stray_files(directory: Path, stems: Collection[str]) -> Iterator[CatalogError]:
    """Yield what is wrong with the user's YAML files that no table reads: those of other ``stems``."""
    for path in sorted([*directory.glob("*.y*ml"), *directory.glob("*/*.y*ml")]):
        stem = path.stem if path.parent == directory else path.parent.name
        if stem not in stems:
            hint = f"its files are called {', '.join(sorted(stems))}"
        elif path.suffix != ".yaml":
            hint = f"call it {path.stem}.yaml"
        else:
            continue
        yield CatalogError("no part of the catalogue, and left out", hint=hint, place=Place(str(path)))


def refusals(
    error: ValidationError,
    model: type[BaseModel],
    document: Document,
    below: KeyPath = (),
    kind: type[CapacityError] = CapacityError,
) -> list[CapacityError]:
    """Return one error for each field that a model refused, the data lying below a path of the document."""
    return [_refusal(details, model, document, below, kind) for details in error.errors(include_url=False)]


def with_left_out(hint: str, name: str, problems: Sequence[CapacityError]) -> str:
    """Return the hint about an unknown name; where a row or file of the user's so called is faulty, why."""
    for problem in problems:
        file, field = problem.place.file or "", problem.place.field or ""
        if key_of(name) in {key_of(PurePath(file).stem), key_of(field.partition(".")[0])}:
            return f"what you have under that name cannot be used: {problem.one_line()}"
    return hint


def _refusal(
    details: ErrorDetails, model: type[BaseModel], document: Document, below: KeyPath, kind: type[CapacityError]
) -> CapacityError:
    location = details["loc"]
    place = document.place(*below, *location)
    if details["type"] == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        near = nearest(str(location[-1]), known)
        hint = f"nearest known: {', '.join(near)}" if near else f"known: {', '.join(known)}"
        return kind("unknown field", repr(location[-1]), hint, place)
    if details["type"] == "missing":
        return kind("a field is missing", str(location[-1]), "add it", place)
    shown = repr(details["input"])
    return kind("not allowed here", shown if len(shown) <= 60 else f"{shown[:57]}...", details["msg"], place)


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the field names of the model, or of the model nested in it at a location."""
    inner: type[BaseModel] = model
    for step in location:
        field = inner.model_fields.get(str(step))
        annotation = field.annotation if field else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            inner = annotation
    return list(inner.model_fields)
