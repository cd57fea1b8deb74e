"""Files within files, forms of one's own and of other systems: what a person reads in them counts."""

from __future__ import annotations

import pytest

from capacity_tui.engine.errors import CapacityError

LENGTH = "inference.output_tokens"
MODEL = "Qwen/Qwen3-8B"
OFFLINE = f"from vllm import LLM, SamplingParams\nllm = LLM(model='{MODEL}')\n"
SERVICE = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
spec:
  replicas: 2
  model: {uri: hf://Qwen/Qwen3-8B}
  parallelism: {tensor: 4, dataLocal: 1, expert: false}
  template:
    containers:
    - name: main
      env: [{name: VLLM_ADDITIONAL_ARGS, value: --max-model-len=4096 --kv-cache-dtype fp8}]
      resources: {limits: {nvidia.com/gpu: 4}}
"""
RAY = """\
import os
from ray.serve.llm import LLMConfig, build_openai_app
usual = {"max_model_len": 4096, "max_num_seqs": 16}
config = LLMConfig(
    model_loading_config=dict(model_id="chat", model_source="Qwen/Qwen3-8B"),
    accelerator_type="L4",
    deployment_config={"autoscaling_config": {"min_replicas": 2, "max_replicas": 5}},
    engine_kwargs={**usual, "tensor_parallel_size": int(os.environ.get("TP", "2")), "max_num_seqs": 8},
)
app = build_openai_app({"llm_configs": [config]})
"""
CODE = """\
kind: ConfigMap
data:
  train.py: |
    from trl import SFTConfig, SFTTrainer
    arguments = SFTConfig(per_device_train_batch_size=3, max_length=512)
    SFTTrainer("Qwen/Qwen3-8B", args=arguments).train()
---
kind: Job
spec:
  template:
    spec:
      containers:
      - command: [torchrun, --nproc_per_node=4, /code/train.py]
"""
WITHIN = """\
pip install vllm
python3 - <<'PY'
from vllm import LLM, SamplingParams
engine = LLM(model="Qwen/Qwen3-8B", tensor_parallel_size=2, max_model_len=4096)
engine.generate(prompts, SamplingParams(temperature=0))
PY
"""
RECIPE = """\
model: Qwen/Qwen3-8B
defaults: {max_model_len: 4096, tensor_parallel: 2}
command: |
  vllm serve {model} --max-model-len {max_model_len} -tp {tensor_parallel}
"""
FILLED = """\
kind: Pod
spec:
  containers:
  - image: vllm/vllm-openai:v0.11
    args: [--model=$(MODEL), "--max-model-len=$(LENGTH)"]
    env: [{name: MODEL, value: Qwen/Qwen3-8B}, {name: LENGTH, value: "4096"}]
"""


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("service.yaml", SERVICE, {"parallelism.tp": 4, "hardware.devices": 8, "inference.kv_cache": "fp8"}),
        ("serve.py", RAY, {"parallelism.tp": 2, "hardware.devices": 4, "inference.concurrency": 16}),
        ("job.yaml", CODE, {"training.micro_batch": 3, "training.seq_len": 512, "hardware.devices": 4}),
        ("run.sh", WITHIN.replace("python3 -", "python3 -u -"), {"parallelism.tp": 2}),
        ("run.sh", WITHIN, {"parallelism.tp": 2, "inference.prompt_tokens": 4080, LENGTH: 16}),
        ("recipe.yaml", RECIPE, {"parallelism.tp": 2, "inference.prompt_tokens": 3584}),
        ("pod.yaml", FILLED, {"inference.prompt_tokens": 3584}),
    ],
)
def test_what_stands_within_a_file_counts(alone, name: str, text: str, values: dict[str, object]) -> None:
    plan = alone(name, text).plan
    assert plan.model.name == "qwen3-8b"
    assert {path: plan.value(path) for path in values} == values


def test_a_class_that_others_have_too_is_known_by_where_it_comes_from(alone) -> None:
    with pytest.raises(CapacityError, match="no call of a known tool"):
        alone("agent.py", RAY.replace("ray.serve.llm", "agents.settings"))


@pytest.mark.parametrize(
    ("asked", "answers"), [("SamplingParams(max_tokens=64)", 64), ("SamplingParams(temperature=0)", 16)]
)
def test_answers_are_as_long_as_they_are_by_default(alone, asked: str, answers: int) -> None:
    assert alone("a.py", f"{OFFLINE}llm.generate(prompts, {asked})\n").plan.value(LENGTH) == answers


@pytest.mark.parametrize(
    ("command", "devices", "model"),
    [
        (f"srun trtllm-serve {MODEL}", 1, "qwen3-8b"),
        (f"trtllm-serve serve --tp_size 2 --backend pytorch models/{MODEL}", 2, "qwen3-8b"),
        (
            f"docker run -d --name vllm-openai -v vllm-openai:/root vllm/vllm-openai:v1 --model {MODEL} -tp 2",
            2,
            "qwen3-8b",
        ),
        ("docker run --network nim --gpus all nvcr.io/nim/meta/llama-3.1-8b-instruct:1", 1, "llama-3.1-8b"),
    ],
)
def test_names_beside_a_server_are_none(alone, command: str, devices: int, model: str) -> None:
    plan = alone("run.sh", f"{command}\n").plan
    assert (plan.hardware.devices, plan.model.name) == (devices, model)


@pytest.mark.parametrize(
    "path",
    [
        r"C:\models\Qwen3-8B",
        r"C:\Users\me\.cache\huggingface\hub\models--Qwen--Qwen3-8B\snapshots\0a1b",
        "/cache/modelscope/Qwen/Qwen3-8B",
    ],
)
def test_folders_of_other_systems_name_models(alone, path: str) -> None:
    plan = alone("a.py", f"from vllm import LLM\nllm = LLM(r'{path}')\n").plan
    assert plan.model.name == "qwen3-8b"


def test_lines_of_a_notebook_are_no_python(alone) -> None:
    plan = alone("a.py", f"!pip install vllm\n%time\n{OFFLINE}").plan
    assert plan.model.name == "qwen3-8b"


TRAINED = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nimport torch\n"
LOADED = f"model = AutoModelForCausalLM.from_pretrained('{MODEL}', torch_dtype=torch.bfloat16)\n"


@pytest.mark.parametrize(
    ("arguments", "before", "precision", "master"),
    [
        ("", "", "bf16", "none"),
        ("bf16=False", "", "bf16", "none"),
        ("fp16=True", "", "fp16", "none"),
        ("bf16=True", "", "bf16", "none"),  # autocast leaves parameters in the type that they were loaded in
        ("bf16=True, deepspeed='zero2.json'", "", "bf16", None),
        ("bf16=True, fsdp='full_shard'", "", "bf16", None),
        ("", "from peft import LoraConfig, get_peft_model\nget_peft_model(model, LoraConfig(r=8))\n", "bf16", None),
    ],
)
def test_the_type_that_a_model_is_loaded_in_counts_where_the_trainer_gives_none(
    alone, arguments: str, before: str, precision: str, master: str | None
) -> None:
    text = f"{TRAINED}{LOADED}{before}Trainer(model, args=TrainingArguments('x', {arguments})).train()\n"
    training = alone("a.py", text).plan.training
    assert training.precision == precision
    assert (training.master_weights == "none") is (master == "none")


@pytest.mark.parametrize(
    ("model", "loading", "precision", "master"),
    [
        (MODEL, "", "bf16", "none"),  # in the type of its checkpoint
        (MODEL, ", dtype='auto'", "bf16", "none"),
        (MODEL, ", torch_dtype=torch.float32", "bf16", "fp32"),
        ("openai-community/gpt2", "", "bf16", "fp32"),  # published in 32 bits
        ("google-bert/bert-base-uncased", "", "bf16", "fp32"),
    ],
)
def test_a_model_is_loaded_in_the_type_of_its_checkpoint_unless_it_is_said(
    alone, model: str, loading: str, precision: str, master: str
) -> None:
    loaded = f"model = AutoModelForCausalLM.from_pretrained('{model}'{loading})\n"
    imported = alone("a.py", f"{TRAINED}{loaded}Trainer(model, args=TrainingArguments('x', bf16=True)).train()\n")
    training = imported.plan.training
    assert (training.precision, training.master_weights) == (precision, master)
    is_by_release = not loading and master == "none"
    assert any("Transformers 4 loads them in 32" in guess for guess in imported.guesses) is is_by_release


def test_what_a_trainer_is_given_from_elsewhere_is_named(alone) -> None:
    text = f"{TRAINED}{LOADED}Trainer(model, args=made(), peft_config=adapters()).train()\n"
    said = [one.place.field for part in alone("a.py", text).readings for one in part.unmodelled]
    assert said == ["args", "peft_config"]
    known = f"{TRAINED}{LOADED}Trainer(model, args=TrainingArguments('x')).train()\n"
    assert not [one for part in alone("a.py", known).readings for one in part.unmodelled]


def test_a_program_of_ones_own_is_read_by_the_names_of_its_options(alone) -> None:
    imported = alone("run.sh", f"python train.py --model_name {MODEL} --epochs 2 --lora_rank 8 --batch 4\n")
    training = imported.plan.training
    assert (training.epochs, training.adapter.rank, training.adapter.kind) == (2, 8, "lora")
    said = [one.place.field for part in imported.readings for one in part.unmodelled]
    assert said == ["--model_name", "--epochs", "--lora_rank", "--batch"]
    with pytest.raises(CapacityError, match="no command of a known tool"):
        alone("run.sh", f"python evaluate.py --model_name {MODEL} --epochs 1 --tasks mmlu\n")


def test_a_batch_of_all_devices_is_shared(alone) -> None:
    options = f"actor_rollout_ref.model.path={MODEL} actor_rollout_ref.actor.ppo_micro_batch_size=16"
    imported = alone(
        "run.sh", f"python3 -m verl.trainer.main_ppo {options} trainer.n_gpus_per_node=4 trainer.nnodes=1\n"
    )
    assert imported.plan.training.micro_batch == 4


@pytest.mark.parametrize("text", ["settings.update(max_model_len=4096)", "settings.update({'max_model_len': 4096})"])
def test_entries_that_are_put_into_a_mapping_count(alone, text: str) -> None:
    plan = alone(
        "a.py", f"from vllm import LLM\nsettings = {{'tp': 1}}\n{text}\nllm = LLM('{MODEL}', **settings)\n"
    ).plan
    assert plan.value("inference.prompt_tokens") == 3584


def test_an_entry_that_is_set_later_counts(alone) -> None:
    begun = "from vllm import LLM\nsettings = {'max_model_len': 2048}\n"
    later = f"settings['max_model_len'] = 4096\nllm = LLM('{MODEL}', **settings)\n"
    assert alone("a.py", begun + later).plan.value("inference.prompt_tokens") == 3584
    perhaps = alone(
        "a.py", f"{begun}if long():\n    settings['max_model_len'] = 4096\nllm = LLM('{MODEL}', **settings)\n"
    )
    assert [one.place.field for part in perhaps.readings for one in part.unmodelled] == ["max_model_len"]


def test_an_entry_that_a_variable_decides_counts_as_it_is_decided(alone) -> None:
    begun = "import os\nfrom vllm import LLM\nsettings = {}\nif os.environ.get('LONG', '1') == '1':\n"
    rest = "    settings['max_model_len'] = 4096\nelse:\n    settings['max_model_len'] = 64\n"
    imported = alone("a.py", f"{begun}{rest}llm = LLM('{MODEL}', **settings)\n")
    assert imported.plan.value("inference.prompt_tokens") == 3584
    assert not [one for part in imported.readings for one in part.unmodelled]


def test_a_section_that_is_off_says_nothing(alone) -> None:
    trained = "sft: {per_device_train_batch_size: 2, output_dir: x}\n"
    lora = "peft: {enabled: SWITCH, r: 8, lora_alpha: 16, target_modules: [q_proj]}\n"
    assert alone("a.yaml", trained + lora.replace("SWITCH", "false")).plan.training.adapter is None
    assert alone("a.yaml", trained + lora.replace("SWITCH", "true")).plan.training.adapter is not None


def test_copies_of_a_group_are_replicas(alone) -> None:
    group = """\
kind: LeaderWorkerSet
spec:
  replicas: 3
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        containers:
        - image: lmsysorg/sglang
          args: [--model-path, Qwen/Qwen3-8B, --tp, "2", --nnodes, "2"]
          resources: {limits: {nvidia.com/gpu: 1}}
    workerTemplate: {}
"""
    assert alone("group.yaml", group).plan.hardware.devices == 6


def test_a_program_of_which_nothing_counts_is_no_tools(alone) -> None:
    text = f"python reward.py --output_dir x --seed 1\ncat > dpo.yaml <<END\n{DPO}END\npython dpo.py dpo.yaml\n"
    training = alone("run.sh", text).plan.training
    assert (training.micro_batch, training.preference, training.seq_len) == (3, "dpo", 512)


DPO = f"""\
model_name_or_path: {MODEL}
loss_type: sigmoid
beta: 0.1
max_prompt_length: 128
max_length: 512
per_device_train_batch_size: 3
"""


def test_a_script_that_only_puts_adapters_on_a_model_is_refused(alone) -> None:
    text = f"from peft import LoraConfig, get_peft_model\n{TRAINED}{LOADED}get_peft_model(model, LoraConfig(r=4))\n"
    with pytest.raises(CapacityError, match="neither trains nor answers"):
        alone("a.py", text.replace(", Trainer, TrainingArguments", ""))


def test_an_entry_that_is_set_behind_a_call_is_none_of_its(alone) -> None:
    first = f"settings = dict(model='{MODEL}', tensor_parallel_size=2)\nfirst = LLM(**settings)\n"
    text = f"from vllm import LLM\n{first}settings['tensor_parallel_size'] = 8\nsecond = LLM(**settings)\n"
    imported = alone("a.py", text)
    assert imported.plan.value("parallelism.tp") == 2
    assert ["a second call" in one.why for part in imported.readings for one in part.unmodelled] == [True]
    called = "def serve(given):\n    return LLM(**given)\nsettings = {'tensor_parallel_size': 2}\n"
    text = f"from vllm import LLM\n{called}settings['tensor_parallel_size'] = 4\nsettings['model'] = '{MODEL}'\n"
    assert alone("a.py", f"{text}serve(settings)\n").plan.value("parallelism.tp") == 4


@pytest.mark.parametrize(
    ("change", "split"),
    [
        ("settings |= {'tensor_parallel_size': 4}", 4),
        ("settings |= more", 1),
        ("settings.update(more)", 1),
        ("settings.setdefault('tensor_parallel_size', 4)", 1),
        ("for key, value in more.items(): settings[key] = value", 1),
    ],
)
def test_what_a_mapping_is_changed_by_counts_or_is_named(alone, change: str, split: int) -> None:
    imported = alone("a.py", f"from vllm import LLM\nsettings = dict(model='{MODEL}')\n{change}\nLLM(**settings)\n")
    assert imported.plan.value("parallelism.tp") == split
    named = [one.why for part in imported.readings for one in part.unmodelled]
    assert [text.startswith("only running the script tells") for text in named] == ([True] if split == 1 else [])


@pytest.mark.parametrize(
    ("student", "other", "precision"),
    [
        ("", ", dtype=torch.bfloat16", "fp32"),
        (", dtype=torch.float32", ", dtype=torch.bfloat16", "fp32"),
        (", dtype=torch.bfloat16", ", dtype=torch.bfloat16", "bf16"),
    ],
)
def test_the_type_of_models_counts_where_all_are_loaded_in_it(alone, student: str, other: str, precision: str) -> None:
    pairs = (("model", student), ("teacher", other))
    loaded = "".join(f"{one} = AutoModelForCausalLM.from_pretrained('{MODEL}'{kind})\n" for one, kind in pairs)
    training = alone("a.py", f"{TRAINED}{loaded}Trainer(model, args=TrainingArguments('x')).train()\n").plan.training
    assert training.precision == precision


def test_a_model_that_is_made_one_of_32_bits_is_trained_so(alone) -> None:
    loaded = LOADED.replace("bfloat16)", "bfloat16).float()")
    text = f"{TRAINED}{loaded}Trainer(model, args=TrainingArguments('x')).train()\n"
    assert alone("a.py", text).plan.training.precision == "fp32"


def test_no_model_stands_at_the_end_where_an_option_names_one(alone) -> None:
    plan = alone("run.sh", f"sglang serve --model-path {MODEL} --tp 2 --lora-paths me/a me/b\n").plan
    assert (plan.model.name, plan.value("parallelism.tp")) == ("qwen3-8b", 2)


@pytest.mark.parametrize(
    "command",
    [
        f"convert_checkpoint.py --model_name_or_path {MODEL} --epoch 3 --lora_r 8 --batch_size 4",
        f"eval_mine.py --model_name_or_path {MODEL} --epoch 3 --lora_r 8 --batch_size 4",
        f"mine.py --model_name_or_path {MODEL} --epoch 3 --lora_r 8",
    ],
)
def test_a_program_of_ones_own_that_may_not_train_is_refused(alone, command: str) -> None:
    with pytest.raises(CapacityError, match="no command of a known tool"):
        alone("run.sh", f"python {command}\n")


def test_a_file_with_defaults_of_its_own_is_no_recipe(alone) -> None:
    text = f'defaults: {{a: 1}}\ncommand: [vllm, serve, {MODEL}, -tp, "2"]\n'
    assert alone("job.yaml", text).plan.value("parallelism.tp") == 2
