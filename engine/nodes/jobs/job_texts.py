"""Jobs as data of scripts, and as parts of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict

from capacity_tui.engine.nodes.jobs.job_request import TRAIN_TIME, JobRequest, QueuedJob
from capacity_tui.engine.nodes.jobs.proposal import JobProposal, Offer, limit_text
from capacity_tui.engine.nodes.jobs.submitted_jobs import JobList, SubmittedJob
from capacity_tui.engine.present import Part, TextPart, table_part
from capacity_tui.engine.runs.history import Ends
from capacity_tui.engine.units import format_bytes, format_money, format_percent, format_power, format_seconds

OFFER_HEADS = ("partition", "takes it", "start", "time limit", "turns", "$/h", "cost")
JOB_HEADS = ("job", "name", "state", "partition", "nodes", "ran", "predicted", "of it", "start", "why")
_NOTHING = "n/a"


def proposal_as_dict(proposal: JobProposal) -> dict[str, object]:
    """Return a job as it would be submitted, or was, as plain data."""
    chosen = proposal.chosen
    return {
        "engine": proposal.engine,
        "job": proposal.job or None,
        "partition": None if chosen is None else chosen.partition,
        "request": _request(proposal.request),
        "predicted": {key: dict(ends) for key, ends in proposal.request.predicted.items()},
        "partitions": [_offer(offer) for offer in proposal.offers],
        "script": proposal.script or None,
        "remarks": list(proposal.remarks),
    }


def proposal_parts(proposal: JobProposal, *, with_script: bool = True) -> Iterator[Part]:
    """Yield the script where asked for, the resources it requests, and the offer of each partition."""
    request = proposal.request
    if proposal.script and with_script:
        yield TextPart(proposal.script.rstrip("\n"))
        yield TextPart()
    yield TextPart(_asks(request), "strong")
    if TRAIN_TIME in request.predicted:
        yield TextPart(f"predicted: {_range_text(request.predicted[TRAIN_TIME], format_seconds)}")
    if proposal.offers:
        yield table_part(OFFER_HEADS, map(_offer_row, proposal.offers), (4, 5), (0, 1))
        for source in dict.fromkeys(offer.cost.source for offer in proposal.offers):
            yield TextPart(f"cost: {source}", "quiet")
    for remark in proposal.remarks:
        yield TextPart(remark)
    if proposal.job:
        yield TextPart(f"submitted as job {proposal.job}", "strong")
    elif proposal.engine != "hosts" and proposal.script:
        yield TextPart("nothing was submitted: --submit does", "quiet")


def jobs_as_dict(known: JobList) -> dict[str, object]:
    """Return jobs as plain data, predicted and actual figures where they were submitted from here."""
    return {
        "jobs": [_job(job, known.kept.get(job.id), known.watts.get(job.id)) for job in known.jobs],
        "notes": list(known.notes),
    }


def jobs_parts(known: JobList) -> Iterator[Part]:
    """Yield jobs as a table, predicted and actual figures where they were submitted from here."""
    if not known.jobs:
        yield TextPart("no jobs")
    else:
        yield table_part(JOB_HEADS, [_job_row(job, known.kept.get(job.id)) for job in known.jobs], (4,), (0, 2))
    for job, watts in known.watts.items():
        yield TextPart(f"job {job}: its nodes draw {format_power(watts)} now", "quiet")
    for note in known.notes:
        yield TextPart(note, "quiet")


def job_line(job: QueuedJob) -> str:
    place = f" on {job.on_nodes}" if job.on_nodes else ""
    why = f" ({job.reason})" if job.reason and not job.on_nodes else ""
    ran = f", ran {format_seconds(job.seconds)}" if job.seconds else ""
    again = f", turn {job.turns}" if job.turns > 1 else ""
    starts = f", starts {job.start}" if job.start and job.state == "PENDING" else ""
    return f"job {job.id}: {job.state.lower().replace('_', ' ')}{why}{place}{starts}{ran}{again}"


def _request(request: JobRequest) -> dict[str, object]:
    data = asdict(request)
    data.pop("predicted")
    data["checkpoints"] = None if request.checkpoints is None else str(request.checkpoints)
    return data


def _offer(offer: Offer) -> dict[str, object]:
    return {
        "name": offer.partition,
        "takes": not offer.why_not,
        "why_not": offer.why_not or None,
        "start": offer.start,
        "nodes": offer.on_nodes or None,
        "most_seconds": offer.most_seconds,
        "turns": None if offer.why_not else offer.turns,
        "usd_per_hour": offer.cost.usd_per_hour,
        "usd": dict(offer.cost.usd) or None,
        "price_source": offer.cost.source,
    }


def _job(job: QueuedJob, submitted: SubmittedJob | None, watts: float | None) -> dict[str, object]:
    entry = None if submitted is None else submitted.measured(job)
    return {
        **asdict(job),
        "over": job.is_over,
        "watts": watts,
        "plan": None if entry is None else entry.model,
        "predicted": {} if entry is None else {key: dict(ends) for key, ends in entry.predicted.items()},
        "actual": {} if entry is None else dict(entry.actual),
        "ratio": {} if entry is None else entry.ratio,
    }


def _asks(request: JobRequest) -> str:
    parts = [f"{request.nodes} node" if request.nodes == 1 else f"{request.nodes} nodes"]
    if request.is_on_gpus:
        parts.append(f"{request.per_node} GPUs each")
    if request.whole_nodes:
        parts.append("whole nodes")
    elif request.processors_per_node:
        parts.append(f"{request.processors_per_node} processors each")
    if request.memory_per_node_bytes and not request.whole_nodes:
        parts.append(f"{format_bytes(request.memory_per_node_bytes)} of memory each")
    limit = "" if request.limit_seconds is None else f", up to {format_seconds(request.limit_seconds)}"
    return f"asks for {', '.join(parts)}{limit}"


def _offer_row(offer: Offer) -> tuple[str, ...]:
    if offer.why_not:
        return offer.partition, f"no: {offer.why_not}", _NOTHING, limit_text(offer.most_seconds), "", "", ""
    cost = offer.cost
    return (
        offer.partition,
        "yes",
        offer.start or _NOTHING,
        limit_text(offer.most_seconds),
        str(offer.turns),
        _NOTHING if cost.usd_per_hour is None else format_money(cost.usd_per_hour),
        _range_text(cost.usd, format_money) if cost.usd else _NOTHING,
    )


def _job_row(job: QueuedJob, submitted: SubmittedJob | None) -> tuple[str, ...]:
    entry = None if submitted is None else submitted.measured(job)
    predicted = None if entry is None else entry.predicted.get(TRAIN_TIME, {}).get("value")
    ratio = None if entry is None else entry.ratio.get(TRAIN_TIME)
    return (
        job.id,
        job.name,
        job.state.lower().replace("_", " "),
        job.partition,
        str(job.nodes),
        format_seconds(job.seconds) if job.seconds else "",
        "" if predicted is None else format_seconds(predicted),
        "" if ratio is None else format_percent(ratio),
        job.start or "",
        job.reason,
    )


def _range_text(ends: Ends, text: Callable[[float], str]) -> str:
    shown = {name: text(value) for name, value in ends.items()}
    if "low" in shown and shown["low"] != shown["high"]:
        return f"{shown['value']} ({shown['low']} - {shown['high']})"
    return shown.get("value", _NOTHING)
