"""Fine-tuning beside a frozen base: which matrices have adapters, what these keep, and how the base is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Framework
from capacity_tui.engine.estimate.transformer.memory_terms import stored_weight_bytes
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, any_true
from capacity_tui.engine.plan import Adapter, TrainingSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES

NOTHING, NORMS, ALL = "none", "norms", "all"  # What of a quantized base is cast to fp32, by the words plans use
# What LoRA adapts, by the names plans use.
TARGETS = {
    "all": frozenset({"query", "key", "value", "output", "up", "down"}),
    "attention": frozenset({"query", "key", "value", "output"}),
    "mlp": frozenset({"up", "down"}),
    "query+value": frozenset({"query", "value"}),
}
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

    matrices: Number = 0.0  # how many
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

    trainable: Number = 0.0  # parameters of the adapters
    frozen_bytes: Number = 0.0  # bytes of a frozen base parameter; 0 where everything is trained
    frozen_end_bytes: Number = 0.0  # the same outside the layers, where quantization stops
    fp32_norms: Number = 0.0  # 1 where the norms of a quantized base are cast to fp32, unless it is sharded
    fp32_ends: Number = 0.0  # 1 where its embedding and head are too
    embeddings_trained: Number = 0.0  # 1 where embedding and head are trained whole beside adapters
    quantized: Number = 0.0  # 1 where the frozen base is unpacked for each product
    inputs: AdapterInputs = field(default_factory=AdapterInputs)  # what a layer keeps for its adapters
    adapted: Adapted = field(default_factory=Adapted)  # the matrices that adapters stand beside
    unpacking: Unpacking = field(default_factory=Unpacking)  # what unpacking the base takes


def finetuning(
    training: TrainingSection, shape: TransformerShape, element_bytes: float, row: Framework, catalog: Catalog
) -> Finetuning:
    """Return what a plan trains beside a frozen base.

    Args:
        element_bytes: bytes of an activation, and of a base parameter that no format is given for.
        row: what the framework does.
    """
    adapter, stored = training.adapter, base_format(training)
    if adapter is None:
        return Finetuning()
    frozen, copies = _frozen_bytes(stored, element_bytes, catalog), row.adapter_copies
    narrow = element_bytes < FP32_BYTES
    return Finetuning(
        trainable=adapter_parameters(shape, adapter),
        frozen_bytes=frozen,
        frozen_end_bytes=element_bytes if frozen else 0.0,
        fp32_norms=float(narrow and in_fp32(training, row) != NOTHING),
        fp32_ends=float(narrow and in_fp32(training, row) == ALL),
        embeddings_trained=float(adapter.train_embeddings),
        quantized=float(0.0 < frozen < element_bytes),
        inputs=adapter_inputs(shape, adapter, copies, separate=row.separate_adapters > 0),
        adapted=replace(adapted_matrices(shape, adapter, copies), fp32=float(narrow and _is_wide(adapter, row))),
        unpacking=_unpacking(stored, frozen, element_bytes, catalog),
    )


def in_fp32(training: TrainingSection, row: Framework) -> str:
    """Return what of a plan's quantized base is cast to fp32, by the words of plans; nothing is where it is sharded."""
    adapter, stored = training.adapter, base_format(training)
    if adapter is None or stored is None:
        return NOTHING
    return adapter.fp32_base or (NORMS if stored in row.fp32_norms else NOTHING)


def _is_wide(adapter: Adapter, row: Framework) -> bool:
    return row.fp32_adapters > 0 if adapter.fp32 is None else adapter.fp32


def adapter_parameters(shape: TransformerShape, adapter: Adapter) -> Number:
    """Trained parameters of adapters: those of each adapted matrix, or of the tokens before a sequence.

    Source: the papers and PEFT's code of each kind; see ``TRAINED``.
    """
    if adapter.kind == PROMPT:
        return adapter.rank * shape.hidden
    trained = TRAINED[adapter.kind]
    trained_weights = (
        number * trained(inputs, outputs, adapter.rank) for inputs, outputs, number in _matrices(shape, adapter)
    )
    return shape.layers * sum(trained_weights, start=0.0)


def adapted_matrices(shape: TransformerShape, adapter: Adapter | None, copies: Number) -> Adapted:
    """Return the matrices of the mean layer that adapters stand beside.

    Args:
        shape: the model.
        copies: what dropout keeps of every adapted matrix's input; 0 without dropout.
    """
    if adapter is None or adapter.kind == PROMPT:
        return Adapted()
    chosen = _matrices(shape, adapter)
    return Adapted(
        matrices=sum(number for *_, number in chosen),
        inputs=sum(number * inputs for inputs, _, number in chosen),
        outputs=sum(number * outputs for _, outputs, number in chosen),
        rank=0.0 if adapter.kind in WITHOUT_RANK else float(adapter.rank),
        dropout=float(any_true(copies > 0)),
    )


def _matrices(shape: TransformerShape, adapter: Adapter) -> list[tuple[Number, Number, Number]]:
    """Return inputs, outputs and number of the matrices of the mean layer that adapters stand beside."""
    query, value = shape.heads * shape.head_dim, shape.heads * shape.v_head_dim
    keys, values = shape.kv_heads * shape.head_dim, shape.kv_heads * shape.v_head_dim
    sizes = {
        "query": (shape.hidden, query, 1),
        "key": (shape.hidden, keys, 1),
        "value": (shape.hidden, values, 1),
        "output": (value, shape.hidden, 1),
        "up": (shape.hidden, shape.ffn, 1 + shape.gated),
        "down": (shape.ffn, shape.hidden, 1),
    }
    return [sizes[name] for name in sorted(TARGETS[adapter.targets])]


def adapter_inputs(
    shape: TransformerShape, adapter: Adapter | None, copies: Number, *, separate: bool
) -> AdapterInputs:
    """Return what a layer keeps for its adapters: inputs nothing else keeps, or dropped-out copies.

    Args:
        shape: the model.
        copies: what dropout keeps of every adapted matrix's input, in inputs; 0 without dropout.
        separate: whether queries, keys and values keep a copy each.
    """
    if adapter is None or adapter.kind == PROMPT:
        return AdapterInputs()
    targets = TARGETS[adapter.targets]
    projections = len(targets & {"query", "key", "value"})
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


def _frozen_bytes(name: str | None, element_bytes: float, catalog: Catalog) -> Number:
    """Bytes of a frozen parameter of the layers by its format; that of the activations where none is named."""
    bits = catalog.quantizations.find(name).body_bits if name else None
    return stored_weight_bytes(bits) if bits else element_bytes


def _unpacking(name: str | None, stored: Number, element_bytes: float, catalog: Catalog) -> Unpacking:
    """Return what unpacking a frozen base takes in each pass; nothing where it is multiplied as it is stored."""
    if name is None or not 0.0 < stored < element_bytes:
        return Unpacking()
    row = catalog.quantizations.find(name)
    return Unpacking(row.unpacked_bytes, row.unpack_flops, row.unpack_launches)
