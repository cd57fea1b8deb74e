"""Predict trainings and fits of other people's software on this processor blind, then run them.

    python -m benchmarks.real_training            trainings with the Trainer of Transformers
    python -m benchmarks.real_training --fits     classical models with scikit-learn and XGBoost

Needs torch, transformers and accelerate, or scikit-learn and xgboost. Models have random weights, nothing is loaded.
Everything runs on one core in one thread, and what counts is the processor's time of the fastest of some steps: what
an undisturbed core would take. What is predicted is written to FOLDER/predicted.json before anything runs, from the
catalogue alone and from samples; three trainings then calibrate, and all are predicted again.
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

CATALOGUE, SAMPLED, OWN = "catalogue", "samples", "samples and own runs"
STEPS, MIB = 4, 2.0**20
Found = dict[str, tuple[float, float, float]]


def training(model: str, seq_len: int, batch: int, **more: object) -> dict[str, object]:
    """Return the plan of a training."""
    accumulated = int(str(more.pop("accumulated", 1)))
    section = {
        "seq_len": seq_len, "micro_batch": batch, "global_batch": batch * accumulated, "precision": "fp32",
        "optimizer": "adamw", "framework": "transformers", **more,
    }  # fmt: skip
    return {"task": "train", "model": {"name": model}, "training": section, "hardware": {"name": "detected"}}


def images(model: str, batch: int) -> dict[str, object]:
    """Return the plan of a training on images."""
    section = {
        "micro_batch": batch, "global_batch": batch, "precision": "fp32", "optimizer": "adamw",
        "framework": "transformers",
    }  # fmt: skip
    return {"task": "train", "model": {"name": model}, "training": section, "hardware": {"name": "detected"}}


def fit(algorithm: str, **spec: object) -> dict[str, object]:
    """Return the plan of a fit on one core."""
    return {"model": {"name": algorithm, "spec": {"n_jobs": 1, **spec}}, "hardware": {"name": "detected"}}


# Those that calibrate come first.
TRAININGS = {
    "pythia-70m 4 x 256": training("pythia-70m", 256, 4),
    "smollm2-135m 2 x 256, 2 accumulated": training("smollm2-135m", 256, 2, accumulated=2),
    "bert-base 8 x 128": training("bert-base", 128, 8),
    "gpt2-small 1 x 256": training("gpt2-small", 256, 1),
    "gpt2-small 4 x 512": training("gpt2-small", 512, 4),
    "gpt2-small 4 x 512, checkpointed": training("gpt2-small", 512, 4, checkpointing="full"),
    "gpt2-small 2 x 256, bf16": training("gpt2-small", 256, 2, precision="bf16"),
    "pythia-70m 8 x 128, bf16": training("pythia-70m", 128, 8, precision="bf16"),
    "pythia-160m 2 x 512": training("pythia-160m", 512, 2),
    "smollm2-135m 1 x 1024": training("smollm2-135m", 1024, 1),
    "vit-ti-16 16": images("vit-ti-16", 16),
    "resnet-18 16": images("resnet-18", 16),
}
OWN_RUNS = 3
FITS = {
    "LogisticRegression newton-cholesky": fit("logistic_regression_newton", n=200_000, p=100),
    "RandomForestClassifier": fit("random_forest", n=50_000, p=30),
    "KMeans": fit("kmeans", n=200_000, p=20, k=10),
    "PCA": fit("pca_svd", n=200_000, p=100, n_components=20),
    "PCA full": fit("pca_svd", n=200_000, p=100, n_components=20, method="full"),
    "LinearRegression": fit("linear_regression_qr", n=200_000, p=100),
    "XGBClassifier": fit("xgboost_like", n=200_000, p=30),
}


def main() -> None:
    """Predict, measure and compare."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--fits", action="store_true", help="classical models rather than trainings")
    arguments.add_argument("--folder", type=Path, help="where predictions and measurements go")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    one_core()
    if given.one:
        name, plan = given.one, {**TRAININGS, **FITS}[given.one]
        print(json.dumps(fitted(plan) if name in FITS else trained(plan)))
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="real-"))
    if given.fits:
        compare(FITS, folder, "benchmarks.real_training", ("step",))
    else:
        compare(TRAININGS, folder, "benchmarks.real_training", ("step", "MiB"), OWN_RUNS)


def one_core() -> None:
    """Keep this process and what it starts on one core and one thread."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ.update({"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"})


def compare(
    plans: dict[str, dict[str, object]], folder: Path, module: str, figures: tuple[str, ...], user_runs: int = 0
) -> None:
    """Predict plans, run each as ``python -m module --one NAME``, and print both with what own runs change."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["CAPACITY_TUI_DATA"] = str(folder / "data")
    guesses = {CATALOGUE: predictions(plans)}
    program("sample", "kernels", "--quick", "--device", "cpu")
    program("calibrate", "--device", "cpu")
    guesses[SAMPLED] = predictions(plans)
    (folder / "predicted.json").write_text(json.dumps(guesses, indent=1))
    measured: dict[str, dict[str, float]] = {}
    for name in plans:
        command = [sys.executable, "-m", module, "--one", name]
        told = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if told.returncode:
            print(f"{name}: ended with {told.returncode}", flush=True)
            continue
        measured[name] = json.loads(told.stdout.splitlines()[-1])
        print(name, measured[name], flush=True)
        (folder / "measured.json").write_text(json.dumps(measured, indent=1))
    for name in list(measured)[:user_runs]:
        path = folder / "plan.yaml"
        path.write_text(json.dumps(plans[name]))
        seconds, peak = measured[name]["step"], measured[name]["MiB"] / 1024.0
        program("calibrate", "--plan", str(path), "--step-seconds", str(seconds), "--peak-gib", str(peak))
    if user_runs:
        guesses[OWN] = predictions(plans)
    (folder / "predicted.json").write_text(json.dumps(guesses, indent=1))
    for figure in figures:
        report(figure, guesses, measured, list(plans)[:user_runs])


def program(*words: str) -> None:
    """Run a command of the program."""
    subprocess.run([sys.executable, "-m", "capacity_tui.tui", *words], check=True, stdout=sys.stderr)


def predictions(plans: dict[str, dict[str, object]]) -> dict[str, Found]:
    """Return value, low and high of each figure of each plan, in a process that knows what was just learnt."""
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.plan.files import plan_from_data
    from capacity_tui.engine.solve import answer

    machine, found = detect(), {}
    for name, plan in plans.items():
        estimate = answer(plan_from_data(plan), machine).estimate
        speed = estimate.computation.infer
        ranged = {"step": estimate.computation.step_seconds}
        if speed is not None:
            ranged = {"ttft": speed.time_to_first_token_seconds, "tpot": speed.time_per_output_token_seconds}
        figures = {key: (float(each.value), float(each.low), float(each.high)) for key, each in ranged.items() if each}
        held = estimate.memory.reserved_bytes
        figures["MiB"] = (float(held.value) / MIB, float(held.low) / MIB, float(held.high) / MIB)
        found[name] = figures
    return found


def report(
    figure: str, guesses: dict[str, dict[str, Found]], measured: dict[str, dict[str, float]], own: list[str]
) -> None:
    """Print a table of one figure, and how many of the runs nothing was learnt from lie in their ranges."""
    print(f"\n| {figure} | measured | {' | '.join(guesses)} |\n|---|---:|{'---|' * len(guesses)}")
    errors: dict[str, list[tuple[float, bool]]] = {source: [] for source in guesses}
    for name, truth in measured.items():
        cells = []
        for source, found in guesses.items():
            value, low, high = found[name][figure]
            error, held = value / truth[figure] - 1.0, low <= truth[figure] <= high
            cells.append(f"{value:.3g} ({low:.3g}-{high:.3g}) {error:+.0%}{'' if held else ' out'}")
            if name not in own:
                errors[source].append((abs(error), held))
        print(f"| {name}{' *' if name in own else ''} | {truth[figure]:.3g} | {' | '.join(cells)} |")
    for source, each in errors.items():
        inside = sum(held for _, held in each)
        print(f"{source}: {inside} of {len(each)} in range, median error {median(error for error, _ in each):.0%}")


def trained(plan: dict) -> dict[str, float]:
    """Train with the Trainer of Transformers, and return the fastest step's seconds and the process's peak."""
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    torch.set_num_threads(1)
    torch.manual_seed(0)
    section, name = plan["training"], plan["model"]["name"]
    model, sample = network(name, section)
    seconds: list[float] = []

    class Timed(TrainerCallback):
        def on_step_begin(self, *_, **__):
            seconds.append(-time.process_time())

        def on_step_end(self, *_, **__):
            seconds[-1] += time.process_time()

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return 1000

        def __getitem__(self, index):
            return sample(index)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=STEPS, per_device_train_batch_size=section["micro_batch"],
            gradient_accumulation_steps=section["global_batch"] // section["micro_batch"], report_to=[], use_cpu=True,
            bf16=section["precision"] == "bf16", gradient_checkpointing=section.get("checkpointing") == "full",
            save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        Trainer(model, arguments, train_dataset=Samples(), callbacks=[Timed()]).train()
    return {"step": min(seconds[1:]), "MiB": peak_mib()}


def peak_mib() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def language_model(name: str):
    """Return a model of Transformers with random weights."""
    import transformers as hub

    makes = {
        "gpt2-small": lambda: hub.GPT2LMHeadModel(hub.GPT2Config()),
        "pythia-70m": lambda: hub.GPTNeoXForCausalLM(
            hub.GPTNeoXConfig(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048,
                              vocab_size=50304)),
        "pythia-160m": lambda: hub.GPTNeoXForCausalLM(
            hub.GPTNeoXConfig(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                              vocab_size=50304)),
        "smollm2-135m": lambda: hub.LlamaForCausalLM(
            hub.LlamaConfig(hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
                            intermediate_size=1536, vocab_size=49152, tie_word_embeddings=True)),
    }  # fmt: skip
    return makes[name]()


def network(name: str, section: dict):
    """Return a model with random weights, and what makes a sample of its data."""
    import torch
    import transformers as hub

    def generator(index: int) -> torch.Generator:
        return torch.Generator().manual_seed(index)

    def picture(index: int) -> dict:
        return {"pixel_values": torch.randn(3, 224, 224, generator=generator(index)), "labels": index % 1000}

    def tokens(index: int) -> dict:
        drawn = torch.randint(30000, (section["seq_len"],), generator=generator(index))
        return {"input_ids": drawn, "labels": drawn.clone()}

    if name == "vit-ti-16":
        config = hub.ViTConfig(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768,
                               num_labels=1000)  # fmt: skip
        return hub.ViTForImageClassification(config), picture
    if name == "resnet-18":
        config = hub.ResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512],
                                  num_labels=1000)  # fmt: skip
        return hub.ResNetForImageClassification(config), picture
    if name == "bert-base":
        return hub.BertForMaskedLM(hub.BertConfig()), tokens
    return language_model(name), tokens


def fitted(plan: dict) -> dict[str, float]:
    """Fit random data three times, and return the fastest's seconds."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from xgboost import XGBClassifier

    name, spec = plan["model"]["name"], plan["model"]["spec"]
    generator = np.random.default_rng(0)
    data = generator.standard_normal((spec["n"], spec["p"]))
    score = data @ generator.standard_normal(spec["p"]) + 3.0 * generator.standard_normal(spec["n"])
    labels = (score > 0).astype(int)
    makes = {
        "logistic_regression_newton": lambda: LogisticRegression(solver="newton-cholesky"),
        "random_forest": lambda: RandomForestClassifier(n_jobs=1, random_state=0),
        "kmeans": lambda: KMeans(n_clusters=spec["k"], random_state=0),
        "pca_svd": lambda: PCA(n_components=spec["n_components"], svd_solver=spec.get("method", "auto")),
        "linear_regression_qr": LinearRegression,
        "xgboost_like": lambda: XGBClassifier(n_jobs=1, tree_method="hist"),
    }
    targets = score if name == "linear_regression_qr" else labels
    times = []
    for _ in range(2 if name == "random_forest" else 3):
        begun = time.process_time()
        makes[name]().fit(data, targets)
        times.append(time.process_time() - begun)
    return {"step": min(times), "MiB": peak_mib()}


if __name__ == "__main__":
    main()
