"""What software keeps of a training beside its weights, and what files leave open of where it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

MODEL = "Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    ("name", "text", "optimizer", "master"),
    [
        (
            "axolotl.yaml",
            "base_model: {model}\nsequence_len: 512\nsample_packing: true\nbf16: auto\noptimizer: {optim}\n",
            "adamw_torch",
            "none",
        ),
        (
            "axolotl.yaml",
            "base_model: {model}\nsequence_len: 512\nsample_packing: true\nbf16: true\noptimizer: {optim}\n",
            "paged_adamw_32bit",
            "none",
        ),
        (
            "axolotl.yaml",
            "base_model: {model}\nsequence_len: 512\nbf16: true\nfsdp: [full_shard]\noptimizer: {optim}\n",
            "adamw_torch",
            "fp32",
        ),
        (
            "axolotl.yaml",
            "base_model: {model}\nsequence_len: 512\nbf16: true\nadapter: lora\nlora_r: 8\noptimizer: {optim}\n",
            "adamw_torch",
            "fp32",
        ),
        (
            "trl.yaml",
            "model_name_or_path: {model}\ndtype: bfloat16\nbf16: true\nmax_length: 8\npacking: true\noptim: {optim}\n",
            "adamw_torch",
            "none",
        ),
        (
            "trl.yaml",
            "model_name_or_path: {model}\nbf16: true\nmax_length: 8\npacking: true\noptim: {optim}\n",
            "adamw_torch",
            "fp32",
        ),
    ],
)
def test_software_that_trains_what_it_loads_in_bf16_keeps_no_copy_in_32_bits(
    alone, name: str, text: str, optimizer: str, master: str
) -> None:
    training = alone(name, text.format(model=MODEL, optim=optimizer)).plan.training
    assert training.master_weights == master
    assert training.optimizer == ("adamw_32bit" if "32bit" in optimizer else "adamw")


@pytest.mark.parametrize(
    ("given", "method"),
    [("", "qlora"), (", load_in_4bit=True", "qlora"), (", load_in_4bit=False", "lora"), (", load_in_8bit=1", "lora")],
)
def test_unsloth_loads_models_in_4_bits_unless_it_is_told_otherwise(alone, given: str, method: str) -> None:
    text = (
        "from unsloth import FastLanguageModel\n"
        f"model, _ = FastLanguageModel.from_pretrained('{MODEL}'{given})\n"
        "model = FastLanguageModel.get_peft_model(model, r=16)\n"
    )
    imported = alone("train.py", text)
    assert (imported.plan.training.method, imported.clashes) == (method, ())


def test_torchtune_and_full_training_of_unsloth_keep_no_copy_in_32_bits(alone) -> None:
    tune = (
        "model: {_component_: torchtune.models.qwen2_5.qwen2_5_7b_base}\ncheckpointer: {checkpoint_dir: /Qwen2.5-7B}\n"
        "dataset: {packed: false}\nmetric_logger: {log_dir: x}\noptimizer: {_component_: torch.optim.AdamW}\n"
        "enable_activation_checkpointing: true\ndtype: bf16\nbatch_size: 1\n"
    )
    assert alone("full.yaml", tune).plan.training.master_weights == "none"
    assert alone("full.yaml", tune.replace("bf16", "fp32")).plan.training.master_weights == "fp32"
    loaded = (
        "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\n"
        f"model, _ = FastLanguageModel.from_pretrained('{MODEL}', full_finetuning=True)\n"
    )
    trained = "SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=1, max_length=512)).train()\n"
    assert alone("full.py", f"{loaded}{trained}").plan.training.master_weights == "none"
    mixed = loaded.replace("full_finetuning=True", "full_finetuning=True, float32_mixed_precision=True")
    assert alone("full.py", f"{mixed}{trained}").plan.training.master_weights == "fp32"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("trl grpo --model_name_or_path {model} --num_generations 4 --per_device_train_batch_size 8", "precomputed"),
        (
            "trl grpo --model_name_or_path {model} --num_generations 4 --per_device_train_batch_size 8 --beta 0.04",
            "kept",
        ),
        ("trl dpo --model_name_or_path {model} --per_device_train_batch_size 8", "kept"),
        (
            "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path={model}",
            "precomputed",
        ),
        (
            "python -m verl.trainer.main_ppo actor_rollout_ref.model.path={model} algorithm.use_kl_in_reward=True",
            "kept",
        ),
        ("python -m openrlhf.cli.train_ppo_ray --pretrain {model} --init_kl_coef 0", "precomputed"),
        (
            "python -m openrlhf.cli.train_ppo_ray --pretrain {model} --colocate_all_models --init_kl_coef 0",
            "precomputed",
        ),
        ("python -m openrlhf.cli.train_ppo_ray --pretrain {model} --colocate_actor_ref", "kept"),
        ("python -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path {model} --train.colocate_all", "kept"),
        ("python -m openrlhf.cli.train_ppo_ray --pretrain {model}", "precomputed"),
    ],
)
def test_rewarded_answers_have_a_reference_where_something_holds_them_to_it(alone, text: str, reference: str) -> None:
    assert alone("run.sh", f"{text.format(model=MODEL)}\n").plan.value("training.reference") == reference


def test_dora_of_llm_foundry_is_one(alone) -> None:
    adapters = "{r: 8, peft_type: LORA, use_dora: true}"
    text = (
        f"model: {{name: hf_causal_lm, pretrained_model_name_or_path: {MODEL}, peft_config: {adapters}}}\n"
        "max_seq_len: 512\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\n"
        "precision: amp_bf16\nmax_duration: 1ep\n"
    )
    assert alone("foundry.yaml", text).plan.training.method == "dora"


@pytest.mark.parametrize(
    ("command", "model", "weights"),
    [
        ("llama-server -m ${HOME}/models/Qwen3-Coder-Next-UD-Q4_K_XL.gguf -c 32768", "qwen3-next-80b-a3b", "q4_k"),
        ("vllm serve $MODELS/Qwen3-Coder-Next-FP8 --max-model-len 32768", "Qwen3-Coder-Next-FP8", "fp8"),
        ("vllm serve $MODELS/qwen2.5-7b-awq", "qwen2.5-7b-awq", "awq-4"),
    ],
)
def test_a_model_in_a_folder_of_a_variable_is_known_by_its_file_or_format(alone, command, model, weights) -> None:
    plan = alone("serve.sh", f"#!/bin/bash\n{command}\n").plan
    assert (plan.model.name, plan.value("inference.weights")) == (model, weights)


def test_a_sum_that_only_the_shell_knows_is_one_value(alone) -> None:
    text = (
        "#!/bin/bash\ndevices=$(free_devices)\nsteps=$((64 / $devices))\n"
        f"options=( --model_name_or_path {MODEL} --gradient_accumulation_steps $steps --bf16 )\n"
        'torchrun --nproc_per_node 8 run_clm.py "${options[@]}"\n'
    )
    found = alone("train.sh", text)
    (remark,) = (one for reading in found.readings for one in reading.unmodelled)
    assert (
        remark.place.field == "--gradient_accumulation_steps" and "only the shell knows $((64/$devices))" in remark.why
    )


def test_a_replica_of_several_nodes_takes_those_that_are_typed(alone) -> None:
    text = (
        "trainer: {devices: 8, precision: bf16}\n"
        "model: {tensor_model_parallel_size: 4, pipeline_model_parallel_size: 4, micro_batch_size: 1,\n"
        "  global_batch_size: 64, encoder_seq_length: 4096, num_layers: 32, hidden_size: 4096,\n"
        "  num_attention_heads: 32, ffn_hidden_size: 11008}\n"
    )
    path = {"hardware.name": "h100-sxm-80gb", "hardware.devices": 64}
    assert alone("nemo.yaml", text, path).plan.hardware.devices == 64
    assert alone("nemo.yaml", text.replace("_size: 4,", "_size: 2,"), path).plan.hardware.devices == 8


def test_a_program_of_ones_own_with_sections_of_verl_is_read_as_verl(alone) -> None:
    unmodelled = " ".join(f"trainer.{name}=x" for name in ("logger", "project_name", "experiment_name", "save_freq"))
    text = (
        f"python -m mine.main_grpo {unmodelled} data.shuffle=True data.prompt_key=input "
        f"actor_rollout_ref.model.path={MODEL} actor_rollout_ref.rollout.n=8 algorithm.adv_estimator=grpo\n"
    )
    plan = alone("run.sh", text).plan
    assert (plan.value("training.preference"), plan.model.name) == ("grpo", "qwen3-8b")


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        ("", "query+value"),
        ("--lora_key true", "query+key+value"),
        ("--lora_key true --lora_projection true --lora_mlp true", "all"),
        ("--lora_query false --lora_value false --lora_mlp true", "mlp"),
    ],
)
def test_matrices_that_litgpt_adapts_one_by_one_are_taken_together(alone, options: str, targets: str) -> None:
    found = alone("run.sh", f"litgpt finetune_lora {MODEL} --train.micro_batch_size 2 {options}\n")
    assert found.plan.value("training.adapter.targets") == targets
    assert not [one for reading in found.readings for one in reading.unmodelled]


def test_a_file_that_a_script_writes_and_another_file_names_is_read(alone, tmp_path: Path) -> None:
    (tmp_path / "axolotl.yaml").write_text(
        f"base_model: {MODEL}\nsequence_len: 512\nsample_packing: true\nbf16: true\ndeepspeed: configs/zero3.json\n"
    )
    stage = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": "auto"}}'
    written = f"cat > configs/zero3.json <<END\n{stage}\nEND\n"
    found = alone("run.sh", f"{written}accelerate launch -m axolotl.cli.train axolotl.yaml\n")
    assert (found.plan.parallelism.zero, found.plan.value("parallelism.offload")) == (3, "optimizer")
    assert not [one for reading in found.readings for one in reading.unmodelled if "not there" in one.why]


@pytest.mark.parametrize(
    ("precision", "dtype", "master", "told"),
    [
        ("fp16=True", "", "none", 1),
        ("bf16=True", "", "none", 1),
        ("fp16=True", ", dtype=torch.bfloat16", "none", 0),
        ("fp16=True", ", dtype=torch.float32", "fp32", 0),
    ],
)
def test_the_type_a_model_is_loaded_in_does_not_depend_on_that_of_the_trainer(
    alone, precision: str, dtype: str, master: str, told: int
) -> None:
    text = (
        "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f"model = AutoModelForCausalLM.from_pretrained('{MODEL}'{dtype})\n"
        f"Trainer(model=model, args=TrainingArguments(output_dir='o', {precision})).train()\n"
    )
    imported = alone("train.py", text)
    assert imported.plan.training.master_weights == master
    assert sum("Transformers 4 loads them in 32 bits" in guess for guess in imported.guesses) == told


@pytest.mark.parametrize(
    ("prepares", "computes", "precision"),
    [
        ("", "", "bf16"),
        ("model = prepare_model_for_kbit_training(model)\n", "", "fp32"),
        ("model = prepare_model_for_kbit_training(model)\n", ", bnb_4bit_compute_dtype=torch.bfloat16", "bf16"),
    ],
)
def test_what_is_prepared_over_a_quantized_base_computes_in_32_bits_where_nothing_casts(
    alone, prepares: str, computes: str, precision: str
) -> None:
    text = (
        "import torch\nfrom peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training\n"
        "from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments\n"
        f"quantized = BitsAndBytesConfig(load_in_4bit=True{computes})\n"
        f"model = AutoModelForCausalLM.from_pretrained('{MODEL}', quantization_config=quantized)\n{prepares}"
        "model = get_peft_model(model, LoraConfig(r=8))\n"
        "Trainer(model=model, args=TrainingArguments(output_dir='o', fp16=False, bf16=False)).train()\n"
    )
    training = alone("train.py", text).plan.training
    assert (training.method, training.precision) == ("qlora", precision)


@pytest.mark.parametrize(("entropy", "loss"), [("0", "kernel"), ("0.01", "standard")])
def test_verl_takes_log_probabilities_in_one_kernel_unless_their_entropy_counts(alone, entropy: str, loss: str) -> None:
    imported = alone(
        "run.sh",
        f"python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path={MODEL} algorithm.adv_estimator=grpo "
        f"actor_rollout_ref.actor.entropy_coeff={entropy} actor_rollout_ref.rollout.n=4 "
        "actor_rollout_ref.model.use_remove_padding=True\n",
    )
    assert (imported.plan.training.loss, imported.plan.training.logits) == (loss, "bf16")
