"""The table of models, which also finds them by the names that model hubs give their variants, and by size alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from capacity_tui.engine.catalog.models_by_count import count_in, name_of_count, row_of_count
from capacity_tui.engine.catalog.parsed import parse_shipped
from capacity_tui.engine.catalog.rows.architectures import Architecture
from capacity_tui.engine.catalog.rows.workloads import ModelSize
from capacity_tui.engine.catalog.table import Table
from capacity_tui.engine.units import GIGA

_WORDS = re.compile(r"[-_ ]")


class ArchitectureTable(Table[Architecture]):
    """Shapes of models by id, hub id, or the name of a variant: ``meta-llama/Llama-3.1-70B-Instruct``.

    Variants differ in what they were trained on or in how they are stored, not in their shape. A size (``medium``) and
    a count of parameters (``35B``) are found too: they stand for a dense decoder of usual proportions, unlisted.

    Args:
        shipped: as of any table.
        own: as of any table.
        aliases: as of any table.
        sizes: models by the count of their parameters alone.
    """

    def __init__(
        self,
        shipped: Sequence[Traversable],
        own: Sequence[Path],
        aliases: Mapping[str, str],
        sizes: Table[ModelSize],
    ) -> None:
        super().__init__("model", Architecture, shipped, own, aliases)
        self._sizes = sizes

    def __getitem__(self, row_id: str) -> Architecture:
        if row_id not in self and row_id not in self._rows:
            self._rows |= {row.id: row for row in [self._by_count(row_id)] if row}
        return super().__getitem__(row_id)

    def find_id(self, name: str) -> str | None:
        """Return the id that a name stands for; None when nothing is called that."""
        row_id = super().find_id(name)
        plain = map(super().find_id, self._plain_names(name)) if row_id is None else ()
        return row_id or self._id_by_count(name) or next(filter(None, plain), None)

    def is_variant(self, name: str) -> bool:
        """Whether a name is known only without the words that tell a variant."""
        return super().find_id(name) is None and self._id_by_count(name) is None and self.find_id(name) is not None

    def _id_by_count(self, name: str) -> str | None:
        """Return the id of a size or of a bare count; None where a name is neither."""
        count = count_in(name)
        return name_of_count(count) if count is not None else self._sizes.find_id(name)

    def _by_count(self, row_id: str) -> Architecture | None:
        count = count_in(row_id)
        if count is not None:
            return row_of_count(row_id, count)
        size = self._sizes.get(row_id)
        return None if size is None else row_of_count(row_id, size.parameter_count_billion * GIGA, size.name)

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
        return re.compile(rf"[-_ :.](?:{'|'.join(self._names['endings'])})$", re.IGNORECASE)
