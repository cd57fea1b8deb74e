"""What a model has alongside the weights of its text: towers, connectors, heads, and weights given by formulas."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache
from typing import Any

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.record import dataclass

Config = Mapping[str, object]
NO_WEIGHTS = "0"
LARGEST_SIZE = 10**12


"""Bound of every number that a configuration brings: far beyond anything built."""

_ARITHMETIC: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
}
_ROUNDING: Mapping[str, Callable[..., float]] = {"max": max, "min": min, "ceil": math.ceil}


@dataclass(frozen=True, slots=True)
class Formulas:
    """Formulas that may call each other."""

    functions: Mapping[str, tuple[tuple[str, ...], str]]  # names of arguments and the formula, by name
    # the weights of a tower and sizes its published configurations leave out, by the model type of its part of the
    # configuration
    towers: Mapping[str, tuple[str, Mapping[str, object]]]
    counts_towers: bool = True  # whether a tower weighs what it does, and not nothing

    def value(self, formula: str, config: Mapping[str, object], file: str | None = None) -> float:
        """Return what a formula gives for a configuration.

        A name is a key of the configuration, a dotted one a key of a part of it. ``given(key, other)`` is ``other``
        where the key is missing or null, or is no list where its entries are wanted; ``tower(part, kind)`` the weights
        of a tower, of that kind where its part names none; ``count(list, kind)`` how many entries are of a kind,
        ``sum(list)`` what they add up to.

        Raises:
            PlanError: a key is missing, is no number, or its part is of a kind whose weights are not known.
        """
        return _Reading(self, config, file).number(_parsed(formula))


@lru_cache(maxsize=1024)
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula.strip(), mode="eval").body


class _MissingKeyError(PlanError):
    """A key that a formula names is not in the configuration, or no list where the formula wants its entries."""


@dataclass(slots=True)
class _Reading:
    """One formula on its way through one configuration."""

    formulas: Formulas
    config: Mapping[str, object]
    file: str | None

    def number(self, node: ast.expr) -> float:
        """Return the number a part of the formula stands for."""
        value = self.value(node)
        if isinstance(value, bool | int | float) and abs(value) <= LARGEST_SIZE**2:
            return value
        raise PlanError("not a number", f"{value!r:.60}", place=self._place(node))

    def value(self, node: ast.expr) -> object:
        """Return what a part of the formula stands for."""
        result: object
        match node:
            case ast.Constant(value):
                result = value
            case ast.Name() | ast.Attribute():
                result = self._key(node)
            case ast.BinOp(left, symbol, right) | ast.Compare(left, [ast.Lt() | ast.Gt() as symbol], [right]):
                result = self._computed(symbol, left, right)
            case ast.Compare(left, [ast.NotEq()], [right]):
                result = self.value(left) != self.value(right)
            case ast.UnaryOp(ast.USub(), operand):
                result = -self.number(operand)
            case ast.UnaryOp(ast.Not(), operand):
                result = not self.value(operand)
            case ast.IfExp(test, body, otherwise):
                result = self.value(body if self.value(test) else otherwise)
            case ast.Subscript(entries, index):
                result = self._entry(entries, index)
            case ast.Call(ast.Name(name), arguments):
                result = self._call(name, arguments)
            case _:
                raise ValueError(f"no formula of ours: {ast.unparse(node)}")
        return result

    def _place(self, node: ast.expr) -> Place:
        return Place(self.file, field=ast.unparse(node))

    def _key(self, node: ast.expr) -> object:
        """Return the value of a key, of a part of the configuration where its name is dotted."""
        holder: object = self.config
        for key in ast.unparse(node).split("."):
            holder = holder.get(key) if isinstance(holder, Mapping) else None
            if holder is None:
                raise _MissingKeyError("a size is missing", place=self._place(node))
        if isinstance(holder, int | float) and not abs(holder) <= LARGEST_SIZE:
            raise PlanError("out of range", f"{holder!r:.60}", place=self._place(node))
        return holder

    def _computed(self, symbol: ast.AST, left: ast.expr, right: ast.expr) -> float:
        try:
            return _ARITHMETIC[type(symbol)](self.number(left), self.number(right))
        except (ZeroDivisionError, OverflowError):
            raise PlanError("out of range", place=self._place(right)) from None

    def _entries(self, node: ast.expr) -> list[object]:
        entries = self.value(node)
        if not isinstance(entries, list):
            raise _MissingKeyError("not a list", f"{entries!r:.60}", place=self._place(node))
        return entries

    def _entry(self, node: ast.expr, index: ast.expr) -> object:
        entries, at = self._entries(node), int(self.number(index))
        if not -len(entries) <= at < len(entries):
            raise PlanError("too short", f"{len(entries)} entries", place=self._place(node))
        return entries[at]

    def _call(self, name: str, arguments: list[ast.expr]) -> object:
        """Return what one of the functions that every formula may call gives, or one that is itself a formula."""
        own: Mapping[str, Callable[..., object]] = {
            "given": self._given,
            "tower": self._tower,
            "len": self._length,
            "count": self._count,
            "sum": self._sum,
        }
        if name in own:
            return own[name](*arguments)
        if name in _ROUNDING:
            return _ROUNDING[name](*(self.number(argument) for argument in arguments))
        names, formula = self.formulas.functions[name]
        values = {key: self.value(argument) for key, argument in zip(names, arguments, strict=True)}
        return _Reading(self.formulas, values, self.file).number(_parsed(formula))

    def _given(self, node: ast.expr, otherwise: ast.expr) -> object:
        try:
            return self.value(node)
        except _MissingKeyError:
            return self.value(otherwise)

    def _length(self, node: ast.expr) -> int:
        entries = self.value(node)
        return len(entries if isinstance(entries, Mapping) else self._entries(node))

    def _sum(self, node: ast.expr) -> float:
        """Return the sum of a list's numbers."""
        entries = self._entries(node)
        numbers = [entry for entry in entries if isinstance(entry, int | float) and abs(entry) <= LARGEST_SIZE]
        if len(numbers) != len(entries):
            raise PlanError("not a list of numbers", f"{entries!r:.60}", place=self._place(node))
        return sum(numbers)

    def _count(self, node: ast.expr, kind: ast.expr) -> int:
        """Return how often a kind is in a list; in a text with a letter for each entry, how often a letter is."""
        entries, wanted = self.value(node), self.value(kind)
        if isinstance(entries, str):
            return entries.count(wanted) if isinstance(wanted, str) and len(wanted) == 1 else 0
        return self._entries(node).count(wanted)

    def _tower(self, node: ast.expr, usual: ast.expr) -> float:
        """Return the weights of a tower; one whose part names no kind is of the ``usual`` one."""
        try:
            part = self.value(node)
        except _MissingKeyError:
            part = {}
        if not isinstance(part, Mapping):
            raise PlanError("not the sizes of a tower", f"{part!r:.60}", place=self._place(node))
        if not self.formulas.counts_towers:
            return 0.0
        kind = str(part.get("model_type") or self.value(usual))
        if kind not in self.formulas.towers:
            raise PlanError("a tower whose weights are not known", f"{kind:.60}", place=self._place(node))
        formula, omitted = self.formulas.towers[kind]
        return self.formulas.value(formula, {**omitted, **part}, self.file)


@dataclass(frozen=True, slots=True)
class ModelPart:
    """What a class adds to another one whose structure its text has."""

    # the class of the same structure; of a class with a part for its text, that part's unless given
    counted_as: str = ""
    other_weights: str = NO_WEIGHTS  # formula of the weights that no size stands for
    # formulas of sizes, by field of the shape; of a part of it, formulas by field of that
    fields: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    omitted: Config = field(default_factory=dict)  # keys that published configurations leave out
    left_out: str = ""  # what published weights have beside those of the class
    # the class that one of its name's ending has the weights of; endings of such classes where the part is an ending's
    like: str | tuple[str, ...] = ""

    def counts(self, key: str) -> bool:
        """Return whether a formula reads a key of the configuration."""
        of_fields = (formula for formula in self.fields.values() if isinstance(formula, str))
        return any(key in formula for formula in (self.other_weights, *of_fields))


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The content of ``profiles/model_parts.yaml``."""

    formulas: Formulas  # those of towers, and what formulas call
    classes: Mapping[str, ModelPart]  # by model class
    # by the ending of a class's name, for classes that differ from a language model in their head alone
    endings: Mapping[str, ModelPart]

    def of_class(self, name: str, known: Mapping[str, object]) -> ModelPart:
        """Return what a class adds; that of its ending where the class of the same name without a head is known."""
        if name in self.classes or name in known:
            return self.classes.get(name, ModelPart())
        for ending, part in self.endings.items():
            bases = [name.removesuffix(ending) + other for other in part.like] if name.endswith(ending) else []
            base = next((base for base in bases if base in known or base in self.classes), "")
            if base:
                own = self.classes.get(base, ModelPart())
                other_weights = f"({own.other_weights}) + {part.other_weights}"
                return replace(own, other_weights=other_weights, fields={**own.fields, **part.fields}, like=base)
        return ModelPart()

    def other_weights(self, part: ModelPart, config: Config, file: str | None) -> float:
        """Return the weights that no size stands for; see ``Formulas.value``."""
        return self.formulas.value(part.other_weights, config, file)

    def tower_weights(self, part: ModelPart, config: Config, file: str | None) -> float:
        """Return how many of these are towers of pictures and sound, without what joins them to the text."""
        without = replace(self.formulas, counts_towers=False)
        return self.other_weights(part, config, file) - without.value(part.other_weights, config, file)

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
    content = parse_shipped("model_parts.yaml")
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
    left_out = entry.get("left_out", "")
    like = tuple(entry.get("like", ()))
    return ModelPart(entry.get("counted_as", ""), other_weights, fields, entry.get("omitted", {}), left_out, like)
