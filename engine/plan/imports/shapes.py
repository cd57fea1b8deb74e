"""Fields that follow from several options of other tools: shapes of models, their layouts, and fields of inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Architecture, Catalog, gguf_type
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import load_traits, shape_of
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Remark, Settings, is_kept
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL, named_model
from capacity_tui.engine.plan.options.tools import tools
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.sections import TRAINED_TOWERS, InferenceSection

SHAPE = "shape."
_SPEC = f"{Key.MODEL_SPEC}."
_DECODER = "transformer_decoder"
_INTERLEAVE, _PP = Key.PARALLELISM_INTERLEAVE, Key.PARALLELISM_PP
_USUAL_STAGES = 2  # Stages that each rank of torchtitan's looped schedules has by default
_FEED_FORWARD = 4
_MULTIPLE = 64


def model_of_sizes(settings: Settings, catalog: Catalog) -> None:
    """Name the model with these sizes, or give the sizes to a user-defined decoder."""
    tokenizer, is_named = settings.chosen.get("tokenizer"), bool({MODEL, "model"} & settings.chosen.keys())
    if tokenizer is not None and not is_named and "tokenizer_of_model" in settings.chosen:
        settings.chosen.setdefault("built_model", replace(tokenizer, field="built_model"))
    if SHAPE + "layers" not in settings.chosen or is_named:
        return
    named = named_model(str(tokenizer.value), catalog) if tokenizer is not None else None
    row = catalog.architectures.get(str(named.values.get(MODEL))) if named is not None else None
    layers, hidden = settings.chosen[SHAPE + "layers"], settings.value(SHAPE + "hidden")
    if tokenizer is not None and row is not None and (row.layers, row.hidden) == (layers.value, hidden):
        settings.set(MODEL, row.id, tokenizer)
        return
    settings.derive(MODEL, _DECODER, f"{layers.words}: a model given by its sizes")
    sizes = dict(_sizes(settings))
    if row is not None:
        sizes.setdefault("vocab", row.vocab)
    for name, value in sizes.items():
        option = settings.chosen.get(SHAPE + name)
        if option is not None:
            settings.set(_SPEC + name, value, option)
        else:
            settings.derive(_SPEC + name, value, "as the tool makes it without an option")


def _sizes(settings: Settings) -> Mapping[str, object]:
    """Return the sizes of a model, with what the tool does where an option is left out."""
    given = ((name, setting.value) for name, setting in settings.chosen.items() if name.startswith(SHAPE))
    sizes = {name.removeprefix(SHAPE): value for name, value in given}
    hidden, heads = settings.count(SHAPE + "hidden", 0) or 0, settings.count(SHAPE + "heads", 1) or 1
    sizes.setdefault("gated", False)
    of_tokenizer = sizes.pop("vocab_of_tokenizer", None)
    if of_tokenizer is not None:
        sizes.setdefault("vocab", of_tokenizer)
    # By default a user-defined model has the context that it is trained on.
    length = settings.count(Key.TRAINING_SEQ_LEN, 0)
    if length:
        sizes.setdefault("max_context", length)
    if "ffn" not in sizes:
        ratio = settings.count("feed_forward_ratio") or _FEED_FORWARD
        wide, multiple = settings.count("feed_forward_width") or ratio * hidden, settings.count("feed_forward_multiple")
        if multiple:
            # GPT-NeoX (megatron/model/transformer.py): gate and up share two thirds of the width, each a multiple.
            wide = wide * 2 // 3 // 2 if sizes["gated"] else wide
            sizes["ffn"] = -(-wide // multiple) * multiple
        else:
            sizes["ffn"] = (wide * 2 // 3 // _MULTIPLE) * _MULTIPLE if sizes["gated"] else wide
    if not settings.value("grouped"):
        sizes.pop("kv_heads", None)
        sizes["kv_heads"] = heads
    if not settings.value("latent"):
        for name in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
            sizes.pop(name, None)
    else:
        sizes.pop("head_dim", None)
    sizes["tied_embeddings"] = not settings.value("untied")
    sizes["biases"] = "qkv" if settings.value("qkv_biases") else not settings.value("unbiased")
    if sizes.get("experts"):
        sizes.setdefault("moe_ffn", sizes["ffn"])
        shared = settings.count("shared_width")
        if shared:
            sizes["experts_shared"] = max(1, shared // (settings.count(SHAPE + "moe_ffn") or shared))
    else:
        sizes.pop("experts_active", None)
    return sizes


def flavored_model(settings: Settings, catalog: Catalog) -> None:
    """Name the model that a tool calls by a name, or by a name and a flavor."""
    alone = settings.chosen.get("model")
    if alone is not None and alone.tool:
        called_so = (model for model, words in tools()[alone.tool].models.items() if words == (str(alone.value),))
        settings.chosen["model"] = replace(alone, value=next(called_so, alone.value))
    name, flavor = settings.chosen.get("titan_model"), settings.chosen.get("titan_flavor")
    if name is None or flavor is None or "model" in settings.chosen:
        return
    models = tools()[name.tool].models
    called = [model for model, words in models.items() if words == (str(name.value), str(flavor.value))]
    folder = str(settings.value("titan_assets", "")).rstrip("/").rpartition("/")[2]
    in_folder = [hub_name for hub_name in called if hub_name.rpartition("/")[2] == folder]
    model = next(iter((*in_folder, *called)), None)
    if model is None and folder and named_model(folder, catalog) is not None:
        model = folder
    text = f"{name.value} {flavor.value}"
    value = model or text
    settings.chosen["model"] = replace(flavor, field="model", value=value, text=text, tool=name.tool, level="said")


def known_layers(settings: Settings, catalog: Catalog) -> int | None:
    """Return the layers of the model that is named; None where they are unknown yet."""
    given = settings.count(SHAPE + "layers")
    if given:
        return given
    row = known_row(settings, catalog)
    return int(row.layers) if row is not None and row.layers else None


def known_row(settings: Settings, catalog: Catalog) -> Architecture | None:
    """Return the row of the model, which may be named as its repository is; None where there is none yet."""
    row_id = catalog.architectures.find_id(str(settings.value(MODEL)))
    return None if row_id is None else catalog.architectures[row_id]


_LOADED, _PUBLISHED = "loaded_in", "published"


def loaded_as_published(given: Sequence[ImportedSetting], catalog: Catalog) -> Iterator[ImportedSetting]:
    """Yield settings with the type of the model's checkpoint where a model is loaded in that, if it is known."""
    names = [one.value for one in given if one.field in (MODEL, "model")]
    rows = filter(None, (catalog.architectures.find_id(str(name).rpartition("/")[2]) for name in names))
    row = next((catalog.architectures[row_id] for row_id in rows), None)
    for one in given:
        if one.field != _LOADED or one.value != _PUBLISHED:
            yield one
        elif row is not None:
            traits = load_traits()
            is_wide = not traits.wide.isdisjoint((row.kind, row.architecture)) and row.id not in traits.narrow
            yield replace(one, value="fp32" if is_wide else "bf16")


def loaded_by_release(settings: Settings) -> Iterator[str]:
    """Yield what an older release of Transformers does where nothing says the type of a model that is trained whole."""
    loaded = settings.chosen.get(_LOADED)
    is_decisive = loaded is not None and any(
        settings.chosen.get(path) == replace(loaded, field=path, value=value)
        for path, value in ((Key.TRAINING_PRECISION, loaded.value), (Key.TRAINING_MASTER_WEIGHTS, "none"))
    )
    if loaded is not None and loaded.level == "default" and is_decisive and loaded.value != "fp32":
        yield f"weights in {loaded.value}, as they are published: Transformers 4 loads them in 32 bits by default"


def towers(settings: Settings, catalog: Catalog) -> None:
    """Settle whether the model's towers are trained.

    Some software gives towers that are not frozen adapters beside those of the text, other trains them whole.
    """
    row, method = known_row(settings, catalog), settings.value(Key.TRAINING_METHOD, "full")
    whole, adapted = settings.chosen.get("towers"), settings.chosen.get("adapted_towers")
    option = whole or adapted
    if option is None or (option.level == "default" if row is None else not shape_of(row).tower_weights):
        return
    if method == "full" or whole is not None:
        settings.set(Key.TRAINING_TOWERS, option.value, option, option.level)
    elif option.value == TRAINED_TOWERS:
        settings.remarks.append(Remark(option.place, "adapters of the towers are not counted"))


def stages(settings: Settings, layers: int | None) -> None:
    """Settle pieces of a pipeline from the layers of one."""
    pp = settings.count(_PP, 1) or 1
    chunk = settings.count("chunk_layers")
    looped = "chunk_layers" in settings.chosen and "schedule" not in settings.chosen
    looped = looped or "interleaved" in str(settings.value("schedule", "")).casefold()
    if pp == 1 or not looped or _INTERLEAVE in settings.chosen:
        return
    pieces = max(1, -(-layers // (pp * chunk))) if layers and chunk else _USUAL_STAGES
    settings.derive(_INTERLEAVE, pieces, f"{pieces} stages on each of {pp} devices")


def recomputation(settings: Settings, layers: int | None) -> None:
    """Settle what is recomputed from how, how many and which layers."""
    how = settings.chosen.get("recomputed")
    if how is None:
        return
    what = settings.value("recomputed_what")
    number = settings.count("recomputed_layers", 1) or 1
    value: object = how.value
    if how.value == "selective":
        value = _selected(what)
    elif how.value == "full" and settings.value("recomputed_how") == "block" and layers:
        pieces = (settings.count(_PP, 1) or 1) * (settings.count(_INTERLEAVE, 1) or 1)
        every = round(layers / pieces / max(number, 1))
        value = "full" if every <= 1 else f"every-{every}"
    elif how.value == "full" and settings.value("recomputed_how") == "uniform" and number > 1:
        settings.remarks.append(Remark(how.place, f"{number} layers are recomputed at once: counted one by one"))
    if value == "memory_budget":
        return
    settings.set(Key.TRAINING_CHECKPOINTING, value, how, how.level)


def _selected(what: object) -> str:
    """Return the plan's word for a selection: modules, operations, or every Nth layer."""
    if isinstance(what, tuple):
        modules = sorted(str(module) for module in what if module)
        return "selective" if modules in (["attention"], []) else "+".join(modules)
    if isinstance(what, str) and what.isdigit():
        return f"every-{what}" if int(what) > 1 else "full"
    if what == "op":
        return "selective-ops"
    return "selective" if what in (None, "attention") else str(what)


def batches_of_stages(settings: Settings) -> None:
    """Take torchtitan's local batch apart: with stages it is all micro-batches of a step."""
    local = settings.chosen.get("local_batch")
    if local is None or Key.TRAINING_MICRO_BATCH in settings.chosen:
        return
    staged = (settings.count(_PP, 1) or 1) > 1
    name = "stage_batch" if staged else "local_batch"
    batch = settings.chosen[name]
    # The tool accumulates up to a batch that is given; it never changes its own local batch for that.
    level = "said" if settings.is_given(Key.TRAINING_GLOBAL_BATCH) else batch.level
    settings.set(Key.TRAINING_MICRO_BATCH, batch.value, batch, level)
    steps = (settings.count("local_batch") or 1) // (settings.count("stage_batch") or 1) if staged else 1
    if "accumulation" not in settings.chosen:
        settings.set("accumulation", max(1, steps), local, "default")


def megatron_shards(settings: Settings) -> None:
    """Settle what the FSDP of Megatron shards."""
    if settings.value("megatron_fsdp"):
        option = settings.chosen.get("megatron_shards") or settings.chosen["megatron_fsdp"]
        value = option.value if option.field == "megatron_shards" else 3
        settings.set(Key.PARALLELISM_ZERO, value, option)


def eight_bits(settings: Settings) -> None:
    """Let matrices in 8 or 4 bits count before the type around them."""
    option = settings.chosen.get("eight_bits")
    if option is not None and settings.value(Key.TRAINING_PRECISION) != option.value:
        settings.set(Key.TRAINING_PRECISION, option.value, option)
    if option is not None and (kept := settings.chosen.get("eight_bits_kept")) is not None and kept.value:
        settings.set(Key.TRAINING_FP8_WEIGHTS, True, kept)


WEIGHTS, CACHE = Key.INFERENCE_WEIGHTS, Key.INFERENCE_KV_CACHE

PROMPT, OUTPUT = Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS

_USUAL_REQUEST = sum(InferenceSection.model_fields[name].default for name in ("prompt_tokens", "output_tokens"))

_LOADS = (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_CONCURRENCY, Key.INFERENCE_BATCH)

_USUAL_OUTPUT = 512

_LEAST_SHARE = 5  # Of a short context, the part that is left to the answer


def split_devices(settings: Settings) -> None:
    """Spread layers, or rows of matrices, over all devices that an engine sees, or that are typed, where it does so."""
    size = Key.PARALLELISM_TP if settings.value("split") == "rows" else Key.PARALLELISM_PP
    if "split" not in settings.chosen or size in settings.chosen:
        return
    copies, seen = settings.count("copies", 1) or 1, settings.count("seen")
    if seen and "processes" not in settings.chosen:
        settings.set("processes", seen * copies, settings.chosen["seen"])
    devices = (settings.count("processes", settings.count(Key.HARDWARE_DEVICES, 1)) or 1) // copies
    if devices > 1:
        settings.derive(size, devices, f"{devices} devices share the {settings.value('split')}")


def weights(settings: Settings) -> None:
    """Take the format of weights from the option, else from the model's name, else from its type."""
    for name in ("weights_named", "weights_kept"):
        option = settings.chosen.get(name)
        is_open = not settings.is_given(WEIGHTS) or (name == "weights_kept" and is_kept(settings.chosen[WEIGHTS]))
        if option is not None and is_open:
            settings.set(WEIGHTS, option.value, option, option.level)
    keys, values = settings.chosen.get(CACHE), settings.chosen.get("cache_of_values")
    differ = keys is not None and values is not None and keys.value not in (values.value, *values.besides)
    if differ:
        why = "keys and values are kept in two formats; that of the keys is counted"
        settings.clash("cache_types", why, (CACHE, "cache_of_values"))
    elif keys is None and values is not None:
        settings.set(CACHE, values.value, values)


def experts(settings: Settings) -> None:
    """Spread the experts over all devices where an option asks for it, and split each as the tool does.

    Megatron-LM splits an expert as the layers around it; engines split it over the devices of tensor parallelism that
    the experts leave, so that each holds an equal part of them all.
    """
    tp = settings.count(Key.PARALLELISM_TP, 1) or 1
    if settings.value("experts_everywhere") and Key.PARALLELISM_EP not in settings.chosen:
        spread = tp * (settings.count("replicas", 1) or 1)
        settings.derive(Key.PARALLELISM_EP, spread, f"{settings.chosen['experts_everywhere'].words}: over all devices")
    split, ep = settings.chosen.get("experts_split"), settings.count(Key.PARALLELISM_EP, 1) or 1
    if split is None or ep == 1 or Key.PARALLELISM_ETP in settings.chosen:
        return
    parts = tp if split.value == "as_the_layers" else max(1, tp // ep)
    if parts > 1:
        settings.derive(Key.PARALLELISM_ETP, parts, f"TP {tp} with EP {ep}: the tool splits an expert {parts} times")


def requests(settings: Settings, catalog: Catalog) -> None:
    """Take requests as long, and as many at once, as the engine lets through; a context of 0 is all of the model's."""
    if settings.value(Key.TASK) != "infer":
        return
    running = settings.count("running")
    together = settings.count("longest_together")
    row = known_row(settings, catalog)
    if together == 0 and row is not None:
        together = int(row.max_context or 0)
    longest = settings.count("longest") or (together // (running or 1) if together else None)
    context = int(row.max_context or 0) if row is not None else settings.count("shape.max_context", 0) or 0
    if not longest and 0 < context < _USUAL_REQUEST and not {PROMPT, OUTPUT} & settings.chosen.keys():
        settings.derive("longest", context, f"the model takes {context} tokens")
        longest = context
    prompt = settings.count(PROMPT) or 0
    if prompt and not longest and OUTPUT not in settings.chosen and 0 < context < prompt + _USUAL_OUTPUT:
        del settings.chosen[PROMPT]  # what goes in leaves something for the answer
        settings.derive("longest", context, f"the model takes {context} tokens")
        longest = context
    if longest:
        _lengths(settings, longest)
    replicas = settings.count("replicas", 1) or 1
    loads = (settings.chosen.get(name) for name in _LOADS)
    kept = next((load for load in loads if load is not None and is_kept(load)), None)
    if running and kept is not None and kept.field != Key.INFERENCE_REQUEST_RATE:
        per_replica = -(-int(str(kept.value)) // (replicas if kept.field == Key.INFERENCE_CONCURRENCY else 1))
        if per_replica != running:
            del settings.chosen[kept.field]
    if running and not any(_is_set(settings, name) for name in _LOADS):
        settings.derive(Key.INFERENCE_CONCURRENCY, running * replicas, settings.chosen["running"].words)


def _lengths(settings: Settings, longest: int) -> None:
    """Share the longest context between the prompt and the answer."""
    prompt = settings.count(PROMPT) if _is_set(settings, PROMPT) else None
    output = settings.count(OUTPUT) if _is_set(settings, OUTPUT) else None
    if prompt and is_kept(settings.chosen[PROMPT]) and prompt + (output or 0) != longest:
        prompt = None
    if output and not prompt and output >= longest:
        output = None  # an answer may be as long as all that goes in: that says nothing of it
    source = settings.chosen.get("longest") or settings.chosen["longest_together"]
    if prompt and output:
        if prompt + output > longest:
            why = f"requests of {prompt} + {output} tokens do not go into {longest}"
            settings.clash("context", why, (PROMPT, OUTPUT, source.field))
        return
    if not output:
        output = max(1, longest - prompt) if prompt else max(1, min(_USUAL_OUTPUT, longest // _LEAST_SHARE))
        settings.derive(OUTPUT, output, f"{source.words}: the longest request")
    if not prompt:
        settings.derive(PROMPT, max(1, longest - output), f"{source.words}: the longest request")


def _is_set(settings: Settings, name: str) -> bool:
    """Whether an option gives it, or the program that runs."""
    return settings.is_given(name) or settings.is_begun_with(name)


def assumed_sizes(settings: Settings) -> Iterator[str]:
    """Yield that a model given by its sizes has the vocabulary of the family, where no file gives one."""
    if settings.value(MODEL) == _DECODER and _SPEC + "vocab" not in settings.chosen:
        yield "a vocabulary as large as GPT-2's: no file gives its size"


def assumed_samples(settings: Settings) -> Iterator[str]:
    """Yield what is assumed of the number of samples: as many as an option lets through, or none that is known."""
    samples, epochs = settings.chosen.get(Key.TRAINING_SAMPLES), settings.chosen.get(Key.TRAINING_EPOCHS)
    if epochs is not None and samples is None and Key.TRAINING_TOKENS not in settings.chosen:
        yield f"training.epochs {epochs.value}: no file gives how many samples there are, nor so time and cost"
    if samples is not None and samples.level == "said" and "samples_at_most" in settings.chosen:
        yield f"{samples.value} samples, the most that {samples.place.field} lets through: no file gives their number"


def assumed_load(settings: Settings, plan: Plan) -> Iterator[str]:
    """Yield what is assumed of the requests, which no file specifies."""
    lengths = f"requests of {plan.inference.prompt_tokens} + {plan.inference.output_tokens} tokens"
    prompt = settings.chosen.get(PROMPT)
    if prompt is None:
        given = f"prompts of {plan.inference.prompt_tokens} tokens" if settings.is_given(OUTPUT) else lengths
        yield f"{given}: no file gives their length"
    elif prompt.level == "derived":
        yield f"{lengths}, the longest that it takes: no file gives their length"
    format_of = settings.chosen.get(WEIGHTS)
    if format_of is not None and "gguf" in format_of.text.casefold() and gguf_type(format_of.text) is None:
        yield f"weights in {format_of.value}: {format_of.text} does not say their format"
    if not any(name in settings.chosen for name in _LOADS):
        yield "one request at a time: no file gives a number"
