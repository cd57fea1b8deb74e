"""DeepSpeed, the Trainer and Accelerate: their files say a plan, each value with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.imports import import_plan


def test_deepspeed_and_the_trainer_say_one_plan(read, tmp_path: Path) -> None:
    found = read("training_args.yaml", model__name=None)
    training, parallel = found.plan.training, found.plan.parallelism
    assert found.plan.model.name == "mistral-7b-v0.1"
    assert (training.micro_batch, training.global_batch, training.steps) == (4, 64, 500)
    assert (training.precision, training.checkpointing, training.optimizer) == ("bf16", "full", "adamw")
    assert (training.framework, parallel.zero, parallel.offload) == ("deepspeed", 3, "optimizer")
    assert found.clashes == ()


def test_every_value_knows_where_it_stands(read) -> None:
    settings = read("training_args.yaml").settings
    assert settings["training.micro_batch"].words.endswith("training_args.yaml:3: per_device_train_batch_size 4")
    assert settings["parallelism.offload"].words.endswith("json:16: zero_optimization.offload_optimizer.device cpu")
    assert settings["training.attention"].level == "default"


def test_accelerate_says_devices_shards_and_recomputation(read) -> None:
    found = read("accelerate_fsdp.yaml", hardware__devices=None)
    assert (found.plan.hardware.devices, found.plan.hardware.per_node) == (16, 8)
    assert (found.plan.parallelism.zero, found.plan.training.checkpointing) == (3, "full")
    assert (found.plan.training.framework, found.plan.training.precision) == ("fsdp", "bf16")


@pytest.mark.parametrize(
    ("text", "zero"),
    [("fsdp: shard_grad_op", 2), ("fsdp: [full_shard, auto_wrap]", 3), ("fsdp: ''", None), ("fsdp: true", 3),
     ("fsdp: ''\nfsdp_config: {reshard_after_forward: true}", None), ("deepspeed: {zero_optimization: {stage: 1}}", 1)],
)  # fmt: skip
def test_the_trainer_shards_as_it_is_told(written, text: str, zero: int | None) -> None:
    assert written("args.yaml", f"per_device_train_batch_size: 1\n{text}\n").plan.parallelism.zero == zero


def test_what_a_tool_does_without_its_options_counts(written) -> None:
    training = written("args.yaml", "output_dir: out\ngradient_accumulation_steps: 2\n").plan.training
    assert (training.micro_batch, training.global_batch, training.epochs) == (8, 128, 3)
    assert (training.precision, training.attention) == ("fp32", "sdpa")


def test_a_length_that_is_typed_goes_before_epochs(written) -> None:
    training = written("args.yaml", "per_device_train_batch_size: 1\n", training__tokens=5e7).plan.training
    assert (training.tokens, training.epochs) == (5e7, None)


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"a.yaml": "per_device_train_batch_size: 1\nbf16: true\nfp16: true\n"}, "given_twice"),
        ({"ds.json": '{"train_batch_size": 99, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2}'},
         "batch_sizes"),
        ({"acc.yaml": "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 16\n"}, "world_size"),
        ({"acc.yaml": "distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nfsdp_config: {}\n",
          "ds.json": '{"zero_optimization": {"stage": 3}}'}, "two_shardings"),
        ({"a.yaml": "per_device_train_batch_size: 1\ngradient_checkpointing: true\nfsdp: full_shard\n"
          "fsdp_config: {activation_checkpointing: true}\n"}, "checkpointing_twice"),
        ({"a.yaml": "per_device_train_batch_size: 2\n", "ds.json": '{"train_micro_batch_size_per_gpu": 4}'},
         "given_twice"),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_told(tmp_path: Path, files: dict[str, str], rule: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    typed = {"model.name": "llama-3.1-8b", "hardware.name": "h100-sxm-80gb", "hardware.devices": 8}
    found = import_plan([str(tmp_path / name) for name in files], typed)
    assert [clash.rule for clash in found.clashes] == [rule]


def test_saved_arguments_without_sharding_have_none(written) -> None:
    saved = {"per_device_train_batch_size": 8, "fsdp": [], "fsdp_config": {"min_num_params": 0, "xla": False},
             "deepspeed": None, "bf16": False, "fp16": False, "_n_gpu": 1, "optim": "adamw_torch"}  # fmt: skip
    found = written("args.json", json.dumps(saved))
    assert (found.plan.parallelism.zero, found.plan.training.framework) == (None, "transformers")


def test_options_without_a_word_in_plans_are_told_apart(written) -> None:
    found = written(
        "ds.json", '{"zero_optimization": {"stag": 3, "zero_hpz_partition_size": 8}, "aio": {"block_size": 1}}'
    )
    [reading] = found.readings
    assert [remark.why for remark in reading.unknown] == ["zero_optimization.stage"]
    assert [remark.place.field for remark in reading.unmodelled] == ["zero_optimization.zero_hpz_partition_size"]
    assert [place.field for place in reading.ignored] == ["aio"]
    notes = "\n".join(found.notes())
    assert "did you mean zero_optimization.stage?" in notes
    assert "not modelled: a second copy of the parameters" in notes


def test_files_are_laid_over_a_plan(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}')
    base = plan_from_data({"model": {"name": "llama-3.1-8b"}, "training": {"seq_len": 4096, "micro_batch": 1},
                           "hardware": {"name": "h100-sxm-80gb", "devices": 4}})  # fmt: skip
    plan = import_plan([str(tmp_path / "ds.json")], base=base).plan
    assert (plan.training.seq_len, plan.training.micro_batch, plan.parallelism.zero) == (4096, 4, 2)
    assert plan.hardware.devices == 4


def test_a_section_of_a_larger_file_is_read(written) -> None:
    text = "project: mine\ntraining_args:\n  output_dir: out\n  per_device_train_batch_size: 2\n"
    found = written("config.yaml", text)
    assert found.plan.training.micro_batch == 2
    assert found.settings["training.micro_batch"].place.line == 4


def test_a_folder_is_read_whole(tmp_path: Path, read) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "args.yaml").write_text("per_device_train_batch_size: 2\n")
    (tmp_path / "notes.txt").write_text("nothing: to read")
    found = import_plan([str(tmp_path)], {"model.name": "llama-3.1-8b", "hardware.name": "a100-sxm-80gb"})
    assert (found.plan.training.micro_batch, found.plan.parallelism.zero) == (2, 2)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"hardware.name": "h100-sxm-80gb"}, "no model is named"),
        ({"model.name": "llama-3.1-8b"}, "no hardware is named"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, typed: dict[str, object], says: str) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    with pytest.raises(PlanError, match=says) as error:
        import_plan([str(tmp_path / "ds.json")], typed)
    assert "--" in error.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"train_micro_batch_size_per_gpu": "many"}', "ds.json:1: train_micro_batch_size_per_gpu: not allowed"),
        ('{"train_micro_batch_size_per_gpu": 1.5}', "allowed: a whole number"),
        ('{"zero_optimization": {"stage": 7}}', "ds.json:1: zero_optimization.stage"),
        ("colour: blue", "of no known tool"),
        ("", "empty"),
        ("{", "not valid YAML"),
    ],
)
def test_what_cannot_be_is_one_line(written, text: str, says: str) -> None:
    with pytest.raises(CapacityError) as error:
        written("ds.json", text)
    assert says in error.value.one_line()


LF_PAIRS = "stage: dpo\ndo_train: true\nfinetuning_type: lora\nmodel_name_or_path: Qwen/Qwen3-4B\ncutoff_len: 1024\n"


@pytest.mark.parametrize(
    ("name", "text", "preference"),
    [
        ("sft.yaml", LF_PAIRS.replace("dpo", "rm"), "reward"),
        ("sft.yaml", f"{LF_PAIRS}pref_loss: orpo\n", "orpo"),
        ("sft.yaml", f"{LF_PAIRS}pref_loss: sigmoid\n", "dpo"),
        ("axolotl.yml", "base_model: gpt2\nsequence_len: 512\nmicro_batch_size: 1\nrl: simpo\n", "orpo"),
        ("axolotl.yml", "base_model: gpt2\nsequence_len: 512\nmicro_batch_size: 1\nreward_model: true\n", "reward"),
        ("run.sh", "deepspeed --module openrlhf.cli.train_rm --pretrain gpt2 --max_len 512\n", "reward"),
        ("orpo.py", "import trl\n\nORPOConfig(per_device_train_batch_size=1, beta=0.1)\n", "orpo"),
    ],
)
def test_training_on_pairs_without_a_reference_and_of_scores_is_told_apart(written, name, text, preference) -> None:
    imported = written(name, text)
    assert (imported.plan.training.preference, imported.clashes) == (preference, ())


_AREAL = """actor: {{path: Qwen/Qwen2.5-7B, backend: {backend}, gradient_checkpointing: true, dtype: bfloat16,
  kl_ctl: 0.0, mb_spec: {{max_tokens_per_mb: 8192}}, optimizer: {{type: adam, lr: 1.0e-6}}}}
{generates}train_dataset: {{batch_size: 64, path: d, type: {kind}, max_length: 1024}}
"""
_GENERATES = "gconfig: {n_samples: 4, max_new_tokens: 3072}\n"


@pytest.mark.parametrize(
    ("kind", "generates", "backend", "preference", "length", "micro", "devices"),
    [
        ("rl", _GENERATES, '"fsdp:d4"', "grpo", 4096, 2, 4),
        ("rl", _GENERATES, '"sglang:d4+megatron:d2p2t1"', "grpo", 4096, 2, 4),
        ("dpo", "", '"fsdp:d8p1t1"', "dpo", 1024, 4, 8),
        ("sft", "", '"fsdp:d8"', "none", 1024, 8, 8),
    ],
)
def test_experiments_of_areal_are_read(
    alone, kind: str, generates: str, backend: str, preference: str, length: int, micro: int, devices: int
) -> None:
    imported = alone("areal.yaml", _AREAL.format(kind=kind, generates=generates, backend=backend))
    plan = imported.plan
    assert [reading.tool.id for reading in imported.readings] == ["areal"]
    assert (plan.training.preference, plan.training.seq_len, plan.training.micro_batch) == (preference, length, micro)
    assert (plan.hardware.devices, plan.parallelism.pp) == (devices, 2 if "p2" in backend else 1)


_ROLL = """pretrain: Qwen/Qwen2.5-7B
{lengths}
{learns}
actor_train:
  model_args: {{disable_gradient_checkpointing: false, dtype: bf16}}
  training_args: {{learning_rate: 1.0e-6, per_device_train_batch_size: 1, gradient_accumulation_steps: 32}}
  strategy_args: {{strategy_name: {strategy}, strategy_config: {{tensor_model_parallel_size: 2}}}}
  device_mapping: list(range(0,16))
"""


@pytest.mark.parametrize(
    ("lengths", "learns", "strategy", "preference", "reference"),
    [
        ("prompt_length: 2048\nresponse_length: 4096", "adv_estimator: grpo", "megatron_train", "grpo", "kept"),
        ("sequence_length: 6144", "chosen_key: chosen", "megatron_train", "dpo", "kept"),
        (
            "prompt_length: 2048\nresponse_length: 4096",
            "adv_estimator: reinforce\ninit_kl_coef: 0.0",
            "fsdp2_train",
            "grpo",
            "precomputed",
        ),
    ],
)
def test_pipelines_of_roll_are_read(
    alone, lengths: str, learns: str, strategy: str, preference: str, reference: str
) -> None:
    text = _ROLL.format(lengths=lengths, learns=learns, strategy=strategy)
    plan = alone("roll.yaml", text, {"hardware.devices": 16}).plan
    assert (plan.training.preference, plan.training.reference, plan.training.seq_len) == (preference, reference, 6144)
    assert (plan.training.global_batch, plan.parallelism.tp, plan.hardware.devices) == (256, 2, 16)
    assert plan.training.framework == ("fsdp" if "fsdp" in strategy else "megatron")


_OF_SWIFT = """\
cat > "$DIR/run_$(date +%s)/fsdp.json" <<'EOF'
{"_purpose": "as ZeRO-3", "fsdp": "full_shard auto_wrap offload",
 "fsdp_config": {"fsdp_version": 2, "activation_checkpointing": true, "reshard_after_forward": true}}
EOF
"""


@pytest.mark.parametrize(
    ("given", "sharding"),
    [
        ("fsdp2", (3, "none")),
        ('"$DIR/run_$(date +%s)/fsdp.json"', (3, "parameters")),
        ("'shard_grad_op auto_wrap'", (2, "none")),
        ("null", (None, "none")),
    ],
)
def test_a_file_that_says_how_to_shard_is_that_of_the_trainer(alone, given: str, sharding: tuple[int | None, str]):
    command = f"swift sft --model Qwen/Qwen3-8B --tuner_type full --max_length 4096 --fsdp {given}\n"
    parallel = alone("run.sh", f"{_OF_SWIFT}{command}").plan.parallelism
    assert (parallel.zero, parallel.offload) == sharding


@pytest.mark.parametrize(("devices", "rules"), [("5,7", ["world_size"]), ("0,1,2,3", [])])
def test_more_processes_than_devices_that_are_visible_are_a_contradiction(alone, devices: str, rules: list[str]):
    options = "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --output_dir out"
    text = f"CUDA_VISIBLE_DEVICES={devices} torchrun --nproc_per_node 4 train.py {options}\n"
    imported = alone("run.sh", text, {"hardware.devices": 4})
    assert [clash.rule for clash in imported.clashes] == rules
