"""Files that run programs on machines: what they run, on how many devices, and where a fault of them stands."""

from __future__ import annotations

import pytest

from capacity_tui.engine.errors import CapacityError

DEPLOYMENT = """\
apiVersion: v1
kind: Service
metadata: {name: mistral}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mistral}
spec:
  replicas: 3
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
      containers:
        - name: server
          image: vllm/vllm-openai:v0.8.4
          args:
            - --model=mistralai/Mistral-7B-Instruct-v0.3
            - --max-model-len=8192
            - --tensor-parallel-size=2
            - --frobnicate=3
          resources: {limits: {nvidia.com/gpu: 2}}
        - name: exporter
          image: prom/statsd-exporter
          args: [--statsd.mapping-config=/etc/mapping.yml]
"""
KSERVE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
spec:
  predictor:
    minReplicas: 2
    model:
      modelFormat: {name: huggingface}
      args: [--model_name=llama3, --model_id=meta-llama/Meta-Llama-3-8B-Instruct, --max-model-len=8192]
      resources: {limits: {nvidia.com/gpu: "1"}}
"""
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:latest
    command: --model Qwen/Qwen2.5-32B-Instruct-AWQ --quantization awq_marlin --tensor-parallel-size 2
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
"""
RAY = """\
applications:
  - args:
      llm_configs:
        - model_loading_config: {model_id: qwen, model_source: Qwen/Qwen2.5-7B-Instruct}
          accelerator_type: L40S
          deployment_config: {num_replicas: 3, max_ongoing_requests: 128}
          engine_kwargs: {tensor_parallel_size: 2, max_model_len: 8192, gpu_memory_utilization: 0.85}
    import_path: ray.serve.llm:build_openai_app
"""
CHART = """\
servingEngineSpec:
  modelSpec:
    - name: llama3
      repository: vllm/vllm-openai
      modelURL: meta-llama/Llama-3.1-8B-Instruct
      replicaCount: 2
      requestGPU: 1
      vllmConfig: {maxModelLen: 16384, enablePrefixCaching: false, extraArgs: [--gpu-memory-utilization, "0.8"]}
"""
UNIT = """\
[Unit]
Description=a server
[Service]
Environment=CUDA_VISIBLE_DEVICES=0
ExecStart=/opt/llama.cpp/llama-server -m /models/Qwen3-8B-Q4_K_M.gguf -ngl 99 -c 32768 \\
    -np 4 -fa on
[Install]
WantedBy=multi-user.target
"""
TRAINING = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: nvcr.io/nvidia/pytorch:25.04-py3
              env: [{name: MODEL, value: Qwen/Qwen2.5-7B}]
              command: [bash, -c]
              args: ["torchrun --nproc_per_node 8 scripts/sft.py --model_name_or_path $MODEL --max_length 4096"]
              resources: {limits: {nvidia.com/gpu: 8}}
    Worker:
      replicas: 3
      template:
        spec:
          containers:
            - name: pytorch
              image: nvcr.io/nvidia/pytorch:25.04-py3
              env: [{name: MODEL, value: Qwen/Qwen2.5-7B}]
              command: [bash, -c]
              args: ["torchrun --nproc_per_node 8 scripts/sft.py --model_name_or_path $MODEL --max_length 4096"]
              resources: {limits: {nvidia.com/gpu: 8}}
"""


@pytest.fixture
def plan_of(written):
    """The values of the plan of a text, of which the command line says no more than the device."""

    def values(name, text, *paths, device="h100-sxm-80gb"):
        typed = {"model__name": None, "hardware__name": device, "hardware__devices": None}
        plan = written(name, text, **typed).plan
        return [plan.value(path) for path in paths]

    return values


LENGTH = "inference.prompt_tokens"
SERVED = ("model.name", "hardware.devices", "parallelism.tp")


def test_a_deployment_serves_on_the_devices_of_its_replicas(plan_of):
    assert plan_of("serve.yaml", DEPLOYMENT, *SERVED) == ["mistral-7b-v0.3", 6, 2]
    assert plan_of("serve.yaml", DEPLOYMENT, "hardware.name", device=None) == ["a100-sxm-80gb"]


def test_an_option_that_nobody_knows_stands_in_the_line_of_its_container(written):
    imported = written("serve.yaml", DEPLOYMENT, model__name=None, hardware__devices=None)
    remarks = [remark for reading in imported.readings for remark in reading.unknown]
    place = next(remark.place for remark in remarks if "frobnicate" in str(remark.place.field))
    assert DEPLOYMENT.splitlines()[place.line - 1].strip() == "args:"


@pytest.mark.parametrize(
    ("name", "text", "served"),
    [
        ("kserve.yaml", KSERVE, ["llama-3-8b", 2, 1]),
        ("compose.yml", COMPOSE, ["Qwen/Qwen2.5-32B-Instruct-AWQ", 2, 2]),
        ("serve.yaml", RAY, ["qwen2.5-7b", 6, 2]),
        ("values.yaml", CHART, ["llama-3.1-8b", 2, 1]),
        ("llama.service", UNIT, ["qwen3-8b", None, None]),
        ("Modelfile", "FROM llama3.1:8b-instruct-q8_0\nPARAMETER num_ctx 16384\n", ["llama-3.1-8b", None, None]),
    ],
)
def test_what_a_file_runs_is_served(plan_of, name, text, served):
    assert plan_of(name, text, *SERVED) == served


def test_what_a_file_says_of_the_engine_counts(plan_of):
    assert plan_of("serve.yaml", RAY, "inference.gpu_memory_utilization") == [0.85]
    assert plan_of("serve.yaml", RAY, "hardware.name", device=None) == ["l40s"]
    assert plan_of("values.yaml", CHART, "inference.gpu_memory_utilization", LENGTH) == [0.8, 16384 - 512]
    assert plan_of("Modelfile", "FROM llama3.1:8b-instruct-q8_0\n", "inference.weights") == ["q8_0"]
    assert plan_of("llama.service", UNIT, "inference.weights", LENGTH) == ["q4_k_m", 8192 - 512]


def test_a_job_trains_on_the_nodes_of_all_its_roles(plan_of):
    paths = ("model.name", "hardware.devices", "hardware.per_node", "training.seq_len")
    assert plan_of("job.yaml", TRAINING, *paths) == ["qwen2.5-7b", 32, 8, 4096]


def test_variables_of_a_task_are_filled_in(plan_of):
    task = "resources: {accelerators: H100:8}\nnum_nodes: 2\nenvs: {MODEL: meta-llama/Llama-3.1-8B}\nrun: |\n"
    task += "  torchrun --nproc_per_node 8 scripts/sft.py --model_name_or_path $MODEL --max_length 4096\n"
    assert plan_of("sky.yaml", task, "model.name", "hardware.devices", device=None) == ["llama-3.1-8b", 16]


def test_a_file_of_images_and_one_that_runs_nothing_known_are_of_no_tool(written):
    texts = (
        *("FROM ubuntu:24.04\nRUN apt-get update\n", "containers:\n- command: [sleep, infinity]\n"),
        *("from vllm/vllm-openai:v0.11\nrun pip install x\n", "from vllm/vllm-openai:v0.11\n"),
        "from python:3.11\nexpose 8000\n",
    )
    for text in texts:
        with pytest.raises(CapacityError, match=r"no known tool|command of a known tool"):
            written("file", text, model__name=None)


COMPOSE = """\
services:
  model:
    image: ${IMAGE:-own-vllm:local}
    command:
      - --model
      - /models/${FOLDER:-qwen}
      - --served-model-name
      - Qwen/Qwen3-8B
      - --max-model-len
      - ${LENGTH:-${SHORT:-8192}}
      - --tensor-parallel-size
      - ${DEVICES}
"""


@pytest.mark.parametrize("variables", ["DEVICES=x${DEVICES}", "DEVICES=${OTHER}\nOTHER=${DEVICES}"])
def test_a_variable_that_is_made_of_itself_stays_unknown(written, tmp_path, variables: str) -> None:
    (tmp_path / ".env").write_text(f"{variables}\n")
    assert written("compose.yml", COMPOSE, model__name=None).plan.model.name


def test_variables_of_a_compose_file_count_by_their_defaults_and_the_file_beside(written, tmp_path) -> None:
    (tmp_path / ".env").write_text("DEVICES=2  # of four\n")
    plan = written("compose.yml", COMPOSE, model__name=None).plan
    assert (plan.model.name, plan.parallelism.tp) == ("qwen3-8b", 2)
    assert (plan.inference.prompt_tokens or 0) + (plan.inference.output_tokens or 0) == 8192


def test_a_model_alone_is_the_argument_of_the_program_of_an_image(written) -> None:
    text = COMPOSE.replace("      - --model\n", "").replace("${IMAGE:-own-vllm:local}", "vllm/vllm-openai:v0.11")
    plan = written("compose.yml", text.replace("${FOLDER:-qwen}", "Qwen3-14B"), model__name=None).plan
    assert plan.model.name == "qwen3-14b"


def test_a_command_that_is_a_text_is_a_line_of_a_shell(written) -> None:
    text = (
        "services:\n  model:\n    image: lmsysorg/sglang:latest\n    entrypoint: python3 -m sglang.launch_server\n"
        "    command: --model-path Qwen/Qwen3-8B\n      --tp 2\n"
    )
    plan = written("compose.yml", text, model__name=None).plan
    assert (plan.model.name, plan.parallelism.tp, plan.inference.engine) == ("qwen3-8b", 2, "sglang")


def test_an_image_of_ones_own_is_known_by_its_options(written) -> None:
    text = (
        "services:\n  model:\n    build: {dockerfile: own.Dockerfile}\n    container_name: own\n"
        "    command: --model Qwen/Qwen3-8B --max-model-len 4096 --max-num-seqs 4\n"
    )
    plan = written("compose.yml", text, model__name=None).plan
    assert (plan.model.name, plan.inference.engine, plan.inference.concurrency) == ("qwen3-8b", "vllm", 4)


@pytest.mark.parametrize(("nodes", "devices"), [("--nnodes 2 --node-rank $RANK", 16), ("", 32)])
def test_pods_that_serve_together_are_nodes_and_others_replicas(written, nodes: str, devices: int) -> None:
    text = (
        "kind: StatefulSet\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n"
        "      - image: lmsysorg/sglang:latest\n        command: [bash, -c]\n        args:\n"
        "        - python3 -m sglang.launch_server"
        f" --model-path Qwen/Qwen3-8B --tp 16 {nodes}\n        resources: {{limits: {{nvidia.com/gpu: '8'}}}}\n"
    )
    assert written("serve.yaml", text, model__name=None, hardware__devices=None).plan.hardware.devices == devices


def test_instructions_of_a_model_file_are_written_in_any_case(written) -> None:
    plan = written("Modelfile", "from llama3.2:3b\nparameter num_ctx 16384\n", model__name=None).plan
    assert (plan.model.name, (plan.inference.prompt_tokens or 0) + (plan.inference.output_tokens or 0)) == (
        "llama-3.2-3b",
        16384,
    )


def test_what_a_model_is_to_say_is_no_instruction_of_an_image(written) -> None:
    text = 'FROM llama3.2:3b\nSYSTEM """\nRun fast.\nCopy nothing.\n"""\nPARAMETER stop "<|end|>"\nDRAFT ./small.gguf\n'
    assert written("Modelfile", text, model__name=None).plan.model.name == "llama-3.2-3b"


def test_no_empty_list_of_names_is_shown(written) -> None:
    with pytest.raises(CapacityError, match="no model is known as") as refused:
        written("Modelfile", "FROM zzqqxx:3.11\n", model__name=None)
    assert str(refused.value.hint).startswith("--model says")


def test_a_script_that_prepares_a_container_is_not_what_it_runs(tmp_path, alone) -> None:
    (tmp_path / "prepare.sh").write_text('ldconfig\nexec "$@"\n')
    command = "[/app/llama-server, -m, /models/Qwen2.5-7B.gguf, -c, '8192']"
    service = f"{{image: own/server, entrypoint: [/bin/prepare.sh], command: {command}}}"
    plan = alone("compose.yaml", f"services:\n  server: {service}\n").plan
    assert plan.value("inference.engine") == "llamacpp"


def test_options_in_a_variable_of_an_inference_service_count(alone) -> None:
    predictor = """kind: InferenceService
spec:
  predictor:
    model:
      modelFormat: {name: vLLM}
      storageUri: hf://Qwen/Qwen2.5-7B-Instruct
      env: [{name: VLLM_ARGS, value: "--tensor-parallel-size 2"}]
      resources: {limits: {nvidia.com/gpu: 2}}
"""
    assert alone("service.yaml", predictor).plan.value("parallelism.tp") == 2


def test_a_run_of_mosaicml_holds_the_parameters_of_its_command(plan_of) -> None:
    """Its platform writes them into the file that the command reads."""
    run = (
        "name: run\nimage: mosaicml/llm-foundry:2.6.0\ncompute: {gpus: 16, cluster: CLUSTER}\n"
        "command: |\n  cd llm-foundry/scripts\n  composer train/train.py /mnt/config/parameters.yaml\n"
        "parameters:\n  variables: {longest: 4096}\n  max_seq_len: ${variables.longest}\n"
        "  global_train_batch_size: 512\n  device_train_microbatch_size: 4\n"
        "  model: {name: hf_causal_lm, pretrained_model_name_or_path: Qwen/Qwen3-8B}\n"
        "  max_duration: 10ba\n  precision: amp_bf16\n  fsdp_config: {sharding_strategy: FULL_SHARD}\n"
    )
    paths = ("model.name", "hardware.devices", "parallelism.zero", "training.seq_len", "training.global_batch")
    assert plan_of("run.yaml", run, *paths) == ["qwen3-8b", 16, 3, 4096, 512]


_SERVER = """apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  template:
    spec:
      containers:
      - name: server
        image: vllm/vllm-openai:v0.8.5
        command: ["/bin/sh", "-c"]
        args: ["vllm serve $(MODEL_ID) --tensor-parallel-size 2 --max-model-len ${LONGEST}"]
        %s
        resources: {limits: {nvidia.com/gpu: 2}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {MODEL_ID: Qwen/Qwen3-8B, LONGEST: "4096"}
"""


@pytest.mark.parametrize(
    "variables",
    [
        "envFrom: [{configMapRef: {name: settings}}]",
        "env: [{name: MODEL_ID, valueFrom: {configMapKeyRef: {name: settings, key: MODEL_ID}}}, "
        "{name: LONGEST, value: 4096}]",
    ],
)
def test_variables_are_those_of_a_config_map_in_the_same_file(alone, variables: str) -> None:
    plan = alone("server.yaml", _SERVER % variables).plan
    assert (plan.model.name, plan.inference.prompt_tokens + plan.inference.output_tokens) == ("qwen3-8b", 4096)


_COMPOSED = """services:
  first: {image: "vllm/vllm-openai:latest", entrypoint: [/bin/sh, -c], environment: {MODEL: Qwen/Qwen3-8B},
    command: ["exec vllm serve \\"$$MODEL\\" --max-model-len 4096"]}
"""
_MOUNTED = """services:
  first: &first
    image: ghcr.io/huggingface/text-generation-inference:latest
    volumes: ["./models/Qwen2.5-7B-Instruct-GPTQ-Int4:/data"]
    command: [--model-id=/data, --max-total-tokens=4096]
  second:
    image: ghcr.io/huggingface/text-generation-inference:latest
    volumes: ["./models/Meta-Llama-3.1-8B-Instruct:/data:ro"]
    command: [--model-id=/data, --max-total-tokens=4096]
"""


def test_two_dollars_of_a_compose_file_are_one_for_the_shell_of_the_container(alone) -> None:
    assert alone("compose.yml", _COMPOSED).plan.model.name == "qwen3-8b"


def test_a_folder_of_a_container_is_that_of_its_volume(alone) -> None:
    """So that a second service with the same words and another folder is no copy of the first."""
    imported = alone("compose.yml", _MOUNTED)
    assert imported.plan.model.name == "Qwen2.5-7B-Instruct-GPTQ-Int4"
    assert any("Meta-Llama-3.1-8B" in one.why for reading in imported.readings for one in reading.unmodelled)


@pytest.mark.parametrize(
    ("replicas", "image", "told"),
    [
        (0, "vllm/vllm-openai:v0.11.0", ["switched off: 1 counted"]),
        (1, "ghcr.io/own/vllm-cpu:v0.11.0", ["it serves on processors: an accelerator is counted"]),
    ],
)
def test_what_serves_nothing_or_on_processors_is_told(alone, replicas: int, image: str, told: list[str]) -> None:
    text = DEPLOYMENT.replace("replicas: 3", f"replicas: {replicas}").replace("vllm/vllm-openai:v0.8.4", image)
    command = "command: [vllm, serve]\n          args:"
    imported = alone(
        "deployment.yaml", text.replace("args:\n            - --model", f"{command}\n            - --model")
    )
    assert imported.plan.hardware.devices == 2
    assert [one.why for reading in imported.readings for one in reading.unmodelled] == told
