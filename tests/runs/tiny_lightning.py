"""Trains a tiny network with Lightning: python tiny_lightning.py FOLDER ATTEMPT [CHECKPOINT].

The first attempt kills itself behind its fifth step, as a scheduler that takes a node back does.
"""

import os
import signal
import sys
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

folder, attempt, *checkpoint = sys.argv[1:]
STEPS, KILLED_BEHIND, SAVED_EVERY = 8, 5, 2


class Killed(Callback):
    """Ends the first attempt."""

    def on_train_batch_end(self, trainer, *_):
        """Tell the step, and kill the process behind a step of the first attempt."""
        sys.stdout.write(f"step {trainer.global_step}/{STEPS}\n")
        if attempt == "1" and trainer.global_step == KILLED_BEHIND:
            os.kill(os.getpid(), signal.SIGKILL)


class Network(lightning.LightningModule):
    """One layer."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)

    def training_step(self, batch):
        """Return the loss of a batch."""
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters())


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(200, 16)), batch_size=2)
saves = ModelCheckpoint(dirpath=folder, every_n_train_steps=SAVED_EVERY, save_top_k=-1)
trainer = lightning.Trainer(
    max_steps=STEPS, accelerator="cpu", logger=False, callbacks=[saves, Killed()], enable_progress_bar=False
)
trainer.fit(Network(), data, ckpt_path=checkpoint[0] if checkpoint and Path(checkpoint[0]).exists() else None)
