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
