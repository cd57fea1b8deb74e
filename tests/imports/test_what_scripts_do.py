"""What a script does itself, or a job around it says, counts; and a switch that is off is off."""

from __future__ import annotations

from pathlib import Path

import pytest

LIBRARIES = (
    "import os\nimport sys\nimport torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
)
LOADED = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
TRAINED = "Trainer(model=model, args=arguments).train()\n"
ARGUMENTS = "arguments = TrainingArguments(output_dir='x', per_device_train_batch_size=2, bf16=True)\n"


def remarks(imported) -> dict[str, str]:
    """Return why options are not modelled, and the nearest of those that are not known, by their names."""
    readings = imported.readings
    return {
        str(one.place.field): one.why for one in (r for part in readings for r in (*part.unmodelled, *part.unknown))
    }


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("sft.yaml", "dataset_name: x\ngradient_checkpointing: false\n", "checkpointing", "none"),
        ("sft.yaml", "dataset_name: x\ngradient_checkpointing: true\n", "checkpointing", "full"),
        ("sft.yaml", "dataset_name: x\n", "checkpointing", "full"),
        ("lf.yaml", "stage: sft\ntemplate: qwen\ngradient_checkpointing: false\n", "checkpointing", "full"),
        ("lf.yaml", "stage: sft\ntemplate: qwen\ndisable_gradient_checkpointing: true\n", "checkpointing", "none"),
        ("a.yaml", "adapter: lora\nmicro_batch_size: 1\nbf16: false\nfp16: true\n", "precision", "fp16"),
        ("a.yaml", "adapter: lora\nmicro_batch_size: 1\nbf16: false\nfp16: false\n", "precision", "fp32"),
        ("a.yaml", "adapter: lora\nmicro_batch_size: 1\nbf16: false\ntf32: true\n", "precision", "tf32"),
        ("a.yaml", "adapter: lora\nmicro_batch_size: 1\n", "precision", "bf16"),
    ],
)
def test_a_switch_that_is_off_is_off(alone, name: str, text: str, field: str, value: str) -> None:
    model = "base_model" if name == "a.yaml" else "model_name_or_path"
    assert alone(name, f"{model}: Qwen/Qwen2.5-7B\n{text}").plan.value(f"training.{field}") == value


@pytest.mark.parametrize(
    ("options", "zero", "checkpointing"),
    [
        ("", 1, "selective"),
        ("--use_distributed_optimizer false --recompute_granularity none", 0, "none"),
        ("--use_distributed_optimizer true --recompute_granularity full", 1, "full"),
    ],
)
def test_what_megatron_of_swift_is_told_to_leave_out_is_left_out(alone, options: str, zero: int, checkpointing: str):
    plan = alone("run.sh", f"megatron sft --model Qwen/Qwen2.5-7B --max_epochs 3 {options}\n").plan
    assert (plan.value("parallelism.zero"), plan.value("training.checkpointing")) == (zero, checkpointing)
    assert plan.value("training.epochs") == 3


@pytest.mark.parametrize(
    ("step", "compiled"),
    [
        ("model = torch.compile(model)\n", True),
        ("if torch.__version__ >= '2' and sys.platform != 'win32':\n    model = torch.compile(model)\n", True),
        ("if hasattr(torch, 'compile'):\n    model = torch.compile(model, mode='max-autotune')\n", True),
        ("loss = torch.compile(loss)\n", False),
        ("@torch.compile(dynamic=True)\ndef loss(model):\n    pass\n", False),
        ("import re\npattern = re.compile('model')\n", False),
        ("", False),
    ],
)
def test_a_model_that_a_script_compiles_itself_is_compiled(alone, step: str, compiled: bool) -> None:
    plan = alone("train.py", f"{LIBRARIES}{LOADED}{step}{ARGUMENTS}{TRAINED}").plan
    assert plan.value("training.compile") is compiled


@pytest.mark.parametrize("call", ["gradient_checkpointing_enable", "torch.compile"])
def test_what_only_a_run_tells_of_a_model_is_named(alone, call: str) -> None:
    step = "torch.compile(model)" if call == "torch.compile" else f"model.{call}()"
    text = f"{LIBRARIES}{LOADED}if wanted():\n    {step}\n{ARGUMENTS}{TRAINED}"
    imported = alone("train.py", text)
    assert (imported.plan.value("training.compile"), imported.plan.value("training.checkpointing")) == (False, "none")
    assert remarks(imported)[call] == "only running the script tells wanted(): the tool's default counts"


@pytest.mark.parametrize(("given", "base"), [("", None), (", quantization_config=quantized", "int8")])
def test_settings_that_a_script_makes_and_never_uses_do_not_count(alone, given: str, base: str | None) -> None:
    text = (
        f"{LIBRARIES}quantized = BitsAndBytesConfig(load_in_8bit=True)\n"
        f"model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B'{given})\n"
        f"model = get_peft_model(model, LoraConfig(r=8))\n{ARGUMENTS}{TRAINED}"
    )
    assert alone("train.py", text).plan.value("training.quantization") == base


@pytest.mark.parametrize(
    ("change", "batch", "remark"),
    [
        ("", 2, None),
        ("arguments.per_device_train_batch_size = 16\n", 16, None),
        ("if False:\n    arguments.per_device_train_batch_size = 16\n", 2, None),
        ("other = Other()\nother.per_device_train_batch_size = 16\n", 2, None),
        ("if wanted():\n    arguments.per_device_train_batch_size = 16\n", 8, "only running the script tells"),
    ],
)
def test_what_a_script_sets_later_counts(alone, change: str, batch: int, remark: str | None) -> None:
    imported = alone("train.py", f"{LIBRARIES}{LOADED}{ARGUMENTS}{change}{TRAINED}")
    assert imported.plan.value("training.micro_batch") == batch
    assert remarks(imported).get("per_device_train_batch_size", "").startswith(remark or "")


def test_arguments_that_come_in_a_mapping_count_or_are_named(alone) -> None:
    call = "arguments = TrainingArguments(output_dir='x', **more)\n"
    known = alone("train.py", f"{LIBRARIES}{LOADED}more = {{'per_device_train_batch_size': 4}}\n{call}{TRAINED}")
    assert (known.plan.value("training.micro_batch"), remarks(known)) == (4, {})
    unknown = alone("train.py", f"{LIBRARIES}{LOADED}more = load(sys.argv[1])\n{call}{TRAINED}")
    assert remarks(unknown)["**more"] == "only running the script tells more: what it gives is not read"


@pytest.mark.parametrize(
    "path",
    [
        "ROOT / 'models' / 'Qwen2.5-7B'",
        "str(Path(__file__).parent / 'Qwen2.5-7B')",
        "os.path.join(os.environ['HOME'], 'models', 'Qwen2.5-7B')",
    ],
)
def test_a_model_that_a_script_puts_together_is_read(alone, path: str) -> None:
    text = (
        f"{LIBRARIES}ROOT = Path(__file__).resolve().parents[1]\nPATH = {path}\n"
        f"model = AutoModelForCausalLM.from_pretrained(PATH)\n{ARGUMENTS}{TRAINED}"
    )
    assert alone("train.py", text).plan.value("model.name") == "qwen2.5-7b"


OWN = (
    "import torch\nfrom peft import LoraConfig\nparser.add_argument('--batch_size', type=int)\n"
    "parser.add_argument('--width', type=int)\narguments = parser.parse_args()\n"
    "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
    "def adapters(rank):\n    return LoraConfig(r=rank)\n"
    "model = get_peft_model(model, adapters(arguments.width))\n"
    "loader = Batches(texts, batch_size=arguments.batch_size, shuffle=True, seed=arguments.seed)\n"
)


def test_an_option_of_a_script_itself_that_reaches_no_known_call_is_named(alone, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OWN)
    imported = alone("run.sh", "python train.py --batch_size 4 --width 32 --seed 7 --shuffle\n")
    assert imported.plan.value("training.adapter.rank") == 32
    assert remarks(imported).keys() == {"--batch_size"}, "what nothing known reads of a run"


@pytest.mark.parametrize(
    ("head", "command", "devices", "per_node"),
    [
        ("#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n", "srun deepspeed train.py", 8, 4),
        ("#SBATCH --gpus-per-node=a100:2\n", "accelerate launch train.py", 2, None),
        ("#SBATCH --gres=gpu:4\n", "torchrun --nproc_per_node=2 train.py", 2, None),
        ("#SBATCH --gres=gpu:4\n", "CUDA_VISIBLE_DEVICES=0 python train.py", 1, None),
        ("", "srun --nodes=1 --gpus-per-node=3 deepspeed train.py", 3, None),
        ("", "srun -n 1 --gres=gpu:2 python train.py", 2, None),
    ],
)
def test_a_job_of_slurm_has_the_devices_that_it_asks_for(
    written, head: str, command: str, devices: int, per_node: int | None
) -> None:
    options = "--output_dir x --per_device_train_batch_size 1 --bf16"
    imported = written("job.sh", f"#!/bin/bash\n{head}{command} {options}\n", hardware__devices=None)
    assert imported.plan.value("hardware.devices") == devices
    assert imported.plan.hardware.per_node == per_node


def test_a_script_that_another_one_writes_and_submits_is_read(written) -> None:
    text = (
        "name=job\ncat >$name <<EOD\n#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n"
        "srun litgpt finetune_lora meta-llama/Llama-3.2-1B --train.epochs 2\nEOD\nsbatch $name\n"
    )
    imported = written("submit.sh", text, model__name=None, hardware__devices=None)
    plan = imported.plan
    assert (plan.value("hardware.devices"), plan.value("training.epochs")) == (8, 2)
    assert plan.value("training.method") == "lora"


@pytest.mark.parametrize(
    ("key", "is_named"),
    [
        ("expert_tensor_size_of_layers: 2", True),
        ("recompute_some_layers: true", True),
        ("recompute_some_layers: false", False),
        ("log_interval_of_steps: 4", False),
        ("colour: red", False),
    ],
)
def test_a_key_of_a_section_that_tells_of_memory_or_time_is_named(alone, key: str, is_named: bool) -> None:
    text = (
        "model:\n  model_config: {num_hidden_layers: 4, hidden_size: 256, num_attention_heads: 4, vocab_size: 1024}\n"
        f"tokens: {{micro_batch_size: 2, sequence_length: 512}}\nparallelism:\n  dp: 2\n  {key}\n"
    )
    assert (f"parallelism.{key.partition(':')[0]}" in remarks(alone("config.yaml", text))) is is_named


@pytest.mark.parametrize(
    ("name", "preference"), [("dpo_tune_cache.py", "dpo"), ("finetune.py", "none"), ("grpo_fast.py", "grpo")]
)
def test_scripts_of_open_instruct_are_read(alone, name: str, preference: str) -> None:
    options = (
        "--model_name_or_path meta-llama/Llama-3.1-8B --max_seq_length 2048 --per_device_train_batch_size 1 "
        "--gradient_accumulation_steps 8 --num_train_epochs 1 --dataset_mixer_list a 1.0 --with_tracking"
    )
    plan = alone("run.sh", f"torchrun --nproc_per_node 4 open_instruct/{name} {options}\n").plan
    assert (plan.value("training.global_batch"), plan.value("training.seq_len")) == (32, 2048)
    assert (plan.value("training.preference"), plan.value("training.checkpointing")) == (preference, "none")


def test_a_file_of_options_of_torchtitan_that_is_not_there_is_named(written) -> None:
    command = "torchrun --nproc_per_node 8 -m torchtitan.train --job.config_file ./mine.toml\n"
    assert remarks(written("run.sh", command))["--job.config_file"] == "mine.toml is not there: give it too"


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ("--max-seq-length 8192", "training.seq_len", 8192),
        ("--micro_batch_size 4", "training.micro_batch", 4),
        ("--grad_accum 16 --micro_batch_size 1", "training.global_batch", 128),
        ("--gradient_checkpointing", "training.checkpointing", "full"),
        ("--use_qlora", "training.method", "qlora"),
        ("--train_type qlora", "training.method", "qlora"),
    ],
)
def test_an_option_of_a_script_itself_is_read_by_its_name_and_that_is_named(
    alone, tmp_path: Path, options: str, field: str, value: object
) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
        "trainer = Trainer(model=model, train_dataset=packed(settings))\ntrainer.train()\n"
    )
    imported = alone("run.sh", f"python train.py {options} --out_dir x\n")
    assert imported.plan.value(field) == value
    name = options.split(maxsplit=1)[0]
    assert remarks(imported)[name] == "an option of train.py itself: read by its name"


def test_what_a_known_call_says_goes_before_the_name_of_an_option(alone, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        f"{LIBRARIES}{LOADED}arguments = TrainingArguments(per_device_train_batch_size=2, bf16=True)\n{TRAINED}"
    )
    imported = alone("run.sh", "python train.py --per_device_batch_size 16 --own_thing 3\n")
    assert imported.plan.value("training.micro_batch") == 2


@pytest.mark.parametrize(
    ("adapted", "method", "rank"),
    [
        ("model = get_peft_model(model, made_elsewhere())\n", "lora", "given by no file"),
        ("model = get_peft_model(model, LoraConfig(r=64))\n", "lora", None),
        ("", None, None),
    ],
)
def test_adapters_whose_settings_stand_elsewhere_are_still_adapters(alone, adapted: str, method, rank) -> None:
    imported = alone("train.py", f"{LIBRARIES}{LOADED}{adapted}{ARGUMENTS}{TRAINED}")
    assert imported.plan.value("training.method") == method
    assert any("training.adapter.rank" in guess for guess in imported.guesses) is (rank is not None)


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("for weight in model.parameters():\n    weight.requires_grad = False\n", True),
        ("model.vision.requires_grad_(False)\n", True),
        ("ref_model.requires_grad_(False)\n", False),
        ("model.requires_grad_(False)\nmodel = get_peft_model(model, LoraConfig(r=8))\n", False),
        ("", False),
    ],
)
def test_parts_that_a_script_freezes_are_named(alone, text: str, is_named: bool) -> None:
    imported = alone("train.py", f"{LIBRARIES}{LOADED}{text}{ARGUMENTS}{TRAINED}")
    assert ("requires_grad" in remarks(imported)) is is_named


@pytest.mark.parametrize(
    ("switch", "checkpointing", "is_named"),
    [("True", "full", False), ("False", "none", False), ("wanted()", "none", True)],
)
def test_a_function_that_is_left_early_does_nothing_more(
    alone, switch: str, checkpointing: str, is_named: bool
) -> None:
    text = (
        "def prepare(model, enabled):\n    if not enabled:\n        return\n"
        "    if hasattr(model, 'gradient_checkpointing_enable'):\n        model.gradient_checkpointing_enable()\n"
        f"prepare(model, {switch})\n"
    )
    imported = alone("train.py", f"{LIBRARIES}{LOADED}{text}{ARGUMENTS}{TRAINED}")
    assert imported.plan.value("training.checkpointing") == checkpointing
    assert ("gradient_checkpointing_enable" in remarks(imported)) is is_named


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node=2 $(which swift) sft",
        "torchrun --nproc_per_node 2 swift sft",
        "srun --export=ALL,OMP_NUM_THREADS=8 --gres=gpu:2 swift sft",
    ],
)
def test_a_program_of_two_words_behind_a_launcher_is_read(written, command: str) -> None:
    text = f"{command} --model Qwen/Qwen3-8B --train_type lora --lora_rank 16 --max_length 4096\n"
    plan = written("run.sh", text, model__name=None, hardware__devices=None).plan
    assert (plan.value("hardware.devices"), plan.value("training.adapter.rank")) == (2, 16)


def test_a_script_of_any_name_with_options_of_torchtitan_is_torchtitan(written, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nbatch_size = 3\nseq_len = 4096\n'
        "tensor_parallel_degree = 8\ncompile = true\n"
    )
    command = "torchrun --nproc_per_node 8 ./train.py --job.config_file ./own.toml\n"
    plan = written("run.sh", command, model__name=None, hardware__devices=None).plan
    assert (plan.value("training.micro_batch"), plan.value("parallelism.tp")) == (3, 8)
    assert plan.value("training.compile") is True


def test_how_many_an_array_has_is_what_only_the_shell_knows(written) -> None:
    text = (
        'IFS="," read -ra SEEN <<< "$LIST"\nN="${N:-${#SEEN[@]}}"\n'
        "accelerate launch --num_processes $N train.py --output_dir x --per_device_train_batch_size 1\n"
    )
    assert "--num_processes" in remarks(written("run.sh", text))


@pytest.mark.parametrize(
    ("options", "micro"),
    [("--train.global_batch_size 64", 1), ("--train.global_batch_size 64 --train.micro_batch_size 4", 4), ("", 1)],
)
def test_a_tool_accumulates_up_to_the_batch_that_it_is_told(written, options: str, micro: int) -> None:
    text = f"litgpt finetune_full meta-llama/Llama-3.2-1B --devices 4 {options}\n"
    plan = written("run.sh", text, model__name=None, hardware__devices=None).plan
    assert (plan.value("training.micro_batch"), plan.value("training.global_batch")) == (micro, 64 if options else 16)


@pytest.mark.parametrize(
    ("name", "method", "base"),
    [
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "qlora", "nf4"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-GPTQ-INT4", "lora", "gptq-4"),
        ("meta-llama/Meta-Llama-3.1-8B", "lora", None),
    ],
)
def test_adapters_on_a_base_whose_name_says_its_format_are_on_that(
    alone, name: str, method: str, base: str | None
) -> None:
    text = f"base_model: {name}\nadapter: lora\nmicro_batch_size: 1\nsequence_len: 2048\n"
    plan = alone("a.yaml", text).plan
    assert (plan.value("training.method"), plan.value("training.quantization")) == (method, base)


def test_adapters_of_a_mapping_that_a_script_partly_says_count(alone) -> None:
    text = (
        f"{LIBRARIES}RANK = 24\nmodel = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-7B', load_in_4bit=False)\n"
        "settings = {'r': RANK, 'lora_alpha': 8, 'target_modules': chosen()}\n"
        f"model = FastLanguageModel.get_peft_model(model, **settings)\n{ARGUMENTS}{TRAINED}"
    )
    imported = alone("train.py", text)
    assert (imported.plan.value("training.method"), imported.plan.value("training.adapter.rank")) == ("lora", 24)
    assert remarks(imported)["target_modules"].startswith("only running the script tells chosen()")


def test_what_an_image_is_entered_by_is_what_runs(written) -> None:
    text = (
        "docker run --rm --gpus all --entrypoint python3 mine/verl:3 -m recipe.dapo.main_dapo \\\n"
        "  actor_rollout_ref.model.path=/models/gemma-2-2b-it data.max_prompt_length=192 \\\n"
        "  data.max_response_length=512 \\\n"
        "  actor_rollout_ref.actor.ppo_mini_batch_size=96 actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=4\n"
    )
    plan = written("run.sh", text, model__name=None, hardware__devices=None).plan
    assert (plan.value("training.seq_len"), plan.value("hardware.devices")) == (704, 4)


def test_a_name_that_a_branch_only_reads_depends_on_no_condition(alone, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        f"{OWN}if arguments.batch_size > 1:\n    print(model)\nmodel = get_peft_model(model, LoraConfig(r=4))\n"
    )
    assert "--batch_size" in remarks(alone("run.sh", "python train.py --batch_size 4 --width 32\n"))


def test_variables_before_one_script_are_of_no_other_program(alone, tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("echo $SIZE\n")
    (tmp_path / "train.py").write_text(
        "import os\nfrom transformers import Trainer, TrainingArguments\n"
        "Trainer(args=TrainingArguments(per_device_train_batch_size=int(os.environ.get('SIZE', '2')))).train()\n"
    )
    started = alone("run.sh", "SIZE=64 bash serve.sh\nSIZE=32\npython train.py\n")
    assert started.plan.training.micro_batch != 32
