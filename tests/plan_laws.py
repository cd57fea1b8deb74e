"""What holds of every answered plan: figures are finite and inside their ranges, parts are whole, texts say numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import METRICS, Estimate, figure, figures_of
from capacity_tui.engine.numeric import added, mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import dump_plan, plan_from_text
from capacity_tui.engine.present import result_as_dict, to_json
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.verdict import Holds, Verdict

# Share by which sums may differ that are added up in another order.
ROUNDING = 1e-9
HIGH = 90.0
# Convolutions of networks, by Lavin and Gray's algorithm, take that many fewer products than operations are counted.
FEWER_PRODUCTS = 1.49
HOUR = 3600.0
NO_NUMBER = re.compile(r"(?<![\w.-])[+-]?(inf|nan)(?![\w-])")
SURELY_MORE = 1.05  # Steps of time leave a mean up to so many times what it cannot exceed
INFER = "computation.infer."


def broken_laws(plan: Plan, estimate: Estimate) -> Iterator[str]:
    """Yield what does not hold of an answered plan, a line each.

    Args:
        plan: the plan, filled in.
        estimate: what was estimated for it.
    """
    yield from _figures(estimate)
    yield from _sums(estimate)
    yield from _money(plan, estimate)
    yield from _verdict(estimate)
    if plan.task == "infer":
        yield from _served(plan, estimate)
    yield from _texts(plan, estimate)


def broken_round_trip(plan: Plan, estimate: Estimate, catalog: Catalog) -> Iterator[str]:
    """Yield what is another after a plan was written and read again."""
    again = plan_from_text(dump_plan(plan), "written again")
    if again.plain_data() != plan.plain_data():
        yield "the plan that was written is read as another"
    read = figures_of(fill(again, "balanced", None, catalog).estimate)
    for key, known in figures_of(estimate).items():
        if key in read and read[key] != known:
            yield f"{key} is {known} and after writing and reading {read[key]}"


def _figures(estimate: Estimate) -> Iterator[str]:
    for key, each in figures_of(estimate).items():
        if not all(map(math.isfinite, (each.value, each.low, each.high))):
            yield f"{key} is not finite: {each}"
        elif not each.low <= each.value <= each.high:
            yield f"{key} is outside its range: {each}"
    for key in METRICS:
        found = figure(estimate, key)
        if found.value is None and not found.absence:
            yield f"{key} is absent for no reason"
    utilization = figures_of(estimate).get("computation.mfu")
    most = (1.0 if estimate.model is not None else FEWER_PRODUCTS) * (1.0 + ROUNDING)
    if utilization is not None and utilization.high > most:
        yield f"model FLOPs utilization of {utilization.value:.0%}, up to {utilization.high:.0%}"


def _sums(estimate: Estimate) -> Iterator[str]:
    memory, computation = estimate.memory, estimate.computation
    wholes = (
        ("memory", memory.parts, memory.reserved_bytes.value),
        ("time", computation.parts, computation.step_seconds.value),
    )
    for name, parts, whole in wholes:
        total = mean(added(parts.values()))
        if not math.isclose(total, mean(whole), rel_tol=ROUNDING):
            yield f"parts of {name} sum to {total}, the whole is {mean(whole)}"
        yield from (f"{name} of {part} is {mean(each)}" for part, each in parts.items() if mean(each) < 0)


def _money(plan: Plan, estimate: Estimate) -> Iterator[str]:
    cost, figures = estimate.cost, figures_of(estimate)
    job, usd = figures.get("computation.estimated_train_time_seconds"), figures.get("cost.usd")
    if usd is not None and job is not None and cost.usd_per_hour is not None and not plan.pricing.spot:
        expected = job.value / HOUR * mean(cost.usd_per_hour)
        if not math.isclose(usd.value, expected, rel_tol=ROUNDING):
            yield f"cost is {usd.value}, time times price {expected}"
    energy = estimate.energy
    if energy.kwh is not None and energy.watts_average is not None and job is not None:
        expected = job.value / HOUR * mean(energy.watts_average) / 1000.0
        if not math.isclose(mean(energy.kwh), expected, rel_tol=ROUNDING):
            yield f"energy is {mean(energy.kwh)}, power times time {expected}"


def _verdict(estimate: Estimate) -> Iterator[str]:
    # A batch that the cache holds a part of is answered in waves, which makes a plan tight at most.
    held = [
        "likely" if each.holds is Holds.NO and each.broken_as is Verdict.TIGHT else each.holds.value
        for each in estimate.constraints
    ]
    expected = None if not held else "no" not in held
    if estimate.verdict is not Verdict.UNKNOWN and estimate.fits is not expected:
        yield f"fits is {estimate.fits}, constraints hold {held}"
    broken, unsure = "no" in held, "likely" in held
    if estimate.verdict is Verdict.FITS and (broken or unsure):
        yield f"the verdict is {estimate.verdict}, constraints hold {held}"
    if estimate.verdict is Verdict.TIGHT and (broken or not unsure):
        yield f"the verdict is {estimate.verdict}, constraints hold {held}"


def _served(plan: Plan, estimate: Estimate) -> Iterator[str]:
    figures, load = {key: each.value for key, each in figures_of(estimate).items()}, plan.inference
    for name in ("time_to_first_token", "time_per_output_token"):
        first, slow = figures.get(f"{INFER}{name}_seconds"), figures.get(f"{INFER}{name}_percentile_seconds")
        if first is not None and slow is not None and slow < first and load.percentile >= HIGH:
            yield f"{name}: {slow} at the {load.percentile:g}th percentile is below the mean of {first}"
    running, waiting = figures.get(f"{INFER}running_requests"), figures.get(f"{INFER}waiting_requests")
    if running is None or waiting is None:
        return
    rate, most = figures[f"{INFER}requests_per_second"], figures[f"{INFER}largest_requests_per_second"]
    time = figures[f"{INFER}request_seconds"]
    if waiting < 0:
        yield f"{waiting} requests wait"
    if rate > most * (1 + ROUNDING) or rate > (load.request_rate or math.inf) * (1 + ROUNDING):
        yield f"{rate} requests a second are answered of {load.request_rate} that arrive, {most} at most"
    if not math.isclose(running + waiting, rate * time, rel_tol=1e-6):
        yield f"{running + waiting} requests are in flight, rate times time {rate * time}"
    users = load.concurrency if load.request_rate is None else None
    if users is not None and load.requests is not None:
        # A load that ends has fewer in flight at last.
        users = min(users, running + waiting)
    if users is not None and not math.isclose(running + waiting, users, rel_tol=1e-6):
        yield f"{running + waiting} requests of {users} users"
    whole = figures.get(f"{INFER}all_requests_seconds")
    if whole is not None and time > whole * SURELY_MORE:
        yield f"a request takes {time} s, all of them {whole} s"


def _texts(plan: Plan, estimate: Estimate) -> Iterator[str]:
    try:
        document = result_as_dict(plan, estimate)
        to_json(document)
    except ValueError as error:
        yield f"no JSON: {error}"
        return
    for path, text in _strings(document, ""):
        if NO_NUMBER.search(text):
            yield f"{path} says {text!r}"


def _strings(node: object, above: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, str):
        yield above, node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from _strings(value, f"{above}.{key}")
    elif isinstance(node, Sequence):
        for value in node:
            yield from _strings(value, above)
