"""What moving a job takes in money and hours, and what to do about the job: for cost, speed, reliability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from capacity_tui.engine.catalog import Accelerator, Catalog
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import formula
from capacity_tui.engine.estimate.data import DataLocation, transfer_price
from capacity_tui.engine.fleet.migration.priced import Machine, month_usd
from capacity_tui.engine.fleet.migration.question import (
    SERVED,
    Alternative,
    Degree,
    Level,
    MigrationQuestion,
    MovePart,
    Priority,
    Recommendation,
    machines,
    money,
    percent,
    times,
)
from capacity_tui.engine.fleet.options import assumed
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import GIGA, PERCENT, format_bytes, format_count

DEGREES: tuple[Degree, ...] = ("low", "medium", "high")


def level_of(reasons: Iterable[tuple[Degree, str]]) -> Level:
    """Return the level that reasons of several degrees make together: the highest of them, the weightiest first."""
    ordered = sorted(reasons, key=lambda alternative: -DEGREES.index(alternative[0]))
    return Level(ordered[0][0], tuple(words for _, words in ordered)) if ordered else Level()


def complexity(machine: Machine, now: Machine, catalog: Catalog) -> Level:
    """Return how hard it is to move, with what has to change."""
    return level_of(_changes(machine, now, catalog))


def is_same_region(machine: Machine, now: Machine) -> bool:
    """Whether both are of the same provider, in the same region."""
    return machine.provider == now.provider and (machine.region or now.region) == (now.region or machine.region)


def spans_nodes(cluster: Cluster, replica_devices: float) -> bool:
    """Whether the devices of one copy of a model exchange over a network."""
    return replica_devices > mean(cluster.direct_devices)


def replica_devices(machine: Machine) -> float:
    """Return the devices that work on one copy: all of a training, one replica of a service."""
    estimate = machine.reached.estimate
    if estimate is None or estimate.work.served is None:
        return mean(machine.cluster.devices)
    return mean(machine.cluster.devices) / max(1.0, machine.reached.replicas)


def _changes(machine: Machine, now: Machine, catalog: Catalog) -> Iterator[tuple[Degree, str]]:
    yield from _device_changes(
        catalog.accelerators.known(now.cluster.device.id), catalog.accelerators.known(machine.cluster.device.id)
    )
    if machine.provider != now.provider:
        yield "medium", f"another provider: {now.provider or 'own machine'} to {machine.provider}"
    elif not is_same_region(machine, now):
        yield "low", f"another region: {now.region} to {machine.region}"
    if spans_nodes(machine.cluster, replica_devices(machine)) and not spans_nodes(now.cluster, replica_devices(now)):
        yield "medium", "one copy of the model is spread over several nodes"
    served = machine.reached.estimate is not None and machine.reached.estimate.work.served is not None
    if served and machine.count > now.count and machine.reached.replicas > now.reached.replicas:
        yield "medium", f"{machine.count} instances share the requests of {now.count}"
    if machine.instance != now.instance:
        yield "low", f"another instance: {now.instance} to {machine.instance}"
    elif machine.cluster.devices != now.cluster.devices:
        yield "low", f"{mean(machine.cluster.devices):g} devices of the same kind in place of {now.reached.devices}"
    elif machine.reached.set:
        yield "low", "other settings on the same machine"


def _device_changes(before: Accelerator | None, after: Accelerator | None) -> Iterator[tuple[Degree, str]]:
    if before is None or after is None:
        if before is not after:
            yield "high", "CPUs instead of accelerators, or the other way round"
        return
    if (before.vendor, before.kind) != (after.vendor, after.kind):
        yield "high", f"another vendor: {before.vendor} to {after.vendor} ({after.name}), other kernels and libraries"
    elif before.generation != after.generation:
        yield "medium", f"another generation: {before.generation} to {after.generation}, kernels are rebuilt"
    if (before.host_link_gbs is None) != (after.host_link_gbs is None):
        yield "medium", f"a processor built in with the device ({after.name if after.host_link_gbs else before.name})"


BITS = 8.0
WEIGHTS_SHARDED = 3  # From this stage of ZeRO on every copy of the model holds a part of the weights


transfer_hours = formula()  # Hours that data is under way


def move_parts(
    question: MigrationQuestion, alternative: Alternative, machine: Machine, now: Machine, catalog: Catalog
) -> Iterator[MovePart]:
    """Yield what moving to a machine takes once, part by part; nothing where nothing moves."""
    if not is_same_region(machine, now):
        yield _transfer(_moved_bytes(question, now), machine, now, catalog)
    work = assumed(f"setup_hours_{alternative.complexity.level}")
    wage = assumed("usd_per_working_hour")
    yield MovePart(
        "set-up", work * wage, work, f"{work:g} working hours at ${wage:g}: {alternative.complexity.level} complexity"
    )
    rate = alternative.usd_per_hour_spot if alternative.is_spot else alternative.usd_per_hour
    check = assumed("validation_hours")
    usd_checked = None if rate is None else mean(month_usd(check, rate))
    yield MovePart("validation", usd_checked, check, f"{check:g} hours on the new machines to compare results")
    if question.kind == SERVED and machine.instance != now.instance:
        both = assumed("double_running_hours")
        usd_both = None if rate is None else mean(month_usd(both, rate))
        yield MovePart("double running", usd_both, both, f"{both:g} hours of old and new machines in parallel")


def _transfer(moved: float, machine: Machine, now: Machine, catalog: Catalog) -> MovePart:
    """Return what it takes to bring data from one place to the other; what leaves a machine of one's own is free."""
    hours = mean(transfer_hours(moved, assumed("transfer_gbit")))
    leaves = f"{format_bytes(moved)} of weights, states and data leave {now.provider or 'your own machine'}"
    if not now.provider:
        return MovePart("transfer", 0.0, hours, leaves)
    here, there = DataLocation(now.provider, now.region), DataLocation(machine.provider, machine.region)
    price = transfer_price(moved / GIGA, here, there, catalog)
    if price is None:
        return MovePart("transfer", None, hours, f"{leaves}; its egress price is not known")
    return MovePart("transfer", mean(price.usd), hours, f"{leaves} ({price.words})")


def _moved_bytes(question: MigrationQuestion, now: Machine) -> float:
    """Return the bytes that move along: weights of a service, states of a training, and the data that was given."""
    estimate = now.reached.estimate
    if estimate is None:
        return question.data_bytes
    reached = now.reached
    copies = max(1, reached.replicas)
    shards = {"weights": copies if reached.zero >= WEIGHTS_SHARDED else 1, "optimizer": copies if reached.zero else 1}
    kept = {"weights": assumed("weight_copies"), "optimizer": assumed("checkpoints_kept")}
    one = mean(now.cluster.devices) / copies
    return question.data_bytes + sum(
        mean(estimate.memory.parts.get(name, 0.0)) * one * shards[name] * kept[name] for name in kept
    )


_PAID = (Figure.COST_USD, Figure.COST_USD_PER_MILLION_TOKENS)
NOTHING_BETTER = "no offer saves enough"  # Said where nothing that was compared would do better, and only there


def recommendations(
    question: MigrationQuestion,
    current: Alternative,
    alternatives: Sequence[Alternative],
    worth: Sequence[Alternative],
    faster: Sequence[Alternative],
    why_not: Sequence[str],
) -> tuple[Recommendation, ...]:
    """Return what is recommended, at least one thing for each priority."""
    if not alternatives:
        return ()
    return (
        *_of_settings(current, alternatives),
        *_of_cost(current, worth, why_not),
        _of_performance(current, faster),
        _of_reliability(question, current, alternatives),
    )


def first_machines(
    current: Alternative, tuned: Alternative | None, alternatives: Sequence[Alternative], usable: Sequence[Alternative]
) -> tuple[Recommendation, ...]:
    """Return what is recommended for a job that does not fit where it is.

    Args:
        tuned: that machine with settings under which the job fits; None where there are none.
        usable: those that hold it surely, at an acceptable risk.
    """
    advice = []
    remedy = next((remedy for remedy in current.remedies if remedy.is_enough), None)
    if tuned is not None:
        detail = f"{tuned.instance} holds the job with other settings, without moving"
        advice.append(Recommendation("reliability", tuned.instance, "Tune the current machine", detail, tuned.set))
    elif remedy is not None:
        detail = f"{current.instance} then holds the job, without moving"
        title = f"Keep the current machine, with {remedy.words}"
        advice.append(Recommendation("reliability", current.instance, title, detail, remedy.set))
    priced = [alternative for alternative in usable if np.isfinite(cost_of_work(alternative))]
    if priced:
        best = min(priced, key=cost_of_work)
        others = [
            alternative
            for alternative in alternatives
            if alternative.fits and cost_of_work(alternative) < cost_of_work(best)
        ]
        detail = f"the lowest cost of the usable machines: {_work_paid(best)}"
        detail += _left_out(others, cost_of_work, _work_paid)
        advice.append(Recommendation("cost", best.instance, f"Move to {machines(best)}", detail, best.set))
    fast = [alternative for alternative in usable if _speed(alternative)]
    if fast:
        best = max(fast, key=_speed)
        others = [
            alternative for alternative in alternatives if alternative.fits and _speed(alternative) > _speed(best)
        ]
        detail = f"the fastest of the usable machines: {_speed_words(best)}"
        detail += _left_out(others, lambda entry: -_speed(entry), _speed_words)
        advice.append(Recommendation("performance", best.instance, f"Move to {machines(best)}", detail, best.set))
    return tuple(advice)


def cost_of_work(alternative: Alternative) -> float:
    """Return what a machine takes for the job, for a million tokens or for a month; infinite where nothing is known."""
    paid = next((alternative.figures[key] for key in _PAID if key in alternative.figures), None)
    month = float("inf") if alternative.usd_month is None else alternative.usd_month
    return month if paid is None else mean(paid.value)


def surely_faster(current: Alternative, usable: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Return the machines with a known price that do more work a second at both ends of the range."""
    least = 1.0 + assumed("least_gain_percent") / PERCENT
    return tuple(
        alternative
        for alternative in usable
        if alternative.performance_ratio is not None
        and alternative.instance != current.instance
        and mean(alternative.performance_ratio.value) >= least
        and mean(alternative.performance_ratio.low) > 1.0
        and alternative.usd_same_work is not None
    )


def fastest(faster: Sequence[Alternative]) -> Alternative:
    """Return the fastest machine, of equally fast ones the cheapest."""
    return max(faster, key=lambda entry: (round(_ratio(entry), 2), -_paid(entry)))


def _left_out(
    others: Sequence[Alternative], order: Callable[[Alternative], float], words: Callable[[Alternative], str]
) -> str:
    """Return which machine would be better but cannot be used, and why; nothing where there is none."""
    if not others:
        return ""
    best = min(others, key=order)
    why = next(iter(best.risk.reasons), best.reason) if best.risk.level == "high" else best.reason
    return f"; left out: {machines(best)}, {words(best)}, {why or 'too slow for a month of work'}"


def _of_settings(current: Alternative, alternatives: Sequence[Alternative]) -> Iterator[Recommendation]:
    """Yield what the current machine itself would give with other settings, or with all of its devices."""
    own = next((alternative for alternative in alternatives if alternative.instance == current.instance), None)
    if own is None or not own.fits or own.performance_percent is None or own.count > current.count:
        return
    gain = mean(own.performance_percent.value)
    if gain < assumed("least_gain_percent"):
        return
    unused = own.devices - current.devices
    title = f"Use all {own.devices} devices that are paid for" if unused > 0 else "Tune the current machine"
    detail = f"{current.instance} would do {percent(own.performance_percent)} more at the same price, without moving"
    yield Recommendation("performance", current.instance, title, detail, own.set)


def _of_cost(current: Alternative, worth: Sequence[Alternative], why_not: Sequence[str]) -> Iterator[Recommendation]:
    """Yield the machine that saves most, and the one of the same provider that does."""
    if not worth:
        yield _stay("cost", current, "; ".join(why_not))
        return
    near = next((alternative for alternative in worth if alternative.provider == current.provider), None)
    for best in dict.fromkeys((worth[0].instance, near.instance if near else worth[0].instance)):
        yield _saving(next(alternative for alternative in worth if alternative.instance == best), current)


def _saving(best: Alternative, current: Alternative) -> Recommendation:
    assert best.saving_percent is not None and best.saving_usd is not None  # noqa: S101 - it is worth it
    staying = f"without leaving {best.provider}: " if best.provider == current.provider else ""
    detail = (
        f"{staying}saves {percent(best.saving_percent)}, {money(best.saving_usd.value)} a month; moving costs "
        f"{money(best.move_usd or 0.0)} once"
    )
    return Recommendation("cost", best.instance, f"Move to {machines(best)}", detail, best.set)


def _of_performance(current: Alternative, faster: Sequence[Alternative]) -> Recommendation:
    if not faster:
        why = "no offer is surely faster at a known price and an acceptable risk"
        return _stay("performance", current, why)
    best = fastest(faster)
    paid = best.usd_same_work
    assert paid is not None and best.performance_ratio is not None  # noqa: S101 - chosen so
    detail = f"{times(best.performance_ratio)} times the throughput; the same work costs {money(paid.value)}"
    return Recommendation("performance", best.instance, f"Move to {machines(best)}", detail, best.set)


def _of_reliability(
    question: MigrationQuestion, current: Alternative, alternatives: Sequence[Alternative]
) -> Recommendation:
    """Return the safest machine: on demand, at a lower risk than now, of such the cheapest."""
    if current.is_spot and not question.allows_spot:
        detail = "interactive serving does not run on spot capacity"
        return Recommendation("reliability", current.instance, "Serve on demand", detail, {Key.PRICING_SPOT: False})
    risks = "; ".join(current.risk.reasons)
    if not current.risk.reasons:
        return _stay("reliability", current, "no known risk")
    if current.risk.level == DEGREES[0]:
        return _stay("reliability", current, f"low risk, though {risks}")
    safe = [
        alternative
        for alternative in alternatives
        if alternative.fits and not alternative.is_spot and _degree(alternative) < _degree(current)
    ]
    if not safe:
        return _stay("reliability", current, f"no machine that holds the job has a lower risk, though {risks}")
    best = min(safe, key=lambda entry: (_degree(entry), _paid(entry)))
    same_work = best.usd_same_work
    costs = f"the same work costs {money(same_work.value)}" if same_work is not None else "its price is not known"
    detail = f"{best.risk.level} risk, {costs}; the current one: {current.risk.reasons[0]}"
    return Recommendation("reliability", best.instance, f"Move to {machines(best)}", detail, best.set)


def _stay(priority: Priority, current: Alternative, why: str) -> Recommendation:
    return Recommendation(priority, current.instance, f"Stay on {current.instance}", why)


def _work_paid(alternative: Alternative) -> str:
    key = next((key for key in _PAID if key in alternative.figures), None)
    words = {Figure.COST_USD: "the job", Figure.COST_USD_PER_MILLION_TOKENS: "a million tokens", None: "a month"}[key]
    return f"{money(cost_of_work(alternative))} {words}"


def _speed(alternative: Alternative) -> float:
    speed = alternative.figures.get(Figure.TOKENS_PER_SECOND)
    return 0.0 if speed is None else mean(speed.value)


def _speed_words(alternative: Alternative) -> str:
    return f"{format_count(_speed(alternative))} tok/s"


def _ratio(alternative: Alternative) -> float:
    return 0.0 if alternative.performance_ratio is None else mean(alternative.performance_ratio.value)


def _paid(alternative: Alternative) -> float:
    return float("inf") if alternative.usd_same_work is None else mean(alternative.usd_same_work.value)


def _degree(alternative: Alternative) -> int:
    return DEGREES.index(alternative.risk.level)
