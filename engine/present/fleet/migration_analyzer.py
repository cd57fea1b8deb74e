"""The names of the fleet guide's Python interface, over the program's own answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.fleet_files import fleet_files_below, guide_instances
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
from capacity_tui.engine.fleet import sizes_in_precisions
from capacity_tui.engine.fleet.migration import (
    JobKind,
    JobWords,
    Kept,
    Migration,
    Promise,
    WorkloadRun,
    migrate,
    question_of_job,
    run_workloads,
    workloads_of,
)
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.fleet.migration import migration_as_dict, runs_as_dict, write_migration, write_runs
from capacity_tui.engine.present.part_pages import parts_as_html, parts_as_markdown
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.results import to_builtins, to_json, to_yaml

_FORM = "markdown"


class WorkloadType(StrEnum):
    """What a job is."""

    TRAINING = "train"
    FINE_TUNING = "finetune"
    INFERENCE = "infer"
    BATCH_INFERENCE = "batch_infer"


class ModelSize(StrEnum):
    """Sizes of models that come with the program; own ones go by their id, counts as ``35B``."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    MASSIVE = "massive"


@dataclass(frozen=True)
class MigrationReport:
    """What moving a job would bring; printed, it is Markdown.

    Attributes:
        migration: the answer.
    """

    migration: Migration

    @property
    def data(self) -> dict[str, object]:
        """The answer as plain data, under the names that ``fleet migrate --format json`` has."""
        return migration_as_dict(self.migration)

    def __str__(self) -> str:
        return write_migration(_FORM, self.migration)


@dataclass(frozen=True)
class RunReport:
    """What moving workloads would bring, expected beside found; printed, it is Markdown.

    Attributes:
        runs: the answers.
    """

    runs: tuple[WorkloadRun, ...]

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
        quiet: whether ``run_`` and ``list_`` only return what they found, without writing it.

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
            workload_type: what it is.
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
        """Write and return what moving one workload would bring.

        Raises:
            CatalogError: no workload is called that.
        """
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
        (found,) = sizes_in_precisions(self.catalog, (precision,), (str(model_size),))
        return int(found.weights_gb) if found.weights_gb.is_integer() else found.weights_gb

    def _run(self, names: Sequence[str]) -> RunReport:
        report = RunReport(tuple(run_workloads(names, self.catalog, instances=self.instances)))
        self._write(str(report))
        return report

    def _write(self, text: str) -> None:
        if not self._quiet:
            sys.stdout.write(text)


_HEADS = ("promise", "promised", "found", "range", "holds", "difference", "with")

_WORDS = {"saving_percent": "% saved", "performance_ratio": "x as fast", "spot_percent": "% off on spot"}

_TITLE = "What is promised of moving, on true prices"


def promises_as_dict(kept: Sequence[Kept]) -> dict[str, object]:
    """Return promises and what was found as plain data."""
    return {"promises": [_as_dict(each) for each in kept]}


def promises_parts(kept: Sequence[Kept]) -> Iterator[Part]:
    """Yield promises and what was found as a table, and how many hold."""
    holding = sum(each.holds for each in kept)
    yield TextPart(f"{holding} of {len(kept)} promises hold", "strong")
    yield table_part(_HEADS, map(_row, kept))
    yield TextPart("same work on both machines; spot with its interruptions; `fleet migrate` tells the rest", "quiet")


def write_promises(form: str, kept: Sequence[Kept]) -> str:
    """Return promises and what was found as json, yaml, markdown or html."""
    return _WRITERS[form](kept)


def _as_dict(each: Kept) -> dict[str, object]:
    promise, best = each.promise, each.best
    return {
        "id": promise.id,
        "promise": promise.name,
        "figure": promise.figure,
        "least": promise.least,
        "most": promise.most,
        "found": to_builtins(each.found),
        "holds": each.holds,
        "misses": each.misses,
        "from": {"instance": promise.job.instance, "devices": promise.job.devices},
        "to": None if best is None else {"instance": best.instance, "count": best.count, "price": best.price_source},
        "source": promise.source,
    }


def _row(each: Kept) -> tuple[str, ...]:
    promise = each.promise
    if each.found is None or each.best is None:
        return (promise.name, _promised(promise), "-", "-", "not known", "no price, or it does not fit", "-")
    low, high = mean(each.found.low), mean(each.found.high)
    spread = "" if low == high else f"{low:.3g} to {high:.3g}"
    found = f"{mean(each.found.value):.3g} {_WORDS[promise.figure]}"
    with_what = f"{each.best.count} x {each.best.instance}"
    return (
        promise.name,
        _promised(promise),
        found,
        spread,
        "yes" if each.holds else "no",
        _difference(each),
        with_what,
    )


def _promised(promise: Promise) -> str:
    end = " or more" if promise.most is None else f" to {promise.most:g}"
    return f"{promise.least:g}{end} {_WORDS[promise.figure]}"


def _difference(each: Kept) -> str:
    misses = each.misses or 0.0
    if not misses:
        return "as promised"
    return f"{misses:.3g} less" if misses > 0 else f"{-misses:.3g} more than the most"


_WRITERS: Mapping[str, Callable[[Sequence[Kept]], str]] = {
    "json": lambda kept: to_json(promises_as_dict(kept)),
    "yaml": lambda kept: to_yaml(promises_as_dict(kept)),
    "markdown": lambda kept: parts_as_markdown(_TITLE, promises_parts(kept)),
    "html": lambda kept: parts_as_html(_TITLE, promises_parts(kept)),
}
