"""Values of other tools' options that are neither numbers nor words of a closed list."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from capacity_tui.engine.catalog import Plain, format_in_name, gguf_type
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.options.sizes import (
    count,
    filling_batch,
    first_size,
    half,
    low_rank,
    number,
    overridden,
    packs,
    rate,
    size,
    tokens_together,
    training_config,
)
from capacity_tui.engine.plan.options.tools import (
    UnmodelledError,
    UnreadError,
    accelerators,
    adapted_matrices,
    any_of,
    modules_named,
    recipe,
    word_of,
)

_EVERY = {"all", "all-linear", "all_linear"}
_HEADS = {"seg": "masks", "pose": "points of bodies", "obb": "turned boxes"}  # What the others of Ultralytics find
_HEAD = re.compile(rf"-({'|'.join(_HEADS)})(\.\w+)?$")
_ALL_LAYERS = 99  # What people write for all layers, whatever the model has
_TAIL = re.compile(r"(?:[-_.:](?:gguf|ud))+$", re.IGNORECASE)  # UD: of Unsloth, whose layers differ in format
_PATTERN = re.compile(r"\[([01](?:,[01]){,999})\](?:\*(\d{1,4}))?")
"""A piece of a list of layers as Megatron-LM takes it, a Python expression: ``([0]*3+[1]*58)``."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)(ep|ba|tok|sp|T)")
_LENGTHS = {
    "ep": Key.TRAINING_EPOCHS,
    "ba": Key.TRAINING_STEPS,
    "tok": Key.TRAINING_TOKENS,
    "sp": Key.TRAINING_SAMPLES,
    "T": Key.TRAINING_TOKENS,
}
_GPT2_VOCABULARY = 50257  # Radford et al. 2019: 50 000 merges, 256 bytes and an end of text
_JMP = {
    **dict.fromkeys(("f32", "float32", "full"), "fp32"),
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"),
    **dict.fromkeys(("f16", "float16"), "fp16"),
}
"""Number types as jmp calls them."""
_GUESSED = ("num_speculative_tokens", "max_draft_len", "num_nextn_predict_layers")  # As vLLM and TensorRT-LLM say it
_STATES = ("mamba", "rwkv")  # Kinds of layers without attention, as GPT-NeoX calls them
_GIVEN = re.compile(r"(\w+)\s*=\s*['\"]?(\w+)")  # What a call in a text is given
_LAYOUT = re.compile(r"(?<![a-z])([dptce])(\d+)")  # d4p2t1: replicas, stages and the like by a letter
_SIZES = {
    "d": "replicas",
    "p": Key.PARALLELISM_PP,
    "t": Key.PARALLELISM_TP,
    "c": Key.PARALLELISM_CP,
    "e": Key.PARALLELISM_EP,
}
_RANGE = re.compile(r"range\((?:(\d+),\s*)?(\d+)\)")
_SLOTS = re.compile(r"\d+(?:, ?\d+)*")  # Devices of a host, by their numbers


def text(value: Plain) -> object:
    """Return a name or a path; nothing where it is left open."""
    if value is None or value == "":
        return None
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise UnreadError("a name")
    return str(value)


def detector(value: Plain) -> object:
    """Return the network of a name, without a head for more than boxes: ``yolo11s-seg.pt`` is counted as yolo11s."""
    name = text(value)
    match = _HEAD.search(str(name)) if name is not None else None
    if match is None:
        return name
    raise UnmodelledError(f"a head for {_HEADS[match[1]]}: that for boxes is counted", _HEAD.sub(r"\2", str(name)))


def hub_name(value: Plain) -> object:
    """Return a name of the model hub, without a revision; nothing for a switch, and for a path of weights."""
    name = None if isinstance(value, bool) else text(value)
    return None if name is None or "://" in str(name) else str(name).partition("@")[0]


def instance(value: Plain) -> object:
    """Return a machine of a cloud by its name, which SageMaker writes something before: ``ml.g5.12xlarge``."""
    return str(text(value) or "").removeprefix("ml.") or None


def mixed_policy(value: Plain) -> object:
    """Return the number type of products and of weights from a policy of jmp: ``p=f32,c=bfloat16``."""
    parts = dict(part.strip().partition("=")[::2] for part in str(text(value) or "").casefold().split(","))
    weights = next((_JMP.get(parts[key]) for key in ("p", "params") if key in parts), None)
    alone = next(iter(parts), "") if len(parts) == 1 and not weights else ""
    kind = _JMP.get(alone) or next((_JMP.get(parts[key]) for key in ("c", "compute") if key in parts), None)
    if kind is None:
        raise UnreadError("a policy, as p=f32,c=bfloat16")
    is_half = kind != "fp32" and (bool(alone) or weights == kind)
    return {Key.TRAINING_PRECISION: kind, **({Key.TRAINING_MASTER_WEIGHTS: "none"} if is_half else {})}


def targets(value: Plain) -> object:
    """Return the matrices that have an adapter, from names of modules or a word for all."""
    if value is None:
        return None
    names = value.strip("[]").replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, list):
        raise UnreadError("names of modules")
    given = frozenset(str(name).strip().casefold() for name in names)
    if given & _EVERY:
        return "all"
    if not given:
        return None
    nearest, is_exact = adapted_matrices(given)
    if is_exact:
        return nearest
    raise UnmodelledError(f"adapters on {', '.join(sorted(given))}: counted as {nearest}", nearest)


def whole(value: Plain) -> object:
    """Return whether embedding and head are trained beside adapters."""
    names = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        return None
    known, given = modules_named(), {str(name).rpartition(".")[2] for name in names}
    if unread := sorted(given - {*known["whole"], *known["small"]}):
        raise UnmodelledError(f"{', '.join(unread)} trained whole: not counted")
    return True if given & {*known["whole"]} else None


def fsdp(value: Plain) -> object:
    """Return what the Trainer's list of words about FSDP says."""
    if word_of(value) in ("null", "false", ""):
        return None
    words = value if isinstance(value, list) else str(value).replace(",", " ").split()
    values: dict[str, object] = {"sharded": True} if words else {}
    for word in map(str, words):
        if word in {"full_shard", "hybrid_shard"}:
            values[Key.PARALLELISM_ZERO] = 3
        if word in {"shard_grad_op", "hybrid_shard_zero2"}:
            values[Key.PARALLELISM_ZERO] = 2
        if word.startswith("hybrid_shard"):
            values["shard_nodes"] = 1
        if word == "offload":
            values[Key.PARALLELISM_OFFLOAD] = "parameters"
    return values or None


def guessed(value: Plain) -> object:
    """Return the tokens that a draft or further layers guess ahead, from JSON or a mapping that says how."""
    try:
        data = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise UnreadError("JSON") from None
    given = (data[name] for name in _GUESSED if name in data) if isinstance(data, dict) else iter(())
    ahead = number(next(given, None))
    draft = data.get("model") if isinstance(data, dict) else None
    if ahead is not None and isinstance(draft, str) and "ngram" not in draft:
        why = f"the weights of the draft {draft} are not counted, set {Key.INFERENCE_DRAFT_PARAMETERS}"
        raise UnmodelledError(f"{why}: tokens guessed ahead are {ahead}", ahead)
    return ahead


def given(value: Plain) -> object:
    """Return whether a section says anything."""
    return True if value not in (None, "", {}, [], False) else None


_POINT = re.compile(r"([a-z]\d)_(\d)(?=_)")


def adapted(value: Plain) -> object:
    """Return the model and the adapters of a builder: ``torchtune.models.llama3_1.qlora_llama3_1_8b``."""
    kind, _, rest = str(value).rpartition(".")[2].partition("_")
    methods: dict[str, dict[str, object]] = {
        "lora": {Key.TRAINING_METHOD: "lora"},
        "qlora": {Key.TRAINING_METHOD: "lora", "bits": 4},
    }
    built = rest if kind in methods else f"{kind}_{rest}"
    return {**methods.get(kind, {}), "built_model": _POINT.sub(r"\1.\2", built).replace("_", "-")}


def names(value: Plain) -> object:
    """Return names, however they are written."""
    if isinstance(value, list):
        return tuple(map(str, value))
    return tuple(str(value).replace(",", " ").split())


def float8(value: Plain) -> object:
    """Return that matrices are multiplied in 8 bits where a converter makes them so."""
    names = value if isinstance(value, list) else [value]
    return {"eight_bits": "fp8"} if any("float8" in str(name).casefold() for name in names) else None


def expert_layers(value: Plain) -> object:
    """Return which layers have experts: every Nth, or all behind the first, as ``([0]*3+[1]*58)``."""
    pieces = [_PATTERN.fullmatch(piece) for piece in str(value).replace(" ", "").strip("()").split("+")]
    layers = [bit for match in pieces if match for bit in match[1].split(",") * int(match[2] or 1)]
    if not all(pieces):
        every = number(value)
        return None if every in (None, 1) else {"shape.moe_every": every}
    dense = layers.index("1") if "1" in layers else len(layers)
    if "0" not in layers[dense:]:
        return {"shape.first_dense_layers": dense} if dense else None
    every = -(-len(layers[dense:]) // layers.count("1"))
    if layers != [*["0"] * dense, *(["1"] + ["0"] * (every - 1)) * len(layers)][: len(layers)]:
        raise UnmodelledError(
            f"layers with experts in no even order: counted as one in {every}", {"shape.moe_every": every}
        )
    return {"shape.moe_every": every}


def experts(value: Plain) -> object:
    """Return a number of experts; one is a plain feed-forward."""
    given = size(value)
    return given if isinstance(given, int | float) and given > 1 else None


def layers(value: Plain) -> object:
    """Return how many layers an accelerator holds; nothing where it is all of them."""
    if isinstance(value, str) and value.strip().casefold() in {"all", "auto"}:
        return None
    parsed = number(value)
    return parsed if isinstance(parsed, int | float) and 0 <= parsed < _ALL_LAYERS else None


def served(value: Plain) -> object:
    """Return the model of a name, and the format of its weights where the name says it."""
    name = text(value)
    if not isinstance(name, str):
        return None
    match = gguf_type(name)
    values: dict[str, object] = {"model": name}
    if match is None:
        quantized = format_in_name(name)
        return values | ({"weights_named": quantized} if quantized else {})
    short = _TAIL.sub("", name[: match.start()].rstrip("-._:"))
    return {"model": short or name, "weights_named": match[1].casefold(), "model_file": name}


def gguf(value: Plain) -> object:
    """Return the format that the name of a GGUF file says."""
    match = gguf_type(str(value))
    return None if match is None else {"weights_named": match[1].casefold()}


def gpt2_vocabulary(value: Plain) -> object:
    """Return the vocabulary of a file of merges, which GPT-2's tokenizer alone has."""
    return None if value is None else {"shape.vocab_of_tokenizer": _GPT2_VOCABULARY}


def lora_rank(value: Plain) -> object:
    """Return that LoRA is trained, of a rank that a call or a file gives."""
    rank = size(value)
    return None if rank is None else {Key.TRAINING_METHOD: "lora", Key.TRAINING_ADAPTER_RANK: rank}


def kv_heads(value: Plain) -> object:
    """Return the heads of keys and values that several of queries share."""
    heads = size(value)
    return None if heads is None else {"grouped": True, "shape.kv_heads": heads}


def preference(value: Plain) -> object:
    """Return that pairs are learned from, where nothing says what else is, and how much a reference weighs."""
    weight = number(value)
    weighs = {} if weight is None else {"reference_weight": weight}
    return None if value is None else {"learned_from_pairs": "dpo", **weighs}


def prompts(value: Plain) -> object:
    """Return how long prompts are, with that pairs are learned from where nothing says what else is."""
    length = size(value)
    return None if length is None else {"learned_from_pairs": "dpo", "prompt_length": length}


def generations(value: Plain) -> object:
    """Return that groups of answers are generated and rewarded."""
    return None if size(value) is None else {Key.TRAINING_PREFERENCE: "grpo"}


def generated(value: Plain) -> object:
    """Return that nothing is trained: an option that only programs have that generate."""
    return None if value is None else {Key.TASK: "infer"}


def duration(value: Plain) -> object:
    """Return the length of a job as Composer writes it: ``1ep``, ``4800ba``, ``2e12tok``."""
    match = _DURATION.fullmatch(str(value).strip().replace("_", ""))
    if match is None:
        raise UnreadError("a duration such as 1ep, 4800ba or 2e12tok")
    number = float(match[1])
    return {_LENGTHS[match[2]]: int(number) if number.is_integer() else number}


def included(value: Plain) -> object:
    """Return the processes on the devices that a run is to take: ``host-1:0,1@host-2:0,1``, or ``[0, 1]``."""
    given = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    if ranges := _RANGE.findall(given):  # list(range(0, 8)) of ROLL
        return {"processes": sum(int(end) - int(start or 0) for start, end in ranges)}
    hosts = [host.rpartition(":")[2].strip("[] ") for host in given.split("@")]
    processes = sum(len(slots.split(",")) for slots in hosts)
    return {"processes": processes, "nodes": len(hosts)} if all(map(_SLOTS.fullmatch, hosts)) else None


def factory(value: Plain) -> object:
    """Return what stands in the brackets of a recipe: ``llama3_8b(num_nodes=2, peft_scheme='lora')``."""
    given = dict(_GIVEN.findall(str(value)))
    sizes = {"num_nodes": "nodes", "num_gpus_per_node": "per_process"}
    read: dict[str, object] = {field: size(given[name]) for name, field in sizes.items() if name in given}
    return read | ({Key.TRAINING_METHOD: given["peft_scheme"]} if given.get("peft_scheme") in ("lora", "dora") else {})


def allocation(value: Plain) -> object:
    """Return how AReaL lays training out: ``sglang:d4+megatron:d2p2t1``, of which what trains stands last."""
    trains = str(value).rpartition("+")[2]
    sizes = {letter: int(number) for letter, number in _LAYOUT.findall(trains)}
    if not sizes:
        raise UnreadError("sizes by their letters, as fsdp:d4 or sglang:d4+megatron:d2p2t1")
    is_megatron = "megatron" in trains or sizes.get("p", 1) > 1
    read: dict[str, object] = {field: sizes[letter] for letter, field in _SIZES.items() if letter in sizes}
    return read | (
        {Key.TRAINING_FRAMEWORK: "megatron", "sharded": False, Key.PARALLELISM_ZERO: 1} if is_megatron else {}
    )


def layer_kinds(value: Plain) -> object:
    """Return the kernel of attention by GPT-NeoX's list of kinds of layers, of which only those with it are counted."""
    with_state = [kind for kind in _STATES if kind in str(value)]
    if with_state:
        raise UnmodelledError(f"layers of {with_state[0]}, which have a state: counted as attention")
    return {Key.TRAINING_ATTENTION: "flash2" if "flash" in str(value) else "eager"}


MEANINGS: Mapping[str, Callable[[Plain], object]] = MappingProxyType(
    {
        "text": text,
        "number": number,
        "size": size,
        "steps": size,
        "count": count,
        "targets": targets,
        "whole": whole,
        "fsdp": fsdp,
        "guessed": guessed,
        "filling_batch": filling_batch,
        "first_size": first_size,
        "adapted": adapted,
        "names": names,
        "given": given,
        "float8": float8,
        "expert_layers": expert_layers,
        "experts": experts,
        "recipe": recipe,
        "tokens_together": tokens_together,
        "packs": packs,
        "training_config": training_config,
        "layers": layers,
        "overridden": overridden,
        "detector": detector,
        "half": half,
        "rate": rate,
        "served": served,
        "gguf": gguf,
        "lora_rank": lora_rank,
        "preference": preference,
        "generations": generations,
        "prompts": prompts,
        "generated": generated,
        "kv_heads": kv_heads,
        "duration": duration,
        "gpt2_vocabulary": gpt2_vocabulary,
        "accelerators": accelerators,
        "any_of": any_of,
        "hub_name": hub_name,
        "mixed_policy": mixed_policy,
        "included": included,
        "layer_kinds": layer_kinds,
        "factory": factory,
        "low_rank": low_rank,
        "allocation": allocation,
        "instance": instance,
    }
)
"""By the name that tables use; each returns a value, values by field, or None for nothing."""
