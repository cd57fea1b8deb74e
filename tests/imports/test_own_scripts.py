"""Scripts of one's own: what they call and are given, on which devices, and what stays open of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.imports import import_plan


@pytest.mark.parametrize(("option", "method"), [("", "lora"), ("--use_lora False", "full"), ("--use_lora 1", "lora")])
def test_a_rank_among_options_of_the_trainer_is_that_of_adapters(alone, option: str, method: str) -> None:
    options = "--model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 4 --bf16 True --num_train_epochs 3"
    imported = alone("run.sh", f"python own.py {options} --lora_r 16 {option}\n")
    assert imported.plan.training.method == method


def test_a_module_that_a_launcher_starts_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nfrom peft import LoraConfig\n"
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-4B')\nadapter = LoraConfig(r=16)\n"
        "model = get_peft_model(model, adapter)\nTrainer(model=model, args=TrainingArguments()).train()\n"
    )
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 -m train\n")
    plan = import_plan([str(tmp_path / "run.sh")], {"hardware.name": "h100-sxm-80gb"}).plan
    assert (plan.training.method, plan.hardware.devices) == ("lora", 2)


def test_a_job_of_sagemaker_runs_its_script_on_its_machines(tmp_path: Path) -> None:
    (tmp_path / "launch.py").write_text(
        "from sagemaker.huggingface import HuggingFace\nestimator = HuggingFace(entry_point='train.py', "
        "source_dir='code', instance_type='ml.g5.12xlarge', instance_count=2, hyperparameters={"
        "'model_name_or_path': 'Qwen/Qwen3-4B', 'per_device_train_batch_size': 2, 'bf16': True, 'lora_r': 8})\n"
        "estimator.fit()\n"
    )
    plan = import_plan([str(tmp_path / "launch.py")]).plan
    assert (plan.model.name, plan.training.adapter.rank, plan.training.global_batch) == ("qwen3-4b", 8, 16)
    assert (plan.hardware.name, plan.hardware.devices) == ("aws-g5-12xlarge", 8)


def test_a_script_beside_is_read_with_the_options_that_it_is_started_with(alone, tmp_path: Path):
    (tmp_path / "train.py").write_text(
        "from peft import LoraConfig\nparser.add_argument('--adapter_rank', default=4)\n"
        "arguments = parser.parse_args()\nLoraConfig(r=arguments.adapter_rank)\n"
        "Trainer(args=TrainingArguments(per_device_train_batch_size=arguments.batch, bf16=True))\n"
    )
    imported = alone("run.sh", "CUDA_VISIBLE_DEVICES=0,1 python train.py --adapter_rank 64 --batch 2\n")
    assert (imported.plan.value("training.adapter.rank"), imported.plan.value("training.micro_batch")) == (64, 2)
    assert not [remark for reading in imported.readings for remark in reading.unknown]


@pytest.mark.parametrize(
    ("before", "options", "devices"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1 ", "", 2),
        ("export CUDA_VISIBLE_DEVICES=0\n", "", 1),
        ("CUDA_VISIBLE_DEVICES=0,1 ", "--num_gpus 4", 4),
        ("", "--include=localhost:0,1,2", 3),
        ("", "--include worker-1:0,1@worker-2:0,1", 4),
        ("", "", 8),
    ],
)
def test_devices_that_a_command_sees_are_those_of_the_run(alone, before: str, options: str, devices: int):
    text = f"deepspeed {options} train.py --per_device_train_batch_size 1 --output_dir x --deepspeed $D/zero2.json\n"
    imported = alone("run.sh", before + text)
    assert (imported.plan.value("hardware.devices"), imported.plan.value("parallelism.zero")) == (devices, 2)


@pytest.mark.parametrize(("width", "ffn"), [("intermediate_size: 32768\n", 11008), ("", 5632)])
def test_gated_feed_forwards_of_neox_are_as_wide_as_it_makes_them(alone, width: str, ffn: int):
    text = (
        "pipe_parallel_size: 1\nmodel_parallel_size: 1\nnum_layers: 32\nhidden_size: 4096\nnum_attention_heads: 32\n"
        f"seq_length: 2048\npos_emb: rotary\nactivation: swiglu\nmlp_multiple_of: 256\n{width}"
    )
    assert alone("neox.yml", text).plan.value("model.spec")["ffn"] == ffn


def test_layers_with_a_state_of_neox_are_remarked_on(alone):
    text = "pipe_parallel_size: 1\nnum_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\nseq_length: 512\n"
    imported = alone("neox.yml", f"{text}attention_config: [[[mamba], 2]]\n")
    assert "have a state" in imported.readings[0].unmodelled[0].why


def test_experts_of_foundry_count(alone):
    text = (
        "max_seq_len: 128\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\nmax_duration: 2ba\n"
        "model:\n  name: mpt_causal_lm\n  d_model: 128\n  n_heads: 2\n  n_layers: 2\n  vocab_size: 512\n"
        "  ffn_config: {ffn_type: mb_dmoe, moe_num_experts: 4, moe_top_k: 2}\n"
    )
    spec = alone("foundry.yaml", text).plan.value("model.spec")
    assert (spec["experts"], spec["experts_active"]) == (4, 2)


def test_a_file_of_options_that_a_script_of_ones_own_is_given_counts(alone, tmp_path: Path):
    (tmp_path / "train.py").write_text(
        "from trl import GRPOTrainer\n\nGRPOTrainer(model=arguments.model, args=given)\n"
    )
    (tmp_path / "grpo.yaml").write_text(
        "model_name_or_path: Qwen/Qwen3-4B\nper_device_train_batch_size: 4\nlearning_rate: 1e-6\nnum_generations: 8\n"
        "max_completion_length: 4096\nvllm_max_model_length: 6144\n"
    )
    plan = alone("run.sh", "accelerate launch --num_processes 4 train.py --config grpo.yaml\n").plan
    assert (plan.value("model.name"), plan.value("training.preference"), plan.value("hardware.devices")) == (
        *("qwen3-4b", "grpo"),
        4,
    )
    assert plan.value("training.seq_len") == 6144


@pytest.mark.parametrize(
    ("lengths", "sequence"),
    [
        ("max_prompt_length: 1024\nmax_completion_length: 2048\n", 3072),
        ("max_completion_length: 2048\n", 2560),
        ("max_completion_length: 2048\nvllm_max_model_length: 8192\n", 8192),
    ],
)
def test_sequences_of_grpo_are_prompts_with_their_answers(alone, lengths: str, sequence: int):
    text = "model_name_or_path: Qwen/Qwen3-4B\nper_device_train_batch_size: 4\nnum_generations: 8\noutput_dir: out\n"
    assert alone("grpo.yaml", text + lengths).plan.value("training.seq_len") == sequence


def test_a_configuration_that_only_the_shell_knows_may_train(alone):
    imported = alone("run.sh", 'llamafactory-cli train "$FOLDER/train.yaml"\n')
    assert imported.plan.task != "infer"
    assert "train.yaml" in imported.readings[0].unmodelled[0].why


def test_a_launcher_of_a_program_that_is_not_read_belongs_to_no_other_run(alone):
    text = "vllm serve Qwen/Qwen3-4B --tensor-parallel-size 2\naccelerate launch --num_processes 4 own.py -c x\n"
    plan = alone("run.sh", text).plan
    assert (plan.is_inference, plan.value("hardware.devices")) == (True, 2)


def test_a_script_that_loads_a_model_to_generate_is_of_inference(alone):
    text = "import os\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-4B')\nmodel.generate(**x)\n"
    assert alone("chat.py", text).plan.is_inference


def test_a_folder_that_is_not_here_leaves_the_model_open(alone):
    imported = alone("serve.sh", "vllm serve /weights/own-model --tensor-parallel-size 2\n")
    assert imported.is_fragment
    assert imported.plan.value("parallelism.tp") == 2
    assert "/weights/own-model is not on this machine" in imported.guesses[0]


def test_what_answers_beside_training_is_remarked_on(alone, tmp_path: Path):
    (tmp_path / "judge.py").write_text("from vllm import LLM\n\nLLM('Qwen/Qwen3-4B', tensor_parallel_size=4)\n")
    text = (
        "accelerate launch --num_processes 8 train.py --model_name_or_path Qwen/Qwen3-8B --beta 0.1 \\\n"
        "  --per_device_train_batch_size 2 --output_dir out --max_length 1024\npython judge.py --model out\n"
    )
    imported = alone("run.sh", text)
    assert (imported.plan.task, imported.plan.value("model.name"), imported.clashes) == (None, "qwen3-8b", ())
    assert any("answers beside training" in one.why for reading in imported.readings for one in reading.unmodelled)


def test_a_program_in_an_environment_is_read(alone):
    imported = alone(
        "serve.sh", "conda run -n vllm --no-capture-output vllm serve Qwen/Qwen3-4B --max-model-len 4096\n"
    )
    assert (imported.plan.value("model.name"), imported.readings[0].unknown) == ("qwen3-4b", [])


def test_files_that_named_files_name_are_read_too(alone, tmp_path: Path):
    (tmp_path / "sft.yaml").write_text(
        "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ndo_train: true\nfinetuning_type: full\ncutoff_len: 1024\n"
        "deepspeed: zero.json\n"
    )
    (tmp_path / "zero.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}')
    assert alone("run.sh", "torchrun --nproc_per_node 8 src/train.py sft.yaml\n").plan.value("parallelism.zero") == 2


def test_sequences_that_verl_splits_are_split(alone):
    text = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 \\\n"
        "  trainer.n_gpus_per_node=8 actor_rollout_ref.model.path=Qwen/Qwen3-4B \\\n"
        "  actor_rollout_ref.actor.ulysses_sequence_parallel_size=4\n"
    )
    plan = alone("run.sh", text).plan
    assert (plan.value("parallelism.cp"), plan.value("parallelism.context")) == (4, "all_to_all")


OF_THE_SHELL = (
    "import os\nTrainingArguments(per_device_train_batch_size=int(os.environ.get('BS', 4)), bf16=True,\n"
    "    gradient_accumulation_steps=int(os.environ['ACCUMULATION']))\n"
)


@pytest.mark.parametrize(
    ("before", "batch", "steps"),
    [
        ("BS=16 ACCUMULATION=2 ", 16, 2),
        ("export BS=$((4 * 2))\nACCUMULATION=3\nexport ACCUMULATION\n", 8, 3),
        ("BS=16  # which programs do not see\nexport ACCUMULATION=1\n", 4, 1),
        ("export BS=16 ACCUMULATION=2\nunset -f ACCUMULATION\nunset BS\n", 4, 2),
    ],
)
def test_a_script_sees_the_variables_of_the_shell_that_starts_it(
    alone, tmp_path: Path, before: str, batch: int, steps: int
):
    (tmp_path / "train.py").write_text(OF_THE_SHELL)
    plan = alone("run.sh", f"{before}python train.py\n").plan
    assert (plan.value("training.micro_batch"), plan.value("training.global_batch")) == (batch, batch * steps * 8)


def test_a_container_sees_its_own_variables(alone, tmp_path: Path):
    (tmp_path / "train.py").write_text(OF_THE_SHELL)
    text = (
        "services:\n  train:\n    image: own/training:1\n"
        '    environment: ["BS=${BATCH:-${SMALL:-2}}", ACCUMULATION=4]\n'
        "    command: python train.py\n"
    )
    plan = alone("compose.yml", text).plan
    assert (plan.value("training.micro_batch"), plan.value("training.global_batch")) == (2, 64)


def test_options_that_nobody_reads_are_named(alone, tmp_path: Path):
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 6, "zero_optimization": {"stage": 1}}')
    (tmp_path / "train.py").write_text("import torch\nparser.add_argument('--tag')\n")
    imported = alone("run.sh", "deepspeed --num_gpus=2 train.py --settings ds.json --hidden_states 3200\n")
    assert imported.plan.value("training.micro_batch") == 6
    remarks = {remark.place.field: remark.why for one in imported.readings for remark in one.unmodelled}
    assert remarks == {"--hidden_states": "an option of train.py itself: not read"}


def test_options_alone_name_the_file_that_counts_and_what_nobody_reads(alone, tmp_path: Path):
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 6, "zero_optimization": {"stage": 1}}')
    imported = alone("run.sh", "--settings ds.json --hidden_states 3200\n")
    assert imported.plan.value("training.micro_batch") == 6
    remarks = {remark.place.field: remark.why for one in imported.readings for remark in one.unmodelled}
    assert remarks == {"--hidden_states": "an option of a program that is not named itself: not read"}


def test_a_module_that_a_launcher_starts_is_read_where_it_lies(alone, tmp_path: Path):
    (tmp_path / "src" / "own").mkdir(parents=True)
    (tmp_path / "src" / "own" / "train.py").write_text("import os\nTrainingArguments(per_device_train_batch_size=3)\n")
    imported = alone("run.sh", "accelerate launch --num_processes=4 -m own.train\n")
    assert (imported.plan.value("training.micro_batch"), imported.plan.value("hardware.devices")) == (3, 4)


@pytest.mark.parametrize(("told", "length"), [("", 768), (", max_seq_length=2048", 2048)])
def test_texts_that_a_script_cuts_are_as_long_where_no_trainer_says_otherwise(alone, told: str, length: int):
    text = (
        "import os\nLENGTH = 768\ntokens = tokenizer(texts, truncation=True, max_length=LENGTH)\n"
        f"Trainer(args=TrainingArguments(bf16=True){told})\n"
    )
    assert alone("train.py", text).plan.value("training.seq_len") == length


def test_of_several_cuts_the_longest_counts(alone):
    text = (
        "import os\nlabels = tokenizer(answers, max_length=64)\ntokens = tokenizer(texts, max_length=512)\n"
        "short = tokenizer(titles, max_length=128)\nTrainer(args=TrainingArguments(bf16=True))\n"
    )
    assert alone("train.py", text).plan.value("training.seq_len") == 512


@pytest.mark.parametrize(
    ("command", "path", "value"),
    [
        ("llama-server -m Qwen3-8B-Q8_0.gguf -c 0", "inference.prompt_tokens", 40960 - 512),
        ("CUDA_VISIBLE_DEVICES=0,1 llama-server -m Qwen3-8B-Q8_0.gguf -c 4096", "hardware.devices", 2),
        ("vllm serve Qwen/Qwen3-8B --enable-lora --lora-modules a=/a", "inference.adapters", 1),
        ("vllm serve Qwen/Qwen3-8B --enable-lora --max-loras 4 --max-lora-rank 64", "inference.adapter_rank", 64),
    ],
)
def test_what_a_server_takes_by_itself_counts(alone, command: str, path: str, value: int):
    assert alone("serve.sh", command).plan.value(path) == value


@pytest.mark.parametrize("path", ["/root/Qwen-7B/", "/models/Qwen-7B"])
def test_a_folder_that_is_called_as_a_repository_is_of_its_model(alone, path: str):
    assert alone("serve.sh", f"vllm serve {path} --max-model-len 4096\n").plan.model.name == "qwen1-7b"


def test_a_format_that_no_name_says_is_assumed_aloud(alone):
    assumed = alone("serve.sh", "llama-server -m /models/model.gguf -c 4096\n").guesses
    assert any(guess.endswith("/models/model.gguf does not say their format") for guess in assumed)


def test_the_configuration_of_a_model_is_refused_with_what_takes_it(alone):
    with pytest.raises(PlanError, match="the configuration of a model") as refused:
        alone("config.json", '{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096}')
    assert "--model" in str(refused.value.hint)


_CLICK = '@click.command()\n@click.option("--model-name", default="Qwen/Qwen3-8B")\n@click.option("--batch", default=4)'
_TYPER = "app = typer.Typer()\n@app.command()"


@pytest.mark.parametrize(
    ("decorated", "arguments"),
    [
        (_CLICK, "model_name, batch"),
        (_TYPER, 'model_name: str = typer.Option("Qwen/Qwen3-8B"), batch: int = typer.Option(default=4)'),
    ],
)
@pytest.mark.parametrize(("command", "batch"), [("python train.py", 4), ("python train.py --batch 16", 16)])
def test_arguments_of_functions_that_are_options_have_their_defaults(
    alone, tmp_path: Path, decorated: str, arguments: str, command: str, batch: int
):
    (tmp_path / "train.py").write_text(
        "import click, typer\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f"{decorated}\ndef main({arguments}):\n"
        "    model = AutoModelForCausalLM.from_pretrained(model_name)\n"
        "    Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=batch)).train()\n"
        "main()\n"
    )
    plan = alone("run.sh", f"{command}\n").plan
    assert (plan.model.name, plan.value("training.micro_batch")) == ("qwen3-8b", batch)


def test_options_of_a_script_that_is_not_there_say_checkpoint_and_layout_by_their_names(alone) -> None:
    imported = alone(
        "run.sh",
        "torchrun --nproc_per_node 4 cli/train.py --init_ckpt /pretrained/open_llama_3b_mp4 --max_seq_len 2048\\\n"
        "  --train_steps 1000 --model_parallel_size 4 --pipe_parallel_size 2 --train_micro_batch_size 1\n",
    )
    plan = imported.plan
    assert (plan.model.name, plan.parallelism.tp, plan.parallelism.pp) == ("open-llama-3b", 4, 2)


def test_a_base_in_4_bits_in_options_of_a_script_of_its_own_has_adapters(alone) -> None:
    text = "model_id: Qwen/Qwen3-8B\nmax_seq_length: 384\npacking: true\nlora_r: 32\nuse_4bit: {}\nbf16: true\n"
    imported = alone("sft.yaml", text.format("true"))
    assert (imported.plan.training.method, imported.plan.training.adapter.rank) == ("qlora", 32)
    assert imported.clashes == ()
    assert alone("sft.yaml", text.format("false")).plan.training.adapter is None


_BEHIND = (
    "from peft import LoraConfig, get_peft_model\nfrom transformers import AutoModelForCausalLM, TrainingArguments\n"
    "from trl import SFTTrainer\n"
    "class Creator:\n    def __init__(self, args):\n        self.args = args\n"
    "        self.settings = TrainingArguments(\n            per_device_train_batch_size=self.args.train_batch_size)\n"
    "    def made(self, model):\n        return SFTTrainer(args=self.settings, model=model)\n"
    "def loaded(base, rank):\n    model = AutoModelForCausalLM.from_pretrained(base)\n"
    "    return get_peft_model(model, LoraConfig(r=rank))\n"
)
_BEFORE = (
    "import argparse\nfrom parts import *\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--base_dir', required=True)\nparser.add_argument('--train_batch_size', type=int, default=4)\n"
    "parser.add_argument('--rank', type=int, default=8)\nargs = parser.parse_args()\n"
    "Creator(args).made(loaded(base=args.base_dir, rank=args.rank)).train()\n"
)


def test_a_module_that_trains_for_a_script_is_read_with_what_the_script_gives_it(alone, tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(_BEHIND)
    (tmp_path / "train.py").write_text(_BEFORE)
    imported = alone("run.sh", "torchrun --nproc-per-node 4 train.py --base_dir Qwen/Qwen3-8B --train_batch_size 2\n")
    plan = imported.plan
    assert (plan.model.name, plan.training.adapter.rank, plan.training.micro_batch) == ("qwen3-8b", 8, 2)
    place = imported.settings["training.micro_batch"].place
    assert (Path(place.file).name, place.line) == ("parts.py", 8)
    assert alone("train.py", _BEFORE).plan.value("training.micro_batch") == 4


def test_a_degree_that_is_an_engines_splits_no_model_in_training(alone, tmp_path: Path) -> None:
    script = (
        "import argparse\nfrom trl import GRPOConfig, GRPOTrainer\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--tensor_parallel_size", type=int, default=4)\nargs = parser.parse_args()\n'
        "config = GRPOConfig(use_vllm=True, vllm_tensor_parallel_size=args.tensor_parallel_size)\n"
        "GRPOTrainer(model='Qwen/Qwen3-8B', args=config).train()\n"
    )
    (tmp_path / "train.py").write_text(script)
    plan = alone("run.sh", "torchrun --nproc_per_node 8 train.py --tensor_parallel_size 4\n").plan
    assert plan.parallelism.tp != 4


def test_an_option_that_is_nothing_by_default_is_none_of_the_run(alone) -> None:
    script = (
        "import argparse, torch\nfrom transformers import AutoModelForCausalLM\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--epoch", type=int, default=0)\nargs = parser.parse_args()\n'
        "model = AutoModelForCausalLM.from_pretrained('gpt2')\noptimizer = torch.optim.AdamW(model.parameters())\n"
        "for epoch in range(args.epoch, 3):\n    for batch in torch.utils.data.DataLoader(data, batch_size=2):\n"
        "        model(**batch).loss.backward()\n        optimizer.step()\n"
    )
    assert alone("train.py", script).plan.training.epochs is None
