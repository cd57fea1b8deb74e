"""Loops of scripts themselves that train, and what takes their batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError

LIBRARIES = (
    "import os\nimport sys\nimport torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
)
LOADED = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
TRAINED = "Trainer(model=model, args=arguments).train()\n"

_LOOP = """import torch
from torch.utils.data import DataLoader
from accelerate import Accelerator
parser.add_argument("--batch_size", type=int, default=4)
arguments = parser.parse_args()
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=8)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
train = DataLoader(texts, batch_size=arguments.batch_size, shuffle=True, num_workers=4)
held_out = DataLoader(others, batch_size=64)
optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=2e-5)
for batch in train:
    accelerator.backward(model(**batch).loss)
"""


def test_a_loop_of_a_script_itself_says_its_batches_and_its_optimizer(alone, tmp_path: Path) -> None:
    training = alone("loop.py", _LOOP).plan.training
    assert (training.micro_batch, training.global_batch, training.precision) == (4, 4 * 8 * 8, "bf16")
    assert (training.optimizer, training.learning_rate) == ("adamw8bit", 2e-5)
    imported = alone("run.sh", "accelerate launch loop.py --batch_size 2\n")
    assert imported.plan.training.micro_batch == 2
    assert not [one for reading in imported.readings for one in (*reading.unknown, *reading.unmodelled)]


def test_a_trainer_goes_before_batches_that_a_script_makes_itself(alone) -> None:
    text = (
        f"{LIBRARIES}{LOADED}evaluated = DataLoader(texts, batch_size=64)\narguments = TrainingArguments()\n{TRAINED}"
    )
    assert alone("train.py", text).plan.training.micro_batch == 8


@pytest.mark.parametrize(
    ("made", "batch"),
    [
        ("model = SentenceTransformer('intfloat/multilingual-e5-small')\nloader = DataLoader(pairs, batch_size=32)\n"
         "model.fit(train_objectives=[(loader, loss)], epochs=2)\n", 32),
        ("model = SentenceTransformer('intfloat/multilingual-e5-small')\n"
         "arguments = SentenceTransformerTrainingArguments(per_device_train_batch_size=16, fp16=True)\n"
         "SentenceTransformerTrainer(model=model, args=arguments, train_dataset=pairs).train()\n", 16),
    ],
)  # fmt: skip
def test_embeddings_are_trained_by_either_form_of_their_library(alone, made: str, batch: int) -> None:
    head = (
        "from torch.utils.data import DataLoader\nfrom sentence_transformers import SentenceTransformer, "
        "SentenceTransformerTrainer, SentenceTransformerTrainingArguments\n"
    )
    plan = alone("train.py", f"{head}{made}").plan
    assert (plan.model.name, plan.training.micro_batch) == ("multilingual-e5-small", batch)
    assert plan.training.seq_len == 512


_SHARDED = """import torch, deepspeed
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy
from transformers import AutoModelForCausalLM

class Trainer:
    def __init__(self, rounds):
        model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
        {wrapped}
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def train(self):
        self.model(1).loss.backward()

Trainer(rounds=3).train()
"""


@pytest.mark.parametrize(
    ("wrapped", "framework", "zero", "precision"),
    [
        (
            "model = FSDP(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, "
            "mixed_precision=MixedPrecision(param_dtype=torch.float16))",
            "fsdp",
            2,
            "fp16",
        ),
        ("model = FSDP(model, device_id=0)", "fsdp", 3, "bf16"),
        (
            "engine = deepspeed.initialize(model=model, config={'zero_optimization': {'stage': 2}, "
            "'fp16': {'enabled': True}})",
            "deepspeed",
            2,
            "fp16",
        ),
    ],
)
def test_what_spreads_a_model_of_a_script_itself_counts(
    alone, wrapped: str, framework: str, zero: int, precision: str
) -> None:
    imported = alone("train.py", _SHARDED.format(wrapped=wrapped))
    plan = imported.plan
    assert (plan.training.framework, plan.parallelism.zero, plan.training.precision) == (framework, zero, precision)
    assert not [one for reading in imported.readings for one in (*reading.unknown, *reading.unmodelled)]


@pytest.mark.parametrize(
    "guard",
    [
        'token = os.getenv("HF_TOKEN")\nif token is None:\n    raise RuntimeError("no token")\n',
        'token = os.environ.get("HF_TOKEN", "")\nif not token:\n    raise SystemExit\n',
        'parser.add_argument("--data", default=None)\ngiven = parser.parse_args()\n'
        'if not given.data:\n    raise ValueError("no data")\n',
    ],
)
def test_what_would_end_a_script_is_taken_not_to_hold(alone, guard: str) -> None:
    text = f"import argparse, os\nparser = argparse.ArgumentParser()\n{LIBRARIES}{guard}{LOADED}"
    text += f"arguments = TrainingArguments(per_device_train_batch_size=2)\n{TRAINED}"
    assert alone("train.py", text).plan.training.micro_batch == 2


def test_of_several_models_of_a_script_the_first_that_is_known_counts(alone) -> None:
    text = (
        "from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification\n"
        "reward = AutoModelForSequenceClassification.from_pretrained('models/reward/step-92858')\n"
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\noptimizer = AdamW(model.parameters())\n"
        "model(1).loss.backward()\n"
    )
    plan = alone("train.py", text).plan
    assert (plan.model.name, plan.training.predicted_tokens) == ("qwen2.5-7b", None)


@pytest.mark.parametrize(
    ("saves", "loads"),
    [
        ("model.save_pretrained(f'{OUT}/adapter')\n", "f'{OUT}/adapter'"),
        ("TrainingArguments(output_dir=OUT)\n", "f'{OUT}/checkpoint-100'"),
    ],
)
def test_a_model_that_a_script_has_saved_itself_is_no_second_one(alone, saves: str, loads: str) -> None:
    text = f"{LIBRARIES}OUT = './out'\n{LOADED}{saves}{TRAINED}"
    imported = alone("train.py", f"{text}model = AutoModelForCausalLM.from_pretrained({loads})\n")
    assert (imported.plan.model.name, imported.clashes) == ("qwen2.5-7b", ())


def test_settings_that_stand_in_one_branch_count(alone) -> None:
    text = (
        f"import deepspeed\n{LIBRARIES}parser.add_argument('--file', default=None)\n{LOADED}"
        "given = parser.parse_args()\n"
        "if given.file:\n    settings = None\nelse:\n    settings = {'zero_optimization': {'stage': 2}}\n"
        "if settings is not None:\n    engine, *_ = deepspeed.initialize(model=model, config=settings)\n"
        "else:\n    engine, *_ = deepspeed.initialize(model=model, config=given.file)\nengine.backward(1)\n"
    )
    imported = alone("train.py", text)
    assert imported.plan.parallelism.zero == 2
    assert not [one for reading in imported.readings for one in reading.unmodelled]


@pytest.mark.parametrize("started", ["", "torchrun --nproc_per_node 8 train.py\n"])
def test_a_script_divides_by_the_processes_that_there_are(alone, started: str) -> None:
    text = (
        f"{LIBRARIES}steps = 32\nworld = int(os.environ.get('WORLD_SIZE', 1))\n{LOADED}"
        f"if world != 1:\n    steps = steps // world\n"
        "arguments = TrainingArguments(per_device_train_batch_size=4, gradient_accumulation_steps=steps)\n"
        f"{TRAINED}"
    )
    imported = alone("train.py", text)
    if started:
        imported = alone("run.sh", started, {"hardware.name": "h100-sxm-80gb"})
    assert imported.plan.training.global_batch == 128


def test_what_only_spreads_models_of_others_is_no_run(alone) -> None:
    with pytest.raises(PlanError, match="no call of a known tool"):
        alone("wrap.py", "from torch.distributed.fsdp import fully_shard\ndef wrap(model):\n    fully_shard(model)\n")


@pytest.mark.parametrize(
    ("loads", "casts", "precision"),
    [
        ("", "", "bf16"),
        (", dtype=torch.float32", "", "fp32"),
        (", dtype=torch.float32", "with autocast(dtype=torch.bfloat16): ", "bf16"),
    ],
)
def test_a_loop_computes_in_the_type_that_its_model_is_loaded_in_unless_it_casts(
    alone, loads: str, casts: str, precision: str
) -> None:
    text = (
        "import torch\nfrom torch import autocast\nfrom transformers import AutoModelForCausalLM\n"
        f"model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B'{loads})\n"
        f"optimizer = torch.optim.AdamW(model.parameters())\n{casts}loss = model(1).loss\nloss.backward()\n"
    )
    imported = alone("train.py", text)
    assert imported.plan.training.precision == precision
    assert not any("given by no file" in guess for guess in imported.guesses if "precision" in guess)


_BY_NAME = (
    "import torch\nfrom torch.nn.functional import log_softmax\nfrom transformers import AutoModelForCausalLM\n"
    "from dataclasses import dataclass\n"
    "@dataclass\nclass Settings:\n    name: str = 'Qwen/Qwen2.5-7B'\n    micro_batch_size: int = 4\n"
    "    gradient_accumulation_steps: int = 8\n    max_seq_len: int = 1024\n"
    "settings = Settings()\nmodel = AutoModelForCausalLM.from_pretrained(settings.name)\n"
    "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)\n"
    "for part in range(settings.gradient_accumulation_steps):\n"
    "    update(model, settings.micro_batch_size, settings.max_seq_len)\noptimizer.step()\n"
)


def test_what_a_loop_reads_by_name_counts_where_no_call_says_it(alone) -> None:
    plan = alone("train.py", _BY_NAME).plan
    training = plan.training
    assert (training.micro_batch, training.global_batch, training.seq_len) == (4, 4 * 8 * 8, 1024)
    assert training.loss is None


def test_a_name_that_a_script_never_reads_does_not_count(alone) -> None:
    text = _BY_NAME.replace("settings.micro_batch_size, settings.max_seq_len", "1")
    assert alone("train.py", text).settings.get("training.seq_len") is None


def test_an_option_that_a_script_is_started_with_goes_before_what_it_has_by_default(alone, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_BY_NAME)
    plan = alone("run.sh", "python train.py --seq_len 512 --grad_accum 2\n").plan
    assert (plan.training.seq_len, plan.training.global_batch) == (512, 4 * 2 * 8)


def test_a_loop_that_takes_the_loss_of_logits_holds_them_whatever_its_library_would_do(alone) -> None:
    text = (
        "import torch\nfrom unsloth import FastLanguageModel\nimport torch.nn.functional as F\n"
        "model, tokenizer = FastLanguageModel.from_pretrained('unsloth/Qwen3-4B', load_in_4bit=True)\n"
        "model = FastLanguageModel.get_peft_model(model, r=16)\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n{}loss.backward()\noptimizer.step()\n"
    )
    assert alone("train.py", text.format("loss = model(1, labels=1).loss\n")).plan.training.loss == "fused"
    taken = "loss = F.log_softmax(model(1).logits, -1).mean()\n"
    assert alone("train.py", text.format(taken)).plan.training.loss == "standard"


def test_a_loop_that_casts_is_not_said_to_compute_in_32_bits(alone) -> None:
    text = _BY_NAME.replace("settings = Settings()", "settings = Settings()\nkind = torch.float16 if half else None")
    assert "training.precision" not in alone("train.py", text.replace("AutoModel", "OwnModel")).settings
