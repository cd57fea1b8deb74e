"""A machine with its price: what a month's hours and a month's work cost there, and what moving saves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Instance
from capacity_tui.engine.cluster import Cluster, Price, Quote
from capacity_tui.engine.estimate import CostEstimate, cost, formula
from capacity_tui.engine.fleet.migration.question import Alternative, MigrationQuestion
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS

if TYPE_CHECKING:
    from capacity_tui.engine.fleet.migration.throughput import Throughput

NO_SPOT_FOR_SERVING = "interactive serving does not run on spot capacity"


performance_ratio = formula()  # How many times the current machine's work another one does
gain_percent = formula()  # How much more another machine does
month_usd = formula()
same_work_hours = formula()
saved_usd = formula()  # What a month's work costs less on another machine
saved_percent = formula()  # Saving as a share of what is paid now
break_even = formula()  # Hours of running after which moving has paid


def ratio_range(other: Interval, current: Interval, *, shared_errors: bool) -> Interval:
    """Return the ratio of two estimates with its range.

    Errors of unlike devices are independent, so that their logarithms add up as squares; those of the same device are
    the same for both, and only the wider remains of them what the narrower does not take away.
    """
    ratio = float(np.asarray(performance_ratio(mean(other.value), mean(current.value))))
    below, above = _log(other.value, other.low), _log(other.high, other.value)
    own_below, own_above = _log(current.value, current.low), _log(current.high, current.value)
    if shared_errors:
        down, up = abs(below - own_below), abs(above - own_above)
    else:
        down, up = float(np.hypot(below, own_above)), float(np.hypot(above, own_below))
    return Interval(ratio, ratio * float(np.exp(-down)), ratio * float(np.exp(up)))


def _log(high: Number, low: Number) -> float:
    return float(np.log(mean(high) / mean(low)))


@dataclass(frozen=True, slots=True)
class Machine:
    """Instances that a job could run on."""

    instance: str  # id of the instance, or of the device where no instance is rented
    count: int  # how many
    cluster: Cluster  # the devices with their price
    reached: Throughput  # what the job reaches there
    row: Instance | None = None  # the instance; None where none is rented

    @property
    def provider(self) -> str:
        """Who rents it out; empty for a machine of one's own."""
        return "" if self.row is None else self.row.provider

    @property
    def quote(self) -> Quote | None:
        """The price of one instance, on demand or as it is paid; None where the plan gives it or none is known."""
        price = self.cluster.price
        return next(iter((*price.rate_quotes, *price.quotes, *price.spot_quotes)), None)

    @property
    def region(self) -> str | None:
        """Where the price is from."""
        return None if self.quote is None else self.quote.region

    def paid(self, *, is_spot: bool) -> Machine:
        """Return the machine as it is paid for on demand, or on spot capacity, which may be in another region."""
        cluster = replace(self.cluster, price=replace(self.cluster.price, is_spot=is_spot))
        return replace(self, cluster=cluster, reached=self.reached.paid(cluster))


def current_alternative(question: MigrationQuestion, machine: Machine) -> Alternative:
    """Return the machine where the job is, as it is paid for now; what does not do the work has no price for it."""
    is_spot = machine.cluster.price.is_spot
    result = replace(_hourly(question, machine), is_spot=is_spot)
    if machine.reached.work is None:
        return result
    hours = Interval.exactly(question.hours)
    return replace(
        result,
        usd_same_work=_paid(machine, hours, is_spot=is_spot),
        hours_same_work=hours,
        performance_ratio=Interval.exactly(1.0),
        performance_percent=Interval.exactly(0.0),
    )


def alternative(question: MigrationQuestion, machine: Machine, current: Alternative, now: Machine) -> Alternative:
    """Return another machine, compared with the current one."""
    result = _hourly(question, machine)
    work, before = machine.reached.work_of_one_release, now.reached.work_of_one_release
    hours = Interval.exactly(question.hours)
    if work is not None and before is not None:
        same = machine.cluster.device.id == now.cluster.device.id
        ratio = ratio_range(work, before, shared_errors=same)
        more = Interval(*(float(np.asarray(gain_percent(end))) for end in (ratio.value, ratio.low, ratio.high)))
        result = replace(result, performance_ratio=ratio, performance_percent=more)
        if question.is_fixed_work:
            hours = Interval(
                *(mean(same_work_hours(question.hours, end)) for end in (ratio.value, ratio.high, ratio.low))
            )
    if not result.figures:
        return result
    ways = (False, True) if question.spot and question.allows_spot else (False,)
    prices = {is_spot: _paid(machine, hours, is_spot=is_spot) for is_spot in ways}
    known = {is_spot: paid for is_spot, paid in prices.items() if paid is not None}
    if not known:
        return result
    is_spot = min(known, key=lambda way: mean(known[way].value))
    paid = known[is_spot]
    if is_spot:
        machine = machine.paid(is_spot=True)
        result = replace(result, set=machine.reached.set, figures=machine.reached.figures, is_spot=True)
        result = _with_source(result, machine)
    if before is None:
        return result
    result = replace(result, usd_same_work=paid, hours_same_work=hours)
    return _saving(result, paid, current.usd_same_work)


def _saving(result: Alternative, paid: Interval, before: Interval | None) -> Alternative:
    if before is None:
        return result
    saved = Interval(
        *(
            mean(saved_usd(old, new))
            for old, new in ((before.value, paid.value), (before.low, paid.high), (before.high, paid.low))
        )
    )
    if not mean(before.value):
        return replace(result, saving_usd=saved)
    share = Interval(*(mean(saved_percent(end, before.value)) for end in (saved.value, saved.low, saved.high)))
    return replace(result, saving_usd=saved, saving_percent=share)


def _hourly(question: MigrationQuestion, machine: Machine) -> Alternative:
    """Return a machine with the prices of its hours alone."""
    reached, price = machine.reached, machine.cluster.price
    rate = price.usd_per_hour
    spot = price.spot_usd_per_hour if question.allows_spot else None
    month_spot = _paid(machine, Interval.exactly(question.hours), is_spot=True) if question.allows_spot else None
    result = Alternative(
        instance=machine.instance,
        provider=machine.provider,
        count=machine.count,
        devices=int(machine.cluster.devices),
        fits=reached.fits,
        verdict=reached.verdict,
        reason=reached.refusal if reached.estimate is None else reached.estimate.reason,
        short_bytes=reached.short_bytes,
        set=reached.set,
        figures=reached.figures,
        usd_per_hour=rate,
        usd_per_hour_spot=spot,
        usd_month=None if rate is None else mean(month_usd(question.hours, rate)),
        usd_month_spot=month_spot,
        absence=_absence(question, price),
        warnings=tuple(filter(None, (reached.refusal,))),
    )
    return _with_source(result, machine)


def _with_source(result: Alternative, machine: Machine) -> Alternative:
    """Return a machine with whose price it is, of which place and day."""
    quote = machine.quote
    if quote is None:
        return replace(result, price_source=machine.cluster.price.rate_source)
    return replace(
        result,
        region=quote.region,
        price_date=quote.price_date,
        price_provider=quote.provider,
        price_source=quote.words,
        price_days=quote.age.days,
        price_is_old=quote.age.is_old,
    )


def _absence(question: MigrationQuestion, price: Price) -> str:
    lacking = []
    if price.usd_per_hour is None:
        lacking.append("no on-demand price is known")
    if not question.allows_spot:
        lacking.append(f"no spot: {NO_SPOT_FOR_SERVING}")
    elif price.spot_usd_per_hour is None:
        lacking.append("no spot price is known")
    return "; ".join(lacking)


def _paid(machine: Machine, hours: Interval, *, is_spot: bool) -> Interval | None:
    """Return what so many hours of work cost, interruptions of spot capacity included; None without a price."""
    result = _cost(machine, hours.scaled(HOUR_SECONDS), 0.0, is_spot=is_spot)
    paid = result.spot_interval if is_spot else result.interval
    return None if paid is None else Interval(mean(paid.value), mean(paid.low), mean(paid.high))


def _cost(machine: Machine, seconds: Interval | None, unit_seconds: float, *, is_spot: bool) -> CostEstimate:
    """Return what work on a machine costs, on demand or on spot capacity."""
    price = replace(machine.cluster.price, is_spot=is_spot)
    estimate = machine.reached.estimate
    states: Number | None = None
    if estimate is not None and estimate.work.state_bytes is not None:
        states = estimate.work.state_bytes()
    cluster = replace(machine.cluster, price=price)
    keeps_state = estimate is None or estimate.work.served is None
    return cost(cluster, seconds, unit_seconds, keeps_state, states)
