"""The words of a line as they are typed: cut at spaces, with numbers and units that belong together as one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.words import INFER, vocabulary
from capacity_tui.engine.record import dataclass

LONGEST_LINE = 400
"""Characters of a line that are read; a plan of more belongs into a file."""

# A word ends at a space, or at a comma, semicolon or colon before one; what stands in brackets belongs together.
_WORD = re.compile(r"(?:\d+\s*[x×*]\s*)?[^\s()]*\([^()]*\)?|[^\s]+", re.IGNORECASE)

_ENDINGS = ",;:?!"

_MEMORY_UNITS = ("gb", "gib", "gig", "gigs")

_BITS = ("bit", "bits")
_QUANTIZED = ("quantization", "quantisation", "quantized", "quantised", "quant")

_SECOND, _PER = ("s", "sec", "second"), ("per", "a", "/", "each")

_GIGABYTES = re.compile(r"(\d+(?:\.\d+)?)(?:g|gig|gigs)", re.IGNORECASE)

_COUNT = re.compile(r"\d{1,7}[x×*](?=\D|$)", re.IGNORECASE)

_NUMBER = re.compile(r"\d[\d_]*(?:[.,]\d+)*", re.ASCII)

_GROUPED, _DECIMAL_COMMA = re.compile(r"\d{1,3}(?:,\d{3})+"), re.compile(r"(\d+),(\d{1,2})([kmbgt]?)", re.IGNORECASE)

_SIGNS: Mapping[str, str] = {"<": "<", "<=": "<", "≤": "<", "=": "=", "under": "<", "below": "<"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the line: as it is read, and where it stands."""

    text: str
    start: int
    end: int


def split(text: str) -> list[Token]:
    """Return the words of a line; what is longer than a line may be is left out."""
    tokens: list[Token] = []
    for match in _WORD.finditer(text[:LONGEST_LINE]):
        word, start = match[0], match.start()
        parts = [(start, word)]
        if word.startswith("(") and "," not in word:  # a remark in brackets, not the figures of a device
            parts = [(start + 1 + part.start(), part[0]) for part in re.finditer(r"[^\s()]+", word[1:])]
        for at, part in parts:
            plain = part.rstrip(_ENDINGS).removesuffix(".") or part
            _add(Token(_plain_number(plain), at, at + len(plain)), tokens)
    return tokens


def _add(token: Token, tokens: list[Token]) -> None:
    """Add a word to those before it, as one with them where they belong together: ``10 million``, ``ttft < 1 s``."""
    before = tokens[-1] if tokens else None
    joined = None if before is None else _with_unit(before.text, key_of(token.text))
    if before is None:
        tokens.append(token)
    elif joined is not None:
        tokens[-1] = Token(joined, before.start, token.end)
    elif before.text in _SIGNS and len(tokens) > 1 and (before.text in "<=≤" or _is_latency(tokens[-2].text)):
        sign, name = tokens.pop(), tokens.pop()
        _add(Token(f"{name.text}{_SIGNS[sign.text]}{token.text}", name.start, token.end), tokens)
    elif _is_limit(before.text, token.text):
        value = token.text.lstrip("<≤=")
        tokens[-1] = Token(f"{before.text.rstrip('<')}<{value}", before.start, token.end)
    elif key_of(token.text) in _SECOND and before.text.casefold() in _PER and _counts(tokens[:-1]):
        tokens[-2:] = [Token(f"{tokens[-2].text}/s", tokens[-2].start, token.end)]
    else:
        tokens.append(token)


def _with_unit(number: str, word: str) -> str | None:
    """Return a number and the word behind it as one, as ``24 gb``, ``4 bits`` or ``10 s``; None for others."""
    scale, seconds = vocabulary().scales.get(word), vocabulary().time_units.get(word)
    if scale is not None and _NUMBER.fullmatch(number):
        return _plain_number(number) + scale
    if word in _BITS and number.isdigit():
        return f"{number}bit"
    if word in _QUANTIZED and number.endswith("bit"):
        return number
    if word in _MEMORY_UNITS and _NUMBER.fullmatch(number):
        return f"{number}gb"
    return f"{number}{seconds}" if seconds is not None and number[-1:].isdigit() else None


def _is_limit(before: str, text: str) -> bool:
    """Whether a word is a limit of what is named before it, as in ``ttft< 1s`` and ``ttft <1s``."""
    return (before[-1:] == "<" and len(before) > 1) or (text[:1] in "<≤" and len(text) > 1 and before.isalpha())


def _counts(tokens: list[Token]) -> bool:
    """Whether the last word says what a number counts."""
    return bool(tokens) and key_of(tokens[-1].text) in vocabulary().amounts


def _is_latency(word: str) -> bool:
    amount = vocabulary().amounts.get(key_of(word))
    return amount is not None and amount.fields.get(INFER) in (Key.INFERENCE_TTFT_SECONDS, Key.INFERENCE_TPOT_SECONDS)


def _plain_number(word: str) -> str:
    """Return a number as it is read everywhere: ``10,5M`` is 10.5M, ``10,000`` is 10000, ``24G`` is 24gb."""
    size = _GIGABYTES.fullmatch(word)
    if size is not None:
        return f"{size[1]}gb"
    if _GROUPED.fullmatch(word):
        return word.replace(",", "")
    return _DECIMAL_COMMA.sub(r"\1.\2\3", word) if _DECIMAL_COMMA.fullmatch(word) else word


def counted_start(word: str) -> str:
    """Return the number of devices that a word begins with, as ``8x``; empty for other words."""
    match = _COUNT.match(word)
    return match[0] if match else ""
