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
    """How much of something there is, and the reasons it follows from."""

    level: Degree = "low"  # low, medium or high
    reasons: tuple[str, ...] = ()  # what makes it so, the weightiest first; none where it is low because of nothing


@dataclass(frozen=True, slots=True)
class MovePart:
    """One part of what moving takes once."""

    name: str
    usd: float | None  # what it costs; None where no price is known
    hours: float  # how long it takes
    detail: str  # how both follow


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would make a job fit where it does not."""

    words: str
    set: Mapping[str, object]  # the change of the plan
    short_bytes: float = 0.0  # what would still be missing on a device; 0 where it fits then
    is_enough: bool = True  # whether devices and host then hold the job


@dataclass(frozen=True, slots=True)
class Alternative:
    """A machine for the job, the current one or another; figures are None where something they rest on is not known."""

    instance: str  # id of the instance; of the current machine maybe that of a device
    count: int  # instances that are rented; of devices without an instance, devices
    devices: int  # devices in use
    fits: bool  # whether the job fits, and keeps the limits of its plan
    verdict: Judged = Judged.FITS  # the verdict on the plan there
    reason: str = ""  # the constraints that decide it, in words; empty where all of them hold surely
    short_bytes: float = 0.0  # bytes that the fullest device lacks; 0 where it fits
    provider: str = ""  # who rents it out; empty for a machine of one's own
    set: Mapping[str, object] = field(default_factory=dict)  # the change that makes the plan this one
    figures: Mapping[str, Interval] = field(default_factory=dict)  # figures of the estimate by result key
    performance_ratio: Interval | None = None  # work a second over that of the current machine
    performance_percent: Interval | None = None  # how much more of it that is
    usd_per_hour: float | None = None  # price of all instances, on demand or committed to
    usd_per_hour_spot: float | None = None  # the same on spot capacity; None also where the job must not be interrupted
    usd_month: float | None = None  # price of the month's hours, on demand or committed to
    usd_month_spot: Interval | None = None  # the same on spot capacity, with the hours that interruptions cost
    usd_same_work: Interval | None = None  # price of the current month's work, paid as the question says
    hours_same_work: Interval | None = None  # hours that this work takes
    saving_usd: Interval | None = None  # what the month's work costs less than on the current machine
    saving_percent: Interval | None = None  # the same in percent
    is_spot: bool = False  # whether saving and price of the same work are those of spot capacity
    move: tuple[MovePart, ...] = ()  # what moving takes once, part by part
    move_usd: float | None = None  # the sum of its prices
    move_hours: float = 0.0  # the sum of its hours
    # hours of running on the current machine after which moving has paid; None where it never does
    break_even_hours: float | None = None
    risk: Level = Level()  # what may go wrong
    complexity: Level = Level()  # how much has to change
    remedies: tuple[Remedy, ...] = ()  # what would make it fit
    warnings: tuple[str, ...] = ()  # what to know of it
    region: str | None = None  # where the price is from
    price_date: str | None = None  # when the price was seen
    price_provider: str = ""  # whose price it is; empty where none is known
    price_source: str = ""  # provider, instance, region and day of it, marked where it is old or was not verified
    price_days: int | None = None  # age of the price in days; None where its day is not known
    price_is_old: bool = False  # whether the price was seen so long ago, or nobody knows when, that it is marked
    absence: str = ""  # why there is no price, or no spot price


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, for one priority."""

    priority: Priority  # cost, performance or reliability
    instance: str  # where to; the current one where it is to stay
    title: str  # what to do
    detail: str  # what that gives, and what it asks
    set: Mapping[str, object] = field(default_factory=dict)  # the change that does it; empty for staying as it is


@dataclass(frozen=True, slots=True)
class Migration(ShownInNotebooks):
    """What moving a job would bring, or has turned out to bring so far."""

    current: Alternative  # the job where it is
    # the job elsewhere, the largest saving first, or the cheapest where none is known; what does not fit last
    alternatives: tuple[Alternative, ...] = ()
    verdict: Verdict = "stay"  # whether to stay or to move
    reasons: tuple[str, ...] = ()  # why
    recommendations: tuple[Recommendation, ...] = ()  # what to do, by priority
    goes_to: Alternative | None = None  # where the verdict moves the job; None where it stays
    complete: bool = False  # whether every instance was looked at
    share_done: float = 0.0  # share of them that were
    seconds: float = 0.0  # how long it took
