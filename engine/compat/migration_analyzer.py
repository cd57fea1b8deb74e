"""The migration analyzer of fleets, by the names of its guide."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.fleet_files import fleet_files_below, guide_instances
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
from capacity_tui.engine.fleet import sizes_in_precisions
from capacity_tui.engine.fleet.migration import (
    JobKind,
    JobWords,
    Migration,
    WorkloadRun,
    migrate,
    question_of_job,
    run_workloads,
    workloads_of,
)
from capacity_tui.engine.present import parts_as_markdown, table_part
from capacity_tui.engine.present.fleet import migration_as_dict, runs_as_dict, write_migration, write_runs
from capacity_tui.engine.record import dataclass

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
    """What moving workloads would bring, expected and computed; printed, it is Markdown.

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
        (size,) = sizes_in_precisions(self.catalog, (precision,), (str(model_size),))
        return int(size.weights_gb) if size.weights_gb.is_integer() else size.weights_gb

    def _run(self, names: Sequence[str]) -> RunReport:
        report = RunReport(tuple(run_workloads(names, self.catalog, instances=self.instances)))
        self._write(str(report))
        return report

    def _write(self, text: str) -> None:
        if not self._quiet:
            sys.stdout.write(text)
