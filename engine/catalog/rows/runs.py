"""Rows about runs: their logs, failures and what is watched for, what runs now, and what was measured of kernels."""

import math
import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property, lru_cache
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from capacity_tui.engine.catalog.rows.base import IDENTIFIES, Row
from capacity_tui.engine.catalog.rows.prices import HOURS_OF_A_MONTH
from capacity_tui.engine.errors import UnitError
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA, MEGA, MICRO, PERCENT, parse_bytes

LOG_FIGURES: Mapping[str, str] = {
    "step": "optimizer steps done",
    "total_steps": "optimizer steps of the whole run",
    "epoch": "passes over the data done",
    "epoch_step": "steps done in this epoch",
    "epoch_steps": "steps of an epoch",
    "loss": "loss of the training data",
    "learning_rate": "learning rate",
    "grad_norm": "norm of the gradients",
    "tokens": "tokens worked through, or written, so far",
    "prompt_tokens": "tokens of prompts read so far",
    "samples": "samples or requests worked through so far",
    "step_seconds": "time of one optimizer step",
    "input_seconds": "time of a step that waited for data",
    "elapsed_seconds": "time since the run began, as it tells",
    "tokens_per_second": "tokens a second, of all devices; tokens written where a model is served",
    "tokens_per_second_per_device": "tokens a second of one device",
    "prompt_tokens_per_second": "tokens of prompts read a second",
    "samples_per_second": "samples a second, of all devices",
    "memory_bytes": "largest memory of a device",
    "global_batch": "samples of one optimizer step",
    "micro_batch": "samples of one device's forward pass",
    "devices": "devices the run is on",
    "running_requests": "requests that run",
    "waiting_requests": "requests that wait",
    "cache_share": "share of the KV cache that is used",
    "time_to_first_token_seconds": "time to the first token",
    "time_per_output_token_seconds": "time between two tokens",
}
"""Figures that a log may report, with what each is."""

NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)\b"
_PLACEHOLDER = re.compile(r"<(number|1/s|us|ms|s|size|MB|MiB|GB|GiB|%|clock)>")
_FORMS = {"size": rf"(?P<number>{NUMBER})\s*(?P<unit>[KMGT]i?B)", "clock": r"(?P<number>(?:\d+:)?\d+:\d+(?:\.\d+)?)"}
_KEY = re.compile(rf"(?P<name>.+?)(?:\s+{_PLACEHOLDER.pattern})?")
_WORD_CHARACTER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression for one number, and what makes the number one in basic units."""

    pattern: re.Pattern[str]
    unit: str

    def find(self, line: str) -> float | None:
        """Return the figure in basic units; None where the line does not have it."""
        match = self.pattern.search(line)
        if match is None:
            return None
        return in_basic_units(match["number"], match["unit"] if self.unit == "size" else self.unit)


@dataclass(frozen=True, slots=True)
class Key:
    """A name under which a program writes a figure; ``unit`` is that of its values."""

    name: str
    unit: str


def pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression that does not mind the case; raises ValueError if the text is invalid."""
    try:
        return re.compile(text, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {text[:80]!r}: {error}") from None


def parse_expression(text: str) -> Expression:
    """Return the expression that a text stands for; raises ValueError where it has not one placeholder."""
    placeholders = _PLACEHOLDER.findall(text)
    if len(placeholders) != 1:
        raise ValueError(f"an expression holds one of <number> <s> <ms> <1/s> <size> ...: {text[:80]!r}")
    unit = placeholders[0]
    form = _FORMS.get(unit, rf"(?P<number>{NUMBER})")
    return Expression(pattern(_PLACEHOLDER.sub(lambda _: form, text)), unit)


def parse_key(text: str) -> Key:
    """Return the key that a name with or without a unit stands for."""
    match = _KEY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a key is a name, with or without a unit such as <ms>: {text[:80]!r}")
    return Key(key_of_name(match["name"]), match[2] or "number")


@lru_cache(maxsize=1 << 12)
def key_of_name(name: str) -> str:
    """Return a name without what writers differ in: case, spaces and punctuation."""
    return _WORD_CHARACTER.sub("_", name.lower()).strip("_")


def in_basic_units(text: str, unit: str) -> float | None:
    """Return a number as a log writes it in seconds, bytes or shares; None where it is invalid."""
    if unit == "clock":
        return _clock(text)
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    if unit in _UNITS:
        return _UNITS[unit](number)
    try:
        return number * parse_bytes(f"1 {unit}")
    except UnitError:
        return None


def _clock(text: str) -> float:
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60.0 * seconds + float(part)
    return seconds


_UNITS: Mapping[str, Callable[[float], float]] = {
    "number": lambda number: number,
    "s": lambda number: number,
    "ms": lambda number: number * 1e-3,
    "us": lambda number: number * MICRO,
    "1/s": lambda number: 1.0 / number if number else math.inf,
    "%": lambda number: number / PERCENT,
    "MB": lambda number: number * MEGA,
    "MiB": lambda number: number * 2**20,
    "GB": lambda number: number * GIGA,
    "GiB": lambda number: number * 2**30,
}


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]


class RunLog(Row):
    """How one program writes its logs."""

    signs: tuple[str, ...] = Field((), description="texts of which a line has to hold one")
    lines: str | None = Field(None, description="expression that a line has to hold too")
    figures: Mapping[str, Texts] = Field({}, description="expressions that find figures in lines")
    keys: Mapping[str, Texts] = Field({}, description="names of figures where names are written with values")
    summary_signs: tuple[str, ...] = Field((), description="texts by which a line sums up the whole run")
    precisions: Mapping[str, Texts] = Field({}, description="expressions for lines that say the number format")
    otherwise: bool = Field(False, description="looked at only where no other row reads a step")

    @field_validator("figures", "keys")
    @classmethod
    def _known_figures(
        cls, value: Mapping[str, tuple[str, ...]], info: ValidationInfo
    ) -> Mapping[str, tuple[str, ...]]:
        unknown = sorted(set(value) - set(LOG_FIGURES))
        if unknown:
            raise ValueError(f"no figure of logs is called {unknown[0]!r}; known: {', '.join(LOG_FIGURES)}")
        for texts in value.values():
            for text in texts:
                parse_expression(text) if info.field_name == "figures" else parse_key(text)
        return value

    @field_validator("lines")
    @classmethod
    def _regular(cls, value: str | None) -> str | None:
        if value is not None:
            pattern(value)
        return value

    @field_validator("precisions")
    @classmethod
    def _all_regular(cls, value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        for texts in value.values():
            for text in texts:
                pattern(text)
        return value

    @cached_property
    def expressions(self) -> Mapping[str, tuple[Expression, ...]]:
        """What finds each figure in a line, ready to search."""
        return {figure: tuple(map(parse_expression, texts)) for figure, texts in self.figures.items()}

    @cached_property
    def named(self) -> Mapping[str, tuple[Key, ...]]:
        """Names of each figure, the ones that count first first."""
        return {figure: tuple(map(parse_key, texts)) for figure, texts in self.keys.items()}


FailureKind: TypeAlias = Literal["out_of_memory", "device_lost", "unstable", "hang", "disk_full", "killed"]


class FailureSign(Row):
    """What a run leaves behind that failed in one way."""

    kind: FailureKind
    where: Literal["device", "host"] | None = Field(None, description="whose memory it is")
    output: tuple[str, ...] = Field((), description="expressions of lines that the run writes")
    kernel: tuple[str, ...] = Field((), description="expressions of lines in the kernel's log")
    signals: tuple[int, ...] = Field((), description="by which the kernel ends such a run")
    xids: tuple[int, ...] = Field((), description="numbers of the driver that count")

    @field_validator("output", "kernel")
    @classmethod
    def _expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"not a regular expression: {text}: {error}") from None
        return value


@cache
def compiled(expressions: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return expressions as they are searched for, line by line."""
    return tuple(re.compile(text, re.MULTILINE) for text in expressions)


class Detector(Row):
    """What is watched for in a run, and from when on it is reported."""

    level: Literal["note", "warning", "error"] = Field(description="how it is reported")
    remedy: str = Field(description="what to do, in one clause")
    thresholds: Mapping[str, float] = Field({}, description="from when on it is reported")
    causes: Mapping[str, tuple[str, ...]] = Field({}, description="words of drivers by what they mean")


PERFORMANCE_TAG = "performance_upgrade"  # The tag of workloads that are to run faster; others are to cost less


class Scenario(BaseModel):
    """What runs now, on what, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    current_instance: str = Field(description="id or short name of an instance")
    current_gpu_count: PositiveInt = Field(description="GPUs in use, over all instances")
    workload_type: Literal["train", "finetune", "infer", "batch_infer"]
    model_size: str = Field(description="a size, a model or a count of parameters")
    monthly_hours: float = Field(HOURS_OF_A_MONTH, gt=0, le=744)
    use_spot: bool = False
    precision: str = "fp16"


class Workload(Row):
    """One scenario, with what people expect of moving it."""

    scenario: Scenario
    description: Annotated[str, IDENTIFIES] = ""
    expected_outcome: str | None = Field(None, description="what people expect of moving")
    tags: tuple[str, ...] = ()


class WorkloadSet(Row):
    """Workloads that answer one question together."""

    purpose: str = Field("", description="what question they answer")
    use_case: str = Field("", description="who it is for")
    workloads: tuple[str, ...] = Field(description="ids in the workloads catalogue")


class MeasuredCurve(BaseModel):
    """Speed of one kind of kernel at sampled sizes."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(description="kind of kernel, with the type of compute-bound ones")
    sizes: tuple[PositiveFloat, ...] = Field(min_length=1, description="FLOPs or bytes of a run, ascending")
    ratios: tuple[PositiveFloat, ...] = Field(min_length=1, description="measured over modelled rate at each size")

    @model_validator(mode="after")
    def _one_ratio_a_size(self) -> Self:
        if len(self.sizes) != len(self.ratios) or list(self.sizes) != sorted(self.sizes):
            raise ValueError(f"{self.name}: sizes ascend, and each has its ratio")
        return self


class MeasuredError(BaseModel):
    """How well constants describe what they were fitted to."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str
    count: PositiveInt = Field(description="samples")
    median: NonNegativeFloat = Field(description="median relative error of the fit")
    worst: NonNegativeFloat = Field(description="largest relative error")
    interpolated: NonNegativeFloat | None = Field(None, description="median error between the samples")


class MeasuredDevice(Row):
    """The devices of one kind of node of a cluster, as kernels ran on one of them."""

    cluster: str = Field(description="id of the cluster")
    device: str = Field(description="id of an accelerator, or name and cores of a processor")
    software: dict[str, str] = Field(description="versions by name")
    gemm: dict[str, PositiveFloat] = Field(default_factory=dict, description="share of the peak of products, by type")
    constants: dict[str, PositiveFloat] = Field(default_factory=dict, description="other constants, by name")
    curves: tuple[MeasuredCurve, ...] = ()
    errors: tuple[MeasuredError, ...] = ()
