"""Predict prefill and decode of a small Llama on this CPU from samples alone, then generate with transformers.

Prints predicted and measured time to first token and time per output token. Needs ``torch`` and ``transformers``.
Everything runs on one core; the processor time of the same work is what an undisturbed core would take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

TARGETS = {"time to first token": 0.18, "time per output token": 0.12}
SIZES = {"layers": 8, "hidden": 512, "heads": 8, "kv_heads": 4, "head_dim": 64, "ffn": 1408, "vocab": 16000}
PROMPT, OUTPUT = 256, 32
BATCHES = (1, 4)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["OMP_NUM_THREADS"] = "1"
    if given.serve:
        print(json.dumps(served(given.serve, given.repeats)))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAPACITY_TUI_DATA"] = folder
        guesses = {"catalogue alone": predictions()}
        program("sample", "kernels", "--quick", "--device", "cpu")
        program("calibrate", "--device", "cpu")
        guesses["samples"] = predictions()
    measured = {batch: measure(batch, given.repeats) for batch in BATCHES}
    for name, guess in guesses.items():
        print(f"\n{name}: {guess[BATCHES[0]]['calibration']}")
        for batch in BATCHES:
            report(batch, guess[batch]["figures"], measured[batch])


def program(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "capacity_tui.tui", *words], check=True, stderr=subprocess.DEVNULL)


def predictions() -> dict[int, dict]:
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.plan.files import plan_from_data
    from capacity_tui.engine.solve import answer

    machine = detect()
    found = {}
    for batch in BATCHES:
        estimate = answer(plan_from_data(plan(batch)), machine).estimate
        speed = estimate.computation.infer
        figures = {
            "time to first token": speed.time_to_first_token_seconds,
            "time per output token": speed.time_per_output_token_seconds,
        }
        found[batch] = {
            "calibration": estimate.basis.calibration,
            "figures": {name: (float(each.value), float(each.low), float(each.high)) for name, each in figures.items()},
        }
    return found


def plan(batch: int) -> dict[str, object]:
    return {
        "task": "infer",
        "model": {"name": "transformer_decoder", "spec": {**SIZES, "gated": True, "tied_embeddings": False}},
        "inference": {
            "prompt_tokens": PROMPT, "output_tokens": OUTPUT, "batch": batch, "weights": "fp32", "kv_cache": "fp32",
            "engine": "transformers",
        },
        "hardware": {"name": "detected"},
    }  # fmt: skip


def measure(batch: int, repeats: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--serve", str(batch), "--repeats", str(repeats)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(told.splitlines()[-1])


def report(batch: int, figures: dict[str, tuple[float, float, float]], measured: dict[str, float]) -> None:
    for name, (value, low, high) in figures.items():
        for clock in ("wall", "processor"):
            truth = measured[f"{name}, {clock}"]
            error = value / truth - 1
            held = "inside" if low <= truth <= high else "outside"
            print(
                f"  batch {batch}, {name:22s} predicted {1e3 * value:8.1f} ms ({1e3 * low:.1f}-{1e3 * high:.1f})  "
                f"{clock} {1e3 * truth:8.1f} ms  error {error:+6.1%}, {held}; target {TARGETS[name]:.0%}"
            )


def served(batch: int, repeats: int) -> dict[str, float]:
    """Generate with random weights, and return the median seconds of a prompt and of a further token."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=SIZES["hidden"], intermediate_size=SIZES["ffn"], num_hidden_layers=SIZES["layers"],
        num_attention_heads=SIZES["heads"], num_key_value_heads=SIZES["kv_heads"], vocab_size=SIZES["vocab"],
        tie_word_embeddings=False, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    prompt = torch.randint(SIZES["vocab"], (batch, PROMPT))

    def seconds(tokens: int) -> dict[str, float]:
        wall, busy = time.perf_counter(), time.process_time()
        model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
        return {"wall": time.perf_counter() - wall, "processor": time.process_time() - busy}

    seconds(2)
    found = {}
    for clock in ("wall", "processor"):
        first = median(seconds(1)[clock] for _ in range(repeats))
        whole = median(seconds(OUTPUT)[clock] for _ in range(repeats))
        found[f"time to first token, {clock}"] = first
        found[f"time per output token, {clock}"] = (whole - first) / (OUTPUT - 1)
    return found


if __name__ == "__main__":
    main()
