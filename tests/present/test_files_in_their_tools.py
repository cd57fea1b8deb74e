"""Files for other tools, read by these tools' own parsers where they are installed."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.frameworks import framework_files

ON_THIS_PROCESSOR = {"bf16": False, "fp16": False, "tf32": None, "use_cpu": True}
"""What a machine without a GPU cannot be asked for when a file is read."""


def written(
    hardware: str = "h100-sxm-80gb", devices: int = 8, parallelism: Mapping[str, int] | None = None, **training: object
) -> dict[str, str]:
    data = {
        "model": {"name": "llama-3.1-8b"},
        "training": {"micro_batch": 2, "global_batch": 64, "steps": 100, **training},
        "hardware": {"name": hardware, "devices": devices, "per_node": devices},
        "parallelism": parallelism or ({"tp": 2} if devices > 1 else {}),
    }
    return dict(framework_files(resolve_plan(plan_from_data(data), load_catalog()), load_catalog()))


@pytest.mark.parametrize("framework", ["transformers", "fsdp", "ddp"])
def test_transformers_reads_its_arguments_without_a_warning(framework: str) -> None:
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
    arguments = yaml.safe_load(written(framework=framework)["training_arguments.yaml"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        [parsed] = transformers.HfArgumentParser(transformers.TrainingArguments).parse_dict(
            {**arguments, **ON_THIS_PROCESSOR}
        )
    assert parsed.per_device_train_batch_size == 2


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_trl_reads_its_configuration_without_a_warning(method: str) -> None:
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
    arguments = yaml.safe_load(written(method=method)["sft_config.yaml"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        [parsed] = transformers.HfArgumentParser(trl.SFTConfig).parse_dict({**arguments, **ON_THIS_PROCESSOR})
    assert parsed.per_device_train_batch_size == 2


@pytest.mark.parametrize("framework", ["transformers", "fsdp", "deepspeed"])
def test_accelerate_loads_its_configuration(framework: str, tmp_path: Path) -> None:
    arguments = pytest.importorskip("accelerate.commands.config.config_args", reason="Accelerate is not installed")
    path = tmp_path / "accelerate.yaml"
    path.write_text(written(framework=framework)["accelerate.yaml"])
    assert arguments.load_config_from_file(str(path)).num_processes == 8


def test_torchtitan_takes_its_configurations(tmp_path: Path) -> None:
    for library in ("torchtitan", "triton"):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    plans = {
        "plain": {},
        "chunked": {"checkpointing": "full", "loss": "chunked", "compile": True, "learning_rate": 1e-4},
        "selective": {"checkpointing": "selective-ops", "master_weights": "none"},
    }
    for name, training in plans.items():
        text = written(framework="torchtitan", **training)["torchtitan_config.py"]
        (tmp_path / f"{name}.py").write_text(text)
    takes = (
        "import sys; from torchtitan.config import ConfigManager\n"
        "for name in sys.argv[1:]:\n"
        "    read = ConfigManager().parse_args(['--module', name, '--config', 'planned'])\n"
        "    loss = type(read.loss).__qualname__\n"
        "    print(read.training.global_batch_size, read.parallelism.tensor_parallel_degree, loss)"
    )
    lines = _run_alone(takes, *plans, folder=tmp_path).splitlines()
    losses = ("CrossEntropyLoss", "ChunkedLossWrapper", "CrossEntropyLoss")
    assert lines[-3:] == [f"64 2 {loss}.Config" for loss in losses]


def test_deepspeed_takes_its_configurations(tmp_path: Path) -> None:
    if find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed")
    for zero in (1, 3):
        text = written(framework="deepspeed", parallelism={"tp": 1, "zero": zero})["ds_config.json"]
        (tmp_path / f"{zero}.json").write_text(text)
    takes = (
        "import sys; from deepspeed import comm; from deepspeed.runtime.config import DeepSpeedConfig\n"
        "comm.get_rank, comm.get_world_size = (lambda: 0), (lambda: 8)\n"  # as on the devices that it is for
        "for name in sys.argv[1:]:\n"
        "    read = DeepSpeedConfig(name); print(read.train_batch_size, int(read.zero_config.stage))"
    )
    assert _run_alone(takes, "1.json", "3.json", folder=tmp_path).splitlines()[-2:] == ["64 1", "64 3"]


def _run_alone(script: str, *words: str, folder: Path) -> str:
    """Run a script in a process of its own, which loads what this one is spared."""
    process = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_script_that_splits_no_layer_is_launched_without_tensor_parallel() -> None:
    files = written(method="lora")
    launched = yaml.safe_load(files["accelerate.yaml"])
    assert launched["distributed_type"] == "FSDP"
    assert "parallelism_config_tp_size" not in launched.get("parallelism_config", {}) or (
        launched["parallelism_config"]["parallelism_config_tp_size"] == 1
    )
    assert "tensor parallel 2: this script splits no layer" in files["train.py"]
    # Activations that the plan splits are whole on each device, and would not fit beside each other.
    assert launched["fsdp_config"]["fsdp_activation_checkpointing"] is True


@pytest.mark.filterwarnings("ignore")  # of the libraries about each other
def test_the_script_for_adapters_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("torch", "transformers", "peft", "trl", "datasets"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    _write_tiny_model(tmp_path / "model")
    (tmp_path / "data.jsonl").write_text('{"text": "the cat sat on the mat"}\n' * 16)
    files = written("cpu-8c-3.5ghz-baseline", 1, method="lora", micro_batch=1, global_batch=1, seq_len=32, steps=1)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    script = tmp_path / "train.py"
    script.write_text(re.sub(r"(?m)^MODEL = .*$", f'MODEL = "{tmp_path / "model"}"', script.read_text()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py", "data.jsonl"])
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / "output" / "adapter_model.safetensors").is_file()


def _write_tiny_model(folder: Path) -> None:
    """Write a Llama of two narrow layers and a tokenizer of six words."""
    import tokenizers
    import transformers

    words = {word: index for index, word in enumerate(["<s>", "</s>", "<unk>", *["the", "cat", "sat", "on", "mat"]])}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    ).save_pretrained(folder)
    transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=len(words),
            max_position_embeddings=64,
        )
    ).save_pretrained(folder)
