"""Values that options have in files of other people, and what they stand for."""

from __future__ import annotations

import pytest

from capacity_tui.engine.errors import PlanError

NEOX = (
    '{"pipe_parallel_size": 1, "model_parallel_size": 1, "num_layers": 12, "hidden_size": 768, '
    '"num_attention_heads": 12, "seq_length": 2048, "max_position_embeddings": 2048, '
    '"train_micro_batch_size_per_gpu": 4%s}'
)
AXOLOTL = "base_model: EleutherAI/pythia-1.4b\nadapter: lora\nlora_r: 16\nlora_target_linear: true\n"
FACTORY = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: lora\nmax_samples: 1000\n"
    "dataset: {}\n"
)
MOE = "megatron sft --tensor_model_parallel_size 2 --expert_model_parallel_size 2 --micro_batch_size 1"
FULL = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
GROUPS = (
    "model_name_or_path: Qwen/Qwen3-4B\nnum_generations: 8\nmax_prompt_length: {}\nmax_completion_length: {}\n"
    "per_device_train_batch_size: 8\n"
)
SLIME = (
    "python3 train.py --hf-checkpoint Qwen/Qwen3-4B --loss-type sft_loss --rollout-batch-size 128 "
    "--n-samples-per-prompt 1 --global-batch-size 128 --use-dynamic-batch-size --max-tokens-per-gpu 9216\n"
)
NEMO = (
    "trainer: {{devices: 8, num_nodes: 1, precision: bf16}}\nmodel:\n  micro_batch_size: 2\n  global_batch_size: 16\n"
    "  tensor_model_parallel_size: 1\n  expert_model_parallel_size: 8\n  encoder_seq_length: 4096\n  num_layers: 32\n"
    "  hidden_size: 4096\n  ffn_hidden_size: 14336\n  num_attention_heads: 32\n  num_moe_experts: 8\n"
    "  moe_router_topk: 2\n  fp8: {}\n  fp8_params: true\n  optim: {{name: fused_adam, grad_sync_dtype: bf16}}\n"
)
NANOTRON = (
    "parallelism: {dp: 8, tp: 1, pp: 1}\ntokens: {micro_batch_size: 1, sequence_length: 32768}\n"
    "model: {model_config: {num_hidden_layers: 32, hidden_size: 4608, intermediate_size: 18432, "
    "num_attention_heads: 36, num_kv_heads: 4, sliding_window_size: 4096, vocab_size: 49152}}\n"
)
BRIDGE = (
    "model: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 4, expert_model_parallel_size: 2}\n"
    "train: {train_iters: 200, global_batch_size: 64, micro_batch_size: 1}\ndataset: {seq_length: 8192}\n"
    "checkpoint: {pretrained_checkpoint: /x/Qwen3-30B-A3B}\n"
)
RECIPE = (
    "from nemo.collections import llm\n\ndef configure(nodes: int = 1, gpus: int = 2):\n"
    "    recipe = llm.llama3_8b.finetune_recipe(name='a', num_nodes=nodes, num_gpus_per_node=gpus)\n"
    "    recipe.trainer.max_steps = 100\n    return recipe\n"
)
PARTS = (
    "import nemo_run as run\nfrom nemo import lightning as nl\nfrom nemo.collections import llm\n\n"
    "def trainer():\n    strategy = run.Config(nl.MegatronStrategy, tensor_model_parallel_size=2)\n"
    "    return run.Config(nl.Trainer, devices=2, max_steps=20, strategy=strategy)\n\n"
    "def model():\n    return run.Config(llm.LlamaModel, config=run.Config(llm.Llama3Config8B))\n\n"
    "data = run.Config(llm.SquadDataModule, seq_length=2048, micro_batch_size=1, global_batch_size=8)\n"
    "run.run(run.Partial(llm.finetune, model=model(), trainer=trainer(), data=data))\n"
)
PICTURES = (
    "accelerate launch train_own_lora_flux.py --pretrained_model_name_or_path black-forest-labs/FLUX.1-dev "
    "--train_batch_size 1 --max_train_steps 100 --rank 16 --instance_prompt dog "
)
CACHED = (
    "accelerate launch train_own.py --pretrained_model_name_or_path /x/sd_xl_base_1.0.safetensors --in_json a.json "
    "--max_train_steps 100 --mixed_precision fp16 --cache_text_encoder_outputs --optimizer_type Adafactor\n"
)


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("b.yaml", BRIDGE, "parallelism.etp", None),
        ("r.py", RECIPE, "hardware.devices", 2),
        ("p.py", PARTS, "model.name", "llama-3-8b"),
        ("t.sh", "tune run --nproc_per_node 4 lora_finetune_distributed batch_size=2\n", "training.method", "lora"),
        ("t.sh", "tune run --nnodes 1 --nproc_per_node 4 a/lora_dpo_distributed.py\n", "training.preference", "dpo"),
        ("p.py", PARTS, "parallelism.tp", 2),
        ("p.py", PARTS, "training.micro_batch", 1),
        (
            "t.sh",
            "python megatron_gpt_peft_tuning.py model.restore_from_path=/x/llama-3-8b.nemo model.micro_batch_size=1 "
            "model.global_batch_size=8 model.peft.peft_scheme=lora model.data.train_ds.max_seq_length=1024\n",
            "training.seq_len",
            1024,
        ),
        ("d.sh", f"{PICTURES}--resolution '1024*1024'\n", "model.spec.image_size", 1024),
        ("d.sh", f"{PICTURES}--optimizer Adafactor\n", "training.optimizer", "adafactor"),
        ("k.sh", CACHED, "training.optimizer", "adafactor"),
        ("s.sh", 'D="$(pwd)"\nllama-server --model "${D}/Qwen3-8B-Q4_K_M.gguf"\n', "model.name", "qwen3-8b"),
        ("s.bat", 'set "D=C:\\x"\ntrtllm-serve serve Qwen/Qwen3-8B --max_batch_size 8\n', "inference.concurrency", 8),
        ("neox.yml", NEOX % "", "training.attention", "eager"),
        ("neox.yml", NEOX % ', "attention_config": [[["flash"], 12]]', "training.attention", "flash2"),
        ("a.yml", f"{AXOLOTL}lora_modules_to_save: [embed_in, embed_out]\n", "training.adapter.train_embeddings", True),
        ("a.yml", f"{AXOLOTL}lora_modules_to_save: [score]\n", "training.adapter.train_embeddings", False),
        ("f.yaml", FACTORY.format("first,second"), "training.samples", 2000),
        ("f.yaml", FACTORY.format("first"), "training.samples", 1000),
        ("l.yaml", FULL + "use_galore: true\n", "training.optimizer_rank", 16),
        ("l.yaml", FULL + "use_apollo: true\napollo_rank: 256\noptim: adamw_torch\n", "training.optimizer", "apollo"),
        ("l.yaml", FULL + "galore_rank: 256\n", "training.optimizer_rank", None),
        ("l.yaml", FULL + "optim: galore_adamw\noptim_args: rank=64, scale=0.25\n", "training.optimizer_rank", 64),
        ("m.sh", f"{MOE} --load /x/Qwen3-30B-A3B-mcore", "model.name", "qwen3-30b-a3b"),
        ("m.sh", f"{MOE} --load /x/Qwen3-30B-A3B-mcore", "parallelism.etp", None),
        ("g.yaml", GROUPS.format(5888, 256), "training.predicted_tokens", 256),
        ("s.sh", SLIME, "training.micro_batch", 4),
        ("n.yaml", NEMO.format("false"), "training.fp8_weights", None),
        ("n.yaml", NEMO.format("true"), "training.fp8_weights", True),
        ("n.yaml", NEMO.format("false"), "training.gradients", "bf16"),
        ("n.yaml", NEMO.format("false"), "model.spec.experts", 8),
        (
            "b.sh",
            "trtllm-build --model mistralai/Mistral-7B-v0.3 --max_input_len 32768\n",
            "inference.output_tokens",
            512,
        ),
    ],
)
def test_values_stand_for_what_the_tool_does(alone, name: str, text: str, field: str, value: object) -> None:
    imported = alone(name, text)
    assert imported.plan.value(field) == value
    assert not [clash for clash in imported.clashes if clash.rule != "idle_devices"]


def test_modules_trained_whole_that_have_no_word_are_named(alone) -> None:
    imported = alone("a.yml", f"{AXOLOTL}lora_modules_to_save: [embed_in, connector]\n")
    assert [one.why for one in imported.readings[0].unmodelled] == ["connector trained whole: not counted"]


def test_a_section_that_is_switched_off_says_nothing(alone) -> None:
    text = (
        "policy: {model_name: Qwen/Qwen3-8B, train_micro_batch_size: 1, dtensor_cfg: {tensor_parallel_size: 1}, "
        "megatron_cfg: {enabled: false, tensor_model_parallel_size: 4, pipeline_model_parallel_size: 2}}\n"
        "grpo: {num_prompts_per_step: 8, num_generations_per_prompt: 4}\ncluster: {gpus_per_node: 8}\n"
    )
    imported = alone("rl.yaml", text)
    assert (imported.plan.parallelism.tp, imported.plan.parallelism.pp, imported.clashes) == (1, 1, ())


def test_an_option_of_a_tool_is_no_further_name_of_one_that_it_is_like(alone) -> None:
    options = "--model Qwen/Qwen2.5-7B --model_name bot --model_author me --train_type lora --dataset d"
    assert not alone("run.sh", f"swift sft {options}\n").clashes


def test_what_a_program_trains_beside_the_model_is_refused_unless_a_task_says_what_to_count(alone) -> None:
    options = "--pretrained_model_name_or_path stabilityai/stable-diffusion-xl-base-1.0 --train_batch_size 1"
    command = f"accelerate launch train_controlnet_sdxl.py {options} --resolution 1024\n"
    with pytest.raises(PlanError, match="ControlNet"):
        alone("run.sh", command)
    imported = alone("run.sh", command, {"task": "finetune", "training.method": "full"})
    assert any("ControlNet" in one.why for reading in imported.readings for one in reading.unmodelled)


def test_a_default_that_stands_for_what_only_a_run_tells_says_so(alone) -> None:
    text = (
        "from transformers import Trainer, TrainingArguments\n"
        "arguments = TrainingArguments(per_device_train_batch_size=settings.batch, bf16=True)\n"
        "Trainer(args=arguments)\n"
    )
    words = alone("train.py", text).settings["training.micro_batch"].words
    assert words.endswith("train.py:2: per_device_train_batch_size not read, 8 by default")


def test_a_trainer_whose_settings_are_not_read_has_those_of_its_library(alone) -> None:
    text = "from trl import SFTTrainer\nSFTTrainer(model='Qwen/Qwen2.5-7B', args=made_elsewhere)\n"
    imported = alone("train.py", text)
    training = imported.plan.training
    assert (training.micro_batch, training.seq_len, training.checkpointing) == (8, 1024, "full")
    assert any("the tool's default counts" in one.why for one in imported.readings[0].unmodelled)


def test_the_beginning_of_one_name_stands_for_it_as_parsers_take_it(alone) -> None:
    command = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-len 4096\n"
    imported = alone("run.sh", command)
    assert imported.plan.inference.prompt_tokens + imported.plan.inference.output_tokens == 4096
    assert not imported.readings[0].unknown


def test_recipes_of_nemo_are_read_by_the_factory_that_a_command_names(alone) -> None:
    command = "nemo llm pretrain --factory 'llama3_8b(num_nodes=2, num_gpus_per_node=4)' trainer.max_steps=100 -y\n"
    imported = alone("run.sh", command, {"hardware.devices": 8})
    plan = imported.plan
    assert (plan.model.name, plan.training.seq_len, plan.training.global_batch) == ("llama-3-8b", 8192, 512)
    assert (plan.parallelism.cp, plan.training.steps, plan.hardware.per_node) == (2, 100, 4)
    tuned = alone("run.sh", "nemo llm finetune --factory \"llama3_8b(peft_scheme='dora')\"\n").plan
    assert (tuned.training.method, tuned.training.steps) == ("dora", 1000)


def test_a_model_that_always_reads_as_much_is_trained_at_that(alone) -> None:
    options = "--model_name_or_path openai/whisper-small --per_device_train_batch_size 4 --output_dir x"
    imported = alone("run.sh", f"python run_speech_recognition_seq2seq.py {options}\n")
    assert imported.settings["training.seq_len"].words == "the model takes 1500 tokens"


def test_a_network_of_layers_has_no_length(alone) -> None:
    options = "--model_name_or_path microsoft/resnet-50 --per_device_train_batch_size 4 --output_dir x --bf16"
    imported = alone("run.sh", f"python run_image_classification.py {options}\n")
    assert (imported.plan.model.name, "training.seq_len" in imported.settings) == ("resnet-50", False)


def test_switches_of_toml_are_switches(alone) -> None:
    text = (
        'pretrained_model_name_or_path = "stabilityai/stable-diffusion-xl-base-1.0"\ntrain_batch_size = 2\n'
        "gradient_checkpointing = true\nmax_train_steps = 100\ncache_latents = false\n"
    )
    imported = alone("train.toml", text)
    assert imported.plan.training.checkpointing == "full"
    assert not [one for reading in imported.readings for one in reading.unmodelled]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "y.py",
            "from ultralytics import YOLO\nimport own\nbatch = own.batch()\n"
            "YOLO('yolo11m.pt').train(data='a.yaml', epochs=10, batch=batch)\n",
            {"batch": ["only running the script tells batch: the tool's default counts"]},
        ),
        (
            "q.yaml",
            "quantizer: {_component_: torchtune.training.quantization.Int4WeightOnlyQATQuantizer}\n"
            "checkpointer: {checkpoint_dir: /x/Meta-Llama-3.1-8B}\nenable_activation_checkpointing: true\n"
            "metric_logger: {}\nbatch_size: 2\n",
            {
                "quantizer._component_": [
                    "weights rounded while they are trained: its copies and its time are not counted"
                ]
            },
        ),
    ],
)
def test_what_is_not_counted_is_said_once(alone, name: str, text: str, words: dict[str, list[str]]) -> None:
    remarks = [remark for reading in alone(name, text).readings for remark in reading.unmodelled]
    for option, whys in words.items():
        assert [remark.why for remark in remarks if remark.place.field == option] == whys


@pytest.mark.parametrize(
    ("name", "network", "told"),
    [
        ("yolo11s-seg.pt", "yolo11s", ["a head for masks: that for boxes is counted"]),
        ("yolov8m-pose", "yolov8m", ["a head for points of bodies: that for boxes is counted"]),
        ("yolov8m.pt", "yolov8m", []),
    ],
)
def test_a_head_for_more_than_boxes_is_counted_as_one_for_these(
    alone, name: str, network: str, told: list[str]
) -> None:
    imported = alone("run.sh", f"yolo detect train model={name} data=own.yaml epochs=10 batch=8\n")
    assert imported.plan.model.name == network
    assert [one.why for reading in imported.readings for one in reading.unmodelled] == told


@pytest.mark.parametrize("option", ["use_liger", "use_liger_kernel"])
def test_the_loss_of_liger_is_fused_under_its_former_name_too(alone, option: str) -> None:
    imported = alone("sft.yaml", f"model_name_or_path: Qwen/Qwen3-8B\nmax_length: 512\npacking: true\n{option}: true\n")
    assert imported.plan.training.loss == "fused"
    assert not [one for reading in imported.readings for one in reading.unknown]
