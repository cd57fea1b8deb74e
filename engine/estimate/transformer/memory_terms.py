"""The equations behind the parts of training memory, one function an equation, and their sums by phase and stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number, OnDemand, added, any_true, where
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import BITS_PER_BYTE

ZERO = "Rajbhandari et al. 2020"
ACTIVATIONS = "Korthikanti et al. 2022, with fused attention"
CAPTURED_INPUT = counted("captured-input-bytes")
GRADIENTS, OPTIMIZER = Figure.MEMORY_GRADIENTS, Figure.MEMORY_OPTIMIZER

PHASES = {
    "load": "while the checkpoint is loaded",
    "loss": "in the loss",
    "layer": "at the start of the backward pass",
    "backward": "at the end of the backward pass",
    "optimizer": "in the optimizer's step",
    "checkpoint": "while a checkpoint is written",
}
PHASES_AT = {
    "load": ("load",),
    "forward peak": ("loss",),
    "backward peak": ("layer", "backward"),
    "optimizer": ("optimizer",),
    "checkpoint": ("checkpoint",),
}
"""The phases of each moment that results tell."""
FIRST, SECOND, LAST = "first", "second", "last"


# Bytes of something kept for each parameter and split over sharding groups.
sharded_bytes = formula(
    "bytes = parameter_bytes · (dense / shard + experts / expert_shard)",
    unit="B",
    source=ZERO,
    parameter_bytes=("what is kept for a parameter, in bytes", "", "stored_weight_bytes"),
    dense="parameters on the device outside routed experts, unsharded",
    experts="parameters of its routed experts, unsharded",
    shard="ranks that share the dense ones",
    expert_shard="ranks that share the experts",
)


@equation(
    "each = bits / 8",
    unit="B per weight",
    source="bits a weight of the format, scales included: quantizations.yaml",
    bits="bits of a weight of the layers' matrices, with its share of the block's constants",
)
def stored_weight_bytes(bits: Number) -> Number:
    """Bytes of a weight in the layers of a quantized base."""
    return bits / BITS_PER_BYTE


# Bytes of the optimizer's states and its copy of the weights.
state_bytes = formula(
    "states = layers + parameter_bytes · ends / shard",
    unit="B",
    source=ZERO + "; embedding and head may have another optimizer than the layers' matrices",
    part=OPTIMIZER,
    layers=("bytes of those of the layers on the device", "B", "sharded_bytes"),
    parameter_bytes=("bytes for a parameter outside the layers", "B"),
    ends="parameters of embedding, head and outer norms on the device, unsharded",
    shard="ranks that share them",
)

# Bytes of weights kept in the type of their products beside the weights themselves.
narrow_copies = formula(
    "bytes = copies · copy_bytes · matrices",
    unit="B",
    source="Transformer Engine, is_first_microbatch: weights are cast once a step, and kept with their transposes",
    copies="copies of a weight that the framework keeps",
    copy_bytes=("bytes of one; 0 where operands keep the type of the weights", "B"),
    matrices="weights of the layers on the device",
)

# Bytes of weights between uses.
weight_bytes = formula(
    "weights = layers + parameter_bytes · ends / shard + adapters + copies + further",
    unit="B",
    source=ZERO + "; embedding and head lie outside the layers, where quantization stops",
    part=Figure.MEMORY_WEIGHTS,
    layers=("bytes of the layers on the device", "B", "sharded_bytes"),
    parameter_bytes=("bytes of a parameter outside the layers", "B"),
    ends="parameters of embedding, head and outer norms on the device, unsharded",
    shard="ranks that share them",
    adapters=("bytes of adapters beside a frozen base", "B"),
    copies=("bytes of weights in the type of their products", "B", "narrow_copies"),
    further=("bytes of the weights of further models, trained or not", "B", "further_model_bytes"),
)

# Bytes of activations in one phase of a step.
alive_activations = formula(
    "activations = kept · (1 - offloaded) + outputs + working",
    unit="B",
    source="what the forward pass left for the backward pass, and the layer at work",
    part=Figure.MEMORY_ACTIVATIONS,
    kept=("bytes that wait for the backward pass", "B", "activation_bytes"),
    offloaded="share of them that lies in host memory",
    outputs=("bytes of outputs a pipeline stage keeps for the next one", "B"),
    working=("bytes of the layer at work", "B", "working_bytes"),
)

# Bytes of buffers in one phase of a step.
buffer_bytes = formula(
    "buffers = gathered + ends + casts + buckets",
    unit="B",
    source="parameters gathered for use, gradients in fp32 for the optimizer, communication buckets",
    part=Figure.MEMORY_BUFFERS,
    gathered=(
        "bytes of sharded layers that are whole while they are used",
        "B",
        ("whole_bytes.idle", "whole_bytes.busy"),
    ),
    ends=("bytes of embedding and head, gathered around the loss, with the head's gradient", "B", "whole_bytes.ends"),
    casts=("bytes of gradients in the optimizer's type, and of what its operations write aside", "B"),
    buckets=("bytes of the framework's communication buckets", "B"),
)

# Bytes of blocks that the allocator holds for the loss while a layer is at work, or the other way round.
idle_bytes = formula(
    "idle = share · min(layer, logits)",
    unit="B",
    source="the loss and the layer at work take turns, each with blocks that the other cannot use",
    share=(
        "share of the smaller of both that finds no room in blocks of the larger",
        "",
        "coefficients.idle-logit-blocks",
    ),
    layer=("bytes of the layer at work", "B", "working_bytes"),
    logits=("bytes of the loss", "B", "logit_bytes"),
)


@equation(
    "bytes = captured · 16 · tokens",
    unit="B",
    source="captured kernels read their inputs where they lay when they were captured: PyTorch, CUDA graphs",
    captured="1 where they are",
    tokens="tokens of a micro-batch on the device",
)
def captured_input_bytes(captured: Number, tokens: Number) -> Number:
    """Bytes of inputs that stay in place because the kernels of a step are captured."""
    return captured * CAPTURED_INPUT * tokens


host_bytes = formula(
    "host = optimizer + weights + activations",
    unit="B",
    source="what the plan offloads",
    part=Figure.MEMORY_HOST_BYTES,
    optimizer=("bytes of offloaded optimizer states, and of the gradients that wait there for the update", "B"),
    weights=("bytes of offloaded weights", "B"),
    activations=("bytes of offloaded activations", "B"),
)

# Bytes of activations alive when the backward pass starts.
activation_bytes = formula(
    "kept = tokens · layers_in_flight · ((1 - full) · layer + full · layer_input)",
    unit="B",
    source=ACTIVATIONS + "; pipeline depth after Narayanan et al. 2021",
    tokens="tokens of a micro-batch on the device",
    layers_in_flight="layers times micro-batches whose activations wait for their backward pass",
    full="share of the layers of which only the input is kept",
    layer=("bytes a token keeps in one other layer", "B", "layer_activation"),
    layer_input=("bytes a token keeps in a fully checkpointed layer", "B", "input_bytes"),
)


@dataclass(frozen=True)
class StageMemory:
    """Bytes on one device of a pipeline stage."""

    phases: Mapping[str, Mapping[str, Number]]  # bytes inside the framework's allocator, by phase of a step and by part
    # further bytes by phase, of blocks that the allocator keeps for a stream of their own
    streamed: Mapping[str, Number]
    host: Number  # bytes in host memory
    host_state: Number  # those of them that a checkpoint holds

    @cached_property
    def timeline(self) -> dict[str, Number]:
        """Bytes by phase."""
        return {phase: added(parts.values()) for phase, parts in self.phases.items()}

    @cached_property
    def peak(self) -> Number:
        """Bytes in the fullest phase."""
        return largest(self.timeline.values())

    @cached_property
    def stranded(self) -> Number:
        """Bytes that the allocator holds beyond the peak because blocks of one stream are of no use to another."""
        held = (bytes_ + self.streamed.get(phase, 0.0) for phase, bytes_ in self.timeline.items())
        return largest(held) - self.peak

    @property
    def parts(self) -> Mapping[str, Number]:
        """Bytes by part in the fullest phase; not kept, since it holds the stage, and its arrays would outlive use."""
        return OnDemand(next(iter(self.phases.values())), self._in_fullest_phase)

    def _in_fullest_phase(self, part: str) -> Number:
        first, *_ = self.phases
        chosen = self.phases[first][part]
        for phase, here in self._fullest:
            chosen = where(here, self.phases[phase][part], chosen)
        return chosen

    @cached_property
    def _fullest(self) -> list[tuple[str, object]]:
        """Where each phase but the first is the fullest; phases that never are do not stand here."""
        _, *others = self.phases
        here = ((phase, self.timeline[phase] >= self.peak) for phase in others)
        return [(phase, flags) for phase, flags in here if any_true(flags)]


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on the devices of the pipeline stages that may be the fullest (one, without a pipeline)."""

    stages: Mapping[str, StageMemory]

    @cached_property
    def peak(self) -> Number:
        """Bytes in the fullest phase of the fullest stage."""
        return largest(stage.peak for stage in self.stages.values())

    @property
    def parts(self) -> Mapping[str, Number]:
        """Bytes by part in the fullest phase of the fullest stage; not kept, as those of a stage are not."""
        names = self.stages[FIRST].parts
        return OnDemand(names, lambda part: self._on_fullest(lambda stage: stage.parts[part]))

    @property
    def timeline(self) -> Mapping[str, Number]:
        """Bytes by moment on the fullest stage; not kept, as its parts are not."""
        return OnDemand(PHASES_AT, lambda moment: largest(map(self._at, PHASES_AT[moment])))

    @cached_property
    def stranded(self) -> Number:
        """Bytes that the allocator of the fullest stage holds beyond its peak for the sake of streams."""
        return self._on_fullest(lambda stage: stage.stranded)

    @cached_property
    def host(self) -> Number:
        """Bytes in host memory for a device of the fullest stage."""
        return self._on_fullest(lambda stage: stage.host)

    @cached_property
    def host_state(self) -> Number:
        """Bytes in host memory that a checkpoint of the fullest stage holds."""
        return self._on_fullest(lambda stage: stage.host_state)

    @property
    def ends(self) -> dict[str, Number]:
        """Peaks of the first, the last and the fullest stage; all the same without a pipeline."""
        first = self.stages[FIRST]
        return {FIRST: first.peak, LAST: self.stages.get(LAST, first).peak, "fullest": self.peak}

    @property
    def places(self) -> dict[str, Number]:
        """Bytes by phase and stage, in words."""
        ending = ", on the {} pipeline stage" if len(self.stages) > 1 else ""
        return {
            f"{PHASES[phase]}{ending.format(name)}": bytes_
            for name, stage in self.stages.items()
            for phase, bytes_ in stage.timeline.items()
        }

    def _at(self, phase: str) -> Number:
        return self._on_fullest(lambda stage: stage.timeline[phase])

    def _on_fullest(self, read: Callable[[StageMemory], Number]) -> Number:
        """Return what is read of the fullest stage: chosen place by place where arrays are estimated."""
        fullest = read(self.stages[FIRST])
        for stage, fuller in self._fuller:
            fullest = where(fuller, read(stage), fullest)
        return fullest

    @cached_property
    def _fuller(self) -> list[tuple[StageMemory, object]]:
        """Where each stage is fuller than all before it; stages that never are do not stand here."""
        first, *others = self.stages.values()
        peak, fullest = first.peak, list[tuple[StageMemory, object]]()
        for other in others:
            fuller = other.peak > peak
            if any_true(fuller):
                fullest.append((other, fuller))
                peak = np.maximum(peak, other.peak)
        return fullest


def largest(values: Iterable[Number]) -> Number:
    """The largest of some numbers, place by place."""
    fullest, *others = sorted(values, key=np.size)
    for value in others:
        fullest = np.maximum(fullest, value)
    return fullest
