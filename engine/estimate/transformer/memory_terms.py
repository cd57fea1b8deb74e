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


sharded_bytes = formula()  # Bytes of something kept for each parameter and split over sharding groups


@equation
def stored_weight_bytes(bits: Number) -> Number:
    """Bytes of a weight in the layers of a quantized base."""
    return bits / BITS_PER_BYTE


state_bytes = formula()  # Bytes of the optimizer's states and its copy of the weights
narrow_copies = formula()  # Bytes of weights kept in the type of their products beside the weights themselves
weight_bytes = formula()  # Bytes of weights between uses
alive_activations = formula()  # Bytes of activations in one phase of a step
buffer_bytes = formula()  # Bytes of buffers in one phase of a step

# Bytes of blocks that the allocator holds for the loss while a layer is at work, or the other way round.
idle_bytes = formula()


@equation
def captured_input_bytes(captured: Number, tokens: Number) -> Number:
    """Bytes of inputs that stay in place because the kernels of a step are captured."""
    return captured * CAPTURED_INPUT * tokens


host_bytes = formula()
activation_bytes = formula()  # Bytes of activations alive when the backward pass starts


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
