"""The shape of a model that a tool gives by sizes, and layouts that follow from its layers."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.said import Said
from capacity_tui.engine.plan.imports.settings import Settings
from capacity_tui.engine.plan.imports.tools import tools
from capacity_tui.engine.plan.line.model_words import MODEL, named_model

SHAPE = "shape."
_SPEC = "model.spec."
_DECODER = "transformer_decoder"
_INTERLEAVE, _PP = Key.PARALLELISM_INTERLEAVE, Key.PARALLELISM_PP
_USUAL_STAGES = 2
"""Stages that each rank of torchtitan's looped schedules has where nothing says how many."""
_FEED_FORWARD = 4
_MULTIPLE = 64


def model_of_sizes(settings: Settings, catalog: Catalog) -> None:
    """Name the model that sizes are of, or give the sizes to a decoder of one's own."""
    if SHAPE + "layers" not in settings.said or MODEL in settings.said or "model" in settings.said:
        return
    tokenizer = settings.said.get("tokenizer")
    named = named_model(str(tokenizer.value), catalog) if tokenizer is not None else None
    row = catalog.architectures.get(str(named.values.get(MODEL))) if named is not None else None
    layers, hidden = settings.said[SHAPE + "layers"], settings.value(SHAPE + "hidden")
    if row is not None and (row.layers, row.hidden) == (layers.value, hidden):
        settings.said[MODEL] = Said(MODEL, row.id, tokenizer.place, tokenizer.text, tokenizer.tool)  # type: ignore[union-attr]
        return
    settings.derive(MODEL, _DECODER, f"{layers.words}: a model given by its sizes")
    for name, value in _sizes(settings).items():
        said = settings.said.get(SHAPE + name)
        if said is not None:
            settings.said[_SPEC + name] = Said(_SPEC + name, value, said.place, said.text, said.tool)
        else:
            settings.derive(_SPEC + name, value, "as the tool makes it without an option")


def _sizes(settings: Settings) -> Mapping[str, object]:
    """Return the sizes of a model, with what the tool does where an option is left out."""
    found = {name.removeprefix(SHAPE): said.value for name, said in settings.said.items() if name.startswith(SHAPE)}
    hidden, heads = settings.count(SHAPE + "hidden", 0) or 0, settings.count(SHAPE + "heads", 1) or 1
    found.setdefault("gated", False)
    # Where nobody says more, a model of one's own reads what it is trained on.
    length = settings.count(Key.TRAINING_SEQ_LEN, 0)
    if length:
        found.setdefault("max_context", length)
    if "ffn" not in found:
        wide = _FEED_FORWARD * hidden
        found["ffn"] = (wide * 2 // 3 // _MULTIPLE) * _MULTIPLE if found["gated"] else wide
    if not settings.value("grouped"):
        found.pop("kv_heads", None)
        found["kv_heads"] = heads
    if not settings.value("latent"):
        for name in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
            found.pop(name, None)
    else:
        found.pop("head_dim", None)
    found["tied_embeddings"] = not settings.value("untied")
    found["biases"] = "qkv" if settings.value("qkv_biases") else not settings.value("unbiased")
    if found.get("experts"):
        found.setdefault("moe_ffn", found["ffn"])
        shared = settings.count("shared_width")
        if shared:
            found["experts_shared"] = max(1, shared // (settings.count(SHAPE + "moe_ffn") or shared))
    return found


def flavored_model(settings: Settings, catalog: Catalog) -> None:
    """Name the model that a tool knows by a name and a flavor of its own."""
    name, flavor = settings.said.get("titan_model"), settings.said.get("titan_flavor")
    if name is None or flavor is None or "model" in settings.said:
        return
    models = tools()[name.tool].models
    called = [model for model, words in models.items() if words == (str(name.value), str(flavor.value))]
    folder = str(settings.value("titan_assets", "")).rstrip("/").rpartition("/")[2]
    model = next((each for each in called if each.rpartition("/")[2] == folder), None) or next(iter(called), None)
    if model is None and folder and named_model(folder, catalog) is not None:
        model = folder
    text = f"{name.value} {flavor.value}"
    settings.said["model"] = Said("model", model or text, flavor.place, text, name.tool)


def layers_of(settings: Settings, catalog: Catalog) -> int | None:
    """Return the layers of the model that is named; None where nobody knows them yet."""
    given = settings.count(SHAPE + "layers")
    if given:
        return given
    row = catalog.architectures.get(str(settings.value(MODEL)))
    return int(row.layers) if row is not None and row.layers else None


def stages(settings: Settings, layers: int | None) -> None:
    """Settle pieces of a pipeline from the layers of one."""
    pp = settings.count(_PP, 1) or 1
    chunk = settings.count("chunk_layers")
    looped = "chunk_layers" in settings.said and "schedule" not in settings.said
    looped = looped or "interleaved" in str(settings.value("schedule", "")).casefold()
    if pp == 1 or not looped or _INTERLEAVE in settings.said:
        return
    pieces = max(1, -(-layers // (pp * chunk))) if layers and chunk else _USUAL_STAGES
    settings.derive(_INTERLEAVE, pieces, f"{pieces} stages on each of {pp} devices")


def recomputation(settings: Settings, layers: int | None) -> None:
    """Settle what is recomputed from how, how many and which layers."""
    how = settings.said.get("recomputed")
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
        value = "full"
    if value == "memory_budget":
        return
    settings.said[Key.TRAINING_CHECKPOINTING] = Said(
        Key.TRAINING_CHECKPOINTING, value, how.place, how.text, how.tool, how.level
    )


def _selected(what: object) -> str:
    """Return the plan's word for a selection: modules, operations, or every Nth layer."""
    if isinstance(what, tuple):
        modules = sorted(str(each) for each in what if each)
        return "selective" if modules in (["attention"], []) else "+".join(modules)
    if isinstance(what, str) and what.isdigit():
        return f"every-{what}" if int(what) > 1 else "full"
    if what == "op":
        return "selective-ops"
    return "selective" if what in (None, "attention") else str(what)


def batches_of_stages(settings: Settings) -> None:
    """Take torchtitan's local batch apart: with stages it is all micro-batches of a step."""
    local = settings.said.get("local_batch")
    if local is None or Key.TRAINING_MICRO_BATCH in settings.said:
        return
    staged = (settings.count(_PP, 1) or 1) > 1
    name = "stage_batch" if staged else "local_batch"
    found = settings.said[name]
    settings.said[Key.TRAINING_MICRO_BATCH] = Said(
        Key.TRAINING_MICRO_BATCH, found.value, found.place, found.text, found.tool, found.level
    )
    steps = (settings.count("local_batch") or 1) // (settings.count("stage_batch") or 1) if staged else 1
    if "accumulation" not in settings.said:
        settings.said["accumulation"] = Said(
            "accumulation", max(1, steps), local.place, local.text, local.tool, "default"
        )


def megatron_shards(settings: Settings) -> None:
    """Settle what Megatron's own FSDP shards."""
    if settings.value("megatron_fsdp"):
        found = settings.said.get("megatron_shards") or settings.said["megatron_fsdp"]
        value = found.value if found.field == "megatron_shards" else 3
        settings.said[Key.PARALLELISM_ZERO] = Said(Key.PARALLELISM_ZERO, value, found.place, found.text, found.tool)


def eight_bits(settings: Settings) -> None:
    """Let matrices in 8 or 4 bits count before the type around them."""
    found = settings.said.get("eight_bits")
    if found is not None and settings.value(Key.TRAINING_PRECISION) != found.value:
        settings.said[Key.TRAINING_PRECISION] = Said(
            Key.TRAINING_PRECISION, found.value, found.place, found.text, found.tool
        )
