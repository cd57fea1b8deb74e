"""What a model has beside the weights of its text: towers of pictures and sound, connectors and heads, by its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.models.formula import Formulas
from capacity_tui.engine.record import dataclass

Config = Mapping[str, object]


NO_WEIGHTS = "0"


@dataclass(frozen=True, slots=True)
class ModelPart:
    """What a class adds to another one whose structure its text has.

    Attributes:
        counted_as: the class of the same structure; of a class with a part for its text, that part's unless given.
        other_weights: formula of the weights that no size stands for.
        fields: formulas of sizes, by field of the shape; of a part of it, formulas by field of that.
        omitted: keys that published configurations leave out.
    """

    counted_as: str = ""
    other_weights: str = NO_WEIGHTS
    fields: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    omitted: Config = field(default_factory=dict)

    def counts(self, key: str) -> bool:
        """Return whether a formula reads a key of the configuration."""
        of_fields = (formula for formula in self.fields.values() if isinstance(formula, str))
        return any(key in formula for formula in (self.other_weights, *of_fields))


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The content of ``profiles/model_parts.yaml``.

    Attributes:
        formulas: those of towers, and what formulas call.
        classes: by model class.
        endings: by the ending of a class's name, for classes that differ from a language model in their head alone.
    """

    formulas: Formulas
    classes: Mapping[str, ModelPart]
    endings: Mapping[str, ModelPart]

    def of_class(self, name: str, known: Mapping[str, object]) -> ModelPart:
        """Return what a class adds; that of its ending where the language model of the same name is known."""
        if name in self.classes:
            return self.classes[name]
        for ending, part in self.endings.items():
            base = name.removesuffix(ending) + part.counted_as
            if name not in known and name.endswith(ending) and base in known:
                own = self.classes.get(base, ModelPart())
                return ModelPart(
                    base, f"({own.other_weights}) + {part.other_weights}", {**own.fields, **part.fields}, own.omitted
                )
        return ModelPart()

    def other_weights(self, part: ModelPart, config: Config, file: str | None) -> float:
        """Return the weights that no size stands for; see ``Formulas.value``."""
        return self.formulas.value(part.other_weights, config, file)

    def fields(self, part: ModelPart, config: Config, file: str | None) -> dict[str, float | dict[str, float]]:
        """Return the sizes a class computes, by field of the shape."""
        return {
            name: self.formulas.value(formula, config, file)
            if isinstance(formula, str)
            else {size: self.formulas.value(of_part, config, file) for size, of_part in formula.items()}
            for name, formula in part.fields.items()
        }


@cache
def load_model_parts() -> ModelParts:
    """Read the parts that come with the program."""
    content = parse_shipped(files("capacity_tui.profiles") / "model_parts.yaml")
    functions = {}
    for head, formula in content["functions"].items():
        name, _, names = head.removesuffix(")").partition("(")
        functions[name] = (tuple(names.split(", ")), str(formula))
    towers = {kind: (str(entry["weights"]), entry.get("omitted", {})) for kind, entry in content["towers"].items()}
    return ModelParts(
        Formulas(functions, towers),
        {name: _part(entry) for name, entry in content["classes"].items()},
        {ending: _part(entry) for ending, entry in content["endings"].items()},
    )


def _part(entry: str | Mapping[str, Any]) -> ModelPart:
    """Return what an entry says; a formula alone is that of the weights beside."""
    if isinstance(entry, str):
        return ModelPart(other_weights=entry)
    fields = {
        name: formula if isinstance(formula, Mapping) else str(formula)
        for name, formula in entry.get("fields", {}).items()
    }
    other_weights = str(entry.get("other_weights", NO_WEIGHTS))
    return ModelPart(entry.get("counted_as", ""), other_weights, fields, entry.get("omitted", {}))
