"""The ranges of an estimate's figures, each worked out when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.estimate.timing.schedule import SHORTEST, PhaseTime
from capacity_tui.engine.estimate.work import Loaded, Phase, Work
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number, added, where
from capacity_tui.engine.uncertainty import (
    EXCHANGES,
    ErrorTerms,
    FigureName,
    MeasuredNetworks,
    Range,
    UserSpread,
    figure_range,
    spread_here,
)

# Parts of memory that follow from sizes and types alone.
EXACT_PARTS = frozenset({"weights", "gradients", "optimizer", "kv_cache"})
# Properties that software treats in ways of its own: sizes and types of what is exact stay as they are. What is not
# named may hold logits in one piece, in chunks or not at all, and gathers what is shared out in buffers of any size.
ADAPTED, UNNAMED = "adapted", "unnamed"
OF_IMPLEMENTATION = ("logits", "buffers")
SURE_LENGTH = counted("sure-length")
FEW = counted("few-requests")  # Share of requests beyond a percentile that is called high
# Figures behind the speeds of serving, by result key; rates have the inverse range of their times.
_TIMES: Mapping[str, FigureName] = {
    Figure.TIME_TO_FIRST_TOKEN_SECONDS: "prefill",
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS: "decode",
}
# The same under a load, and at a percentile that is high; below, requests are as sure as their mean.
_LOADED: Mapping[str, FigureName] = {
    Figure.TIME_TO_FIRST_TOKEN_SECONDS: "ttft",
    Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS: "ttft",
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS: "tpot",
    Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS: "tpot",
}
_TAILS: Mapping[str, FigureName] = {
    Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS: "ttft-tail",
    Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS: "tpot-tail",
}
_PHASES: Mapping[FigureName, str] = {"ttft": "prefill", "ttft-tail": "prefill"}
"""Phases that make up a figure, where they have another name."""
_RATES: Mapping[str, FigureName] = {
    Figure.PREFILL_TOKENS_PER_SECOND: "prefill",
    Figure.DECODE_TOKENS_PER_SECOND: "decode",
    Figure.REQUESTS_PER_SECOND: "step",
    Figure.OUTPUT_TOKENS_PER_SECOND: "step",
    Figure.LARGEST_REQUESTS_PER_SECOND: "step",
}
HELD = "the plan holds the utilization, and nothing else moves the time of a step"
LOAD = "load"  # Kind of runs that serve requests one by one
# Ways to count memory, by result key.
_COUNTS: Mapping[str, str] = {Figure.MEMORY_PER_DEVICE_BYTES: "allocated", Figure.MEMORY_ALLOCATOR_BYTES: "reserved"}
# Figures whose distance from what was measured the basis tells.
_IN_BASIS: Mapping[str, FigureName] = {"time": "step", "memory": "memory"}


class Ranges:
    """The ranges of one estimate."""

    def __init__(self, work: Work, times: Sequence[PhaseTime]) -> None:
        self._work, self._times = work, tuple(times)
        # No lookup that calls back: rings of references keep arrays alive until they are searched for.
        self._ranges: dict[FigureName, Range] = {}

    def __getitem__(self, figure: FigureName) -> Range:
        """Return the range of a time, or of memory."""
        if figure not in self._ranges:
            self._ranges[figure] = self._range(figure)
        return self._ranges[figure]

    def of(self, key: str) -> Range:
        """Return the range behind the figure of a result key."""
        if key.startswith("memory."):
            return self._counted(_COUNTS.get(key, "device"))
        return self[self.figure(key)].inverse if key in _RATES else self[self.figure(key)]

    def figure(self, key: str) -> FigureName:
        """Return which range the figure of a result key has."""
        if key.startswith("memory."):
            return "memory"
        served = self._work.served
        if served is not None and served.loaded is not None and key in _LOADED:
            return _TAILS[key] if key in _TAILS and np.all(served.beyond <= FEW) else _LOADED[key]
        return _RATES.get(key) or _TIMES.get(key, "step")

    def _counted(self, count: str) -> Range:
        """Return the range of memory that is counted in some way: no narrower than runs at first sight need."""
        known, least = self["memory"], self.least(count)
        if least is None:
            return known
        low, high = least
        return replace(known, low=np.minimum(known.low, low), high=np.maximum(known.high, high))

    def least(self, count: str) -> tuple[float, float] | None:
        """Return measured over estimated memory that a range holds at least, by its count; None for nothing."""
        evidence = self._work.evidence
        row = evidence.rows.get("memory")
        return None if row is None or "memory" in evidence.known else row.least_of(count, evidence.kind)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the ranges of time and memory rest on, each in a sentence."""
        return tuple(f"{what}: {ratios.basis}" for what, ratios in self._reported())

    @property
    def beyond(self) -> tuple[str, ...]:
        """What of the run nobody measured, in words for its basis; empty where published runs are like it."""
        unmeasured = [f"{what}: {', '.join(ratios.beyond)}" for what, ratios in self._reported() if ratios.beyond]
        return (f"outside what was measured: {'; '.join(unmeasured)}",) if unmeasured else ()

    def _reported(self) -> Iterator[tuple[str, Range]]:
        for what, figure in _IN_BASIS.items():
            if figure in self._work.evidence.rows:
                yield what, self[figure]

    def error_terms(self, figure: FigureName) -> ErrorTerms:
        """Return what makes a figure unsure."""
        evidence = self._work.evidence
        amounts = memory_amounts(self._work) if figure == "memory" else self._time_amounts(figure)
        own = self._user_spread(figure)
        served = self._work.served
        kind = evidence.kind if served is None or served.loaded is None else LOAD
        if figure == "memory" and evidence.flags.get(UNNAMED):
            kind = UNNAMED
        return ErrorTerms({**evidence.flags, **amounts}, evidence.features, evidence.here, own, kind)

    def _user_spread(self, figure: FigureName) -> UserSpread | None:
        """Return what runs of the user's own say of how sure a step and its memory are."""
        evidence = self._work.evidence
        if evidence.own is None or figure not in ("step", "memory"):
            return None
        runs, like, usual = evidence.own
        # Numbers that differ among layouts that are compared are those of each of them.
        several = {name: number for name, number in evidence.features.numbers.items() if np.ndim(number)}
        numbers = {**like.numbers, **several}
        if figure == "step":
            return runs.time_spread(like.words, numbers)
        return runs.memory_spread(like.words, numbers, usual)

    def _range(self, name: FigureName) -> Range:
        evidence = self._work.evidence
        if name == "step" and self._work.held_seconds is not None:
            return Range(1.0, 1.0, HELD)
        if name in evidence.known:
            return evidence.known[name]
        if name not in evidence.rows:
            return Range(1.0, 1.0)
        known = figure_range(self.error_terms(name), evidence.rows[name])
        return known if name == "memory" else slowed(known, evidence.least_rate, evidence.least_because)

    def _time_amounts(self, figure: FigureName) -> dict[str, Number]:
        work = self._work
        row: Reliability = work.evidence.rows[figure]
        every = list(zip(work.phases, self._times, strict=True))
        name = _PHASES.get(figure, figure)
        of_figure = [(phase, time) for phase, time in every if phase.name == name]
        amounts = time_amounts(of_figure or every, work.units_per_sample, row.hidden)
        if work.served is not None and work.served.loaded is not None:
            amounts.update(_load_amounts(work.served.loaded, figure))
        networks, usual = work.evidence.networks, row.spreads.get(EXCHANGES)
        if networks is None or not usual or EXCHANGES not in amounts:
            return amounts
        spread = spread_here(EXCHANGES, usual, work.evidence.here, row.repeat)
        left = min(max(networks.spread, row.repeat) / spread, 1.0)
        measured = _over_networks(of_figure or every, networks)
        return {**amounts, EXCHANGES: amounts[EXCHANGES] - (1.0 - left) * measured}


def _load_amounts(loaded: Loaded, figure: FigureName) -> dict[str, Number]:
    """Return what a load makes unsure, by name of its spread: how much comes of what can be answered, how it starts."""
    share = np.minimum(loaded.arriving, loaded.largest_rate) / loaded.largest_rate
    is_first = figure.startswith("ttft")
    high, mean = (
        (loaded.first_token_percentile, loaded.first_token)
        if is_first
        else (loaded.token_seconds_percentile, loaded.token_seconds)
    )
    return {
        "saturation": where(np.isfinite(loaded.arriving), share, 0.0),
        "start": _logarithm_over(loaded.together, loaded.first_token) * float(is_first),
        "tail": _logarithm_over(high, mean) * float(figure.endswith("-tail")),
    }


def _logarithm_over(larger: Number, smaller: Number) -> Number:
    """Return the logarithm of one time over another; 0 where the other is as long, nothing or without end."""
    compares = np.isfinite(smaller) & (np.asarray(smaller) > 0)
    return np.log(np.maximum(where(compares, larger, 1.0) / where(compares, smaller, 1.0), 1.0))


def slowed(usual: Range, least_rate: float, because: str) -> Range:
    """Return the range of a time whose high end holds runs of the same plan that something slows, by their rate."""
    if least_rate >= 1.0:
        return usual
    basis = f"{usual.basis}; {because} reach {least_rate:.2g} of the rate"
    return replace(usual, high=np.maximum(usual.high, 1.0 / least_rate), basis=basis)


def time_amounts(phases: Sequence[tuple[Phase, PhaseTime]], length: Number, hidden_share: float) -> dict[str, Number]:
    """Return the share of each part of some phases in their time, by name of its spread.

    Args:
        length: tokens of a sequence.
        hidden_share: share of hidden communication that counts with the exposed.
    """
    whole = np.maximum(added(phase.runs * time.seconds for phase, time in phases), SHORTEST)
    seconds: dict[str, list[Number]] = {}
    for phase, time in phases:
        for part, spent in (*time.parts.items(), *_hidden(phase, time, hidden_share)):
            seconds.setdefault(part, []).append(phase.runs * spent)
    shares = {part: added(spent) / whole for part, spent in seconds.items()}
    attention = shares.get("attention", 0.0)
    doublings = np.maximum(np.log2(np.maximum(length, 1.0) / SURE_LENGTH), 0.0)
    kernels = shares.pop("compute", 0.0) + attention
    return {**shares, "base": 1.0, "kernels": kernels, "attention": attention * doublings}


def _over_networks(phases: Sequence[tuple[Phase, PhaseTime]], networks: MeasuredNetworks) -> Number:
    """Return the share of the time of some phases in which exchanges that nothing hides go over networks."""
    seconds: Number = 0.0
    for phase, time in phases:
        for collective, exposed in zip(phase.collectives, time.exposed, strict=True):
            if collective.part == EXCHANGES:
                crosses = np.greater(collective.group * collective.stride, networks.inside)
                seconds = seconds + phase.runs * where(crosses & np.equal(collective.overlap, 0.0), exposed, 0.0)
    return seconds / np.maximum(added(phase.runs * time.seconds for phase, time in phases), SHORTEST)


def _hidden(phase: Phase, time: PhaseTime, share: float) -> Iterator[tuple[str, Number]]:
    """Yield what is hidden of each collective, as far as it counts."""
    if not share:
        return
    repeats = phase.schedule.repeats * phase.schedule.share("layer")
    for collective, exposed in zip(phase.collectives, time.exposed, strict=True):
        if not np.any(collective.overlap):
            continue
        spent = collective.seconds * collective.count * (1.0 if collective.per_step else repeats)
        yield collective.part, np.maximum(spent - exposed, 0.0) * share


def memory_amounts(work: Work) -> dict[str, Number]:
    """Return the share of what is not exact in the memory that the driver shows, by name of its spread."""
    allocated = added(work.memory.values()) if work.allocated is None else work.allocated
    outside = work.fragmentation * allocated + work.stranded + work.context_bytes
    shown = np.maximum(allocated + outside, 1.0)
    inexact = np.maximum(allocated - added(work.memory[name] for name in work.memory if name in EXACT_PARTS), 0.0)
    unsure, flags = (inexact + outside) / shown, work.evidence.flags
    adapted, unnamed = flags.get(ADAPTED, 0.0), flags.get(UNNAMED, 0.0)
    implemented = {f"{UNNAMED}_{name}": unnamed * work.memory.get(name, 0.0) / shown for name in OF_IMPLEMENTATION}
    return {
        "base": 1.0,
        "activations": inexact / shown,
        "outside": outside / shown,
        ADAPTED: adapted * unsure,
        UNNAMED: np.maximum(unnamed * unsure - added(implemented.values()), 0.0),
        **implemented,
    }
