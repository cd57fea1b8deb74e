"""The fleet guide's migration analyzer by its names, and its promises of moving checked against current prices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from capacity_tui.engine.catalog import Catalog, load_catalog, parse_shipped
from capacity_tui.engine.catalog.fleet_files import fleet_files_below, guide_instances
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
from capacity_tui.engine.fleet import sizes_in_precisions
from capacity_tui.engine.fleet.migration import (
    Alternative,
    JobKind,
    JobWords,
    Migration,
    WorkloadRun,
    migrate,
    question_of_job,
    run_workloads,
    saved_percent,
    saved_usd,
    workloads_of,
)
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present import Part, TextPart, parts_as_markdown, table_part, to_builtins, write_parts
from capacity_tui.engine.present.fleet import migration_as_dict, runs_as_dict, write_migration, write_runs
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval

Promised: TypeAlias = Literal["saving_percent", "performance_ratio", "spot_percent"]


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise."""

    id: str
    name: str  # what is moved where
    job: JobWords  # what runs now
    figure: Promised  # what is promised of
    least: float  # how much of it at least
    most: float | None  # how much at most; None for any amount
    source: str  # who promises it


@dataclass(frozen=True, slots=True)
class CheckedPromise:
    """A promise with the best machine for it."""

    promise: Promise
    # the machine that comes nearest to it; None where none holds the job or has a price
    best: Alternative | None = None
    value: Interval | None = None  # what that machine brings of what is promised
    # by how much that is below what is promised at least; negative where it is above what is promised at most; 0 where
    # the promise holds; None where no machine has a value
    misses: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the machine brings at least what is promised."""
        return self.misses is not None and self.misses <= 0


@cache
def promises() -> tuple[Promise, ...]:
    rows = parse_shipped("promises.yaml")
    return tuple(_promise(key, row) for key, row in rows.items())


def check_promises(
    wanted: Iterable[Promise] | None = None,
    catalog: Catalog | None = None,
    stopped: Callable[[], bool] = lambda: False,
    shown: Callable[[str, Migration], None] | None = None,
) -> Iterator[CheckedPromise]:
    """Check promises one after the other, by default all; ``shown`` gets the id of the one at work and its answer."""
    facts = catalog or load_catalog()
    for promise in promises() if wanted is None else wanted:
        if stopped():
            return
        show = None if shown is None else partial(shown, promise.id)
        answer = migrate(question_of_job(promise.job, facts), facts, None, show)
        known = [
            (machine, value)
            for machine in answer.alternatives
            if (value := _promised_value(promise.figure, machine)) is not None
        ]
        if not known:
            yield CheckedPromise(promise)
            continue
        best, value = max(known, key=lambda pair: mean(pair[1].value))
        yield CheckedPromise(promise, best, value, _misses(promise, mean(value.value)))


def _promised_value(figure: Promised, machine: Alternative) -> Interval | None:
    if figure == "saving_percent":
        return machine.saving_percent
    if figure == "performance_ratio":
        return machine.performance_ratio
    month, spot = machine.usd_month, machine.usd_month_spot
    if month is None or spot is None:
        return None
    return Interval(*(mean(saved_percent(saved_usd(month, end), month)) for end in (spot.value, spot.high, spot.low)))


def _misses(promise: Promise, value: float) -> float:
    if value < promise.least:
        return promise.least - value
    return 0.0 if promise.most is None else min(0.0, promise.most - value)


def _promise(key: str, row: Mapping[str, Any]) -> Promise:
    job, least, most = row["job"], float(row["least"]), row.get("most")
    words = JobWords(
        job["instance"],
        job["model"],
        job["kind"],
        devices=job["gpus"],
        precision=job["precision"],
        instances=tuple(row["to"]),
    )
    return Promise(key, row["name"], words, row["figure"], least, None if most is None else float(most), row["source"])


_FIGURES: Mapping[Promised, str] = {
    "saving_percent": "% saved",
    "performance_ratio": "x as fast",
    "spot_percent": "% off on spot",
}
_HEADS = ("promise", "promised", "found", "range", "holds", "difference", "with")


def promises_as_dict(checked: Sequence[CheckedPromise]) -> dict[str, object]:
    return {"promises": [_as_dict(promise) for promise in checked]}


def promises_parts(checked: Sequence[CheckedPromise]) -> Iterator[Part]:
    """Yield checked promises as a table, and how many hold."""
    holding = sum(promise.holds for promise in checked)
    yield TextPart(f"{holding} of {len(checked)} promises hold", "strong")
    yield table_part(_HEADS, map(_row, checked))
    yield TextPart("same work on both machines; spot with its interruptions; details: `fleet migrate`", "quiet")


def write_promises(form: str, checked: Sequence[CheckedPromise]) -> str:
    """Return checked promises as json, yaml, markdown or html."""
    title = "What is promised of moving, on current prices"
    return write_parts(form, title, promises_parts(checked), lambda: promises_as_dict(checked))


def _as_dict(checked: CheckedPromise) -> dict[str, object]:
    promise, best = checked.promise, checked.best
    return {
        "id": promise.id,
        "promise": promise.name,
        "figure": promise.figure,
        "least": promise.least,
        "most": promise.most,
        "found": to_builtins(checked.value),
        "holds": checked.holds,
        "misses": checked.misses,
        "from": {"instance": promise.job.instance, "devices": promise.job.devices},
        "to": None if best is None else {"instance": best.instance, "count": best.count, "price": best.price_source},
        "source": promise.source,
    }


def _row(checked: CheckedPromise) -> tuple[str, ...]:
    promise, best, value = checked.promise, checked.best, checked.value
    if value is None or best is None:
        return (promise.name, _promised(promise), "-", "-", "not known", "no price, or it does not fit", "-")
    low, high = mean(value.low), mean(value.high)
    return (
        promise.name,
        _promised(promise),
        f"{mean(value.value):.3g} {_FIGURES[promise.figure]}",
        "" if low == high else f"{low:.3g} to {high:.3g}",
        "yes" if checked.holds else "no",
        _difference(checked.misses or 0.0),
        f"{best.count} x {best.instance}",
    )


def _promised(promise: Promise) -> str:
    end = " or more" if promise.most is None else f" to {promise.most:g}"
    return f"{promise.least:g}{end} {_FIGURES[promise.figure]}"


def _difference(misses: float) -> str:
    if not misses:
        return "as promised"
    return f"{misses:.3g} less" if misses > 0 else f"{-misses:.3g} more than the most"


_FORM = "markdown"


class WorkloadType(StrEnum):
    """What a job is."""

    TRAINING = "train"
    FINE_TUNING = "finetune"
    INFERENCE = "infer"
    BATCH_INFERENCE = "batch_infer"


class ModelSize(StrEnum):
    """Sizes of models that come with the program; a user's own go by their id, counts as ``35B``."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    MASSIVE = "massive"


@dataclass(frozen=True)
class MigrationReport:
    """What moving a job would bring; printed, it is Markdown."""

    migration: Migration  # the answer

    @property
    def data(self) -> dict[str, object]:
        """The answer as plain data, under the names that ``fleet migrate --format json`` has."""
        return migration_as_dict(self.migration)

    def __str__(self) -> str:
        return write_migration(_FORM, self.migration)


@dataclass(frozen=True)
class RunReport:
    """What moving workloads would bring, expected and computed; printed, it is Markdown."""

    runs: tuple[WorkloadRun, ...]  # the answers

    @property
    def data(self) -> dict[str, object]:
        """The answers as plain data, under the names that ``fleet run --format json`` has."""
        return runs_as_dict(self.runs)

    def __str__(self) -> str:
        return write_runs(_FORM, self.runs)


def _usual_folder() -> Path | None:
    """Return the folder that the guide's scripts read by themselves, where it has files of theirs."""
    folder = Path("config")
    return folder if fleet_files_below(folder) else None


class AWSGPUMigrationAnalyzer:
    """Compares a job with what it would be on other instances.

    Args:
        config: a JSON file of instances, sizes or workloads, or a folder that has some; they go over what is known. By
            default those of ``config`` in the current folder, where there are any.
        instances: instances to compare jobs with, or a provider for all of its own; by default the guide's nine.
        quiet: whether ``run_`` and ``list_`` only return their results, without writing them.

    Raises:
        CatalogError: there is no such file, or none in the folder.
    """

    def __init__(self, config: Path | str | None = None, instances: Sequence[str] = (), quiet: bool = False) -> None:
        folder = _usual_folder() if config is None else Path(config)
        self.catalog = load_catalog(None, folder)
        self.instances = tuple(instances) or guide_instances()
        self._quiet = quiet

    def generate_migration_report(
        self,
        current_instance: str,
        current_gpu_count: int,
        workload_type: WorkloadType | JobKind,
        model_size: ModelSize | str,
        monthly_hours: float = HOURS_OF_A_MONTH,
        use_spot: bool = False,
        precision: str | None = None,
        region: str | None = None,
        commitment: str | None = None,
    ) -> MigrationReport:
        """Return what moving a job to other instances would bring.

        Args:
            current_instance: where it runs.
            current_gpu_count: GPUs in use, over all instances.
            model_size: a size, a model or a count of parameters.
            monthly_hours: hours a month that it runs.
            use_spot: whether spot prices count too; never for what people wait for.
            precision: of the training, or of the weights that are served; None for the usual one.
            region: region or area of the prices.
            commitment: how long capacity is committed to, ``1y`` or ``3y``.

        Raises:
            CapacityError: nothing is called what is named, or the job cannot be estimated where it is.
        """
        job = JobWords(
            instance=current_instance,
            model=str(model_size),
            kind=WorkloadType(workload_type).value,
            devices=current_gpu_count,
            precision=precision,
            hours=monthly_hours,
            spot=use_spot,
            region=region,
            commitment=commitment,
            instances=self.instances,
        )
        return MigrationReport(migrate(question_of_job(job, self.catalog), self.catalog))

    def run_workload_by_id(self, workload: str) -> RunReport:
        """Write and return what moving one workload would bring; raises CatalogError if no workload is called that."""
        return self._run((workload,))

    def run_workload_set(self, name: str) -> RunReport:
        """Write and return what moving each workload of a set would bring.

        Raises:
            CatalogError: no set is called that.
        """
        return self._run(workloads_of((name,), self.catalog))

    def list_available_workloads(self) -> tuple[str, ...]:
        """Write the workloads with what is expected of moving them; return their ids."""
        rows = [(row.id, row.name, row.expected_outcome or "") for row in self.catalog.workloads.values()]
        self._write(parts_as_markdown("Workloads", [table_part(("workload", "what", "expected"), rows)]))
        return tuple(self.catalog.workloads)

    def get_model_size_gb(self, model_size: ModelSize | str, precision: str = "fp16") -> float:
        """Return what the weights of a size take, in billions of bytes; a whole number of them as one.

        Raises:
            CatalogError: no size or precision is called that.
        """
        (size,) = sizes_in_precisions(self.catalog, (precision,), (str(model_size),))
        return int(size.weights_gb) if size.weights_gb.is_integer() else size.weights_gb

    def _run(self, names: Sequence[str]) -> RunReport:
        report = RunReport(tuple(run_workloads(names, self.catalog, instances=self.instances)))
        self._write(str(report))
        return report

    def _write(self, text: str) -> None:
        if not self._quiet:
            sys.stdout.write(text)


def document_modules() -> Mapping[str, str]:
    """Return the text of each module by the name of its file."""
    return parse_shipped("document_modules.yaml")
