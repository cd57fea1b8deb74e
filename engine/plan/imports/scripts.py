"""Commands and calls in scripts of other tools as documents of options with their lines; nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.errors import DocumentError, Place
from capacity_tui.engine.plan.imports.tools import Tool, tools

_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<end>\n|;|&&|\|\|?|&)|(?P<open>\()|(?P<close>\))"
    r"|(?P<word>(?:\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'|\$\([^()]*\)|\$\{[^}]*\}|`[^`]*`|[^\s;&|()\"'\\`])+)",
    re.DOTALL,
)

_PART = re.compile(r"\\(.)|\"((?:\\.|[^\"\\])*)\"|'([^']*)'|([^\\\"']+)", re.DOTALL)

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)

_WHOLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?")

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}]*))?\}|([A-Za-z_]\w*))")

_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command.

    Attributes:
        text: without quotes, variables put in where the script sets them.
        line: counted from 1.
        quoted: whether quotes hold it together.
    """

    text: str
    line: int
    quoted: bool = False

    @property
    def is_open(self) -> bool:
        """Whether only the shell knows what it is."""
        return "$" in self.text or "`" in self.text


def commands(text: str, name: str) -> Iterator[tuple[Word, ...]]:
    """Yield the commands of a script.

    Args:
        text: the script.
        name: of its file, for messages.

    Raises:
        DocumentError: a quote is not closed.
    """
    variables: dict[str, tuple[Word, ...]] = {}
    for statement in _statements(text, name):
        words = list(statement)
        while words and (assigned := _ASSIGNED.fullmatch(words[0].text)) and not words[0].quoted:
            value = words.pop(0)
            inner = tuple(word for word in _array(assigned[2], value))
            variables[assigned[1]] = tuple(_expanded(inner, variables))
        if words and words[0].text in {"export", "declare", "local", "readonly"}:
            for word in words[1:]:
                if assigned := _ASSIGNED.fullmatch(word.text):
                    variables[assigned[1]] = tuple(_expanded((replace(word, text=assigned[2]),), variables))
            continue
        if words:
            yield tuple(_expanded(tuple(words), variables))


_ARRAY = "\x1f"
"""Between the words of an array that stands for one."""


def _array(text: str, value: Word) -> Iterator[Word]:
    """Yield the words that are assigned: those of an array, or one."""
    if _ARRAY not in text:
        yield replace(value, text=text)
        return
    for entry in text.split(_ARRAY)[1:]:
        line, _, word = entry.partition(" ")
        yield Word(word, int(line), True)


def _statements(text: str, name: str) -> Iterator[list[Word]]:
    """Yield the words between ends of lines and semicolons; an array is one word."""
    words: list[Word] = []
    depth, line, at = 0, 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise DocumentError("a quote is not closed", place=Place(name, line))
        kind, token = match.lastgroup, match[0]
        if kind == "word":
            word = Word(_unquoted(token), line, token[0] in "\"'")
            if depth and words and words[-1].text.partition(_ARRAY)[0].endswith("="):
                words[-1] = replace(words[-1], text=f"{words[-1].text}{_ARRAY}{line} {word.text}")
            else:
                words.append(word)
        elif kind in {"open", "close"}:
            depth = max(0, depth + (1 if kind == "open" else -1))
        elif kind == "end" and not depth:
            if words:
                yield words
            words = []
        line += token.count("\n")
        at = match.end()
    if words:
        yield words


def _unquoted(token: str) -> str:
    return "".join(
        escaped or re.sub(r"\\([\"\\$`\n])", r"\1", double) or single or plain
        for escaped, double, single, plain in _PART.findall(token)
    )


def _expanded(words: tuple[Word, ...], variables: Mapping[str, tuple[Word, ...]], depth: int = 0) -> Iterator[Word]:
    """Yield words with variables put in; one that stands alone may be several words."""
    for word in words:
        whole = _WHOLE.fullmatch(word.text)
        if whole is not None and whole[1] in variables and depth < _DEEPEST:
            yield from _split(variables[whole[1]])
        else:
            yield replace(word, text=_VARIABLE.sub(lambda match: _value(match, variables), word.text))


def _split(words: tuple[Word, ...]) -> Iterator[Word]:
    """Yield words; a text of options is split into them."""
    for word in words:
        if re.search(r"(^|\s)--?\w", word.text) and " " in word.text:
            yield from (Word(part, word.line) for part in word.text.replace("\\\n", " ").split())
        else:
            yield word


def _value(match: re.Match[str], variables: Mapping[str, tuple[Word, ...]]) -> str:
    name = match[1] or match[3]
    if name in variables:
        return " ".join(word.text for word in variables[name])
    return match[2] if match[2] else match[0]


LAUNCHER = "launcher"

_A_COMMAND = re.compile(
    r"^\s*(?:#!|--?[A-Za-z]|(?:export\s+)?[A-Za-z_]\w*=|(?:\S*/)?"
    r"(?:vllm|sglang|llama-server|llama-cli|llama-bench|python3?|torchrun|accelerate|deepspeed|trl|axolotl|srun|mpirun|uv|docker|exec|"
    r"nohup|CUDA_VISIBLE_DEVICES)\s+[^:=\s])",
    re.MULTILINE,
)

_NUMBER = re.compile(r"-\d+(\.\d+)?")

_OPTION = re.compile(r"--?[A-Za-z_]")

_SCRIPT = re.compile(r".*\.py")


def is_command(text: str) -> bool:
    """Whether a text is a shell script, a command or options of one."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("# ")), "")
    return _A_COMMAND.match(first) is not None


def documents(text: str, name: str) -> Iterator[tuple[Document, Tool | None]]:
    """Yield the options of each command with the tool that its program says; None where only options tell it.

    Raises:
        DocumentError: a quote is not closed.
    """
    alone: list[Word] = []
    for words in commands(text, name):
        if _OPTION.match(words[0].text):
            alone += words
            continue
        launcher, program = _programs(words)
        if launcher:
            yield _options(launcher, name), tools()[LAUNCHER]
        if program:
            yield _options(program, name), _tool(program)
    if alone:
        yield _options(alone, name), None


def _tool(words: Sequence[Word]) -> Tool | None:
    """Return the tool whose program a command starts; None for another program."""
    called = " ".join(word.text for word in _before_options(words))
    known = tools().values()
    return next((candidate for candidate in known if any(_starts(name, called) for name in candidate.programs)), None)


def _starts(program: str, called: str) -> bool:
    return re.search(rf"(^|[\s/.]){re.escape(program)}($|\s|\.)", called) is not None


def _programs(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return the words of a launcher, where there is one, and of the program that it starts."""
    starts = [index for index, word in enumerate(words) if _starts_launcher(words, index, word.text)]
    if not starts:
        return (), words
    rest = range(starts[-1] + 1, len(words))
    script = next((index for index in rest if _is_program(words, index)), None)
    if script is None:
        return words[starts[-1] :], ()
    return words[starts[-1] : script], words[script:]


def _starts_launcher(words: Sequence[Word], index: int, text: str) -> bool:
    called = text.rpartition("/")[2]
    following = words[index + 1].text if index + 1 < len(words) else ""
    return (
        called in {"torchrun", "deepspeed", "torch.distributed.launch", "torch.distributed.run"}
        or (called == "accelerate" and following == "launch")
    ) and not any(_OPTION.match(word.text) and word.text not in {"-m", "-u"} for word in words[:index])


def _is_program(words: Sequence[Word], index: int) -> bool:
    text, before = words[index].text, words[index - 1].text
    return _SCRIPT.fullmatch(text) is not None or before in {"-m", "--module"}


def _before_options(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of a command before its first option; ``-m`` names a module."""
    python = bool(words) and words[0].text.rpartition("/")[2].startswith("python")
    for word in words:
        if _OPTION.match(word.text) and not (python and word.text in {"-m", "-u"}):
            return
        yield word


def _options(words: Sequence[Word], name: str) -> Document:
    """Return the options of a command; what stands alone behind the program is its ``model``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = list(_before_options(words))
    if len(given) > 1 and given[-2].text in {"serve", "launch_server"}:
        data["model"], lines["model",] = _plain(given[-1]), given[-1].line
    rest = list(words[len(given) :])
    while rest:
        word = rest.pop(0)
        if not _OPTION.match(word.text):
            continue
        key, equals, value = word.text.partition("=")
        lines[key,] = word.line
        values = [Word(value, word.line)] if equals else []
        while not equals and rest and (not rest[0].text.startswith("-") or _NUMBER.fullmatch(rest[0].text)):
            values.append(rest.pop(0))
        data[key] = _plain(values[0]) if len(values) == 1 else [_plain(part) for part in values] if values else True
    return Document(data, name, lines)


def _plain(word: Word) -> Plain:
    return None if word.is_open else word.text


_IMPORT = re.compile(r"^(?:from\s+[\w.]+\s+import\s|import\s+\w)", re.MULTILINE)

_LOADS = "from_pretrained"

_MODEL = "Model"


def is_python(text: str) -> bool:
    """Whether a text is a Python script."""
    if _IMPORT.search(text) is None:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def calls(text: str, name: str) -> Iterator[tuple[Document, Tool]]:
    """Yield the arguments of calls that a tool knows, in the order of the script."""
    tree = ast.parse(text)
    constants = dict(_constants(tree))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in sorted(nodes, key=lambda node: node.lineno):
        called = _called(call)
        owner = next((candidate for candidate in tools().values() if called in candidate.calls), None)
        if owner is not None:
            yield _arguments(call, constants, name), owner


def _called(call: ast.Call) -> str:
    """Return what is called; loading counts where a model is loaded, not its tokenizer."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id
    if not isinstance(function, ast.Attribute):
        return ""
    base = function.value.id if isinstance(function.value, ast.Name) else ""
    return "" if function.attr == _LOADS and _MODEL not in base else function.attr


def _constants(tree: ast.AST) -> Iterator[tuple[str, Plain]]:
    """Yield names that a script gives a plain value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            with suppress(ValueError):
                yield node.targets[0].id, _literal(node.value, {})


def _arguments(call: ast.Call, constants: Mapping[str, Plain], name: str) -> Document:
    """Return the arguments of a call; the first one without a name is its ``model``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = [("model", argument) for argument in call.args[:1]]
    given += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
    for key, value in given:
        lines[key,] = value.lineno
        with suppress(ValueError):
            data[key] = _literal(value, constants)
    return Document(data, name, lines)


def _literal(node: ast.expr, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of an expression; ``torch.bfloat16`` is its last name.

    Raises:
        ValueError: only running the script tells it.
    """
    if isinstance(node, ast.Name):
        if node.id in constants:
            return constants[node.id]
        raise ValueError(node.id)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(element, constants) for element in node.elts]
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | list | dict | None):
        raise ValueError(type(value).__name__)
    return value
