"""Exports for orchestrators, launchers and engines ask for what the plan has, and published schemas accept them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.plan.imports import import_plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.present.frameworks import TARGETS, Wishes, export_files, targets_of
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.tui.cli import main

CATALOG = load_catalog()
LINES = (
    "llama-3.1-70b 32xh100 8k 10B",
    "llama-3.1-8b lora 1xa100 4k 50M",
    "llama-3.1-8b full finetune 8xa100 4k 100M",
    "mixtral-8x7b qlora 4xl40s 2k 20M",
    "qwen2.5-7b 16xh200 4k 1B",
    "gpt2-small 2xrtx-4090 1k 100M",
    "resnet-50 train 16xa100 90 epochs 1281167 samples",
    "serve llama-3.1-70b 4xh100",
    "serve deepseek-v3 16xh100 sglang",
    "serve llama-3.1-405b 16xh100",
    "serve qwen2.5-14b llamacpp rtx-4090",
)
ORCHESTRATED = ("kubernetes", "skypilot", "dstack")
WISHES = Wishes(("python", "train.py", "--lr", "1e-4"), "team-a", "rack", "NVIDIA-H100-80GB-HBM3")


@cache
def answered(line: str) -> Answer:
    return answer(fill(plan_of_line(read_line(line)).plan, "balanced").plan, None, CATALOG)


@cache
def files_of(line: str, target: str, wishes: Wishes | None = None) -> Mapping[str, str]:
    return export_files(target, answered(line), CATALOG, *([] if wishes is None else [wishes]))


def manifests(line: str, wishes: Wishes | None = None) -> list[dict[str, Any]]:
    texts = files_of(line, "kubernetes", wishes).values()
    return [document for text in texts for document in yaml.safe_load_all(text)]


@pytest.mark.parametrize("line", LINES)
def test_every_target_that_a_plan_has_writes_files_that_can_be_read(line: str) -> None:
    targets = targets_of(answered(line), CATALOG)
    assert set(targets) <= set(TARGETS)
    assert "kubernetes" in targets
    for target in targets:
        for name, text in files_of(line, target).items():
            if name.endswith((".yaml", ".yml")):
                assert all(isinstance(document, dict) for document in yaml.safe_load_all(text))
            elif name.endswith(".sh"):
                assert shlex.split(text.replace("\\\n", " "), comments=True)


def test_tools_that_fine_tune_adapters_are_targets_of_plans_with_adapters_alone() -> None:
    line = "llama-3.1-8b lora 1xa100 4k 50M"
    written = {tool: files_of(line, tool) for tool in ("trl", "axolotl", "llama-factory", "torchtune")}
    assert yaml.safe_load(written["axolotl"]["axolotl.yaml"])["adapter"] == "lora"
    assert "SFTTrainer" in written["trl"]["train.py"]
    assert {"llamafactory.yaml", "torchtune.yaml"} <= {*written["llama-factory"], *written["torchtune"]}
    with pytest.raises(PlanError, match="low-rank adapters"):
        files_of("llama-3.1-8b full finetune 8xa100 4k 100M", "axolotl")


def test_a_plan_without_software_is_planned_for_the_tool_that_it_is_written_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["export", "axolotl", "llama-3.1-70b lora 8xh100 4k 50M"]) == 0
    text = capsys.readouterr().out
    assert "does not run as planned" not in text
    written = yaml.safe_load(text)
    assert written.get("tensor_parallel_size", 1) == 1
    assert written["micro_batch_size"] * written["gradient_accumulation_steps"] * 8 == 128


def test_a_training_on_one_node_is_a_job_with_all_devices_of_the_node() -> None:
    job, train_job = manifests("llama-3.1-8b full finetune 8xa100 4k 100M", WISHES)
    assert (job["kind"], train_job["kind"]) == ("Job", "TrainJob")
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert pod["containers"][0]["command"][-1] == "torchrun --nproc-per-node=8 --standalone train.py --lr 1e-4"
    assert pod["volumes"][0]["emptyDir"]["medium"] == "Memory"
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": WISHES.product}
    made = {"app.kubernetes.io/managed-by": "capacity-tui"}
    assert job["metadata"]["labels"] == {**made, "kueue.x-k8s.io/queue-name": "team-a"}
    assert train_job["spec"]["trainer"]["command"] == ["torchrun", "train.py", "--lr", "1e-4"]


def test_a_training_on_several_nodes_is_a_set_of_jobs_that_meet() -> None:
    jobs = manifests(LINES[0], WISHES)[0]
    inner = jobs["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (jobs["kind"], inner["completionMode"], inner["parallelism"]) == ("JobSet", "Indexed", 4)
    words = inner["template"]["spec"]["containers"][0]["command"][-1]
    name = jobs["metadata"]["name"]
    assert f"--master-addr={name}-workers-0-0.{name}" in words
    assert inner["template"]["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-required-topology": "rack"}


def test_what_serves_over_nodes_is_a_group_with_a_leader() -> None:
    group, service = manifests("serve deepseek-v3 16xh100 sglang")
    assert (group["kind"], group["spec"]["leaderWorkerTemplate"]["size"]) == ("LeaderWorkerSet", 2)
    leader = group["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    assert leader["metadata"]["labels"] == service["spec"]["selector"]
    assert "--nnodes 2" in leader["spec"]["containers"][0]["command"][-1]


def test_clouds_are_asked_for_the_devices_of_a_node_and_spot_capacity_recovers() -> None:
    line = "qwen2.5-7b 16xh200 4k 1B pricing.spot=true"
    sky, run = (yaml.safe_load(files_of(line, target)[f"{target}.yaml"]) for target in ("skypilot", "dstack"))
    assert (sky["resources"]["accelerators"], sky["num_nodes"]) == ("H200:8", 2)
    assert sky["resources"]["any_of"] == [
        {"accelerators": f"{device}:8", "use_spot": spot} for device in ("H200", "B200") for spot in (True, False)
    ], "what holds the plan, no slower and no dearer"
    assert "$SKYPILOT_NODE_RANK" in sky["run"]
    assert run["resources"]["gpu"] == {"name": "H200", "memory": "140GB", "count": 8}
    assert (run["nodes"], run["spot_policy"]) == (2, "spot")
    assert "interruption" in run["retry"]["on_events"]


@pytest.mark.parametrize("target", ["skypilot", "dstack"])
@pytest.mark.parametrize("line", LINES)
def test_tasks_are_read_back_as_the_plan(line: str, target: str, tmp_path: Path) -> None:
    if target not in targets_of(answered(line), CATALOG):
        pytest.skip("no such file of this plan")
    path = tmp_path / "task.yaml"
    path.write_text(files_of(line, target)[f"{target}.yaml"], "utf-8")
    before, after = answered(line).plan, import_plan([str(path)]).plan
    assert (after.model.name, after.hardware.devices) == (before.model.name, before.hardware.devices)
    for section in ("parallelism", "training") if before.task != "infer" else ("parallelism", "inference"):
        for name in ("tp", "pp", "micro_batch", "global_batch", "seq_len", "prompt_tokens", "batch"):
            if hasattr(getattr(before, section), name):
                assert getattr(getattr(after, section), name) == getattr(getattr(before, section), name), name


def test_tasks_of_others_are_imported_with_what_their_shells_run(tmp_path: Path) -> None:
    sky, run = tmp_path / "sky.yaml", tmp_path / "run.yaml"
    train = "sft.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2 --bf16 --max_steps 9"
    sky.write_text(
        "resources: {any_of: [{accelerators: {A100-80GB: 8}, use_spot: true}, {accelerators: H100:8}]}\n"
        "num_nodes: 2\nrun: |\n"
        f"  torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc-per-node=$SKYPILOT_NUM_GPUS_PER_NODE {train}\n"
    )
    run.write_text(
        "type: service\ncommands: [vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 4]\n"
        "resources: {gpu: 'nvidia:H100:80GB:4'}\n"
    )
    trained, served = import_plan([str(sky)]).plan, import_plan([str(run)]).plan
    assert (trained.hardware.name, trained.hardware.devices) == ("A100-80GB", 16)
    assert trained.pricing.spot
    assert trained.training.micro_batch == 2
    assert (served.task, served.hardware.devices, served.parallelism.tp) == ("infer", 4, 4)


def test_texts_that_other_readers_of_yaml_take_for_numbers_are_quoted() -> None:
    wishes = Wishes(("python", "train.py", "--lr", "1e-4", "--seed", "0o17", "--name", "v1"))
    text = files_of(LINES[0], "kubernetes", wishes)["trainjob.yaml"]
    assert all(f"- {word}\n" in text for word in ("'1e-4'", "'0o17'", "v1"))


def test_what_a_target_cannot_run_is_refused_with_what_can() -> None:
    with pytest.raises(PlanError) as refused:
        files_of(LINES[0], "ollama")
    assert "kubernetes" in str(refused.value.hint)
    with pytest.raises(PlanError) as unknown:
        files_of(LINES[0], "kubernets")
    assert "kubernetes" in str(unknown.value.hint)
    with pytest.raises(PlanError):
        files_of(LINES[0], "compose")


def test_the_command_writes_files_and_keeps_those_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["export", "kubernetes", "vllm_70b_4_h100", "-o", str(tmp_path)]
    assert main(asked) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["deployment.yaml"]
    assert main(asked) != 0
    assert "is there already" in capsys.readouterr().err
    assert main([*asked, "--force"]) == 0
    assert main(["export"]) == 0
    assert set(TARGETS) <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("wishes", [Wishes(), WISHES], ids=["plain", "with wishes"])
@pytest.mark.parametrize("line", LINES)
def test_manifests_are_valid_by_the_schemas_of_kubernetes(line: str, wishes: Wishes) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="schemas of Kubernetes: pip install kubernetes-validate"
    )
    known = [own for manifest in manifests(line, wishes) for own in of_kubernetes(manifest)]
    assert {"Job", "Deployment", "Pod"} & {own["kind"] for own in known}, "what runs is among them"
    for own in known:
        validate.validate(own, "1.34", strict=True)


def of_kubernetes(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what Kubernetes itself knows of a manifest: all of it, or the jobs and pods inside."""
    spec = manifest.get("spec", {})
    name = {"name": manifest["metadata"]["name"]}
    if "." not in manifest["apiVersion"].partition("/")[0]:
        yield manifest
    for jobs in spec.get("replicatedJobs", ()):
        yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": name} | jobs["template"]
    for template in ("leaderTemplate", "workerTemplate"):
        if template in (group := spec.get("leaderWorkerTemplate", {})):
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": name} | group[template]


@pytest.mark.parametrize("line", LINES)
def test_tasks_are_valid_by_the_parsers_of_their_tools(line: str) -> None:
    targets, parsed = targets_of(answered(line), CATALOG), 0
    with suppress(ImportError):
        task = import_module("sky").Task
        task.from_yaml_config(yaml.safe_load(files_of(line, "skypilot")["skypilot.yaml"]))
        parsed += 1
    with suppress(ImportError):
        configurations = import_module("dstack._internal.core.models.configurations")
        if "dstack" in targets:
            configurations.parse_run_configuration(yaml.safe_load(files_of(line, "dstack")["dstack.yaml"]))
            parsed += 1
    if not parsed:
        pytest.skip("neither skypilot nor dstack is installed")
