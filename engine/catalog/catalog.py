"""The catalogue: every table of facts the program knows, with the user's own files laid over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

from capacity_tui.engine.catalog import rows
from capacity_tui.engine.catalog.fleet_files.instance_entries import FleetFileContent, Remark
from capacity_tui.engine.catalog.models_table import ArchitectureTable, QuantizationTable
from capacity_tui.engine.catalog.reading import read_aliases
from capacity_tui.engine.catalog.rows.prices import RefreshedPrices, read_refreshed
from capacity_tui.engine.catalog.rows.software import named_release, rows_of_release
from capacity_tui.engine.catalog.shipped import parse_shipped
from capacity_tui.engine.catalog.table import Table, shipped_files, stray_files, user_files, with_left_out
from capacity_tui.engine.errors import CapacityError, CatalogError

RowT = TypeVar("RowT", bound=rows.Row)
_ALIASES = "aliases"
UNNAMED_ENGINE = "unnamed-engine"  # Row of serving software that nothing is known about


class Catalog:
    """The tables, each read when it is first used.

    Args:
        user_directory: folder of the user's own files: ``accelerators.yaml`` or ``accelerators/*.yaml``
            adds to the accelerators, ``aliases.yaml`` adds names, and so on.
        fleet_files: JSON files of the fleet guide, which are laid over both.
    """

    def __init__(self, user_directory: Path, fleet_files: Sequence[Path] = ()) -> None:
        self.user_directory = user_directory
        self.fleet_files = fleet_files

    @cached_property
    def accelerators(self) -> Table[rows.Accelerator]:
        """GPUs and other devices that compute."""
        return self._table("accelerators", "accelerator", rows.Accelerator)

    @cached_property
    def processors(self) -> Table[rows.Processor]:
        """CPUs, by socket."""
        return self._table("processors", "processor", rows.Processor)

    @cached_property
    def links(self) -> Table[rows.Link]:
        """Links inside and between nodes, nominal."""
        return self._table("links", "link", rows.Link)

    @cached_property
    def assumptions(self) -> Table[rows.Assumption]:
        """What stands in for unknown figures of hardware."""
        return self._table("assumptions", "assumption", rows.Assumption)

    @cached_property
    def measured_links(self) -> Table[rows.MeasuredLink]:
        """Collectives as measured."""
        return self._table("measured_links", "measured link", rows.MeasuredLink)

    @cached_property
    def architectures(self) -> ArchitectureTable:
        """Shapes of models."""
        return ArchitectureTable(*self._parts("architectures"), self.model_sizes)

    @cached_property
    def algorithms(self) -> Table[rows.Algorithm]:
        """Classical algorithms: what their usual implementations cost."""
        return self._table("algorithms", "algorithm", rows.Algorithm)

    @cached_property
    def networks(self) -> Table[rows.Network]:
        """Layers of convolutional networks."""
        return self._table("networks", "network", rows.Network)

    @cached_property
    def instances(self) -> Table[rows.Instance]:
        """Cloud instances and their prices."""
        devices = {"accelerator": self.accelerators.find, "processor": self.processors.find}
        return self._table("instances", "instance", rows.Instance, {**devices, "network_link": self.links.find})

    @cached_property
    def measured_devices(self) -> Table[rows.MeasuredDevice]:
        """Devices of clusters as they were measured there."""
        return self._table("measured_devices", "measured device", rows.MeasuredDevice)

    @cached_property
    def clusters(self) -> Table[rows.ClusterRow]:
        """Clusters that exist, and those that the user kept."""
        return self._table("clusters", "cluster", rows.ClusterRow, {"interconnect": self.links.find})

    @cached_property
    def regions(self) -> Table[rows.Region]:
        """Regions of clouds, and the areas of the world they are in."""
        return self._table("regions", "region", rows.Region)

    @cached_property
    def commitments(self) -> Table[rows.Commitment]:
        """What providers take off for a commitment of years."""
        return self._table("commitments", "commitment", rows.Commitment)

    @cached_property
    def disks(self) -> Table[rows.Disk]:
        """What a gigabyte of storage costs a month."""
        return self._table("disks", "disk", rows.Disk)

    @cached_property
    def egress(self) -> Table[rows.Egress]:
        """What data costs that leaves a region."""
        return self._table("egress", "egress price", rows.Egress)

    @cached_property
    def data_formats(self) -> Table[rows.DataFormat]:
        """Forms in which the data of a training are stored, the usual one of each kind first."""
        return self._table("data_formats", "data format", rows.DataFormat)

    @cached_property
    def storage_tiers(self) -> Table[rows.StorageTier]:
        """What data are read from, and how fast."""
        return self._table("storage_tiers", "storage tier", rows.StorageTier)

    @cached_property
    def fabrics(self) -> Table[rows.Fabric]:
        """What is usually built around devices: sizes of nodes, networks between them."""
        return self._table("fabrics", "fabric", rows.Fabric)

    def fabric_of(self, accelerator: rows.Accelerator) -> rows.Fabric:
        """Return what is usually built around an accelerator."""
        return next((row for row in self.fabrics.values() if row.is_around(accelerator)), self.fabrics["other"])

    @cached_property
    def spot_markets(self) -> Table[rows.SpotMarket]:
        """How often spot capacity is taken back."""
        return self._table("spot_markets", "spot market", rows.SpotMarket)

    @cached_property
    def efficiencies(self) -> Table[rows.Efficiency]:
        """What generations of hardware reach of their datasheets."""
        return self._table("efficiency", "efficiency", rows.Efficiency)

    @cached_property
    def attention_kernels(self) -> Table[rows.AttentionKernel]:
        """Kernels of attention, the faster ones first."""
        return self._table("attention_kernels", "attention kernel", rows.AttentionKernel)

    @cached_property
    def coefficients(self) -> Table[rows.Coefficient]:
        """Numbers of the time and power model that all hardware and software share."""
        return self._table("coefficients", "coefficient", rows.Coefficient)

    @cached_property
    def frameworks(self) -> Table[rows.Framework]:
        """What training software does with memory, kernels and overlap."""
        return self._table("frameworks", "framework", rows.Framework)

    @cached_property
    def reliabilities(self) -> Table[rows.Reliability]:
        """How far training estimates were from published runs."""
        return self._table("reliability", "reliability", rows.Reliability)

    @cached_property
    def engines(self) -> Table[rows.InferenceEngine]:
        """What inference engines do with kernels, bandwidth and memory."""
        return self._table("engines", "inference engine", rows.InferenceEngine)

    @cached_property
    def weight_kernels(self) -> Table[rows.WeightKernel]:
        """What kernels of matrix products reach, by the formats of weights they read."""
        return self._table("weight_kernels", "kernels of weights", rows.WeightKernel)

    @cached_property
    def precisions(self) -> Table[rows.Precision]:
        """Number formats of training and inference."""
        return self._table("precisions", "precision", rows.Precision)

    @cached_property
    def checkpointings(self) -> Table[rows.Checkpointing]:
        """What the backward pass may compute again."""
        return self._table("checkpointing", "checkpointing", rows.Checkpointing)

    @cached_property
    def optimizers(self) -> Table[rows.Optimizer]:
        return self._table("optimizers", "optimizer", rows.Optimizer)

    @cached_property
    def quantizations(self) -> QuantizationTable:
        """Storage formats of weights; ``exl2-4.0`` and the like are found too."""
        return QuantizationTable(*self._parts("quantizations"))

    @cached_property
    def pattern_storage(self) -> Table[rows.Assumption]:
        """What is taken for granted of patterns in a store."""
        return self._table("pattern_storage", "assumption of pattern storage", rows.Assumption)

    @cached_property
    def scaling_laws(self) -> Table[rows.ScalingLaw]:
        """How the loss of a language model falls with its size and its data, the one that is used first."""
        return self._table("scaling_laws", "scaling law", rows.ScalingLaw)

    @cached_property
    def training_batches(self) -> Table[rows.TrainingBatch]:
        """Tokens of a step in published pre-training runs."""
        return self._table("training_batches", "published batch", rows.TrainingBatch)

    @cached_property
    def detectors(self) -> Table[rows.Detector]:
        """What is watched for in a run, and from when on it is reported."""
        return self._table("detectors", "detector", rows.Detector)

    @cached_property
    def failures(self) -> Table[rows.FailureSign]:
        """How runs that failed are recognised, causes before what they lead to."""
        return self._table("failures", "failure", rows.FailureSign)

    @cached_property
    def checkpoint_files(self) -> Table[rows.CheckpointFiles]:
        """What checkpoints on disk look like, the first whose names match first."""
        return self._table("checkpoint_files", "kind of checkpoint", rows.CheckpointFiles)

    @cached_property
    def run_logs(self) -> Table[rows.RunLog]:
        """What the logs of training programs and inference engines look like, the first that reads a figure first."""
        return self._table("run_logs", "run log", rows.RunLog)

    @cached_property
    def modes(self) -> Table[rows.Mode]:
        """Conservative, balanced and extreme."""
        return self._table("modes", "mode", rows.Mode)

    @cached_property
    def model_sizes(self) -> Table[rows.ModelSize]:
        """Models by the count of their parameters alone."""
        return self._table("model_sizes", "model size", rows.ModelSize)

    @cached_property
    def workloads(self) -> Table[rows.Workload]:
        """What runs on an instance today, to compare others for."""
        named = {
            "scenario.current_instance": self.instances.find,
            "scenario.model_size": self.architectures.find,
            "scenario.precision": self.precisions.find,
        }
        return self._table("workloads", "workload", rows.Workload, named)

    @cached_property
    def workload_sets(self) -> Table[rows.WorkloadSet]:
        """Workloads that answer one question together."""
        return self._table("workload_sets", "set of workloads", rows.WorkloadSet, {"workloads": self.workloads.find})

    def with_tables(self, tables: Mapping[str, Table[rows.Row]]) -> Catalog:
        """Return the catalogue with other tables in place of some, by the names of its attributes."""
        changed = Catalog(self.user_directory, self.fleet_files)
        read = {name: table for name, table in vars(self).items() if isinstance(table, Table)}
        for name, table in {**read, **tables}.items():
            setattr(changed, name, table)
        return changed

    def tables(self) -> Iterator[tuple[str, Table[rows.Row]]]:
        """Yield the name and the table of each catalogue."""
        for name, attribute in vars(Catalog).items():
            if isinstance(attribute, cached_property) and not name.startswith("_"):
                yield name, getattr(self, name)

    @property
    def aliases(self) -> Mapping[str, Mapping[str, str]]:
        """Other names of ids, by the names of the tables' files."""
        return self._aliases[0]

    def engine_rows(self, engine: str) -> Sequence[rows.InferenceEngine]:
        """Return the rows of an inference engine, one for each of its back ends; the average of an unknown one.

        Of ``vllm==0.7.3`` they are those of that release, ``vllm-v0`` is that row alone, else the current ones.

        Raises:
            CatalogError: no row stands for the release.
        """
        known = self._rows_by_engine
        if engine not in known:
            known[engine] = self._read_engine_rows(engine)
        return known[engine]

    @cached_property
    def _rows_by_engine(self) -> dict[str, Sequence[rows.InferenceEngine]]:
        """The rows of engines that were asked for by now: every estimate of serving asks several times."""
        return {}

    def _read_engine_rows(self, engine: str) -> Sequence[rows.InferenceEngine]:
        name, release = named_release(engine)
        known = self.engines[self.engines.find_id(name) or UNNAMED_ENGINE]
        every = list(self.engines.where("engine", known.engine))
        if release and known.id != UNNAMED_ENGINE:
            return rows_of_release(every, name, release)
        return [row for row in every if row.until is None] if known.until is None else [known]

    def names_release(self, engine: str) -> bool:
        """Whether a name of an engine says of which release it is, or there is nothing to say."""
        name, release = named_release(engine)
        known = self.engines.known(name)
        if release or known is None or known.until is not None:
            return True
        return all(row.until is None for row in self.engines.values() if row.engine == known.engine)

    def instances_with(self, accelerator: str) -> Sequence[rows.Instance]:
        """Return the instances that have whole devices of an accelerator."""
        known = self._instances_by_accelerator
        if accelerator not in known:
            listed = self.instances.where("accelerator", accelerator)
            known[accelerator] = [row for row in listed if row.device_share == 1]
        return known[accelerator]

    @cached_property
    def _instances_by_accelerator(self) -> dict[str, Sequence[rows.Instance]]:
        """The instances that were asked for by now."""
        return {}

    @property
    def refreshed(self) -> RefreshedPrices | None:
        """Prices of instances that were fetched on request; None where none were."""
        return self._refreshed[0]

    @cached_property
    def _refreshed(self) -> tuple[RefreshedPrices | None, tuple[CapacityError, ...]]:
        return read_refreshed(self.user_directory)

    @property
    def problems(self) -> tuple[CapacityError, ...]:
        """What is wrong with the user's own files, over all tables."""
        tables = [table for _, table in self.tables()]
        of_tables = [problem for table in tables for problem in table.problems]
        stray = stray_files(self.user_directory, {_ALIASES, *(table.file for table in tables)})
        return (*self._aliases[1], *self._refreshed[1], *self._fleet_content.problems, *of_tables, *stray)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What of the files of the fleet guide was interpreted differently from how it is written."""
        return tuple(self._fleet_content.remarks)

    def sold_together(self, name: str) -> int:
        """Return the devices that come with one of a name: those of an instance, else 1."""
        row = None if self.accelerators.find_id(name) else self.instances.known(name)
        return 1 if row is None else row.sold_devices

    def find_hardware(self, name: str) -> rows.Accelerator | rows.Processor | rows.Instance:
        """Return the accelerator, processor or instance of a name; of a cluster its first devices.

        Raises:
            CatalogError: nothing is called that; the hint names the nearest known ids.
        """
        tables = (self.accelerators, self.processors, self.instances)
        for table in tables:
            if (row := table.known(name)) is not None:
                return row
        if (cluster := self.clusters.known(name)) is not None:
            return self.find_hardware(cluster.groups[0].name)
        near = [close for table in (*tables, self.clusters) for close in table.nearest(name)[:2]]
        hint = f"nearest known: {', '.join(near)}" if near else "list them with: capacity-tui hardware --list"
        problems = [problem for table in (*tables, self.clusters) for problem in table.problems]
        raise CatalogError(f"no hardware is called {name!r}"[:200], hint=with_left_out(hint, name, problems))

    def _table(
        self, folder: str, kind: str, row_type: type[RowT], named: Mapping[str, Callable[[str], rows.Row]] | None = None
    ) -> Table[RowT]:
        return Table(kind, row_type, *self._parts(folder), self._fleet_content.documents.get(folder, ()), named)

    def _parts(self, folder: str) -> tuple[Sequence[Traversable], Sequence[Path], Mapping[str, str]]:
        """Return the shipped files, the user's files and the aliases of a table."""
        aliases = {**self._aliases[0].get(folder, {}), **self._fleet_content.aliases.get(folder, {})}
        return shipped_files(folder), user_files(self.user_directory, folder), aliases

    @cached_property
    def _fleet_content(self) -> FleetFileContent:
        """What the files of the fleet guide say."""
        if not self.fleet_files:
            return FleetFileContent()
        from capacity_tui.engine.catalog.fleet_files.files import Known, read_fleet_files  # noqa: PLC0415 - few users have such files

        plain = Catalog(self.user_directory)
        ids = {
            "model_sizes": plain.model_sizes.find_id,
            "workloads": plain.workloads.find_id,
            "workload_sets": plain.workload_sets.find_id,
        }
        return read_fleet_files(self.fleet_files, Known(plain.instances, plain.accelerators, ids))

    @cached_property
    def _aliases(self) -> tuple[dict[str, dict[str, str]], tuple[CapacityError, ...]]:
        """Aliases by table, and the problems of the user's own."""
        return read_aliases(parse_shipped(shipped_files(_ALIASES)[0]), user_files(self.user_directory, _ALIASES))
