"""Fields of inference that follow from several options of an engine: devices, formats, requests."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.setting import Settings, is_kept
from capacity_tui.engine.plan.plan import Plan

WEIGHTS, CACHE = Key.INFERENCE_WEIGHTS, Key.INFERENCE_KV_CACHE

PROMPT, OUTPUT = Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS

_LOADS = (Key.INFERENCE_REQUEST_RATE, Key.INFERENCE_CONCURRENCY, Key.INFERENCE_BATCH)

_USUAL_OUTPUT = 512

_LEAST_SHARE = 5  # Of a short context, the part that is left to the answer


def split_devices(settings: Settings) -> None:
    """Let llama.cpp spread layers, or rows of matrices, over all devices that are typed."""
    devices = settings.count(Key.HARDWARE_DEVICES, 1) or 1
    if settings.value(Key.INFERENCE_ENGINE) != "llamacpp" or settings.value("processes") == 1 or devices == 1:
        return
    size = Key.PARALLELISM_TP if settings.value("split") == "rows" else Key.PARALLELISM_PP
    if size not in settings.chosen:
        settings.derive(size, devices, f"{devices} devices share the {settings.value('split', 'layers')}")


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
    """Spread the experts over all devices where an option asks for it."""
    if settings.value("experts_everywhere") and Key.PARALLELISM_EP not in settings.chosen:
        spread = (settings.count(Key.PARALLELISM_TP, 1) or 1) * (settings.count("replicas", 1) or 1)
        settings.derive(Key.PARALLELISM_EP, spread, f"{settings.chosen['experts_everywhere'].words}: over all devices")


def requests(settings: Settings) -> None:
    """Take requests as long, and as many at once, as the engine lets through."""
    if settings.value(Key.TASK) != "infer":
        return
    running = settings.count("running")
    together = settings.count("longest_together")
    longest = settings.count("longest") or (together // (running or 1) if together else None)
    if longest:
        _lengths(settings, longest)
    replicas = settings.count("replicas", 1) or 1
    loads = (settings.chosen.get(name) for name in _LOADS)
    kept = next((load for load in loads if load is not None and is_kept(load)), None)
    if running and kept is not None and kept.field != Key.INFERENCE_REQUEST_RATE:
        per_replica = -(-int(str(kept.value)) // (replicas if kept.field == Key.INFERENCE_CONCURRENCY else 1))
        if per_replica != running:
            del settings.chosen[kept.field]
    if running and not any(settings.is_given(name) for name in _LOADS):
        settings.derive(Key.INFERENCE_CONCURRENCY, running * replicas, settings.chosen["running"].words)


def _lengths(settings: Settings, longest: int) -> None:
    """Share the longest context between the prompt and the answer."""
    prompt = settings.count(PROMPT) if settings.is_given(PROMPT) else None
    output = settings.count(OUTPUT) if settings.is_given(OUTPUT) else None
    if prompt and is_kept(settings.chosen[PROMPT]) and prompt + (output or 0) != longest:
        prompt = None
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


def assumed_load(settings: Settings, plan: Plan) -> Iterator[str]:
    """Yield what is assumed of the requests, which no file specifies."""
    lengths = f"requests of {plan.inference.prompt_tokens} + {plan.inference.output_tokens} tokens"
    prompt = settings.chosen.get(PROMPT)
    if prompt is None:
        yield f"{lengths}: no file gives their length"
    elif prompt.level == "derived":
        yield f"{lengths}, the longest that it takes: no file gives their length"
    if not any(name in settings.chosen for name in _LOADS):
        yield "one request at a time: no file gives a number"
