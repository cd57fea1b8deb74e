"""Values of charts, resources of clusters that name a model, and what Terraform holds for them."""

from __future__ import annotations

import pytest

_RESOURCE = """apiVersion: llm.own.dev/v1alpha1
kind: LLMModel
metadata: {name: qwen}
spec:
  model: {name: Qwen/Qwen3-8B, source: huggingface}
  resources: {gpu: {count: 1}}
  serving: {replicas: 2, vllmArgs: [--max-model-len, "8192"]}
"""
_VALUES = """replicas: 2
image: {repository: vllm/vllm-openai, tag: v0.6.3}
model: Qwen/Qwen3-8B
resources: {limits: {nvidia.com/gpu: 1}}
"""
_NAMED = """model: Qwen/Qwen3-8B
replicaCount: 2
resources: {limits: {nvidia.com/gpu: 1}}
vllm:
  extraArgs:
    - --max-model-len=8192
"""
_TERRAFORM = """resource "helm_release" "vllm" {
  chart = "vllm"
  values = [<<-EOF
    servingEngineSpec:
      modelSpec:
      - name: "qwen"
        modelURL: "Qwen/Qwen3-8B"
        replicaCount: 2
        requestGPU: 1
        vllmConfig: {maxModelLen: 8192}
  EOF
  ]
}
"""


@pytest.mark.parametrize(
    ("name", "text", "length"),
    [
        ("model.yaml", _RESOURCE, 8192),
        ("values.yaml", _VALUES, None),
        ("values.yaml", _NAMED, 8192),
        ("vllm.tf", _TERRAFORM, 8192),
    ],
)
def test_values_of_charts_and_resources_of_clusters_serve_their_model(
    alone, name: str, text: str, length: int | None
) -> None:
    imported = alone(name, text)
    plan = imported.plan
    assert (plan.task, plan.model.name, plan.inference.engine) == ("infer", "qwen3-8b", "vllm")
    if length:
        assert plan.inference.prompt_tokens + plan.inference.output_tokens == length


def test_a_file_with_commands_of_its_own_is_no_chart(alone) -> None:
    text = (
        "type: service\nimage: vllm/vllm-openai\nmodel: Qwen/Qwen3-8B\nresources: {gpu: 80GB:2}\n"
        "commands:\n  - vllm serve Qwen/Qwen3-8B --max-num-seqs 7\n"
    )
    imported = alone("service.yml", text)
    assert imported.plan.inference.concurrency == 7
    remarks = [one.why for reading in imported.readings for one in reading.unmodelled]
    assert "a device of 80GB: --gpu says which" in remarks
