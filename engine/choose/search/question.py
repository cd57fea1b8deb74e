"""What a search is asked: which fields vary, on which hardware, within which limits, for which goal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from capacity_tui.engine.catalog.names import key_of, nearest
from capacity_tui.engine.catalog.parsed import parse_shipped
from capacity_tui.engine.choose.space.grid import Axis
from capacity_tui.engine.errors import Place, PlanError, UnitError
from capacity_tui.engine.estimate.figure_texts import usual_words
from capacity_tui.engine.estimate.figures import LESS, METRICS, MORE, PARTS, result_key
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.units import format_quantity, parse_quantity

Better = Literal["less", "more"]
TRAINED, SERVED = "train", "infer"
_LIMIT = re.compile(r"\s*(?P<figure>[^<>=]+?)\s*(?P<sign><=?|>=?)\s*(?P<value>[^<>=]+?)\s*")
_EXAMPLE = "write FIGURE<=VALUE or FIGURE>=VALUE, such as 'time<=24h' or 'memory<=95%'"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure may be: it holds where the far end of the figure's range keeps it.

    Attributes:
        figure: result key.
        most: the most it may be, in the figure's unit; None for no bound.
        least: the least it may be; None for no bound.
    """

    figure: str
    most: float | None = None
    least: float | None = None

    @property
    def words(self) -> str:
        """The limit as it is typed, with the figure's result key."""
        sign, value = ("<=", self.most) if self.most is not None else (">=", self.least)
        return f"{self.figure} {sign} {format_quantity(value, unit_of(self.figure))}"


@dataclass(frozen=True, slots=True)
class Goal:
    """What the best configuration has least or most of.

    Attributes:
        figure: result key.
        better: whether less of it is better, or more.
    """

    figure: str
    better: Better = "less"

    @property
    def sign(self) -> float:
        """What makes less of the figure better: 1 where it is, -1 where more is."""
        return 1.0 if self.better == "less" else -1.0


# What a search aims at where nobody says.
TIME = Goal("computation.estimated_train_time_seconds")
MOST_TOP = 10


@dataclass(frozen=True, slots=True)
class Question:
    """What a search is asked.

    Attributes:
        plan: the plan that everything else varies.
        vary: fields with the values to try; none for what the plan leaves open and the usual ones.
        hardware: ids of devices or instances to try, the name of a vendor or provider for all of its own, or ``any``;
            none for the plan's own.
        devices: numbers of devices to try; none for the plan's own.
        models: models to try, or ``any``; none for the plan's own.
        limits: what must hold of every answer.
        goal: what the best has least or most of; where models vary and None is given, the largest model.
        pareto: result keys of the figures whose front is wanted; none for no front.
        top: how many of the best.
        each: how many of them at most with the same model, hardware and number of devices; None for any number.
    """

    plan: Plan
    vary: tuple[Axis, ...] = ()
    hardware: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()
    models: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    goal: Goal | None = None
    pareto: tuple[str, ...] = ()
    top: int = MOST_TOP
    each: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """Short words for figures, of ``profiles/figure_words.yaml``.

    Attributes:
        keys: result keys by task and word.
        open_length: figures that lead to the same choice where the length of a job is open.
        wanted: ``less`` or ``more`` of figures that are neither good nor bad by themselves.
    """

    keys: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    open_length: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, Better] = field(default_factory=dict)


@cache
def figure_words() -> Words:
    """Return the short words for figures."""
    data = parse_shipped(files("capacity_tui.profiles") / "figure_words.yaml")
    keys: dict[str, dict[str, tuple[str, ...]]] = {TRAINED: {}, SERVED: {}}
    for word, by_task in data["words"].items():
        for task, found in by_task.items():
            keys[task][word] = tuple(found)
    return Words(keys, dict(data["open_length"]), dict(data["wanted"]))


def figure_keys(name: str, task: str = TRAINED) -> tuple[str, ...]:
    """Return the result keys that a word, a key or the name that tables show stands for, the usual one first.

    Args:
        name: a short word, a result key, or what a figure is called, as ``training time`` or ``training_time``.
        task: what is done with the model; ``infer`` has other words than all the rest.

    Raises:
        PlanError: no figure is called that; the hint tells the nearest.
    """
    words = figure_words().keys[SERVED if task == SERVED else TRAINED]
    if name.casefold() in words:
        return words[name.casefold()]
    key = result_key(name)
    group, _, part = key.rpartition(".")
    if key in METRICS or part in PARTS.get(group, ()):
        return (key,)
    if key_of(name) in _keys_by_label():
        return (_keys_by_label()[key_of(name)],)
    near = nearest(name, (*words, *METRICS))
    hint = f"did you mean {' or '.join(near)}?" if near else f"short words: {', '.join(words)}"
    raise PlanError("no figure is called", repr(name)[:80], hint)


@cache
def _keys_by_label() -> dict[str, str]:
    """Return the figure of each name that tables show, of several the first."""
    return {key_of(usual_words(METRICS[key].label)): key for key in reversed([*METRICS])}


def unit_of(figure: str) -> str:
    """Return the unit of a figure by its result key, as quantities are written."""
    if figure in METRICS:
        unit = METRICS[figure].unit
        return "tok/s" if unit == "{counted}/s" else unit
    return "B" if figure.startswith("memory") else "s"


def better_of(figure: str) -> Better:
    """Return whether less of a figure is better, or more."""
    if figure in figure_words().wanted:
        return figure_words().wanted[figure]
    return "more" if figure in METRICS and METRICS[figure].better == MORE else "less"


def parse_limit(text: str, task: str = TRAINED) -> Limit:
    """Return the limit that a text such as ``time<=24h`` or ``memory.reserved_bytes<=70GiB`` says.

    Args:
        text: figure, sign and value.
        task: what is done with the model.

    Raises:
        PlanError: it is no limit, or no figure is called that.
        UnitError: the figure does not have such values.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise PlanError("not a limit", repr(text)[:80], _EXAMPLE)
    keys = figure_keys(match["figure"], task)
    for key in keys:
        try:
            value = parse_quantity(match["value"], unit_of(key), place=Place(field=match["figure"]))
        except UnitError:
            if key == keys[-1]:
                raise
            continue
        return Limit(key, most=value) if match["sign"].startswith("<") else Limit(key, least=value)
    raise AssertionError(keys)  # a word has one figure at least


def parse_goal(text: str, task: str = TRAINED) -> Goal:
    """Return the goal that a word such as ``time`` or a result key says.

    Args:
        text: a short word, or a result key.
        task: what is done with the model.

    Raises:
        PlanError: no figure is called that, or neither more nor less of it is better.
    """
    key = figure_keys(text.strip(), task)[0]
    if key in METRICS and METRICS[key].better not in (LESS, MORE) and key not in figure_words().wanted:
        raise PlanError("neither more nor less of this is better", key, "name another figure as the goal")
    return Goal(key, better_of(key))


def parse_figures(text: str, task: str = TRAINED) -> tuple[str, ...]:
    """Return the result keys of a list such as ``time,usd``.

    Raises:
        PlanError: no figure is called that, or the list is empty.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise PlanError("no figures", hint="name two, such as time,usd")
    return tuple(dict.fromkeys(parse_goal(name, task).figure for name in names))
