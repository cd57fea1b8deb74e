"""Options of a document or a command, read by the table of their tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from capacity_tui.engine.catalog import Document, KeyPath, Plain, nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.plan.imports.meanings import MEANINGS, UnmodelledError, UnreadError
from capacity_tui.engine.plan.imports.said import Reading, Remark, Said
from capacity_tui.engine.plan.imports.tools import NOTHING, Option, Tool, tool, word_of

_OPEN = frozenset({"auto", "null", "none", ""})
_LONGEST = 60


def read_document(document: Document, of: Tool, path: KeyPath = ()) -> Reading:
    """Return what a document, or a section of it, says.

    Args:
        document: data with lines.
        of: whose options they are.
        path: the section.

    Raises:
        PlanError: a value that its option cannot have.
    """
    reading = Reading(document.file or "", of)
    section: Plain = document.data
    for part in path:
        section = section[part] if isinstance(section, dict) else None  # type: ignore[index]
    if isinstance(section, dict):
        _Options(document, reading).section(section, of, path, "")
    return reading


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    text = word_of(value) if isinstance(value, bool | None) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class _Options:
    """A document while it is read."""

    def __init__(self, document: Document, reading: Reading) -> None:
        self._document = document
        self._reading = reading

    def section(self, data: Mapping[str, Plain], of: Tool, path: KeyPath, above: str) -> None:
        """Read the options of a tool; ``above`` is the name of the section they stand in, dot included."""
        seen: set[str] = set()
        for key, value in data.items():
            seen |= self._option(above + key, value, of, (*path, key))
        if not above:
            self._defaults(of, seen, path)

    def _option(self, written: str, value: Plain, of: Tool, path: KeyPath) -> set[str]:
        """Read one option; return the names of what was given."""
        name = of.named(written)
        place = self._document.place(*path)
        if name not in of.known and name.startswith("no_") and name[3:] in of.known and value is True:
            name, value = name[3:], False
        option = of.options.get(name)
        if option is not None:
            self._known(option, value, of, path)
            return set() if value is None else {name}
        if isinstance(value, dict) and any(known.startswith(f"{name}.") for known in of.known):
            before = len(self._reading.said)
            self.section(value, of, path, f"{name}.")
            return {f"{name}.{said.place.field}" for said in self._reading.said[before:]} | _below(name, value)
        if name in of.unmodelled:
            if value not in (None, False, 0, "", "auto", [], {}):
                self._reading.unmodelled.append(Remark(place, of.unmodelled[name]))
        elif any(part in of.ignored for part in _and_above(name)):
            self._reading.ignored.append(place)
        else:
            close = nearest(written, of.known, 1)
            self._reading.unknown.append(Remark(place, close[0] if close else ""))
        return set()

    def _known(self, option: Option, value: Plain, of: Tool, path: KeyPath) -> None:
        place = self._document.place(*path)
        like = Said("", None, place, shown(value), of.id)
        if option.tool:
            self._other_tool(option, value, path, like)
            return
        found = self._meaning(option, value, place)
        self._reading.said += self._reading.says(
            found if isinstance(found, dict) else {} if found is None else {option.path: found}, like
        )

    def _other_tool(self, option: Option, value: Plain, path: KeyPath, like: Said) -> None:
        """Read options of another tool that stand below one, or remember the file that it names."""
        if isinstance(value, dict) and value:
            self._reading.said += self._reading.says(dict(option.sets), like)
            other = tool(option.tool)
            self._reading.said += self._reading.says(dict(other.sets), like)
            self.section(value, other, path, "")
        elif isinstance(value, str) and value:
            self._reading.said += self._reading.says(dict(option.sets), like)
            self._reading.named.append((Path(value), like.place))

    def _meaning(self, option: Option, value: Plain, place: Place) -> object:
        """Return what a value stands for.

        Raises:
            PlanError: the option cannot have it.
        """
        if option.values or option.unmodelled:
            if option.meaning == "words":
                given = value if isinstance(value, list) else [value]
                return tuple(self._word(option, each, place) for each in given)
            return self._word(option, value, place)
        try:
            return MEANINGS[option.meaning or "number"](value)
        except UnmodelledError as error:
            self._reading.unmodelled.append(Remark(place, str(error)))
            return str(error).rpartition(" ")[2]
        except UnreadError as error:
            raise PlanError("not allowed", repr(value)[:_LONGEST], f"allowed: {error}", place) from None

    def _word(self, option: Option, value: Plain, place: Place) -> object:
        word = word_of(value)
        words = {word_of(each): each for each in option.values}
        if word in words:
            return option.values[words[word]]
        reasons = {word_of(each): why for each, why in option.unmodelled.items()}
        if word in reasons:
            self._reading.unmodelled.append(Remark(place, reasons[word]))
        elif word not in _OPEN:
            close = nearest(word, words, 1)
            meant = f", did you mean {words[close[0]]}?" if close else ""
            self._reading.unmodelled.append(Remark(place, f"{shown(value)} is not known{meant}"))
        return None

    def _defaults(self, of: Tool, seen: set[str], path: KeyPath) -> None:
        """Add what a tool does where an option is left out."""
        for name, option in of.options.items():
            if option.default is NOTHING or name in seen:
                continue
            place = Place(self._document.file, None, name)
            found = self._meaning(option, option.default, place)  # type: ignore[arg-type]  # plain data
            values = found if isinstance(found, dict) else {} if found is None else {option.path: found}
            self._reading.said += self._reading.says(
                values, Said("", None, place, shown(option.default), of.id, "default")
            )
        like = Said("", None, Place(self._document.file), "", of.id, "default")
        self._reading.said += self._reading.says(dict(of.defaults), like)
        if not path:
            self._reading.said += self._reading.says(
                dict(of.sets), Said("", None, Place(self._document.file), "", of.id)
            )


def _below(name: str, value: Mapping[str, Plain]) -> set[str]:
    """Return the names of what a section gives, however deep."""
    found: set[str] = set()
    for key, inner in value.items():
        found.add(f"{name}.{key}")
        if isinstance(inner, dict):
            found |= _below(f"{name}.{key}", inner)
    return found


def _and_above(name: str) -> Iterator[str]:
    """Yield a name and those of the sections that it stands in."""
    while name:
        yield name
        name = name.rpartition(".")[0]
