"""What tools do where an option is left out, and what options of theirs decide besides."""

from __future__ import annotations

import pytest

from capacity_tui.engine.errors import CapacityError

MODEL = "Qwen/Qwen3-8B"
TRL = f"python {{script}} --model_name_or_path {MODEL} --dataset_name d --bf16 --max_length 2048 {{options}}\n"
LORA = "from peft import LoraConfig, get_peft_model\nfrom transformers import AutoModelForCausalLM\n"


@pytest.mark.parametrize(
    ("script", "options", "preference"),
    [
        ("kto.py", "--max_prompt_length 512", "kto"),
        ("training/dpo.py", "--beta 0.1", "dpo"),
        ("orpo.py", "--beta 0.1 --max_prompt_length 512", "orpo"),
        ("my_rewards.py", "--use_peft --lora_task_type SEQ_CLS", "reward"),
        ("reward_modeling.py", "", "reward"),
        ("my_sft.py", "--use_peft --lora_task_type CAUSAL_LM", "none"),
    ],
)
def test_what_is_learned_follows_from_the_script_and_its_adapters(
    alone, script: str, options: str, preference: str
) -> None:
    assert alone("run.sh", TRL.format(script=script, options=options)).plan.training.preference == preference


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        ("--use_peft", "query+value"),  # PEFT's own choice
        ("--use_peft --lora_target_modules all-linear", "all"),
        ("--use_peft --lora_target_modules q_proj k_proj v_proj o_proj", "attention"),
    ],
)
def test_adapters_stand_beside_queries_and_values_where_no_module_is_named(alone, options: str, targets: str) -> None:
    assert alone("run.sh", TRL.format(script="sft.py", options=options)).plan.training.adapter.targets == targets


def test_adapters_of_a_script_do_too(alone) -> None:
    text = (
        f"{LORA}from transformers import Trainer, TrainingArguments\n"
        f"model = get_peft_model(AutoModelForCausalLM.from_pretrained('{MODEL}'), LoraConfig(r=8))\n"
        "Trainer(model, args=TrainingArguments('x', bf16=True)).train()\n"
    )
    assert alone("a.py", text).plan.training.adapter.targets == "query+value"


def test_weights_that_megatron_gathers_in_8_bits_are_kept_in_them(alone) -> None:
    options = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1"
    command = f"torchrun --nproc_per_node 8 pretrain_gpt.py {options} --bf16 --fp8-format hybrid --fp8-param-gather\n"
    assert alone("run.sh", command).plan.training.fp8_weights is True


def test_fused_kernels_of_verl_hold_no_logits(alone) -> None:
    options = f"actor_rollout_ref.model.path={MODEL} actor_rollout_ref.model.use_fused_kernels=True"
    assert alone("run.sh", f"python3 -m verl.trainer.main_ppo {options}\n").plan.training.loss == "fused"


@pytest.mark.parametrize(
    ("colocated", "preference", "reference", "others"),
    [
        ("", "grpo", "precomputed", "values and the reference"),
        ("--colocate_actor_ref", "grpo", "kept", "values stand"),
        ("--colocate_all_models", "ppo", "kept", ""),
        ("--advantage_estimator group_norm --init_kl_coef 0", "grpo", "precomputed", ""),
    ],
)
def test_models_on_devices_of_their_own_are_not_counted_on_those_of_the_actor(
    alone, colocated: str, preference: str, reference: str, others: str
) -> None:
    options = f"--pretrain {MODEL} --actor_num_gpus_per_node 8 --critic_num_gpus_per_node 8 {colocated}"
    imported = alone("run.sh", f"python3 -m openrlhf.cli.train_ppo_ray {options} --zero_stage 3\n")
    training = imported.plan.training
    assert (training.preference, training.reference) == (preference, reference)
    remarks = [one.why for one in imported.readings[0].unmodelled if "devices of their own" in one.why]
    assert [others in why for why in remarks] == [True] * bool(others)


def test_a_recipe_of_nemo_is_none_of_torchtitan(alone) -> None:
    """Both have a ``llama3_8b``: one is a function, the other a module of them."""
    text = "from nemo.collections.llm.recipes import llama3_8b\nrun = llama3_8b.pretrain_recipe(num_nodes=1)\n"
    try:
        tools = [reading.tool.id for reading in alone("recipe.py", text).readings]
    except CapacityError:
        return
    assert "torchtitan" not in tools


def test_openrlhf_passes_over_prompts_each_with_its_answers(alone) -> None:
    options = "--n_samples_per_prompt 8 --max_samples 20000 --max_epochs 2 --num_episodes 3"
    training = alone("run.sh", f"python3 -m openrlhf.cli.train_ppo_ray --pretrain gpt2 {options}\n").plan.training
    assert (training.samples, training.epochs) == (160_000, 6)
    options = "--max_samples 20000 --num_episodes 3"
    training = alone("run.sh", f"python3 -m openrlhf.cli.train_ppo_ray --pretrain gpt2 {options}\n").plan.training
    assert (training.samples, training.epochs) == (20_000, 3)


def test_a_part_of_an_epoch_is_read(alone) -> None:
    text = "from trl import SFTConfig\nSFTConfig(num_train_epochs=0.25, per_device_train_batch_size=1)\n"
    assert alone("train.py", text).plan.training.epochs == 0.25
