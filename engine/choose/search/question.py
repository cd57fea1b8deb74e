"""What a search is asked: which fields vary, on which hardware, within which limits, for which goal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from capacity_tui.engine.choose.space.grid import Axis
from capacity_tui.engine.errors import Place, PlanError, UnitError
from capacity_tui.engine.estimate import METRICS, MORE, Constraint, Estimate, figure_keys, limit, usual_words
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import Plan
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

    def constraint(self, estimate: Estimate) -> Constraint:
        """Return the limit beside what an estimate reaches of it."""
        return limit(estimate, self.figure, most=self.most, least=self.least, why="what is asked for")


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
TIME = Goal(Figure.ESTIMATED_TRAIN_TIME_SECONDS)
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
        per_kind: how many of them at most with the same model, hardware and number of devices; None for any number.
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
    per_kind: int | None = None


def unit_of(figure: str) -> str:
    """Return the unit of a figure by its result key, as quantities are written."""
    if figure in METRICS:
        return usual_words(METRICS[figure].unit).replace("tokens", "tok")
    return "B" if figure.startswith("memory") else "s"


def better_of(figure: str) -> Better:
    """Return whether less of a figure is better, or more."""
    metric = METRICS.get(figure)
    return "more" if metric is not None and (metric.better or metric.goal) == MORE else "less"


def parse_limit(text: str, task: str = TRAINED) -> Limit:
    """Return the limit that a text such as ``time<=24h`` or ``memory.reserved_bytes<=70GiB`` says.

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

    Raises:
        PlanError: no figure is called that, or neither more nor less of it is better.
    """
    key = figure_keys(text.strip(), task)[0]
    if key in METRICS and not METRICS[key].better and not METRICS[key].goal:
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
