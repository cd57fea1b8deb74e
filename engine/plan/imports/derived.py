"""Fields of a plan that follow from several options of other tools: devices, shards, precision, software."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import format_in_name
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.batches import SPLITS, answers, batches, job_length, product
from capacity_tui.engine.plan.imports.scripts import LAUNCHER
from capacity_tui.engine.plan.imports.setting import (
    FRAMEWORK,
    Clash,
    ImportedSetting,
    Remark,
    Settings,
    find_contradictions,
    is_kept,
    strongest_settings,
)
from capacity_tui.engine.plan.imports.shapes import (
    batches_of_stages,
    eight_bits,
    experts,
    megatron_shards,
    split_devices,
    weights,
)
from capacity_tui.engine.plan.options.tools import adapted_matrices, tool

METHOD, BASE = Key.TRAINING_METHOD, Key.TRAINING_QUANTIZATION

_ADAPTER, _TARGETS = f"{Key.TRAINING_ADAPTER}.", Key.TRAINING_ADAPTER_TARGETS

_FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")

_MATRICES = {
    "adapted_queries": "q_proj",
    "adapted_keys": "k_proj",
    "adapted_values": "v_proj",
    "adapted_projection": "o_proj",
}
"""Matrices of attention by what says of each whether it has an adapter."""

_ALL_SEEN = "auto"  # How Transformers is told to spread layers over devices

_FOUR_BITS, _EIGHT_BITS = "nf4", "int8"
_SHORT = {"bf16", "fp16"}
_WHOLE = (None, "fp32", *_SHORT)  # What the name of a model says that is not quantized


def adapters(settings: Settings) -> None:
    """Settle the method from its parts; without adapters, their options do not count."""
    made = settings.chosen.get("adapted_in_code")
    if made is not None and METHOD not in settings.chosen:
        settings.set(METHOD, made.value, made, "default")
    method = settings.value(METHOD)
    if method in (None, "full"):
        if settings.value("bits") and settings.is_given("bits") and settings.value(Key.TASK) != "infer":
            why = "a quantized base is trained only with adapters"
            given = tuple(name for name in (METHOD, "bits") if name in settings.chosen)
            settings.clash("quantized_without_adapters", why, given)
        for name in [name for name in settings.chosen if name.startswith(_ADAPTER)]:
            del settings.chosen[name]
        return
    _targets(settings)
    own, bits = settings.chosen.get("base_loaded_in"), settings.count("bits")
    if own is not None and (settings.is_given("base_loaded_in") or not bits):
        settings.set(BASE, own.value, own, own.level)
    if bits and BASE not in settings.chosen:
        base = settings.value("format_of_bits", _FOUR_BITS) if bits == 4 else _EIGHT_BITS
        settings.set(BASE, base, settings.chosen["bits"])
    named = settings.chosen.get("model") or settings.chosen.get("built_model")
    stored = format_in_name(str(named.value)) if named is not None else None
    if named is not None and stored not in _WHOLE and BASE not in settings.chosen:
        settings.set(BASE, stored, named)
        bits = 4 if stored == _FOUR_BITS else bits
    tool_id = settings.chosen[METHOD].tool
    if settings.value("weight_decomposed"):
        source = settings.chosen["weight_decomposed"]
        settings.chosen[METHOD] = replace(source, field=METHOD, value="dora", text="true", tool=tool_id, level="said")
    elif method == "lora" and bits == 4:
        settings.chosen[METHOD] = replace(
            settings.chosen[BASE], field=METHOD, value="qlora", tool=tool_id, level="said"
        )


def _done_in_code(settings: Settings) -> None:
    """Let count what a script does to a model itself, recomputation and compiling: no option of a trainer undoes it."""
    names = ("recomputed_in_code", *(("recomputed_where_quantized",) if settings.count("bits") else ()))
    for option in filter(None, map(settings.chosen.get, names)):
        if option.value != "none":
            settings.set(CHECKPOINTING, option.value, option, option.level)
    if (compiled := settings.chosen.get("compiled_in_code")) is not None:
        settings.set(Key.TRAINING_COMPILE, compiled.value, compiled, compiled.level)


def _targets(settings: Settings) -> None:
    """Take modules of attention and the feed-forward together where they are given apart, else the usual ones."""
    usual = settings.chosen.get("usual_targets")
    if usual is not None and _TARGETS not in settings.chosen:
        settings.set(_TARGETS, usual.value, usual, "default")
    one_by_one = [name for name in _MATRICES if name in settings.chosen]
    modules = settings.value("attention_modules")
    if one_by_one:
        modules = tuple(_MATRICES[name] for name in one_by_one if settings.value(name))
    if not isinstance(modules, tuple) or settings.is_given(_TARGETS):
        return
    given = {*modules, *(_FEED_FORWARD if settings.value("feed_forward_modules") else ())}
    word, is_exact = adapted_matrices(given) if given else ("mlp", True)
    option = settings.chosen[one_by_one[0] if one_by_one else "attention_modules"]
    settings.set(_TARGETS, word, option)
    if not is_exact:
        settings.remarks.append(Remark(option.place, f"adapters on {', '.join(sorted(given))}: counted as {word}"))


PRECISION, ZERO, SHARD = Key.TRAINING_PRECISION, Key.PARALLELISM_ZERO, Key.PARALLELISM_SHARD
CHECKPOINTING, OFFLOAD = Key.TRAINING_CHECKPOINTING, Key.PARALLELISM_OFFLOAD
DEVICES, PER_NODE = Key.HARDWARE_DEVICES, Key.HARDWARE_PER_NODE
_SECTIONS = ("model", "hardware", "training", "inference", "parallelism", "pricing")

_MASTER = Key.TRAINING_MASTER_WEIGHTS
_WIDE = "adamw_32bit"  # The optimizer whose states are in 32 bits whatever the weights are in
_REWARDED = frozenset({"grpo", "ppo"})  # What answers are rewarded for, and may be held to a reference

_OF_FILES = frozenset({"said", "default"})  # Levels of settings that files give

_SHARDING = {"deepspeed": 0, "megatron": 1, "fsdp": 2}
"""Software that shards, by which of them counts where a run names several."""


def settled(imported: Sequence[ImportedSetting]) -> Settings:
    """Return the settings with those derived from them."""
    settings = strongest_settings(imported)
    for rule in _RULES:
        rule(settings)
    find_contradictions(settings)
    return settings


def _software(settings: Settings) -> None:
    """Name the software that decides memory and communication: what shards counts before what trains."""
    named = [setting for setting in settings.all.get(FRAMEWORK, ()) if setting.level in {"typed", "said"}]
    if named:
        typed = (setting for setting in named if setting.level == "typed")
        first = next(typed, min(named, key=lambda setting: _SHARDING.get(str(setting.value), len(_SHARDING))))
        kept = next((setting for setting in settings.all[FRAMEWORK] if is_kept(setting)), None)
        settings.chosen[FRAMEWORK] = kept if kept and first.level != "typed" else first
        if settings.keeps and kept is None and first.level != "typed":
            del settings.chosen[FRAMEWORK]  # the plan named none


def _sharded(settings: Settings) -> None:
    """Settle how FSDP shards; without it, what its section says does not count."""
    is_on = bool(settings.value("sharded"))
    if not is_on:
        for name in (ZERO, OFFLOAD):
            setting = settings.chosen.get(name)
            if setting is not None and setting.tool == "fsdp":
                others = [other for other in settings.all[name] if other.tool != "fsdp"]
                if others:
                    settings.chosen[name] = others[0]
                else:
                    del settings.chosen[name]
        if ZERO not in settings.chosen and settings.value("replicated"):
            settings.derive(ZERO, 0, f"{settings.chosen['replicated'].words}: replicas are not sharded")
        return
    if ZERO not in settings.chosen:
        settings.derive(ZERO, 3, f"{settings.chosen['sharded'].words}: FSDP shards parameters unless told otherwise")
    checkpointing = settings.chosen.get("sharded_checkpointing")
    if checkpointing is not None and checkpointing.value:
        own = settings.chosen.get(CHECKPOINTING)
        if own is not None and settings.is_given(CHECKPOINTING) and own.value != "none" and not is_kept(own):
            why = "layers are recomputed by FSDP and by the model, which the Trainer refuses"
            settings.clash("checkpointing_twice", why, ("sharded_checkpointing", CHECKPOINTING))
        settings.set(CHECKPOINTING, checkpointing.value, checkpointing)


def _overlapped(settings: Settings) -> None:
    """Let communication hide as options of the trainer that runs say; that of other software is its own affair."""
    option, software = settings.chosen.get("overlaps"), settings.chosen.get(FRAMEWORK)
    if option and software and option.tool == software.tool and not settings.value("megatron_fsdp"):
        settings.set(Key.TRAINING_OVERLAP, option.value, option, option.level)


def _two_shardings(settings: Settings) -> None:
    """Find DeepSpeed and FSDP in one run."""
    frameworks = settings.all.get(FRAMEWORK, ())
    deepspeed = next((setting for setting in frameworks if setting.value == "deepspeed"), None)
    if deepspeed is not None and settings.value("sharded"):
        places = (deepspeed.place, settings.chosen["sharded"].place)
        detail = f"{deepspeed.words}; {settings.chosen['sharded'].words}"
        settings.clashes.append(Clash("two_shardings", "DeepSpeed and FSDP both shard the run", detail, places))


def _precision(settings: Settings) -> None:
    """Let the type that a model is loaded in count where a trainer gives none, and TF32 where neither is short."""
    alone = settings.chosen.get("loop_precision") or settings.chosen.get("precision_alone")
    if alone is not None and PRECISION not in settings.chosen and not settings.value("precision_of_trainer"):
        settings.set(PRECISION, alone.value, alone, alone.level)
    own = settings.chosen.get("precision_of_itself")
    if own is not None and not settings.is_given(PRECISION):
        settings.set(PRECISION, own.value, own, own.level)
    elif settings.value("not_bf16") and not settings.is_given(PRECISION):
        settings.set(PRECISION, settings.value("matrices", "fp32"), settings.chosen["not_bf16"])
    # What is prepared is put into 32 bits, but for products with weights of few bits.
    is_prepared = settings.count("bits") and "recomputed_where_quantized" in settings.chosen
    loaded, trainer = (settings.chosen.get(key) for key in ("multiplied_in" if is_prepared else "loaded_in", PRECISION))
    if loaded is not None and trainer is not None and (trainer.value, trainer.level in _OF_FILES) == ("fp32", True):
        settings.set(PRECISION, loaded.value, loaded, loaded.level)
    # Beside a decoder's length the plain one is that of an encoder of pictures; an encoder of text is the longer part.
    length = settings.chosen.get("encoder_length") or settings.chosen.get("decoder_length")
    if length is None and Key.TRAINING_SEQ_LEN not in settings.chosen:
        cuts = settings.all.get("cut_length", ())  # answers are cut shorter than what they are learned from
        length = max(cuts, key=lambda cut: float(str(cut.value)), default=None)
    if length is not None:
        settings.set(Key.TRAINING_SEQ_LEN, length.value, length)
    if settings.value("matrices") == "tf32" and not settings.is_given(PRECISION):
        settings.set(PRECISION, "tf32", settings.chosen["matrices"])


def _low_rank(settings: Settings) -> None:
    """Let an optimizer whose states are of low rank stand for the one beside it, with the rank that it has."""
    usual, named = settings.chosen.get("usual_rank"), settings.chosen.get("optimizer_of_low_rank")
    if usual is None:
        return
    rank = settings.chosen.get("low_rank", usual)
    settings.set(Key.TRAINING_OPTIMIZER_RANK, rank.value, rank, rank.level)
    if named is not None:
        settings.set(Key.TRAINING_OPTIMIZER, named.value, named)


def _copies(settings: Settings) -> None:
    """Leave out the copy in 32 bits of what is loaded and trained in 16: DeepSpeed and FSDP keep one, others do not.

    And the reference of rewarded answers that nothing holds to it.
    """
    is_full = settings.value(METHOD, settings.value("adapted_in_code", "full")) == "full"
    is_sharded = settings.value(FRAMEWORK) == "deepspeed" or bool(settings.value("sharded"))
    software, loaded = settings.chosen.get("without_master"), settings.chosen.get("loaded_in")
    trained_in, reason = settings.value(PRECISION), None
    is_whole = is_full or (software is not None and software.value == "always")
    if loaded is not None and not is_sharded:
        reason = loaded if {loaded.value, trained_in} <= _SHORT else None
    elif software is not None and (software.value == "always" or not is_sharded):
        reason = software if trained_in == "bf16" else None
    if reason is not None and is_whole and not (settings.is_given(_MASTER) or settings.keeps):
        settings.set(_MASTER, "none", reason, reason.level)
        if settings.value("wide_states"):
            settings.set(Key.TRAINING_OPTIMIZER, _WIDE, settings.chosen["wide_states"])
    weight = settings.chosen.get("reference_weight")
    if weight is not None and not weight.value and settings.value(Key.TRAINING_PREFERENCE) in _REWARDED:
        settings.set(Key.TRAINING_REFERENCE, "precomputed", weight, weight.level)


def _sizes(settings: Settings) -> None:
    """Settle the devices: processes that are started, or the product of all sizes."""
    split = product(settings, SPLITS)
    replicate, share = settings.count("replicate", 1) or 1, settings.count("share", 0) or 0
    own = (settings.count(Key.PARALLELISM_EP, 1) or 1) if settings.value("experts_on_their_own") else 1
    replicas = settings.count("replicas") or (replicate * share * own if share else None)
    processes, trains = settings.count("processes"), settings.value(Key.TASK) != "infer"
    nodes, copies = settings.count("nodes", 1) or 1, settings.count("copies", 1) or 1
    if copies > 1:
        replicas = (replicas or 1) * copies
        settings.derive("replicas", replicas, f"{settings.chosen['copies'].words}: copies of what serves")
    if processes is None and settings.count("per_process") and settings.is_given("per_process"):
        on_node, devices = settings.count("per_process") or 1, settings.count(DEVICES) or 0
        if split > on_node and not settings.is_given("nodes") and devices % on_node == 0:
            nodes = devices // on_node or 1  # one replica takes several nodes, of which the launcher tells the number
        processes = on_node * nodes * copies
        settings.derive("processes", processes, settings.chosen["per_process"].words)
    if replicas is not None and processes is None:
        processes = replicas * split
        settings.derive("processes", processes, f"{replicas} replicas of {split} devices")
    visible = settings.count("visible")
    if processes is not None and visible and processes > visible * nodes:
        seen = f"{processes} processes on {visible * nodes} visible devices"
        settings.clash("world_size", seen, ("processes", "visible"))
    if processes is not None:
        _world(settings, processes, nodes)
    elif settings.value("layers_spread") == (_ALL_SEEN,) and trains and (settings.count(DEVICES, 1) or 1) > 1:
        why = "one process spreads the layers over the devices that it sees: a copy on every device is counted"
        settings.remarks.append(Remark(settings.chosen["layers_spread"].place, why))
    by_slurm = {name for name in ("per_process", "nodes") if _is_of_slurm(settings.chosen.get(name))}
    if settings.value("one_device") and by_slurm and (processes or 1) > 1:
        why = f"Slurm starts {processes} processes, but the tool takes one device unless its own options say more"
        settings.clash("processes_of_slurm", why, (*sorted(by_slurm), "one_device"))
    if replicas is not None and replicas * split != processes:
        why = f"{replicas} replicas of {split} devices are not {processes} processes"
        settings.clash("world_size", why, ("replicas", "replicate", "share", *SPLITS, "processes"))


def _is_of_slurm(setting: ImportedSetting | None) -> bool:
    """Whether a variable of a job of Slurm gives a value."""
    return setting is not None and setting.place.field in tool(LAUNCHER).variables


def _world(settings: Settings, processes: int, nodes: int) -> None:
    """Take the processes for the devices, and check them against those that were typed."""
    origin = settings.chosen["processes"]
    devices = None if is_kept(settings.chosen.get(DEVICES)) else settings.count(DEVICES)
    if devices is not None and devices < processes:
        settings.clash("world_size", f"{processes} processes on {devices} devices", ("processes", DEVICES))
    elif devices is None or devices > processes:
        if devices is not None:
            idle = f"{processes} processes leave {devices - processes} of {devices} devices idle"
            settings.clash("idle_devices", idle, ("processes", DEVICES))
        settings.set(DEVICES, processes, origin, origin.level)
    if PER_NODE not in settings.chosen and settings.is_given("per_node"):
        per_node = min(processes, settings.count("per_node") or processes)
        settings.set(PER_NODE, per_node, settings.chosen["per_node"])
    if nodes > 1 and settings.is_given("nodes"):
        if processes % nodes:
            why = f"{processes} processes on {nodes} nodes do not come out even"
            settings.clash("world_size", why, ("processes", "nodes"))
        elif PER_NODE not in settings.chosen:
            settings.derive(PER_NODE, processes // nodes, f"{processes} processes on {nodes} nodes")


def _of_several(settings: Settings) -> None:
    """Shard, and recompute layers, where a tool does so by itself as soon as it trains on several devices."""
    if (settings.count(DEVICES, 1) or 1) == 1:
        return
    for name, quantity in ((ZERO, "zero_of_several"), (CHECKPOINTING, "checkpointing_of_several")):
        own = settings.chosen.get(quantity)
        if own is not None and own.value != settings.value(name) and not settings.is_given(name):
            settings.derive(name, own.value, f"{own.words} on several devices")


def _groups(settings: Settings) -> None:
    """Settle sharding groups: replicas of them, or one a node."""
    replicate, context = settings.count("replicate", 1) or 1, settings.count(Key.PARALLELISM_CP, 1) or 1
    share = settings.count("share", 0) or 0
    if replicate > 1 and share > 1 and SHARD not in settings.chosen:
        settings.derive(SHARD, share * context, f"groups of {share} replicas, {replicate} times")
    if replicate > 1 and share == 1:
        settings.derive(ZERO, 0, f"{replicate} replicas, each a group of its own")
    if (settings.count(Key.PARALLELISM_EP, 1) or 1) == 1:
        settings.chosen.pop(Key.PARALLELISM_ETP, None)
    if settings.value("shard_nodes") and SHARD not in settings.chosen and PER_NODE in settings.chosen:
        settings.derive(SHARD, settings.value(PER_NODE), f"{settings.chosen['shard_nodes'].words}: a group a node")


def _context(settings: Settings) -> None:
    """Take sequence parallelism that swaps tokens for heads as context parallelism of that kind."""
    ulysses = settings.count("ulysses")
    if ulysses is not None and ulysses > 1 and not settings.is_given(Key.PARALLELISM_CP):
        option = settings.chosen["ulysses"]
        settings.set(Key.PARALLELISM_CP, ulysses, option)
        settings.derive(Key.PARALLELISM_CONTEXT, "all_to_all", option.words)


def _counted_otherwise(settings: Settings) -> None:
    """Refuse programs that do something for which plans have no word, unless the task says what to count them as."""
    option, task = settings.chosen.get("counted_otherwise"), settings.chosen.get(Key.TASK)
    if option is None:
        return
    place, why = replace(option.place, field=option.text), str(option.value)
    if task is None or task.level != "typed":
        raise PlanError("not modelled", why, "--task full counts all of it as trained, lora next to none", place)
    settings.remarks.append(Remark(place, f"{why}: counted as the task says"))


_RULES = (
    _counted_otherwise,
    _software,
    _two_shardings,
    _sharded,
    _precision,
    _low_rank,
    _context,
    eight_bits,
    megatron_shards,
    adapters,
    _done_in_code,
    _overlapped,
    batches_of_stages,
    split_devices,
    experts,
    _sizes,
    _of_several,
    _groups,
    answers,
    _copies,
    batches,
    job_length,
    weights,
)
"""Applied in this order."""


def plan_values(settings: Settings) -> Iterator[tuple[str, ImportedSetting]]:
    """Yield the settings that are fields of a plan."""
    for name, setting in settings.chosen.items():
        section, dot, _ = name.partition(".")
        if name == Key.TASK or (dot and section in _SECTIONS):
            yield name, setting
