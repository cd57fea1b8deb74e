"""Words of a line that name a model: as catalogues and hubs do, by a part of its name, or by its size alone."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from capacity_tui.engine.catalog import Architecture, Catalog, close_matches, count_in, format_in_name, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import FAMILIES, find_known_model
from capacity_tui.engine.plan.consequences import is_model_file
from capacity_tui.engine.plan.line.lexicon.processor_words import PIECES, by_piece
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import Meaning
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import format_count, parse_quantity

MODEL = Key.MODEL_NAME
AT_MOST = ("below", "at most")  # Bounds of a size that smaller models keep
FEWEST_CHARACTERS = 3  # Letters and digits of a part of a name that stands for it
_FEWEST_OF_A_SLIP, _SLIP, _LETTERS_OF_A_SLIP = 4, 0.8, 2
"""Letters of a word that may be a slip of a name, how similar it is to be, and how many letters may differ."""
LIKE_IT = 0.15  # Share by which a model may differ from the sizes that a line gives
_RUNS = re.compile(r"\d+(?:\.\d+)?[bm](?![a-z])|[a-z]+|\d+(?:\.\d+)*|[^a-z\d\s._/-]")
"""What a name consists of: sizes, words, numbers, and signs such as ``+``."""
_VERSION_MARK = re.compile(r"(?<=[a-z])v(?=\d)")  # mobilenetv2
_HUB = re.compile(r"^(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?:models/)?|\.\w+_in\d+k\w*$", re.IGNORECASE)
"""The address of a hub before a name, and behind it how timm's were trained."""
_SIZE = re.compile(r"(?P<experts>\d{1,4}x)?(?P<size>\d{1,7}(?:\.\d+)?)(?P<unit>[bm])", re.IGNORECASE)
OF_A_SHAPE = "has the shape of"  # Why a name that is known is computed as another
_PARTS = re.compile(r"[-/_\s]+")  # What stands between parts of a name that somebody typed
_PATCH = re.compile(r"/(\d+)$")  # ViT-L/16
_NAME_AND_VERSION = re.compile(r"([a-z]+)(\d?(?:\.\d)?)")
_WORDS = re.compile(r"[-/]|(?<=[a-z]{3})(?=\d)")  # What stands between words of an id, and before a version
_VERSION = re.compile(r"(?<=[a-z]{3})(?=\d)")  # llama3
_KIND = re.compile(r"(?<=[a-z]\d)(?=[a-z]{2})")  # qwen3vl


def is_size(word: str) -> bool:
    """Return whether a word is a number of parameters, as ``70b``."""
    return _SIZE.fullmatch(word) is not None


def is_family(word: str) -> bool:
    """Return whether a word begins the name of a family of algorithms, which has no sizes: ``pca`` of pca_svd."""
    return any(
        key_of(word) == key_of(PIECES.split(name)[0]) and family.task == "fit" for name, family in FAMILIES.items()
    )


def named_model(word: str, catalog: Catalog) -> Meaning | None:
    """Return the model that a name, a hub id or a file stands for; None where it is none of them."""
    name = _HUB.sub("", word).rstrip("/")
    if not any(map(str.isalpha, name)) or vocabulary().refuses_model(name, catalog):
        return None
    like = vocabulary().like.get(key_of(name))
    if like is not None or key_of(name) == AUTO:
        largest = Meaning("largest model that fits", {MODEL: AUTO})
        return largest if like is None else _model(like, f"{_shown(name)}: taken for {like}")
    plain = _PATCH.sub(r"-\1", name.replace(":", "-"))
    row_id = None if count_in(name) else catalog.architectures.find_id(plain)
    row_id = row_id if row_id is None or _has_size_of(plain, row_id, catalog) else None
    if row_id is not None and row_id not in catalog.networks:
        if not catalog.architectures.is_variant(plain) and not format_in_name(name):
            return _model(row_id, _other_shape(plain, catalog.architectures[row_id], catalog))
        why = f"{_shown(name)} {OF_A_SHAPE} {row_id}"
        # A name that says how the weights are stored stays: the plan reads that from it.
        stored = plain if catalog.architectures.find_id(name) is None else name
        return Meaning(f"model {_shown(name)}", {MODEL: stored}, why) if format_in_name(name) else _model(row_id, why)
    is_one_word = not any(map(str.isspace, name))  # serve /models/config.json
    own = name.rpartition("/")[2].removesuffix(".pt") if is_one_word else name  # ultralytics/yolo11n.pt
    known = find_known_model(own, catalog) if _is_other_name(key_of(own), catalog) else None
    if known is not None or not is_one_word or not is_model_file(name, catalog):
        return None if known is None else _model(known.id)
    return Meaning(f"model {_shown(name)}", {MODEL: name})


def sized_model(word: str, catalog: Catalog) -> Meaning | None:
    """Return the usual model of a size such as ``70b``, or of a short name as ``r1``; None for other words."""
    if (meant := vocabulary().nicknames.get(key_of(word))) is not None:
        return _model(meant, f"{word}: {meant}")
    match = _SIZE.fullmatch(word)
    if match is None or (match["unit"] in "mM" and match["experts"]):
        return None
    named = (row_id for row_id in vocabulary().sized_models if word.casefold() in PIECES.split(row_id))
    is_mixture, rows = bool(match["experts"]), catalog.architectures
    usual = next((row_id for row_id in named if is_mixture or not rows[row_id].experts), None)
    if usual is not None:
        return _model(usual, f"{word}: {usual}, a usual model of that size")
    if is_mixture:
        return Meaning(fault=unknown_mixture(word))
    sized = rows.find_id(f"{float(match['size']):.12g}{match['unit']}")
    if sized is None:
        return None
    row = catalog.architectures[sized]
    decoder = f"a decoder of {format_count(row.params_total)} parameters, {row.layers} layers, {row.hidden} wide"
    return _model(sized, f"no usual model is called {word}: {decoder}")


@lru_cache(maxsize=4096)
def resembling_model(word: str, catalog: Catalog) -> Meaning | None:
    """Return the model that a part of a name stands for: ``llama-70b``, ``3.1-8b``, ``acme/Mistral-7B-tuned``."""
    name = catalog.architectures.plain_name(_HUB.sub("", word).replace(":", "-"))
    pieces = [piece for piece in PIECES.split(name.casefold()) if piece]
    is_owned = not any(map(is_size, PIECES.split(word.rpartition("/")[0])))  # acme/mistral-7b, but llama-8b/qwen-7b
    is_name = any(map(str.isalpha, name)) and sum(map(str.isalnum, name)) >= FEWEST_CHARACTERS
    if not pieces or not is_name or not is_owned or vocabulary().refuses_model(word, catalog):
        return None
    joined = _names_with(["".join(pieces)], catalog) if len(pieces) > 1 and pieces[1].isdecimal() else []  # qwen 3
    ids = joined or _names_with(pieces, catalog)
    for parts in ([*between.split(pieces[0]), *pieces[1:]] for between in (_VERSION, _KIND)):
        ids = ids or _names_with(parts, catalog, version=parts[1] if len(parts) > len(pieces) else "")
    others = catalog.architectures.aliases.items() if not ids and any(map(is_size, pieces[1:])) else ()
    spelled = ((PIECES.split(name.casefold()), row_id) for name, row_id in others)
    ids += [row_id for words, row_id in spelled if words[0] == pieces[0] and {*pieces} <= {*words}]  # llama guard 8b
    sizes = list(filter(is_size, pieces[1:]))
    ends_in_size = bool(sizes) and is_size(pieces[-1])
    within = catalog.architectures.find_id(f"of/{'-'.join(pieces)}") if not ids and ends_in_size else None
    if within is not None and _has_size_of("-".join(pieces), within, catalog):
        ids = [within]  # dolphin-mixtral 8x7b
    if ids:
        plain = [row_id for row_id in ids if key_of(row_id).startswith(key_of(name))]  # llama 4 is no llama-guard-4
        meant = _preferred(plain or ids, catalog)
        return _model(meant, f"{_shown(word)}: {meant}" + (f", one of {len(ids)} called so" if len(ids) > 1 else ""))
    return None


def family_meant(word: str, catalog: Catalog) -> str | None:
    """Return the family of models that a word is a slip of, as ``lama`` of llama; None for other words."""
    match, families = _NAME_AND_VERSION.fullmatch(word.casefold()), families_of_models(catalog)
    typed, version = match.groups() if match else ("", "")
    if (
        not typed.isalpha()
        or len(typed) < _FEWEST_OF_A_SLIP
        or typed in families
        or key_of(typed) in vocabulary().fillers | vocabulary().pieces
    ):
        return None
    swapped = [family for family in families if sorted(family) == sorted(typed)]  # qwne, mitsral
    near = swapped or close_matches(typed, families, 1, _SLIP)
    meant = (f"{family}{version}" for family in near if is_misspelt(typed, family))
    known = [*map(key_of, catalog.architectures)] if version else [""]
    return next((name for name in meant if not version or any(row.startswith(name) for row in known)), None)


def is_misspelt(word: str, name: str) -> bool:
    """Return whether a word is a name but for a slip of some letters within a longer word of it.

    Another number, another short word, another beginning or one word more is another name: albert is no bert,
    yolov8m-seg no yolov8s.
    """
    pairs = [_RUNS.findall(_VERSION_MARK.sub(" v", text.casefold())) for text in (word, name)]
    return len(pairs[0]) == len(pairs[1]) and all(
        one == other or _is_slip_of_run(one, other) for one, other in zip(*pairs, strict=True)
    )


def _is_slip_of_run(one: str, other: str) -> bool:
    if one[:1].isdigit():
        return one.isdecimal() and one == other.replace(".", "")  # llama-31-70b
    shared = sum(block.size for block in difflib.SequenceMatcher(None, one, other).get_matching_blocks())
    is_long = one.isalpha() and other.isalpha() and min(len(one), len(other)) >= _FEWEST_OF_A_SLIP
    return is_long and one[0] == other[0] and len(one) + len(other) - 2 * shared <= _LETTERS_OF_A_SLIP


@lru_cache(maxsize=4)
def families_of_models(catalog: Catalog) -> frozenset[str]:
    """Return what names of language models begin with."""
    begins = (
        re.match(r"[a-z]+", name)
        for name in (*catalog.architectures, *map(str.casefold, catalog.architectures.aliases))
    )
    return frozenset(match[0] for match in begins if match)


@dataclass(frozen=True, slots=True)
class ModelsAsked:
    """The models of which a line asks for one."""

    family: str = ""  # what their names begin with
    kind: str = ""  # a kind of models of the vocabulary
    least: float = 0.0  # parameters
    most: float = math.inf
    superlative: str = ""  # words that ask for what the smallest model is; empty where the largest is meant

    @property
    def words(self) -> str:
        """What they are, for people."""
        most = f"up to {format_count(self.most)}" if self.most < math.inf else ""
        least = f"{format_count(self.least)} or more" if self.least else ""
        sizes = " and ".join(filter(None, (least, most)))
        name = " ".join(filter(None, (self.kind, self.family or "model")))
        return f"{name} of {sizes} parameters" if sizes else name

    @property
    def is_open(self) -> bool:
        """Whether all models are meant."""
        return self == ModelsAsked()

    @property
    def is_bounded(self) -> bool:
        """Whether more than a kind is said of them."""
        return replace(self, kind="") != ModelsAsked()

    def within(self, bound: str, parameters: float) -> ModelsAsked:
        """Return those of them that a bound of their parameters leaves, as ``below`` and ``at least``."""
        if bound in AT_MOST:
            return replace(self, most=parameters - int(bound == AT_MOST[0]))
        return replace(self, least=parameters + int(bound == "above"))

    def fault(self, *, is_known: bool) -> PlanError:
        """Return why no plan has the one that is asked for; where any is known, as no hardware is."""
        words, of = self.words, "a family" if self.family else "several models"
        if self.superlative:
            hint = (
                "the smallest is the fastest and the cheapest: name one, or say best, as best model below 8b on a 3060"
            )
            return PlanError(f"the {self.superlative} of {of} is no plan", f"{self.superlative} {words}", hint)
        if not is_known:
            return PlanError("no such model is known", words, "say other bounds of its parameters, or name a model")
        hint = f"name the hardware; `capacity-tui models --filter {self.family} --on HARDWARE` shows what fits"
        hint = hint if self.family else "name the hardware, as best model below 8b on a 3060"
        return PlanError(f"the best of {of} is no plan", words, hint)

    def names(self, catalog: Catalog) -> tuple[str, ...]:
        """Return what they are called, the largest first: the usual ones where neither family nor kind is said."""
        rows = catalog.architectures
        if self.kind:
            known = _models_of_kind(self.kind, catalog)
        else:
            known = [row.id for row in rows.decoders] if self.family else usual_models(catalog)
        if self.family:
            others = sorted(rows, key=lambda row_id: -(rows[row_id].params_total or 0))  # of those that write nothing
            known = self._with_other_names(self._of_family(known) or self._of_family(others), catalog)
        return tuple(name for name in known if self.least <= _size_called(name, catalog) <= self.most)

    def _with_other_names(self, named: list[str], catalog: Catalog) -> list[str]:
        """Return names of a family and those of it whose shapes are of others, as distilled ones, largest first."""
        rows = catalog.architectures
        own = {rows.aliases.get(name, name) for name in named}
        others = {rows.aliases[name]: name for name in reversed(self._of_family(rows.aliases))}
        named = [*named, *(name for row_id, name in others.items() if row_id not in own)]
        return sorted(named, key=lambda name: -(rows[rows.aliases.get(name, name)].params_total or 0))

    def _of_family(self, names: Iterable[str]) -> list[str]:
        pieces = [piece for part in PIECES.split(self.family.casefold()) for piece in _VERSION.split(part)]
        others = frozenset() if self.kind else vocabulary().other_kinds - {*pieces}
        parts = {name: [*map(key_of, filter(None, _WORDS.split(name)))] for name in names}
        return [name for name in parts if parts[name][: len(pieces)] == pieces and others.isdisjoint(parts[name])]


def _models_of_kind(kind: str, catalog: Catalog) -> list[str]:
    """Return the names of models of a kind, one of each shape, the largest first."""
    rows, words = catalog.architectures, vocabulary()
    if (begins := words.named_kinds.get(kind)) is not None:
        names = (*((row_id, row_id) for row_id in rows), *rows.aliases.items())
        parts = {name: PIECES.split(name.casefold()) for name, _ in names}
        named = {
            row_id: name
            for name, row_id in reversed(names)
            if any(part.startswith(tuple(begins)) for part in parts[name])
            and not any(rank in name for rank in words.rankers)
        }
    else:
        named = {row.id: row.id for row in rows.values() if _is_of_kind(row, kind)}
    return [named[row_id] for row_id in sorted(named, key=lambda row_id: -(rows[row_id].params_total or 0))]


def _is_of_kind(row: Architecture, kind: str) -> bool:
    """Whether a model is a mixture of experts or none, hears, or sees and answers."""
    if kind in ("moe", "sound"):
        return bool(row.experts) if kind == "moe" else row.is_of_sound
    if kind == "dense":
        return row.kind == "decoder" and not row.experts and vocabulary().other_kinds.isdisjoint(row.id.split("-"))
    return row.kind == "decoder" and ("vision_config" in row.config or row.id.startswith(tuple(vocabulary().sights)))


def _size_called(name: str, catalog: Catalog) -> float:
    """Return the parameters that a model is called by, else those that it has."""
    size = next((part for part in name.split("-") if is_size(part) and "x" not in part), "")
    row_id = catalog.architectures.find_id(name) or name
    return parse_quantity(size, "") if size else float(catalog.architectures[row_id].params_total or 0)


def unknown_mixture(text: str) -> PlanError:
    """Return what to say of a mixture of experts of which nobody knows the parts."""
    hint = "name one (see `capacity-tui models`), or give its config.json as model.config=PATH"
    return PlanError("no mixture of these sizes is known", text, hint)


def models_of_family(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the ids of language models of a family, as ``qwen``, ``qwen3`` or ``llama 3.1``, the largest first."""
    return ModelsAsked(name).names(catalog)


def usual_models(catalog: Catalog) -> list[str]:
    """Return the ids of the usual language models, the largest first."""
    known = (catalog.architectures[name] for name in vocabulary().models if name in catalog.architectures)
    rows = [row for row in known if row.kind == "decoder" and row.params_total and not row.experts]
    return [row.id for row in sorted(rows, key=lambda row: -(row.params_total or 0))]


def model_names(catalog: Catalog) -> Iterable[str]:
    """Return what models may be called, the usual ones first."""
    other = (name for name in catalog.architectures.aliases if "_" not in name and "/" not in name)
    return dict.fromkeys((*vocabulary().models, *catalog.architectures, *FAMILIES, *catalog.networks, *other))


def _model(row_id: str, why: str = "") -> Meaning:
    return Meaning(f"model {row_id}", {MODEL: row_id}, why)


def _other_shape(name: str, row: Architecture, catalog: Catalog) -> str:
    """Return which model of a family is meant, or that a name has the shape of another: ``olmo``, ``magistral``."""
    if name.isalpha() and row.id != name.casefold() and row.id.startswith(name.casefold()):
        return f"{name}: {row.id} (or say which)"
    if not catalog.architectures.names_another(name):
        return ""
    reads = "" if row.max_context is None else f", which reads {row.max_context} tokens"
    return f"{_shown(name)} {OF_A_SHAPE} {row.id}{reads}"


def _has_size_of(name: str, row_id: str, catalog: Catalog) -> bool:
    """Whether a name has the size of what its letters alone are: qwen 27b is no qwen2 7b."""
    rows, sizes = catalog.architectures, {*filter(is_size, _PARTS.split(name.casefold()))}
    if not sizes:
        return True
    names = (row_id, *(alias for alias, meant in rows.aliases.items() if meant == row_id))
    alike = [known for known in names if key_of(known) == key_of(name)]
    return not alike or any(sizes <= {*_PARTS.split(known.casefold())} for known in alike)


def _shown(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def _is_other_name(key: str, catalog: Catalog) -> bool:
    """Whether a key is the one of a family or a network, those of plug-ins among them."""
    from capacity_tui.engine.models import load_plugins  # noqa: PLC0415

    return key in _keys_of_names(catalog) or key in load_plugins().models


@lru_cache(maxsize=4)
def _keys_of_names(catalog: Catalog) -> frozenset[str]:
    return frozenset(map(key_of, (*FAMILIES, *catalog.networks, *catalog.networks.aliases)))


def _names_with(pieces: list[str], catalog: Catalog, version: str = "") -> list[str]:
    """Return names of models with a piece that begins with each of some, in order; the least tell how a name begins.

    Sizes, numbers and the shortest words are whole pieces; ``pro`` and ``small`` alone name none. A number is a version
    before it is a size, as in ``gemma 4``; the ``version`` among them is no size: no model is called ``qwen4``.
    """
    names = _names_by_piece(catalog)
    like = {piece: [*_parts_like(piece, names)] for piece in pieces}
    numbers = filter(str.isdigit, pieces)
    versions = {piece: [part for part in like[piece] if not is_size(part)] for piece in numbers}

    def having(parts: Mapping[str, Iterable[str]]) -> set[str]:
        return set.intersection(*({name for part in parts[piece] for name in names[part]} for piece in pieces))

    every = having(like | versions) or having(like | {version: versions.get(version, like.get(version, []))})
    has_size = any(map(is_size, pieces))
    known = (*catalog.architectures, *FAMILIES, *catalog.networks) if every else ()
    return [name for name in known if name in every and (has_size or name.startswith(tuple(pieces)))]


def _parts_like(piece: str, parts: Collection[str]) -> Iterable[str]:
    """Return those of some parts that begin with a piece, as ``llama`` of llam; ``1`` begins no 128k."""
    if _SIZE.fullmatch(piece) is not None or (piece.isalpha() and len(piece) < FEWEST_CHARACTERS):
        return (piece,) if piece in parts else ()
    end, is_number = len(piece), piece[-1:].isdigit()
    return (part for part in parts if part.startswith(piece) and not (is_number and part[end : end + 1].isdigit()))


@lru_cache(maxsize=4)
def _names_by_piece(catalog: Catalog) -> Mapping[str, Sequence[str]]:
    return by_piece((*catalog.architectures, *FAMILIES, *catalog.networks))


def _preferred(ids: list[str], catalog: Catalog) -> str:
    """Return the id that is meant: a usual one, else of the newest the one nearest in size to the most usual."""
    usual, rows = vocabulary().models, catalog.architectures
    if known := [row_id for row_id in usual if row_id in ids]:
        return known[0]
    size = rows[usual[0]].params_total or 0

    def rank(row_id: str) -> tuple[str, float]:
        row = rows.get(row_id)
        unlike = abs(math.log((row.params_total or 1) / size)) if row and row.kind == "decoder" else 0.0
        return (row.released or "") if row else "", -unlike

    return max(ids, key=rank)
