"""What the shell decides in a script: which branch it takes, and what variables hold where that may be several."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from capacity_tui.engine.plan.imports.scripts.shell_words import Variables, Word, joined, source_of
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

ASSIGNMENT = "variable_assignment"  # Before a command it is of that alone: ``BATCH=16 python train.py``

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
        """Return whether a comparison of texts or numbers holds; None where only the shell knows."""
        body = next(iter(test.named_children), None) if test.type == "test_command" else None
        if body is None:
            return None
        if body.type == "unary_expression":
            sign = next((child for child in body.children if child.type == "test_operator"), None)
            value = self._compared(body.named_children[-1])
            answers = {"-n": bool(value), "-z": not value}
            return None if sign is None or "$" in value else answers.get(source_of(sign))
        left, right = body.child_by_field_name("left"), body.child_by_field_name("right")
        sign = body.child_by_field_name("operator")
        if body.type != "binary_expression" or left is None or right is None or sign is None:
            return None
        texts = [self._compared(side) for side in (left, right)]
        if any("$" in text or "*" in text for text in texts):
            return None
        equal = texts[0] == texts[1]
        answers = {"=": equal, "==": equal, "-eq": equal, "!=": not equal, "-ne": not equal}
        if all(text.isdigit() for text in texts):
            first, second = map(int, texts)
            answers |= {"-gt": first > second, "-ge": first >= second, "-lt": first < second, "-le": first <= second}
        return answers.get(source_of(sign))

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


def branches_of(node: Node) -> tuple[list[Node], list[list[Node]]]:
    """Return the conditions of an ``if`` and its branches, one more where it ends with ``else``."""
    parts = [child for child in node.named_children if child.type not in {"elif_clause", "else_clause"}]
    tests, bodies = parts[:1], [parts[1:]]
    for child in node.named_children[len(parts) :]:
        is_last = child.type == "else_clause"
        tests += [] if is_last else child.named_children[:1]
        bodies.append(child.named_children[0 if is_last else 1 :])
    return tests, bodies


def outcomes(ways: Sequence[_State]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the variables that hold one of several plain values, with these.

    Args:
        ways: what variables hold behind each way that a script may go.
    """
    for name in dict.fromkeys(name for way in ways for name in way):
        several = tuple(dict.fromkeys(joined(way.get(name, ())) for way in ways))
        if len(several) > 1 and all(map(_PLAIN.fullmatch, filter(None, several))):
            yield name, tuple(filter(None, several))


def within_node(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the parts of a kind in a part of a script, however deep."""
    for child in node.named_children:
        if child.type in kinds:
            yield child
        yield from within_node(child, *kinds)


def _expanded(node: Node) -> Iterator[Node]:
    return within_node(node, "simple_expansion", "expansion")


def ends_line(command: Node, part: Node) -> bool:
    """Whether a line of a script ends behind a part of a command."""
    behind = (command.text or b"")[part.end_byte - command.start_byte :]
    return re.match(rb"[ \t]*(?:#.*)?\n", behind) is not None
