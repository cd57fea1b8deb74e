"""The short flags of a plan as somebody gave them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanFlags:
    """Flags as somebody gave them; None where they were not given.

    Attributes:
        model: a model's name, or its size.
        task: train, full, lora, qlora, dora, infer or fit.
        gpu: hardware with its number, as ``8xH100-SXM``.
        seq: tokens of one sequence.
        tokens: of the whole job.
        imports: configurations of other tools, by file or folder.
    """

    model: str | None = None
    task: str | None = None
    gpu: str | None = None
    seq: str | None = None
    tokens: str | None = None
    imports: tuple[str, ...] = ()

    @property
    def is_given(self) -> bool:
        """Whether any flag was given that changes a plan."""
        return any((self.model, self.task, self.gpu, self.seq, self.tokens))
