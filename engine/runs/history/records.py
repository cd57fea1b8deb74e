"""Entries of the history and where they are kept: runs and estimates, with what was predicted and what was measured."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

from capacity_tui.engine.cluster import device_key
from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.estimate import METRICS, Answer, read_figure
from capacity_tui.engine.extras import URIS, without_password
from capacity_tui.engine.files import NOWHERE, data_folder, lock_file, make_folder, typed_path, writing
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


ESTIMATES_KEPT = 10_000  # Of more estimates than these, every other one of the older half is dropped


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """A query of entries: those that meet every given condition.

    Attributes:
        kinds: of these kinds; of any where empty.
        model: whose plan's model has this in its name.
        hardware: whose hardware has this in its name.
        since: started at this time or later, ISO 8601.
        device: of the device that goes by this key.
        measured: whether only those with something measured.
        most: at most this many, the newest; 0 for all.
    """

    kinds: tuple[Kind, ...] = ()
    model: str = ""
    hardware: str = ""
    since: str = ""
    device: str = ""
    measured: bool = False
    id_starts: str = ""
    most: int = 0


class Store(Protocol):
    """Keeps entries. Every method raises a StorageError where the store cannot be used."""

    notes: list[str]  # what the user should know of what happened to the store, one line each

    def add(self, records: Sequence[RunRecord]) -> None:
        """Store entries; one whose id is there already stays as it is, so that storing them again does no harm.

        An estimate that says what the newest of the same plan says is left out.
        """

    def find(self, run_filter: WantedRuns) -> tuple[RunRecord, ...]:
        """Return entries, the newest first."""

    def forget(self, ids: Sequence[str]) -> int:
        """Remove entries, and return how many were there."""


VARIABLE = "CAPACITY_TUI_HISTORY"
"""Environment variable that names another file or a MongoDB URI, or turns the history ``off``."""

OFF = "off"
FILE = "history.sqlite"
_DIGITS = 8


class HistoryPlace(NamedTuple):
    """Where the history is kept."""

    file: Path  # the SQLite file; next to it waits what could not be stored yet
    uri: str = ""  # of a MongoDB in its place; empty for the file
    is_on: bool = True  # whether estimates and runs are kept by themselves; what the user hands over is kept anyway

    @property
    def waiting(self) -> Path:
        """The file in which entries wait until they are stored."""
        return self.file.with_suffix(".waiting.jsonl")

    @property
    def label(self) -> str:
        """The place in words, without a password."""
        return without_password(self.uri) if self.uri else str(self.file)


Where: TypeAlias = HistoryPlace | str | Path | None


def history_place(where: Where = None, setting: str = "") -> HistoryPlace:
    """Return where the history is kept.

    Args:
        where: a place, a file, a MongoDB URI, or ``off``; by default that of the environment, else the user's file.
        setting: what the user's settings say, where nothing else does.
    """
    if isinstance(where, HistoryPlace):
        return where
    named = str(where or os.environ.get(VARIABLE) or setting)
    usual = data_folder() / FILE
    if not named or named == OFF:
        # A user without a home has nowhere to keep anything, and needs no note of it at every command.
        return HistoryPlace(usual, is_on=not named and not usual.is_relative_to(NOWHERE))
    if named.lower().startswith(URIS):
        digest = hashlib.blake2b(named.encode(), digest_size=_DIGITS // 2).hexdigest()
        return HistoryPlace(usual.with_name(f"history-{digest}.sqlite"), named)
    return HistoryPlace(typed_path(named))


_FILE_MODE = 0o600
_ATTEMPTS = 100


def append(path: Path, record: RunRecord, *, lasting: bool) -> int:
    """Append an entry as one write, and return how long the file is now; StorageError leaves the file as it was.

    Args:
        lasting: whether to wait until it would outlast a power cut; it outlasts the program in any case.
    """
    content = (json.dumps(as_data(record), separators=(",", ":")) + "\n").encode()
    make_folder(path.parent)
    with writing(path), _opened(path) as handle:
        before = os.fstat(handle).st_size
        if os.write(handle, content) != len(content):
            os.ftruncate(handle, before)
            raise StorageError("the disk is full", hint="free some space", place=Place(str(path)))
        if lasting:
            os.fsync(handle)
        return before + len(content)


@contextmanager
def taken(path: Path) -> Iterator[tuple[RunRecord, ...]]:
    """Give the entries that wait, oldest file first, and remove them once the block ends well.

    What cannot be read as an entry is kept in a separate file. Several programs may take at once: each entry is given
    to one of them, or once more if the one before was ended amid its block.
    """
    _put_away(path)
    handles, files, records = [], [], []
    try:
        for file in sorted(path.parent.glob(f"{path.stem}.taken-*")):
            try:
                handle = os.open(file, os.O_RDONLY)
            except FileNotFoundError:
                continue
            handles.append(handle)
            try:
                lock_file(handle, waits=False)
            except BlockingIOError:
                continue
            except OSError:
                pass  # a file system without locks: taken twice, an entry is still stored once
            if not _is_still(file, handle):  # another program has stored it since
                continue
            files.append(file)
            records += _entries(file)
        yield tuple(records)
        for file in files:
            file.unlink(missing_ok=True)
    finally:
        for handle in handles:
            os.close(handle)


def reason_of(error: Exception) -> str:
    """Return why entries have to wait, in one line."""
    return error.one_line() if isinstance(error, CapacityError) else str(error)


def _put_away(path: Path) -> None:
    """Give the file another name, so that nothing is appended to it any more."""
    with suppress(FileNotFoundError):  # nothing waits, or another program has put it away since
        if path.stat().st_size:
            with _opened(path):
                path.rename(path.with_name(f"{path.stem}.taken-{new_id()}"))


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the file to append to it, locked, and sure to be the one of that name."""
    for _ in range(_ATTEMPTS):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)
        try:
            with suppress(OSError):  # a file system without locks: a single write is whole all the same
                lock_file(handle, waits=True)
            if _is_still(path, handle):
                yield handle
                return
        finally:
            os.close(handle)
    raise StorageError("is locked by another program", hint="try again", place=Place(str(path)))


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _entries(file: Path) -> list[RunRecord]:
    """Return the entries of a file; invalid lines go to a file next to it."""
    records, bad = [], []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            records.append(of_data(json.loads(line)))
        except ValueError:
            bad.append(line)
    if bad:
        damaged = file.with_name(file.name.replace(".taken-", ".damaged-"))
        damaged.write_text("".join(f"{line}\n" for line in bad), encoding="utf-8")
    return records
