"""Python scripts that take their settings from a file of options of their own: the file beside counts."""

from __future__ import annotations

from pathlib import Path

import pytest

OPTIONS = """model: {name: Qwen/Qwen3-8B}
lora: {rank: 32}
training: {batch: 2, length: 4096, epochs: 1}
"""
USED = (
    "model = AutoModelForCausalLM.from_pretrained(config['model']['name'])\n"
    "adapters = LoraConfig(r=config['lora']['rank'])\n"
    "part = config['training']\n"
    "options = SFTConfig(per_device_train_batch_size=part['batch'], max_length=part.get('length', 512),\n"
    "    gradient_accumulation_steps=part.get('accumulation', 3))\n"
    "SFTTrainer(model=model, args=options, peft_config=adapters).train()\n"
)
LIBRARIES = (
    "import json, yaml\nfrom omegaconf import OmegaConf\nfrom pathlib import Path\nfrom peft import LoraConfig\n"
    "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n"
)
PARSER = "parser = argparse.ArgumentParser()\nparser.add_argument('--config', default='train.yaml')\n"


def figures(plan):
    training = [plan.value(f"training.{name}") for name in ("micro_batch", "seq_len", "global_batch")]
    return (plan.model.name, plan.value("training.adapter.rank"), *training)


@pytest.mark.parametrize(
    "loads",
    [
        "with open('train.yaml') as file:\n    config = yaml.safe_load(file)\n",
        "config = yaml.safe_load(open('train.yaml'))\n",
        "config = yaml.safe_load(Path('train.yaml').read_text())\n",
        "def load_config(path):\n    return yaml.safe_load(open(path))\nconfig = load_config('train.yaml')\n",
        f"{PARSER}arguments = parser.parse_args()\nconfig = read_settings(arguments.config)\n",
    ],
)
def test_options_that_a_script_loads_count(alone, tmp_path: Path, loads: str) -> None:
    (tmp_path / "train.yaml").write_text(OPTIONS)
    plan = alone("train.py", f"{LIBRARIES}{loads}{USED}").plan
    assert figures(plan) == ("qwen3-8b", 32, 2, 4096, 2 * 3 * 8)


def test_functions_have_the_options_that_they_are_given(alone, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(OPTIONS)
    inner = "".join(f"    {line}\n" for line in USED.splitlines())
    main = "def main():\n    config = OmegaConf.load('train.yaml')\n    train(config)\nmain()\n"
    plan = alone("train.py", f"{LIBRARIES}def train(config):\n{inner}{main}").plan
    assert figures(plan) == ("qwen3-8b", 32, 2, 4096, 2 * 3 * 8)
    dotted = inner.replace("config['model']['name']", "config.model.name").replace(
        "part['batch']", "config.training.batch"
    )
    assert figures(alone("train.py", f"{LIBRARIES}def train(config):\n{dotted}{main}").plan)[:1] == ("qwen3-8b",)


def test_a_command_says_which_file_of_options(alone, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(OPTIONS)
    (tmp_path / "small.json").write_text(
        '{"model": {"name": "Qwen/Qwen3-0.6B"}, "lora": {"rank": 8}, "training": {"batch": 1}}'
    )
    loads = f"{PARSER}arguments = parser.parse_args()\nconfig = load_config(arguments.config)\n"
    (tmp_path / "train.py").write_text(f"{LIBRARIES}{loads}{USED}")
    found = alone("run.sh", "python train.py --config small.json\n")
    assert figures(found.plan) == ("qwen3-0.6b", 8, 1, 512, 1 * 3 * 8)
    assert not [one for reading in found.readings for one in reading.unmodelled if one.place.field == "--config"]


def test_options_that_are_not_there_stay_open(alone, tmp_path: Path) -> None:
    loads = "with open('train.yaml') as file:\n    config = yaml.safe_load(file)\n"
    assert alone("train.py", f"{LIBRARIES}{loads}{USED}").plan.model.name == "auto"
    (tmp_path / "train.yaml").write_text(OPTIONS + "# as long as data\n" * 5000)
    assert alone("train.py", f"{LIBRARIES}{loads}{USED}").plan.model.name == "auto"


def test_defaults_do_not_stand_in_for_options_that_are_not_there(alone) -> None:
    loads = "config = load_config(arguments.config)\npart = config.get('training') or {}\n"
    used = "SFTConfig(per_device_train_batch_size=part.get('batch', 4), max_length=512)\n"
    found = alone("train.py", f"{LIBRARIES}{loads}{used}")
    assert "per_device_train_batch_size" in {
        one.place.field for reading in found.readings for one in reading.unmodelled
    }


def test_options_that_a_script_is_given_and_nothing_reads_are_named(alone, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(OPTIONS)
    loaded = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n"
    used = f"{loaded}SFTTrainer(model=model, args=SFTConfig()).train()\n"
    (tmp_path / "train.py").write_text(f"{LIBRARIES}settings = Settings(parser.parse_args())\n{used}")
    found = alone("run.sh", "python train.py --config train.yaml\n")
    assert [one.place.field for reading in found.readings for one in reading.unmodelled] == ["--config"]


HANDED_ON = (
    "SFTTrainer(model=AutoModelForCausalLM.from_pretrained(NAME), args={}, peft_config=LoraConfig(r=rank)).train()\n"
)


@pytest.mark.parametrize(
    "script",
    [
        # A function that returns a mapping
        "NAME, rank = 'Qwen/Qwen3-8B', 32\n"
        "def options_of(folder, batch=1):\n"
        "    return {'output_dir': folder, 'per_device_train_batch_size': batch, 'max_length': 4096}\n"
        "def run(folder):\n"
        "    options = SFTConfig(**options_of(folder, batch=2), gradient_accumulation_steps=3)\n"
        f"    {HANDED_ON.format('options')}",
        # What an object sets of itself
        "class Tuning:\n"
        "    def __init__(self, batch, name='Qwen/Qwen3-8B'):\n"
        "        self.name, self.batch, self.rank = name, batch, 32\n"
        "    def run(self):\n"
        "        NAME, rank = self.name, self.rank\n"
        "        options = SFTConfig(per_device_train_batch_size=self.batch, max_length=4096,\n"
        "            gradient_accumulation_steps=3)\n"
        f"        {HANDED_ON.format('options')}"
        "Tuning(2).run()\n",
        # What all entries of a table have
        "NAME = 'Qwen/Qwen3-8B'\n"
        "parser.add_argument('--kind', required=True)\nparser.add_argument('--batch', type=int, default=None)\n"
        "arguments = parser.parse_args()\n"
        "TABLE = {'first': {'batch': 2, 'rank': 32, 'steps': 3}, 'second': {'batch': 2, 'rank': 32, 'steps': 3}}\n"
        "part = TABLE[arguments.kind]\nrank = part['rank']\n"
        "options = SFTConfig(per_device_train_batch_size=arguments.batch or part['batch'], max_length=4096,\n"
        "    gradient_accumulation_steps=part['steps'])\n"
        f"{HANDED_ON.format('options')}",
    ],
)
def test_what_a_script_hands_on_counts(alone, script: str) -> None:
    imported = alone("train.py", f"{LIBRARIES}{script}")
    assert figures(imported.plan) == ("qwen3-8b", 32, 2, 4096, 2 * 3 * 8)
    assert not [one for reading in imported.readings for one in reading.unmodelled]


def test_what_entries_of_a_table_differ_in_stays_open(alone) -> None:
    imported = alone(
        "train.py",
        f"{LIBRARIES}parser.add_argument('--kind', required=True)\narguments = parser.parse_args()\n"
        "TABLE = {'first': {'batch': 2, 'name': 'Qwen/Qwen3-8B'}, 'second': {'batch': 2, 'name': 'Qwen/Qwen3-4B'}}\n"
        "part = TABLE[arguments.kind]\nNAME, rank = part['name'], 8\n"
        f"options = SFTConfig(per_device_train_batch_size=part['batch'])\n{HANDED_ON.format('options')}",
    )
    assert imported.is_fragment
    assert imported.plan.value("training.micro_batch") == 2


def test_the_length_that_a_file_of_options_has_for_a_script_counts(alone, tmp_path: Path) -> None:
    (tmp_path / "main.yaml").write_text("train: {max_seq_len: 512, arguments: {per_device_train_batch_size: 2}}\n")
    text = (
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "config = load_config('main.yaml')\npart = config.train\n"
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\ndata = cut(data, part.max_seq_len)\n"
        "Trainer(model=model, args=TrainingArguments(**part.arguments), train_dataset=data).train()\n"
    )
    training = alone("train.py", text).plan.training
    assert (training.seq_len, training.micro_batch) == (512, 2)


def test_lists_are_joined_in_one_branch_of_what_only_a_run_decides(alone) -> None:
    text = (
        f"import argparse\n{LIBRARIES}parser.add_argument('--base', default=None)\n"
        "parser.add_argument('--wide', action=argparse.BooleanOptionalAction, default=True)\n"
        "arguments = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n"
        "if os.path.exists('adapter'):\n    pass\nelse:\n    names = ['q_proj', 'k_proj', 'v_proj', 'o_proj']\n"
        "    if arguments.wide:\n        names += ['gate_proj', 'up_proj', 'down_proj']\n"
        "    adapters = LoraConfig(r=8, target_modules=names)\n"
        "SFTTrainer(model=model, args=SFTConfig(), peft_config=adapters).train()\n"
    )
    assert alone("train.py", text).plan.training.adapter.targets == "all"
