"""Contradictions between options of other tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.setting import LEVELS
from capacity_tui.engine.plan.imports.settings import FRAMEWORK, Settings

_ZERO, _PP, _OFFLOAD = Key.PARALLELISM_ZERO, Key.PARALLELISM_PP, Key.PARALLELISM_OFFLOAD
_CHECKPOINTING, _TOKENS = Key.TRAINING_CHECKPOINTING, Key.INFERENCE_MAX_NUM_BATCHED_TOKENS


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Options that cannot go together.

    Attributes:
        rule: stable name.
        words: what is wrong.
        names: fields and quantities that show it.
        holds: whether settings are so.
    """

    rule: str
    words: str
    names: tuple[str, ...]
    holds: Callable[[Settings], bool]


def _above(settings: Settings, name: str, than: str) -> bool:
    """Whether one number that is given lies above another."""
    if not (settings.is_given(name) and settings.is_given(than)):
        return False
    return (settings.count(name) or 0) > (settings.count(than) or 0)


def _deepspeed(settings: Settings) -> bool:
    return settings.value(FRAMEWORK) == "deepspeed"


def _stage(settings: Settings) -> int:
    return settings.count(_ZERO, 0) or 0


CONTRADICTIONS = (
    Contradiction(
        "sharding_with_stages",
        "DeepSpeed runs pipeline stages with ZeRO 0 and 1 alone",
        (_ZERO, _PP),
        lambda settings: _deepspeed(settings) and _stage(settings) >= 2 and (settings.count(_PP, 1) or 1) > 1,
    ),
    Contradiction(
        "offload_without_sharding",
        "DeepSpeed offloads the optimizer with ZeRO 1 and up, parameters with ZeRO 3 alone",
        (_OFFLOAD, _ZERO),
        lambda settings: (
            _deepspeed(settings)
            and _stage(settings) < {"optimizer": 1, "parameters": 3}.get(str(settings.value(_OFFLOAD)), 0)
        ),
    ),
    Contradiction(
        "recomputation_off",
        "how layers are recomputed is set, but recomputation is off",
        ("how_recomputed", _CHECKPOINTING),
        lambda settings: bool(settings.value("how_recomputed")) and settings.value(_CHECKPOINTING, "none") == "none",
    ),
    Contradiction(
        "tokens_below_requests",
        "a pass takes fewer tokens than requests run at once",
        (_TOKENS, "running"),
        lambda settings: _above(settings, "running", _TOKENS),
    ),
    Contradiction(
        "beyond_positions",
        "sequences are longer than the positions of the model",
        (Key.TRAINING_SEQ_LEN, "shape.max_context"),
        lambda settings: _above(settings, Key.TRAINING_SEQ_LEN, "shape.max_context"),
    ),
    Contradiction(
        "heads_of_width",
        "the attention heads do not divide the width of the model",
        ("shape.heads", "shape.hidden"),
        lambda settings: (
            settings.is_given("shape.heads")
            and "shape.head_dim" not in settings.chosen
            and bool((settings.count("shape.hidden", 0) or 0) % (settings.count("shape.heads", 1) or 1))
        ),
    ),
    Contradiction(
        "chunks_without_stages",
        "pieces of stages take turns, but there is one stage",
        ("chunk_layers", _PP),
        lambda settings: bool(settings.value("chunk_layers")) and (settings.count(_PP, 1) or 1) == 1,
    ),
    Contradiction(
        "adapter_without_method",
        "options of adapters are set, but all weights are trained",
        (Key.TRAINING_METHOD, Key.TRAINING_ADAPTER_RANK),
        lambda settings: (
            settings.value(Key.TRAINING_METHOD) in (None, "full")
            and any(entry.level == LEVELS[1] for entry in settings.all.get(Key.TRAINING_ADAPTER_RANK, ())[:1])
        ),
    ),
)


def find_contradictions(settings: Settings) -> None:
    """Add the contradictions that hold to the settings."""
    for contradiction in CONTRADICTIONS:
        if contradiction.holds(settings):
            settings.clash(contradiction.rule, contradiction.words, contradiction.names)
