"""What tools do by themselves, which no option says: how they shard, recompute, load and adapt."""

from __future__ import annotations

import pytest

_PRETRAINED = (
    "model_name: tiny-llama-1.1b\nprecision: bf16-mixed\ntrain:\n  max_seq_length: 2048\n  lr_warmup_steps: 9\n"
)

_ADAPTED = "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\nprecision: bf16-true\nlora_r: 8\ndevices: {}\n"

_JOB = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n"

_TUNED = "srun litgpt finetune_lora checkpoints/meta-llama/Llama-3.2-1B --precision bf16-true"


@pytest.mark.parametrize(
    ("text", "devices", "sharding", "recomputed", "compiled"),
    [
        (_PRETRAINED, 8, 3, "none", True),
        (_PRETRAINED, 1, None, "none", True),
        (_ADAPTED.format(4), 4, 3, "full", False),
        (_ADAPTED.format(1), 1, None, "none", False),
    ],
)
def test_litgpt_shards_over_several_devices_and_compiles_what_it_pretrains(
    written, text: str, devices: int, sharding: int | None, recomputed: str, compiled: bool
):
    imported = written("litgpt.yaml", text, model__name=None, hardware__devices=devices)
    values = imported.plan.value("training.checkpointing"), imported.plan.value("training.compile")
    zero = imported.settings.get("parallelism.zero")
    assert (None if zero is None else zero.value, *values) == (sharding, recomputed, compiled)


@pytest.mark.parametrize(
    ("options", "contradicts"), [("", True), (" --devices 4 --num_nodes 2", False), (" --devices=4", False)]
)
def test_slurm_that_starts_more_than_the_one_device_of_litgpt_contradicts_it(alone, options: str, contradicts: bool):
    imported = alone("job.sh", f"{_JOB}{_TUNED}{options}\n")
    assert ("processes_of_slurm" in [clash.rule for clash in imported.clashes]) is contradicts


def test_what_a_given_option_sets_beside_is_not_called_left_out(written):
    imported = written("litgpt.yaml", _PRETRAINED, model__name=None)
    assert imported.settings["training.compile"].words.endswith("litgpt.yaml:1: model_name tiny-llama-1.1b")
