"""Fields of a plan about adapters that follow from several options: their kind, and the format of the frozen base."""

from __future__ import annotations

from dataclasses import replace

from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.settings import Settings

METHOD, BASE = Key.TRAINING_METHOD, Key.TRAINING_QUANTIZATION
_ADAPTER = "training.adapter."
_FOUR_BITS, _EIGHT_BITS = "nf4", "int8"


def adapters(settings: Settings) -> None:
    """Settle the method from its parts; without adapters, their options do not count."""
    method = settings.value(METHOD)
    if method in (None, "full"):
        if METHOD in settings.chosen and settings.value("bits"):
            settings.clash("quantized_without_adapters", "a base in fewer bits is trained with adapters alone",
                           (METHOD, "bits"))  # fmt: skip
        for name in [name for name in settings.chosen if name.startswith(_ADAPTER)]:
            del settings.chosen[name]
        return
    _targets(settings)
    bits = settings.count("bits")
    if bits and BASE not in settings.chosen:
        base = settings.value("format_of_bits", _FOUR_BITS) if bits == 4 else _EIGHT_BITS
        settings.set(BASE, base, settings.chosen["bits"])
    tool = settings.chosen[METHOD].tool
    if settings.value("weight_decomposed"):
        source = settings.chosen["weight_decomposed"]
        settings.chosen[METHOD] = replace(source, field=METHOD, value="dora", text="true", tool=tool, level="said")
    elif method == "lora" and bits == 4:
        settings.chosen[METHOD] = replace(settings.chosen["bits"], field=METHOD, value="qlora", tool=tool, level="said")


def _targets(settings: Settings) -> None:
    """Take modules of attention and the feed-forward together where they are given apart."""
    modules = settings.value("attention_modules")
    if not isinstance(modules, tuple) or _ADAPTER + "targets" in settings.chosen:
        return
    feed_forward = bool(settings.value("feed_forward_modules"))
    if set(modules) == {"q_proj", "v_proj"} and not feed_forward:
        value = "query+value"
    elif not modules:
        value = "mlp"
    else:
        value = "all" if feed_forward else "attention"
    settings.set(_ADAPTER + "targets", value, settings.chosen["attention_modules"])
