"""Tunes a tiny Llama with Axolotl: python tiny_axolotl.py FOLDER ATTEMPT [CHECKPOINT].

The first attempt kills itself behind its fifth step, as a scheduler that takes a node back does. Axolotl takes that
from this file, as a plug-in.
"""

import json
import os
import signal
import sys
from pathlib import Path

from axolotl.integrations.base import BasePlugin
from transformers import TrainerCallback

STEPS, KILLED_BEHIND, SAVED_EVERY = 8, 5, 2


class Killed(TrainerCallback):
    """Ends the first attempt."""

    def on_step_end(self, args, state, control, **_):
        """Kill the process behind a step of the first attempt."""
        if os.environ["ATTEMPT"] == "1" and state.global_step == KILLED_BEHIND:
            os.kill(os.getpid(), signal.SIGKILL)


class Plugin(BasePlugin):
    """Gives the trainer the callback."""

    def add_callbacks_post_trainer(self, cfg, trainer):
        """Return the callback."""
        return [Killed()]


def write_model(folder):
    """Write a model with random weights, its tokenizer, and samples."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2, "a": 3, "b": 4}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<pad>"}
    PreTrainedTokenizerFast(tokenizer_object=words, **marks).save_pretrained(folder)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(**shape, vocab_size=64)).save_pretrained(folder)
    Path("samples.jsonl").write_text((json.dumps({"text": "a b a b a b a b a b a b"}) + "\n") * 64)


def main():
    """Write what the run needs and become it."""
    folder, attempt, *checkpoint = sys.argv[1:]
    write_model("model")
    samples = {"path": "samples.jsonl", "ds_type": "json", "type": "completion", "field": "text"}
    settings = {
        "base_model": "model", "datasets": [samples], "dataset_prepared_path": "prepared", "dataset_num_proc": 1,
        "sequence_len": 16, "micro_batch_size": 2, "gradient_accumulation_steps": 1, "max_steps": STEPS,
        "num_epochs": 1, "save_steps": SAVED_EVERY, "logging_steps": 1, "output_dir": folder, "val_set_size": 0,
        "bf16": False, "fp16": False, "tf32": False, "flash_attention": False, "sdp_attention": True,
        "optimizer": "adamw_torch", "learning_rate": 1e-3, "lr_scheduler": "constant",
        "plugins": ["tiny_axolotl.Plugin"],
    }  # fmt: skip
    for path in checkpoint:
        settings["resume_from_checkpoint"] = path
    Path("settings.yml").write_text(json.dumps(settings))
    os.environ.update(ATTEMPT=attempt, PYTHONPATH=str(Path(__file__).parent), AXOLOTL_DO_NOT_TRACK="1")
    axolotl = Path(sys.executable).with_name("axolotl")
    os.execv(axolotl, ["axolotl", "train", "settings.yml", "--launcher", "python"])


if __name__ == "__main__":
    main()
