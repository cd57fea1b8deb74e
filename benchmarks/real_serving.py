"""Predict generation with Transformers on this processor blind, then generate.

    python -m benchmarks.real_serving

Needs torch and transformers. As ``real_training``: one core, one thread, the processor's time, random weights.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks.real_training import compare, language_model, one_core, peak_mib

OUTPUT, REPEATS = 32, 3


def generation(model: str, batch: int, prompt: int) -> dict[str, object]:
    """Return the plan of generating for a batch."""
    section = {
        "prompt_tokens": prompt, "output_tokens": OUTPUT, "batch": batch, "weights": "fp32", "kv_cache": "fp32",
        "engine": "transformers",
    }  # fmt: skip
    return {"task": "infer", "model": {"name": model}, "inference": section, "hardware": {"name": "detected"}}


GENERATIONS = {
    f"{model} {batch} x {prompt}": generation(model, batch, prompt)
    for model, batch, prompt in (
        ("gpt2-small", 1, 64), ("gpt2-small", 1, 512), ("gpt2-small", 4, 512), ("smollm2-135m", 1, 512),
        ("smollm2-135m", 4, 64), ("smollm2-135m", 4, 512), ("pythia-160m", 1, 64),
    )
}  # fmt: skip


def main() -> None:
    """Predict, generate and compare."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--folder", type=Path, help="where predictions and measurements go")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    one_core()
    if given.one:
        print(json.dumps(generated(GENERATIONS[given.one])))
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="real-"))
    compare(GENERATIONS, folder, "benchmarks.real_serving", ("ttft", "tpot", "MiB"))


def generated(plan: dict) -> dict[str, float]:
    """Return the seconds of a prompt and of a further token, the fastest of some, and the process's peak."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    section = plan["inference"]
    model = language_model(plan["model"]["name"]).eval()
    model.generation_config.eos_token_id = None
    prompt = torch.randint(30000, (section["batch"], section["prompt_tokens"]))

    def seconds(tokens: int) -> float:
        begun = time.process_time()
        model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
        return time.process_time() - begun

    seconds(2)
    first = min(seconds(1) for _ in range(REPEATS))
    whole = min(seconds(OUTPUT) for _ in range(REPEATS))
    return {"ttft": first, "tpot": (whole - first) / (OUTPUT - 1), "MiB": peak_mib()}


if __name__ == "__main__":
    main()
