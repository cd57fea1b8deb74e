"""What every framework asks of a plan, as whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.estimate import ResolvedPlan, estimate_resolved, job_steps
from capacity_tui.engine.estimate.timing import attention_in_place_of
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import (
    Layout,
    ParallelismSection,
    Plan,
    TrainingSection,
    accumulation_of,
    plan_layout,
    remarked,
    software_id,
)
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass

NETWORK = "network"  # The kind of a model of layers, which its training script defines


@dataclass(frozen=True, slots=True)
class Job:
    """A settled plan of a transformer or a network, as launchers and configuration files count."""

    plan: Plan  # every default filled in
    transformer: TransformerShape | None  # sizes of the model; None of a network
    model: str  # its name on the model hub, or the file or the family the plan names
    on_hub: bool  # whether the hub has the model by that name, in this shape
    on_cpu: bool  # whether the processor does the work
    steps: int | None  # optimizer steps; None where the plan gives no length
    framework: str | None  # row of the software that trains, or of what it is built on; None where the plan names none
    attention: str  # the plan's kernels of attention, or those that the device has in their place
    precision: str  # the type that the device multiplies in
    has_bf16: bool  # whether the device has units for bf16
    layout: Layout  # how the model is spread, as the rules of layouts read it
    save_steps: int | None = None  # optimizer steps between two checkpoints; None where the plan leaves that open

    @property
    def kind(self) -> str:
        """The kind of transformer, or ``network``."""
        return NETWORK if self.transformer is None else self.transformer.kind

    @property
    def is_decoder(self) -> bool:
        """Whether it is a transformer whose tokens attend to those before them alone."""
        return self.transformer is not None and self.transformer.is_decoder

    @property
    def shape(self) -> TransformerShape:
        """Sizes of the transformer that files of its software are written for."""
        assert self.transformer is not None  # noqa: S101 - no such file is written of a network
        return self.transformer

    @property
    def training(self) -> TrainingSection:
        """The plan's part about training."""
        return self.plan.training

    @property
    def parallel(self) -> ParallelismSection:
        """The plan's part about spreading the model over devices."""
        return self.plan.parallelism

    @property
    def data_parallel(self) -> int:
        """Replicas of the model."""
        return int(self.parallel.dp or 1)

    @property
    def tensor_parallel(self) -> int:
        """Devices a layer is split over."""
        return int(self.parallel.tp or 1)

    @property
    def pipeline_parallel(self) -> int:
        return int(self.parallel.pp or 1)

    @property
    def context_parallel(self) -> int:
        """Devices a sequence is split over."""
        return int(self.parallel.cp)

    @property
    def expert_parallel(self) -> int:
        """Devices the experts of a layer are spread over."""
        return int(self.parallel.ep)

    @property
    def interleave(self) -> int:
        """Pipeline chunks a device holds."""
        return int(self.parallel.interleave)

    @property
    def devices(self) -> int:
        """Processes to start: data × tensor × pipeline × context parallel."""
        return self.data_parallel * self.tensor_parallel * self.pipeline_parallel * self.context_parallel

    @property
    def per_node(self) -> int:
        """Processes on one machine."""
        return min(self.devices, self.plan.hardware.per_node or self.devices)

    @property
    def nodes(self) -> int:
        """Machines, the last one perhaps not full."""
        return -(-self.devices // self.per_node)

    @property
    def micro_batch(self) -> int:
        """Sequences a replica takes at once."""
        return int(self.training.micro_batch)

    @property
    def accumulation(self) -> int:
        """Micro-batches a replica takes before an optimizer step."""
        return accumulation_of(self.plan)

    @property
    def global_batch(self) -> int:
        """Sequences of an optimizer step: micro-batch × accumulation × replicas."""
        return self.micro_batch * self.accumulation * self.data_parallel

    @property
    def loader_workers(self) -> int | None:
        """Loader processes of each device; None where the plan leaves them open."""
        workers = self.plan.data.workers
        return workers if isinstance(workers, int) else None

    @property
    def prefetched(self) -> int | None:
        """Batches that each of them keeps ready; None where there are none, or the plan leaves that open."""
        prefetch = self.plan.data.prefetch
        return prefetch if isinstance(prefetch, int) and prefetch and self.loader_workers else None

    @property
    def zero(self) -> int:
        """Sharding stage."""
        return int(self.parallel.zero or 0)

    @property
    def shards(self) -> int:
        """Replicas that share one copy of what is sharded; frameworks multiply it by context parallel."""
        if self.zero == 0:
            return 1
        group = max(1, (self.parallel.shard or self.data_parallel) // self.context_parallel)
        return group if self.data_parallel % group == 0 else self.data_parallel

    @property
    def has_groups(self) -> bool:
        """Whether what is sharded is so over some of the replicas alone."""
        return 1 < self.shards < self.data_parallel

    def without_tensor_parallel(self) -> Job:
        """Return the job on the same devices where software splits no layer: they share whole layers in its place.

        Each device then holds the activations of whole layers, so that these are computed again.
        """
        if self.tensor_parallel == 1:
            return self
        copies = self.data_parallel * self.tensor_parallel
        parallel = self.parallel.model_copy(
            update={"tp": 1, "dp": copies, "zero": 3, "shard": copies * self.context_parallel}
        )
        training = self.training.model_copy(update={"checkpointing": "full"})
        return replace(self, plan=self.plan.model_copy(update={"parallelism": parallel, "training": training}))

    @property
    def layers(self) -> int:
        """Blocks of the model."""
        return int(self.shape.layers)


def job_of(resolved: ResolvedPlan, catalog: Catalog) -> Job | None:
    """Return the job of a settled plan; None for what a library fits in one go."""
    if resolved.shape is None and resolved.family.kind != NETWORK:
        return None
    row = catalog.architectures.get(resolved.family.id)
    plan = resolved.plan
    device = resolved.cluster.device
    instead = attention_in_place_of(plan.training.attention, device, catalog)
    hub = row.hf_id if row is not None and plan.model.config is None else None
    return Job(
        plan=plan,
        transformer=resolved.shape,
        model=hub or plan.model.config or plan.model.name or resolved.family.id,
        on_hub=hub is not None and not plan.model.spec,
        on_cpu=device.is_processor,
        steps=_steps(plan),
        framework=None if plan.training.framework is None else software_id(plan.training.framework, catalog),
        attention=plan.training.attention if instead is None else instead.value,
        precision=device.native(str(plan.training.precision)),
        has_bf16=device.native("bf16") == "bf16",
        layout=Layout(float(plan.hardware.devices or 1), float(plan.parallelism.dp or 1))
        if resolved.shape is None
        else plan_layout(plan, resolved.shape, catalog),
        save_steps=_save_steps(resolved, catalog),
    )


def layout_remarks(job: Job) -> Iterator[str]:
    """Yield what a launcher cannot take from the plan as it is."""
    if job.nodes * job.per_node != job.devices:
        yield f"{job.devices} devices do not fill {job.nodes} nodes of {job.per_node}: start fewer on the last"
    for rule in remarked(job.layout):
        yield f"{rule.broken}: {rule.figures(job.layout)}"


def run_remarks(job: Job) -> Iterator[str]:
    """Yield what files of any training say of its software, layout, length, learning rate and kernels."""
    for remarks in (software_remarks, layout_remarks, length_remarks, rate_remarks, kernel_remarks):
        yield from remarks(job)


def software_remarks(job: Job) -> Iterator[str]:
    """Yield for which software a file is, where the plan names other software that is built on it."""
    named = job.training.framework
    if named is not None and job.framework is not None and key_of(named) != key_of(job.framework):
        yield f"{printable(named)}: this is for {job.framework}, which it is or is built on"


def kernel_remarks(job: Job) -> Iterator[str]:
    """Yield what the plan asks of a device that has no units or kernels for it."""
    if job.attention != job.training.attention:
        yield f"attention {job.training.attention}: this device runs {job.attention} in its place"
    if job.precision != job.training.precision:
        yield f"precision {job.training.precision}: this device has no units for it and computes in {job.precision}"


def length_remarks(job: Job) -> Iterator[str]:
    """Yield what a training loop cannot take from the plan as it is."""
    global_batch = int(job.training.global_batch or 1)
    if global_batch != job.global_batch:
        yield (
            f"a global batch of {global_batch} is no multiple of {job.micro_batch} x {job.data_parallel}: "
            f"{job.global_batch} is written"
        )
    if job.plan.model.spec:
        changed = ", ".join(f"{name}={value}" for name, value in job.plan.model.spec.items())
        yield f"the plan changes the model ({changed}): change its configuration file alike"
    if job.training.document_tokens is not None:
        yield "documents: attention stops at their ends only where the data loader tells it where they are"
    if job.steps is None:
        yield "the plan gives no length: set the number of steps"


def data_remarks(job: Job) -> Iterator[str]:
    """Yield what the plan says of its data and the file does not."""
    data = job.plan.data
    if data.source == "streaming":
        buffer = data.shuffle_buffer
        shuffled = f".shuffle(buffer_size={buffer})" if isinstance(buffer, int) and buffer else ""
        yield f"the data are streamed: load_dataset(..., streaming=True){shuffled}"
    if data.phases:
        yield "phases: this file is for the whole job at its full length; configs -o writes one for each phase"


def rate_remarks(job: Job) -> Iterator[str]:
    """Yield that a learning rate is to be set where the plan gives none."""
    if job.training.learning_rate is None:
        yield "the plan gives no learning rate: set one"


def _save_steps(resolved: ResolvedPlan, catalog: Catalog) -> int | None:
    """Return the steps between two checkpoints, as many as are estimated to take the plan's time."""
    every = resolved.plan.recovery.checkpoint_every
    if resolved.plan.is_inference or not isinstance(every, float):
        return None
    return max(1, round(every / mean(estimate_resolved(resolved, catalog).computation.step_seconds.value)))


def _steps(plan: Plan) -> int | None:
    result = job_steps(plan) if not plan.is_inference else None
    return None if result is None else max(1, round(result))
