"""Classes that a script has for its settings: fields that they make themselves, and fields beside a library's."""

from __future__ import annotations

from pathlib import Path

import pytest

_CONFIG = """
import os
from dataclasses import dataclass, field

import torch


@dataclass
class Config:
    BITS: str = field(default_factory=lambda: os.getenv("BITS", "None").lower())
    RANK: int = 32
    TARGETS: list = field(default_factory=lambda: ["q_proj", "v_proj"])
    OPTIMIZER: str = field(init=False, default="")
    BF16: bool = field(init=False, default=False)
    BATCH: int = field(init=False, default=1)

    def __post_init__(self):
        self.OPTIMIZER = "paged_adamw_8bit" if self.BITS == "4b" else "adamw_torch"
        if torch.cuda.is_available():
            self.BF16 = torch.cuda.get_device_capability()[0] >= 8
        if self.RANK > 16:
            self.BATCH = 4
        else:
            self.BATCH = 8
        {}


cfg = Config()
"""

_TRAINS = """
from config import cfg
from peft import LoraConfig
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", load_in_4bit=cfg.BITS == "4b")
arguments = TrainingArguments(
    per_device_train_batch_size=cfg.BATCH, optim=cfg.OPTIMIZER, fp16=not cfg.BF16, bf16=cfg.BF16
)
Trainer(model=model, args=arguments, peft_config=LoraConfig(r=cfg.RANK, target_modules=cfg.TARGETS))
"""


@pytest.mark.parametrize(
    ("variable", "method", "optimizer"), [("", "lora", "adamw"), ("BITS=4b ", "qlora", "adamw8bit")]
)
def test_fields_that_a_dataclass_makes_of_others_count(
    alone, tmp_path: Path, variable: str, method: str, optimizer: str
):
    (tmp_path / "config.py").write_text(_CONFIG.format(""))
    (tmp_path / "train.py").write_text(_TRAINS)
    plan = alone("run.sh", f"{variable}python train.py\n").plan
    assert (plan.value("training.method"), plan.value("training.optimizer")) == (method, optimizer)
    assert (plan.value("training.precision"), plan.value("training.micro_batch")) == ("bf16", 4)
    assert plan.value("training.adapter.targets") == "query+value"


def test_a_field_that_only_running_the_script_makes_is_named(alone, tmp_path: Path):
    (tmp_path / "config.py").write_text(_CONFIG.format("self.BATCH = free_memory() // 10"))
    imported = alone("train.py", _TRAINS)
    remarks = {one.place.field: one.why for reading in imported.readings for one in reading.unmodelled}
    assert remarks["per_device_train_batch_size"].startswith("only running the script tells cfg.BATCH")


_OWN = """
from dataclasses import dataclass, field
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="meta-llama/Llama-2-7b-hf")


@dataclass
class OwnArguments(TrainingArguments):
    per_device_train_batch_size: int = field(default=2, metadata={{"help": "of a device"}})
    gradient_accumulation_steps: int = 8
    fp16: bool = field(default=True)
    max_steps: int = measured()


{}
model = AutoModelForCausalLM.from_pretrained(ModelArguments.model_name_or_path)
Trainer(model=model, args=arguments)
"""


@pytest.mark.parametrize(
    ("made", "batch", "accumulated"),
    [
        ("parser = HfArgumentParser((ModelArguments, OwnArguments))\nown, arguments = parser.parse()", 2, 16),
        ("arguments = HfArgumentParser(OwnArguments).parse()", 2, 16),
        ("arguments = OwnArguments(output_dir='out')", 2, 16),
        ("arguments = OwnArguments(output_dir='out', per_device_train_batch_size=4)", 4, 32),
    ],
)
def test_fields_of_a_class_that_is_made_of_a_librarys_are_its_options(alone, made: str, batch: int, accumulated: int):
    imported = alone("train.py", _OWN.format(made), {"hardware.devices": 1})
    plan = imported.plan
    assert (plan.value("training.micro_batch"), plan.value("training.global_batch")) == (batch, accumulated)
    assert plan.value("training.precision") == "fp16"
    remarks = [one.why for reading in imported.readings for one in reading.unmodelled]
    assert remarks == ["only running the script tells measured(): the tool's default counts"]


def test_a_script_is_started_with_other_values_for_its_own_fields(alone, tmp_path: Path):
    made = "parser = HfArgumentParser((ModelArguments, OwnArguments))\nown, arguments = parser.parse()"
    (tmp_path / "train.py").write_text(_OWN.format(made))
    plan = alone("run.sh", "python train.py --per_device_train_batch_size 16 --max_steps 10\n").plan
    assert (plan.value("training.micro_batch"), plan.value("training.steps")) == (16, 10)


_SECTIONS = """
from dataclasses import dataclass, field
import tyro
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


@dataclass
class ModelConfig:
    name: str = "meta-llama/Llama-2-7b-hf"


@dataclass
class TrainConfig:
    batch_size: int = 4
    name: str = "first"


@dataclass
class Config:
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def run(args, train):
    model = AutoModelForCausalLM.from_pretrained(args.model.name)
    Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=train.batch_size)).train()


args = tyro.cli(Config)
run(args, args.train)
"""


def test_options_in_sections_give_the_fields_of_classes_below_others(alone, tmp_path: Path):
    (tmp_path / "train.py").write_text(_SECTIONS)
    plan = alone("run.sh", "python train.py --train.batch-size 16 --model.name Qwen/Qwen3-8B --train.name x\n").plan
    assert (plan.model.name, plan.value("training.micro_batch")) == ("qwen3-8b", 16)
