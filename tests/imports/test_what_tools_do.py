"""What tools do by themselves, which no option says: how they shard, recompute, load and adapt."""

from __future__ import annotations

import pytest

_PRETRAINED = (
    "model_name: tiny-llama-1.1b\nprecision: bf16-mixed\ntrain:\n  max_seq_length: 2048\n  lr_warmup_steps: 9\n"
)

_ADAPTED = "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\nprecision: bf16-true\nlora_r: 8\ndevices: {}\n"

_JOB = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\n"

_TUNED = "srun litgpt finetune_lora checkpoints/meta-llama/Llama-3.2-1B --precision bf16-true"


@pytest.mark.parametrize(
    ("text", "devices", "sharding", "recomputed", "compiled"),
    [
        (_PRETRAINED, 8, 3, "none", True),
        (_PRETRAINED, 1, None, "none", True),
        (_ADAPTED.format(4), 4, 3, "full", False),
        (_ADAPTED.format(1), 1, None, "none", False),
    ],
)
def test_litgpt_shards_over_several_devices_and_compiles_what_it_pretrains(
    written, text: str, devices: int, sharding: int | None, recomputed: str, compiled: bool
):
    imported = written("litgpt.yaml", text, model__name=None, hardware__devices=devices)
    values = imported.plan.value("training.checkpointing"), imported.plan.value("training.compile")
    zero = imported.settings.get("parallelism.zero")
    assert (None if zero is None else zero.value, *values) == (sharding, recomputed, compiled)


@pytest.mark.parametrize(
    ("options", "contradicts"), [("", True), (" --devices 4 --num_nodes 2", False), (" --devices=4", False)]
)
def test_slurm_that_starts_more_than_the_one_device_of_litgpt_contradicts_it(alone, options: str, contradicts: bool):
    imported = alone("job.sh", f"{_JOB}{_TUNED}{options}\n")
    assert ("processes_of_slurm" in [clash.rule for clash in imported.clashes]) is contradicts


def test_what_a_given_option_sets_beside_is_not_called_left_out(written):
    imported = written("litgpt.yaml", _PRETRAINED, model__name=None)
    assert imported.settings["training.compile"].words.endswith("litgpt.yaml:1: model_name tiny-llama-1.1b")


_FOUNDRY = (
    "max_seq_len: 2048\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\nmax_duration: 2ba\n"
    "model:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: meta-llama/Llama-2-7b-hf\n"
)


@pytest.mark.parametrize(
    ("peft", "base"),
    [("  peft_config: {r: 8, peft_type: LORA, target_modules: [q_proj, v_proj]}\n", "fp32"), ("", None)],
)
def test_foundry_loads_what_adapters_stand_beside_in_32_bits(alone, peft: str, base: str | None):
    imported = alone("foundry.yaml", _FOUNDRY + peft)
    assert imported.plan.value("training.quantization") == base
    assert not [remark for reading in imported.readings for remark in (*reading.unknown, *reading.unmodelled)]


_TUNE = (
    "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_attn_modules: {}\n  lora_rank: 8\n"
    "  apply_lora_to_mlp: {}\ncheckpointer:\n  checkpoint_dir: /tmp/Meta-Llama-3.1-8B-Instruct\ndtype: bf16\n"
    "metric_logger: {{}}\noptimizer: {{_component_: torch.optim.AdamW}}\nenable_activation_checkpointing: true\n"
)


@pytest.mark.parametrize(
    ("modules", "feed_forward", "targets", "remark"),
    [
        ("[q_proj, v_proj, output_proj]", "true", "query+value+output+mlp", ""),
        ("[q_proj, k_proj, v_proj]", "false", "query+key+value", ""),
        ("[k_proj]", "true", "mlp", "k_proj, up_proj: counted as mlp"),
        ("[q_proj, k_proj, v_proj, output_proj]", "true", "all", ""),
        ("[q_proj, v_proj]", "false", "query+value", ""),
        ("[]", "true", "mlp", ""),
    ],
)
def test_adapters_of_torchtune_are_in_the_type_of_the_run_and_on_the_matrices_named(
    alone, modules: str, feed_forward: str, targets: str, remark: str
):
    imported = alone("tune.yaml", _TUNE.format(modules, feed_forward))
    values = imported.plan.value("training.adapter.targets"), imported.plan.value("training.master_weights")
    assert values == (targets, "none")
    remarks = [one.why for one in imported.readings[0].unmodelled if "counted as" in one.why]
    assert [remark in why for why in remarks] == [True] * bool(remark)


@pytest.mark.parametrize(
    ("given", "targets", "is_exact"),
    [
        ('{"q_proj", "v_proj"}', "query+value", True),
        ('{"o_proj", "k_proj", "q_proj", "v_proj"}', "attention", True),
        ('["query_key_value"]', "query+key+value", True),
        ('["query_key_value", "self_attention.dense"]', "attention", True),
        ('["k_proj", "up_proj", "down_proj"]', "mlp", False),
        ('["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]', "all", True),
        ('["fc1", "fc2"]', "mlp", True),
    ],
)
def test_adapters_are_on_the_matrices_whose_modules_a_script_names(alone, given: str, targets: str, is_exact: bool):
    text = (
        "from peft import LoraConfig\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "model = AutoModelForCausalLM.from_pretrained('tiiuae/falcon-7b')\n"
        f"LoraConfig(r=8, target_modules={given})\nTrainer(args=TrainingArguments(per_device_train_batch_size=1))\n"
    )
    imported = alone("train.py", text)
    assert imported.plan.value("training.adapter.targets") == targets
    remarks = [remark for reading in imported.readings for remark in reading.unmodelled if "adapters on" in remark.why]
    assert (not remarks) is is_exact


@pytest.mark.parametrize(
    ("model", "options", "sequence", "target"),
    [
        ("google-t5/t5-large", "--max_source_length 512 --max_target_length 64", 512, 64),
        ("google-t5/t5-large", "--max_source_length 512", 512, 128),
        ("Qwen/Qwen3-4B", "--max_source_length 512 --max_target_length 64", 576, None),
    ],
)
def test_what_is_written_is_the_target_of_an_encoder_decoder_and_behind_the_source_of_a_decoder(
    alone, model: str, options: str, sequence: int, target: int | None
):
    text = f"python run_summarization.py --model_name_or_path {model} --per_device_train_batch_size 4 {options}\n"
    plan = alone("run.sh", text).plan
    assert (plan.value("training.seq_len"), plan.value("training.predicted_tokens")) == (sequence, target)


@pytest.mark.parametrize(
    ("made", "is_of_classes"),
    [
        ("AutoModelForSequenceClassification.from_pretrained('google/gemma-2b', num_labels=2)", True),
        ("GemmaForTokenClassification.from_pretrained('google/gemma-2b')", True),
        ("AutoModelForCausalLM.from_pretrained('google/gemma-2b')", False),
        ("AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nLoraConfig(task_type=TaskType.SEQ_CLS)", True),
        ("AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nLoraConfig(task_type='CAUSAL_LM')", False),
    ],
)
def test_a_head_of_classes_has_no_logits_over_the_vocabulary(alone, made: str, is_of_classes: bool):
    text = f"import transformers\nmodel = {made}\nTrainer(args=TrainingArguments(per_device_train_batch_size=1))\n"
    imported = alone("train.py", text)
    assert imported.plan.value("model.name") == "gemma-2b"
    assert (imported.plan.value("training.predicted_tokens") == 0) is is_of_classes
    assert not [remark for reading in imported.readings for remark in (*reading.unknown, *reading.unmodelled)]


def test_labels_of_a_script_of_ones_own_are_the_target(alone):
    text = (
        "torchrun --nproc_per_node 8 own_speech.py --model_name_or_path openai/whisper-small --max_label_length 400 "
        "--per_device_train_batch_size 8 --output_dir out --num_train_epochs 3\n"
    )
    assert alone("run.sh", text).plan.value("training.predicted_tokens") == 400
