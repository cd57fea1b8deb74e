"""Python scripts that start the command of a tool, and machines that their decorators ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.imports import import_plan

MODAL = """import modal

MODEL = "Qwen/Qwen3-4B-Instruct-2507"
FAST = True
N_GPU = 2
KIND = "H100"
app = modal.App("server")

@app.function(cpu=2)
def download():
    print("nothing is started here")

@app.function(gpu=f"{KIND}:{N_GPU}", timeout=600)
@modal.web_server(port=8000)
def serve():
    import subprocess

    cmd = ["vllm", "serve", "--uvicorn-log-level=info", MODEL, "--served-model-name", MODEL, "llm"]
    cmd += ["--max-model-len", "4096"] if FAST else ["--max-model-len", "8192"]
    cmd += ["--tensor-parallel-size", str(N_GPU)]
    if N_GPU > 4:
        cmd.append("--enforce-eager")
    subprocess.Popen(" ".join(cmd), shell=True)
"""

LAUNCHES = """import argparse, subprocess, sys
parser = argparse.ArgumentParser()
parser.add_argument("--model", default="meta-llama/Llama-3.1-8B")
parser.add_argument("--processes", type=int, default=4)
parser.add_argument("--deepspeed", default=None)
args = parser.parse_args()

def main():
    cmd = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={args.processes}", "run_clm.py"]
    cmd.append("--bf16")
    cmd.extend(["--model_name_or_path", args.model, "--per_device_train_batch_size", "2"])
    if args.deepspeed:
        cmd += ["--deepspeed", args.deepspeed]
    subprocess.run([*cmd, "--block_size", "1024"], check=True)

main()
"""


def test_a_server_that_a_script_starts_is_read_with_the_machine_it_asks_for(tmp_path) -> None:
    (tmp_path / "serve.py").write_text(MODAL)
    imported = import_plan([str(tmp_path / "serve.py")])
    plan = imported.plan
    assert (plan.model.name, plan.hardware.name, plan.hardware.devices) == ("qwen3-4b-2507", "H100", 2)
    assert (plan.parallelism.tp, plan.inference.prompt_tokens + plan.inference.output_tokens) == (2, 4096)
    assert imported.settings["parallelism.tp"].place.line == 20
    assert not [remark.why for reading in imported.readings for remark in reading.unmodelled]


def test_a_training_that_a_script_starts_is_read_as_far_as_the_script_says_it(alone) -> None:
    imported = alone("launch.py", LAUNCHES)
    training = imported.plan.training
    assert (imported.plan.model.name, imported.plan.hardware.devices) == ("llama-3.1-8b", 4)
    assert (training.micro_batch, training.seq_len, training.precision) == (2, 1024, "bf16")
    assert any("deepspeed" in str(one.place) for reading in imported.readings for one in reading.unmodelled)


@pytest.mark.parametrize(
    ("started", "model", "tp"),
    [
        ('os.system(f"python -m sglang.launch_server --model-path {model} --tp {gpus}")', "qwen2.5-7b", 2),
        ('subprocess.run(["vllm", "serve", model, *["-tp", str(gpus)]])', "qwen2.5-7b", 2),
        ('os.execvp("vllm", ["vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "4"])', "qwen3-8b", 4),
        ('subprocess.check_call(shlex.split("vllm serve Qwen/Qwen3-8B -tp 8"))', "qwen3-8b", 8),
    ],
)
def test_commands_are_read_however_a_script_starts_them(alone, started: str, model: str, tp: int) -> None:
    before = 'import os, shlex, subprocess\nmodel = os.environ.get("MODEL", "Qwen/Qwen2.5-7B-Instruct")\ngpus = 2\n'
    plan = alone("start.py", f"{before}{started}\n").plan
    assert (plan.model.name, plan.parallelism.tp) == (model, tp)


def test_options_of_a_command_that_only_a_run_tells_are_named(alone) -> None:
    imported = alone("start.py", "import subprocess\nsubprocess.run(['vllm', 'serve', 'Qwen/Qwen3-8B', *extra])\n")
    assert any("extra" in remark.why for remark in imported.readings[0].unmodelled)


def test_a_script_that_starts_no_command_of_a_tool_is_refused(alone) -> None:
    with pytest.raises(PlanError, match=r"no c.* of a known tool"):
        alone("start.py", "import subprocess\nsubprocess.run(['nvidia-smi'])\n")


@pytest.mark.parametrize(
    ("gpu", "device", "count"),
    [
        ('"A100-80GB:4"', "A100-80GB", 4),
        ('modal.gpu.A100(count=N_GPU, size="80GB")', "A100-80GB", 2),
        ('["H100!:8", "A100:8"]', "H100", 8),
        ("None", "h200-sxm", 2),
    ],
)
def test_modal_is_asked_for_devices_in_several_forms(tmp_path, gpu: str, device: str, count: int) -> None:
    (tmp_path / "serve.py").write_text(MODAL.replace('f"{KIND}:{N_GPU}"', gpu))
    plan = import_plan([str(tmp_path / "serve.py")], {} if gpu != "None" else {"hardware.name": device}).plan
    assert (plan.hardware.name, plan.hardware.devices) == (device, count)


def test_a_service_of_bentoml_asks_for_its_device(tmp_path) -> None:
    (tmp_path / "service.py").write_text(
        "import bentoml\n\n@bentoml.service(resources={'gpu': 2, 'gpu_type': 'nvidia-l4'})\nclass Served:\n"
        "    def __init__(self):\n        from vllm import AsyncEngineArgs\n"
        "        self.arguments = AsyncEngineArgs(model='Qwen/Qwen3-8B', tensor_parallel_size=2)\n"
    )
    plan = import_plan([str(tmp_path / "service.py")]).plan
    assert (plan.hardware.name, plan.hardware.devices, plan.parallelism.tp) == ("l4", 2, 2)


def test_texts_with_values_written_into_them_are_read(alone) -> None:
    text = (
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nSIZE = '7B'\n"
        "model = AutoModelForCausalLM.from_pretrained(f'Qwen/Qwen2.5-{SIZE}')\n"
        "Trainer(model, args=TrainingArguments(per_device_train_batch_size=2))\n"
    )
    assert alone("train.py", text).plan.model.name == "qwen2.5-7b"


def test_a_model_that_sagemaker_serves_is_read_with_its_machine(tmp_path) -> None:
    (tmp_path / "deploy.py").write_text(
        "import json\nfrom sagemaker.huggingface import HuggingFaceModel\n"
        "settings = {'HF_MODEL_ID': 'Qwen/Qwen3-8B', 'SM_NUM_GPUS': json.dumps(4), 'MAX_INPUT_LENGTH': '2048',\n"
        "            'MAX_TOTAL_TOKENS': '4096'}\nmodel = HuggingFaceModel(role=role, env=settings)\n"
        "model.deploy(initial_instance_count=2, instance_type='ml.g5.12xlarge')\n"
    )
    plan = import_plan([str(tmp_path / "deploy.py")]).plan
    assert (plan.model.name, plan.hardware.name, plan.hardware.devices) == ("qwen3-8b", "aws-g5-12xlarge", 8)
    assert (plan.parallelism.tp, plan.inference.prompt_tokens, plan.inference.output_tokens) == (4, 2048, 2048)


def test_scripts_that_start_each_other_are_all_read(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192\nbash b.sh\n")
    (tmp_path / "b.sh").write_text("bash a.sh\n")
    plan = import_plan((str(tmp_path),), {"hardware.name": "l40s"}).plan
    assert plan.model.name == "qwen2.5-7b"
