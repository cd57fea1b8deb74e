"""The three modes of automatic configuration, as data."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import Informational, Row

Share = Annotated[float, Field(ge=0, le=1)]
Range = tuple[NonNegativeFloat | None, NonNegativeFloat | None]  # Lowest and highest value; None where that end is open

WORDS_OF_THE_DOCUMENT = Informational(
    "is what the document asks for; the batch of the job and the micro-batch decide it"
)

CHOSEN_FROM = Informational("is the range from which the figure beside it was chosen")


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Reserve(_Block):
    """Memory a mode keeps free, and the range from which its figure was chosen."""

    context_gb: NonNegativeFloat = Field(description="driver context, a device")
    context_gb_range: Annotated[Range, CHOSEN_FROM]
    fragmentation: Share = Field(description="of what the allocator holds")
    fragmentation_range: Annotated[Range, CHOSEN_FROM]
    spikes: Share = Field(description="of the estimated peak")
    system_gb: NonNegativeFloat = Field(description="host memory for the system and other processes")
    system_gb_range: Annotated[Range, CHOSEN_FROM]


class Watch(_Block):
    """What is watched for during a run in this mode: values of the plan's section of that name."""

    style: str = Field(description="why, in a clause")
    temperature_c: PositiveFloat = Field(description="of a device")
    power_share: Share = Field(description="of the power limit")
    memory_share: Share = Field(description="of device memory")
    nan: Literal["stop", "warn"] = Field(description="after a loss that is no number")


class Recovery(_Block):
    """What happens when a run meets trouble: values of the plan's section of that name."""

    style: str = Field(description="why, in a clause")
    out_of_memory: tuple[str, ...] = Field(description="what is tried in turn")
    max_restarts: NonNegativeInt
    heat: Literal["pause", "warn"]
    pause_below: Share = Field(description="charge of the battery")
    device_lost: Literal["fewer", "processor", "stop"]
    unstable: Literal["accumulate", "stop"]
    hang: Literal["restart", "warn"]
    killed: Literal["restart", "stop"]
    checkpoint_share: Share = Field(description="share of the estimated time between checkpoints")
    checkpoint_minutes_range: tuple[NonNegativeFloat, NonNegativeFloat] = Field(
        description="bounds of the time between checkpoints"
    )


class Feeding(_Block):
    """How data reach the devices in this mode: values of the plan's section about data follow from it."""

    style: str = Field(description="why, in a clause")
    prefers_local: bool = Field(description="takes data from a disk that has room, also where a stream would be enough")
    spare: PositiveFloat = Field(description="rate of the loader over what the devices take")
    prefetch: PositiveInt = Field(description="batches that each loader worker keeps ready")
    shuffle_buffer: PositiveInt = Field(description="samples among which a stream draws its next one")
    cache_share: Share = Field(description="of host memory that a cache of data may take")
    first_share: Share = Field(description="of the tokens, in the first of two phases")
    first_length: Share = Field(description="length of a sequence in that phase, of that in the second")


class Serving(_Block):
    """What takes the place of a mode where a model is served."""

    name: str
    target: str = Field(description="what it is for")
    goal: Literal["latency", "devices", "throughput"] = Field(description="what is chosen by")
    utilization: Share = Field(description="of available memory")
    power_share: Share = Field(description="of the thermal design power")
    most_requests: PositiveInt | None = Field(None, description="at once; none is as many as fit")


class Warned(_Block):
    """What to know about a run that uses so much of the machine."""

    figure: Literal["memory", "power"] = Field(description="share of device memory, or of the power limit")
    least: Share = Field(description="share from which it is worth saying")
    text: str


class Mode(Row):
    """How much of the machine a configuration may use, and what it is for."""

    target: str = Field(description="what it is for")
    utilization: Share = Field(description="of available memory, device and host")
    parameters_range: Range
    batch_range: Range = Field(description="sequences in a batch; an open end is as many as fit")
    accumulation: Annotated[Literal["high", "moderate", "low"], WORDS_OF_THE_DOCUMENT]
    replica_batch: PositiveInt = Field(description="sequences of a step for each device")
    sequence_range: Range = Field(description="tokens")
    training_hours_range: Range
    power_share_range: Range = Field(description="of the thermal design power")
    tokens_per_parameter: PositiveFloat = Field(description="training tokens planned for a parameter")
    tokens_per_parameter_range: Annotated[Range, CHOSEN_FROM]
    reserve: Reserve
    serving: Serving
    watch: Watch
    recovery: Recovery
    data: Feeding
    warnings: tuple[Warned, ...] = ()

    @property
    def title(self) -> str:
        """The name as the head of a column."""
        return self.name.lower()

    @property
    def line(self) -> str:
        """What the mode is, in a line: what it uses at most, and what for."""
        power = self.power_share_range[1]
        of_power = "" if power is None else f" and {100 * power:.0f} % of the power limit"
        return f"{self.title}: up to {100 * self.utilization:.0f} % of memory{of_power}; {self.target}"

    @property
    def served(self) -> Self:
        """The mode as it is where a model is served."""
        serving = self.serving
        return self.model_copy(
            update={
                "name": serving.name,
                "target": serving.target,
                "utilization": serving.utilization,
                "power_share_range": (None, serving.power_share),
                "batch_range": (1, serving.most_requests),
            }
        )


class TrainingBatch(Row):
    """Tokens of an optimizer step that a published run used."""

    parameters: PositiveFloat = Field(description="of the model, embeddings included")
    mixture: bool = Field(description="whether the model is a mixture of experts")
    tokens_per_step: PositiveFloat = Field(description="at the end of the schedule of its batch")
