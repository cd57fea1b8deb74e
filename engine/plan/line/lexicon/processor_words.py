"""Words of a line about processors: their names, the nearest where no row has it, and lists of a machine's parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import Meaning

PIECES = re.compile(r"[\s_/\-]+")  # What stands between pieces of a name
_MODEL_NUMBER = re.compile(r"[a-z]?\d{3,}(?:[a-z]{0,2}|x3d)")  # Of a processor, as ``13900k`` or ``7995wx``

_PROCESSOR = re.compile(
    r"(?:(?P<count>\d{1,2})\s*[x×*]\s*)?(?:core\s+)?"
    r"(?P<line>i[3579]|ryzen(?:[\s-]\d)?|epyc|xeon(?:[\s-](?:gold|silver|platinum|bronze|e[357]))?|tr(?:-pro)?|threadripper(?:\spro)?"
    r"|(?P<short>ryzen[\s-]ai(?:[\s-]\d)?(?:[\s-](?:hx|pro))*|ultra[\s-]\d))"
    r"[\s-]+(?P<number>(?(short)\d{3}|\d{4,5}))(?P<suffix>[\s-]?v\d|[a-z]{0,2}\d?[a-z]?)",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"(?:(?P<line>(?:core )?i[3579]|ryzen(?: [3579])?|epyc|xeon|threadripper)|cpu|processors?)", re.IGNORECASE
)
_TIER, _ANY = re.compile(r"(?:\bi|ryzen[ -](?:ai[ -])?|ultra[ -])([3579])\b", re.IGNORECASE), "i|ryzen-|epyc|xeon"
_BARE = (
    (re.compile(r"(?:[6-9]|1[0-4])[679]00k[fs]?", re.IGNORECASE), "i7"),
    (re.compile(r"[1-9][3-9][05]0(?:x|x3d)", re.IGNORECASE), "ryzen"),
)
"""Model numbers without their line, as ``12700k`` and ``5600x``."""
_LINES = {
    "i3": "i",
    "i5": "i",
    "i7": "i",
    "i9": "i",
    "ry": "ryzen",
    "ep": "epyc",
    "xe": "xeon",
    "tr": "tr",
    "th": "tr",
    "ul": "ultra",
}
"""Lines of processors as ids of the catalogue begin, by the first letters of what people write."""

_OLDER_XEONS = "xeon-e"  # E3, E5 and E7, whose generation stands behind the number: v4
_RYZEN_AI = "ryzen-ai"  # All of laptops

_ALIKE_FOR_TWO = ("i", "ryzen")  # Those whose neighbouring generations have the memory of each other

_OF_BOTH = ("i", "ryzen", "ultra")  # Those of which laptops have some
_OF_LAPTOPS = re.compile(r"u|v|h|hx|hs|p|g7|hk", re.IGNORECASE)  # What model numbers of laptops' processors end in


def numbered_processor(name: str, catalog: Catalog) -> str | None:
    """Return the one row that a model number is of, as ``5950x`` or ``ryzen 5950x``; None where none or several are."""
    pieces = re.split(r"[\s_-]+|(?<=\d)(?=v\d$)", name.casefold())  # e5-2690v4
    if name.isdecimal() or not any(map(_MODEL_NUMBER.fullmatch, pieces)):
        return None  # 1600 trees
    known = _processors_by_piece(catalog)
    ids = set.intersection(*({*known.get(piece, ())} for piece in pieces))
    return ids.pop() if len(ids) == 1 else None


def counts_none(number: str, name: re.Match[str], row: object, catalog: Catalog) -> bool:
    """Return whether a number beside a processor counts none of it: ``4090 epyc 9654``, ``ryzen 7950x 16 cores``.

    Args:
        number: what stands before the name or behind it.
        name: both, where the sign between them may be the last letter of the name.
        row: of the hardware that is named.
        catalog: facts.
    """
    sign = name.string[name.end("name") :][:1]
    is_card = row in catalog.processors and catalog.accelerators.find_id(number) is not None
    return is_card or (sign in ("x", "X") and numbered_processor(f"{name['name']}{sign}", catalog) is not None)


def by_piece(names: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return names by each piece of them: ``llama-3.1-8b`` by ``llama``, ``3.1`` and ``8b``."""
    pieces: dict[str, list[str]] = {}
    for name in names:
        for piece in dict.fromkeys(PIECES.split(name)):
            pieces.setdefault(piece, []).append(name)
    return pieces


@lru_cache(maxsize=4)
def _processors_by_piece(catalog: Catalog) -> Mapping[str, Sequence[str]]:
    return by_piece(catalog.processors)


def nearest_processor(word: str, catalog: Catalog) -> Meaning | None:
    """Return the nearest processor of a line for a model number that no row has, as ``i5-1235u``; None for others."""
    line = next((line for pattern, line in _BARE if pattern.fullmatch(word)), "")
    word = f"{line} {word}".lstrip()
    match = _PROCESSOR.fullmatch(_without_maker(word))
    if match is None:
        return None
    line = _line_of(match)
    is_portable = line == _RYZEN_AI or (line in _OF_BOTH and _OF_LAPTOPS.fullmatch(match["suffix"]) is not None)
    known = ((row_id, _PROCESSOR.fullmatch(row_id)) for row_id in catalog.processors)
    rows = [(catalog.processors[row_id], other) for row_id, other in known if other and _line_of(other) == line]
    alike = [(_differences(match, other), row) for row, other in rows if (row.segment == "laptop") == is_portable]
    near = [entry for entry in alike if entry[0][1] <= (line in _ALIKE_FOR_TWO)]
    if not near:
        hint = f"name one of `capacity-tui hardware --filter {line}`"
        return Meaning(fault=PlanError("no processor like it is known", word[:60], hint))
    row = min(near, key=lambda entry: entry[0])[1]
    devices: dict[str, object] = {Key.HARDWARE_DEVICES: int(match["count"])} if match["count"] else {}
    is_row = numbered_processor(match[0][match.start("line") :], catalog) == row.id
    why = "" if is_row else f"{word}: {row.id} is the nearest processor known, of {row.cores_words}"
    return Meaning(row.id, {Key.HARDWARE_NAME: row.id, **devices}, why)


def _without_maker(word: str) -> str:
    makers = "|".join(map(re.escape, vocabulary().makers))
    return re.sub(rf"(?<![a-z])(?:{makers})\s+", "", word, flags=re.IGNORECASE)


def _line_of(match: re.Match[str]) -> str:
    line = match["line"].casefold()
    if match["short"] and line.startswith("ryzen"):
        return _RYZEN_AI
    return _OLDER_XEONS if re.search(r"e[357]$", line) else _LINES[line[:2]]


def _differences(match: re.Match[str], other: re.Match[str]) -> tuple[bool, int, int, bool, int]:
    """Return how far two processors of a line are from each other: in generation, tier, kind and number.

    What kind one of a laptop is says more than the rest, as it says what it may draw.
    """
    is_other_kind = match["suffix"].casefold() != other["suffix"].casefold()
    generations = [_generation(_line_of(one), one["number"], one["suffix"]) for one in (match, other)]
    line, numbers = _line_of(match), [int(one["number"]) for one in (match, other)]
    tiers = [_tier(one[0]) for one in (match, other)]
    tiers = [number // 1000 for number in numbers] if line == "xeon" else tiers  # platinum, gold, silver
    is_other_draw = is_other_kind and line in _OF_BOTH and _OF_LAPTOPS.fullmatch(match["suffix"]) is not None
    generation, tier, number = (abs(one - another) for one, another in (generations, tiers, numbers))
    return is_other_draw, generation, tier, is_other_kind, number


def _generation(line: str, number: str, suffix: str) -> int:
    """Return the generation in a model number: 12 of i5-1235u and i5-12400, 4 of EPYC 9354, 2 of Xeon 6248."""
    if line == _OLDER_XEONS:
        return int(suffix[-1]) if suffix[-1:].isdigit() else 1
    if line == "epyc":
        return int(number[-1])
    return int(number[1]) if line == "xeon" else int(number[: 2 if line == "i" and number[0] == "1" else 1])


def processor_of_line(
    line: str, cores: int, catalog: Catalog, is_portable: bool, *, is_any: bool = False
) -> Meaning | None:
    """Return a processor of a line without its number, as ``i5``, ``ryzen 5`` or ``epyc``; None for other words.

    It is the one with the nearest number of cores where that is given, else a usual one, or the middle one of its tier.
    ``cpu`` is any, of which the cores are known.
    """
    match = _LINE.fullmatch(_without_maker(line))
    whole = _LINES.get((match["line"] or "").casefold().removeprefix("core ")[:2], _ANY) if match else _ANY
    if match is None or (whole == _ANY and not is_any):
        return None
    rows = [row for row in catalog.processors.values() if re.match(rf"(?:{whole})[3579]?-", row.id)]
    rows = [row for row in rows if (row.segment == "laptop") == is_portable] or rows
    tier = min((_tier(row.id) for row in rows), key=lambda other: abs(other - _tier(line)))
    rows = [row for row in rows if _tier(row.id) == tier or not _tier(line)]
    middle = sorted(row.cores for row in rows)[(len(rows) - 1) // 2]
    usual = {row.id: row for row in rows if row.id in vocabulary().hardware and not cores}
    row = min(rows, key=lambda row: abs(row.cores - (cores or middle)))
    row = next((usual[name] for name in vocabulary().hardware if name in usual), row)
    why = f"{line}: taken for {row.id}, of {row.cores_words}"
    return Meaning(row.id, {Key.HARDWARE_NAME: row.id}, why)


def _tier(name: str) -> int:
    """Return the tier in a name, as 5 of ``ryzen 5`` and ``i5-12400``; 0 where it has none."""
    match = _TIER.search(name)
    return 0 if match is None else int(match[1])


def with_marks(text: str) -> str:
    """Return a text with a comma behind each labelled figure of a machine: ``CPU: 80 RAM: 16 GiB``."""
    return _labelled().sub(r"\1，", text)


@cache
def _labelled() -> re.Pattern[str]:
    labels = "|".join(vocabulary().every["labelled"])
    number = r"(?:\d+ ?[x×*] ?)?\d[\w.]*(?: [gmt]i?b)?"
    return re.compile(rf"(\b(?:{labels}): ?{number}) (?=(?:{labels}):)", re.IGNORECASE)
