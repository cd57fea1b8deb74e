"""The table of models, which also finds them by the names that model hubs give their variants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from capacity_tui.engine.catalog.parsed import parse_shipped
from capacity_tui.engine.catalog.rows.architectures import Architecture
from capacity_tui.engine.catalog.table import Table

_WORDS = re.compile(r"[-_ ]")


class ArchitectureTable(Table[Architecture]):
    """Shapes of models by id, hub id, or the name of a variant: ``meta-llama/Llama-3.1-70B-Instruct``.

    Variants differ in what they were trained on or in how they are stored, not in their shape.
    """

    def __init__(self, shipped: Sequence[Traversable], own: Sequence[Path], aliases: Mapping[str, str]) -> None:
        super().__init__("model", Architecture, shipped, own, aliases)

    def find_id(self, name: str) -> str | None:
        """Return the id that a name stands for; None when nothing is called that."""
        found = super().find_id(name)
        plain = map(super().find_id, self._plain_names(name)) if found is None else ()
        return found or next(filter(None, plain), None)

    def is_variant(self, name: str) -> bool:
        """Whether a name is known only without the words that tell a variant."""
        return super().find_id(name) is None and self.find_id(name) is not None

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return the known ids nearest to a misspelt name, whatever its owner and variant."""
        return super().nearest(self.plain_name(name))

    def plain_name(self, name: str) -> str:
        """Return a name without its owner and the words that tell a variant."""
        return next(self._plain_names(name), name)

    def _plain_names(self, name: str) -> Iterator[str]:
        """Yield a name without its owner and the words that tell a variant, then also without its last words."""
        text = name.rsplit("/", 1)[-1]
        while text:
            words = [word for word in _WORDS.split(text) if word.casefold() not in self.variants]
            yield "-".join(words[1:] if words[:1] and words[0].casefold() in self._owners else words)
            ending = self._endings.search(text)
            text = text[: ending.start()] if ending else ""

    @cached_property
    def _names(self) -> Mapping[str, list[str]]:
        names: dict[str, list[str]] = parse_shipped(files("capacity_tui.profiles") / "model_names.yaml")
        return names

    @cached_property
    def variants(self) -> frozenset[str]:
        """Words of a name that tell a variant."""
        return frozenset(self._names["variants"])

    @cached_property
    def _owners(self) -> frozenset[str]:
        return frozenset(self._names["owners"])

    @cached_property
    def _endings(self) -> re.Pattern[str]:
        return re.compile(rf"[-_ ](?:{'|'.join(self._names['endings'])})$", re.IGNORECASE)
