"""Words of a line that name a model: as catalogues and hubs do, by a part of its name, or by its size alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.names import key_of
from capacity_tui.engine.models.families import FAMILIES
from capacity_tui.engine.models.known_models import find_known_model
from capacity_tui.engine.models.transformer.traits import load_traits
from capacity_tui.engine.plan.line.vocabulary import vocabulary
from capacity_tui.engine.plan.line.words import Meaning
from capacity_tui.engine.plan.model_change import is_model_file
from capacity_tui.engine.plan.plan import AUTO
from capacity_tui.engine.units import format_count, parse_count

MODEL = "model.name"
_HUB = re.compile(r"^(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?:models/)?", re.IGNORECASE)
_SIZE = re.compile(r"(?P<experts>\d+x)?(?P<size>\d+(?:\.\d+)?)(?P<unit>[bm])", re.IGNORECASE)
_PIECES = re.compile(r"[\s_/\-]+")
_LARGEST = 1e14
_SHARED, _MOST_HEADS = 8, 1000
"""From so many heads on they are a multiple of it, which the devices of a node can share."""
_DECODER = "transformer_decoder"


def named_model(word: str, catalog: Catalog) -> Meaning | None:
    """Return the model that a name, a hub id or a file stands for; None where it is none of them."""
    name = _HUB.sub("", word).rstrip("/")
    if not any(map(str.isalpha, name)):
        return None
    if key_of(name) == AUTO:
        return Meaning("largest model that fits", {MODEL: AUTO})
    found = catalog.architectures.find_id(name)
    if found is not None and found not in catalog.networks:
        is_variant = catalog.architectures.is_variant(name)
        return _model(found, f"{_shown(name)} has the shape of {found}" if is_variant else "")
    known = find_known_model(name, catalog) if key_of(name) in _other_names(catalog) else None
    if known is not None:
        return _model(known.id)
    return Meaning(f"model {_shown(name)}", {MODEL: name}) if is_model_file(name, catalog) else None


def sized_model(word: str, catalog: Catalog) -> Meaning | None:
    """Return the usual model of a size such as ``70b``, or a transformer of that size; None for other words."""
    match = _SIZE.fullmatch(word)
    if match is None or (match["unit"] in "mM" and match["experts"]):
        return None
    called = [row for row in _decoders(catalog) if word.casefold() in _PIECES.split(row)]
    if called:
        found = _preferred(called, catalog)
        return _model(found, f"{word}: {found}, a usual model of that size")
    size = float(parse_count(f"{match['size']}{match['unit']}")) * (
        int(match["experts"][:-1]) if match["experts"] else 1
    )
    if not 0 < size < _LARGEST:
        return None
    near = _nearest_size(size, catalog)
    return near if near is not None else _transformer(size)


def resembling_model(word: str, catalog: Catalog) -> Meaning | None:
    """Return the model that a part of a name stands for: ``llama-70b``, ``3.1-8b``, ``acme/Mistral-7B-tuned``."""
    name = catalog.architectures.plain_name(_HUB.sub("", word))
    pieces = [piece for piece in _PIECES.split(name.casefold()) if piece]
    if not pieces or not any(map(str.isalpha, name)):
        return None
    ids = [row_id for row_id in (*catalog.architectures, *FAMILIES, *catalog.networks) if _has(row_id, pieces)]
    if ids:
        found = _preferred(ids, catalog)
        return _model(found, f"{_shown(word)}: {found}" + (f", one of {len(ids)} called so" if len(ids) > 1 else ""))
    size = next((piece for piece in pieces if _SIZE.fullmatch(piece)), None)
    if size is None or "/" not in word:
        return None
    typical = sized_model(size, catalog)
    return typical and Meaning(typical.words, typical.values, f"{_shown(word)} is not known; {typical.why}")


def model_names(catalog: Catalog) -> Iterable[str]:
    """Return what models may be called, the usual ones first."""
    other = (name for name in catalog.architectures.aliases if "_" not in name and "/" not in name)
    return dict.fromkeys((*vocabulary().models, *catalog.architectures, *FAMILIES, *catalog.networks, *other))


def _model(row_id: str, why: str = "") -> Meaning:
    return Meaning(f"model {row_id}", {MODEL: row_id}, why)


def _shown(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def _other_names(catalog: Catalog) -> frozenset[str]:
    """Return the keys of families and networks, those of plug-ins among them."""
    from capacity_tui.engine.models.plugins import load_plugins  # noqa: PLC0415

    names = (*FAMILIES, *catalog.networks, *catalog.networks.aliases, *load_plugins().models)
    return frozenset(map(key_of, names))


def _decoders(catalog: Catalog) -> list[str]:
    return [row.id for row in catalog.architectures.values() if row.kind == "decoder"]


def _has(row_id: str, pieces: list[str]) -> bool:
    """Whether every piece begins a piece of an id; sizes are whole pieces."""
    own = _PIECES.split(row_id)
    return all(
        any(part == piece if _SIZE.fullmatch(piece) else part.startswith(piece) for part in own) for piece in pieces
    )


def _preferred(ids: list[str], catalog: Catalog) -> str:
    """Return the id that is meant: a usual one, else the newest."""
    usual = vocabulary().models

    def rank(row_id: str) -> tuple[int, str]:
        row = catalog.architectures.get(row_id)
        return usual.index(row_id) if row_id in usual else len(usual), (row.released or "") if row else ""

    least = min(rank(row_id)[0] for row_id in ids)
    return max((row_id for row_id in ids if rank(row_id)[0] == least), key=lambda row_id: rank(row_id)[1])


def _nearest_size(size: float, catalog: Catalog) -> Meaning | None:
    """Return the model nearest to a size, a usual one if there is one near enough; None where none is."""
    words = vocabulary()
    for ids in (words.models, _decoders(catalog)):
        rows = [catalog.architectures[row_id] for row_id in ids if row_id in catalog.architectures]
        sized = [row for row in rows if row.params_total and row.kind == "decoder" and not row.experts]
        nearest = min(sized, key=lambda row: abs(math.log((row.params_total or 1) / size)))
        if abs(math.log((nearest.params_total or 1) / size)) <= words.near:
            return _model(nearest.id, f"{format_count(size)}: {nearest.id} is the nearest in size")
    return None


def _transformer(size: float) -> Meaning:
    """Return a transformer of a size that no known model has: sizes in the usual proportions."""
    words = vocabulary()
    vocab = float(load_traits().families[_DECODER]["vocab"])

    def of_a_layer(width: int) -> float:
        return (4 + 3 * words.feed_forward) * width**2

    heads = (*range(1, _SHARED), *range(_SHARED, _MOST_HEADS, _SHARED))
    widths = {count: count * words.width_per_layer for count in heads}
    fits = {count: max(1, round((size - 2 * vocab * width) / of_a_layer(width))) for count, width in widths.items()}
    count = min(heads, key=lambda count: abs(math.log(fits[count] / count)))
    width, layers = widths[count], fits[count]
    parameters = of_a_layer(width) * layers + 2 * vocab * width
    ffn = round(words.feed_forward * count) * words.width_per_layer
    sizes = {"layers": layers, "hidden": width, "heads": count, "ffn": ffn, "gated": True}
    return Meaning(
        f"model of {format_count(parameters)}",
        {MODEL: _DECODER, **{f"model.spec.{name}": value for name, value in sizes.items()}},
        f"no known model has {format_count(size)}: a transformer of {layers} layers, {width} wide",
    )
