"""Scripts and files as their authors wrote them: what stands around a run does not change what is read of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.imports import import_plan

MEGATRON = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 2 --seq-length 4096 --bf16"


def unknown(imported) -> list[str]:
    return [remark.place.field for reading in imported.readings for remark in reading.unknown]


def test_commands_of_the_shell_are_no_runs_of_a_tool(alone):
    imported = alone(
        "job.slurm", f"ulimit -c 0\nrm -f x\nsrun numactl --membind=0-3 python3 pretrain_gpt.py {MEGATRON}\n"
    )
    assert [reading.tool.id for reading in imported.readings] == ["megatron"]
    assert (imported.plan.task, imported.plan.value("training.seq_len"), unknown(imported)) == (None, 4096, [])


def test_overrides_behind_a_comment_that_ends_a_command_count(alone):
    text = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 \\\n"
        "  actor_rollout_ref.model.path=$MODELS/Qwen3-4B-Instruct-2507 \\\n  # a remark\n"
        "  trainer.nnodes=2 \\\n  trainer.n_gpus_per_node=4\n"
    )
    plan = alone("run.sh", text).plan
    assert (plan.value("hardware.devices"), plan.value("model.name")) == (8, "qwen3-4b-2507")
    assert plan.value("hardware.per_node") == 4


def test_a_python_script_that_begins_with_its_interpreter_is_no_shell_script(alone):
    text = (
        "#!/usr/bin/env python\nfrom unsloth import FastLanguageModel\n# it's a remark\n"
        'model, tok = FastLanguageModel.from_pretrained(model_name="Qwen/Qwen3-4B", max_seq_length=4096)\n'
        "model = FastLanguageModel.get_peft_model(model, r=32)\n"
    )
    plan = alone("train.py", text).plan
    assert (plan.value("training.seq_len"), plan.value("training.adapter.rank")) == (4096, 32)


def test_what_a_notebook_never_runs_does_not_count(alone):
    text = (
        "from unsloth import FastLanguageModel\n"
        'model, tok = FastLanguageModel.from_pretrained(model_name="Qwen/Qwen3-4B", max_seq_length=4096)\n'
        'if False:\n    model, tok = FastLanguageModel.from_pretrained(model_name="lora_model")\n'
        "model = FastLanguageModel.get_peft_model(model, r=16)\n"
    )
    imported = alone("train.py", text)
    assert (imported.plan.value("model.name"), imported.clashes) == ("qwen3-4b", ())


@pytest.mark.parametrize(("option", "preference"), [("", "dpo"), ("num_generations: 16\n", "grpo")])
def test_a_penalty_means_pairs_only_where_no_answers_are_generated(alone, option: str, preference: str):
    text = f"model_name_or_path: Qwen/Qwen2.5-1.5B\nbeta: 0.01\nmax_prompt_length: 512\nmax_length: 1024\n{option}"
    imported = alone("recipe.yaml", f"{text}per_device_train_batch_size: 4\n")
    assert imported.plan.value("training.preference") == preference
    assert not imported.clashes


@pytest.mark.parametrize(
    ("named", "zero", "offload"),
    [("zero3_bf16.json", 3, "none"), ("ds_z2_offload_config.json", 2, "optimizer"), ("own.json", None, "none")],
)
def test_a_file_that_comes_with_a_tool_is_known_by_its_name(alone, named: str, zero: int | None, offload: str):
    text = f"base_model: Qwen/Qwen3-4B\nsequence_len: 2048\nmicro_batch_size: 1\ndeepspeed: configs/{named}\n"
    imported = alone("axolotl.yml", text)
    assert imported.plan.value("parallelism.zero") == zero
    assert imported.plan.value("parallelism.offload") == offload
    (remark,) = imported.readings[0].unmodelled
    assert ("by its name alone" in remark.why) == bool(zero)


def test_options_of_another_tool_in_one_file_split_the_model(alone):
    text = (
        "stage: sft\ndo_train: true\nfinetuning_type: full\nmodel_name_or_path: Qwen/Qwen3-30B-A3B\ncutoff_len: 4096\n"
        "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\npipeline_model_parallel_size: 4\n"
        "expert_model_parallel_size: 2\nuse_distributed_optimizer: true\nmoe_grouped_gemm: true\n"
    )
    imported = alone("sft.yaml", text)
    plan = imported.plan
    assert [plan.value(f"parallelism.{name}") for name in ("pp", "ep", "zero")] == [4, 2, 1]
    assert (plan.value("training.global_batch"), plan.value("training.framework"), unknown(imported)) == (
        16,
        "megatron",
        [],
    )


def test_a_launcher_says_the_devices_and_a_named_recipe_trains(alone):
    imported = alone("run.sh", "tune run --nproc_per_node 4 full_finetune_distributed --config llama3_1/8B_full\n")
    assert imported.plan.value("hardware.devices") == 4
    assert imported.plan.task != "infer"


@pytest.mark.parametrize(
    ("layers", "expected"), [("[1]*8", (0, 1)), ("([0]*3+[1]*5)", (3, 1)), ("[0,1]*4", (0, 2)), ("2", (0, 2))]
)
def test_layers_with_experts_are_read_as_the_list_that_they_are(alone, layers: str, expected: tuple[int, int]):
    text = f"python pretrain_gpt.py {MEGATRON} --num-experts 4 --moe-layer-freq '{layers}'\n"
    spec = alone("run.sh", text).plan.value("model.spec")
    assert (spec.get("first_dense_layers", 0), spec.get("moe_every", 1)) == expected


def test_a_list_of_more_layers_than_any_model_has_is_refused(alone):
    with pytest.raises(CapacityError, match="moe-layer-freq"):
        alone("run.sh", f"python pretrain_gpt.py {MEGATRON} --num-experts 4 --moe-layer-freq '[1]*9999999999'\n")


def test_experts_of_neox_count(alone):
    text = "num_layers: 4\nhidden_size: 256\nnum_attention_heads: 4\nseq_length: 1024\npipe_parallel_size: 1\n"
    text += "model_parallel_size: 1\ntrain_micro_batch_size_per_gpu: 4\nmoe_num_experts: 8\n"
    spec = alone("neox.yml", text).plan.value("model.spec")
    assert (spec["experts"], spec["experts_active"]) == (8, 1)
    spec = alone("neox.yml", text.replace("8\n", "1\n")).plan.value("model.spec")
    assert "experts" not in spec


def test_a_key_that_is_given_twice_counts_last_as_the_tools_have_it(alone):
    text = "base_model: Qwen/Qwen3-4B\nsequence_len: 1024\nmicro_batch_size: 1\nsequence_len: 4096\n"
    assert alone("axolotl.yml", text).plan.value("training.seq_len") == 4096


def test_keys_that_are_merged_count_below_those_that_are_given(alone):
    text = "shared: &shared {sequence_len: 1024, micro_batch_size: 2}\n<<: *shared\n"
    plan = alone("axolotl.yml", f"{text}base_model: Qwen/Qwen3-4B\nsequence_len: 4096\nadapter: lora\nlora_r: 8\n").plan
    assert (plan.value("training.seq_len"), plan.value("training.micro_batch")) == (4096, 2)


def test_a_name_without_a_tag_is_what_its_library_has(alone):
    assert alone("run.sh", "ollama run llama3.1\n").plan.value("model.name") == "llama-3.1-8b"
    with pytest.raises(CapacityError):
        alone("run.sh", "vllm serve llama3.1\n")


def test_a_recipe_named_alone_says_its_model_and_that_the_rest_is_not_known(alone):
    imported = alone(
        "run.sh",
        "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe llama31_8b_peft_1gpu_h100_bf16_config "
        "-tp 2 train.global_batch_size=32 train.micro_batch_size=1 dataset.seq_length=4096\n",
    )
    plan = imported.plan
    assert (plan.value("model.name"), plan.value("training.method"), plan.value("parallelism.tp")) == (
        "llama-3.1-8b",
        "lora",
        2,
    )
    assert (plan.value("training.global_batch"), plan.value("training.seq_len")) == (32, 4096)
    assert any("recipe sets itself" in remark.why for reading in imported.readings for remark in reading.unmodelled)


def test_a_recipe_in_python_says_the_model_that_it_loads(alone):
    text = (
        "from megatron.bridge import AutoBridge\ndef my_config():\n    cfg = _pretrain_common()\n"
        '    cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").get_model_config()\n'
        "    cfg.dataset.seq_length = 8192\n    cfg.model.tensor_model_parallel_size = 4\n"
        "    cfg.train.global_batch_size = 64\n    cfg.train.micro_batch_size = 2\n    return cfg\n"
    )
    plan = alone("recipe.py", text).plan
    assert [plan.value(path) for path in ("model.name", "parallelism.tp", "training.seq_len")] == ["qwen3-8b", 4, 8192]


def test_rewarded_answers_beside_megatron_are_told_from_pretraining(alone):
    text = (
        f"ray job submit -- python3 train.py {MEGATRON.replace('--seq-length 4096', '')} --actor-num-nodes 1 "
        "--actor-num-gpus-per-node 4 --rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 8192 "
        "--advantage-estimator grpo --tensor-model-parallel-size 2\n"
    )
    plan = alone("run.sh", text).plan
    values = [plan.value(f"training.{name}") for name in ("preference", "seq_len", "global_batch", "precision")]
    assert (values, plan.value("hardware.devices")) == (["grpo", 8192, 256, "bf16"], 4)
    plan = alone("run.sh", text.replace("--advantage-estimator grpo", "--loss-type sft_loss")).plan
    assert plan.value("training.preference") == "none"


def test_commands_of_ms_swift_are_its_own(alone):
    text = (
        "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --torch_dtype bfloat16 --lora_rank 16 "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_length 4096 --deepspeed zero3\n"
    )
    plan = alone("train.sh", text).plan
    names = ("method", "adapter.rank", "micro_batch", "global_batch", "seq_len", "precision", "checkpointing")
    assert [plan.value(f"training.{name}") for name in names] == ["lora", 16, 2, 64, 4096, "bf16", "full"]
    assert plan.value("parallelism.zero") == 3
    megatron = "megatron sft --load Qwen3-30B-A3B-mcore --model Qwen/Qwen3-30B-A3B --expert_model_parallel_size 8"
    plan = alone("train.sh", f"{megatron} --global_batch_size 16 --micro_batch_size 1 --max_length 8192\n").plan
    assert (plan.value("parallelism.ep"), plan.value("training.seq_len"), plan.task) == (8, 8192, "finetune")


def test_a_few_options_of_other_tools_do_not_make_a_file_theirs(alone):
    text = "agent: {base: Qwen/Qwen3-8B, context: 4096, sequences: 64, tower: kept, judge: none}\n"
    text += "game: {rounds_per_step: 32, moves_per_round: 16}\ndata: {max_length: 4096}\n"
    text += "resources: {accelerators: H100:8}\ncheckpointing: {enabled: true, keep_top_k: 3}\n"
    with pytest.raises(CapacityError, match="no known tool"):
        alone("recipe.yaml", text)


def test_batches_that_are_counted_in_tokens_are_sequences(alone):
    text = (
        "from torchtitan.models.llama3.config_registry import llama3_8b\nconfig = llama3_8b()\n"
        "config.training.max_context_length = 4096\nconfig.training.num_tokens_per_microbatch_per_dp_rank = 4 * 4096\n"
        "config.training.num_tokens_per_train_step = 64 * 4096\n"
    )
    plan = alone("config.py", text).plan
    assert [plan.value(f"training.{name}") for name in ("seq_len", "micro_batch", "global_batch")] == [4096, 4, 64]


def test_a_configuration_that_is_returned_in_one_call_is_read_whole(alone):
    text = (
        "from torchtitan.models import qwen3\nfrom torchtitan.trainer import Trainer\n\n\n"
        "def qwen3_8b_long() -> Trainer.Config:\n"
        "    compile = CompileConfig(enable=True)\n"
        '    model_spec = qwen3.model_registry("8B", converters=[Float8LinearConverter.Config(emulate=False)])\n'
        "    return Trainer.Config(\n        model_spec=model_spec, compile=compile, activation_checkpoint=None,\n"
        "        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=151936)),\n"
        "        training=TrainingConfig(local_batch_size=2, seq_len=16384),\n"
        "        parallelism=ParallelismConfig(data_parallel_shard_degree=4, context_parallel_degree=2),\n    )\n"
    )
    plan = alone("config.py", text).plan
    assert plan.model.name == "qwen3-8b"
    training = [plan.value(f"training.{name}") for name in ("seq_len", "micro_batch", "precision", "loss", "compile")]
    assert training == [16384, 2, "fp8", "chunked", True]
    assert plan.value("training.checkpointing") == "none"
    assert (plan.hardware.devices, plan.parallelism.cp) == (8, 2)


@pytest.mark.parametrize("terms", [" + ".join(["1"] * 900), "4 // 0", "8 * 512"])
def test_a_sum_of_any_length_is_no_mistake(alone, terms: str):
    text = f"from trl import SFTConfig\nargs = SFTConfig(max_length={terms}, per_device_train_batch_size=2)\n"
    plan = alone("train.py", text).plan
    assert plan.value("training.micro_batch") == 2
    assert terms != "8 * 512" or plan.value("training.seq_len") == 4096


def test_what_only_the_shell_knows_is_told_where_it_counts(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    sizes = (
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --max-position-embeddings 8192 --vocab-size 32000"
    )
    script.write_text(f"torchrun pretrain_gpt.py {sizes} --seq-length $LENGTH --lr $RATE --save $OUT --bf16\n")
    readings = import_plan([str(script)], {"hardware.name": "h100-sxm-80gb"}).readings
    told = [remark for reading in readings for remark in reading.unmodelled]
    assert [remark.place.field for remark in told] == ["--seq-length"] and "$LENGTH" in told[0].why


NANOGPT = """\
# torchrun --standalone --nproc_per_node=8 train.py config/train_gpt2.py
wandb_log = True
wandb_run_name = 'gpt2-124M'
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8
max_iters = 600000
weight_decay = 1e-1
"""
OLMO = """\
model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, rope: true,
  include_bias: false,
  layer_norm_type: rms, activation_type: swiglu, max_sequence_length: 2048, vocab_size: 50280, embedding_size: 50304}
optimizer: {name: adamw, learning_rate: 3.0e-4}
max_duration: 2e12T
global_train_batch_size: 2160
device_train_microbatch_size: 2
precision: amp_bf16
fsdp: {wrapping_strategy: null, sharding_strategy: FULL_SHARD}
"""
LLMC = """\
make train_gpt2cu USE_CUDNN=1
mpirun -np 8 ./train_gpt2cu -i "data/fineweb_train_*.bin" -v 250 -b 64 -t 1024 -d 524288 -r 0 -z 1 -x 20000 -e "d12"
"""
MAXTEXT = (
    "python3 -m MaxText.train base.yml model_name=llama2-7b per_device_batch_size=4 max_target_length=4096 steps=100\n"
)
LLAVA = """\
deepspeed llava/train/train_mem.py --deepspeed ./zero3.json --model_name_or_path lmsys/vicuna-13b-v1.5 --bf16 True \\
    --vision_tower openai/clip-vit-large-patch14-336 --per_device_train_batch_size 2 --model_max_length 2048 --tf32 True
"""
FOUND = {
    "nanogpt.py": (NANOGPT, {"training.micro_batch": 12, "training.global_batch": 480, "training.steps": 600000}),
    "olmo.yaml": (OLMO, {"training.tokens": 2 * 10**12, "training.global_batch": 2160, "parallelism.zero": 3}),
    "llmc.sh": (LLMC, {"model.name": "gpt2-small", "training.global_batch": 512, "parallelism.zero": 1}),
    "maxtext.sh": (MAXTEXT, {"model.name": "llama-2-7b", "training.seq_len": 4096, "training.steps": 100}),
    "llava.sh": (LLAVA, {"model.name": "llama-2-13b", "training.seq_len": 2048, "parallelism.zero": 3}),
    "use_lora.sh": (
        "torchrun finetune.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --output_dir out "
        "--model_max_length 512 --bf16 True --num_train_epochs 5 --use_lora\n",
        {"model.name": "qwen2.5-7b", "training.method": "lora", "training.seq_len": 512},
    ),
    "train_lora.sh": (
        "deepspeed fastchat/train/train_lora.py --model_name_or_path lmsys/vicuna-7b-v1.5 --lora_r 8 --bf16 True "
        "--per_device_train_batch_size 2 --output_dir out --num_train_epochs 3\n",
        {"model.name": "llama-2-7b", "training.method": "lora", "training.adapter.rank": 8},
    ),
    "litgpt.sh": (
        "litgpt finetune_lora meta-llama/Llama-3.1-8B --train.micro_batch_size 2 --lora_r 16\n",
        {"model.name": "llama-3.1-8b", "training.method": "lora", "training.micro_batch": 2},
    ),
    "tune.sh": (
        "tune run --nproc_per_node 8 lora_finetune_distributed --config llama3_1/70B_lora batch_size=4\n",
        {"model.name": "llama-3.1-70b", "training.method": "lora", "training.micro_batch": 4},
    ),
    "examples.sh": (
        "torchrun run_clm.py --model_name_or_path gpt2 --do_train --fp16 --block_size 512 --output_dir out\n",
        {"training.seq_len": 512, "training.precision": "fp16", "training.checkpointing": "none"},
    ),
    "chat.sh": (
        "deepspeed main.py --model_name_or_path opt-13b --max_seq_len 512 --zero_stage 3 --only_optimize_lora\n",
        {"model.name": "opt-13b", "training.seq_len": 512, "parallelism.zero": 3},
    ),
    "bridge.py": (
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\nif __name__ == '__main__':\n"
        "    cfg = llama3_8b_pretrain_config(seq_length=8192)\n    cfg.model.tensor_model_parallel_size = 2\n"
        "    cfg.train.global_batch_size = 512\n    cfg.train.micro_batch_size = 1\n",
        {"model.name": "llama-3-8b", "training.seq_len": 8192, "parallelism.tp": 2, "training.global_batch": 512},
    ),
    "rl.yaml": (
        "policy: {model_name: Qwen/Qwen2.5-7B, train_global_batch_size: 512, train_micro_batch_size: 4,\n"
        "  max_total_sequence_length: 4096, precision: bfloat16, dtensor_cfg: {tensor_parallel_size: 2}}\n"
        "grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}\ncluster: {gpus_per_node: 8, num_nodes: 1}\n",
        {"model.name": "qwen2.5-7b", "training.preference": "grpo", "training.seq_len": 4096, "parallelism.tp": 2},
    ),
}


def test_a_configuration_in_python_behind_a_script_is_read(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "large.py").write_text("n_layer = 36\nn_head = 20\nn_embd = 1280\nmax_iters = 1000\n")
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc_per_node=8 train.py config/large.py --batch_size=5 --block_size=512\n")
    plan = import_plan([str(script)], {"hardware.name": "h100-sxm-80gb"}).plan
    assert (plan.value("model.spec.layers"), plan.value("training.micro_batch")) == (36, 5)


@pytest.mark.parametrize("name", FOUND)
def test_files_that_people_have_say_what_they_run(alone, name):
    text, values = FOUND[name]
    plan = alone(name, text).plan
    assert {path: plan.value(path) for path in values} == values


SERVED = {
    "trt.sh": ("trtllm-serve nvidia/Llama-3.3-70B-Instruct-FP8 --tp_size 4 --max_seq_len 16384\n", "tensorrt-llm"),
    "lmdeploy.sh": ("lmdeploy serve api_server Qwen/Qwen2.5-7B-Instruct --tp 4 --session-len 8192\n", "lmdeploy"),
    "docker.sh": (
        "docker run --gpus '\"device=0,1\"' -v ~/x:/y -p 8000:8000 --ipc=host vllm/vllm-openai:v0.9.1 "
        "--model Qwen/Qwen3-32B --tensor-parallel-size 4\n",
        "vllm",
    ),
}


@pytest.mark.parametrize("name", SERVED)
def test_commands_that_serve_are_read_to_their_last_option(alone, name):
    text, engine = SERVED[name]
    imported = alone(name, text)
    assert (imported.plan.inference.engine, imported.plan.value("parallelism.tp")) == (engine, 4)
    assert not [remark for reading in imported.readings for remark in reading.unknown]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--use-distributed-optimizer", False),
        ("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather", True),
        ("--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap", True),
        # Other software decides for itself.
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params", None),
        ("--deepspeed --zero-stage 1 --deepspeed_config ds.json", None),
    ],
)
def test_communication_hides_where_a_script_asks_megatron_for_it(
    alone, tmp_path: Path, options: str, expected: bool | None
):
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 2}')
    plan = alone("run.sh", f"torchrun --nproc_per_node 8 pretrain_gpt.py {MEGATRON} {options}\n").plan
    assert plan.value("training.overlap") is expected
