"""Towers of pictures that tools train or freeze beside a language model."""

from __future__ import annotations

import pytest

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
FACTORY = (
    "model_name_or_path: {model}\nstage: sft\ndo_train: true\nfinetuning_type: {method}\ntemplate: qwen2_vl\n"
    "cutoff_len: 2048\n"
)
SWIFT = "swift sft --model {model} --train_type {method} --max_length 2048 --torch_dtype bfloat16 --dataset d\n"
TRAINER = (
    "deepspeed src/train/train_sft.py --model_id {model} --lora_enable True --lora_rank 16 --freeze_vision_tower {word}"
    " --per_device_train_batch_size 1 --bf16 True --output_dir out --num_train_epochs 1 --learning_rate 1e-5\n"
)


@pytest.mark.parametrize(
    ("name", "text", "towers"),
    [
        ("run.yaml", FACTORY.format(model=MODEL, method="full"), "frozen"),
        ("run.yaml", FACTORY.format(model=MODEL, method="full") + "freeze_vision_tower: false\n", "trained"),
        ("run.yaml", FACTORY.format(model=MODEL, method="full") + "freeze_vision_tower: maybe\n", "frozen"),
        ("run.yaml", FACTORY.format(model=MODEL, method="lora"), None),
        ("run.yaml", FACTORY.format(model="Qwen/Qwen2.5-7B", method="full"), None),
        ("run.sh", SWIFT.format(model=MODEL, method="full"), "frozen"),
        ("run.sh", SWIFT.format(model=MODEL, method="full").replace(" --max", " --freeze_vit false --max"), "trained"),
        ("run.sh", TRAINER.format(model=MODEL, word="False"), "trained"),
        ("run.sh", TRAINER.format(model=MODEL, word="True"), "frozen"),
    ],
)
def test_towers_are_trained_as_the_tool_does(alone, name: str, text: str, towers: str | None) -> None:
    assert alone(name, text).plan.training.towers == towers


def test_adapters_of_towers_are_named_as_not_counted(alone) -> None:
    imported = alone("run.yaml", FACTORY.format(model=MODEL, method="lora") + "freeze_vision_tower: false\n")
    assert imported.plan.training.towers is None
    assert [one.why for one in imported.readings[0].unmodelled] == ["adapters of the towers are not counted"]


def test_a_word_that_no_option_has_is_named_and_the_default_counts(alone) -> None:
    imported = alone("run.yaml", FACTORY.format(model=MODEL, method="full") + "freeze_vision_tower: maybe\n")
    assert [one.why for one in imported.readings[0].unmodelled] == ["maybe is not known: the tool's default counts"]
