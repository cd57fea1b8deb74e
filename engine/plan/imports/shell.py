"""Commands of a shell script as words with their lines; nothing is run, and what only a shell knows stays open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from capacity_tui.engine.errors import DocumentError, Place

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
