"""Programs that tools have beside their best known ones, scripts under names of one's own, and several commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.imports import known_tools
from capacity_tui.engine.plan.options.tools import tools


def remarks(imported) -> list[str]:
    """Return why options are not modelled."""
    return [one.why for reading in imported.readings for one in reading.unmodelled]


_PICTURES = (
    "accelerate launch {} --pretrained_model_name_or_path=black-forest-labs/FLUX.1-dev --output_dir=out "
    "--mixed_precision=bf16 --resolution=1024 --train_batch_size=2 {} --max_train_steps=500 --validation_prompt=dog\n"
)


@pytest.mark.parametrize(
    ("script", "options", "method", "rank"),
    [
        ("flux_train.py", "--rank=16", "lora", 16),
        ("flux_train.py", "", None, None),
        ("train_dreambooth_lora_flux.py", "", "lora", 4),
    ],
)
def test_options_of_diffusers_are_read_of_a_script_of_ones_own(
    alone, script: str, options: str, method: str | None, rank: int | None
):
    plan = alone("run.sh", _PICTURES.format(script, options)).plan
    assert (plan.task, plan.value("model.name"), plan.value("training.micro_batch")) == ("finetune", "flux.1-dev", 2)
    assert (plan.value("training.method"), plan.value("training.adapter.rank")) == (method, rank)


_SD_SCRIPTS = """
[model_arguments]
pretrained_model_name_or_path = "/models/Stable-diffusion/{}.safetensors"
no_half_vae = true

[training_arguments]
train_batch_size = 6
max_train_epochs = 30
mixed_precision = "bf16"
gradient_checkpointing = true
resolution = "1024,1024"
cache_latents = true

[network_arguments]
network_module = "networks.lora"
network_dim = 32
"""


@pytest.mark.parametrize(
    ("program", "weights", "model"),
    [
        ("sdxl_train_network.py", "own_mixture_v1", "stable-diffusion-xl"),
        ("flux_train_network.py", "own_mixture_v1", "flux.1-dev"),
        ("", "stable-diffusion-xl-base-1.0", "stable-diffusion-xl"),
        ("", "own_mixture_v1", "auto"),
    ],
)
def test_files_and_commands_of_sd_scripts_are_read(alone, tmp_path: Path, program: str, weights: str, model: str):
    (tmp_path / "own.toml").write_text(_SD_SCRIPTS.format(weights))
    command = f"accelerate launch --num_processes 2 {program} --config_file own.toml --optimizer_type AdamW8bit\n"
    imported = alone("run.sh", command) if program else alone("own.toml", _SD_SCRIPTS.format(weights))
    plan = imported.plan
    assert (plan.task, plan.value("model.name"), plan.value("training.method")) == ("finetune", model, "lora")
    assert (plan.value("training.micro_batch"), plan.value("training.adapter.rank")) == (6, 32)
    assert (plan.value("training.precision"), plan.value("training.checkpointing")) == ("bf16", "full")
    assert plan.value("model.spec.image_size") == 1024
    assert plan.value("training.optimizer") == ("adamw8bit" if program else "adamw")
    assert not [remark for reading in imported.readings for remark in (*reading.unknown, *reading.unmodelled)]
    assert not any(guess.startswith("training.seq_len") for guess in imported.guesses if model != "auto")


@pytest.mark.parametrize(
    ("weights", "model"),
    [
        ("Qwen3-4B/model-00001-of-00002.safetensors", "qwen3-4b"),
        ("Qwen3-4B/consolidated.00.pth", "qwen3-4b"),
        ("Qwen3-4B/our_own_mixture.safetensors", "auto"),
        ("outputs/Qwen3-4B.safetensors", "qwen3-4b"),
    ],
)
def test_a_file_of_weights_is_of_the_model_of_its_folder_unless_it_has_a_name_of_its_own(
    alone, weights: str, model: str
):
    text = f"python run_clm.py --model_name_or_path /data/models/{weights} --per_device_train_batch_size 4 --do_train\n"
    assert alone("run.sh", text).plan.value("model.name") == model


_CHATS = "llamafactory-cli chat --model_name_or_path Qwen/Qwen3-8B --template qwen --infer_backend huggingface\n"

_TRAINS = (
    "llamafactory-cli train --stage sft --do_train true --finetuning_type full --model_name_or_path Qwen/Qwen3-4B "
    "--per_device_train_batch_size 4 --cutoff_len 512\n"
)


def test_of_several_commands_the_one_that_trains_counts(alone):
    imported = alone("run.sh", _CHATS + _TRAINS)
    assert (imported.plan.is_inference, imported.plan.value("model.name")) == (False, "qwen3-4b")
    assert any(why.startswith("a second command, of another model (Qwen/Qwen3-8B)") for why in remarks(imported))


def test_a_command_that_answers_is_known_and_has_nothing_of_a_training(alone):
    imported = alone("run.sh", _CHATS)
    assert imported.plan.is_inference
    assert remarks(imported) == []
    assert not [path for path in imported.settings if path.startswith("training.")]


_SERVES = "llama-server -m ~/models/Qwen3-8B-Q8_0.gguf --ctx-size 8192\n"

_BROKEN = "llama-server -m ~/models/Qwen3-8B-Q8_0 gemma-2-2b-it-q8_0.gguf --ctx-size 4096\n"


@pytest.mark.parametrize("text", [_SERVES + _BROKEN, _BROKEN + _SERVES])
def test_a_command_that_cannot_be_read_leaves_the_others(alone, text: str):
    imported = alone("serve.sh", text)
    assert imported.plan.value("model.name") == "qwen3-8b"
    words = "~/models/Qwen3-8B-Q8_0 gemma-2-2b-it-q8_0.gguf"
    assert remarks(imported) == [f"not allowed {words!r}: this command is not read"]


def test_a_command_that_cannot_be_read_alone_is_refused_in_its_own_words(alone):
    with pytest.raises(CapacityError) as refused:
        alone("serve.sh", _BROKEN)
    assert "Qwen3-8B-Q8_0 gemma-2-2b-it" in str(refused.value)
    assert "[" not in str(refused.value)


def test_the_checkpoint_of_slime_is_its_model_where_nothing_else_names_one(alone):
    text = (
        "source /root/slime/scripts/models/qwen3-4B.sh\npython3 train.py --hf-checkpoint /root/Qwen3-4B {} "
        "--rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 8192 --global-batch-size 256 "
        "--actor-num-nodes 1 --actor-num-gpus-per-node 8\n"
    )
    assert alone("run.sh", text.format("")).plan.value("model.name") == "qwen3-4b"
    sizes = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 32000"
    assert alone("run.sh", text.format(sizes)).plan.value("model.name") == "transformer_decoder"


@pytest.mark.parametrize(
    ("name", "is_missing"),
    [("zero3", False), ("zero0", False), ("zero3.json", True), ("configs/ds_z3_config.json", True)],
)
def test_what_comes_with_a_tool_is_no_missing_file(alone, name: str, is_missing: bool):
    text = f"swift sft --model Qwen/Qwen3-4B --train_type lora --deepspeed {name} --per_device_train_batch_size 1\n"
    imported = alone("run.sh", text)
    assert imported.plan.value("parallelism.zero") == (0 if name == "zero0" else 3)
    assert any("is not there" in why for why in remarks(imported)) is is_missing


def test_a_base_of_gptq_counts_before_what_bitsandbytes_would_make(alone):
    text = (
        "base_model: TheBloke/Llama-2-7B-GPTQ\nadapter: lora\nlora_r: 8\nlora_target_linear: true\ngptq: {}\n"
        "load_in_8bit: true\nsequence_len: 2048\nmicro_batch_size: 1\ndatasets: []\noutput_dir: out\n"
    )
    typed = {"model.name": "llama-2-7b"}
    assert alone("axolotl.yaml", text.format("true"), typed).plan.value("training.quantization") == "gptq-4"
    plain = text.format("false").replace("TheBloke/Llama-2-7B-GPTQ", "meta-llama/Llama-2-7b-hf")
    assert alone("axolotl.yaml", plain, typed).plan.value("training.quantization") == "int8"


def test_a_refusal_names_the_nearest_tools_and_where_all_are(alone):
    with pytest.raises(CapacityError) as refused:
        alone("own.yaml", "micro_batch_size: 1\nlora_r: 8\nsky: 1\nsea: 1\nsun: 1\nmoon: 1\ntree: 1\n")
    hint = refused.value.hint
    assert hint.startswith("nearest: ")
    assert "of 7 options known" in hint
    assert "capacity-tui help import" in hint
    assert len(hint) < 250


def test_names_of_tools_are_whole_without_their_releases():
    assert {"EasyR1", "TRL", "vLLM", "Transformers"} <= {*known_tools()}
    assert not [name for name in known_tools() if not name.strip()]
    assert tools()["trl"].short_name == "TRL"


_DETECTS = "from ultralytics import YOLO\n\n"

_OPTIONS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--epochs', default=10)\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", "yolo detect train model=yolo11m.pt data=coco.yaml epochs=50 imgsz=1280 batch=32 device=0,1\n"),
        ("a.py", f"{_DETECTS}YOLO('yolo11m.pt').train(data='x', epochs=50, imgsz=1280, batch=32, device=[0, 1])\n"),
        ("b.py", f"{_DETECTS}net = YOLO('yolo11m.pt')\nnet.train(epochs=50, imgsz=1280, batch=32, device='0,1')\n"),
    ],
)
def test_training_of_ultralytics_is_read_in_commands_and_in_python(alone, name: str, text: str):
    imported = alone(name, text)
    plan = imported.plan
    assert (plan.value("model.name"), plan.value("training.epochs"), plan.value("hardware.devices")) == (
        "yolo11m",
        50,
        2,
    )
    assert (plan.value("model.spec.image_size"), plan.value("training.micro_batch")) == (1280, 16)
    assert (plan.value("training.global_batch"), plan.value("training.precision")) == (32, "fp16")
    assert not [remark for reading in imported.readings for remark in (*reading.unknown, *reading.unmodelled)]


def test_options_of_a_script_that_trains_with_ultralytics_are_read(alone, tmp_path: Path):
    made = "arguments = parser.parse_args()\nmodel = YOLO('yolov8m.pt')\nmodel.train(epochs=arguments.epochs)\n"
    (tmp_path / "train.py").write_text(_OPTIONS + _DETECTS + made)
    imported = alone("run.sh", "python train.py --epochs 30\n")
    assert (imported.plan.value("model.name"), imported.plan.value("training.epochs")) == ("yolov8m", 30)
    assert remarks(imported) == []


def test_a_detector_that_only_looks_is_no_training(alone):
    with pytest.raises(CapacityError, match="no call of a known tool"):
        alone("look.py", f"{_DETECTS}YOLO('yolo11m.pt').predict('street.jpg')\n")


@pytest.mark.parametrize("batch", ["-1", "0.7"])
def test_a_batch_that_fills_the_memory_is_counted_as_the_usual_one_and_named(alone, batch: str) -> None:
    text = f"from ultralytics import YOLO\nYOLO('yolo11m.pt').train(data='d.yaml', imgsz=[640, 480], batch={batch})\n"
    imported = alone("t.py", text)
    assert (imported.plan.training.micro_batch, imported.plan.model.spec["image_size"]) == (16, 640)
    assert imported.plan.hardware.devices == 1, "the tool takes one device unless it is told others"
    assert any("as many as fit" in remark.why for part in imported.readings for remark in part.unmodelled)


def test_what_measures_megatron_bridge_is_told_sizes_over_those_of_a_recipe(alone) -> None:
    sizes = "-ng 64 -gn 8 -gb 128 -mb 1 -tp 4 -pp 4 -rl 20 -c fp8_mx -sl 8192"
    imported = alone(
        "run.sh",
        f"uv run python scripts/performance/setup_experiment.py -a us -m llama -mr llama3_70b {sizes} -g h100\n",
        {"hardware.devices": 64},
    )
    plan = imported.plan
    assert (plan.model.name, plan.training.precision, plan.training.steps) == ("llama-3-70b", "fp8", 50)
    assert (plan.parallelism.tp, plan.parallelism.pp, plan.training.checkpointing) == (4, 4, "full")
    (remark,) = [one.why for reading in imported.readings for one in reading.unmodelled]
    assert remark.startswith("what the recipe sets itself")


@pytest.mark.parametrize(("base", "told"), [("Trainer", 1), ("trl.GRPOTrainer", 0)])
def test_a_trainer_of_ones_own_under_a_known_name_is_said(alone, tmp_path: Path, base: str, told: int) -> None:
    (tmp_path / "own.py").write_text(
        f"import trl\nfrom transformers import Trainer\nclass GRPOTrainer({base}):\n    pass\n"
    )
    imported = alone(
        "train.py",
        "from trl import GRPOConfig\nfrom own import GRPOTrainer\n"
        "GRPOTrainer(model='Qwen/Qwen3-8B', args=GRPOConfig(), reward_funcs=[]).train()\n",
    )
    whys = [one.why for reading in imported.readings for one in reading.unmodelled]
    assert sum("is not of the library that is known" in why for why in whys) == told
