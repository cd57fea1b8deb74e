"""What the word under the cursor of a line may become."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.plan.all_fields import all_fields
from capacity_tui.engine.plan.line.hardware_words import hardware_names
from capacity_tui.engine.plan.line.model_words import model_names
from capacity_tui.engine.plan.line.setting_words import value_names
from capacity_tui.engine.plan.line.vocabulary import INFER, TRAIN, UNSAID, vocabulary
from capacity_tui.engine.plan.line.words import counted_start, split

MOST = 8
"""Completions that are offered at once."""
FEWEST_OF_A_PART = 3
"""Characters from which on the middle of a name is completed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a word may become.

    Attributes:
        text: the whole word.
        kind: what it is: task, method, model, hardware, amount, value or field.
        line: the line with the word completed, and a space behind it.
        cursor: where the cursor stands then.
    """

    text: str
    kind: str
    line: str
    cursor: int


def completions(text: str, cursor: int | None = None, catalog: Catalog | None = None) -> tuple[Completion, ...]:
    """Return what the word under the cursor may become, the likeliest first; nothing where no word is begun.

    Args:
        text: the line.
        cursor: position in it; the end by default.
        catalog: where names come from; the shipped one with the user's own by default.
    """
    at = len(text) if cursor is None else cursor
    token = next((token for token in split(text) if token.start < at <= token.end), None)
    if token is None:
        return ()
    begun = text[token.start : at]
    count = counted_start(begun)
    typed = key_of(begun[len(count) :])
    names = [entry for entry in _names(catalog or load_catalog()) if not count or entry[2] == "hardware"]
    begins = [entry for entry in names if entry[0].startswith(typed)]
    # A part of a name is enough where no name begins so, as 3.1-70 of llama-3.1-70b.
    meant = begins or [entry for entry in names if len(typed) >= FEWEST_OF_A_PART and typed in entry[0]]
    offered: dict[str, Completion] = {}
    for _, name, kind in meant:
        before = f"{text[: token.start]}{count}{name}{'' if kind == 'field' else ' '}"
        offered.setdefault(name, Completion(f"{count}{name}", kind, before + text[token.end :].lstrip(), len(before)))
    return tuple(offered.values())[:MOST]


@lru_cache(maxsize=4)
def _names(catalog: Catalog) -> tuple[tuple[str, str, str], ...]:
    offered = tuple((key_of(name), name, kind) for name, kind in _offered(catalog) if "_" not in name)
    paths = (path for path, known in all_fields().items() if known.knob.role not in UNSAID)
    return (*offered, *((key_of(path.rpartition(".")[2]), f"{path}=", "field") for path in paths))


def _offered(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield names and what they are, the likeliest first."""
    words = vocabulary()
    yield from ((name, "method") for name in dict.fromkeys(words.methods.values()))
    yield from ((name, "task") for name in ("serve", "train", "fine-tune", "fit"))
    yield from ((name, "model") for name in words.models)
    yield from ((name, "hardware") for name in words.hardware)
    yield from ((name, "amount") for name in ("batch", "seq", "tokens", "rank", "prompt", "output", "epochs", "steps"))
    yield from ((name, "model") for name in model_names(catalog))
    yield from ((name, "hardware") for name in hardware_names(catalog))
    yield from ((name, "value") for task in (TRAIN, INFER) for name in value_names(task, catalog))
