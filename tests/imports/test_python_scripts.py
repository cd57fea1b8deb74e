"""Python scripts: the calls that say a plan are read, and nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError


def test_a_script_that_fine_tunes_says_its_plan(read) -> None:
    found = read("train_qlora.py", model__name=None, hardware__devices=2)
    training = found.plan.training
    assert found.plan.model.name == "qwen2.5-7b"
    assert (training.method, training.quantization, training.optimizer) == ("qlora", "nf4", "adamw8bit")
    assert training.adapter is not None
    assert (training.adapter.rank, training.adapter.targets) == (64, "query+value")
    assert (training.seq_len, training.micro_batch, training.global_batch, training.steps) == (4096, 2, 32, 1000)
    assert (training.attention, training.precision, training.framework) == ("flash2", "bf16", "trl")
    assert found.settings["training.adapter.rank"].place.line == 17
    assert found.clashes == ()
    (remark,) = (one for reading in found.readings for one in (*reading.unknown, *reading.unmodelled))
    assert (remark.place.field, "one process spreads the layers" in remark.why) == ("device_map", True)


def test_a_script_that_serves_says_its_plan(written) -> None:
    text = 'from vllm import LLM\n\nllm = LLM("gpt2", tensor_parallel_size=2, max_model_len=1024, dtype="float16")\n'
    plan = written("serve.py", text, model__name=None).plan
    assert (plan.task, plan.parallelism.tp, plan.inference.weights) == ("infer", 2, "fp16")


def test_what_only_running_tells_stays_open(written) -> None:
    text = "import sys\n\nTrainingArguments(per_device_train_batch_size=int(sys.argv[1]), bf16=True)\n"
    assert written("train.py", text).plan.training.precision == "bf16"


def test_a_script_is_never_run(written, tmp_path: Path) -> None:
    text = f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\nTrainingArguments(bf16=True)\n"
    written("train.py", text)
    assert not (tmp_path / "ran").exists()


def test_a_script_of_something_else_is_refused(written) -> None:
    with pytest.raises(PlanError, match="no call of a known tool"):
        written("train.py", "import torch\n\nprint(torch.ones(2))\n")
    with pytest.raises(PlanError, match="no call of a known tool"):
        written("cut.py", "import torch\n\ntokenizer(texts, max_length=512)\n")


def test_defaults_of_own_options_and_of_variables_count_where_nothing_is_given(written) -> None:
    text = (
        "import os\nfrom dataclasses import dataclass\n"
        "MODEL = os.getenv('MODEL', 'Qwen/Qwen2.5-7B-Instruct')\nLENGTH = int(os.environ.get('LENGTH', '4096'))\n"
        "@dataclass\nclass Arguments:\n    rank: int = 32\n    in_8bit: bool = False\n"
        "parser.add_argument('--batch', type=int, default=2)\nbatch = 64  # no option\n"
        "def train(arguments, parsed, steps=8):\n"
        "    if arguments.in_8bit:\n        config = BitsAndBytesConfig(load_in_8bit=True)\n"
        "    model = AutoModelForCausalLM.from_pretrained(MODEL, attn_implementation='flash_attention_2')\n"
        "    adapters = LoraConfig(r=arguments.rank)\n"
        "    given = TrainingArguments(per_device_train_batch_size=parsed.batch, gradient_accumulation_steps=steps,\n"
        "        bf16=torch.cuda.is_bf16_supported(), fp16=not torch.cuda.is_bf16_supported())\n"
        "    SFTTrainer(model=model, args=given, peft_config=adapters, max_seq_length=LENGTH)\n"
    )
    plan = written("train.py", text, model__name=None).plan
    training = plan.training
    assert (plan.model.name, training.seq_len, training.precision) == ("qwen2.5-7b", 4096, "bf16")
    assert (training.method, training.adapter.rank, training.quantization) == ("lora", 32, None)
    assert (training.micro_batch, training.global_batch) == (2, 128)


def test_a_value_that_only_a_run_tells_is_remarked_on(written) -> None:
    text = "import sys\n\nTrainingArguments(per_device_train_batch_size=batch_of(sys.argv), bf16=True)\n"
    remarks = [remark.why for reading in written("train.py", text).readings for remark in reading.unmodelled]
    assert remarks == ["only running the script tells batch_of(sys.argv): the tool's default counts"]


def test_what_trainers_prefer_counts_without_a_configuration_of_theirs(written) -> None:
    text = "from trl import DPOTrainer\n\nDPOTrainer(model, ref_model, args=TrainingArguments(bf16=True), beta=0.1)\n"
    assert written("dpo.py", text).plan.training.preference == "dpo"


def test_names_of_other_functions_are_no_settings(written) -> None:
    text = (
        "import trl\nbatch = 8\n"
        "def evaluate(rank=4):\n    steps, batch = 7, 64\n    return rank\n"
        "def adapters(rank=16, length=512):\n    return LoraConfig(r=rank)\n"
        "def train(steps=2):\n"
        "    TrainingArguments(per_device_train_batch_size=batch, gradient_accumulation_steps=steps, bf16=True)\n"
        "    SFTTrainer(peft_config=adapters(rank=8), max_seq_length=4096)\n"
    )
    training = written("train.py", text).plan.training
    assert (training.micro_batch, training.global_batch, training.seq_len) == (8, 128, 4096)
    assert training.adapter.rank == 8, "as the script calls it"


def test_an_argument_that_only_a_run_tells_hides_a_name_outside(written) -> None:
    text = "import sys\nrank = 4\ndef adapters(rank):\n    return LoraConfig(r=rank)\nadapters(int(sys.argv[1]))\n"
    remarks = [remark.why for reading in written("train.py", text).readings for remark in reading.unmodelled]
    assert remarks == ["only running the script tells rank: the tool's default counts"]


def test_settings_in_a_mapping_and_switches_of_a_script_count(written) -> None:
    text = (
        "import torch\nSETTINGS = {'rank': 32, 'model': 'Qwen/Qwen2.5-7B'}\n"
        "parser.add_argument('--no_quantize', action='store_false', dest='quantize')\n"
        "parser.add_argument('--full', action='store_true')\narguments = parser.parse_args()\n"
        "if arguments.quantize:\n    config = BitsAndBytesConfig(load_in_4bit=True)\n"
        "model = AutoModelForCausalLM.from_pretrained(SETTINGS['model'])\n"
        "if not arguments.full:\n    adapters = LoraConfig(r=SETTINGS['rank'], bias='none')\n"
        "TrainingArguments(bf16=torch.cuda.is_bf16_supported() if torch.cuda.is_available() else False)\n"
    )
    imported = written("train.py", text, model__name=None)
    training = imported.plan.training
    assert (training.method, training.adapter.rank, training.precision) == ("qlora", 32, "bf16")
    assert imported.plan.model.name == "qwen2.5-7b"
    assert not [remark for reading in imported.readings for remark in reading.unmodelled], "bias none trains none"


def test_a_model_that_only_a_run_tells_is_asked_for(alone) -> None:
    text = "import sys\n\nAutoModelForCausalLM.from_pretrained(sys.argv[1])\nTrainingArguments(bf16=True)\n"
    remarks = [remark.why for reading in alone("train.py", text).readings for remark in reading.unmodelled]
    assert remarks == ["only running the script tells sys.argv[1]: --model says which it is"]


SWITCHED = (
    "import os\nparser.add_argument('--lora', action='store_true', dest='use_lora')\n"
    "parser.add_argument('-b', '--bs', dest='batch_size', default=2)\n"
    "parser.add_argument('--no_quantize', action='store_false', dest='quantize')\n{}"
    "arguments = parser.parse_args()\n"
    "if arguments.quantize:\n    config = BitsAndBytesConfig(load_in_4bit=True)\n"
    "if arguments.use_lora:\n    adapters = LoraConfig(r=32)\n"
    "TrainingArguments(per_device_train_batch_size=arguments.batch_size, bf16=True)\n"
)


@pytest.mark.parametrize(
    ("options", "more", "method", "batch"),
    [
        ("--lora --bs 32", "", "qlora", 32),
        ("--lora -b 16 --no_quantize", "", "lora", 16),
        ("--no_quantize", "", None, 2),
        ("", "parser.set_defaults(use_lora=True, batch_size=4)\n", "qlora", 4),
        ("--no_quantize", "parser.set_defaults(**settings)\n", "lora", 2),
        ("--no_quantize", "arguments.use_lora = True\n", "lora", 2),
    ],
)
def test_an_option_counts_under_the_name_that_it_is_read_by(
    alone, tmp_path: Path, options: str, more: str, method: str | None, batch: int
) -> None:
    (tmp_path / "train.py").write_text(SWITCHED.format(more))
    training = alone("run.sh", f"python train.py {options}\n").plan.training
    assert (training.method, training.micro_batch) == (method, batch)


@pytest.mark.parametrize(
    ("calls", "rank"),
    [
        ("with open('x') as file:\n    adapters(4)\nadapters(32)\n", 4),
        ("rank = 8\ndef main():\n    rank = 64\n    adapters(rank)\nmain()\n", 64),
        ("class Settings:\n    RANK = 12\n    config = adapters(RANK)\nadapters(2)\n", 12),
    ],
)
def test_a_function_has_what_the_call_that_stands_first_gives_it(written, calls: str, rank: int) -> None:
    text = f"import os\ndef adapters(r):\n    return LoraConfig(r=r)\n{calls}TrainingArguments(bf16=True)\n"
    assert written("train.py", text).plan.training.adapter.rank == rank


def test_what_a_function_sets_for_the_script_counts(written) -> None:
    text = (
        "import os\nBS = 2\nSTEPS = 4\ndef choose():\n    global BS\n    BS, STEPS = 5, 6\n    BS = 8\n    STEPS = 3\n"
        "choose()\nTrainingArguments(per_device_train_batch_size=BS, gradient_accumulation_steps=STEPS, bf16=True)\n"
    )
    training = written("train.py", text).plan.training
    assert (training.micro_batch, training.global_batch) == (8, 8 * 4 * 8)


def test_what_a_class_sets_counts_in_it_and_not_in_its_functions(written) -> None:
    text = (
        "import os\nRANK = 4\nclass Settings:\n    RANK = 32\n    {}config = LoraConfig(r=RANK)\n"
        "TrainingArguments(bf16=True)\n"
    )
    ranks = [
        written("train.py", text.format(inner)).plan.training.adapter.rank
        for inner in ("", "def make(self):\n        ")
    ]
    assert ranks == [32, 4]


XTUNER = """from mmengine.optim import AmpOptimWrapper
from peft import LoraConfig
from torch.optim import AdamW
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from xtuner.model import DPO, SupervisedFinetune

base = 'Qwen/Qwen2.5-7B'
max_length = 4 * 1024
longest = max_length * 2
sequence_parallel_size = 2
accumulation = 8
accumulation *= sequence_parallel_size
for _ in range(3):
    RATE = 1e-4
kind = AdamW
loaded = dict(type=BitsAndBytesConfig, load_in_4bit=True, bnb_4bit_quant_type='nf4')
llm = dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path=base, quantization_config=loaded)
model = dict(type=DPO, llm=llm, lora=dict(type=LoraConfig, r=64))
data = dict(path='a/b', longest=longest)
train_dataloader = dict(batch_size=2, dataset=data)
optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=kind, lr=1e-4), accumulative_counts=accumulation)
train_cfg = dict(max_epochs=3)
hooks = []
if sequence_parallel_size > 1:
    hooks += [dict(type='Hook')]
custom_hooks = hooks
"""


def test_configurations_of_xtuner_are_assignments_and_sections_of_them(alone) -> None:
    found = alone("qlora.py", XTUNER.replace("for _ in range(3):\n    RATE = 1e-4\n", ""))
    plan = found.plan
    assert (plan.model.name, plan.task, plan.training.method) == ("qwen2.5-7b", "finetune", "qlora")
    training = [plan.value(f"training.{name}") for name in ("seq_len", "micro_batch", "global_batch", "epochs")]
    assert training == [4096, 2, 2 * 16 * 4, 3]  # four replicas of two devices, of 8 * 2 micro-batches
    assert (plan.parallelism.cp, plan.value("training.preference")) == (2, "dpo")
    assert (plan.value("training.adapter.rank"), plan.value("training.adapter.targets")) == (64, "all")
    assert not [remark for reading in found.readings for remark in (*reading.unknown, *reading.unmodelled)]


def test_a_command_of_xtuner_starts_a_configuration_beside_it(alone, tmp_path: Path) -> None:
    (tmp_path / "qlora.py").write_text(XTUNER.replace("for _ in range(3):\n    RATE = 1e-4\n", ""))
    found = alone("run.sh", "NPROC_PER_NODE=4 xtuner train qlora.py --deepspeed deepspeed_zero2\n")
    assert found.plan.model.name == "qwen2.5-7b"
    assert (found.plan.hardware.devices, found.plan.parallelism.zero) == (4, 2)
    assert found.plan.value("training.global_batch") == 2 * 16 * 2
    lost = alone("other.sh", "xtuner train qwen_qlora_e3 --deepspeed deepspeed_zero2\n")
    assert any("qwen_qlora_e3 is not there" in one.why for reading in lost.readings for one in reading.unmodelled)


def test_a_script_with_a_loop_is_no_configuration_of_xtuner(alone) -> None:
    with pytest.raises(PlanError, match="no call of a known tool"):
        alone("qlora.py", XTUNER)


@pytest.mark.parametrize(
    ("lines", "batch"),
    [
        ("batch = 2\nbatch *= 3", 6),
        ("base = 4\nbatch = base * 2 - 1", 7),
        ("side = 6\nbatch = 16 - (side // 2) ** 2", 7),
        ("batch = 2\nfor _ in range(4):\n    batch += 1", 2),  # how often only a run tells: what it begins with
        ("batch = 2\nwhile batch < 8:\n    batch *= 2", 2),
        ("batch = 2\nfor _ in range(3):\n    batch = batch * 2", 2),
        ("batch = 3 + 9 ** 99", None),
    ],
)
def test_what_is_calculated_of_names_counts(alone, lines: str, batch: int | None) -> None:
    text = f"from trl import SFTConfig\n{lines}\nargs = SFTConfig(per_device_train_batch_size=batch, max_length=512)\n"
    found = alone("train.py", text)
    given = {
        entry.field: entry.value for reading in found.readings for entry in reading.settings if entry.level == "said"
    }
    assert given.get("training.micro_batch") == batch


def test_products_without_end_are_no_hang(alone) -> None:
    growth = "batch = 7\n" + "batch = batch * batch\n" * 60
    text = f"from trl import SFTConfig\n{growth}SFTConfig(per_device_train_batch_size=2, max_length=512, seed=batch)\n"
    assert alone("train.py", text).plan.value("training.micro_batch") == 2


RECIPE = """
import nemo_run as run
from nemo.collections import llm


def configured():
    recipe = llm.{}
    recipe.trainer.max_steps = 1000
    recipe.data.global_batch_size = 256
    recipe.trainer.strategy.context_parallel_size = 1
    return recipe


run.run(configured())
"""


@pytest.mark.parametrize(
    ("made", "options", "model", "method", "splits", "zero"),
    [
        ("llama3_8b.pretrain_recipe", "", "llama-3-8b", None, (1, 1), 1),
        ("llama31_70b.pretrain_recipe", "", "llama-3.1-70b", None, (4, 4), 1),
        ("qwen25_7b.pretrain_recipe", ", tensor_parallelism=4", "qwen2.5-7b", None, (4, 1), 1),
        ("llama3_70b.finetune_recipe", "", "llama-3-70b", "lora", (8, 1), 0),
        ("llama3_8b.finetune_recipe", ", peft_scheme='none'", "llama-3-8b", "full", (1, 1), 1),
    ],
)
def test_recipes_of_nemo_are_read_with_what_is_changed_of_them(
    alone, made: str, options: str, model: str, method: str | None, splits: tuple[int, int], zero: int
) -> None:
    plan = alone(
        "recipe.py", RECIPE.format(f"{made}(num_nodes=2, num_gpus_per_node=8{options})"), {"hardware.devices": 16}
    ).plan
    assert (plan.value("model.name"), plan.value("training.framework")) == (model, "nemo")
    assert plan.value("training.method") == method
    assert (plan.value("parallelism.tp"), plan.value("parallelism.pp")) == splits
    assert (plan.value("parallelism.zero"), plan.value("parallelism.cp")) == (zero, 1)
    assert (plan.value("training.steps"), plan.value("training.global_batch")) == (1000, 256)


def test_a_second_recipe_in_a_script_is_named(alone) -> None:
    text = RECIPE.format("llama3_8b.pretrain_recipe()")
    second = "def other():\n    recipe = llm.llama3_70b.pretrain_recipe()\n    recipe.trainer.max_steps = 9\n"
    imported = alone("recipe.py", text + second)
    assert imported.plan.value("model.name") == "llama-3-8b"
    assert [remark.place.field for remark in imported.readings[0].unmodelled] == ["llm.llama3_70b.pretrain_recipe"]


def test_configurations_of_xtuner_are_calls(alone) -> None:
    text = (
        "from xtuner.v1.model import Qwen3MoE30BA3Config\nfrom xtuner.v1.train import TrainerConfig\n"
        "from xtuner.v1.config import AdamWConfig, FSDPConfig\nfrom xtuner.v1.datasets.config import DataloaderConfig\n"
        "trainer = TrainerConfig(load_from='/cpfs/remote', model_cfg=Qwen3MoE30BA3Config(ep_size=8), "
        "optim_cfg=AdamWConfig(lr=1e-6), fsdp_cfg=FSDPConfig(ep_size=8), global_batch_size=16, sp_size=2, "
        "dataloader_cfg=DataloaderConfig(pack_max_length=16384))\n"
    )
    plan = alone("sft.py", text).plan
    assert (plan.model.name, plan.parallelism.ep, plan.parallelism.cp, plan.parallelism.zero) == (
        "qwen3-30b-a3b",
        8,
        2,
        3,
    )
    assert (plan.training.seq_len, plan.training.micro_batch, plan.training.global_batch) == (16384, 1, 16)


_HANDED_ON = """
import argparse, inspect
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer


def config_of(**kwargs):
    known = inspect.signature(GRPOConfig).parameters
    filtered = {key: value for key, value in kwargs.items() if key in known}
    return GRPOConfig(**filtered)


def score(text):
    return SentenceTransformer("all-MiniLM-L6-v2").encode(text)


parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--batch", type=int, default=2)
args = parser.parse_args()
settings = {"per_device_train_batch_size": args.batch, "max_prompt_length": 1024, "max_completion_length": 4096}
settings = {name: value for name, value in settings.items() if value is not None}
model = AutoModelForCausalLM.from_pretrained(args.model)
GRPOTrainer(model=model, reward_funcs=[score], args=config_of(**settings)).train()
"""


def test_settings_that_a_function_filters_and_hands_on_count_and_a_help_is_not_the_model(alone) -> None:
    imported = alone("train.py", _HANDED_ON)
    plan = imported.plan
    assert imported.is_fragment
    assert (plan.value("training.micro_batch"), plan.value("training.seq_len")) == (2, 5120)
