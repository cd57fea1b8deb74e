"""What a training keeps and moves, as plain data and as lines and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.results import picked, to_builtins
from capacity_tui.engine.storage import DatabaseBench, Latency, LearningForecast, StoragePlan
from capacity_tui.engine.units import (
    GIGA,
    PERCENT,
    format_bandwidth,
    format_bytes,
    format_count,
    format_money,
    format_percent,
    format_seconds,
)

UNKNOWN = "n/a"
_ARRIVAL = ("reading_seconds", "decoding_seconds", "working_seconds", "waiting_seconds", "slower")
_HOST_MEMORY = (
    *("workers", "prefetched", "pinned", "shuffle_buffer", "cache", "offloaded"),
    *("total", "capacity", "fits"),
)


def storage_plan_as_dict(storage_plan: StoragePlan) -> dict[str, object]:
    """Return it as plain data, under the names that scripts rely on: bytes and seconds, rates in GB/s."""
    supply, plan, checkpoints = storage_plan.supply, storage_plan.answer.plan, storage_plan.checkpoints
    data: dict[str, object] = {
        "data": plan.data.model_dump(mode="json"),
        "dataset": {
            "format": supply.format.id,
            "counted": storage_plan.content.holds,
            "units": supply.units,
            "bytes_per_unit": supply.unit_bytes,
            "bytes": supply.bytes,
            "epochs": supply.epochs,
            "shuffled": shuffling(storage_plan),
        },
        "input": {
            **picked(storage_plan.arrival, *_ARRIVAL),
            "workers": supply.workers,
            "cores_per_device": supply.cores,
        },
        "checkpoints": {
            **picked(checkpoints, "bytes", "kept", "kept_bytes"),
            "tier": checkpoints.tier.id,
            "save_seconds": checkpoints.save_seconds,
            "seconds_between_failures": checkpoints.failure_seconds,
            **picked(checkpoints, "best_interval_seconds", "interval_seconds", "count"),
            "stall_percent": PERCENT * checkpoints.stall_share,
            "lost_percent": PERCENT * checkpoints.lost_share,
        },
        "caches": [
            {
                "cache": cache.tier.cache,
                "tier": cache.tier.id,
                "room_bytes": cache.room,
                "holds": _holds(storage_plan, cache.room),
                "pass_seconds": cache.pass_seconds,
            }
            for cache in storage_plan.caches
        ],
        "streaming": {
            "needed_gbs": storage_plan.sources[0].needed / GIGA,
            "sources": [
                {
                    "source": source.tier.place,
                    "tier": source.tier.id,
                    "gbs": source.bandwidth / GIGA,
                    "enough": source.is_enough,
                    "copy_seconds": source.copy_seconds,
                }
                for source in storage_plan.sources
            ],
            "egress": storage_plan.egress,
        },
        "host_memory": picked(storage_plan.memory, *_HOST_MEMORY),
        "temporary_space": storage_plan.temporary,
        "disk_bytes": disk_bytes(storage_plan),
        "token_budget": {
            **picked(storage_plan.budget, "job", "unique", "in_memory", "on_disk", "repeats"),
            "worthwhile_on_disk": storage_plan.budget.worthwhile,
        },
        "phases": [
            picked(phase.phase, "name", "share", "changes") | picked(phase, "tokens", "step_seconds", "seconds", "fits")
            for phase in storage_plan.phases
        ],
        "why": {
            path: why for path, why in storage_plan.answer.estimate.basis.running.items() if path.startswith("data.")
        },
        "assumed": supply.assumed,
    }
    return {key: to_builtins(value) for key, value in data.items()}


def storage_plan_parts(storage_plan: StoragePlan) -> Iterator[Part]:
    """Yield what a training keeps and moves: data, input, checkpoints, sources, caches, main memory, phases."""
    supply, arrival, checkpoints = storage_plan.supply, storage_plan.arrival, storage_plan.checkpoints
    counted = storage_plan.content.holds
    size = _bytes(supply.bytes)
    many = UNKNOWN if supply.units is None else format_count(mean(supply.units))
    yield TextPart(f"{supply.format.name}: {size} for {many} {counted}, {shuffling(storage_plan)}", "strong")
    waits = f"wait {format_seconds(arrival.waiting_seconds)}" if arrival.waiting_seconds else "never wait"
    text = f"{format_seconds(arrival.reading_seconds)} reading, {format_seconds(arrival.decoding_seconds)} decoding"
    yield TextPart(f"A step of {format_seconds(arrival.working_seconds)}: {text}; devices {waits} for data")
    every = f"every {format_seconds(checkpoints.interval_seconds)}"
    best = f"{format_seconds(checkpoints.best_interval_seconds)} loses least"
    stall = f"{format_percent(checkpoints.stall_share, 2)} of the time"
    yield TextPart(
        f"Checkpoints: {checkpoints.kept} of {format_bytes(checkpoints.bytes)} on {checkpoints.tier.name}, "
        f"{every} ({best}), saved in {format_seconds(checkpoints.save_seconds)}: {stall}"
    )
    for_a_while = format_bytes(sum(storage_plan.temporary.values()))
    yield TextPart(f"On disk: {format_bytes(disk_bytes(storage_plan))}, of which {for_a_while} only for a while")
    yield TextPart()
    heads = ("source", "a node reads", "it takes", "enough", "copied first in")
    yield table_part(
        heads,
        (
            (
                source.tier.name,
                format_bandwidth(source.bandwidth),
                format_bandwidth(source.needed),
                "yes" if source.is_enough else "no",
                "" if source.copy_seconds is None else format_seconds(source.copy_seconds),
            )
            for source in storage_plan.sources
        ),
        right=(1, 2, 4),
    )
    if storage_plan.egress:
        yield TextPart()
        yield table_part(
            ("leaving", "copied once", "streamed", "price"),
            (
                (entry.provider, format_money(entry.usd_once), format_money(entry.usd_streamed), entry.words)
                for entry in storage_plan.egress
            ),
            right=(1, 2),
        )
    yield TextPart()
    yield table_part(
        ("cache of a node", "must hold", "room", "holds the data", "one pass"),
        (
            (
                cache.tier.name,
                _bytes(None if supply.bytes is None else mean(supply.bytes)),
                "not known for this node" if cache.room is None else _bytes(cache.room),
                _yes(_holds(storage_plan, cache.room)),
                UNKNOWN if cache.pass_seconds is None else format_seconds(cache.pass_seconds),
            )
            for cache in storage_plan.caches
        ),
        right=(1, 2, 4),
    )
    yield TextPart()
    yield table_part(("main memory of a node", "bytes"), _memory_rows(storage_plan), right=(1,))
    if storage_plan.phases:
        yield TextPart()
        yield table_part(
            ("phase", "tokens", "step", "takes", "fits", "changes"),
            (
                (
                    phase.phase.name,
                    format_count(phase.tokens),
                    format_seconds(phase.step_seconds),
                    format_seconds(phase.seconds),
                    _yes(phase.fits),
                    " ".join(f"{key}={value}" for key, value in phase.phase.changes.items()),
                )
                for phase in storage_plan.phases
            ),
            right=(1, 2, 3),
        )
    yield TextPart()
    yield from (TextPart(line, "quiet") for line in _budget_lines(storage_plan))
    yield from (TextPart(f"assumed: {line}", "quiet") for line in supply.assumed)


def shuffling(storage_plan: StoragePlan) -> str:
    """Say among how many samples the next one is drawn."""
    buffer = storage_plan.answer.plan.data.shuffle_buffer
    if buffer == 0:
        return "shuffled as a whole"
    return "shuffled in a buffer" if buffer == "auto" else f"shuffled in a buffer of {format_count(float(buffer))}"


def disk_bytes(storage_plan: StoragePlan) -> float:
    """Return the bytes of disk that a training takes at its height: data where they are kept there, checkpoints."""
    here = storage_plan.supply.tier.place == "local" or storage_plan.answer.plan.data.cache in ("nvme", "disk")
    data = mean(storage_plan.supply.bytes or 0.0) if here else 0.0
    source = storage_plan.temporary.get("source_data", 0.0)
    return data + source + storage_plan.checkpoints.kept_bytes


def _memory_rows(storage_plan: StoragePlan) -> Iterator[tuple[str, str]]:
    memory = storage_plan.memory
    parts = {
        "loader workers": memory.workers,
        "batches read ahead": memory.prefetched,
        "pinned batches": memory.pinned,
        "shuffle buffer": memory.shuffle_buffer,
        "cache of the data": memory.cache,
        "offloaded by the training": memory.offloaded,
    }
    yield from ((name, format_bytes(size)) for name, size in parts.items() if size)
    yield "together", f"{format_bytes(memory.total)} of {_bytes(memory.capacity)}"


def _budget_lines(storage_plan: StoragePlan) -> Iterator[str]:
    budget, counted = storage_plan.budget, storage_plan.content.holds
    if budget.in_memory is not None:
        yield f"Main memory of a node holds {format_count(budget.in_memory)} {counted} in this format."
    if budget.on_disk is not None and budget.worthwhile is not None:
        room, worth = format_count(budget.on_disk), format_count(budget.worthwhile)
        yield f"The disk has room for {room} {counted}: enough for {worth}, {budget.repeats:g} passes being worthwhile."


def _holds(storage_plan: StoragePlan, room: float | None) -> bool | None:
    size = storage_plan.supply.bytes
    return None if room is None or size is None else mean(size) <= room


def _bytes(size: Number | None) -> str:
    return UNKNOWN if size is None else format_bytes(mean(size))


def _yes(value: bool | None) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"


_SHARES = (0.5, 0.95, 0.99)
_HEADS = ("patterns", "a second", "mean", "median", "95 %", "99 %")


def database_bench_as_dict(bench: DatabaseBench) -> dict[str, object]:
    """Return what was measured as plain data, under the names that scripts rely on."""
    question, size = bench.question, bench.size
    return {
        "backend": question.backend,
        **picked(bench, "version", "place", "how"),
        **picked(question, "documents", "chunk"),
        "write_per_second": bench.write_per_second,
        "single_write_per_second": bench.insert.per_second,
        "read_per_second": bench.query.per_second,
        "insert_ms": _latency(bench.insert),
        "query_ms": _latency(bench.query),
        "bytes": size.total_bytes,
        "index_bytes": size.index_bytes,
        **picked(bench, "content_bytes", "overhead", "estimated_bytes"),
        "estimate_error": bench.error,
        "calibrated_on": bench.calibrated_on,
    }


def database_bench_parts(bench: DatabaseBench) -> Iterator[Part]:
    """Yield how fast a database stored and found patterns, and its size beside the estimate."""
    question, size = bench.question, bench.size
    count = format_count(question.documents)
    yield TextPart(f"{bench.version} in {bench.place}: {count} patterns of {question.chunk} words", "strong")
    rows = (
        ("stored, 100 in one go", format_count(bench.write_per_second), "", "", "", ""),
        ("stored one by one", format_count(bench.insert.per_second), *_times(bench.insert)),
        ("found by name", format_count(bench.query.per_second), *_times(bench.query)),
    )
    yield table_part(_HEADS, rows, right=range(1, len(_HEADS)))
    yield TextPart(f"Stored: {bench.how}", "quiet")
    if bench.error is None or bench.overhead is None:
        yield TextPart("The database reports no size.", "quiet")
        return
    index = "" if size.index_bytes is None else f", {format_bytes(size.index_bytes)} of it indexes"
    yield TextPart(f"On disk: {format_bytes(size.total_bytes)}{index}; what patterns say, and {_added(bench.overhead)}")
    estimated, side = format_bytes(bench.estimated_bytes), "more" if bench.error > 0 else "less"
    text = f"{estimated}, {format_percent(abs(bench.error), 1)} {side}"
    yield TextPart(f"Estimated from {format_count(bench.calibrated_on)} of them: {text}")


def _added(overhead: float) -> str:
    share = format_percent(abs(overhead))
    return f"{share} on top" if overhead >= 0 else f"{share} less by compression"


def _latency(latency: Latency) -> dict[str, float]:
    return {"mean": latency.mean_ms, **{f"p{100 * share:.0f}": latency.ms(share) for share in _SHARES}}


def _times(latency: Latency) -> tuple[str, ...]:
    return tuple(format_seconds(entry / 1000) for entry in _latency(latency).values())


_LEARNING_HEADS = ("resource", "time", "purpose", "source")
_RATES_OF = {"database": ("found_patterns", "stored_patterns"), "memory": ("random_reads",), "disk": ("disk_write",)}


def learning_as_dict(learning_forecast: LearningForecast) -> dict[str, object]:
    """Return what would hold learning up as plain data."""
    question = learning_forecast.storage.question
    return {
        **picked(question, "samples", "tokens", "chunk", "levels"),
        "bottleneck": learning_forecast.kind,
        **picked(learning_forecast, "confidence", "evidence", "seconds"),
        "times": {time.kind: time.seconds for time in learning_forecast.times},
        "bytes": float(learning_forecast.storage.total_bytes.value),
        "free_bytes": learning_forecast.free_bytes,
        "tier": learning_forecast.tier,
        "thresholds": dict(learning_forecast.thresholds),
        "rates": {name: asdict(rate) for name, rate in learning_forecast.rates.items()},
    }


def learning_parts(learning_forecast: LearningForecast) -> Iterator[Part]:
    """Yield what would hold learning up, and the time of each resource."""
    question = learning_forecast.storage.question
    samples, chunk = (format_count(float(sample)) for sample in (question.samples, question.chunk))
    job = f"{samples} samples, chunks of {chunk}, {question.levels} levels"
    yield TextPart(
        f"Predicted bottleneck of learning {job}: {learning_forecast.kind}, {learning_forecast.evidence}", "strong"
    )
    rows = [
        (
            time.kind,
            format_seconds(time.seconds),
            time.evidence,
            "; ".join(
                dict.fromkeys(str(learning_forecast.rates[name].provenance) for name in _RATES_OF.get(time.kind, ()))
            ),
        )
        for time in learning_forecast.times
    ]
    yield table_part(_LEARNING_HEADS, rows, right=(1,))
    shares = learning_forecast.thresholds
    text = f"a database may fill {format_percent(shares['memory_share'])} of main memory"
    free = "" if learning_forecast.free_bytes is None else f", {format_bytes(learning_forecast.free_bytes)}"
    text += f" and {format_percent(shares['disk_share'])} of the free disk{free}"
    yield TextPart(f"Tier {learning_forecast.tier}: {text}", "quiet")
