"""What moving takes once: data that is transferred, work to set up, a run to compare, both machines side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from capacity_tui.engine.estimate import equation
from capacity_tui.engine.estimate.data import Place, moving_price
from capacity_tui.engine.fleet.database import assumed
from capacity_tui.engine.fleet.migration.alternative import MovePart
from capacity_tui.engine.fleet.migration.changes import is_same_place
from capacity_tui.engine.fleet.migration.months import month_usd
from capacity_tui.engine.fleet.migration.question import SERVED, MigrationQuestion
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.units import GIGA, HOUR_SECONDS, format_bytes

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.fleet.migration.alternative import Alternative
    from capacity_tui.engine.fleet.migration.priced import Machine

BITS = 8.0
# From this stage of ZeRO on every copy of the model holds a part of the weights.
WEIGHTS_SHARDED = 3


@equation(
    "hours = moved · 8 / (gbit · 1e9) / 3600",
    unit="h",
    source="bytes over bandwidth",
    part="move_hours.egress",
    units={"moved": "B"},
)
def transfer_hours(moved: Number, gbit: Number) -> Number:
    """Hours that data is under way.

    Args:
        moved: bytes that are transferred.
        gbit: gigabits a second.
    """
    return moved * BITS / (gbit * GIGA) / HOUR_SECONDS


def move_parts(
    question: MigrationQuestion, alternative: Alternative, machine: Machine, now: Machine, catalog: Catalog
) -> Iterator[MovePart]:
    """Yield what moving to a machine takes once, part by part; nothing where nothing moves.

    Args:
        question: the job.
        alternative: the machine with its prices and the complexity of moving there.
        machine: the same as it was before.
        now: the machine where the job is.
        catalog: prices of data that leaves.
    """
    if not is_same_place(machine, now):
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
        yield MovePart("double running", usd_both, both, f"{both:g} hours of old and new machines side by side")


def _transfer(moved: float, machine: Machine, now: Machine, catalog: Catalog) -> MovePart:
    """Return what it takes to bring data from one place to the other; what leaves a machine of one's own is free."""
    hours = mean(transfer_hours(moved, assumed("transfer_gbit")))
    leaves = f"{format_bytes(moved)} of weights, states and data leave {now.provider or 'your own machine'}"
    if not now.provider:
        return MovePart("transfer", 0.0, hours, leaves)
    here, there = Place(now.provider, now.region), Place(machine.provider, machine.region)
    price = moving_price(moved / GIGA, here, there, catalog)
    if price is None:
        return MovePart("transfer", None, hours, f"{leaves}; what it charges for that is not known")
    return MovePart("transfer", mean(price.usd), hours, f"{leaves} ({price.words})")


def _moved_bytes(question: MigrationQuestion, now: Machine) -> float:
    """Return the bytes that move along: weights of a service, states of a training, and the data that was told."""
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
