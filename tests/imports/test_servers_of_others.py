"""What scripts, manifests and lists of models serve counts as it stands, and what is not known of it is named."""

from __future__ import annotations

import pytest

from capacity_tui.engine.errors import CapacityError

LENGTH = "inference.prompt_tokens"
RAY = """\
applications:
  - args:
      llm_configs:
        - model_loading_config: {model_id: qwen, model_source: Qwen/Qwen2.5-7B-Instruct}
          deployment_config: {autoscaling_config: {min_replicas: 2, max_replicas: MOST}}
          engine_kwargs:
            tensor_parallel_size: 2
            enable_chunked_prefill: false
            kv_transfer_config: {kv_connector: NixlConnector, kv_role: kv_both}
"""
SWAPPED = """\
macros:
  server: >
    llama-server
    --port ${PORT}
models:
  small:
    cmd: |
      ${server} -hf Qwen/Qwen3-8B-GGUF:Q4_K_M
      # kept short
      --ctx-size 8192
  large:
    cmd: docker run --rm -e TOKEN=${env.TOKEN} vllm/vllm-openai:v0.11 --model Qwen/Qwen3-32B --max-model-len 4096
"""
SHARDED = """\
kind: Deployment
spec:
  replicas: 2
  template:
    spec:
      containers:
      - image: ghcr.io/huggingface/text-generation-inference:3.3
        args: [--model-id, Qwen/Qwen3-8B]
        resources: {limits: {nvidia.com/gpu: 4}}
"""
STORED = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
spec:
  predictor:
    model:
      modelFormat: {name: vLLM}
      storageUri: hf://Qwen/Qwen3-8B
"""
SAMPLED = """\
from vllm import LLM, SamplingParams
llm = LLM(model="Qwen/Qwen3-8B", max_model_len=4096)
llm.generate(prompts, SamplingParams(temperature=0, max_tokens=64))
"""


def remarks(imported) -> dict[str, str]:
    """Return why options are not modelled, by their names."""
    return {str(one.place.field): one.why for reading in imported.readings for one in reading.unmodelled}


def values(imported, *paths: str) -> list[object]:
    """Return values of the plan."""
    return [imported.plan.value(path) for path in paths]


@pytest.fixture
def served(written):
    """Read a text of which the command line says no more than the device."""
    return lambda name, text: written(name, text, model__name=None, hardware__devices=None)


@pytest.mark.parametrize(
    "command",
    [
        "srun --nodes=1 --gpus=2 {}",
        "docker run --gpus all --name vllm -v /data:/vllm own/image:latest {}",
        "podman exec -it vllm {}",
        "env NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES=0,1 {}",
        "nohup timeout 600 {} &",
        "start() {{ {}; }}\nwhile true; do\n  if start; then break; fi\ndone",
        'ssh -f host "cd /srv && nohup {} > log 2>&1 &"',
        "tmux new-session -d -s serve '{}'",
        "docker run --gpus all --entrypoint bash own/image:1 -lc '{}'",
        "if false; then exit 1; elif ! {}; then exit 2; fi",
    ],
)
def test_a_server_is_read_behind_what_starts_it(alone, command: str) -> None:
    imported = alone("serve.sh", f"{command.format('vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2')}\n")
    assert values(imported, "model.name", "parallelism.tp") == ["qwen3-8b", 2]
    assert not [one for reading in imported.readings for one in reading.unknown]


@pytest.mark.parametrize(
    "beside",
    [
        "docker logs -f llama-server",
        "docker run --rm own/image:1 which llama-server",
        "if docker image inspect vllm/vllm-openai:latest; then docker pull vllm/vllm-openai; fi",
        "docker run --name llama-server nginx:latest",
        'pgrep -f "vllm serve"',
    ],
)
def test_what_only_names_a_server_starts_none(alone, beside: str) -> None:
    imported = alone("serve.sh", f"{beside}\nllama-server -hf Qwen/Qwen3-8B-GGUF:Q4_K_M -c 4096 -np 2\n")
    assert remarks(imported) == {}
    assert values(imported, "model.name", "inference.concurrency") == ["qwen3-8b", 2]


@pytest.mark.parametrize(
    ("options", "further"),
    [
        ("Qwen/Qwen3-8B --port 8000 $EXTRA_ARGS", "$EXTRA_ARGS"),
        ('Qwen/Qwen3-8B --trust-remote-code "${ARGS[@]}"', "${ARGS[@]}"),
        ("$VLLM_OPTS --max-num-seqs 8", "$VLLM_OPTS"),
        ('"$@"', "$@"),
        ('Qwen/Qwen3-8B --port 8000 "$@"', None),
        ("Qwen/Qwen3-8B --port $PORT --host ${HOST:-0.0.0.0}", None),
        ('Qwen/Qwen3-8B "${ARGS[@]}" # nothing in it', None),
    ],
)
def test_options_that_only_a_run_knows_are_named(alone, options: str, further: str | None) -> None:
    before = "ARGS=()\n" if "nothing" in options else ""
    given = remarks(alone("serve.sh", f"{before}vllm serve {options}\n"))
    assert list(given) == ([further] if further else [])


def test_options_of_a_call_count_where_they_are_written(alone) -> None:
    imported = alone("serve.py", f'{SAMPLED}LLM("Qwen/Qwen3-8B", **{{"max_model_len": 4096}})\n')
    assert remarks(imported) == {}
    kept = SAMPLED.replace("max_model_len=4096", "**settings")
    assert list(remarks(alone("serve.py", kept))) == ["**settings"]


def test_answers_are_as_long_as_the_sampling_lets_them(alone) -> None:
    assert values(alone("serve.py", SAMPLED), LENGTH, "inference.output_tokens") == [4096 - 64, 64]


def test_a_second_engine_of_a_script_is_named(alone) -> None:
    imported = alone("serve.py", f'{SAMPLED}LLM("Qwen/Qwen3-32B", tensor_parallel_size=8)\n')
    assert values(imported, "model.name", "parallelism.tp") == ["qwen3-8b", 1]
    assert "a second call, which says otherwise: the first counts" in remarks(imported).values()


def test_the_load_of_a_benchmark_is_that_of_the_server_beside(alone) -> None:
    load = "--backend sglang --request-rate 8 --random-input-len 1024 --random-output-len 128"
    server = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 &\n"
    imported = alone("bench.sh", f"{server}python benchmark_serving.py {load} --random-range-ratio 0.5\n")
    paths = (LENGTH, "inference.output_tokens", "inference.request_rate", "inference.engine", "parallelism.tp")
    assert values(imported, *paths) == [1024, 128, 8, "sglang", 2]
    assert list(remarks(imported)) == ["--random-range-ratio"]


def test_a_load_without_its_server_is_no_plan(alone) -> None:
    with pytest.raises(CapacityError, match="no command of a known tool"):
        alone("bench.sh", "python -m sglang.bench_serving --backend vllm --base-url http://host --request-rate 8\n")


def test_replicas_that_come_with_the_load_are_counted_at_their_fewest(served) -> None:
    fixed, varying = (served("serve.yaml", RAY.replace("MOST", most)) for most in ("2", "5"))
    assert values(fixed, "hardware.devices", "inference.chunked_prefill") == [4, False]
    assert list(remarks(fixed)) == ["--kv_transfer_config"]
    assert remarks(varying)["replicas"] == "up to 5 replicas as the load asks for: 2 counted"


def test_a_file_of_ray_serve_within_one_of_kubernetes_is_read(served) -> None:
    inner = "".join(f"    {line}\n" for line in RAY.replace("MOST", "2").splitlines())
    text = f"kind: RayService\nspec:\n  serveConfigV2: |\n{inner}"
    assert values(served("serve.yaml", text), "model.name", "hardware.devices") == ["qwen2.5-7b", 4]


def test_replicas_of_a_task_multiply_what_one_serves_on(written) -> None:
    task = "resources: {accelerators: H100:8}\nservice: {replicas: 2}\nrun: vllm serve Qwen/Qwen3-8B -tp 8 -dp 1\n"
    imported = written("sky.yaml", task, model__name=None, hardware__name=None, hardware__devices=None)
    assert values(imported, "hardware.devices", "parallelism.tp") == [16, 8]
    assert imported.clashes == ()


def test_of_several_models_of_a_list_the_first_counts(served) -> None:
    imported = served("config.yaml", SWAPPED)
    assert values(imported, "model.name", "inference.engine", LENGTH) == ["qwen3-8b", "llamacpp", 8192 - 512]
    assert remarks(imported) == {
        "vllm serve": "a second command, of another model (Qwen/Qwen3-32B): give it in a file of its own"
    }


def test_an_engine_that_shards_by_itself_takes_the_devices_of_its_container(served) -> None:
    assert values(served("serve.yaml", SHARDED), "parallelism.tp", "hardware.devices") == [4, 8]
    fewer = SHARDED.replace("Qwen3-8B]", "Qwen3-8B, --num-shard, '2']")
    assert values(served("serve.yaml", fewer), "parallelism.tp") == [2]


def test_a_model_that_is_stored_elsewhere_is_named_by_where(served) -> None:
    assert values(served("serve.yaml", STORED), "model.name", "inference.engine") == ["qwen3-8b", "vllm"]
    folder = STORED.replace("hf://Qwen/Qwen3-8B", "s3://models/Qwen3-14B\n      args: [--max-model-len=4096]")
    assert values(served("serve.yaml", folder), "model.name", LENGTH) == ["qwen3-14b", 4096 - 512]


def test_parameters_of_a_model_file_count(served) -> None:
    text = (
        "FROM llama3.1:8b\nPARAMETER num_ctx 8192\nPARAMETER num_gpu 20\nPARAMETER temperature 1\nADAPTER ./own.gguf\n"
    )
    imported = served("Modelfile", text)
    assert values(imported, "inference.gpu_layers", LENGTH) == [20, 8192 - 512]
    assert list(remarks(imported)) == ["--adapter"]


def test_a_context_of_zero_is_all_of_a_model_that_its_repository_names(served) -> None:
    imported = served("serve.sh", "llama-server -hf unsloth/Qwen3-8B-AWQ -c 0\n")
    assert values(imported, LENGTH)[0] == 40960 - 512


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ('vllm serve m --speculative-config \'{"method": "eagle3", "model": "d", "num_speculative_tokens": 3}\'', None),
        ("vllm serve m --kv-cache-memory-bytes 8589934592", "--kv-cache-memory-bytes"),
        ("vllm serve m --runner pooling", "--runner"),
        ("llama-server -m m.gguf -md draft.gguf", "-md"),
        ("llama-server -m m.gguf --mmproj tower.gguf", "--mmproj"),
        ("llama-server -m m.gguf -ts 3,1", "-ts"),
        ("python -m sglang.launch_server --model-path m --dcp-size 4", "--dcp-size"),
        ("text-generation-launcher --model-id m --lora-adapters own/one", "--lora-adapters"),
    ],
)
def test_what_takes_memory_or_time_beside_is_named(alone, command: str, option: str | None) -> None:
    assert (option or "--speculative-config") in remarks(
        alone("serve.sh", f"{command.replace(' m ', ' /models/m ')}\n")
    )


@pytest.mark.parametrize(
    "command",
    [
        "python -O -u -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B -tp 2",
        "docker run --gpus all --entrypoint vllm vllm/vllm-openai:v0.11 serve Qwen/Qwen3-8B -tp 2",
        "docker run --gpus all --entrypoint vllm own/image:1 serve Qwen/Qwen3-8B -tp 2",
        "vllm serve /cache/hub/models--Qwen--Qwen3-8B/snapshots/0123abcd -tp 2",
    ],
)
def test_a_server_is_told_by_how_it_is_called(alone, command: str) -> None:
    assert values(alone("serve.sh", f"{command}\n"), "model.name", "parallelism.tp") == ["qwen3-8b", 2]


def test_values_of_short_options_are_none_of_those_before(alone) -> None:
    kept = 'OPTIONS="--n-gpu-layers 20 -m ./own.gguf --ctx-size 8192 -b 512 --parallel 2"\n'
    imported = alone("options.sh", kept)
    assert values(imported, "inference.gpu_layers", LENGTH, "inference.concurrency") == [20, 4096 - 512, 2]


def test_a_benchmark_without_lengths_sends_its_own(alone) -> None:
    paths = (LENGTH, "inference.output_tokens", "inference.batch")
    options = "--model Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 256"
    assert values(alone("bench.sh", f"vllm bench latency {options}\n"), *paths) == [32, 128, 8]
    assert values(alone("bench.sh", f"vllm bench latency {options} --batch-size 2\n"), *paths) == [32, 128, 2]


def test_answers_as_long_as_the_context_leave_room_for_the_prompt(alone) -> None:
    imported = alone("serve.sh", "llama-server -hf Qwen/Qwen3-8B-GGUF:Q4_K_M -c 8192 --n-predict 8192\n")
    assert values(imported, LENGTH, "inference.output_tokens") == [8192 - 512, 512]


def test_a_format_of_unsloth_is_no_part_of_the_name(alone) -> None:
    imported = alone("serve.sh", "llama-server -m /models/Qwen3-8B-UD-Q4_K_XL.gguf -c 8192\n")
    assert values(imported, "model.name") == ["qwen3-8b"]


def test_servers_whose_program_is_not_known_are_not_taken_together(alone) -> None:
    text = "$BIN serve $SMALL --max-model-len 8192 --max-num-seqs 4\nvllm serve $LARGE --max-model-len 4096 -tp 8\n"
    imported = alone("serve.sh", text)
    assert "given_twice" not in {clash.rule for clash in imported.clashes}
    assert "a second command: give it in a file of its own" in remarks(imported).values()


@pytest.mark.parametrize(("name", "weights"), [("gpt-oss-20b-F16", "mxfp4"), ("Qwen3-8B-F16", "f16")])
def test_a_file_in_16_bits_keeps_the_format_that_its_model_is_released_in(alone, name: str, weights: str) -> None:
    assert alone("run.sh", f"llama-server -m /models/{name}.gguf -c 8192\n").plan.inference.weights == weights
