"""What people promise of moving, held against true prices: ``profiles/promises.yaml``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Literal, TypeAlias

from capacity_tui.engine.catalog import Catalog, load_catalog, parse_shipped
from capacity_tui.engine.fleet.migration.alternative import Alternative, Migration
from capacity_tui.engine.fleet.migration.migrate import migrate
from capacity_tui.engine.fleet.migration.months import saved_percent, saved_usd
from capacity_tui.engine.fleet.migration.question import JobWords, checked_kind, question_of_job
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.uncertainty import Interval

Promised: TypeAlias = Literal["saving_percent", "performance_ratio", "spot_percent"]


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise.

    Attributes:
        id: its key.
        name: what is moved where.
        job: what runs now.
        figure: what is promised of.
        least: how much of it at least.
        most: how much at most; None for any amount.
        source: who promises it.
    """

    id: str
    name: str
    job: JobWords
    figure: Promised
    least: float
    most: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A promise beside what was found.

    Attributes:
        promise: the promise.
        best: the machine that comes nearest to it; None where none holds the job or has a price.
        found: what was found.
        misses: by how much that is below what is promised at least; negative where it is above what is promised at
            most; 0 where the promise holds; None where nothing was found.
    """

    promise: Promise
    best: Alternative | None = None
    found: Interval | None = None
    misses: float | None = None

    @property
    def holds(self) -> bool:
        """Whether at least what is promised was found."""
        return self.misses is not None and self.misses <= 0


@cache
def promises() -> tuple[Promise, ...]:
    """Return the promises."""
    rows = parse_shipped(files("capacity_tui.profiles").joinpath("promises.yaml"))
    return tuple(_promise(key, row) for key, row in rows.items())


def check_promises(
    wanted: Iterable[Promise] | None = None,
    catalog: Catalog | None = None,
    stopped: Callable[[], bool] = lambda: False,
    told: Callable[[str, Migration], None] | None = None,
) -> Iterator[Kept]:
    """Yield each promise with what is found for it.

    Args:
        wanted: the promises; all by default.
        catalog: facts; the shipped ones with the user's own by default.
        stopped: asked between promises whether to stop.
        told: gets the promise at work and what was found for it so far.
    """
    facts = catalog or load_catalog()
    for promise in promises() if wanted is None else wanted:
        if stopped():
            return
        tell = None if told is None else partial(told, promise.id)
        found = migrate(question_of_job(promise.job, facts), facts, None, tell)
        known = [(each, value) for each in found.alternatives if (value := _value(promise.figure, each)) is not None]
        if not known:
            yield Kept(promise)
            continue
        best, value = max(known, key=lambda pair: mean(pair[1].value))
        yield Kept(promise, best, value, _misses(promise, mean(value.value)))


def _value(figure: Promised, each: Alternative) -> Interval | None:
    if figure == "saving_percent":
        return each.saving_percent
    if figure == "performance_ratio":
        return each.performance_ratio
    month, spot = each.usd_month, each.usd_month_spot
    if month is None or spot is None:
        return None
    return Interval(*(mean(saved_percent(saved_usd(month, end), month)) for end in (spot.value, spot.high, spot.low)))


def _misses(promise: Promise, value: float) -> float:
    if value < promise.least:
        return promise.least - value
    return 0.0 if promise.most is None else min(0.0, promise.most - value)


def _promise(key: str, row: Mapping[str, object]) -> Promise:
    job, to = row["job"], row["to"]
    assert isinstance(job, Mapping) and isinstance(to, list)  # noqa: S101 - shipped data
    words = JobWords(
        instance=str(job["instance"]),
        model=str(job["model"]),
        kind=checked_kind(str(job["kind"])),
        devices=int(job["gpus"]),
        precision=str(job["precision"]),
        instances=tuple(map(str, to)),
    )
    figure = next(name for name in _FIGURES if name == row["figure"])
    most = row.get("most")
    return Promise(key, str(row["name"]), words, figure, float(str(row["least"])),
                   None if most is None else float(str(most)), str(row["source"]))  # fmt: skip


_FIGURES: tuple[Promised, ...] = ("saving_percent", "performance_ratio", "spot_percent")
