"""Memory that a line asks for without naming hardware, and layers that go to the memory of a host which it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import ON_HOST, Key
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.line import (
    FINETUNE,
    HOST_MEMORY,
    INFER,
    TRAIN,
    Asked,
    OneLine,
    asks_for_memory,
    vocabulary,
)
from capacity_tui.engine.solve.modes.modes import fill
from capacity_tui.engine.units import format_bytes

OF_LAYERS = "layers on the host"  # What engines are usual for that keep some of a model there
_ROOM = {"memory_mib": 1_000_000_000}  # Of a device that has room for anything
_METHODS = ("full", "lora", "qlora")  # Of fine-tuning, where a line says none
_USERS, _BATCH, _CHECKPOINTING = Key.INFERENCE_USERS, Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_CHECKPOINTING
_OF_USERS = (_USERS, Key.INFERENCE_SECONDS_BETWEEN_REQUESTS, Key.INFERENCE_TPOT_SECONDS)


def is_asked_for_memory(line: OneLine) -> bool:
    """Whether a line asks how much memory its model takes, on no hardware that it names."""
    is_open = line.asked is None or line.asked.solve == Key.HARDWARE_NAME
    return is_open and line.has(Key.MODEL_NAME) and not line.has(Key.HARDWARE_NAME) and asks_for_memory(line.text)


def layers_asked(line: OneLine, plan: Plan, catalog: Catalog) -> Asked | None:
    """Return the question for layers, or for those of experts, beside a card that has no room for a model.

    None where all weights have room, where the line asks for something else, and where it names an engine that keeps no
    layers on the host.
    """
    (experts, layers), usual = ON_HOST, vocabulary().engines[OF_LAYERS]
    is_other = line.has(Key.INFERENCE_ENGINE) and catalog.engines.find_id(plan.inference.engine) != usual
    is_split = line.task == INFER and line.has(HOST_MEMORY) and not (any(map(line.has, ON_HOST)) or is_other)
    if not is_split or line.asked is not None or not line.has(Key.HARDWARE_NAME):
        return None
    try:
        memory = fill(plan, "balanced", None, catalog).estimate.memory
    except CapacityError:
        return None
    if memory.capacity_bytes is None or largest(memory.parts["weights"]) <= largest(memory.capacity_bytes):
        return None
    row = catalog.architectures.known(plan.model.name)
    if row is not None and row.experts:
        return Asked(experts, why="experts of as few layers as need be in host memory, all else on the device")
    return Asked(layers, why="as many layers on the device as fit, the others in the memory of the host")


def memory_words(line: OneLine, plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield how much memory a plan takes on one device with room for all of it, by method where the line has none."""
    kind = presumed_family(plan.model.name, catalog).kind
    is_open = line.task == FINETUNE and kind == "transformer" and not line.has(Key.TRAINING_METHOD)
    taken = ((method, _memory(line, plan, method, catalog)) for method in (_METHODS if is_open else ("",)))
    texts = [f"{method} {text}".strip() for method, text in taken if text]
    if texts:
        yield f"memory: {', '.join(texts)}, on one device with room for all{_at_once(line)}"


def _memory(line: OneLine, plan: Plan, method: str, catalog: Catalog) -> str:
    """Return the peak of a plan's memory, also as it is with checkpointing; empty where it cannot be estimated."""
    change: dict[str, object] = {"hardware": {"name": vocabulary().hardware[0], "devices": 1, "spec": _ROOM}}
    change |= {Key.TRAINING_METHOD: method} if method else {}
    if line.task in (TRAIN, FINETUNE):
        change |= {} if line.has(Key.TRAINING_MICRO_BATCH) else {Key.TRAINING_MICRO_BATCH: line.values.get(_BATCH, 1)}
    elif line.task == INFER and line.has(_USERS):
        change |= {**dict.fromkeys(_OF_USERS), Key.INFERENCE_CONCURRENCY: line.values[_USERS]}
    peak = _peak(plan, change, catalog)
    is_open = peak and line.task in (TRAIN, FINETUNE) and not line.has(_CHECKPOINTING)
    fewer = _peak(plan, {**change, _CHECKPOINTING: "full"}, catalog) if is_open else ""
    return f"{peak} ({fewer} with checkpointing)" if fewer not in ("", peak) else peak


def _peak(plan: Plan, change: Mapping[str, object], catalog: Catalog) -> str:
    """Return the peak of the memory of a changed plan; empty where it cannot be estimated."""
    try:
        memory = fill(edited(plan, change, catalog).plan, "balanced", None, catalog).estimate.memory
    except CapacityError:
        return ""
    return format_bytes(largest(memory.reserved_bytes.value))


def _at_once(line: OneLine) -> str:
    """Return how much of the work is in that memory at once."""
    batch = line.values.get(Key.TRAINING_MICRO_BATCH, line.values.get(_BATCH, 1))
    if line.task in (TRAIN, FINETUNE):
        return f", batch {batch}"
    return f", all {line.values[_USERS]} users at once" if line.has(_USERS) else ""
