"""The plan: what the user wants to run, as frozen data that a YAML file, the screen and scripts share."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows import LevelRow
from capacity_tui.engine.keys import ON_HOST, Key
from capacity_tui.engine.plan.sections import (
    DataSection,
    InferenceSection,
    LimitsSection,
    ParallelismSection,
    PricingSection,
    RecoverySection,
    TrainingSection,
    WatchSection,
    checked_names,
)
from capacity_tui.engine.schema import Count, Section, SpecValue, known_format
from capacity_tui.engine.units import count_in_words

DETECTED = "detected"  # Name of this machine's own hardware
Mixed: TypeAlias = Literal["best", "all", "one"]
MOST_GROUPS = 64  # Groups of unlike devices in one cluster
MOST_LEVELS = 8  # Levels of a cluster around its nodes
MOST_COMPARED = 64  # Device counts or batch sizes of one analysis: each pair of them is an estimate of its own
_COUNTED_NAME = re.compile(r"\s*(?P<count>\d{1,9})\s*[xX×*]\s*(?P<name>\S.*)")


def counted_name(name: object) -> tuple[int, str] | None:
    """Return the number of devices and the hardware that a name such as ``8xH100-SXM`` gives; None without a number.

    A number in front of an instance counts instances: ``2xp5.48xlarge`` has 16 devices.
    """
    match = _COUNTED_NAME.fullmatch(name) if isinstance(name, str) else None
    return None if match is None else (int(match["count"]) * load_catalog().sold_together(match["name"]), match["name"])


class ModelSection(Section):
    """Which model: a catalogue architecture or family by name, or a local file; with overrides."""

    name: str | None = None
    config: str | None = None
    spec: dict[str, SpecValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.name is None and self.config is None:
            raise ValueError("give name or config")
        return self


class DeviceGroup(Section):
    """Equal devices in equal nodes, beside others that are not."""

    name: str
    devices: Count
    per_node: Count | None = None


class HardwareSection(Section):
    """On what: a catalogue accelerator or CPU, an instance, or this machine (``detected``)."""

    name: str = DETECTED
    groups: Annotated[tuple[DeviceGroup, ...], Field(max_length=MOST_GROUPS)] = ()
    mixed: Mixed = "best"
    devices: Count | None = None
    per_node: Count | None = None
    interconnect: str | None = None
    levels: Annotated[tuple[LevelRow, ...], Field(max_length=MOST_LEVELS)] = ()
    ports_per_node: Count | None = None
    spec: dict[str, SpecValue] = Field(default_factory=dict)
    efficiency: Annotated[float, Field(gt=0, le=1)] | None = None
    host: str | None = None
    host_speed: Annotated[float, Field(gt=0, le=10)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _first_group_by_name(cls, data: object) -> object:
        """Let the first group name the hardware where nothing else does."""
        groups = data.get("groups") if isinstance(data, Mapping) else None
        if not isinstance(data, Mapping) or not isinstance(groups, list | tuple) or not groups or data.get("name"):
            return data
        first = groups[0]
        name = first.get("name") if isinstance(first, Mapping) else getattr(first, "name", None)
        return {**data, "name": name} if isinstance(name, str) else data

    @model_validator(mode="after")
    def _name_of_a_group(self) -> Self:
        names = [group.name for group in self.groups]
        if names and self.name not in names:
            raise ValueError(f"name {self.name} is none of the groups, {', '.join(names)}: leave it out")
        return self

    @model_validator(mode="before")
    @classmethod
    def _counted_name(cls, data: object) -> object:
        """Read ``8xH100-SXM`` as a name and a number of devices."""
        counted = counted_name(data.get("name")) if isinstance(data, Mapping) else None
        if counted is None or not isinstance(data, Mapping):
            return data
        (count, name), devices = counted, data.get("devices")
        if devices is not None and str(devices) != str(count):
            raise ValueError(f"{data['name']} names {count_in_words(count)}, devices says {devices}: keep one of them")
        return {**data, "name": name, "devices": count}


class ScalabilitySection(Section):
    """Which device counts and batch sizes to compare."""

    enabled: bool = False
    device_counts: Annotated[tuple[Count, ...], Field(max_length=MOST_COMPARED)] = (1, 2, 4, 8)
    batch_sizes: Annotated[tuple[Count, ...], Field(max_length=MOST_COMPARED)] = ()
    data_parallel: bool = True
    model_parallel: bool = False
    weak: bool = False


class ReportSection(Section):
    """How a report is written."""

    format: Annotated[str, BeforeValidator(known_format)] = "markdown"
    include_plots: bool = True
    include_recommendations: bool = True
    detailed_breakdown: bool = True


class Plan(Section):
    """One run to plan. ``model`` and ``hardware`` are the least; everything else has a default."""

    version: Literal[1] = 1
    task: Literal["train", "finetune", "infer", "fit"] | None = None
    model: ModelSection
    training: TrainingSection = TrainingSection.model_construct()
    inference: InferenceSection = InferenceSection.model_construct()
    parallelism: ParallelismSection = ParallelismSection.model_construct()
    hardware: HardwareSection = HardwareSection.model_construct()
    data: DataSection = DataSection.model_construct()
    scalability: ScalabilitySection = ScalabilitySection.model_construct()
    pricing: PricingSection = PricingSection.model_construct()
    limits: LimitsSection = LimitsSection.model_construct()
    watch: WatchSection = WatchSection.model_construct()
    recovery: RecoverySection = RecoverySection.model_construct()
    report: ReportSection = ReportSection.model_construct()
    scenarios: Annotated[dict[str, "Plan"], AfterValidator(checked_names)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_row(self) -> Self:
        if any(scenario.scenarios for scenario in self.scenarios.values()):
            raise ValueError("a scenario has none of its own")
        return self

    @property
    def is_split_with_host(self) -> bool:
        """Whether layers or experts of a served model lie in host memory."""
        return any(self.value(path) is not None for path in ON_HOST)

    @property
    def is_inference(self) -> bool:
        """Whether requests are served or samples predicted, rather than a model trained."""
        return self.task == "infer"

    @property
    def is_finetuning(self) -> bool:
        """Whether a model that was trained before is trained further."""
        return self.task == "finetune"

    @property
    def is_fit(self) -> bool:
        """Whether a classical model is fitted to a table."""
        return self.task == "fit"

    @property
    def is_training(self) -> bool:
        """Whether a model is trained step by step, from scratch or further; also where the task is open."""
        return not self.is_inference and not self.is_fit

    def value(self, path: str) -> object:
        """Return the value at a dotted path such as ``training.micro_batch``; None where a part is absent."""
        current: object = self
        for part in path.split("."):
            if isinstance(current, dict):
                current = current.get(part)
            elif current is not None:
                current = getattr(current, part)
        return current

    def plain_data(self) -> dict[str, Any]:
        """Return the plan as plain data, the form of the plan file; without its compared plans."""
        return self.model_dump(mode="json", exclude={Key.SCENARIOS.value})


def accumulation_of(plan: Plan) -> int:
    """Return the micro-batches that a replica takes before an optimizer step, of a settled plan."""
    micro_batch, replicas = int(plan.training.micro_batch), int(plan.parallelism.dp or 1)
    return max(1, round(int(plan.training.global_batch or 1) / (micro_batch * replicas)))
