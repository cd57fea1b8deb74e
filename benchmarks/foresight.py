"""How soon each detector tells, and how often it cries wolf, on seeded curves of runs with and without trouble.

    uv run python -m benchmarks.foresight [--runs 40] [--markdown] [--only leak]

A run is sampled once a second (memory, devices, disk) or logged step by step (loss, stall). Delay is the median over
the runs from the moment trouble begins; false alarms are the share of runs without that trouble in which it was told.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.runs.monitor.anomalies import (
    divergence,
    filling,
    growth,
    not_finite,
    spike,
    stall,
    stragglers,
    throttling,
)

GB, MB = 1e9, 1e6
MEMORY_SECONDS, STEPS = 5400, 3000


@dataclass(frozen=True)
class Case:
    """A kind of run."""

    detector: str  # who watches it
    name: str  # in words
    curve: Callable[[np.random.Generator], np.ndarray]  # makes one from a generator of random numbers
    tells: Callable[[np.ndarray], int | None]  # says at which sample the detector tells, None where it does not
    begins: int | None = None  # sample at which trouble begins; None where there is none


def limits(detector: str) -> dict[str, float]:
    return dict(load_catalog(None).detectors[detector].thresholds)


def first(count: int, stride: int, asked: Callable[[int], object]) -> int | None:
    """Return the first of some moments at which a question is answered with yes."""
    return next((n for n in range(stride, count + 1, stride) if asked(n)), None)


# Memory, by the second


def memory(
    rng: np.random.Generator,
    leak: float = 0.0,
    begins: int = 0,
    warm_up: float = 0.0,
    saw: tuple[float, int] = (0.0, 60),
    season: tuple[float, int] = (0.0, 600),
    noise: float = 5 * MB,
) -> np.ndarray:
    """Return a curve: a level, growth that slows down, garbage collection, a season, noise, and a leak a second."""
    t = np.arange(MEMORY_SECONDS, dtype=float)
    found = 20 * GB + 8 * GB * (1 - np.exp(-t / warm_up)) if warm_up else np.full(t.size, 20 * GB)
    found += saw[0] * ((t + rng.integers(saw[1])) % saw[1]) / saw[1]
    found += season[0] * np.sin(2 * math.pi * (t / season[1] + rng.random()))
    return found + leak * np.maximum(0.0, t - begins) + np.abs(rng.normal(0.0, noise, t.size))


def leak_told(curve: np.ndarray) -> int | None:
    times = np.arange(curve.size, dtype=float)
    found = limits("leak")
    return first(curve.size, 30, lambda n: growth(times[:n], curve[:n], found))


# Losses, by the step


def loss(
    rng: np.random.Generator,
    noise: float = 0.02,
    heavy: bool = False,
    jump: float = 0.0,
    begins: int = 0,
    climb: float = 0.0,
    waves: float = 0.0,
) -> np.ndarray:
    """Return a curve that falls as a power of the step, with noise, a jump or a climb."""
    t = np.arange(STEPS, dtype=float)
    found = 2.0 + 8.0 * (t + 1) ** -0.35 + waves * np.sin(t / 150)
    off = rng.standard_t(4, t.size) / math.sqrt(2) if heavy else rng.normal(size=t.size)
    found *= 1 + noise * off
    if jump:
        found[begins : begins + 30] *= 1 + jump
    return found + climb * np.maximum(0.0, t - begins)


def spike_told(curve: np.ndarray) -> int | None:
    found = limits("loss_spike")
    return first(curve.size, 1, lambda n: spike(curve[:n][-80:], found))


def divergence_told(curve: np.ndarray) -> int | None:
    found = limits("divergence")
    return first(curve.size, 5, lambda n: divergence(curve[:n], found))


def not_finite_told(curve: np.ndarray) -> int | None:
    return first(curve.size, 1, lambda n: not_finite(curve[:n]))


def broken(rng: np.random.Generator) -> np.ndarray:
    found = loss(rng)
    found[1000:] = math.nan
    return found


# Waits between steps


def waits(rng: np.random.Generator, evaluation: float = 0.0, stops: int | None = None) -> np.ndarray:
    """Return when steps came: two seconds each, with evaluations, and perhaps none from some step on."""
    found = rng.lognormal(math.log(2.0), 0.1, 600)
    found[0] = 90.0
    if evaluation:
        found[50::50] += evaluation * rng.uniform(0.8, 1.2, found[50::50].size)
    return np.cumsum(found)[:stops]


def stall_told(curve: np.ndarray) -> int | None:
    """Return how many seconds after the last step it is told, or the first moment at which it is told between steps."""
    found = limits("stall")
    for n in range(4, curve.size):
        if stall(curve[:n], curve[n] - 1e-6, found):
            return 0
    return first(3600, 5, lambda waited: stall(curve, curve[-1] + waited, found)) if curve.size < 600 else None


# Devices and disks


def power(rng: np.random.Generator, slow: float = 1.0, begins: int = 0) -> np.ndarray:
    """Return watts of eight devices; the fourth draws another share from some second on."""
    found = rng.normal(600.0, 25.0, (1200, 8)) * rng.normal(1.0, 0.02, 8)
    found *= np.where(rng.random((1200, 1)) < 0.05, 0.5, 1.0)  # all of them wait now and then
    found[begins:, 3] *= slow
    return found


def straggler_told(curve: np.ndarray) -> int | None:
    found = limits("straggler")
    return first(curve.shape[0], 10, lambda n: stragglers(curve[:n], found))


def clocks(rng: np.random.Generator, share: float, begins: int = 600) -> np.ndarray:
    chance = np.where(np.arange(1200) >= begins, share, 0.02)
    return rng.random(1200) < chance


def throttling_told(curve: np.ndarray) -> int | None:
    row = load_catalog(None).detectors["throttling"]
    reasons = [("thermal (software)",) if hot else () for hot in curve]
    return first(curve.size, 5, lambda n: throttling(reasons[:n], row.thresholds, row.causes))


def free(rng: np.random.Generator, checkpoint: float, kept: int) -> np.ndarray:
    """Return free bytes of a disk of 2 TB on which a checkpoint is written every ten minutes, and so many are kept."""
    t = np.arange(MEMORY_SECONDS * 2, dtype=float)
    written = np.minimum(np.floor(t / 600), kept) * checkpoint + np.clip(t % 600, 0, 20) / 20 * checkpoint
    return 300 * GB - written + rng.normal(0.0, 10 * MB, t.size)


def disk_told(curve: np.ndarray) -> int | None:
    found = limits("disk")
    times = np.arange(curve.size, dtype=float)
    return first(curve.size, 60, lambda n: filling(times[:n], curve[:n], 2000 * GB, found))


CASES = (
    Case("leak", "1 MB/s from the start", lambda r: memory(r, leak=MB), leak_told, 0),
    Case("leak", "10 MB/s from the start", lambda r: memory(r, leak=10 * MB), leak_told, 0),
    Case("leak", "2 MB/s after 40 min, with warm-up and collection",
         lambda r: memory(r, 2 * MB, 2400, 60.0, (2 * GB, 45)), leak_told, 2400),
    Case("leak", "2 MB/s after warm-up of minutes", lambda r: memory(r, 2 * MB, 0, 180.0), leak_told, 0),
    Case("leak", "constant", memory, leak_told),
    Case("leak", "warm-up, 1 min", lambda r: memory(r, warm_up=60.0), leak_told),
    Case("leak", "warm-up, 5 min", lambda r: memory(r, warm_up=300.0), leak_told),
    Case("leak", "collection every 45 s", lambda r: memory(r, saw=(2 * GB, 45)), leak_told),
    Case("leak", "collection every 7 min", lambda r: memory(r, saw=(4 * GB, 420)), leak_told),
    Case("leak", "season of 10 min", lambda r: memory(r, season=(3 * GB, 600)), leak_told),
    Case("leak", "season of 40 min", lambda r: memory(r, season=(3 * GB, 2400)), leak_told),
    Case("leak", "season of 90 min", lambda r: memory(r, season=(3 * GB, 5400)), leak_told),
    Case("leak", "2 MB/s in a season of 10 min", lambda r: memory(r, 2 * MB, season=(0.3 * GB, 600)), leak_told, 0),
    Case("leak", "all of these", lambda r: memory(r, 0.0, 0, 120.0, (2 * GB, 45), (GB, 900)), leak_told),
    Case("loss_spike", "up by 25 % for 30 steps", lambda r: loss(r, jump=0.25, begins=1500), spike_told, 1500),
    Case("loss_spike", "up by 12 % for 30 steps", lambda r: loss(r, jump=0.12, begins=1500), spike_told, 1500),
    Case("loss_spike", "noise of 2 %", loss, spike_told),
    Case("loss_spike", "noise of 5 %, long tails", lambda r: loss(r, 0.05, heavy=True), spike_told),
    Case("loss_spike", "waves", lambda r: loss(r, waves=0.1), spike_told),
    Case("divergence", "0.1 % of the loss a step", lambda r: loss(r, climb=0.0026, begins=1500), divergence_told, 1500),
    Case("divergence", "1 % of the loss a step", lambda r: loss(r, climb=0.026, begins=1500), divergence_told, 1500),
    Case("divergence", "noise of 2 %", loss, divergence_told),
    Case("divergence", "noise of 5 %, long tails", lambda r: loss(r, 0.05, heavy=True), divergence_told),
    Case("divergence", "waves of 2 %", lambda r: loss(r, waves=0.05), divergence_told),
    Case("not_finite", "no number from step 1 000 on", broken, not_finite_told, 1001),
    Case("not_finite", "noise of 2 %", loss, not_finite_told),
    Case("stall", "stops (steps of 2 s)", lambda r: waits(r, stops=300), stall_told, 0),
    Case("stall", "stops, with evaluations of 60 s", lambda r: waits(r, 60.0, 300), stall_told, 0),
    Case("stall", "steps of 2 s", waits, stall_told),
    Case("stall", "evaluations of 15 s", lambda r: waits(r, 15.0), stall_told),
    Case("straggler", "one of eight draws a third less", lambda r: power(r, 0.67, 600), straggler_told, 600),
    Case("straggler", "eight alike", power, straggler_told),
    Case("throttling", "heat in four of five samples", lambda r: clocks(r, 0.8), throttling_told, 600),
    Case("throttling", "heat in one of fifty", lambda r: clocks(r, 0.02), throttling_told),
    Case("disk", "checkpoints of 40 GB, all kept", lambda r: free(r, 40 * GB, 99), disk_told, 0),
    Case("disk", "checkpoints of 40 GB, two kept", lambda r: free(r, 40 * GB, 2), disk_told),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What came of a case: the share of runs in which it was told, too early where trouble began later, and delays."""

    case: Case
    told: float
    early: float
    delay: float
    slowest: float


def outcome(case: Case, runs: int) -> Outcome:
    moments = [case.tells(case.curve(np.random.default_rng(seed))) for seed in range(runs)]
    begins = case.begins or 0
    after = [moment - begins for moment in moments if moment is not None and moment >= begins]
    early = sum(moment is not None and moment < begins for moment in moments) / runs
    return Outcome(case, sum(moment is not None for moment in moments) / runs, early,
                   float(np.median(after)) if after else math.nan, max(after, default=math.nan))  # fmt: skip


def lines(runs: int, markdown: bool, only: str) -> Iterator[str]:
    heads = ("detector", "run", "told", "too early", "delay (median)", "delay (longest)")
    form = "| {} | {} | {} | {} | {} | {} |" if markdown else "{:<12}{:<50}{:>8}{:>11}{:>16}{:>17}"
    yield form.format(*heads)
    if markdown:
        yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for case in (case for case in CASES if only in ("", case.detector)):
        found = outcome(case, runs)
        trouble = case.begins is not None
        delay = (f"{found.delay:.0f}", f"{found.slowest:.0f}") if trouble and found.delay == found.delay else ("", "")
        wrong = f"{found.early:.0%}" if trouble else f"{found.told:.0%}"
        yield form.format(case.detector, case.name, f"{found.told - found.early:.0%}" if trouble else "", wrong, *delay)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", default="", help="detector")
    given = parser.parse_args()
    for line in lines(given.runs, given.markdown, given.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
