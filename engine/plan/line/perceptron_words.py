"""The hidden layers of a perceptron that a line names: how many, how wide, or one by one."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.frozen_words import FrozenWords
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import TRAIN, Meaning

_PERCEPTRON, _WIDTHS = "mlp", f"{OWN_PARAMETERS}layers"
_LIST = re.compile(r"[1-9]\d*(?:[,-][1-9]\d*)+")  # But 100,000 rows
_WHOLE = re.compile(r"\d+(?:-\d+){2,}")  # 784-512-10, from what it reads to what it says
_ALIKE = re.compile(r"(\d{1,2})[x×](\d{2,})")  # 3x512
_COUNTED = re.compile(r"(\d+)-([a-z]+)", re.IGNORECASE)  # 3-layer, 512-wide
_MOST_LAYERS = 16  # More are a width: no perceptron that people write about is as deep
_LAYERS_HINT = "say the widths of all hidden layers, as layers 512,256,128, or 3 layers of 512"


class PerceptronWords(FrozenWords):
    """A line whose words were recognized, and those of them that shape a perceptron."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        super().__init__(text, catalog)
        self._layers: dict[str, int] = {}  # how many of a perceptron, and how wide

    def _is_of_perceptron(self) -> bool:
        named = (models.named_model(token.text, self._catalog) for token in self._tokens)
        return any(match is not None and match.values[models.MODEL] == _PERCEPTRON for match in named)

    def _listed(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize hidden layers one by one, before other numbers are: ``layers 512,256``, ``784-512-10``."""
        name, mark, value = self._source(index).partition("=")
        if _WHOLE.fullmatch(name):
            features, *widths, classes = map(int, name.split("-"))
            ends: dict[str, object] = {f"{OWN_PARAMETERS}d_in": features, f"{OWN_PARAMETERS}d_out": classes}
            return 1, Meaning(f"layers of {name}", {_WIDTHS: widths, **ends})
        named = vocabulary().layer_words | vocabulary().width_words
        count = 2 if key_of(self._span(index, 2)) in named and not mark else 1  # hidden layers 256, 128
        if count == 1 and key_of(name) not in named:
            return None
        first = index + count * int(not mark)
        text, end = self._list_at(first, value or self._source(first))
        if not _LIST.fullmatch(text):
            return None
        widths = [int(width) for width in re.split("[,-]", text)]
        return end - index, Meaning(f"hidden layers of {text}", {_WIDTHS: widths})

    def _widths(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many hidden layers a perceptron has, and how wide: ``3 layers of 512``, ``3x512``."""
        name = self._source(index)
        if (alike := _ALIKE.fullmatch(name)) is not None:
            return 1, self._kept_layers(depth=int(alike[1]), width=int(alike[2]))
        counted = _COUNTED.fullmatch(name)
        if counted is not None and (kept := self._layers_or_width(counted[2], counted[1])) is not None:
            return 1, kept
        return self._layer_number(index)

    def _source(self, index: int) -> str:
        """Return a word as it is written, without what ends it."""
        if index >= len(self._tokens):
            return ""
        token = self._tokens[index]
        return self._text[token.start : token.end].strip("[]() ,;")

    def _list_at(self, index: int, text: str) -> tuple[str, int]:
        """Return a list of numbers that begins at a word, ``512, 256`` in several too, and where it ends."""
        end = index + 1
        while text:
            at = end + int(key_of(self._source(end)) in vocabulary().both)  # 256, 128 and 64
            is_next = at > end or self._is_apart(end - 1, ",")
            if not (is_next and self._source(at).isdecimal() and self._is_width(at)):
                break
            text, end = f"{text},{self._source(at)}", at + 1
        return text, end

    def _is_width(self, index: int) -> bool:
        """Whether a number counts nothing that stands behind it, as the width of a layer."""
        behind = self._count_of(index)
        return behind is None or behind.end == index + 1

    def _layer_number(self, index: int) -> tuple[int, Meaning] | None:
        """Recognize how many layers a perceptron has, or how wide they are, before or behind the word for them."""
        words, number = vocabulary(), self._tokens[index].text
        before = self._span(index - 1, 1) if index else ""
        if number.isdecimal():
            if (
                settings.named_field(before, TRAIN, self._model) is not None
                and key_of(before) not in words.layer_joints
            ):
                return None  # d_in 100 layers 512
            for count in (few for few in (2, 1) if self._is_free(index + 1, few)):
                if (kept := self._layers_or_width(self._span(index + 1, count), number)) is not None:
                    return 1 + count, kept
            is_bare = (
                self._layers.keys() == {"depth"}
                and words.width_words.isdisjoint(self._keys())
                and self._is_width(index)
            )
            return (
                (1, self._kept_layers(width=int(number))) if is_bare and key_of(before) in words.layer_joints else None
            )
        name, mark, value = number.partition("=")
        for count in (1,) if mark else (2, 1):
            text = value or self._span(index + count, 1)
            kept = self._layers_or_width(name if mark else self._span(index, count), text) if text.isdecimal() else None
            if kept is not None:
                return count + int(not mark), kept
        return None

    def _layers_or_width(self, name: str, number: str) -> Meaning | None:
        """Keep a number of layers, or their width, by the word beside it; None beside another word."""
        words, key = vocabulary(), key_of(name)
        if key not in words.layer_words | words.width_words:
            return None
        is_depth = key in words.layer_words and int(number) <= _MOST_LAYERS
        return self._kept_layers(depth=int(number)) if is_depth else self._kept_layers(width=int(number))

    def _kept_layers(self, **numbers: int) -> Meaning:
        """Keep how many layers there are, or how wide they are."""
        twice = self._layers.keys() & numbers
        self._layers |= numbers
        if twice:
            return Meaning(fault=PlanError("layers given twice", ", ".join(map(str, numbers.values())), _LAYERS_HINT))
        return Meaning(", ".join(f"{name} {number}" for name, number in numbers.items()))

    def _make_layers(self) -> None:
        """Make the hidden layers of a perceptron of their number and their width."""
        depth, width = self._layers.get("depth", 1), self._layers.get("width", 0)
        if self._layers and _WIDTHS in self._values:
            self._faults.append(PlanError("layers given twice", str(self._values[_WIDTHS]), _LAYERS_HINT))
        elif self._layers and not width:
            self._faults.append(PlanError("how wide are the layers?", f"{depth} layers", _LAYERS_HINT))
        elif self._layers:
            self._values[_WIDTHS] = [width] * depth
