"""One entry of the history: a run or an estimate, with what was predicted and what was measured."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.cluster import device_key
from capacity_tui.engine.estimate import METRICS, Answer, read_figure
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import DETECTED
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.uncertainty import Interval

Kind: TypeAlias = Literal["estimate", "run", "profile"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Ends: TypeAlias = Mapping[str, float]
_ID_BYTES = 5
_FINGERPRINT_BYTES = 10


def new_id() -> str:
    """Return an id that no other entry has, short enough to type."""
    return os.urandom(_ID_BYTES).hex()


def now() -> str:
    """Return the time, UTC, as entries are dated."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def this_host() -> dict[str, object]:
    """Return what a machine is known by: its name on the network, and its system."""
    host = platform.uname()
    return {"name": host.node, "system": host.system}


@dataclass(frozen=True)  # without slots, which would take as long again to make: `plan` waits for that
class RunRecord:
    """A run or an estimate."""

    # ``estimate`` of a plan that was not run, ``run`` that was watched or reported, ``profile`` of a command
    kind: Kind
    # as data of a plan file, nothing open; None where a command ran without one
    plan: Mapping[str, object] | None = None
    # where: ``name`` of the host, ``system``, ``hardware`` in words
    machine: Mapping[str, object] = field(default_factory=dict)
    # figures by result key, each ``{value, low, high}``; ``{value}`` where no range is known
    predicted: Mapping[str, Ends] = field(default_factory=dict)
    # what was measured, by the same keys and in the same units
    actual: Mapping[str, float] = field(default_factory=dict)
    # key that the device's measurements go by; empty where it is not known. Runs of one device calibrate it.
    device: str = ""
    # further plain data, such as ``command``, ``exit_code``, ``seconds``
    details: Mapping[str, object] = field(default_factory=dict)
    started: str = field(default_factory=now)  # time, UTC, ISO 8601
    id: str = field(default_factory=new_id)

    @property
    def ratio(self) -> dict[str, float]:
        """Measured over predicted, of each figure that is both."""
        return {
            key: value / ends["value"]
            for key, value in self.actual.items()
            if (ends := self.predicted.get(key, {})) and ends.get("value")
        }

    @property
    def model(self) -> str:
        """Name of the plan's model, empty without one."""
        return self._named("model")

    @property
    def hardware(self) -> str:
        """What it ran on in words: the plan's name of it, the device's, the machine's."""
        names = (self._named("hardware"), str(self.machine.get("hardware", "")), self.device)
        return " ".join(dict.fromkeys(name for name in names if name))

    @property
    def fingerprint(self) -> str:
        """The same for equal plans, empty without one."""
        if self.plan is None:
            return ""
        import hashlib  # noqa: PLC0415 - an estimate that is only put down to be stored later needs none

        text = json.dumps(self.plan, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=_FINGERPRINT_BYTES).hexdigest()

    def repeats(self, other: RunRecord) -> bool:
        """Return whether it says of the same plan what another entry says."""
        values = (self.fingerprint, dict(self.predicted), dict(self.machine))
        return values == (other.fingerprint, dict(other.predicted), dict(other.machine))

    def _named(self, section: str) -> str:
        table = (self.plan or {}).get(section)
        return str(table.get("name") or "") if isinstance(table, Mapping) else ""


def as_data(record: RunRecord) -> dict[str, object]:
    """Return an entry as plain data, under the names that scripts rely on."""
    return {
        "id": record.id,
        "kind": record.kind,
        "started": record.started,
        "plan": _plain(record.plan),
        "machine": _plain(record.machine),
        "device": record.device,
        "predicted": {key: _finite(ends) for key, ends in record.predicted.items()},
        "actual": _finite(record.actual),
        "ratio": _finite(record.ratio),
        "details": _plain(record.details),
    }


def _plain(value: object) -> object:
    """Return what JSON can hold, whatever a script hands over."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _finite(figures: Mapping[str, float]) -> dict[str, float]:
    return {key: float(number) for key, number in figures.items() if math.isfinite(number)}


def of_data(data: object) -> RunRecord:
    """Return the entry that plain data describe; raises ValueError if they describe none."""
    if not isinstance(data, Mapping) or not {"id", "started"} <= data.keys():
        raise ValueError("no entry of a history: it has an id, and says when it started")
    datetime.fromisoformat(str(data["started"]))
    return record_of_data(RunRecord, data)


def history_entry(
    answer: Answer,
    kind: Kind = "estimate",
    actual: Mapping[str, float] | None = None,
    details: Mapping[str, object] | None = None,
    started: str = "",
) -> RunRecord:
    """Return the entry of a plan: with what was measured, that of a run.

    Args:
        actual: figures that were measured, by result key, in the units of the results.
        started: time, UTC, ISO 8601; now by default.
    """
    return RunRecord(
        kind=kind,
        plan=answer.plan.plain_data(),
        machine={**this_host(), "hardware": _hardware(answer)},
        predicted=_predicted(answer),
        actual=actual or {},
        device=device_key(answer.resolved.cluster.device),
        details=details or {},
        started=started or now(),
    )


def _hardware(answer: Answer) -> str:
    """Return the devices in words; what was detected by its own name."""
    return answer.estimate.basis.devices.replace(DETECTED, answer.resolved.cluster.device.name)


def _predicted(answer: Answer) -> dict[str, Ends]:
    figures = {}
    for key, metric in METRICS.items():
        value = read_figure(answer.estimate, key)
        if value is None:
            continue
        ends = _ends(value, whole=metric.unit == "B")
        if all(map(math.isfinite, ends.values())):
            figures[key] = ends
    return figures


def _ends(value: Number | Interval, *, whole: bool) -> Ends:
    named = (
        {"value": value.value, "low": value.low, "high": value.high}
        if isinstance(value, Interval)
        else {"value": value}
    )
    ends = {name: mean(number) for name, number in named.items()}
    return {name: float(round(number)) if whole and math.isfinite(number) else number for name, number in ends.items()}
