"""Questions of searches for tests, each of another kind: how spaces are made, what excludes, what is compared."""

from __future__ import annotations

from capacity_tui.engine.solve.search import Question
from capacity_tui.engine.solve.search.question import Goal, Limit
from capacity_tui.engine.solve.space import Axis
from tests.plans import SERVING, TRAINING, plan_of

TIME, MONEY = "computation.estimated_train_time_seconds", "cost.usd"
SMALL = {"model.name": "llama-3.2-1b", "hardware.devices": 8, "training.tokens": 1e9}


def axis(path: str, *values: object) -> Axis:
    return Axis(path, values)


def questions() -> dict[str, Question]:
    """Return the questions by what is particular about them."""
    trained, open_length = plan_of(TRAINING, SMALL), plan_of(TRAINING, {**SMALL, "training.tokens": None})
    left_open = plan_of(TRAINING, {**SMALL, "parallelism.zero": "auto", "training.micro_batch": "auto"})
    served = plan_of(SERVING, {"model.name": "llama-3.1-8b"})
    network = plan_of({"model.name": "mlp", "hardware.name": "l4", "hardware.devices": 1})
    many = (axis("training.optimizer", "adamw", "muon"), axis("training.checkpointing", "none", "full"),
            axis("training.attention", "flash", "eager"), axis("parallelism.tp", 1, 2, 3),
            axis("parallelism.pp", 1, 2))  # fmt: skip
    devices = ("h100-sxm-80gb", "l4", "a100-sxm-80gb")
    return {
        "unlike settings, a front of three": Question(
            trained, many, devices[:2], (4, 8), pareto=(TIME, MONEY, "memory.reserved_bytes"), top=4, per_kind=2
        ),
        "limits and several models": Question(
            open_length,
            (axis("training.micro_batch", 1, 2, 4),),
            models=("llama-3.2-1b", "qwen-2.5-0.5b", "llama-3.1-70b"),
            limits=(Limit("memory.utilization_percent", most=90.0), Limit("computation.step_seconds", most=3.0)),
            top=3,
        ),
        "what the plan leaves open": Question(left_open, hardware=devices[:2], devices=(4, 8), top=5),
        "served": Question(
            served,
            (
                axis("inference.batch", 1, 8, 64),
                axis("inference.weights", "bf16", "fp8", "int8"),
                axis("parallelism.tp", 1, 2),
            ),
            ("h100-sxm-80gb", "l4"),
            (1, 2),
            goal=Goal("computation.tokens_per_second", "more"),
            pareto=("computation.tokens_per_second", "memory.reserved_bytes"),
        ),
        "each by itself": Question(network, (axis("training.global_batch", 32, 64, 128, 256),), devices, top=2),
        "ties": Question(trained, (axis("training.document_tokens", 8192, 8193, 8194, 8195),), devices, (8,), top=2),
        "nothing can be": Question(trained, (axis("parallelism.tp", 3, 5),), devices, (8,)),
    }
