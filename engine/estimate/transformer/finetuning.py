"""Fine-tuning: which matrices have adapters, what these keep, and how the frozen base beside them is stored.

And what preferences run beside the training of one model: references, rewards, values, teachers, sequences in pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import Framework
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.transformer.memory_terms import stored_weight_bytes
from capacity_tui.engine.estimate.work import Collective, Operator
from capacity_tui.engine.models.transformer import (
    Matrix,
    ParameterCounts,
    TransformerShape,
    count_parameters,
    feed_forward_matrices,
    output_weights,
)
from capacity_tui.engine.numeric import Number, any_true, present, where
from capacity_tui.engine.plan import FROZEN_TOWERS, TRAINED_TOWERS, Adapter, TrainingSection
from capacity_tui.engine.plan.options import ADAPTED
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES

_PACKS_MODULES = "bitsandbytes"
NO_PREFERENCE, DISTILLATION, PRECOMPUTED = "none", "distillation", "precomputed"
SCORING = frozenset({"reward", "process_reward"})  # Preferences that train a head of one value, in place of logits
EXPERTS_TOO = (
    "adapters beside every expert of a layer: software that keeps these in one tensor leaves them out, or doubles the "
    "rank of gate and up, as PEFT 0.21 does"
)
EXPERTS_APART = "no adapters beside experts, which are one tensor in a layer: software that adapts these keeps more"
EXPERTS_WIDE = "experts in 16 bits: they are one tensor in a layer, and bitsandbytes packs modules alone"
EXPERTS_PACKED = "experts packed too: bitsandbytes leaves them in 16 bits where software keeps them in one tensor"
ELSEWHERE = "what writes the answers, an engine or the model itself, is not counted: neither its memory nor its time"


def trained_counts(training: TrainingSection, shape: TransformerShape) -> ParameterCounts:
    """Return what a model counts as a training has it: a head of one value or a few is no parameter worth counting."""
    counts = count_parameters(shape)
    is_of_classes = shape.is_decoder and training.predicted_tokens == 0
    if training.preference not in SCORING and not is_of_classes:
        return counts
    return replace(counts, head=0.0, matmul_per_token=counts.matmul_per_token - output_weights(shape))


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


further_model_bytes = formula()


def objective_operators(objective: Objective, operators: Iterable[Operator]) -> Iterator[Operator]:
    """Yield the kernels of a step for every model that is trained, and those of passes that run forward alone."""
    for operator in operators:
        yield _repeated(operator, objective.trained)
        if operator.phase == "forward" and any_true(objective.forwards > 0):
            yield replace(_repeated(operator, objective.forwards), name=f"{operator.name}, forward alone")


def objective_collectives(
    objective: Objective, collectives: Iterable[Collective], recomputed: Number
) -> Iterator[Collective]:
    """Yield the communication of a step for every model that is trained, and of passes that run forward alone."""
    for collective in collectives:
        runs = objective.trained
        if not collective.per_step and collective.hides_behind != "backward":
            passes = 2.0 + recomputed if collective.hides_behind == "both" else 1.0
            runs = runs + objective.forwards / passes
        yield collective if not any_true(runs != 1.0) else replace(collective, count=collective.count * runs)


def _repeated(operator: Operator, times: Number) -> Operator:
    return operator if not any_true(times != 1.0) else replace(operator, count=operator.count * times)


NOTHING, NORMS, ALL = "none", "norms", "all"  # What of a quantized base is cast to fp32, by the words plans use
PROMPT = "prompt"
# Kinds that put no narrow product beside a matrix: factors of outputs, rotations of inputs.
WITHOUT_RANK = frozenset({"ia3", "oft", "boft"})
# Trained parameters beside a matrix of some inputs and outputs, by kind, with their rank: LoRA, Hu et al. 2021; DoRA,
# Liu et al. 2024; AdaLoRA, Zhang et al. 2023; IA3, Liu et al. 2022; VeRA, Kopiczko et al. 2024; OFT and BOFT, Qiu et
# al. 2023 and Liu et al. 2024 (blocks of the rank); LoHa, Hyeon-Woo et al. 2022; LoKr, Yeh et al. 2024 (near-square).
TRAINED: Mapping[str, Callable[[Number, Number, Number], Number]] = {
    "lora": lambda inputs, outputs, rank: rank * (inputs + outputs),
    "qlora": lambda inputs, outputs, rank: rank * (inputs + outputs),
    "dora": lambda inputs, outputs, rank: rank * (inputs + outputs) + outputs,
    "adalora": lambda inputs, outputs, rank: rank * (inputs + outputs + 1),
    "ia3": lambda _, outputs, __: outputs,
    "vera": lambda _, outputs, rank: rank + outputs,
    "oft": lambda inputs, _, rank: inputs * (rank - 1) / 2,
    "boft": lambda inputs, outputs, rank: inputs * rank + outputs,
    "loha": lambda inputs, outputs, rank: 2 * rank * (inputs + outputs),
    "lokr": lambda inputs, outputs, rank: np.sqrt(inputs * outputs) + rank * (np.sqrt(inputs) + np.sqrt(outputs)),
}


@dataclass(frozen=True, slots=True)
class AdapterInputs:
    """Copies that adapters keep of the inputs of a layer's matrices, where nothing else keeps them."""

    attention: Number = 0.0  # of the input of queries, keys and values
    output: Number = 0.0  # of the attention's output
    up: Number = 0.0  # of the feed-forward's input
    down: Number = 0.0  # of its widest intermediate


@dataclass(frozen=True, slots=True)
class Adapted:
    """Matrices of the mean layer that adapters stand beside, each with an input and an output of its own."""

    matrices: Number = 0.0  # how many, those of one expert among them
    routed: Number = 0.0  # those of one expert
    inputs: Number = 0.0  # elements of all their inputs for a token
    outputs: Number = 0.0  # elements of all their outputs for a token
    rank: Number = 0.0  # inner size of an adapter
    dropout: Number = 0.0  # 1 where inputs of adapters are dropped out
    fp32: Number = 0.0  # 1 where adapters are fp32 beside narrower activations


@dataclass(frozen=True, slots=True)
class Unpacking:
    """How a quantized frozen base is unpacked before each product."""

    bytes: Number = 0.0  # bytes moved for a weight, beside reading it packed
    flops: Number = 0.0  # operations for a weight
    kernels: Number = 0.0  # kernels for a matrix


@dataclass(frozen=True, slots=True)
class Finetuning:
    """What is trained beside a frozen base."""

    trainable: Number = 0.0  # parameters of the adapters beside what every token passes
    trainable_experts: Number = 0.0  # those of the adapters beside routed experts
    frozen_bytes: Number = 0.0  # bytes of a frozen base parameter; 0 where everything is trained
    frozen_end_bytes: Number = 0.0  # the same outside the layers, where quantization stops
    fp32_norms: Number = 0.0  # 1 where the norms of a quantized base are cast to fp32, unless it is sharded
    fp32_ends: Number = 0.0  # 1 where its embedding and head are too
    embeddings_trained: Number = 0.0  # 1 where embedding and head are trained whole beside adapters
    towers_trained: Number = 1.0  # 1 where towers of pictures and sound are trained whole
    quantized: Number = 0.0  # 1 where the frozen base is unpacked for each product
    inputs: AdapterInputs = field(default_factory=AdapterInputs)  # what a layer keeps for its adapters
    adapted: Adapted = field(default_factory=Adapted)  # the matrices that adapters stand beside
    unpacking: Unpacking = field(default_factory=Unpacking)  # what unpacking the base takes
    packs_modules: bool = False  # whether tensors that are no modules stay as they are in a quantized base
    expert_width: float = 1.0  # bytes of a frozen parameter of a routed expert over those of others

    def gathered_bytes(self, element_bytes: Number) -> Number:
        """Return the bytes of a parameter that replicas gather: frozen ones stay as they are stored."""
        return where(self.frozen_bytes > 0, np.minimum(self.frozen_bytes, element_bytes), element_bytes)

    def trained_outside(self, ends: Number, parameters: Number, towers: Number) -> Number:
        """Return the share with gradients of parameters outside the layers.

        Args:
            ends: the share of those of embedding and head.
            towers: how many of the parameters are of towers.
        """
        if not any_true(np.asarray(towers > 0) & np.asarray(self.towers_trained != ends)):
            return ends
        return ends + (self.towers_trained - ends) * towers / np.maximum(parameters, 1.0)


def finetuning(
    training: TrainingSection, shape: TransformerShape, element_bytes: float, row: Framework, catalog: Catalog
) -> Finetuning:
    """Return what a plan trains beside a frozen base; ``element_bytes`` are those of an activation."""
    adapter, stored = training.adapter, base_format(training)
    towers = float(towers_of(training, shape) == TRAINED_TOWERS)
    if adapter is None:
        return Finetuning(towers_trained=towers)
    frozen, copies = frozen_bytes(stored, element_bytes, catalog), row.adapter_copies
    narrow = element_bytes < FP32_BYTES
    packs_modules = stored is not None and catalog.quantizations.find(stored).family == _PACKS_MODULES
    are_wide = packs_modules and shape.fused_experts and not shape.split_for_packing and bool(row.hub_models)
    trainable, trainable_experts = adapter_parameters(shape, adapter)
    return Finetuning(
        trainable=trainable,
        trainable_experts=trainable_experts,
        frozen_bytes=frozen,
        frozen_end_bytes=max(float(frozen), element_bytes) if frozen else 0.0,
        fp32_norms=float(narrow and in_fp32(training, row) != NOTHING),
        fp32_ends=float(narrow and in_fp32(training, row) == ALL),
        embeddings_trained=float(adapter.train_embeddings),
        towers_trained=towers,
        quantized=float(0.0 < frozen < element_bytes),
        inputs=adapter_inputs(shape, adapter, copies, separate=row.separate_adapters > 0),
        adapted=replace(adapted_matrices(shape, adapter, copies), fp32=float(narrow and _is_wide(adapter, row))),
        unpacking=unpacking_of(stored, frozen, element_bytes, catalog),
        packs_modules=packs_modules,
        expert_width=element_bytes / float(frozen) if are_wide else 1.0,
    )


def towers_of(training: TrainingSection, shape: TransformerShape | None) -> str | None:
    """Return whether a model's towers are trained: as a plan says, else with all weights; None for one without."""
    if shape is None or not any_true(shape.tower_weights > 0):
        return None
    return training.towers or (TRAINED_TOWERS if training.adapter is None else FROZEN_TOWERS)


def in_fp32(training: TrainingSection, row: Framework) -> str:
    """Return what of a plan's quantized base is cast to fp32, by the words of plans; nothing is where it is sharded."""
    adapter, stored = training.adapter, base_format(training)
    if adapter is None or stored is None:
        return NOTHING
    return adapter.fp32_base or (NORMS if stored in row.fp32_norms else NOTHING)


def _is_wide(adapter: Adapter, row: Framework) -> bool:
    return row.fp32_adapters > 0 if adapter.fp32 is None else adapter.fp32


def adapter_parameters(shape: TransformerShape, adapter: Adapter) -> tuple[Number, Number]:
    """Trained parameters of adapters: those of each adapted matrix, or of the tokens before a sequence.

    Beside what every token passes, and beside routed experts.

    Source: the papers and PEFT's code of each kind; see ``TRAINED``.
    """
    if adapter.kind == PROMPT:
        return adapter.rank * shape.hidden, 0.0
    trained, parameters = TRAINED[adapter.kind], dict[bool, Number]({False: 0.0, True: 0.0})
    for matrix in _matrices(shape, adapter):
        parameters[matrix.routed] += shape.layers * matrix.number * trained(matrix.rows, matrix.columns, adapter.rank)
    return parameters[False], parameters[True]


def adapted_matrices(shape: TransformerShape, adapter: Adapter | None, copies: Number) -> Adapted:
    """Return the matrices of the mean layer that adapters stand beside; dropout keeps ``copies`` of their inputs."""
    if adapter is None or adapter.kind == PROMPT:
        return Adapted()
    chosen, experts = _matrices(shape, adapter), np.maximum(shape.experts, 1.0)
    passed = [(matrix, where(matrix.routed, shape.experts_active / experts, 1.0) * matrix.number) for matrix in chosen]
    routed = sum((matrix.number for matrix in chosen if matrix.routed), start=0.0) / experts
    return Adapted(
        matrices=sum((matrix.number for matrix in chosen if not matrix.routed), start=routed),
        routed=routed,
        inputs=sum(number * matrix.rows for matrix, number in passed),
        outputs=sum(number * matrix.columns for matrix, number in passed),
        rank=0.0 if adapter.kind in WITHOUT_RANK else float(adapter.rank),
        dropout=float(any_true(copies > 0)),
    )


def _matrices(shape: TransformerShape, adapter: Adapter) -> list[Matrix]:
    """Return the matrices of the mean layer that adapters stand beside.

    Of an encoder-decoder, those of the encoder and of the attention to it too; of experts, those that are modules.
    """
    attentions = 1.0 + shape.encoder_layers / shape.layers + present(shape.encoder_layers)
    query, value = shape.heads * shape.head_dim, shape.heads * shape.v_head_dim
    keys, values = shape.kv_heads * shape.head_dim, shape.kv_heads * shape.v_head_dim
    sizes = {
        "query": (shape.hidden, query, attentions),
        "key": (shape.hidden, keys, attentions),
        "value": (shape.hidden, values, attentions),
        "output": (value, shape.hidden, attentions),
    }
    targets = ADAPTED[adapter.targets]
    attention = [Matrix(name, *sizes[name]) for name in targets if name in sizes]
    names = tuple(f"{name} projection" for name in targets)
    modules = (matrix for matrix in feed_forward_matrices(shape) if not (matrix.routed and shape.fused_experts))
    return attention + [matrix for matrix in modules if matrix.name.endswith(names)]


def adapter_inputs(
    shape: TransformerShape, adapter: Adapter | None, copies: Number, *, separate: bool
) -> AdapterInputs:
    """Return what a layer keeps for its adapters: inputs nothing else keeps, or dropped-out copies.

    Args:
        copies: what dropout keeps of every adapted matrix's input, in inputs; 0 without dropout.
        separate: whether queries, keys and values keep a copy each.
    """
    if adapter is None or adapter.kind == PROMPT:
        return AdapterInputs()
    targets = ADAPTED[adapter.targets]
    projections = len({"query", "key", "value"}.intersection(targets))
    attention = float(projections > 0)
    output, up, down = (float(name in targets) for name in ("output", "up", "down"))
    if any_true(copies > 0):
        attention = float(projections) if separate else attention
        return AdapterInputs(copies * attention, copies * output, copies * (1 + shape.gated) * up, copies * down)
    return AdapterInputs(attention, 0.0, up, down)


def base_format(training: TrainingSection) -> str | None:
    """Return how the frozen base below adapters is stored; None where it has the type of the activations."""
    if training.adapter is None:
        return None
    return training.quantization or ("nf4" if training.adapter.kind == "qlora" else None)


def frozen_bytes(name: str | None, element_bytes: float, catalog: Catalog) -> Number:
    """Bytes of a frozen parameter of the layers by its format; that of the activations where none is named."""
    bits = catalog.quantizations.find(name).body_bits if name else None
    return stored_weight_bytes(bits) if bits else element_bytes


def unpacking_of(name: str | None, stored: Number, element_bytes: float, catalog: Catalog) -> Unpacking:
    """Return what unpacking a frozen base takes in each pass; nothing where it is multiplied as it is stored."""
    if name is None or not 0.0 < stored < element_bytes:
        return Unpacking()
    row = catalog.quantizations.find(name)
    return Unpacking(row.unpacked_bytes, row.unpack_flops, row.unpack_launches)
