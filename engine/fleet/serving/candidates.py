"""Which replicas there are to choose among: instances, and how many of an instance's devices one replica takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import ON_DEMAND, TERMS, Payment, Quote, chosen_quote
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.estimate.serving import ServingRun, room_in_cache, serving_run
from capacity_tui.engine.fleet.serving.question import ServingQuestion
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import DETECTED, Plan, edited, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import MOST_REQUESTS, ModePlan, fill
from capacity_tui.engine.solve.search import hardware_ids
from capacity_tui.engine.solve.space import powers_of_two
from capacity_tui.engine.uncertainty import Range
from capacity_tui.engine.units import format_bytes
from capacity_tui.engine.verdict import Verdict

SERVED = "infer"
LIGHT_RATE = 1e-3  # A load so light that requests never meet: what a replica is filled and first judged by
_NAME, _DEVICES, _TENSOR = Key.HARDWARE_NAME, Key.HARDWARE_DEVICES, Key.PARALLELISM_TP


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A replica on some devices of an instance."""

    instance: str  # id of the instance, or of the device where nothing says which instance holds it
    filled: ModePlan  # one replica, with every field filled in
    run: ServingRun  # the same as numbers
    devices: int  # devices of a replica
    per_instance: int  # replicas of one instance
    instances_of_replica: int  # instances that one replica takes
    usd_per_hour: float | None  # of one instance, or of all that one replica takes; None where no price is known
    price_source: str  # where the price comes from
    slots: int  # most requests at work at once: what the cache holds
    # reading, answering: ranges of measured over estimated times of passes
    reading: Range
    answering: Range

    @property
    def largest_rate(self) -> float:
        """Requests a second that a replica answers at most, in the steady state."""
        speed = self.filled.estimate.computation.infer
        assert speed is not None and speed.largest_requests_per_second is not None  # noqa: S101 - a load was given
        return mean(speed.largest_requests_per_second.value)

    def keeps_limits_unloaded(self, question: ServingQuestion) -> bool:
        """Whether one request that is alone is answered inside the limits."""
        speed = self.filled.estimate.computation.infer
        assert speed is not None and speed.time_per_output_token_seconds is not None  # noqa: S101 - a load was given
        result = (
            (speed.time_to_first_token_seconds.value, question.ttft),
            (speed.time_per_output_token_seconds.value, question.tpot),
        )
        return all(limit is None or mean(value) <= limit for value, limit in result)

    def instances(self, replicas: int) -> int:
        """Return the instances that hold some replicas; where one replica takes several, all of them."""
        return ceil(replicas / self.per_instance) * self.instances_of_replica

    def usd(self, replicas: int) -> float | None:
        """Return the dollars an hour of the instances that hold some replicas; None where no price is known."""
        return None if self.usd_per_hour is None else self.usd_per_hour * ceil(replicas / self.per_instance)

    @property
    def usd_per_request_rate(self) -> float:
        """Least dollars an hour for one request a second: what candidates are looked at in the order of."""
        usd = self.usd_per_hour
        return np.inf if usd is None else usd / self.per_instance / self.largest_rate


@dataclass(frozen=True, slots=True)
class Unfit:
    """Hardware that does not serve the plan, and why."""

    instance: str
    reason: str


def candidates(
    question: ServingQuestion,
    catalog: Catalog,
    machine: Machine | None = None,
    callback: Callable[[str], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[list[Candidate], list[Unfit]]:
    """Return the replicas to choose among, the least cost for each request at first, and hardware that holds none.

    Args:
        callback: gets what is at work, in words.
        stopped: asked before each kind of hardware; those before are the candidates.

    Raises:
        CapacityError: the plan serves no requests, or names what nobody knows.
    """
    plan = _loaded(question)
    result: list[Candidate] = []
    unfit: list[Unfit] = []
    names = tuple(_hardware(question, catalog))
    for done, name in enumerate(names):
        if stopped():
            break
        reasons: list[str] = []
        before = len(result)
        callback(f"planning replicas on {name}, {done} of {len(names)} done; ctrl-c stops")
        for devices, layout in _layouts(plan, name, catalog):
            values = {_DEVICES: devices, Key.HARDWARE_PER_NODE: None, Key.PARALLELISM_DP: 1, **layout}
            try:
                there = plan if name == plan.hardware.name else edited(plan, {_NAME: name}, catalog).plan
                filled = fill(with_values(there, values), "balanced", machine, catalog)
                item = _candidate(name, filled, devices, catalog)
            except CapacityError as error:
                reasons.append(error.detail or error.title)
                continue
            if isinstance(item, str):
                reasons.append(item)
            else:
                result.append(item)
        if len(result) == before:
            unfit.append(Unfit(name, reasons[-1] if reasons else "no layout of it serves the model"))
    return sorted(result, key=lambda entry: (entry.usd_per_request_rate, entry.devices)), unfit


def _loaded(question: ServingQuestion) -> Plan:
    """Return the plan of one replica under a light load, with the limits and lengths that are asked about."""
    plan = question.plan
    if not plan.is_inference:
        raise PlanError(
            "this plan serves no requests", f"task {plan.task or 'train'}", "set task: infer", Place(field=Key.TASK)
        )
    return with_values(plan, {**question_values(question), Key.INFERENCE_REQUEST_RATE: LIGHT_RATE})


def question_values(question: ServingQuestion) -> dict[str, object]:
    """Return what a question says of a plan: load, limits, lengths, and that nothing runs on spot capacity."""
    plan = question.plan
    values: dict[str, object] = {
        Key.INFERENCE_REQUEST_RATE: question.rate,
        Key.INFERENCE_CONCURRENCY: None,
        Key.INFERENCE_TTFT_SECONDS: question.ttft,
        Key.INFERENCE_TPOT_SECONDS: question.tpot,
        Key.INFERENCE_PERCENTILE: question.percentile,
        Key.PRICING_SPOT: False,
    }
    if question.spread is not None:
        values[Key.INFERENCE_PROMPT_TOKENS_STDDEV] = plan.inference.prompt_tokens * question.spread
        values[Key.INFERENCE_OUTPUT_TOKENS_STDDEV] = plan.inference.output_tokens * question.spread
    return values


def _hardware(question: ServingQuestion, catalog: Catalog) -> Iterator[str]:
    """Yield what is asked about: instances, and those that have a device in place of a device that is only named."""
    plan = question.plan
    if question.hardware:
        yield from hardware_ids(question.hardware, catalog)
        return
    name = plan.hardware.name or DETECTED
    own = plan.hardware.spec or plan.pricing.usd_per_hour is not None
    row = catalog.accelerators.find_id(name)
    rented = [] if row is None or own else _rented(row, catalog)
    yield from rented or [name]


def _rented(accelerator: str, catalog: Catalog) -> list[str]:
    """Return the instances that have an accelerator and a price that was seen."""
    priced = [row for row in catalog.instances_with(accelerator) if row.on_demand_usd_per_hour is not None]
    return [row.id for row in priced if row.verified] or [row.id for row in priced]


def _layouts(plan: Plan, name: str, catalog: Catalog) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield how many devices a replica may take, and how it lies on them; the plan's own way where it says one."""
    tensor, stages = plan.parallelism.tp, plan.parallelism.pp
    if isinstance(tensor, int) and tensor > 0:
        yield tensor * (stages if isinstance(stages, int) else 1), {}
        return
    sold = catalog.sold_together(name)
    most = sold if sold > 1 else max(int(plan.hardware.devices or 1), 1)
    for devices in powers_of_two(most):
        yield int(str(devices)), {_TENSOR: devices, Key.PARALLELISM_PP: 1}


def _candidate(name: str, filled: ModePlan, devices: int, catalog: Catalog) -> Candidate | str:
    """Return a replica, or why it cannot be."""
    shape, estimate = filled.resolved.shape, filled.estimate
    ranges, speed = estimate.ranges, estimate.computation.infer
    if shape is None or ranges is None or speed is None or speed.time_per_output_token_seconds is None:
        raise PlanError("no requests one by one", "this model generates no tokens", "choose a language model")
    if estimate.verdict is Verdict.DOES_NOT_FIT:
        memory = estimate.memory
        there = "" if memory.capacity_bytes is None else f" of {format_bytes(mean(memory.capacity_bytes))}"
        needed = format_bytes(mean(memory.reserved_bytes.value))
        return f"does not fit with {devices} {'device' if devices == 1 else 'devices'}: {needed}{there} on each"
    run = serving_run(filled.plan, shape, filled.resolved.cluster, catalog)
    slots = int(np.minimum(np.max(room_in_cache(run)), MOST_REQUESTS))
    if slots < 1:
        return "the cache has no room for one request"
    sold = catalog.sold_together(name)
    price = filled.resolved.cluster.price
    return Candidate(
        instance=name,
        filled=filled,
        run=replace(run, traffic=replace(run.traffic, arrives=False)),
        devices=devices,
        per_instance=max(sold // devices, 1),
        instances_of_replica=max(-(-devices // sold), 1),
        usd_per_hour=price.usd_per_hour,
        price_source=price.source,
        slots=slots,
        reading=ranges["prefill"],
        answering=ranges["decode"],
    )


@dataclass(frozen=True, slots=True)
class DayPrices:
    """Prices of the instance that replicas share, or of all that one replica takes."""

    on_demand: float | None  # dollars an hour; None where no price is known
    committed: float | None = None  # dollars an hour with a commitment; None where no such price is known
    terms: str = ""  # of the commitment, in words; empty without one


def day_prices(candidate: Candidate, catalog: Catalog) -> DayPrices:
    """Return what the instances of a kind of replica cost: committed to for the plan's term, or the shortest known."""
    pricing = candidate.filled.plan.pricing
    row, many = catalog.instances.known(candidate.instance), candidate.instances_of_replica
    if row is None or pricing.usd_per_hour is not None:
        return DayPrices(candidate.usd_per_hour)
    plain = chosen_quote(row, ON_DEMAND, pricing.region, catalog)
    wanted: tuple[Payment, ...] = tuple(TERMS) if pricing.commitment == "none" else (pricing.commitment,)
    quotes: list[Quote] = [quote for term in wanted if (quote := chosen_quote(row, term, pricing.region, catalog))]
    known = next((quote for quote in quotes if plain and quote.region == plain.region), None)
    return DayPrices(
        None if plain is None else plain.usd_per_hour * many,
        None if known is None else known.usd_per_hour * many,
        "" if known is None else known.words,
    )
