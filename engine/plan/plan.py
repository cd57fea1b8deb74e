"""The plan: what the user wants to run, as frozen data that a YAML file, the screen and scripts share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows.levels import LevelRow
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.sections.adapter import Adapter
from capacity_tui.engine.plan.sections.data import DataSection
from capacity_tui.engine.plan.sections.inference import InferenceSection
from capacity_tui.engine.plan.sections.parallelism import GROUPS_FOLLOW, REPLICAS_FOLLOW, ParallelismSection
from capacity_tui.engine.plan.sections.pricing import PricingSection
from capacity_tui.engine.plan.sections.running import RecoverySection, WatchSection
from capacity_tui.engine.plan.sections.scenarios import checked_names
from capacity_tui.engine.plan.sections.training import TrainingSection
from capacity_tui.engine.schema.field_meta import Condition, Follows, Kind, Knob
from capacity_tui.engine.schema.field_types import AUTO, LARGEST_COUNT, NEURAL, Count, Section, SpecValue
from capacity_tui.engine.schema.report_formats import REPORT_FORMATS, known_format
from capacity_tui.engine.units import devices_in_words

__all__ = [
    "AUTO",
    "Adapter",
    "DataSection",
    "HardwareSection",
    "InferenceSection",
    "ModelSection",
    "ParallelismSection",
    "Plan",
    "PricingSection",
    "RecoverySection",
    "ReportSection",
    "ScalabilitySection",
    "Section",
    "TrainingSection",
    "WatchSection",
]


DETECTED = "detected"
"""Name of this machine's own hardware."""
Mixed: TypeAlias = Literal["best", "all", "one"]
MOST_GROUPS = 64
"""Groups of unlike devices in one cluster."""
MOST_LEVELS = 8
"""Levels of a cluster around its nodes."""
MOST_COMPARED = 64
"""Device counts or batch sizes of one analysis: each pair of them is an estimate of its own."""
_COUNTED = re.compile(r"\s*(?P<count>\d{1,9})\s*[xX×*]\s*(?P<name>\S.*)")


_MODEL_FOLLOWS = (
    Follows(Key.MODEL_SPEC, "model", "the parameters begin with the model's own"),
    Follows("task", "model", "the task is one of this kind of model"),
    Follows("training", "model", "this kind of model has other settings"),
    Follows("parallelism", "model", "this kind of model has other settings"),
)
_OLD_HARDWARE = "it belonged to the hardware before"
_HARDWARE_FOLLOWS = (
    Follows(Key.HARDWARE_DEVICES, "counted", "a name may say how many devices there are"),
    *(
        Follows(f"hardware.{name}", "given back", _OLD_HARDWARE)
        for name in ("groups", "mixed", "per_node", "interconnect", "levels", "ports_per_node", "spec", "efficiency")
    ),
    Follows(REPLICAS_FOLLOW.path, "given back", _OLD_HARDWARE),
    Follows(GROUPS_FOLLOW.path, "given back", _OLD_HARDWARE),
)
_BETWEEN_NODES: tuple[Condition, ...] = ("nodes", "divided model", "split model")


def _shown_in_reports(label: str, kind: Kind = "switch", choices: tuple[str, ...] = ()) -> Knob:
    """Return what is known about a field that no estimate depends on."""
    return Knob(label, kind, "report", choices=choices, role="output", keeps_result=True, needs=("reports",))


def counted_name(name: object) -> tuple[int, str] | None:
    """Return the number of devices and the hardware that a name such as ``8xH100-SXM`` gives; None without a number.

    A number in front of an instance counts instances: ``2xp5.48xlarge`` has 16 devices.
    """
    found = _COUNTED.fullmatch(name) if isinstance(name, str) else None
    return None if found is None else (int(found["count"]) * load_catalog().sold_together(found["name"]), found["name"])


class ModelSection(Section):
    """Which model: a catalogue architecture or family by name, or a local file; with overrides."""

    name: Annotated[
        str | None,
        Knob(
            "Model",
            "text",
            "model",
            automatic=True,
            role="job",
            follows=(Follows(Key.MODEL_CONFIG, "replaced", "a name takes the place of a file"), *_MODEL_FOLLOWS),
            catalogue="model",
        ),
    ] = None
    config: Annotated[
        str | None,
        Knob(
            "Config file",
            "text",
            "model",
            role="job",
            follows=(Follows(Key.MODEL_NAME, "replaced", "a file takes the place of a name"), *_MODEL_FOLLOWS),
        ),
    ] = None
    spec: Annotated[dict[str, SpecValue], Knob("Overrides", "table", "model", role="job")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_origin(self) -> ModelSection:
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

    name: Annotated[
        str,
        Knob(
            "Hardware",
            "text",
            "hardware",
            role="surroundings",
            follows=_HARDWARE_FOLLOWS,
            keeps_result=True,
            catalogue="accelerator",
        ),
    ] = DETECTED
    groups: Annotated[
        tuple[DeviceGroup, ...],
        Field(max_length=MOST_GROUPS),
        Knob("Unlike devices", "table", "hardware", role="surroundings", keeps_result=True),
    ] = ()
    mixed: Annotated[
        Mixed,
        Knob(
            "Devices used",
            "choice",
            "hardware",
            choices=("best", "all", "one"),
            role="surroundings",
            needs=("unlike devices",),
            keeps_result=True,
        ),
    ] = "best"
    devices: Annotated[
        Count | None,
        Knob(
            "Devices",
            "power-of-two",
            "hardware",
            "",
            1,
            LARGEST_COUNT,
            role="setting",
            follows=(
                REPLICAS_FOLLOW,
                GROUPS_FOLLOW,
                Follows(Key.PRICING_USD_PER_HOUR, "scaled", "the price is that of all devices together"),
            ),
            keeps_result=True,
        ),
    ] = None
    per_node: Annotated[
        Count | None,
        Knob(
            "Per node",
            "power-of-two",
            "hardware",
            "",
            1,
            1024,
            role="surroundings",
            needs=("devices", "divided model"),
            keeps_result=True,
            resolved_from_others=True,
        ),
    ] = None
    interconnect: Annotated[
        str | None,
        Knob(
            "Interconnect",
            "text",
            "hardware",
            role="surroundings",
            needs=_BETWEEN_NODES,
            is_wish=True,
            keeps_result=True,
            catalogue="interconnect",
        ),
    ] = None
    levels: Annotated[
        tuple[LevelRow, ...],
        Field(max_length=MOST_LEVELS),
        Knob("Levels", "table", "hardware", role="surroundings", keeps_result=True),
    ] = ()
    ports_per_node: Annotated[
        Count | None,
        Knob(
            "Ports",
            "power-of-two",
            "hardware",
            "",
            1,
            64,
            role="surroundings",
            needs=_BETWEEN_NODES,
            is_wish=True,
            keeps_result=True,
        ),
    ] = None
    spec: Annotated[
        dict[str, SpecValue], Knob("Overrides", "table", "hardware", role="surroundings", keeps_result=True)
    ] = Field(default_factory=dict)
    efficiency: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Knob(
            "Efficiency",
            "number",
            "hardware",
            "",
            0.05,
            1,
            0.05,
            role="surroundings",
            needs=("matrices",),
            keeps_result=True,
        ),
    ] = None

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
    def _name_of_a_group(self) -> HardwareSection:
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
        (count, name), given = counted, data.get("devices")
        if given is not None and str(given) != str(count):
            raise ValueError(f"{data['name']} names {devices_in_words(count)}, devices says {given}: keep one of them")
        return {**data, "name": name, "devices": count}


class ScalabilitySection(Section):
    """Which device counts and batch sizes to compare."""

    enabled: Annotated[bool, _shown_in_reports("Compare counts")] = False
    device_counts: Annotated[
        tuple[Count, ...], Field(max_length=MOST_COMPARED), _shown_in_reports("Device counts", "list")
    ] = (1, 2, 4, 8)
    batch_sizes: Annotated[
        tuple[Count, ...], Field(max_length=MOST_COMPARED), _shown_in_reports("Batch sizes", "list")
    ] = ()
    data_parallel: Annotated[bool, _shown_in_reports("More replicas")] = True
    model_parallel: Annotated[bool, _shown_in_reports("Larger split")] = False
    weak: Annotated[bool, _shown_in_reports("Growing batch")] = False


class ReportSection(Section):
    """How a report is written."""

    format: Annotated[
        str, BeforeValidator(known_format), _shown_in_reports("Report format", "choice", tuple(REPORT_FORMATS))
    ] = "markdown"
    include_plots: Annotated[bool, _shown_in_reports("Plots")] = True
    include_recommendations: Annotated[bool, _shown_in_reports("Recommendations")] = True
    detailed_breakdown: Annotated[bool, _shown_in_reports("Breakdown")] = True


class Plan(Section):
    """One run to plan. ``model`` and ``hardware`` are the least; everything else has a default."""

    version: Annotated[Literal[1], Knob("Version", "integer", "model", role="output", shown=False)] = 1
    task: Annotated[
        Literal["train", "finetune", "infer", "fit"] | None,
        Knob(
            "Task",
            "choice",
            "model",
            choices=("train", "finetune", "infer"),
            families=NEURAL,
            role="job",
        ),
    ] = None
    model: ModelSection
    training: TrainingSection = TrainingSection()
    inference: InferenceSection = InferenceSection()
    parallelism: ParallelismSection = ParallelismSection()
    hardware: HardwareSection = HardwareSection()
    data: DataSection = DataSection()
    scalability: ScalabilitySection = ScalabilitySection()
    pricing: PricingSection = PricingSection()
    watch: WatchSection = WatchSection()
    recovery: RecoverySection = RecoverySection()
    report: ReportSection = ReportSection()
    scenarios: Annotated[
        dict[str, Plan],
        AfterValidator(checked_names),
        Knob("Scenarios", "table", "report", role="output", keeps_result=True, shown=False),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_row(self) -> Plan:
        if any(scenario.scenarios for scenario in self.scenarios.values()):
            raise ValueError("a scenario has none of its own")
        return self

    def value(self, path: str) -> object:
        """Return the value at a dotted path such as ``training.micro_batch``; None where a part is absent."""
        found: object = self
        for part in path.split("."):
            if isinstance(found, dict):
                found = found.get(part)
            elif found is not None:
                found = getattr(found, part)
        return found

    def plain_data(self) -> dict[str, Any]:
        """Return the plan as plain data, the form of the plan file; without the plans beside it."""
        return self.model_dump(mode="json", exclude={"scenarios"})
