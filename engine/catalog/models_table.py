"""The table of models, which also finds them by the names that model hubs give their variants, and by size alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from capacity_tui.engine.catalog.reading import key_of
from capacity_tui.engine.catalog.rows.models import Architecture, ModelSize, Quantization
from capacity_tui.engine.catalog.shipped import parse_shipped
from capacity_tui.engine.catalog.table import Table
from capacity_tui.engine.units import GIGA, format_count

_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm]|a\d+(?:\.\d+)?b|\d+e")
"""Of a model, of what is active of it, or a number of experts, as a word of its name."""

_FEWEST_WORDS = 3  # Of a name without a size that another one begins with
_NAMED = re.compile(r"[a-z]{3,}|\d+\.\d+(?![.\d]*[bm](?![a-z]))")  # Words and versions of a name, not its sizes
_WORDS, _LAST_WORD = re.compile(r"[-_ ]"), re.compile(r"[-_ ]([^-_ ]+)$")


class ArchitectureTable(Table[Architecture]):
    """Shapes of models by id, hub id, or the name of a variant: ``meta-llama/Llama-3.1-70B-Instruct``.

    Variants differ in what they were trained on or in how they are stored, not in their shape. A size (``medium``) and
    a count of parameters (``35B``) are found too: they stand for a dense decoder of usual proportions, unlisted.

    Args:
        sizes: models by the count of their parameters alone.
    """

    def __init__(
        self, shipped: Sequence[Traversable], own: Sequence[Path], aliases: Mapping[str, str], sizes: Table[ModelSize]
    ) -> None:
        super().__init__("model", Architecture, shipped, own, aliases)
        self._sizes = sizes

    def __getitem__(self, row_id: str) -> Architecture:
        if row_id not in self and row_id not in self._rows:
            self._rows |= {row.id: row for row in [self._by_count(row_id)] if row}
        return super().__getitem__(row_id)

    @cached_property
    def decoders(self) -> tuple[Architecture, ...]:
        """Language models of known size, the largest first."""
        rows = (row for row in self.values() if row.kind == "decoder" and row.params_total)
        return tuple(sorted(rows, key=lambda row: -(row.params_total or 0)))

    def _id_of(self, name: str) -> str | None:
        row_id = super()._id_of(name)
        owner, slash, own = name.rpartition("/")
        known_id = super()._id_of
        # A row may have a hub's own id with its owner, and not without.
        names = self._plain_names(name) if " " in owner else (own, *self._plain_names(name))
        plain = (known_id(start + one) for one in names for start in ("", owner + slash))
        return row_id or self._id_by_count(name) or next(filter(None, plain), None) or self._id_within(name)

    def is_variant(self, name: str) -> bool:
        """Whether a name is known only without the words that name a variant."""
        return self.find_id(name) is not None and super()._id_of(name) is None and self._id_by_count(name) is None

    def names_another(self, name: str) -> bool:
        """Whether a name is not one of its row: it has a word or a version that no name of the row has."""
        row_id = self.find_id(name)
        if row_id is None or self._id_by_count(name) is not None:
            return False
        row = self[row_id]
        own = key_of(" ".join(filter(None, (row.id, row.name, row.hf_id))))
        named = set(_NAMED.findall(self.plain_name(name).casefold())) - self.variants
        return any(key_of(word) not in own for word in named)

    def _id_within(self, name: str) -> str | None:
        """Return the id of the known model whose whole name, size included, a hub's name holds.

        ``teknium/OpenHermes-2.5-Mistral-7B`` is of the shape of mistral-7b, and ``elyza/Llama-3-ELYZA-JP-8B``, whose
        words stand between a version and the size, of llama-3-8b. None where a second size, or a word that says that
        a model has more or other parts, stands beside it.
        """
        owner, _, last = name.rpartition("/")
        words = [word.casefold() for word in _WORDS.split(last) if word]
        in_words = self._names["sizes_in_words"].get(words[0], ()) if words else ()
        sizes = [at for at, word in enumerate(words) if word in in_words or _SIZE.fullmatch(word)]
        whole = [at for at in sizes if not words[at].startswith("a")] or sizes  # of 122b-a10b one is what works
        if not owner or self._other_shapes & set(words):
            return None
        if not sizes and last.casefold().endswith(".gguf"):  # DeepSeek-V4-Flash-IQ2XXS-chat-v2.gguf
            begins = ("-".join(words[:end]) for end in range(len(words), _FEWEST_WORDS - 1, -1))
            return next(filter(None, map(super()._id_of, begins)), None)
        if len(whole) != 1:
            return None
        spans = ((start, end) for start in range(len(words)) for end in range(len(words), start + 1, -1))
        within = ["-".join(words[start:end]) for start, end in spans if start <= sizes[0] <= sizes[-1] < end]
        size = whole[0] if len(sizes) == 1 else 0
        starts = ("-".join(words[:end]) for end in range(size, 0, -1))
        within += [f"{start}-{words[size]}" for start in starts if any(map(str.isdigit, start))]
        return next(filter(None, map(super()._id_of, within)), None)

    @cached_property
    def _other_shapes(self) -> frozenset[str]:
        return frozenset(self._names["other_shapes"])

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
        """Return the known ids nearest to a misspelt name, regardless of owner and variant."""
        return super().nearest(self.plain_name(name))

    def plain_name(self, name: str) -> str:
        """Return a name without its owner and the words that name a variant."""
        return next(self._plain_names(name), name)

    def _plain_names(self, name: str) -> Iterator[str]:
        """Yield a name without its owner and the words that name a variant, then also without its last words."""
        text = name.rsplit("/", 1)[-1]
        while text:
            words = [word for word in _WORDS.split(text) if word.casefold() not in self.variants]
            yield "-".join(words[1:] if words[:1] and words[0].casefold() in self._owners else words)
            while (last := _LAST_WORD.search(text)) and last[1].casefold() in self.variants:
                text = text[: last.start()]  # Mixtral-8x7B-Instruct-v0.1-AWQ
            ending = self._endings.search(text)
            text = text[: ending.start()] if ending else ""
            if text:
                yield text  # whisper-base of whisper-base.en

    @cached_property
    def _names(self) -> Mapping[str, Any]:
        names: dict[str, Any] = parse_shipped("model_names.yaml")
        return names

    @cached_property
    def variants(self) -> frozenset[str]:
        """Words of a name that name a variant."""
        return frozenset(self._names["variants"])

    @cached_property
    def _owners(self) -> frozenset[str]:
        return frozenset(self._names["owners"])

    @cached_property
    def _endings(self) -> re.Pattern[str]:
        return re.compile(rf"[-_ :.](?:{'|'.join(self._names['endings'])})$", re.IGNORECASE)


_COUNT = re.compile(r"(\d+(?:\.\d+)?)([mbt])")
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_MOST_HEADS = 1000
_ATTENTION = 2.0  # matrices of width by width for queries and for the output


def count_in(name: str) -> float | None:
    """Return the parameters that a name such as ``35B`` counts; None for other names, and beyond what is built."""
    match = None if name.strip().startswith("-") else _COUNT.fullmatch(key_of(name))
    count = float(match[1]) * _UNITS[match[2]] if match else 0.0
    return count if _proportions()["smallest"] <= count <= _proportions()["largest"] else None


def name_of_count(count: float) -> str:
    """Return the name under which a count is found: ``35b``."""
    unit = next((unit for unit in reversed(_UNITS) if count >= _UNITS[unit]), "m")
    return f"{count / _UNITS[unit]:.12g}{unit}"


def row_of_count(row_id: str, count: float, name: str = "") -> Architecture:
    """Return a dense decoder of the usual proportions; how wide its feed-forward is follows from the count."""
    usual = _proportions()
    embedding = next(per_layer for per_layer in usual["vocabularies"] if count <= per_layer["up_to"])
    tables = (1 if embedding["tied_embeddings"] else 2) * embedding["vocab"]
    width, shared = usual["width_per_layer"], usual["shared_heads"]

    def layers_of(heads: int) -> int:
        """Return the layers that a width leaves room for."""
        key_value: float = 2.0 * min(1.0, usual["kv_heads"] / heads)
        per_layer = (_ATTENTION + key_value + 3 * usual["feed_forward"]) * (heads * width) ** 2
        exact: float = (count - tables * heads * width) / per_layer
        multiple = int(usual["shared_layers"]) if exact >= usual["shared_layers"] else 1
        return max(1, multiple * round(exact / multiple))

    counts = (*range(1, shared), *range(shared, _MOST_HEADS, shared))
    heads = min(counts, key=lambda heads: abs(math.log(layers_of(heads) / heads)))
    return Architecture.model_validate(
        {
            "id": row_id,
            "name": name or f"{format_count(count)} parameters",
            "family": "by count",
            "kind": "decoder",
            "by_count": True,
            "params_total": round(count),
            "params_active": round(count),
            "layers": layers_of(heads),
            "hidden": heads * width,
            "heads": heads,
            "kv_heads": min(heads, usual["kv_heads"]),
            "head_dim": usual["head_dim"],
            "gated": True,
            "norm": "RMSNorm",
            "vocab": embedding["vocab"],
            "tied_embeddings": embedding["tied_embeddings"],
            "max_context": usual["max_context"],
            "source": usual["source"],
            "checked": usual["checked"],
            "confidence": "C",
            "notes": "a count of parameters alone: a dense decoder of the usual proportions stands for it",
        }
    )


@cache
def _proportions() -> Mapping[str, Any]:
    rows: dict[str, Any] = parse_shipped("model_proportions.yaml")
    return rows


_ANY_BITS = re.compile(r"exl2(\d(?:\.\d+)?)(?:bpw)?")
_EXL2_RANGE = (2.0, 8.0)


class QuantizationTable(Table[Quantization]):
    """Storage formats by id, and EXL2 at any average: ``exl2-4.0``."""

    def __init__(self, shipped: Sequence[Traversable], own: Sequence[Path], aliases: Mapping[str, str]) -> None:
        super().__init__("quantization", Quantization, shipped, own, aliases)

    def find(self, name: str) -> Quantization:
        """Return the row of an id, an alias or a maker's name, or EXL2 with the bits named; as of any table."""
        match = _ANY_BITS.fullmatch(key_of(name))
        bits = float(match[1]) if match else 0.0
        if name in self or not _EXL2_RANGE[0] <= bits <= _EXL2_RANGE[1]:
            return super().find(name)
        return self["exl2"].model_copy(
            update={"id": f"exl2-{bits}", "name": f"EXL2 {bits} bit", "bits_per_weight": bits, "body_bits": bits}
        )


_GGUF_TYPE = re.compile(
    r"(?:^|[-._:/])(IQ\d_[A-Z]+|Q\d_K_[SML]|Q\d_K|Q\d_[01]|TQ\d_0|BF16|F16|F32)(?=$|[-._:/])", re.IGNORECASE
)

_EXL2_BITS = re.compile(r"(?:^|[-_.:/])(\d)(?:[._](\d+))?[-_]?bpw", re.IGNORECASE)
"""Mean bits of a weight in the name of an EXL2 or EXL3 model: ``-exl2-4.65bpw``, ``-6_5bpw-h8-exl2``."""

_WORD = re.compile(r"[-._:/\s]+")


def gguf_type(name: str) -> re.Match[str] | None:
    """Return where a name says the type of a GGUF file; its first group is the type."""
    return _GGUF_TYPE.search(name)


def format_in_name(name: str) -> str | None:
    """Return the format of weights in a hub id or a file's name (``Qwen/Qwen3-8B-FP8``); None where there is none."""
    gguf = gguf_type(name)
    if gguf is not None:
        return gguf[1].casefold()
    bits = _EXL2_BITS.search(name)
    if bits is not None:
        return f"exl2-{float(f'{bits[1]}.{bits[2] or 0}')}"
    words = set(_WORD.split(name.casefold()))
    return next((weights for spelled, weights in _formats().items() if words.issuperset(spelled.split("-"))), None)


@cache
def _formats() -> Mapping[str, str]:
    rows: dict[str, Any] = parse_shipped("model_names.yaml")
    formats: dict[str, str] = rows["formats"]
    return formats
