"""Conditions and loops of shell scripts: what they come to, as far as the script says."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from glob import escape
from typing import TYPE_CHECKING, Any

from capacity_tui.engine.plan.imports.scripts.shell_words import (
    ASSIGNMENT,
    Variables,
    Word,
    joined,
    source_of,
    within_node,
)
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

_BRACKETS = frozenset({"[", "[[", "(("})
_NOTHING: Mapping[str, tuple[str, ...]] = {"[": ("",), "[[": ("",), "((": ("0",)}  # What does not hold in them

_JOINS = frozenset({"&&", "||", "-a", "-o"})
_EQUAL: Mapping[str, bool] = {"=": True, "==": True, "-eq": True, "!=": False, "-ne": False}
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("-gt", ">"), operator.gt),
    **dict.fromkeys(("-ge", ">="), operator.ge),
    **dict.fromkeys(("-lt", "<"), operator.lt),
    **dict.fromkeys(("-le", "<="), operator.le),
}
_COMPARES = _JOINS | _EQUAL.keys() | _ORDERS.keys() | {"=~"}
_QUOTED = frozenset({"string", "raw_string"})
_GLOB = re.compile(r"[*?\[]|[@!+]\(")
_REPEATS = re.compile(r"[*+{]")  # What of a regular expression takes a part several times
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_MOST_REPEATS, _LONGEST_TEXT = 3, 256  # With more of them, or behind a group, some texts would take for ever

_ARGUMENT = re.compile(r"\$(?:[\d#]|\{[\d#]\})")  # Of the script itself, and how many there are

_PLAIN = re.compile(r"[^\s$`-][^\s$`]*")  # A value that is one word, and no option

_COUNTING = re.compile(r"\{(\d+)\.\.(\d+)(?:\.\.(\d+))?|\bseq\s+(?:(\d+)\s+(?:(\d+)\s+)?)?(\d+)\b")
"""Numbers that a shell or a program counts: ``{0..8..2}``, ``$(seq 0 2 8)``."""

_COUNTS = re.compile(r"for\s*\(\(\s*(\w+)\s*=\s*([^;]+?)\s*;\s*\w+\s*(<=?)\s*([^;]+?)\s*;")

_SUM = re.compile(r"\$\(\([^()]*\)\)")

_MOST_TURNS = 64  # Values of a loop that are looked at


_State = Mapping[str, tuple[Word, ...]]  # What variables hold


@dataclass(slots=True)
class Choices(Variables):
    """The variables of a script, and what only its start tells of them."""

    def holds(self, test: Node) -> bool | None:
        """Return whether a condition holds: ``$DEBUG``, comparisons, and several; None where only the shell knows."""
        inner = test.named_children
        if test.type == ASSIGNMENT and "$(" not in source_of(test):
            return True
        if test.type == "negated_command":
            return _not(self.holds(inner[0]))
        if test.type == "list" and len(inner) > 1:
            return _both(self.holds(inner[0]), self.holds(inner[-1]), any(part.type == "&&" for part in test.children))
        name = test.child_by_field_name("name")
        if name is not None:
            return {"true": True, "false": False}.get(joined(self.words(name))) if name.next_sibling is None else None
        around = test.children[0].type if test.children else ""
        return self._decides(inner[0], around) if around in _BRACKETS and len(inner) == 1 else None

    def _decides(self, body: Node, around: str) -> bool | None:
        """Return whether what stands in some brackets holds: a value that is not empty, or comparisons."""
        sides, last = body.named_children, body.children[-1] if body.children else body
        if body.type == "parenthesized_expression":
            return self._decides(sides[0], around) if sides else None
        if body.type == "unary_expression":
            sign = source_of(body.children[0])
            if sign == "!":
                return _not(self._decides(last, around))
            value = self._compared(last)
            return None if "$" in value else {"-n": bool(value), "-z": not value}.get(sign)
        if body.type != "binary_expression":
            value = self._numbered(body) if around == "((" else self._compared(body)
            return None if "$" in value or (around == "((" and not value.isdigit()) else value not in _NOTHING[around]
        at = next((at for at, child in enumerate(body.children) if source_of(child) in _COMPARES), 0)
        sign = source_of(body.children[at])
        if sign in _JOINS:
            first, second = (self._decides(side, around) for side in (sides[0], sides[-1]))
            return _both(first, second, sign in {"&&", "-a"})
        return self._compares(sides[0], sign, body.children[at + 1 :], around) if at else None

    def _compares(self, left: Node, sign: str, right: Sequence[Node], around: str) -> bool | None:
        """Return whether a comparison of texts, numbers or patterns holds; None where only the shell knows."""
        is_number = sign.startswith("-") or around == "(("
        read = partial(self._whole, around) if is_number else self._compared
        first, second = read(left), "".join(map(read, right))
        if "$" in first or "$" in second or any(side.type == "binary_expression" for side in (left, *right)):
            return None
        if sign == "=~":
            parts = (re.escape(read(side)) if side.type in _QUOTED else read(side) for side in right)
            return _is_in("".join(parts), first)
        if sign in _ORDERS and not is_number:
            return _ORDERS[sign](first, second)  # [[ ]] compares texts, 16 before 8
        if is_number and first.isdigit() and second.isdigit():
            first, second = f"{int(first)}", f"{int(second)}"  # 08 is 8
        is_equal: bool | None = first == second
        if any(_GLOB.search(read(side)) for side in right if side.type not in _QUOTED):
            parts = (glob_of(side, read(side)) for side in right)
            is_equal = fnmatchcase(first, "".join(parts)) if around == "[[" and "(" not in second else None
        if sign in _EQUAL:
            return is_equal if _EQUAL[sign] else _not(is_equal)
        return _ORDERS[sign](int(first), int(second)) if first.isdigit() and second.isdigit() else None

    def _whole(self, around: str, side: Node) -> str:
        """Return a side of a comparison of numbers, in which ``[[`` and ``((`` need no sign before variables."""
        value = self._compared(side)
        return value if value.isdigit() or around == "[" else self._numbered(side)

    def _numbered(self, side: Node) -> str:
        """Return a whole number of arithmetic, in which variables need no sign; else nothing but an open value."""
        number = self._number(f"$(({source_of(side)}))")
        return number if number.isdigit() else "$"

    def _compared(self, side: Node) -> str:
        """Return a side of a comparison; arguments of the script itself are not given."""
        return _ARGUMENT.sub(lambda match: "0" if "#" in match[0] else "", joined(self.words(side, is_split=False)))

    def asks_argument(self, test: Node) -> bool:
        """Whether a condition is one of the arguments of the script itself, or of a variable that holds one."""
        values = (joined(self.values.get(source_of(part).strip("${}"), ())) for part in _expanded(test))
        return any(_ARGUMENT.search(text) for text in (source_of(test), *values))

    def depends_on(self, test: Node, variables: Container[str]) -> bool:
        """Whether a condition is one of some variables."""
        return any(source_of(part).strip("${}") in variables for part in _expanded(test))

    def begin_with(self, state: _State) -> None:
        """Take what variables held at another place."""
        self.values.clear()
        self.values.update(state)

    def turns(self, loop: Node) -> tuple[str, list[Word]]:
        """Return the variable of a loop, and the words that it goes through, with numbers that are counted."""
        if (counted := _COUNTS.match(source_of(loop))) is not None:  # for ((i = 0; i < 8; i++))
            first, last = (self._number(f"$(({part}))") for part in counted.group(2, 4))
            if not (first.isdigit() and last.isdigit()):
                return counted[1], []
            numbers = range(int(first), int(last) + (counted[3] == "<="))
            return counted[1], [Word(str(number), self.line(loop)) for number in numbers[:_MOST_TURNS]]
        variable = loop.child_by_field_name("variable")
        return source_of(variable) if variable is not None else "", self._listed(loop.children_by_field_name("value"))

    def _listed(self, values: Sequence[Node]) -> list[Word]:
        """Return the words of a list, those of ``{100..2000..100}`` and ``$(seq 0 3)`` as well."""
        words = [word for value in values for word in self.words(value)]
        text = self._with_values(source_of(values[0])) if words else ""
        counted = _COUNTING.search(_SUM.sub(lambda match: self._number(match[0]), text))
        if counted is None:
            return words
        first, step, last = counted.group(*((1, 3, 2) if counted[1] else (4, 5, 6)))
        numbers = range(int(first or 1), int(last) + 1, int(step or 1) or 1)
        return [Word(str(number), words[0].line) for number in numbers[:_MOST_TURNS]]


def glob_of(side: Node, text: str) -> str:
    """Return a part of a pattern as Python matches it: in quotes each sign is itself, and ``[^q]`` leaves out a q."""
    return escape(text) if side.type in _QUOTED else text.replace("[^", "[!")


def _is_in(pattern: str, text: str) -> bool | None:
    """Return whether a regular expression is in a text; None where it is none of Python's, or could take for ever."""
    is_heavy = len(_REPEATS.findall(pattern)) > _MOST_REPEATS or len(text) > _LONGEST_TEXT
    if is_heavy or "[:" in pattern or _REPEATED_GROUP.search(pattern):
        return None
    with suppress(re.error):
        return re.search(pattern, text) is not None
    return None


def _not(holds: bool | None) -> bool | None:
    return None if holds is None else not holds


def _both(one: bool | None, other: bool | None, is_both: bool) -> bool | None:
    """Return whether two conditions hold together, or either of them; one may decide it alone."""
    if (not is_both) in (one, other):
        return not is_both
    return None if None in (one, other) else is_both


def outcomes(ways: Sequence[_State]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the variables that hold one of several plain values behind the ways that a script may go, with these."""
    for name in dict.fromkeys(name for way in ways for name in way):
        several = tuple(dict.fromkeys(joined(way.get(name, ())) for way in ways))
        if len(several) > 1 and all(map(_PLAIN.fullmatch, filter(None, several))):
            yield name, tuple(filter(None, several))


def _expanded(node: Node) -> Iterator[Node]:
    return within_node(node, "simple_expansion", "expansion")
