"""Tunes a tiny Llama with TRL's SFTTrainer: python tiny_trl.py FOLDER ATTEMPT [CHECKPOINT].

The first attempt kills itself behind its fifth step, as a scheduler that takes a node back does.
"""

import os
import signal
import sys
from pathlib import Path

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import SFTConfig, SFTTrainer

folder, attempt, *checkpoint = sys.argv[1:]
STEPS, KILLED_BEHIND, SAVED_EVERY = 8, 5, 2


class Killed(TrainerCallback):
    """Ends the first attempt."""

    def on_step_end(self, args, state, control, **_):
        """Kill the process behind a step of the first attempt."""
        if attempt == "1" and state.global_step == KILLED_BEHIND:
            os.kill(os.getpid(), signal.SIGKILL)


words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2, "b": 3}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}
arguments = SFTConfig(
    output_dir=folder,
    max_steps=STEPS,
    per_device_train_batch_size=2,
    save_steps=SAVED_EVERY,
    logging_steps=1,
    report_to=[],
    use_cpu=True,
    bf16=False,
    max_length=16,
    disable_tqdm=True,
)
trainer = SFTTrainer(
    LlamaForCausalLM(LlamaConfig(**shape)),
    arguments,
    train_dataset=Dataset.from_dict({"text": ["a b a b a b a b"] * 64}),
    processing_class=tokenizer,
    callbacks=[Killed()],
)
trainer.train(resume_from_checkpoint=checkpoint[0] if checkpoint and Path(checkpoint[0]).is_dir() else None)
