"""Words of a shell script as its commands get them, and its branches: quotes off, variables and sums put in."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_BITS = 64  # Of a product and a power: numbers of a shell have as many


def _product(first: int, second: int) -> int:
    if first.bit_length() + second.bit_length() > _MOST_BITS:
        raise ValueError("a number larger than any")
    return first * second


def _power(base: int, exponent: int) -> int:
    if exponent < 0 or base.bit_length() * exponent > _MOST_BITS:
        raise ValueError("a number larger than any")
    return int(base**exponent)


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _product,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

_DEFAULTS = frozenset({":-", "-", ":=", "="})  # Signs between a variable and what stands for it where it is not set
_ASSIGNED = frozenset({":=", "="})  # Those that set the variable to it, as : "${MODEL:=gpt2}"
_ONLY_SET = frozenset({":+", "+"})  # Signs between a variable and what stands there only where it is set
_NAME = re.compile(r"\$\{?(\w+|#|[@*](?::\d+)?)(?:\[[@*]\])?\}?")

_REQUIRED = re.compile(r"(?<=\w):?\?.*(?=\}$)", re.DOTALL)  # What is told where a variable is not set: ``:?not set``
_ENTRY, _ALONE = "subscript", 3  # An entry of an array, and the parts of one that nothing stands for: ``${`` it ``}``

_SEEN, _MOST_OF_NODE = "nvidia-smi", 8  # What stands for the devices of a node, which has so many as a rule
_SEES = re.compile(r"(?:\$\(|`)\s*nvidia-smi\b[^`]*\|\s*wc\s+-l\s*[)`]|.*\btorch\.cuda\.device_count\(\).*", re.DOTALL)
_EVERY = re.compile(
    r"\$(?:@|\{@(?::\d+)?\}$|\{.*\[@\])", re.DOTALL
)  # All arguments or entries, which stay apart in quotes

_BLANK = re.compile(r"(?:\s|\\\n)+")  # Before a variable in quotes, which the grammar counts to the variable

_EXPR = re.compile(r"\$\(\s*expr\s+([^()`]+)\)")  # A sum that a program calculates: ``$(expr 32 / $N)``

_COUNTED = re.compile(
    r"""\$\(\s*echo\s+"?([^\s"]+)"?\s*\|\s*(?:awk\s+-F\s*["']?,["']?\s+["']\{\s*print\s+NF\s*\}["']|"""
    r"""tr\s+["']?,["']?\s+["']\\n["']\s*\|\s*wc\s+-l)\s*\)"""
)
"""How many a list has, counted by programs: ``$(echo $CUDA_VISIBLE_DEVICES | awk -F',' '{print NF}')``."""
_WHICH = re.compile(r"\$\(\s*(?:which|command\s+-v)\s+([\w.-]+)\s*\)")  # A program, as another one finds it
_INNER = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"  # What stands in brackets, with others in it
_PART = re.compile(rf"(?:\$\({_INNER}\)|\S)+")  # A word of a text; what a program prints, as ``$(hostname -i)``, is one

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SLURM: Mapping[str, tuple[str, ...]] = {
    r"--nodes[= ]|-N ?": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    r"--(?:gres=[\"']?gpu|gpus-per-node)(?:[:=][\w.-]*?)??[:=]": ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"),
    r"--ntasks-per-node[= ]": ("SLURM_NTASKS_PER_NODE",),
}
"""Variables of a Slurm job, by the options that set them."""

_SLURM_DEVICE = re.compile(
    r"^#SBATCH\s+(?:--gres=[\"']?gpu|--gpus(?:-per-(?:node|task))?|-G)[:= ]\s*([A-Za-z][\w.-]*):\d", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command."""

    text: str  # without quotes, variables put in where the script sets them
    line: int  # counted from 1
    quoted: bool = False  # whether quotes hold it together

    @property
    def is_open(self) -> bool:
        """Whether only the shell knows what it is."""
        return "$" in self.text or "`" in self.text


@dataclass(slots=True)
class Variables:
    """The variables of a script while it is read."""

    values: dict[str, tuple[Word, ...]]  # words of each variable; those of a function's arguments by number
    first_line: int  # lines above the text that is read
    # the line of a script that reads another one in, which all of that has; None in the script itself
    only_line: int | None

    def words(self, node: Node, *, is_split: bool = True) -> list[Word]:
        """Return the words that a part of a command stands for; an unquoted variable may be several."""
        kind, source = node.type, source_of(node)
        if kind == "command_name":
            return [word for child in node.named_children or [node] for word in self.words(child)]
        if kind in {"simple_expansion", "expansion"} and (words := self._variable(node)) is not None:
            return [part for word in words for part in _parts(word, is_split)]
        if kind == "string":
            return self._string(node)
        if kind == "concatenation":
            source = "".join(joined(self.words(child, is_split=False)) for child in node.children)
        elif kind == "arithmetic_expansion":
            source = self._number(source)
        elif sum_of_words := _EXPR.fullmatch(source):
            number = self._number(f"$(({sum_of_words[1]}))")
            source = number if number.isdigit() else source
        elif kind == "command_substitution" and (listed := _COUNTED.fullmatch(source)):
            texts = self._with_values(listed[1])
            source = source if "$" in texts else str(texts.count(",") + 1)
        elif kind == "command_substitution" and _SEEN in self.values and _SEES.fullmatch(source):
            source = joined(self.values[_SEEN])
        elif program := _WHICH.fullmatch(source):
            source = program[1]
        elif kind in {"raw_string", "ansi_c_string"}:
            return [Word(source.removeprefix("$")[1:-1], self.line(node), True)]
        else:
            source = _ESCAPED.sub(lambda match: match[1].replace("\n", ""), source)
        return [Word(source, self.line(node))]

    def shifts(self, words: Sequence[Word]) -> bool:
        """Whether a command drops arguments of the function that it stands in, which it then does."""
        if words[0].text != "shift":
            return False
        if given := self.values.get("@"):
            count = next((int(word.text) for word in words[1:] if word.text.isdigit()), 1)
            self.values.update(dict.fromkeys(numbered(given), ()) | numbered(given[count:]))
        return True

    def _string(self, node: Node) -> list[Word]:
        inner = node.named_children
        if len(inner) == 1 and _EVERY.match(source_of(inner[0])):
            words = self._variable(inner[0])
            if words is not None and source_of(node) == f'"{source_of(inner[0])}"':
                return list(words)
        return [Word(self.filled(node, 1), self.line(node), True)]

    def filled(self, node: Node, edge: int = 0) -> str:
        """Return the text of a part of a script with variables put in, without ``edge`` signs around it."""
        source, text, at = node.text or b"", "", edge
        for child in node.named_children:
            start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
            text += source[at:start].decode(errors="replace")
            if child.type == "string_content":
                text += re.sub(r"\\([\"\\$`\n])", lambda match: match[1].strip("\n"), source_of(child))
            elif child.type == "heredoc_content":
                text += source_of(child)
            else:
                text += " " * bool(_BLANK.match(source_of(child))) + joined(self.words(child, is_split=False))
            at = end
        return text + source[at : len(source) - edge].decode(errors="replace")

    def _variable(self, node: Node) -> tuple[Word, ...] | None:
        """Return the words of a variable, or of its default; None where the script sets none."""
        source = _BLANK.sub("", source_of(node), count=1)
        named = _NAME.fullmatch(_REQUIRED.sub("", source, count=1))
        if named is not None:
            return self.values.get(named[1])
        parts = node.children
        at = next((index for index, part in enumerate(parts) if part.type in _DEFAULTS | _ONLY_SET), None)
        if at is None:
            entry = next((part for part in parts if part.type == _ENTRY), None)
            return self._entry(entry) if entry is not None and len(parts) == _ALONE else None
        words = self._entry(parts[1]) or self.values.get("".join(source_of(part) for part in parts[1:at]))
        is_set = bool(joined(words or ())) if parts[at].type.startswith(":") else bool(words)
        if is_set is (parts[at].type in _DEFAULTS):
            return words or ()
        default = (word for part in parts[at + 1 : -1] for word in self.words(part, is_split=False))
        word = Word("".join(part.text for part in default), self.line(node))
        if parts[at].type in _ASSIGNED:
            self.values["".join(source_of(part) for part in parts[1:at])] = (word,)
        return (word,)

    def name_of(self, node: Node) -> str:
        """Return the name of a variable; of an entry of an array with its index put in: ``paths[qwen]``."""
        array, index = node.child_by_field_name("name"), node.child_by_field_name("index")
        if node.type != _ENTRY or array is None or index is None:
            return source_of(node)
        return f"{source_of(array)}[{joined(self.words(index, is_split=False))}]"

    def _entry(self, node: Node) -> tuple[Word, ...] | None:
        """Return the word of an entry of an array, by its name or its place; None where the script has none there."""
        if node.type != _ENTRY:
            return None
        name = self.name_of(node)
        array, _, index = name.removesuffix("]").partition("[")
        at = int(index) if index.isdigit() else None
        return self.values.get(name) or (None if at is None else self.values.get(array, ())[at : at + 1] or None)

    def _with_values(self, text: str) -> str:
        """Return a text with the variables put in that the script sets."""
        return _NAME.sub(lambda match: joined(self.values.get(match[1], (Word(match[0], 0),))), text)

    def _number(self, source: str) -> str:
        """Return the value of whole numbers and variables, as ``$((NODES * 8))``; else the text as one word."""
        inner = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda match: joined(self.values.get(match[1], ())), source[3:-2])
        try:
            return str(calculated(ast.parse(inner.strip(), mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return "".join(source.split())

    def line(self, node: Node) -> int:
        """Return the line of the script on which a part of it begins, counted from 1."""
        return self.only_line or self.first_line + node.start_point.row + 1


def calculated(node: ast.expr) -> int:
    """Return the value of an expression of whole numbers; raises ValueError where it holds anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        with suppress(ZeroDivisionError, RecursionError):
            return _OPERATORS[type(node.op)](calculated(node.left), calculated(node.right))
    raise ValueError(type(node).__name__)


def numbered(arguments: Sequence[Word]) -> dict[str, tuple[Word, ...]]:
    """Return the variables that arguments of a script or a function stand in: each, all, and all from one on."""
    given = tuple(arguments)
    behind = {f"@:{at}": given[at - 1 :] for at in range(1, len(given) + 2)}
    single = {str(at): (word,) for at, word in enumerate(given, 1)}
    return {"@": given, "*": given, "#": (Word(str(len(given)), 0),), **single, **behind}


def _parts(word: Word, is_split: bool) -> Iterator[Word]:
    """Yield a variable's word as the shell splits it where no quotes stand around it."""
    yield from split_words(word) if is_split else (word,)


def split_words(word: Word) -> Iterator[Word]:
    """Yield the words that a text holds."""
    yield from (Word(part.strip("\"'"), word.line) for part in _PART.findall(word.text.replace("\\\n", " ")))


def joined(words: Sequence[Word]) -> str:
    """Return words as one text."""
    return " ".join(word.text for word in words)


def source_of(node: Node) -> str:
    """Return a part of a script as it is written."""
    return (node.text or b"").decode(errors="replace")


def seen_of(devices: str) -> dict[str, tuple[Word, ...]]:
    """Return what a script sees of devices, where they may stand in one node."""
    return {_SEEN: (Word(devices, 0),)} if devices.isdigit() and int(devices) <= _MOST_OF_NODE else {}


def slurm_device(text: str) -> tuple[str, int] | None:
    """Return the device that the head of a batch script asks for, as ``--gres=gpu:a6000:4`` does, and its line."""
    match = _SLURM_DEVICE.search(text)
    return None if match is None else (match[1], text.count("\n", 0, match.start()) + 1)


def slurm_variables(text: str, before: str) -> Iterator[tuple[str, tuple[Word, ...]]]:
    """Yield the variables that Slurm sets from the head of a batch script, or from a command of ``srun``."""
    for line, content in enumerate(text.splitlines(), 1):
        for pattern, names in _SLURM.items():
            match = re.match(rf"{before}\s+(?:{pattern})(\d+)", content)
            for name in names if match is not None else ():
                yield name, (Word(match[1] if match else "", line),)


ASSIGNMENT = "variable_assignment"  # Before a command it is of that alone: ``BATCH=16 python train.py``


def within_node(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the parts of a kind in a part of a script, however deep."""
    for child in node.named_children:
        if child.type in kinds:
            yield child
        yield from within_node(child, *kinds)


def ends_line(command: Node, part: Node) -> bool:
    """Whether a line of a script ends behind a part of a command."""
    behind = (command.text or b"")[part.end_byte - command.start_byte :]
    return re.match(rb"[ \t]*(?:#.*)?\n", behind) is not None
