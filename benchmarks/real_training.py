"""Predict a real training run of a small GPT on this CPU from samples alone, then run it.

Prints predicted and measured step time and peak memory. Needs the extra ``torch``. Everything runs on one core, so
that other work on the machine disturbs it less; what the samples say is kept in a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

STEP_TARGET, MEMORY_TARGET = 0.15, 0.10
HIDDEN, HEADS, VOCAB = 384, 6, 8192
LARGE = {"layers": 8, "seq_len": 256, "micro_batch": 4}
# Predicted figure, measured figure, unit and target. On a shared core the wall clock counts other work too; the time
# the core spent on the training alone (cpu_step) is what an undisturbed core would take.
COMPARED = (
    ("step", "step", 1.0, STEP_TARGET),
    ("step", "cpu_step", 1.0, STEP_TARGET),
    ("bytes", "bytes", 2**-20, MEMORY_TARGET),
)
# A run of another size that calibrates what kernels alone do not tell.
SMALL = {"layers": 4, "seq_len": 128, "micro_batch": 6}


def plan(layers: int, seq_len: int, micro_batch: int) -> dict[str, object]:
    return {
        "task": "train",
        "model": {
            "name": "transformer_decoder",
            "spec": {
                "layers": layers, "hidden": HIDDEN, "heads": HEADS, "kv_heads": HEADS, "head_dim": HIDDEN // HEADS,
                "ffn": 4 * HIDDEN, "gated": False, "vocab": VOCAB, "tied_embeddings": True,
            },
        },
        "training": {
            "seq_len": seq_len, "micro_batch": micro_batch, "global_batch": micro_batch, "precision": "fp32",
            "optimizer": "adamw", "attention": "sdpa",
        },
        "hardware": {"name": "detected"},
    }  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=12)
    arguments.add_argument("--train", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["OMP_NUM_THREADS"] = "1"
    if given.train:
        train(given.steps, **json.loads(given.train))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAPACITY_TUI_DATA"] = folder
        guesses = {"catalogue alone": predict()}
        started = time.perf_counter()
        program("sample", "kernels", "--quick", "--device", "cpu")
        program("calibrate", "--device", "cpu")
        print(f"{time.perf_counter() - started:.0f} s of sampling")
        guesses["samples"] = predict()
        small = trained(given.steps, SMALL)
        path = Path(folder) / "small.yaml"
        path.write_text(json.dumps(plan(**SMALL)))
        program("calibrate", "--plan", str(path), "--step-seconds", str(small["cpu_step"]), "--peak-gib",
                str(small["bytes"] / 2**30))  # fmt: skip
        guesses["samples and a smaller run"] = predict()
    report(guesses, trained(given.steps, LARGE))


def program(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "capacity_tui.tui", *words], check=True, stderr=subprocess.DEVNULL)


def trained(steps: int, size: dict[str, int]) -> dict[str, float]:
    command = [sys.executable, __file__, "--steps", str(steps), "--train", json.dumps(size)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(told.splitlines()[-1])


def predict() -> dict[str, object]:
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.plan.files import plan_from_data
    from capacity_tui.engine.solve import answer

    estimate = answer(plan_from_data(plan(**LARGE)), detect()).estimate
    return {
        "step": estimate.computation.step_seconds.value,
        "bytes": estimate.memory.reserved_bytes.value,
        "parts": {name: float(value) for name, value in estimate.computation.parts.items()},
        "memory": {name: float(value) / 2**20 for name, value in estimate.memory.parts.items()},
        "calibration": estimate.basis.calibration,
        "assumed": estimate.basis.assumed,
    }


def report(guesses: dict[str, dict], measured: dict[str, float]) -> None:
    print(f"measured: {json.dumps(measured)}")
    for name, guess in guesses.items():
        print(f"\n{name}: {guess['calibration']}; assumed: {'; '.join(guess['assumed']) or 'nothing'}")
        print("  parts, ms:", {part: round(1e3 * each, 1) for part, each in guess["parts"].items() if each})
        print("  memory, MiB:", {part: round(each) for part, each in guess["memory"].items() if each})
        for figure, truth, unit, target in COMPARED:
            error = guess[figure] / measured[truth] - 1
            print(
                f"  {truth:9s} predicted {guess[figure] * unit:9.3f}  measured {measured[truth] * unit:9.3f}  "
                f"error {error:+6.1%}  target {target:.0%}: {'met' if abs(error) <= target else 'missed'}"
            )


def train(steps: int, layers: int, seq_len: int, micro_batch: int) -> None:
    """Train on random tokens and print the median step and the peak of the process's memory."""
    import torch

    torch.manual_seed(0)
    model = gpt(torch, layers, seq_len)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-4)
    wall, busy = [], []
    for _ in range(steps):
        tokens = torch.randint(VOCAB, (micro_batch, seq_len + 1))
        start, used = time.perf_counter(), time.process_time()
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
        loss.backward()
        adamw.step()
        adamw.zero_grad()
        wall.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    parameters = sum(each.numel() for each in model.parameters())
    result = {"step": median(wall[2:]), "cpu_step": median(busy[2:]), "bytes": peak, "parameters": parameters}
    print(json.dumps(result))


def gpt(torch, layers: int, seq_len: int):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
            self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
            self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

        def forward(self, x):
            batch, length, _ = x.shape
            heads = self.qkv(self.first(x)).reshape(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, HIDDEN))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCAB, HIDDEN)
            self.places = nn.Embedding(seq_len, HIDDEN)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(HIDDEN)
            self.head = nn.Linear(HIDDEN, VOCAB, bias=False)
            self.head.weight = self.tokens.weight
            # As GPT-2 begins. With torch's own embeddings, which deviate by 1, gradients of tied logits fall below the
            # smallest normal number, and a processor's products of such numbers take many times as long.
            for module in (self.tokens, self.places, *(each for each in self.modules() if isinstance(each, nn.Linear))):
                nn.init.normal_(module.weight, std=0.02)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places.weight
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Gpt()


if __name__ == "__main__":
    main()
