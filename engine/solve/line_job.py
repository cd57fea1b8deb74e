"""What a line asks of a job that its plan tells only a rate of: how long all pictures take, and what a month costs."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.line import DAY_HOURS, INFER, OneLine, rented_time
from capacity_tui.engine.solve.modes.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS, format_count, format_money, format_number, format_seconds

_OF_HARDWARE = (Key.HARDWARE_NAME, Key.HARDWARE_DEVICES, Key.MODEL_NAME)  # Without which nothing has a price


def job_words(line: OneLine, plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield how long all pictures of a line take, as of ``flux dev 1000 images on a 4090``."""
    jobs = (entry.value for entry in line.assumptions if entry.key == Key.INFERENCE_REQUESTS)
    pictures = next((value for value in jobs if isinstance(value, int)), None)
    if pictures is None or line.has(Key.INFERENCE_REQUESTS) or not line.has(Key.HARDWARE_NAME):
        return
    try:
        rate = METRICS[Figure.SAMPLES_PER_SECOND].read(fill(plan, "balanced", None, catalog).estimate)
    except CapacityError:
        return
    if isinstance(rate, Interval):
        low, most, high = (pictures / largest(bound) for bound in (rate.high, rate.value, rate.low))
        times = f"{format_seconds(most)} ({format_seconds(low)} to {format_seconds(high)})"
        yield f"all {format_count(pictures)} take {times}, at as many a second as the plan tells"


def rent_words(line: OneLine, plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield the bill of a span for what is served, and how many days a job takes that runs some hours of each.

    As of ``llama 8b on an l4, 10 hours a day, cost per month``; nothing where the hardware is still asked for.
    """
    used = rented_time(line.text, catalog)
    is_partial = used.hours_a_day < DAY_HOURS
    is_open = line.asked is not None and line.asked.solve in _OF_HARDWARE
    if is_open or not line.has(Key.HARDWARE_NAME) or not (is_partial or used.seconds):
        return
    daily = f" of {used.hours_a_day:.3g} h a day" if is_partial else ""
    try:
        estimate = fill(plan, "balanced", None, catalog).estimate
    except CapacityError:
        return
    price, time = estimate.cost.usd_per_hour, METRICS[Figure.ESTIMATED_TRAIN_TIME_SECONDS].read(estimate)
    if plan.task == INFER and used.seconds:
        hours = used.seconds / HOUR_SECONDS * used.hours_a_day / DAY_HOURS
        usd = None if price is None else largest(price)
        known = "" if usd is None else f"at {format_money(usd)} an hour are {format_money(usd * hours)}"
        bill = known or "at a price that nobody knows"
        yield f"{used.words}{daily}: {format_number(hours)} h {bill}"
    elif is_partial and isinstance(time, Interval):
        low, most, high = (
            largest(bound) / HOUR_SECONDS / used.hours_a_day for bound in (time.low, time.value, time.high)
        )
        days = f"{most:.1f} days ({low:.1f} to {high:.1f})" if high > 1 else "done within one of them"
        yield f"{used.hours_a_day:.3g} h a day: {days}"
