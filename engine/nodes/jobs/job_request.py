"""What a plan asks of whatever queues jobs: nodes, devices, processors, memory, time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.observe.history import Ends, history_entry
from capacity_tui.engine.verdict import Verdict

TRAIN_TIME = Figure.ESTIMATED_TRAIN_TIME_SECONDS
START_SECONDS = 600.0
"""Until the first step: imports, rendezvous, reading weights from a shared disk; generous, since a limit that is too
short loses the run and one that is too long only costs a little of its place in the queue."""
MARGIN = 1.1
"""Beyond the upper end of the predicted range, for evaluations and checkpoints that the plan does not name."""
GRACE_SECONDS = 300
"""Seconds before the end of a job's time at which it is signalled to save and end; Slurm's limit is 65 535."""
SHORTEST_TURN_SECONDS = START_SECONDS + GRACE_SECONDS
"""A turn that is no longer than this gets nothing done for sure."""
_PROCESSES_OF_A_RANK = 2  # the loop itself and the thread that feeds the device
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class JobRequest:
    """What a job asks for.

    Attributes:
        device: the plan's device, by its id and its name in the catalogue.
        is_on_gpus: whether its processes each need one; else processors do the work.
        per_node: processes, each with a device, on one of them.
        whole_nodes: whether nothing of its nodes is left for others; by the nodes of a plan until those of a partition
            are known.
        processors_per_node: at least, where others share the node; None for whatever there is.
        memory_per_node_bytes: host memory at least; None for whatever there is.
        predicted: figures of the plan by result key, with their ranges.
        limit_seconds: after which it may be ended; None where the plan's length is open.
        checkpoints: where it leaves checkpoints and resumes from; None where unknown.
        most_restarts: as the plan's ``recovery`` says.
        has_price: whether the plan itself says what its hardware costs: an hour's price, or instances.
    """

    name: str
    device: str
    is_on_gpus: bool
    nodes: int
    per_node: int
    whole_nodes: bool
    processors_per_node: int | None = None
    memory_per_node_bytes: float | None = None
    predicted: Mapping[str, Ends] = field(default_factory=dict)
    limit_seconds: float | None = None
    checkpoints: Path | None = None
    most_restarts: int = 0
    has_price: bool = False

    @property
    def resumes(self) -> bool:
        """Whether a job that was ended resumes where it stopped."""
        return self.checkpoints is not None

    @property
    def devices(self) -> int:
        """Devices of all nodes."""
        return self.nodes * self.per_node

    def turns(self, most_seconds: float | None) -> int:
        """Return in how many turns it runs where a job may run so long; each of them starts and saves."""
        if most_seconds is None or self.limit_seconds is None or not self.is_cut(most_seconds):
            return 1
        useful = max(1.0, most_seconds - SHORTEST_TURN_SECONDS)
        return max(2, int(-(-(self.limit_seconds - START_SECONDS) // useful)))

    def is_cut(self, most_seconds: float) -> bool:
        """Return whether it is longer than a job may be."""
        return self.limit_seconds is not None and self.limit_seconds > most_seconds


def request_of(
    answer: Answer,
    name: str = "",
    limit_seconds: float | None = None,
    checkpoints: Path | None = None,
    *,
    may_fail: bool = False,
) -> JobRequest:
    """Return what an estimated plan asks for.

    Args:
        name: of the job; by default from model and task.
        limit_seconds: of its time; from the upper end of the predicted range by default.
        may_fail: whether a plan that does not fit is taken all the same.

    Raises:
        PlanError: it does not fit, so that a job would only fail, or it does not fill its nodes evenly.
    """
    plan, cluster = answer.plan, answer.resolved.cluster
    if answer.estimate.verdict is Verdict.DOES_NOT_FIT and not may_fail:
        raise PlanError(
            "the plan does not fit, so its job would run out of memory",
            answer.estimate.reason,
            hint="`capacity-tui plan` says what would make it fit; --force submits it all the same",
        )
    devices, in_node = round(mean(cluster.devices)), round(mean(cluster.per_node))
    per_node = min(devices, plan.hardware.per_node or in_node or devices)
    if devices % per_node:
        raise PlanError(
            f"{devices} devices do not fill nodes of {per_node}",
            hint=f"plan for {devices // per_node * per_node} or {(devices // per_node + 1) * per_node} devices",
        )
    predicted = history_entry(answer).predicted
    longest = predicted.get(TRAIN_TIME, {})
    high = longest.get("high", longest.get("value"))
    limit = limit_seconds if limit_seconds is not None else None if high is None else high * MARGIN + START_SECONDS
    workers = plan.data.workers if isinstance(plan.data.workers, int) else 0
    is_on_gpus = cluster.device.kind != "cpu"
    whole_nodes = not is_on_gpus or per_node >= in_node > 1
    host = answer.estimate.memory.host_bytes
    held = mean(host) if is_on_gpus else mean(answer.estimate.memory.per_device_bytes.value)
    return JobRequest(
        name=safe_name(name or "-".join(part for part in (plan.model.name, plan.task) if part)),
        device=" ".join(dict.fromkeys((cluster.device.id, cluster.device.name))),
        is_on_gpus=is_on_gpus,
        nodes=devices // per_node,
        per_node=per_node,
        whole_nodes=whole_nodes,
        processors_per_node=per_node * (_PROCESSES_OF_A_RANK + workers) if is_on_gpus else None,
        memory_per_node_bytes=held * per_node or None,
        predicted=predicted,
        limit_seconds=limit,
        checkpoints=checkpoints,
        most_restarts=int(plan.recovery.max_restarts) if isinstance(plan.recovery.max_restarts, int) else 0,
        has_price=plan.pricing.usd_per_hour is not None or bool(cluster.rented),
    )


def safe_name(name: str) -> str:
    """Return a name of a job or file that no shell, no queue and no folder understands otherwise."""
    return _STRANGE.sub("-", name).strip("-.")[:60] or "capacity"
