"""Fields of a plan about adapters that follow from several options: their kind, and the format of the frozen base."""

from __future__ import annotations

from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.said import Said
from capacity_tui.engine.plan.imports.settings import Settings

METHOD, BASE = Key.TRAINING_METHOD, Key.TRAINING_QUANTIZATION
_ADAPTER = "training.adapter."
_FOUR_BITS, _EIGHT_BITS = "nf4", "int8"


def adapters(settings: Settings) -> None:
    """Settle the method from its parts; without adapters, what is said of them does not count."""
    method = settings.value(METHOD)
    if method in (None, "full"):
        if METHOD in settings.said and settings.value("bits"):
            settings.clash("quantized_without_adapters", "a base in fewer bits is trained with adapters alone",
                           (METHOD, "bits"))  # fmt: skip
        for name in [name for name in settings.said if name.startswith(_ADAPTER)]:
            del settings.said[name]
        return
    _targets(settings)
    bits = settings.count("bits")
    if bits and BASE not in settings.said:
        found = settings.said["bits"]
        base = settings.value("format_of_bits", _FOUR_BITS) if bits == 4 else _EIGHT_BITS
        settings.said[BASE] = Said(BASE, base, found.place, found.text, found.tool)
    found = settings.said[METHOD]
    if settings.value("weight_decomposed"):
        settings.said[METHOD] = Said(METHOD, "dora", settings.said["weight_decomposed"].place, "true", found.tool)
    elif method == "lora" and bits == 4:
        settings.said[METHOD] = Said(
            METHOD, "qlora", settings.said["bits"].place, settings.said["bits"].text, found.tool
        )


def _targets(settings: Settings) -> None:
    """Take modules of attention and the feed-forward together where they are given apart."""
    modules = settings.value("attention_modules")
    if not isinstance(modules, tuple) or _ADAPTER + "targets" in settings.said:
        return
    found = settings.said["attention_modules"]
    feed_forward = bool(settings.value("feed_forward_modules"))
    if set(modules) == {"q_proj", "v_proj"} and not feed_forward:
        value = "query+value"
    elif not modules:
        value = "mlp"
    else:
        value = "all" if feed_forward else "attention"
    settings.said[_ADAPTER + "targets"] = Said(_ADAPTER + "targets", value, found.place, found.text, found.tool)
