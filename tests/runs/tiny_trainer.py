"""Trains a tiny Llama with the Trainer of Transformers: python tiny_trainer.py FOLDER ATTEMPT [CHECKPOINT].

The first attempt kills itself behind its fifth step, as a scheduler that takes a node back does.
"""

import os
import signal
import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

folder, attempt, *checkpoint = sys.argv[1:]
STEPS, KILLED_BEHIND, SAVED_EVERY = 8, 5, 2


class Killed(TrainerCallback):
    """Ends the first attempt."""

    def on_step_end(self, args, state, control, **_):
        """Kill the process behind a step of the first attempt."""
        if attempt == "1" and state.global_step == KILLED_BEHIND:
            os.kill(os.getpid(), signal.SIGKILL)


class Tokens(torch.utils.data.Dataset):
    """Random tokens that are the same each time."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        tokens = torch.randint(0, 64, (16,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens.clone()}


shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}
arguments = TrainingArguments(
    output_dir=folder,
    max_steps=STEPS,
    per_device_train_batch_size=2,
    save_steps=SAVED_EVERY,
    logging_steps=1,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(LlamaForCausalLM(LlamaConfig(**shape)), arguments, train_dataset=Tokens(), callbacks=[Killed()])
trainer.train(resume_from_checkpoint=checkpoint[0] if checkpoint and Path(checkpoint[0]).is_dir() else None)
