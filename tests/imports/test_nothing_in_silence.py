"""What a file says in a roundabout way counts, and what is not read of it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.solve import audit

LIBRARIES = "import os\nfrom transformers import LlamaForCausalLM, Trainer, TrainingArguments\n"
TRAINED = "Trainer(args=TrainingArguments(per_device_train_batch_size=2, fp16=True))\n"


def remarks(imported) -> dict[str, str]:
    """Return why options are not modelled, by their names."""
    return {str(one.place.field): one.why for reading in imported.readings for one in reading.unmodelled}


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("trtllm-serve deepseek-ai/DeepSeek-R1 --tp_size 8 --ep_size 2", 4),
        ("python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 4", 2),
        ("python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --ep-size 8", None),
    ],
)
def test_engines_split_an_expert_over_the_devices_that_experts_leave(alone, command: str, parts: int | None):
    assert alone("serve.sh", f"{command}\n").plan.value("parallelism.etp") == parts


def test_megatron_splits_an_expert_as_the_layers_around_it(alone):
    text = (
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 "
        "--seq-length 2048 --micro-batch-size 1 --global-batch-size 16 --num-experts 8 --bf16 --vocab-size 32000 "
        "--tensor-model-parallel-size 2 --expert-model-parallel-size 4"
    )
    assert alone("run.sh", f"{text}\n").plan.value("parallelism.etp") == 2
    assert alone("run.sh", f"{text} --expert-tensor-parallel-size 1\n").plan.value("parallelism.etp") == 1


def test_further_layers_that_guess_tokens_count(alone, tmp_path: Path):
    (tmp_path / "more.yaml").write_text("speculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n")
    imported = alone("serve.sh", "trtllm-serve deepseek-ai/DeepSeek-R1 --tp_size 8 --extra_llm_api_options more.yaml\n")
    assert imported.plan.value("inference.num_speculative_tokens") == 3


@pytest.mark.parametrize(
    ("preparing", "checkpointing"),
    [
        ("prepare_model_for_kbit_training(model)", "full"),
        ("prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)", "none"),
        ("model.gradient_checkpointing_enable()", "full"),
        ("if wanted():\n    model.gradient_checkpointing_enable()", "none"),
    ],
)
def test_recomputation_that_a_script_turns_on_itself_counts(alone, preparing: str, checkpointing: str):
    loaded = 'model = LlamaForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", load_in_8bit=True)\n'
    plan = alone("train.py", f"{LIBRARIES}{loaded}{preparing}\nLoraConfig(r=8)\n{TRAINED}").plan
    assert (plan.value("model.name"), plan.value("training.checkpointing")) == ("llama-2-7b", checkpointing)
    assert plan.value("training.quantization") == "int8"


def test_recomputation_of_a_base_that_is_not_quantized_is_the_trainers(alone):
    loaded = 'model = LlamaForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")\n'
    text = f"{LIBRARIES}{loaded}prepare_model_for_kbit_training(model)\nLoraConfig(r=8)\n{TRAINED}"
    assert alone("train.py", text).plan.value("training.checkpointing") == "none"


def test_devices_that_a_script_lets_itself_see_are_those_of_the_run(alone):
    imported = alone("train.py", f'{LIBRARIES}os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\n{TRAINED}')
    assert imported.plan.value("hardware.devices") == 2


@pytest.mark.parametrize(
    ("before", "devices"), [("NPROC_PER_NODE=4 ", 4), ("export NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1,2\n", 2)]
)
def test_processes_that_a_variable_gives_count(alone, before: str, devices: int):
    plan = alone("run.sh", f"{before}swift sft --model Qwen/Qwen3-4B --tuner_type lora\n").plan
    assert plan.value("hardware.devices") == devices


@pytest.mark.parametrize(("prompts", "micro"), [(8, 1), (32, 2), (48, 3)])
def test_passes_filled_with_tokens_hold_no_more_than_a_replica_has(alone, prompts: int, micro: int):
    text = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.n_gpus_per_node=8 trainer.nnodes=1 "
        "actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct data.max_prompt_length=2048 "
        "data.max_response_length=2048 actor_rollout_ref.actor.use_dynamic_bsz=True "
        f"data.train_batch_size={prompts} actor_rollout_ref.actor.ppo_mini_batch_size={prompts} "
    )
    imported = alone("run.sh", f"{text}actor_rollout_ref.actor.ppo_max_token_len_per_gpu=12288\n")
    assert (imported.plan.value("training.micro_batch"), imported.clashes) == (micro, ())


def test_answers_alone_are_as_long_as_they_may_be(alone):
    text = "swift rlhf --rlhf_type grpo --model Qwen/Qwen3-4B --max_completion_length 16384 --num_generations 4\n"
    imported = alone("run.sh", text)
    assert imported.plan.value("training.seq_len") == 16384
    assert "how long prompts are" in imported.settings["training.seq_len"].words


def test_a_file_of_options_in_a_form_of_its_own_is_named(alone, tmp_path: Path):
    (tmp_path / "own.yaml").write_text("base: somewhere\nstages:\n  preference_batch: 2\n")
    (tmp_path / "train.py").write_text(f"{LIBRARIES}{TRAINED}")
    imported = alone("run.sh", "deepspeed --num_gpus=8 train.py --config own.yaml\n")
    assert "own.yaml" in remarks(imported)["--config"]


def test_options_of_a_script_that_calls_other_tools_are_its_own(alone, tmp_path: Path):
    body = (
        "def train(base_model='', micro_batch_size=4, num_epochs=3, cutoff_len=256, lora_r=8):\n"
        "    model = LlamaForCausalLM.from_pretrained(base_model, load_in_8bit=True)\n    LoraConfig(r=lora_r)\n"
        "    args = TrainingArguments(per_device_train_batch_size=micro_batch_size, num_train_epochs=num_epochs)\n"
        "    Trainer(args=args)\n"
    )
    (tmp_path / "tune.py").write_text(f"{LIBRARIES}{body}fire.Fire(train)\n")
    text = "python tune.py --base_model huggyllama/llama-7b --micro_batch_size 8 --num_epochs 2 --lora_r 16\n"
    imported = alone("run.sh", text)
    training = imported.plan.training
    assert (training.framework, training.micro_batch, training.adapter.rank) == ("transformers", 8, 16)
    assert training.quantization == "int8"


def test_a_script_that_is_only_called_as_one_of_a_tool_is_none_of_it(alone, tmp_path: Path):
    command = "python src/run_dpo.py --train_jsonl a --beta 0.1 --lr 5e-7 --batch_size 2 --grad_accum 16\n"
    with pytest.raises(CapacityError, match="no command of a known tool"):
        alone("run.sh", command)
    (tmp_path / "src").mkdir()
    options = "parser.add_argument('--batch_size', type=int)\narguments = parser.parse_args()\n"
    calls = "DPOTrainer(args=DPOConfig(per_device_train_batch_size=arguments.batch_size))\n"
    (tmp_path / "src" / "run_dpo.py").write_text(f"import trl\n{options}{calls}")
    imported = alone("run.sh", command)
    assert (imported.plan.value("training.preference"), imported.plan.value("training.micro_batch")) == ("dpo", 2)


def test_a_script_that_only_keeps_what_changes_no_run_is_refused(alone):
    text = (
        "#!/bin/bash\nSERVER=(--host 0.0.0.0 --port 8000)\nNAMES=(--served-model-name own --tool-call-parser hermes)\n"
    )
    with pytest.raises(CapacityError, match="no command of a known tool"):
        alone("run.sh", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Modelfile", "FROM ./llama-13b-chat-q4_1.gguf\n"),
        (
            "eval.sh",
            "python tasks/evaluate.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --fp16"
            " --micro-batch-size 1 --seq-length 2048 --max-position-embeddings 2048\n",
        ),
    ],
)
def test_requests_that_nothing_gives_go_into_the_models_context(alone, name: str, text: str):
    imported = alone(name, text)
    inference = imported.plan.inference
    assert inference.prompt_tokens + inference.output_tokens == 2048
    assert any("the longest that it takes" in guess for guess in imported.guesses)


def test_the_length_of_a_data_set_of_torchtune_counts(alone):
    text = (
        "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_rank: 8\n"
        "dataset:\n  _component_: own.dataset\n  max_seq_len: 512\nbatch_size: 2\n"
        "tokenizer:\n  path: tokenizer.model\n"
        "checkpointer:\n  _component_: torchtune.training.FullModelHFCheckpointer\n  model_type: LLAMA3\n"
        "optimizer:\n  _component_: torch.optim.AdamW\nenable_activation_checkpointing: false\n"
    )
    assert alone("tune.yaml", text).plan.value("training.seq_len") == 512


def test_samples_at_most_are_an_assumption(alone):
    text = "stage: sft\nfinetuning_type: lora\nmodel_name_or_path: gpt2\ndo_train: true\ncutoff_len: 512\n"
    imported = alone("sft.yaml", f"{text}max_samples: 90000\n")
    assert imported.plan.value("training.samples") == 90000
    assert any("the most that max_samples lets through" in guess for guess in imported.guesses)


def test_code_of_its_own_beside_a_tool_is_named_wherever_it_lies(alone):
    text = 'swift sft --model Qwen/Qwen3-4B --tuner_type lora --external_plugins "$HERE/plugin.py"\n'
    assert "not read" in remarks(alone("run.sh", text))["--external_plugins"]


def test_references_to_keys_of_the_same_section_are_resolved(alone):
    text = (
        "trainer:\n  devices: 8\n  num_nodes: 1\n  precision: bf16\nmodel:\n  encoder_seq_length: 4096\n"
        "  max_position_embeddings: ${.encoder_seq_length}\n  num_layers: 2\n  hidden_size: 256\n"
        "  ffn_hidden_size: ${multiply:4,${.hidden_size}}\n  num_attention_heads: 4\n  micro_batch_size: 1\n"
        "  data:\n    seq_length: ${..encoder_seq_length}\n"
    )
    imported = alone("gpt.yaml", text)
    assert imported.plan.value("model.spec")["max_context"] == 4096
    assert "multiply" in remarks(imported)["model.ffn_hidden_size"]


SERVICE = """\
services:
  server:
    image: {image}
    environment:
      - HF_TOKEN=${{HF_TOKEN}}
{variables}
    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, count: 2, capabilities: [gpu]}}]}}}}}}
"""


@pytest.mark.parametrize(
    ("image", "variables", "said"),
    [
        (
            "ghcr.io/huggingface/text-generation-inference:3.0",
            "MODEL_ID=${MODEL_ID:-Qwen/Qwen2.5-7B-Instruct} NUM_SHARD=2 MAX_TOTAL_TOKENS=8192 PORT=80",
            {"model.name": "qwen2.5-7b", "parallelism.tp": 2, "inference.engine": "tgi"},
        ),
        (
            "ghcr.io/ggml-org/llama.cpp:server-cuda",
            "LLAMA_ARG_HF_REPO=ggml-org/Meta-Llama-3.1-8B-Q4_0-GGUF LLAMA_ARG_CTX_SIZE=8192 LLAMA_ARG_N_PARALLEL=2",
            {"model.name": "llama-3.1-8b", "inference.weights": "q4_0", "inference.concurrency": 2},
        ),
    ],
)
def test_options_that_a_container_has_in_variables_count(alone, image: str, variables: str, said: dict[str, object]):
    lines = "\n".join(f"      - {variable}" for variable in variables.split())
    plan = alone("compose.yml", SERVICE.format(image=image, variables=lines)).plan
    assert {path: plan.value(path) for path in said} == said


def test_an_argument_of_a_container_goes_before_its_variable(alone):
    text = SERVICE.format(image="ghcr.io/huggingface/text-generation-inference", variables="      - NUM_SHARD=2")
    command = "    command: --model-id Qwen/Qwen2.5-7B-Instruct --num-shard 1\n"
    imported = alone("compose.yml", text + command)
    assert imported.plan.value("parallelism.tp") == 1
    assert "given_twice" not in {clash.rule for clash in imported.clashes}


def test_entries_of_arrays_are_put_in(alone):
    text = (
        "declare -A paths lengths=([small]=1024 ['large']=\"4096\")\n"
        'paths["small"]="/models/Qwen3-4B"\npaths["large"]=/models/Qwen3-8B\nbatches=(1 2 8)\nname="large"\n'
        "swift sft --model ${paths[$name]} --max_length ${lengths[$name]} --tuner_type lora \\\n"
        "  --per_device_train_batch_size ${batches[1]} --lora_rank ${ranks[$name]:-32}\n"
    )
    training = alone("run.sh", text).plan.training
    assert (training.seq_len, training.micro_batch, training.adapter.rank) == (4096, 2, 32)
    assert alone("run.sh", text).plan.value("model.name") == "qwen3-8b"


def test_values_of_modules_beside_a_script_count(alone, tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "settings.py").write_text(
        'MODEL = "Qwen/Qwen3-8B"\nRANK = 64\n\n\nclass Lengths:\n    longest: int = 4096\n\n\nlengths = Lengths()\n'
    )
    (tmp_path / "batches.py").write_text("BATCH, MODEL = 2, None\nBATCH = 4\nSTEPS = 100\n")
    text = (
        "import own.settings as config\nfrom batches import BATCH\nfrom own.settings import lengths\n"
        "model = AutoModelForCausalLM.from_pretrained(config.MODEL)\n"
        'LoraConfig(r=getattr(config, "RANK", 8), target_modules=getattr(config, "MODULES", ["q_proj", "v_proj"]))\n'
        "SFTTrainer(args=SFTConfig(per_device_train_batch_size=BATCH, max_length=lengths.longest, bf16=True,\n"
        "    num_train_epochs=arguments.STEPS))\n"
    )
    imported = alone("train.py", text)
    training = imported.plan.training
    assert imported.plan.value("model.name") == "qwen3-8b"
    assert (training.adapter.rank, training.adapter.targets) == (64, "query+value")
    assert (training.micro_batch, training.seq_len) == (4, 4096)
    assert "arguments.STEPS" in remarks(imported)["num_train_epochs"]


def test_epochs_of_data_that_a_file_only_names_contradict_nothing(alone):
    text = "stage: sft\nfinetuning_type: lora\nmodel_name_or_path: Qwen/Qwen3-8B\ndo_train: true\nnum_train_epochs: 2\n"
    imported = alone("sft.yaml", text)
    assert audit(imported).contradictions == ()
    assert any(guess.startswith("training.epochs 2") for guess in imported.guesses)


def test_texts_that_a_script_cuts_into_names_are_read(alone, tmp_path: Path):
    (tmp_path / "tune.py").write_text(
        "import peft\nparser.add_argument('--modules', default='q_proj, v_proj')\narguments = parser.parse_args()\n"
        "modules = [name.strip() for name in arguments.modules.split(',') if name.strip()]\n"
        f"LoraConfig(r=8, target_modules=modules)\n{TRAINED}"
    )
    assert alone("run.sh", "python tune.py\n").plan.value("training.adapter.targets") == "query+value"
    every = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"
    assert alone("run.sh", f"python tune.py --modules {every}\n").plan.value("training.adapter.targets") == "all"


@pytest.mark.parametrize(
    ("given", "precision"), [("", "bf16"), ("bf16=False", "fp32"), ("bf16=False, fp16=True", "fp16")]
)
def test_numbers_that_trl_is_told_not_to_use_are_not_used(alone, given: str, precision: str):
    assert (
        alone("sft.py", f"import trl\nSFTTrainer(args=SFTConfig({given}))\n").plan.value("training.precision")
        == precision
    )


def test_a_vocabulary_that_no_file_gives_is_an_assumption(alone):
    sizes = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 --seq-length 128"
    imported = alone("run.sh", f"python pretrain_gpt.py {sizes}\n")
    assert any("vocabulary" in guess for guess in imported.guesses)
    assert not any(
        "vocabulary" in guess for guess in alone("run.sh", f"python pretrain_gpt.py {sizes} --vocab-size 512\n").guesses
    )


ADAPTERS = (
    "from own_arguments import LoraArguments\nparser = HfArgumentParser((LoraArguments,))\n(own,) = parser.parse()\n"
    "model = AutoModelForCausalLM.from_pretrained(own.model, attn_implementation='eager' if own.plain else 'sdpa')\n"
    "if own.lora_enable:\n    LoraConfig(r=own.lora_r)\nif own.bits == 4:\n    BitsAndBytesConfig(load_in_4bit=True)\n"
)


@pytest.mark.parametrize(
    ("options", "method", "attention"),
    [
        ("", "full", "sdpa"),
        ("--lora_enable True --plain True", "lora", "eager"),
        ("--lora_enable True --bits 4 --plain False", "qlora", "sdpa"),
        ("--lora_enable False", "full", "sdpa"),
    ],
)
def test_what_arguments_of_a_module_decide_is_decided(alone, tmp_path: Path, options: str, method: str, attention: str):
    (tmp_path / "own_arguments.py").write_text(
        "class LoraArguments:\n    model: str = 'Qwen/Qwen3-8B'\n    lora_enable: bool = False\n    lora_r: int = 32\n"
        "    bits: int = 16\n    plain: bool = False\n"
    )
    (tmp_path / "train.py").write_text(f"{ADAPTERS}Trainer(args=TrainingArguments(per_device_train_batch_size=1))\n")
    training = alone("run.sh", f"python train.py {options}\n").plan.training
    assert (training.method or "full", training.attention) == (method, attention)


def test_arguments_of_unsloth_are_those_of_the_trainer(alone):
    text = "import unsloth\nUnslothTrainer(args=UnslothTrainingArguments(per_device_train_batch_size=4, bf16=True))\n"
    plan = alone("train.py", text).plan
    assert (plan.value("training.micro_batch"), plan.value("training.precision")) == (4, "bf16")


def test_a_script_in_folders_of_another_machine_is_read_where_it_lies_below(alone, tmp_path: Path):
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning" / "own.py").write_text(f"{LIBRARIES}LoraConfig(r=8)\n{TRAINED}")
    imported = alone("run.sh", "python /home/somebody/work/tuning/own.py --output_dir out --num_train_epochs 1\n")
    assert imported.plan.value("training.method") == "lora"


def test_a_program_that_is_only_asked_for_its_release_is_no_run(alone):
    imported = alone("run.sh", "llama-server --version\nllama-server -hf bartowski/Qwen_Qwen3-8B-GGUF:Q4_K_M -c 4096\n")
    assert imported.plan.value("model.name") == "qwen3-8b"
    assert not remarks(imported)


@pytest.mark.parametrize("count", ["awk -F',' '{print NF}'", "tr ',' '\\n' | wc -l"])
def test_devices_that_programs_count_are_counted(alone, count: str):
    text = (
        f'SEEN="0,1,2,3"\nDEVICES=$(echo "$SEEN" | {count})\nvllm serve Qwen/Qwen3-8B --tensor-parallel-size $DEVICES\n'
    )
    assert alone("run.sh", text).plan.value("parallelism.tp") == 4


def test_a_program_of_ones_own_with_options_of_a_tool_is_named(alone):
    text = "own-cli dpo --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --output_dir x --beta 0.1\n"
    assert "no program that is known" in remarks(alone("run.sh", text))["own-cli dpo"]


@pytest.mark.parametrize(("offload", "is_named"), [("0", False), ("8", True)])
def test_what_is_switched_off_needs_no_remark(alone, offload: str, is_named: bool):
    imported = alone("run.sh", f"vllm serve Qwen/Qwen3-8B --cpu-offload-gb {offload}\n")
    assert ("--cpu-offload-gb" in remarks(imported)) is is_named


@pytest.mark.parametrize(
    ("further", "is_read"), [("model.save_pretrained('out')\n", False), ("loss.backward()\n", True)]
)
def test_a_script_that_only_loads_a_model_is_no_run(alone, further: str, is_read: bool):
    text = f"import transformers\nmodel = LlamaForCausalLM.from_pretrained('huggyllama/llama-7b')\n{further}"
    if is_read:
        assert alone("own.py", text).plan.value("model.name") == "llama-1-7b"
    else:
        with pytest.raises(CapacityError, match="neither trains nor answers"):
            alone("own.py", text)
