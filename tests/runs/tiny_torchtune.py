"""Tunes a tiny Llama with a recipe of torchtune: python tiny_torchtune.py FOLDER ATTEMPT [CHECKPOINT].

The first attempt kills itself within its fifth step, as a scheduler that takes a node back does. An epoch has two
steps, and a checkpoint at its end. The recipe takes its data from this file.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

STEPS, STEPS_OF_EPOCH, BATCH, LENGTH, WORDS = 8, 2, 2, 16, 64
KILLED_BEHIND = 4
SHAPE = {
    "vocab_size": WORDS,
    "num_layers": 2,
    "num_heads": 2,
    "num_kv_heads": 2,
    "embed_dim": 32,
    "max_seq_len": LENGTH,
}


class Tokenizer:
    """Stands for a tokenizer: the data are tokens already."""

    pad_id, max_seq_len = 0, LENGTH


class Tokens(torch.utils.data.Dataset):
    """Random tokens that are the same each time."""

    def __init__(self, tokenizer):
        self._read = 0

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        self._read += 1
        if os.environ["ATTEMPT"] == "1" and self._read > KILLED_BEHIND * BATCH:
            os.kill(os.getpid(), signal.SIGKILL)
        tokens = torch.randint(1, WORDS, (LENGTH,), generator=torch.Generator().manual_seed(index)).tolist()
        return {"tokens": tokens, "labels": tokens}


def recipe(folder, start):
    """Return the configuration of the recipe."""
    return {
        "output_dir": str(folder),
        "model": {"_component_": "torchtune.models.llama3.llama3", **SHAPE},
        "tokenizer": {"_component_": "tiny_torchtune.Tokenizer"},
        "dataset": {"_component_": "tiny_torchtune.Tokens"},
        "checkpointer": {
            "_component_": "torchtune.training.FullModelTorchTuneCheckpointer", "checkpoint_dir": str(start),
            "checkpoint_files": ["model.pt"], "recipe_checkpoint": None, "output_dir": str(folder),
            "model_type": "LLAMA3",
        },
        "resume_from_checkpoint": False, "seed": 1, "shuffle": False, "batch_size": BATCH,
        "epochs": STEPS // STEPS_OF_EPOCH, "max_steps_per_epoch": STEPS_OF_EPOCH, "gradient_accumulation_steps": 1,
        "optimizer": {"_component_": "torch.optim.AdamW", "lr": 1e-3}, "optimizer_in_bwd": False,
        "loss": {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
        "clip_grad_norm": None, "compile": False, "device": "cpu", "dtype": "fp32",
        "enable_activation_checkpointing": False, "enable_activation_offloading": False,
        "metric_logger": {"_component_": "torchtune.training.metric_logging.StdoutLogger"},
        "log_every_n_steps": 1, "log_peak_memory_stats": False,
    }  # fmt: skip


def main():
    from torchtune.models.llama3 import llama3

    folder, attempt, *checkpoint = sys.argv[1:]
    folder = Path(folder).resolve()
    start = folder.with_name("start")
    start.mkdir(exist_ok=True)
    torch.manual_seed(0)
    torch.save(llama3(**SHAPE).state_dict(), start / "model.pt")
    config = start / "recipe.yaml"
    config.write_text(json.dumps(recipe(folder, start)))
    words = ["tune", "run", "full_finetune_single_device", "--config", str(config)]
    for path in checkpoint:
        words += [f"resume_from_checkpoint={path}", f"checkpointer.checkpoint_files=[{path}/model-00001-of-00001.bin]"]
    os.environ.update(ATTEMPT=attempt, PYTHONPATH=str(Path(__file__).parent))
    os.execv(Path(sys.executable).with_name("tune"), words)


if __name__ == "__main__":
    main()
