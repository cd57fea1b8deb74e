"""Read what people wrote, and shipped data: YAML with a line number for every key, names regardless of spelling.

Catalogue files, plan files and settings all come through here. Only mappings with text keys, lists, texts,
numbers, true/false, null and dates pass; every refusal names file and line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, TypeAlias

import yaml

from capacity_tui.engine.errors import CapacityError, CatalogError, DocumentError, Place, StorageError
from capacity_tui.engine.files import reading
from capacity_tui.engine.record import dataclass

Plain: TypeAlias = "str | int | float | bool | date | list[Plain] | dict[str, Plain] | None"
KeyPath: TypeAlias = tuple[str | int, ...]
LARGEST_FILE = 4 * 2**20  # Bytes a document may have: the whole shipped catalogue is a tenth of it
MOST_VALUES = 200_000  # Values a document may have after its aliases are written out
DEEPEST_NESTING = 40

_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq")
)

_NO_TAG = (None, "!")
_TEXT_TAG = "tag:yaml.org,2002:str"

# YAML 1.1 reads 2.0e9 as text because the exponent has no sign; people mean the number.
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")


@dataclass(frozen=True)
class Document:
    """Plain data and the line of each part of it."""

    data: Plain  # what the document holds; None when it is empty
    file: str | None = None  # path or name as the user gave it; None for bare text
    lines: Mapping[KeyPath, int] = field(default_factory=dict)  # line, counted from 1, of each key path

    def place(self, *path: str | int) -> Place:
        """Return file, line and field of a key path; a part that is absent has its parent's line."""
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.lines), ())
        return Place(self.file, self.lines.get(known, 1), ".".join(map(str, path)) or None)


def read_yaml(source: Path | str, file: str | None = None, *, of_other_tool: bool = False) -> Document:
    """Read one YAML document from a file (``Path``) or a text; of other tools the last of equal keys counts."""
    name = file or (str(source) if isinstance(source, Path) else None)
    return _Reader(read_text(source) if isinstance(source, Path) else source, name, of_other_tool).document()


def read_text(path: Path) -> str:
    """Return the text of a file of bounded size; raises DocumentError where it is too large or not UTF-8 text."""
    with reading(path):
        if path.exists() and not path.is_file():
            raise StorageError("not a file", hint="name a YAML file", place=Place(str(path)))
        with path.open("rb") as stream:
            return read_stream(stream, str(path))


def read_stream(stream: BinaryIO, name: str) -> str:
    """Return the text of a stream of bounded size, such as standard input; ``name`` stands for it in errors."""
    content = stream.read(LARGEST_FILE + 1)
    place = Place(name)
    if len(content) > LARGEST_FILE:
        raise DocumentError("too large", f"more than {LARGEST_FILE // 2**20} MiB", "split it", place)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError("not UTF-8 text", hint="save it as UTF-8", place=Place(name, line)) from None
    if "\0" in text:
        raise DocumentError("a binary file, not text", hint="name a YAML file", place=place)
    return text


_MERGE = "<<"
_Node: TypeAlias = yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent
_NODES = (yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent)


class _Reader:
    """Builds plain data from the stream of YAML events, so that bounds hold before anything is built."""

    def __init__(self, text: str, file: str | None, of_other_tool: bool) -> None:
        self._file = file
        self._of_other_tool = of_other_tool
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        scalars = yaml.SafeLoader("")
        self._tag_of: Callable[[type[yaml.Node], str, tuple[bool, bool]], str] = scalars.resolve
        self._construct: Callable[[yaml.Node], Plain] = scalars.construct_object
        self._lines: dict[KeyPath, int] = {}
        self._anchors: dict[str, tuple[Plain, int]] = {}
        self._values = 0

    def document(self) -> Document:
        """Return the only document of the stream."""
        try:
            return Document(self._content(), self._file, self._lines)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else None
            raise DocumentError("not valid YAML", error.problem or "", place=Place(self._file, line)) from None
        except yaml.YAMLError as error:
            raise DocumentError("not valid YAML", str(error), place=Place(self._file)) from None

    def _content(self) -> Plain:
        data: Plain = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refusal(event, "more than one document", hint="put one document in a file")
                data = self._value(next(self._events), ())
        return data

    def _value(self, event: yaml.Event, path: KeyPath) -> Plain:
        if len(path) > DEEPEST_NESTING:
            raise self._refusal(event, "nested too deeply", f"more than {DEEPEST_NESTING} levels", path)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        self._count(event, 1, path)
        if not isinstance(event, _NODES):
            raise self._refusal(event, "not valid YAML", type(event).__name__, path)
        is_own_tag = self._of_other_tool and isinstance(event, yaml.ScalarEvent)  # !include data/wikitext.yaml
        if event.tag not in _PLAIN_TAGS and event.tag not in _NO_TAG and not is_own_tag:
            raise self._refusal(event, "unknown tag", str(event.tag), path, "leave the tag out")
        before = self._values
        value = self._built(event, path)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._values - before + 1)
        return value

    def _built(self, event: _Node, path: KeyPath) -> Plain:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._scalar(event, path)

    def _mapping(self, path: KeyPath) -> dict[str, Plain]:
        mapping: dict[str, Plain] = {}
        merged: dict[str, Plain] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            key_path = (*path, key)
            if key == _MERGE and self._of_other_tool:
                others = self._value(next(self._events), key_path)
                for other in others if isinstance(others, list) else [others]:
                    merged = {**(other if isinstance(other, dict) else {}), **merged}
                continue
            if key in mapping and not self._of_other_tool:
                detail = f"{key!r} is first on line {self._lines[key_path]}"
                raise self._refusal(event, "key given twice", detail, key_path, "remove one")
            self._lines[key_path] = _line_of(event)
            mapping[key] = None
            mapping[key] = self._value(next(self._events), key_path)
        return {**merged, **mapping}

    def _key(self, event: yaml.Event, path: KeyPath) -> str:
        if isinstance(event, yaml.ScalarEvent):
            key = self._scalar(event, path)
            if key == _MERGE and not event.style and not self._of_other_tool:
                raise self._refusal(event, "merge keys are not read", "", path, "write the keys out")
            if isinstance(key, str):
                return key
            hint = f'quote it: "{event.value}"'
            raise self._refusal(event, "a key must be text", repr(event.value), path, hint)
        raise self._refusal(event, "a key must be text", "", path, "write a plain name before the colon")

    def _sequence(self, path: KeyPath) -> list[Plain]:
        items: list[Plain] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item_path = (*path, len(items))
            self._lines[item_path] = _line_of(event)
            items.append(self._value(event, item_path))
        return items

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> Plain:
        tag = event.tag
        if tag in _NO_TAG:
            tag = self._tag_of(yaml.ScalarNode, event.value, event.implicit)
        if tag == _TEXT_TAG and event.implicit[0] and EXPONENT.fullmatch(event.value):
            return float(event.value)
        if tag not in _PLAIN_TAGS:
            return str(event.value)
        try:
            return self._construct(yaml.ScalarNode(tag, event.value))
        except (ValueError, KeyError, OverflowError):
            shown = event.value if len(event.value) <= 40 else f"{event.value[:37]}..."
            kind = tag.rsplit(":", 1)[-1]
            raise self._refusal(event, f"cannot read this as {kind}", shown, path, "quote it if it is text") from None

    def _alias(self, event: yaml.AliasEvent, path: KeyPath) -> Plain:
        if event.anchor not in self._anchors:
            raise self._refusal(event, "alias without an anchor before it", f"*{event.anchor}", path)
        value, size = self._anchors[event.anchor]
        self._count(event, size, path)
        return value

    def _count(self, event: yaml.Event, values: int, path: KeyPath) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            detail = f"more than {MOST_VALUES} values once aliases are written out"
            raise self._refusal(event, "document too large", detail, path, "remove the aliases or split it")

    def _refusal(
        self, event: yaml.Event, title: str, detail: str = "", path: KeyPath = (), hint: str = ""
    ) -> DocumentError:
        place = Place(self._file, _line_of(event), ".".join(map(str, path)) or None)
        return DocumentError(title, detail, hint, place)


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


_SEPARATORS = re.compile(r"[\s_\-]+")
_SIMILARITY = 0.5


@lru_cache(maxsize=2**14)
def key_of(name: str) -> str:
    """Return the form in which two spellings of one name are equal: ``RTX 4090`` and ``rtx-4090``."""
    return _SEPARATORS.sub("", name.casefold())


def brand_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Return what matches any of some brands as a whole word, regardless of case."""
    return re.compile(rf"\b(?:{'|'.join(re.escape(word) for word in words)})\b", re.IGNORECASE)


def brandless_key_of(name: str, brands: re.Pattern[str]) -> str:
    """Return the key of a name without its maker's brands: ``NVIDIA GeForce RTX 4090`` is ``rtx4090``."""
    return key_of(brands.sub("", name))


def close_matches(word: str, names: Iterable[str], most: int, similarity: float) -> list[str]:
    """Return up to ``most`` names as similar to a word as ``difflib`` reckons it, the most similar first.

    Names so much longer or shorter that none can be so similar are passed over by their length alone.
    """
    longest = len(word) * (2 - similarity) / similarity + 1
    shortest = len(word) * similarity / (2 - similarity) - 1
    near = [name for name in names if shortest < len(name) < longest]
    return difflib.get_close_matches(word, near, most, similarity)


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return up to ``most`` known names closest to a misspelt one, the closest first."""
    by_key: dict[str, str] = {}
    for candidate in known:
        by_key.setdefault(key_of(candidate), candidate)
    matches = close_matches(key_of(name)[:80], by_key, most, _SIMILARITY)
    return tuple(by_key[match] for match in matches)


def read_aliases(
    shipped: Mapping[str, Mapping[str, str]], user_files: Sequence[Path]
) -> tuple[dict[str, dict[str, str]], tuple[CapacityError, ...]]:
    """Return the aliases of each table, the shipped and the user's own, and the problems of these."""
    aliases = {table: dict(names) for table, names in shipped.items()}
    problems: list[CapacityError] = []
    for path in user_files:
        try:
            _add_aliases(aliases, read_yaml(path))
        except CapacityError as problem:
            problems.append(problem)
    return aliases, tuple(problems)


def _add_aliases(aliases: dict[str, dict[str, str]], document: Document) -> None:
    """Add the aliases of a user's document to those of each table."""
    for table, names in (document.data if isinstance(document.data, dict) else {}).items():
        if table not in aliases or not isinstance(names, dict):
            hint = f"write a table ({', '.join(aliases)}) and under it alias: id"
            raise CatalogError("not a table of aliases", table, hint, document.place(table))
        aliases[table] |= {alias: str(row_id) for alias, row_id in names.items()}
