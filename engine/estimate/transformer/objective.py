"""What preferences run beside the training of one model: references, rewards, values, teachers, sequences in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.work import Collective, Operator
from capacity_tui.engine.models.transformer import ParameterCounts
from capacity_tui.engine.numeric import Number, any_true
from capacity_tui.engine.plan import TrainingSection
from capacity_tui.engine.record import dataclass

NO_PREFERENCE, DISTILLATION, PRECOMPUTED = "none", "distillation", "precomputed"
SCORING = frozenset({"reward", "process_reward"})  # Preferences that train a head of one value, in place of logits
ELSEWHERE = "answers come from an engine of their own: neither its memory nor its time is counted"


@dataclass(frozen=True, slots=True)
class Objective:
    """Models and passes of a step beside the training of one model."""

    sequences: Number = 1.0  # sequences of a sample
    trained: Number = 1.0  # models that are trained, each as large as the model
    frozen: Number = 0.0  # further copies of the model that only run forward
    forwards: Number = 0.0  # forward passes over each sequence that no backward pass follows
    generates: Number = 0.0  # 1 where sequences are written before the step learns from them


# Of each objective without a reference, and the references it compares with.
OBJECTIVES = {
    "dpo": Objective(counted("dpo-sequences"), counted("dpo-trained-models")),
    "kto": Objective(counted("kto-sequences"), counted("kto-trained-models"), forwards=counted("kto-forward-passes")),
    "orpo": Objective(counted("orpo-sequences"), counted("orpo-trained-models")),
    "reward": Objective(counted("reward-sequences"), counted("reward-trained-models")),
    "process_reward": Objective(counted("process-reward-sequences"), counted("process-reward-trained-models")),
    DISTILLATION: Objective(
        counted("distillation-sequences"),
        counted("distillation-trained-models"),
        counted("distillation-frozen-models"),
        counted("distillation-forward-passes"),
    ),
    "grpo": Objective(
        counted("grpo-sequences"),
        counted("grpo-trained-models"),
        forwards=counted("grpo-forward-passes"),
        generates=1.0,
    ),
    "ppo": Objective(
        counted("ppo-sequences"),
        counted("ppo-trained-models"),
        counted("ppo-frozen-models"),
        counted("ppo-forward-passes"),
        generates=1.0,
    ),
}
REFERENCES = {
    "dpo": counted("dpo-references"),
    "kto": counted("kto-references"),
    "grpo": counted("grpo-references"),
    "ppo": counted("ppo-references"),
}


def objective_of(training: TrainingSection, counts: ParameterCounts) -> Objective:
    """Return what a plan's preference runs beside a model of such counts.

    Adapters that are switched off leave the reference; probabilities that were computed before need none. A teacher of
    another size counts as so many models.
    """
    name, teacher = training.preference, training.teacher_parameters
    if name == NO_PREFERENCE:
        return Objective()
    alone, reference = OBJECTIVES[name], REFERENCES.get(name, 0.0) * (training.reference != PRECOMPUTED)
    if name == DISTILLATION and teacher is not None:
        alone = replace(alone, frozen=teacher / counts.total, forwards=teacher / counts.active)
    forwards = alone.forwards + reference
    if training.adapter is not None:
        return replace(alone, trained=1.0, forwards=forwards)
    return replace(alone, frozen=alone.frozen + reference, forwards=forwards)


@equation(
    "bytes = (frozen · element_bytes + trained · weight_bytes) · parameters / shard",
    unit="B",
    source="a reference, a reward, values: each as large as the model, and sharded as it is",
    frozen="models that only run forward",
    element_bytes=("bytes of a parameter of theirs", "B"),
    trained="models that are trained beside the first",
    weight_bytes=("bytes of a parameter of theirs", "B"),
    parameters="parameters of the model on the device, unsharded",
    shard="ranks that share them",
)
def further_model_bytes(
    frozen: Number, element_bytes: Number, trained: Number, weight_bytes: Number, parameters: Number, shard: Number
) -> Number:
    """Bytes of the weights of further models."""
    return (frozen * element_bytes + trained * weight_bytes) * parameters / shard


def objective_operators(objective: Objective, operators: Iterable[Operator]) -> Iterator[Operator]:
    """Yield the kernels of a step for every model that is trained, and those of passes that run forward alone."""
    for operator in operators:
        yield _repeated(operator, objective.trained)
        if operator.phase == "forward" and any_true(objective.forwards > 0):
            yield replace(_repeated(operator, objective.forwards), name=f"{operator.name}, forward alone")


def objective_collectives(
    objective: Objective, collectives: Iterable[Collective], recomputed: Number
) -> Iterator[Collective]:
    """Yield the communication of a step for every model that is trained, and of passes that run forward alone.

    Args:
        objective: what is run.
        collectives: communication of one model's training.
        recomputed: share of the forward pass that the backward pass repeats.
    """
    for collective in collectives:
        runs = objective.trained
        if not collective.per_step and collective.hides_behind != "backward":
            passes = 2.0 + recomputed if collective.hides_behind == "both" else 1.0
            runs = runs + objective.forwards / passes
        yield collective if not any_true(runs != 1.0) else replace(collective, count=collective.count * runs)


def _repeated(operator: Operator, times: Number) -> Operator:
    return operator if not any_true(times != 1.0) else replace(operator, count=operator.count * times)
