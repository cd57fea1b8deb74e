"""What is asked of a fleet that serves: how many requests, how soon they must be answered, on which instances."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import Plain, nearest, parse_shipped, read_text, read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space import Floats

DAY_SECONDS = 86400.0
MOST_RATES = 1440  # Rates a file may have: one for each minute


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Rates in even parts of a day, of which each is the middle; between them they change evenly."""

    name: str  # shape or file
    rates: tuple[float, ...]  # requests a second, or any unit that ``scaled`` makes requests a second of
    source: str = ""  # where the curve comes from

    @property
    def peak(self) -> float:
        """The highest rate."""
        return max(self.rates)

    def scaled(self, peak: float) -> LoadCurve:
        return LoadCurve(self.name, tuple(rate / self.peak * peak for rate in self.rates), self.source)

    def over_day(self, steps: int) -> Floats:
        """Return the rate in each of so many even steps of a day."""
        middles = (np.arange(len(self.rates)) + 0.5) / len(self.rates)
        wanted = (np.arange(steps) + 0.5) / steps
        return np.asarray(np.interp(wanted, middles, self.rates, period=1.0))


def load_curve(name: str) -> LoadCurve:
    """Return a named shape, or the curve of a file.

    A file holds rates as a YAML list, or one a line, the last number of each; what stands before it is a time of day.

    Raises:
        PlanError: it is neither a shape nor a file.
        DocumentError: the file holds no rates.
        StorageError: the file cannot be read.
    """
    if name in _shapes():
        return _shapes()[name]
    path = Path(name)
    if not path.exists():
        near = nearest(name, tuple(_shapes())) or tuple(_shapes())
        raise PlanError("no load is called", repr(name)[:80], f"name a file, or a shape: {', '.join(near)}")
    text = read_text(path)
    if text.lstrip().startswith(("[", "- ", "rates")):
        document = read_yaml(text, str(path))
        result = document.data.get("rates") if isinstance(document.data, dict) else document.data
        listed = result if isinstance(result, list) else []
        rates = [_rate(value, document.place(index)) for index, value in enumerate(listed)]
    else:
        rates = list(_lines(text, str(path)))
    if not rates or max(rates) <= 0 or len(rates) > MOST_RATES:
        detail = f"{len(rates)} rates" if rates else "none was found"
        raise DocumentError("not a day's load", detail, f"give 1 to {MOST_RATES} rates, one above 0", Place(str(path)))
    return LoadCurve(path.name, tuple(rates), str(path))


def _lines(text: str, file: str) -> list[float]:
    """Return the last number of each line; a first line of words is a head."""
    values: list[float] = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = [cell for cell in re.split(r"[,;\s]+", line.partition("#")[0].strip()) if cell]
        if not cells:
            continue
        if not values and not re.match(r"[-+.\d]", cells[-1]):
            continue
        values.append(_rate(cells[-1], Place(file, number)))
    return values


def _rate(value: Plain, place: Place) -> float:
    try:
        rate = float(str(value))
    except ValueError:
        rate = -1.0
    if rate < 0 or not isfinite(rate):
        raise DocumentError("not a rate", repr(value)[:60], "give requests a second, from 0", place)
    return rate


@cache
def _shapes() -> Mapping[str, LoadCurve]:
    rows = parse_shipped("load_shapes.yaml")
    return {key: LoadCurve(row["name"], tuple(map(float, row["shares"])), row["source"]) for key, row in rows.items()}


_MOST_PERCENT = 99.9


@dataclass(frozen=True, slots=True)
class ServingQuestion:
    """A load, and what must hold of it."""

    plan: Plan  # the model, its requests and its hardware
    rate: float  # requests a second; of a load that varies, at its peak
    ttft: float | None = None  # most seconds to the first token; None for any
    tpot: float | None = None  # most seconds of each token after it; None for any
    percentile: float = 95.0  # percent of the requests that must keep each limit
    # instances and devices to choose among, as a search takes them; none for the plan's own
    hardware: tuple[str, ...] = ()
    # standard deviation of lengths over their mean, for prompts and answers; None for the plan's own
    spread: float | None = None
    load: LoadCurve | None = None  # how the load varies over a day; None for an even one
    startup_seconds: float | None = None  # until a replica that is asked for answers; None for what is assumed
    # for which fewer must be enough before a replica is given up; None for what is assumed
    scale_down_seconds: float | None = None
    reserve: float | None = None  # replicas beyond what the load needs, as a share; None for what is assumed
    seed: int = 1

    def check(self) -> None:
        """Refuse what makes no sense; raises PlanError if a number is out of its range, or no limit is given."""
        if self.ttft is None and self.tpot is None:
            raise PlanError("no limit of latency", hint="say --ttft 2s, --tpot 50ms, or both")
        if self.plan.inference.request_seconds is not None:
            hint = "leave inference.request_seconds out, and say --ttft and --tpot"
            raise PlanError("a service is sized by the latency of tokens", "the plan limits whole requests", hint)
        for name, value in (("rate", self.rate), ("ttft", self.ttft), ("tpot", self.tpot)):
            if value is not None and not 0 < value < float("inf"):
                raise PlanError("must be above 0", f"{name} {value:g}", "such as --rate 20 --ttft 2s --tpot 50ms")
        if not 1 <= self.percentile <= _MOST_PERCENT:
            raise PlanError("not a percentile", f"{self.percentile:g}", f"from 1 to {_MOST_PERCENT:g}")
        for name, value in (
            ("spread", self.spread),
            ("reserve", self.reserve),
            ("startup", self.startup_seconds),
            ("scale-down", self.scale_down_seconds),
        ):
            if value is not None and not 0 <= value < float("inf"):
                raise PlanError("must not be negative", f"{name} {value:g}")


Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long prompts and answers are: gamma distributed, exponential where deviation and mean are the same."""

    # prompt, prompt_deviation: tokens of a prompt that are read: mean and standard deviation
    prompt: float
    prompt_deviation: float
    # output, output_deviation: the same of an answer
    output: float
    output_deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests of several replicas, one replica after another, each in the order of arrival."""

    starts: Whole  # place of each replica's first request, and one more at the end
    arrivals: Floats  # seconds at which they arrive, each replica's from 0
    prompts: Whole  # tokens that are read
    outputs: Whole  # tokens of the answers
    # counted_from, counted_to: seconds between which requests count, of each replica
    counted_from: Floats
    counted_to: Floats

    @property
    def replicas(self) -> Whole:
        """The replica of each request."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    @property
    def counts(self) -> NDArray[np.bool_]:
        """Which requests count: none of the time in which a replica fills, and none of that in which it empties."""
        whose = self.replicas
        return (self.arrivals >= self.counted_from[whose]) & (self.arrivals < self.counted_to[whose])


def steady_requests(
    rates: Floats, warm_up: float, counted: Floats, after: float, lengths: Lengths, seed: int
) -> Requests:
    """Return requests that come at random at an even rate, of each of several replicas.

    Args:
        rates: requests a second of each.
        warm_up: seconds until they count.
        counted: seconds for which they do.
        after: seconds for which more come, so that the last that count have company.
    """
    draw = np.random.default_rng(seed)
    whole = warm_up + counted + after
    numbers = draw.poisson(rates * whole)
    arrivals = _in_order(draw.random(int(numbers.sum())), numbers) * np.repeat(whole, numbers)
    starts = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
    ends = np.full(rates.shape, warm_up)
    return Requests(starts, arrivals, *_drawn(draw, lengths, arrivals.size), ends, ends + counted)


def varying_requests(
    rate_at: Floats, step: float, pieces: int, watched: float, warm_up: float, after: float, lengths: Lengths, seed: int
) -> Requests:
    """Return requests of one replica in even pieces of a day, which are worked side by side.

    Args:
        rate_at: requests a second in each of many even steps of the day, which repeats itself.
        step: seconds of such a step.
        watched: seconds in the middle of each in which requests count.
        warm_up: seconds for which a piece warms up on what comes before them.
        after: seconds for which a piece goes on.
    """
    draw = np.random.default_rng(seed)
    whole = rate_at.size * step
    begins = (np.arange(pieces) + 0.5) * whole / pieces - watched / 2.0 - warm_up
    # Requests to expect from the day before up to each moment of the day after.
    expected = np.concatenate([[0.0], np.cumsum(np.tile(rate_at, 3)) * step])
    times = np.arange(expected.size) * step - whole
    first, last = (np.interp(at, times, expected) for at in (begins, begins + warm_up + watched + after))
    numbers = draw.poisson(last - first)
    shares = _in_order(draw.random(int(numbers.sum())), numbers)
    at = np.repeat(first, numbers) + shares * np.repeat(last - first, numbers)
    # Steps without any request have no place of their own among those expected.
    rising = np.concatenate([[True], np.diff(expected) > 0])
    arrivals = np.interp(at, expected[rising], times[rising]) - np.repeat(begins, numbers)
    starts = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
    warm = np.full(pieces, warm_up)
    return Requests(starts, arrivals, *_drawn(draw, lengths, arrivals.size), warm, warm + watched)


def _in_order(shares: Floats, numbers: Whole) -> Floats:
    """Return random numbers sorted within each of several groups."""
    groups = np.repeat(np.arange(numbers.size), numbers)
    return np.asarray(np.sort(groups + shares) - groups)


def _drawn(draw: np.random.Generator, lengths: Lengths, count: int) -> tuple[Whole, Whole]:
    return (
        _tokens(draw, lengths.prompt, lengths.prompt_deviation, count),
        _tokens(draw, lengths.output, lengths.output_deviation, count),
    )


def _tokens(draw: np.random.Generator, mean: float, deviation: float, count: int) -> Whole:
    """Return lengths of at least one token whose mean and standard deviation are given."""
    if deviation <= 0:
        return np.full(count, max(round(mean), 1), np.int64)
    shape = (mean / deviation) ** 2
    return np.maximum(np.rint(draw.gamma(shape, mean / shape, count)), 1.0).astype(np.int64)
