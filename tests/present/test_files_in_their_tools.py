"""Files for other tools, read by these tools' own parsers where they are installed."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.frameworks import framework_files

PARSERS = Path(sys.prefix) / "parsers"
"""Where tools lie without what they need to train or serve, each in a folder of its own, as .ci/run installs them."""

ON_THIS_PROCESSOR = {"bf16": False, "fp16": False, "tf32": None, "use_cpu": True}
"""What a machine without a GPU cannot be asked for when a file is read."""


def written(
    hardware: str = "h100-sxm-80gb",
    devices: int = 8,
    parallelism: Mapping[str, object] | None = None,
    tool: str | None = None,
    **training: object,
) -> dict[str, str]:
    data = {
        "model": {"name": "llama-3.1-8b"},
        "training": {"micro_batch": 2, "global_batch": 64, "steps": 100, **training},
        "hardware": {"name": hardware, "devices": devices, "per_node": devices},
        "parallelism": parallelism or ({"tp": 2} if devices > 1 else {}),
    }
    return dict(framework_files(resolve_plan(plan_from_data(data), load_catalog()), load_catalog(), (), tool))


def launched(engine: str, **inference: object) -> dict[str, str]:
    data = {
        "task": "infer",
        "model": {"name": "llama-3.1-8b"},
        "inference": {"engine": engine, "batch": 8, **inference},
        "hardware": {"name": "h100-sxm-80gb", "devices": 2, "per_node": 2},
        "parallelism": {"tp": 2},
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


ADAPTED: Mapping[str, dict[str, Any]] = {
    "lora": {"method": "lora", "parallelism": {"tp": 1, "zero": 3}},
    "qlora": {"method": "qlora", "loss": "fused", "learning_rate": 1e-4},
    "dpo": {"method": "lora", "preference": "dpo", "document_tokens": 512},
    "offloaded": {
        "method": "lora",
        "parallelism": {"tp": 1, "zero": 2, "offload": "optimizer"},
        "framework": "deepspeed",
    },
}


def adapted(tool: str, folder: Path) -> list[str]:
    """Write plans for adapters as files of a tool, and return their names."""
    for name, training in ADAPTED.items():
        for file, text in written(tool=tool, **training).items():
            (folder / (f"{name}.yaml" if file == f"{tool.replace('-', '')}.yaml" else file)).write_text(text)
    return [f"{name}.yaml" for name in ADAPTED]


def test_axolotl_takes_its_configurations(tmp_path: Path) -> None:
    takes = (
        "import sys, yaml; from axolotl.utils.schemas.config import AxolotlInputConfig\n"
        "for name in sys.argv[1:]:\n"
        "    read = AxolotlInputConfig(**yaml.safe_load(open(name)))\n"
        "    print(read.micro_batch_size, read.adapter, read.rl and read.rl.value)"
    )
    lines = _run_alone(takes, *adapted("axolotl", tmp_path), folder=tmp_path, parser="axolotl").splitlines()
    assert lines[-4:] == ["2 lora None", "2 qlora None", "2 lora dpo", "2 lora None"]


def test_llamafactory_takes_its_configurations(tmp_path: Path) -> None:
    takes = (
        "import sys, yaml; from llamafactory.hparams import get_train_args\n"
        "for name in sys.argv[1:]:\n"
        f"    given = {{**yaml.safe_load(open(name)), **{ON_THIS_PROCESSOR}}}\n"
        "    model, _, training, adapter, _ = get_train_args(given)\n"
        "    print(training.per_device_train_batch_size, adapter.stage, model.quantization_bit)"
    )
    alone = {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    several = {"FORCE_TORCHRUN": "1", "DISABLE_VERSION_CHECK": "1"}
    names = adapted("llama-factory", tmp_path)
    lines = _run_alone(takes, *names, folder=tmp_path, parser="llamafactory", **alone, **several).splitlines()
    assert [line for line in lines if line[:2] == "2 "] == ["2 sft None", "2 sft 4", "2 dpo None", "2 sft None"]


def test_torchtune_takes_its_configurations(tmp_path: Path) -> None:
    takes = (
        "import sys; from omegaconf import OmegaConf; from torchtune.config import validate\n"
        "for name in sys.argv[1:]:\n"
        "    read = OmegaConf.load(name); validate(read); print(read.batch_size)"
    )
    lines = _run_alone(takes, *adapted("torchtune", tmp_path), folder=tmp_path, parser="torchtune").splitlines()
    assert lines[-4:] == ["2", "2", "2", "2"]


def test_sglang_takes_its_command(tmp_path: Path) -> None:
    script = launched("sglang", kv_cache="fp8", num_speculative_tokens=3, concurrency=64)["sglang_serve.sh"]
    takes = (
        "import argparse, shlex, sys; from sglang.srt.server_args import ServerArgs\n"
        "parser = argparse.ArgumentParser(); ServerArgs.add_cli_args(parser)\n"
        "words = shlex.split(sys.argv[1].replace('\\\\\\n', ' '), comments=True)\n"
        "read = parser.parse_args(words[words.index('--model-path'):])\n"
        "print(read.tp_size, read.max_running_requests, read.kv_cache_dtype)"
    )
    assert _run_alone(takes, script, folder=tmp_path, parser="sglang").splitlines()[-1] == "2 64 fp8_e4m3"


def test_llamacpp_takes_its_command(tmp_path: Path) -> None:
    """The server's own parser, of the library that xllamacpp builds llama.cpp into."""
    script = launched("llamacpp", kv_cache="q8_0", num_speculative_tokens=3)["llama_server.sh"]
    (tmp_path / "llama_server.sh").write_text(script)
    server = tmp_path / "bin" / "llama-server"
    server.parent.mkdir()
    server.write_text(
        f"#!{sys.executable}\n"
        "import ctypes, json, sys; from xllamacpp import xllamacpp as built\n"
        "parse = ctypes.CDLL(built.__file__)._Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E\n"
        "address = ctypes.c_void_p\n"
        "parse.argtypes = (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), address, ctypes.c_int, address)\n"
        "parse.restype = ctypes.c_bool\n"
        "words, read = [word.encode() for word in sys.argv], built.CommonParams()\n"
        "arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)\n"
        "where = id(read) + object.__basicsize__  # it holds llama.cpp's own structure\n"
        "server = 12  # among the programs of llama_example\n"
        "assert parse(len(words), arguments, where, server, None)\n"
        "print(json.dumps([read.n_ctx, read.n_parallel, read.n_predict, read.speculative.draft.n_max]))\n"
    )
    server.chmod(0o755)
    environment = _with_parser(
        "xllamacpp", MODEL="a.gguf", DRAFT="b.gguf", PATH=f"{server.parent}:{os.environ['PATH']}"
    )
    process = subprocess.run(
        ["bash", "llama_server.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == [8 * (2048 + 512), 8, 512, 3]


def _with_parser(parser: str, **variables: str) -> dict[str, str]:
    """Return an environment in which a tool's own parser is there."""
    if not (PARSERS / parser).is_dir():
        pytest.skip(f"the parser of {parser} is not installed")
    return {**os.environ, "PYTHONPATH": str(PARSERS / parser), **variables}


def _run_alone(script: str, *words: str, folder: Path, parser: str | None = None, **variables: str) -> str:
    """Run a script in a process of its own, which loads what this one is spared."""
    environment = _with_parser(parser, **variables) if parser else None
    process = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
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
