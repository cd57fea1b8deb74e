"""What a machine would be for a job: how fast, at what price, at what risk, and what moving there takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict as Judged

Degree: TypeAlias = Literal["low", "medium", "high"]
Priority: TypeAlias = Literal["cost", "performance", "reliability"]
Verdict: TypeAlias = Literal["stay", "move"]


@dataclass(frozen=True, slots=True)
class Level:
    """How much of something there is, and the reasons it follows from.

    Attributes:
        level: low, medium or high.
        reasons: what makes it so, the weightiest first; none where it is low because of nothing.
    """

    level: Degree = "low"
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MovePart:
    """One part of what moving takes once.

    Attributes:
        usd: what it costs; None where no price is known.
        hours: how long it takes.
        detail: how both follow.
    """

    name: str
    usd: float | None
    hours: float
    detail: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would make a job fit where it does not.

    Attributes:
        set: the change of the plan.
        short_bytes: what would still be missing on a device; 0 where it fits then.
        is_enough: whether devices and host then hold the job.
    """

    words: str
    set: Mapping[str, object]
    short_bytes: float = 0.0
    is_enough: bool = True


@dataclass(frozen=True, slots=True)
class Alternative:
    """A machine for the job, the current one or another; figures are None where something they rest on is not known.

    Attributes:
        instance: id of the instance; of the current machine maybe that of a device.
        provider: who rents it out; empty for a machine of one's own.
        count: instances that are rented; of devices without an instance, devices.
        devices: devices in use.
        fits: whether the job fits, and keeps the limits of its plan.
        verdict: the verdict on the plan there.
        reason: the constraints that decide it, in words; empty where all of them hold surely.
        short_bytes: bytes that the fullest device lacks; 0 where it fits.
        set: the change that makes the plan this one.
        figures: figures of the estimate by result key.
        performance_ratio: work a second over that of the current machine.
        performance_percent: how much more of it that is.
        usd_per_hour: price of all instances, on demand or committed to.
        usd_per_hour_spot: the same on spot capacity; None also where the job must not be interrupted.
        usd_month: price of the month's hours, on demand or committed to.
        usd_month_spot: the same on spot capacity, with the hours that interruptions cost.
        usd_same_work: price of the current month's work, paid as the question says.
        hours_same_work: hours that this work takes.
        saving_usd: what the month's work costs less than on the current machine.
        saving_percent: the same in percent.
        is_spot: whether saving and price of the same work are those of spot capacity.
        move: what moving takes once, part by part.
        move_usd: the sum of its prices.
        move_hours: the sum of its hours.
        break_even_hours: hours of running on the current machine after which moving has paid; None where it never does.
        risk: what may go wrong.
        complexity: how much has to change.
        remedies: what would make it fit.
        warnings: what to know of it.
        region: where the price is from.
        price_date: when the price was seen.
        price_provider: whose price it is; empty where none is known.
        price_source: provider, instance, region and day of it, marked where it is old or was not verified.
        price_days: age of the price in days; None where its day is not known.
        price_is_old: whether the price was seen so long ago, or nobody knows when, that it is marked.
        absence: why there is no price, or no spot price.
    """

    instance: str
    count: int
    devices: int
    fits: bool
    verdict: Judged = Judged.FITS
    reason: str = ""
    short_bytes: float = 0.0
    provider: str = ""
    set: Mapping[str, object] = field(default_factory=dict)
    figures: Mapping[str, Interval] = field(default_factory=dict)
    performance_ratio: Interval | None = None
    performance_percent: Interval | None = None
    usd_per_hour: float | None = None
    usd_per_hour_spot: float | None = None
    usd_month: float | None = None
    usd_month_spot: Interval | None = None
    usd_same_work: Interval | None = None
    hours_same_work: Interval | None = None
    saving_usd: Interval | None = None
    saving_percent: Interval | None = None
    is_spot: bool = False
    move: tuple[MovePart, ...] = ()
    move_usd: float | None = None
    move_hours: float = 0.0
    break_even_hours: float | None = None
    risk: Level = Level()
    complexity: Level = Level()
    remedies: tuple[Remedy, ...] = ()
    warnings: tuple[str, ...] = ()
    region: str | None = None
    price_date: str | None = None
    price_provider: str = ""
    price_source: str = ""
    price_days: int | None = None
    price_is_old: bool = False
    absence: str = ""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, for one priority.

    Attributes:
        priority: cost, performance or reliability.
        instance: where to; the current one where it is to stay.
        title: what to do.
        detail: what that gives, and what it asks.
        set: the change that does it; empty for staying as it is.
    """

    priority: Priority
    instance: str
    title: str
    detail: str
    set: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Migration(ShownInNotebooks):
    """What moving a job would bring, or has turned out to bring so far.

    Attributes:
        current: the job where it is.
        alternatives: the job elsewhere, the largest saving first, or the cheapest where none is known; what does not
            fit last.
        verdict: whether to stay or to move.
        reasons: why.
        recommendations: what to do, by priority.
        goes_to: where the verdict moves the job; None where it stays.
        complete: whether every instance was looked at.
        share_done: share of them that were.
        seconds: how long it took.
    """

    current: Alternative
    alternatives: tuple[Alternative, ...] = ()
    verdict: Verdict = "stay"
    reasons: tuple[str, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    goes_to: Alternative | None = None
    complete: bool = False
    share_done: float = 0.0
    seconds: float = 0.0
